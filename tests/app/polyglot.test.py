#!/usr/bin/env python3
"""A whole game through UCI by a client from elsewhere: Debian's polyglot in XBoard mode.

    polyglot.test.py TAHL

Two polyglots each run a TAHL (the net's tree search against the minimax), and this script hands the moves over as
XBoard would. polyglot speaks UCI to the engine, refuses illegal moves and says how the game ended; that ending
is then checked on the board. The white side ponders.
"""
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading

PATIENCE = 60  # seconds for any one answer
LONGEST_GAME = 600  # plies; the fifty-move rule ends most games far earlier


def fail(message):
    print(f"polyglot.test.py: {message}")
    sys.exit(1)


class XBoardEngine:
    def __init__(self, polyglot, tahl, folder, name, options):
        ini = os.path.join(folder, name + ".ini")
        self.log = os.path.join(folder, name + ".log")
        with open(ini, "w") as file:
            file.write(
                "[PolyGlot]\n"
                f"EngineCommand = {tahl}\nEngineDir = {folder}\n"
                f"Log = true\nLogFile = {self.log}\n"
                "Book = false\nResign = false\nHandleDraws = false\n[Engine]\n"
            )
            for option, value in options.items():
                file.write(f"{option} = {value}\n")
        self.name = name
        self.process = subprocess.Popen(
            [polyglot, ini], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.send("xboard")
        self.send("protover 2")
        self.wait_for(r"feature .*done=1")

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def send(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def wait_for(self, *patterns):
        """The match of the first line that one of the patterns matches."""
        while True:
            try:
                line = self.lines.get(timeout=PATIENCE)
            except queue.Empty:
                fail(f"{self.name}: nothing like {patterns} in {PATIENCE} s\n{self.tail()}")
            if line is None:
                fail(f"{self.name}: polyglot ended\n{self.tail()}")
            if re.match(r"(Illegal move|Error|tellusererror)", line):
                fail(f"{self.name}: {line}\n{self.tail()}")
            for pattern in patterns:
                if match := re.match(pattern, line):
                    return match

    def tail(self):
        with open(self.log) as file:
            return "".join(file.readlines()[-20:])

    def quit(self):
        self.send("quit")
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            fail(f"{self.name}: polyglot does not quit\n{self.tail()}")
        if "Child exited with status 0" not in self.tail():
            fail(f"{self.name}: the engine did not leave in good order\n{self.tail()}")


RESULT = r"(1-0|0-1|1/2-1/2)\s*\{(.*)\}"


def play(white, black):
    """The game's moves, its result and polyglot's reason."""
    moves = []
    for engine in (white, black):
        engine.send("new")
    white.send("hard")
    black.send("easy")
    white.send("go")
    mover, other = white, black
    while len(moves) < LONGEST_GAME:
        match = mover.wait_for(r"move (\S+)", RESULT)
        if not match.group(0).startswith("move"):
            return moves, match.group(1), match.group(2)
        moves.append(match.group(1))
        other.send("usermove " + match.group(1))
        mover, other = other, mover
    fail(f"no end after {LONGEST_GAME} plies: {' '.join(moves)}")


def positions(tahl, moves):
    """(FEN, is check) before and after every move, by the engine's own board."""
    script = ""
    for n in range(len(moves) + 1):
        script += "position startpos moves " + " ".join(moves[:n]) + "\nd\n"
    out = subprocess.run([tahl], input=script, capture_output=True, text=True, timeout=PATIENCE).stdout
    if "error" in out:
        fail("the game has a move that the board refuses: " + " ".join(moves))
    fens = re.findall(r"^Fen: (.*)$", out, re.M)
    checks = [bool(c.strip()) for c in re.findall(r"^Checkers:(.*)$", out, re.M)]
    return list(zip(fens, checks))


def problem_with_ending(tahl, moves, result):
    """Why the game is not over with that result, or an empty string."""
    history = positions(tahl, moves)
    fen, is_check = history[-1]
    board, side, castling, en_passant, clock, _ = fen.split()
    counted = subprocess.run(
        [tahl, "perft", fen, "--depth", "1", "--json"], capture_output=True, text=True, timeout=PATIENCE
    ).stdout
    is_stuck = counted.strip() == '{"nodes":0}'
    if result != "1/2-1/2":
        winner = "b" if side == "w" else "w"
        if not is_stuck or not is_check:
            return "it is no checkmate"
        return "" if (winner == "w") == (result == "1-0") else "the other side won"
    seen = sum(1 for f, _ in history if f.split()[:4] == [board, side, castling, en_passant])
    bare = all(p in "Kk" for p in board if p.isalpha()) or len(re.findall(r"[A-Za-z]", board)) <= 4
    if is_stuck and not is_check or seen >= 3 or int(clock) >= 100 or bare:
        return ""
    return f"it is no draw (seen {seen} times, clock {clock})"


def main(tahl):
    path = os.environ.get("PATH", "") + ":/usr/games"
    polyglot = shutil.which("polyglot", path=path)
    if not polyglot:
        if os.environ.get("TAHL_ALLOW_MISSING_TOOLS"):
            print("polyglot.test.py: not run, the package polyglot is missing")
            return
        fail("the package polyglot is missing (apt-get install polyglot)")
    with tempfile.TemporaryDirectory() as folder:
        white = XBoardEngine(polyglot, tahl, folder, "mcts", {"Player": "mcts", "MaxNodes": 20})
        black = XBoardEngine(polyglot, tahl, folder, "minimax", {"Player": "minimax", "MaxDepth": 1})
        moves, result, reason = play(white, black)
        if problem := problem_with_ending(tahl, moves, result):
            fail(f"polyglot says {result} ({reason}), but {problem}: {' '.join(moves)}")
        for engine in (white, black):
            engine.quit()
    print(f"{len(moves)} plies, {result} ({reason})")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: polyglot.test.py TAHL")
    main(os.path.abspath(sys.argv[1]))
