#!/usr/bin/env node
// Plays in the page of `tahl play` as a person would, in headless Chromium: page.test.mjs TAHL
// With TAHL_SCREENSHOTS=FOLDER it leaves pictures there.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const tahl = resolve(process.argv[2] ?? "build/bin/tahl");
const here = dirname(fileURLToPath(import.meta.url));
const modules = [join(dirname(tahl), "../web"), join(here, "../../web")].find((folder) =>
  existsSync(join(folder, "node_modules/playwright-core")),
);
assert(modules, "playwright-core is not there: build the page first, or npm ci in web/");
const { chromium } = createRequire(join(modules, "package.json"))("playwright-core");
const browserPath = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (path) => path && existsSync(path),
);
assert(browserPath, "no Chromium found: install Debian's chromium, or set CHROMIUM");

// ---- the program ----

function start(...options) {
  const child = spawn(tahl, ["play", "--no-open", "--port", "0", "--seed", "1", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = new Promise((done) => child.on("exit", (code, signal) => done(code ?? signal)));
  const url = new Promise((done, fail) => {
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
      const found = text.match(/http:\/\/127\.0\.0\.1:\d+\//);
      if (found) done(found[0]);
    });
    exited.then((code) => fail(new Error(`tahl play ended with ${code}`)));
  });
  return { child, exited, url };
}
async function stop(server) {
  server.child.kill("SIGINT");
  assert.equal(await server.exited, 0, "Ctrl-C ends it with status 0");
}

let server = start();
let url = await server.url;
if (!(await (await fetch(`${url}api/config`)).json()).net) {
  // A program without a net plays with the one that knows nothing.
  await stop(server);
  server = start("--net", "uniform");
  url = await server.url;
}
const api = async (name, body) => {
  const response = await fetch(`${url}api/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const reply = await response.json();
  assert.equal(response.status, 200, `${name} ${JSON.stringify(body)}: ${reply.error}`);
  return reply;
};

// ---- the browser ----

const profile = mkdtempSync(join(tmpdir(), "tahl-page-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: browserPath,
  headless: true,
  viewport: { width: 1280, height: 860 },
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"],
});
await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url.slice(0, -1) });
const page = context.pages()[0] ?? (await context.newPage());
page.setDefaultTimeout(60_000);
const complaints = []; // of the browser's console
const foreign = [];
page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
page.on("pageerror", (error) => complaints.push(String(error)));
page.on("request", (request) => {
  const to = request.url();
  if (!to.startsWith(url) && !to.startsWith("data:")) foreign.push(to);
});

// Only selectors wait here: page.waitForFunction needs eval, which the page's content policy forbids.
const state = (...wanted) => page.waitForSelector(wanted.map((name) => `body[data-state=${name}]`).join());
const text = (selector) => page.locator(selector).innerText();
const sans = () => page.locator("#moves button").allInnerTexts();
const status = () => text("#status");
const orientation = async () => ((await page.locator("#board.orientation-white").count()) ? "white" : "black");
const picture = async (name) => {
  if (!process.env.TAHL_SCREENSHOTS) return;
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(process.env.TAHL_SCREENSHOTS, `${name}.png`) });
};

async function centre(square) {
  const box = await page.locator("cg-board").boundingBox();
  let [file, rank] = [square.charCodeAt(0) - 97, +square[1] - 1];
  if ((await orientation()) === "white") rank = 7 - rank;
  else file = 7 - file;
  return [box.x + (box.width * (file + 0.5)) / 8, box.y + (box.height * (rank + 0.5)) / 8];
}
async function clickMove(from, to) {
  await page.mouse.click(...(await centre(from)));
  await page.mouse.click(...(await centre(to)));
}
async function dragMove(from, to) {
  const end = await centre(to);
  await page.mouse.move(...(await centre(from)));
  await page.mouse.down();
  await page.mouse.move(end[0] - 6, end[1] - 6, { steps: 4 });
  await page.mouse.move(...end);
  await page.mouse.up();
}
const roles = { q: "queen", r: "rook", b: "bishop", n: "knight" };
let drags = 0;
async function makeMove(uci) {
  await (++drags % 2 ? clickMove : dragMove)(uci.slice(0, 2), uci.slice(2, 4));
  if (uci[4]) await page.locator(`#promotion [data-role=${roles[uci[4]]}]`).click();
}
async function newGame(color) {
  await page.click("#new");
  await page.click(`#new-dialog button[value=${color}]`);
  await page.waitForSelector("#new-dialog", { state: "hidden" });
}
async function load(given) {
  await page.click("#load");
  await page.fill("#load-text", given);
  await page.click("#load-dialog button[value=load]");
  await page.waitForSelector("#load-dialog", { state: "hidden" });
}
const choose = (mode) => page.click(`#modes [data-mode=${mode}]`);
async function copied(button) {
  await page.click(button);
  await page.waitForSelector("#toast.visible");
  return page.evaluate(() => navigator.clipboard.readText());
}
const listed = (n) => page.waitForSelector(`#moves [data-ply="${n}"]`, { state: "attached" });
const unlisted = (n) => page.waitForSelector(`#moves [data-ply="${n}"]`, { state: "detached" });

// ---- what is tested ----

async function aWholeGameAgainstTheNet() {
  await page.goto(url);
  await state("yours");
  assert.equal(await orientation(), "white");
  await picture("start");
  const moves = [];
  for (;;) {
    const { uci } = await api("move", { moves, player: { kind: "minimax", depth: 2 }, game: "test" });
    await makeMove(uci);
    moves.push(uci);
    await listed(moves.length);
    await state("yours", "over");
    const position = await api("position", { moves: await sans() });
    moves.splice(0, moves.length, ...position.uci);
    if (moves.length === 24) await picture("middlegame");
    if (position.outcome) {
      await state("over");
      assert.match(await status(), new RegExp(`^${position.outcome.ending}`, "i"));
      assert((await status()).endsWith(position.outcome.result.replace("1/2-1/2", "½–½").replace("-", "–")));
      console.log(`  ${moves.length} plies: ${await status()}`);
      break;
    }
    assert(moves.length < 600, "the game does not end");
  }
  await picture("over");

  const pgn = await copied("#copy-pgn");
  assert.match(pgn, /\[White "You"\]/);
  assert.match(pgn, /\[Black "Tahl \(.*\)"\]/);
  assert.deepEqual((await api("load", { text: pgn })).moves, moves);

  // Walking through it, and a reload, change nothing.
  await page.keyboard.press("Home");
  await page.waitForSelector("#moves [aria-current]", { state: "detached" });
  assert.equal(await copied("#copy-fen"), "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector('#moves [data-ply="1"][aria-current]');
  await page.click('#moves [data-ply="3"]');
  await page.waitForSelector('#moves [data-ply="3"][aria-current]');
  const fen = (await api("position", { moves: moves.slice(0, 3) })).fen;
  assert.equal(await copied("#copy-fen"), fen);
  await page.keyboard.press("End");
  await page.waitForSelector(`#moves [data-ply="${moves.length}"][aria-current]`);
  await page.reload();
  await state("over");
  assert.equal((await sans()).length, moves.length);
}

async function theNetsEye() {
  await newGame("white");
  await state("yours");
  const rows = page.locator("#top li");
  await rows.nth(4).waitFor();
  const shares = (await rows.locator("span").allInnerTexts()).map(parseFloat);
  assert(shares.every((p, i) => p > 0 && (i === 0 || p <= shares[i - 1])), `${shares}`);
  assert(shares.reduce((a, b) => a + b) < 100.5);
  assert.match(await text("#value"), /^White \d+ %$/);
  await rows.nth(0).hover();
  await page.waitForSelector(".cg-shapes line", { state: "attached" });
  await picture("arrow");
  const san = await rows.nth(0).locator("b").innerText();
  await rows.nth(0).locator("button").click();
  await listed(2);
  assert.equal((await sans())[0], san);
  await page.click("#thoughts .fold");
  await page.waitForSelector("#top", { state: "hidden" });
  await page.click("#thoughts .fold");
}

async function blackAndTakeBack() {
  await newGame("black");
  await listed(1);
  await state("yours");
  assert.equal(await orientation(), "black");
  assert.equal((await sans()).length, 1);
  assert(await page.locator("#takeback").isDisabled());
  const moves = await sans();
  const reply = await api("move", { moves, player: { kind: "random" } });
  await makeMove(reply.uci);
  await listed(3);
  await state("yours");
  await picture("black");
  await page.click("#takeback");
  await unlisted(2);
  await state("yours");
  assert.deepEqual(await sans(), moves);
  await page.click("#flip");
  assert.equal(await orientation(), "white");
  await page.keyboard.press("f");
  assert.equal(await orientation(), "black");
}

async function promotions() {
  await newGame("white");
  const start = "8/P6k/8/8/8/8/7K/8 w - - 0 1";
  for (const [letter, role] of Object.entries(roles)) {
    await load(start);
    await state("yours");
    await clickMove("a7", "a8");
    await page.waitForSelector("#promotion", { state: "visible" });
    assert.equal(await page.locator("#promotion button").count(), 4);
    if (letter === "q") {
      await picture("promotion");
      await page.keyboard.press("Escape");
      await page.waitForSelector("#promotion", { state: "hidden" });
      assert.equal(await copied("#copy-fen"), start);
      await dragMove("a7", "a8");
    }
    await page.click(`#promotion [data-role=${role}]`);
    await listed(1);
    assert.match((await sans())[0], new RegExp(`^a8=${letter.toUpperCase()}`));
  }
  // As Black, at the other end of the board.
  await newGame("black");
  await load("7K/8/8/8/8/8/p6k/8 b - - 0 1");
  await state("yours");
  await clickMove("a2", "a1");
  await page.waitForSelector("#promotion [data-role]:focus"); // keys go to the dialog from here on
  await picture("promotion-black");
  await page.keyboard.press("ArrowDown"); // away from the queen
  await page.keyboard.press("Enter");
  await listed(1);
  assert.match((await sans())[0], /^a1=N/);
}

async function castling() {
  await newGame("white");
  for (const [to, san, move] of [["g1", "O-O", clickMove], ["h1", "O-O", clickMove], ["c1", "O-O-O", dragMove], ["a1", "O-O-O", dragMove]]) {
    await load("r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 1");
    await state("yours");
    await move("e1", to);
    await listed(1);
    assert.equal((await sans())[0], san);
  }
}

async function typingAndKeys() {
  await newGame("white");
  await state("yours");
  await page.keyboard.press("/");
  await page.keyboard.type("Nf3");
  await page.keyboard.press("Enter");
  await listed(2);
  await state("yours");
  const before = complaints.length;
  await page.fill("#move", "Ke5");
  await page.press("#move", "Enter");
  await page.waitForSelector("#toast.visible");
  assert.match(await text("#toast"), /Ke5/);
  assert.equal((await sans()).length, 2);
  complaints.length = before; // Chromium reports the refused move as an error

  await newGame("white");
  await state("yours");
  await page.focus("#board"); // the cursor begins on e2
  for (const key of ["Enter", "ArrowUp", "ArrowUp", "Enter"]) await page.keyboard.press(key);
  await listed(1);
  assert.equal((await sans())[0], "e4");
}

async function theMinimaxAndItsDepth() {
  await choose("minimax");
  await newGame("white");
  await state("yours");
  const slider = page.locator("#depth");
  await slider.focus();
  await page.keyboard.press("Home");
  const asked = page.waitForRequest((request) => request.url().endsWith("/api/move"));
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator(".side .note").first().innerText(), "depth 2");
  await makeMove("d2d4");
  assert.deepEqual(JSON.parse((await asked).postData()).player, { kind: "minimax", depth: 2 });
  await listed(2);
  await picture("minimax");
}

async function watching() {
  await choose("watch");
  await newGame("white");
  await listed(4);
  assert.equal(await page.inputValue("#move"), "", "a new game forgets what was typed");
  const widths = await page.locator(".actions").first().evaluate((row) => [row.scrollWidth, row.clientWidth]);
  assert(widths[0] <= widths[1], `the buttons are wider than the panel: ${widths}`);
  await picture("watch");
  await page.click("#pause");
  await state("paused");
  const count = (await sans()).length;
  await page.waitForTimeout(1500);
  assert.equal((await sans()).length, count);
  await page.click("#pause");
  await listed(count + 2);
  await page.click("#takeback"); // pauses
  await state("paused");
  await choose("net");
}

async function everySize() {
  for (const [width, height] of [[360, 640], [390, 844], [768, 1024], [1024, 700], [1920, 1080]]) {
    await page.setViewportSize({ width, height });
    await page.waitForTimeout(150);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert(overflow <= 0, `${width}x${height}: ${overflow} pixels too wide`);
    await picture(`size-${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 860 });
  await page.click("#theme");
  await picture("other-theme");
}

try {
  for (const test of [aWholeGameAgainstTheNet, theNetsEye, blackAndTakeBack, promotions, castling, typingAndKeys,
                      theMinimaxAndItsDepth, watching, everySize]) {
    console.log(test.name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));
    try {
      await test();
    } catch (error) {
      await picture("failure");
      throw error;
    }
    assert.deepEqual(complaints, [], "the browser's console is quiet");
  }
  assert.deepEqual(foreign, [], "nothing is asked of another machine");
  await stop(server);
} finally {
  server.child.kill("SIGKILL");
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log("all good");
