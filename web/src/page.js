// The game on the page: its moves, who plays them, and what is shown of it.
import { ApiError, getConfig, post } from "./api.js";
import { Board } from "./board.js";
import "./page.css";

const $ = (id) => document.getElementById(id);
const other = (color) => (color === "white" ? "black" : "white");
const named = (color) => (color === "white" ? "White" : "Black");
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const nodeSteps = [1, 10, 25, 50, 100, 150, 200, 300, 400, 600, 800, 1000, 1200, 1600, 2000, 3000, 4000, 6000, 8000, 12000, 20000];

const config = await getConfig().catch((error) => {
  document.body.textContent = error.message;
  throw error;
});

// ---- state ----

const game = {
  id: crypto.randomUUID(),
  start: null, // FEN; null is the usual start
  moves: [], // UCI
  mode: config.net ? "net" : "minimax",
  color: config.color, // yours; the net's in watch mode
  kind: config.player, // how the net chooses: policy or mcts
  nodes: config.nodes,
  temperature: config.temperature,
  depth: config.depth,
  flipped: false,
  folded: false,
};
let shown = 0; // the ply on the board
let positions = []; // what /api/position said of each ply that was asked for
let thinking = false;
let paused = false;
let problem = ""; // why no move can be had, in words
let epoch = 0; // counts changes of the game: what was asked before the last one no longer matters
let search = new AbortController();

function remember() {
  localStorage.setItem("tahl", JSON.stringify({ ...game, launch: config.launch, theme: document.documentElement.dataset.theme }));
}

// A reload goes on with the game; another start of `tahl play` begins with what its command line says.
function recall() {
  let saved = {};
  try {
    saved = JSON.parse(localStorage.getItem("tahl") ?? "{}");
  } catch {}
  if (saved.theme) document.documentElement.dataset.theme = saved.theme;
  game.folded = saved.folded === true;
  if (saved.launch !== config.launch) return;
  for (const key of Object.keys(game)) if (key in saved && key !== "id") game[key] = saved[key];
  if (!config.net) game.mode = "minimax";
  paused = game.mode === "watch";
}

const names = { net: "Tahl", minimax: "Minimax", you: "You" };
function seat(color) {
  if (game.mode === "watch") return color === game.color ? "net" : "minimax";
  return color === game.color ? "you" : game.mode;
}
const playerOf = (who) =>
  who === "minimax"
    ? { kind: "minimax", depth: game.depth }
    : { kind: game.kind, nodes: game.nodes, temperature: game.temperature };
function strengthOf(who) {
  if (who === "minimax") return `depth ${game.depth}`;
  if (who === "net") return game.kind === "mcts" ? `${game.nodes} nodes` : "at sight";
  return "";
}
const bottom = () => (game.flipped ? other(game.color) : game.color);

// ---- the game ----

async function positionAt(ply) {
  positions[ply] ??= await post("position", { start: game.start, moves: game.moves.slice(0, ply) });
  return positions[ply];
}

// After every change of the game: shows it, and has the player whose turn it is move.
async function settle() {
  const now = ++epoch;
  search.abort();
  search = new AbortController();
  thinking = false;
  problem = "";
  document.body.dataset.state = "settling"; // what is on the board may no longer be the game
  remember();
  try {
    const position = await positionAt(game.moves.length);
    if (now !== epoch) return;
    const who = seat(position.turn);
    const moves = !position.outcome && who !== "you" && !paused;
    thinking = moves;
    render();
    if (!moves) return;
    const begun = performance.now();
    const choice = await post(
      "move",
      { start: game.start, moves: game.moves, player: playerOf(who), game: game.id },
      search.signal,
    );
    // Time to see the move before, however quick the answer.
    await sleep((game.mode === "watch" ? 650 : 260) - (performance.now() - begun));
    if (now === epoch) play(choice.uci);
  } catch (error) {
    if (now !== epoch || error.name === "AbortError") return;
    if (!(error instanceof ApiError)) throw error;
    thinking = false;
    problem = error.message;
    render();
  }
}

function play(move) {
  const follow = shown === game.moves.length;
  game.moves.push(move);
  if (follow) shown = game.moves.length;
  settle();
}

function begin(start = null, moves = []) {
  Object.assign(game, { id: crypto.randomUUID(), start, moves, flipped: false });
  positions = [];
  shown = moves.length;
  paused = false;
  $("move").value = "";
  settle();
}

function cutTo(ply) {
  game.moves.length = ply;
  positions.length = ply + 1;
  shown = ply;
  settle();
}

// How many moves remain if you take back: to your last turn, or one move when watching.
function takebackTo() {
  if (game.mode === "watch") return game.moves.length - 1;
  const first = positions[0]?.turn;
  for (let ply = game.moves.length - 1; ply >= 0; --ply) {
    if ((ply % 2 === 0 ? first : other(first)) === game.color) return ply;
  }
  return -1;
}

function takeBack() {
  const ply = takebackTo();
  if (ply < 0) return;
  if (game.mode === "watch") paused = true;
  cutTo(ply);
}

function walk(ply) {
  shown = Math.min(game.moves.length, Math.max(0, ply));
  render();
}

// ---- the view ----

const board = new Board($("board"), $("promotion"), (uci) => play(uci));

function ending({ result, ending }, turn) {
  const text = ending[0].toUpperCase() + ending.slice(1);
  if (result === "1/2-1/2") return `${text}. Draw.`;
  const winner = result === "1-0" ? "white" : "black";
  const who = game.mode === "watch" ? names[seat(winner)] : seat(winner) === "you" ? "You" : names[seat(winner)];
  return `${text}. ${who === "You" ? "You win." : `${who} wins.`}`;
}

function statusText(latest) {
  if (latest.outcome) return `${ending(latest.outcome)} ${latest.outcome.result.replace("1/2-1/2", "½–½").replace("-", "–")}`;
  if (problem) return problem;
  if (shown < game.moves.length) return `Looking back at move ${Math.ceil(shown / 2) || "0"}`;
  if (thinking) return game.mode === "watch" ? `${named(latest.turn)} to move` : `${names[seat(latest.turn)]} is thinking`;
  if (paused) return "Paused";
  return `Your move${latest.check ? ": you are in check" : ""}`;
}

async function render() {
  const now = epoch;
  const ply = shown;
  let position, latest;
  try {
    latest = await positionAt(game.moves.length);
    await positionAt(0);
    position = await positionAt(ply);
  } catch (error) {
    if (now === epoch && error instanceof ApiError) $("status").textContent = error.message;
    return;
  }
  if (now !== epoch || ply !== shown) return;

  const atLatest = shown === game.moves.length;
  const yours = atLatest && !latest.outcome && seat(latest.turn) === "you";
  document.body.dataset.state = latest.outcome ? "over" : !atLatest ? "looking" : yours ? "yours" : thinking ? "thinking" : "paused";
  board.show(position, bottom(), yours ? latest.turn : null);
  board.arrows([]);

  for (const [id, color] of [["far", other(bottom())], ["near", bottom()]]) {
    const strip = $(id);
    const who = seat(color);
    strip.dataset.color = color;
    strip.querySelector("b").textContent = names[who];
    strip.querySelector(".note").textContent = strengthOf(who);
    strip.classList.toggle("turn", !latest.outcome && latest.turn === color);
    strip.querySelector(".dots").hidden = !(thinking && latest.turn === color);
  }
  $("status").textContent = statusText(latest);
  renderMoves(latest);
  renderSettings();
  $("takeback").disabled = takebackTo() < 0;
  $("first").disabled = $("back").disabled = shown === 0;
  $("forward").disabled = $("last").disabled = atLatest;
  $("pause").hidden = game.mode !== "watch";
  $("pause").disabled = !!latest.outcome;
  $("pause").textContent = paused ? "Go on" : "Pause";
  $("move").disabled = !yours;
  think(position);
}

let listed = ""; // the moves in the list, so that it is rebuilt only when they change
function renderMoves(latest) {
  const list = $("moves");
  const key = latest.start_turn + latest.start_move + latest.san.join(" ");
  if (key !== listed) {
    listed = key;
    const offset = latest.start_turn === "black" ? 1 : 0;
    const rows = [];
    latest.san.forEach((san, i) => {
      const half = i + offset;
      if (half % 2 === 0 || i === 0) {
        const row = document.createElement("li");
        const number = document.createElement("span");
        number.className = "number";
        number.textContent = `${latest.start_move + (half >> 1)}.`;
        row.append(number);
        if (half % 2 === 1) {
          const gap = document.createElement("span");
          gap.textContent = "…";
          gap.className = "gap";
          row.append(gap);
        }
        rows.push(row);
      }
      const button = document.createElement("button");
      button.textContent = san;
      button.dataset.ply = i + 1;
      rows.at(-1).append(button);
    });
    list.replaceChildren(...rows);
  }
  for (const button of list.querySelectorAll("button")) {
    const current = +button.dataset.ply === shown;
    if (current === button.hasAttribute("aria-current")) continue;
    button.toggleAttribute("aria-current", current);
    if (current) list.scrollTop = button.offsetTop - list.clientHeight / 2;
  }
  if (shown === 0) list.scrollTop = 0;
}

function renderSettings() {
  const uses = (what) =>
    what === "mcts" ? game.mode !== "minimax" && game.kind === "mcts" : game.mode === "watch" || game.mode === what;
  for (const row of document.querySelectorAll(".setting")) row.hidden = !uses(row.dataset.for);
  const check = (group, attribute, value) => {
    for (const button of $(group).children) {
      const on = button.dataset[attribute] === value;
      button.setAttribute("aria-checked", on);
      button.tabIndex = on ? 0 : -1;
    }
  };
  check("modes", "mode", game.mode);
  check("kinds", "kind", game.kind);
  for (const button of $("modes").children) button.disabled = !config.net && button.dataset.mode !== "minimax";
  const set = (id, value, text) => {
    $(id).value = value;
    $(id).setAttribute("aria-valuetext", text);
    $(id).nextElementSibling.textContent = text;
  };
  const step = nodeSteps.findIndex((n) => n >= game.nodes);
  set("nodes", step < 0 ? nodeSteps.length - 1 : step, String(game.nodes));
  set("temperature", game.temperature, game.temperature.toFixed(1));
  set("depth", game.depth, String(game.depth));
  $("thoughts").hidden = !config.net;
  $("thoughts").classList.toggle("folded", game.folded);
  $("thoughts").querySelector(".fold").setAttribute("aria-expanded", !game.folded);
}

// What the net thinks of the position on the board, whoever plays.
let looking = new AbortController();
async function think(position) {
  if (!config.net) return;
  looking.abort();
  looking = new AbortController();
  $("gauge").hidden = game.folded;
  if (game.folded) return;
  try {
    position.thoughts ??= await post("evaluate", { start: game.start, moves: position.uci }, looking.signal);
  } catch (error) {
    if (error instanceof ApiError || error.name === "AbortError") return;
    throw error;
  }
  if (positions[shown] !== position) return;
  const { value_for_white: value, top } = position.thoughts;
  const white = Math.round(50 * (value + 1));
  $("value").textContent = `White ${white} %`;
  $("gauge").setAttribute("aria-label", `The net expects White to score ${white} %`);
  $("gauge").style.setProperty("--white", `${white}%`);
  $("gauge").classList.toggle("flipped", bottom() === "black");
  const most = top[0]?.p || 1;
  $("top").replaceChildren(
    ...top.map(({ uci, san, p }) => {
      const row = document.createElement("li");
      const button = document.createElement("button");
      button.dataset.uci = uci;
      const bar = document.createElement("i");
      bar.style.width = `${(100 * p) / most}%`;
      const name = document.createElement("b");
      name.textContent = san;
      const share = document.createElement("span");
      share.textContent = `${(100 * p).toFixed(1)} %`;
      button.append(bar, name, share);
      button.title = "Show, or play, this move";
      button.onmouseenter = button.onfocus = () => board.arrows([uci]);
      button.onmouseleave = button.onblur = () => board.arrows([]);
      button.onclick = () => document.body.dataset.state === "yours" && play(uci);
      row.append(button);
      return row;
    }),
  );
}

let toastTimer;
function toast(text) {
  $("toast").textContent = text;
  $("toast").classList.add("visible");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => $("toast").classList.remove("visible"), 2200);
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without the clipboard's permission: the old way.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(`${what} copied`);
}

// ---- controls ----

function choose(group, attribute, change) {
  const buttons = [...$(group).children];
  for (const button of buttons) button.onclick = () => change(button.dataset[attribute]);
  $(group).onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    let at = buttons.indexOf(document.activeElement);
    do at = (at + step + buttons.length) % buttons.length;
    while (buttons[at].disabled);
    buttons[at].focus();
    buttons[at].click();
  };
}
choose("modes", "mode", (mode) => {
  if (mode === game.mode) return;
  game.mode = mode;
  paused = false;
  settle();
});
choose("kinds", "kind", (kind) => {
  game.kind = kind;
  settle();
});
for (const id of ["nodes", "temperature", "depth"]) {
  const value = () => (id === "nodes" ? nodeSteps[+$(id).value] : +$(id).value);
  $(id).oninput = () => {
    game[id] = value();
    renderSettings();
  };
  $(id).onchange = () => settle(); // a search under way starts again with the new strength
}

$("moves").onclick = (event) => event.target.dataset.ply && walk(+event.target.dataset.ply);
$("first").onclick = () => walk(0);
$("back").onclick = () => walk(shown - 1);
$("forward").onclick = () => walk(shown + 1);
$("last").onclick = () => walk(game.moves.length);
$("takeback").onclick = takeBack;
$("flip").onclick = () => {
  game.flipped = !game.flipped;
  remember();
  render();
};
$("pause").onclick = () => {
  paused = !paused;
  settle();
};
$("thoughts").querySelector(".fold").onclick = () => {
  game.folded = !game.folded;
  remember();
  render();
};
$("theme").onclick = () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  remember();
};

$("typed").onsubmit = async (event) => {
  event.preventDefault();
  const input = $("move");
  const text = input.value.trim();
  if (!text || document.body.dataset.state !== "yours") return;
  const now = epoch;
  try {
    const { uci } = await post("position", { start: game.start, moves: [...game.moves, text] });
    if (now !== epoch) return;
    input.value = "";
    play(uci.at(-1));
  } catch (error) {
    toast(error.message.replace(/^moves: \d+: /, ""));
    input.select();
  }
};

$("new").onclick = () => {
  $("new-question").textContent = game.mode === "watch" ? "The net plays" : "You play";
  $("new-dialog").returnValue = "";
  $("new-dialog").showModal();
};
$("new-dialog").onclose = () => {
  const choice = $("new-dialog").returnValue;
  if (!choice) return;
  game.color = choice === "either" ? (Math.random() < 0.5 ? "white" : "black") : choice;
  begin();
};

$("load").onclick = () => {
  $("load-error").textContent = "";
  $("load-dialog").showModal();
  $("load-text").select();
};
$("load-dialog").querySelector("form").onsubmit = async (event) => {
  if (event.submitter?.value !== "load") return;
  event.preventDefault();
  try {
    const { start, moves } = await post("load", { text: $("load-text").value.trim() });
    $("load-dialog").close();
    begin(start, moves);
    // What was loaded is looked at first: nobody moves by himself in it until you do.
    if (game.mode === "watch") paused = true;
  } catch (error) {
    $("load-error").textContent = error.message;
  }
};

const nameInPgn = (color) => {
  const who = seat(color);
  if (who === "net") return `Tahl (${config.net}, ${strengthOf(who)})`;
  return who === "minimax" ? `Tahl minimax (${strengthOf(who)})` : "You";
};
$("copy-pgn").onclick = async () => {
  const { pgn } = await post("pgn", {
    start: game.start,
    moves: game.moves,
    white: nameInPgn("white"),
    black: nameInPgn("black"),
  });
  copy(pgn, "PGN");
};
$("copy-fen").onclick = async () => copy((await positionAt(shown)).fen, "FEN");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const action = {
    ArrowLeft: () => walk(shown - 1),
    ArrowRight: () => walk(shown + 1),
    Home: () => walk(0),
    End: () => walk(game.moves.length),
    f: () => $("flip").click(),
    u: () => $("takeback").click(),
    n: () => $("new").click(),
    "/": () => $("move").focus(),
  }[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

// ---- begin ----

recall();
$("net-name").textContent = config.net ?? "no net in this program";
$("net-name").title = config.net ? `Net: ${config.net}. Version ${config.version}` : config.no_net;
$("depth").max = config.max_depth;
shown = game.moves.length;
try {
  await positionAt(game.moves.length);
} catch {
  Object.assign(game, { start: null, moves: [] }); // a remembered game that this version cannot read
  positions = [];
  shown = 0;
}
settle();
