#!/usr/bin/env python3
"""Plays the conversations of tests/data/uci with the engine.

    uci.test.py TAHL [FILE...]

A conversation is a script, one step a line; `#` starts a comment:
    send TEXT             TEXT and a newline (with \\t and \\r as in C; TEXT*N repeats it N times)
    expect MS REGEX       within MS a line that REGEX matches in full; later steps look behind it
    silence MS REGEX      for MS no such line
    total N REGEX         so far, N lines that REGEX matches in full
    legal POSITION        the last bestmove is legal in POSITION (`startpos` or a FEN, then `moves ...`)
    close                 end of input
    exit MS               the engine ends within MS with status 0
Where they are present, the cases of ../shared/cases/uci are played too, by the tool that comes with them.
"""
import glob
import importlib.util
import os
import re
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Failure(Exception):
    pass


class Engine:
    def __init__(self, tahl):
        self.tahl = tahl
        self.process = subprocess.Popen([tahl], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = []
        self.next = 0
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.decode("latin-1").rstrip("\n"))
                self.changed.notify_all()

    def send(self, text):
        if repeated := re.fullmatch(r"(.*)\*(\d+)", text):
            text = repeated.group(1) * int(repeated.group(2))
        text = text.replace("\\t", "\t").replace("\\r", "\r")
        try:
            self.process.stdin.write(text.encode("latin-1") + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Failure(f"the engine is gone (status {self.process.wait(5)})")

    def find(self, ms, regex):
        """Whether a line matches within ms; moves behind it."""
        end = time.monotonic() + ms / 1000
        with self.changed:
            while True:
                while self.next < len(self.lines):
                    self.next += 1
                    if re.fullmatch(regex, self.lines[self.next - 1]):
                        return True
                left = end - time.monotonic()
                if left <= 0 or not self.changed.wait(left):
                    if time.monotonic() >= end and self.next == len(self.lines):
                        return False

    def total(self, regex):
        with self.changed:
            return sum(1 for line in self.lines if re.fullmatch(regex, line))

    def legal(self, position):
        words = position.split()
        at = words.index("moves") if "moves" in words else len(words)
        command = [self.tahl, "perft", "--depth", "1", "--divide"]
        if words[0] != "startpos":
            command[2:2] = words[:at]
        if words[at + 1 :]:
            command += ["--moves", *words[at + 1 :]]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        moves = re.findall(r"^(\S+): 1$", out, re.M)
        with self.changed:
            best = [line.split()[1] for line in self.lines if line.startswith("bestmove ")]
        if not best or best[-1] not in moves:
            raise Failure(f"{best[-1:]} is not legal")

    def exit(self, ms):
        try:
            status = self.process.wait(ms / 1000)
        except subprocess.TimeoutExpired:
            raise Failure(f"does not end in {ms} ms")
        if status != 0:
            raise Failure(f"exit status {status}")
        self.reader.join()  # all it said is read

    def step(self, line):
        word, _, rest = line.partition(" ")
        if word == "send":
            self.send(rest)
        elif word == "expect":
            ms, regex = rest.split(" ", 1)
            if not self.find(int(ms), regex):
                raise Failure(f"not seen; last line: {self.lines[-1:]}")
        elif word == "silence":
            ms, regex = rest.split(" ", 1)
            if self.find(int(ms), regex):
                raise Failure(f"seen: {self.lines[self.next - 1]}")
        elif word == "total":
            number, regex = rest.split(" ", 1)
            if self.total(regex) != int(number):
                raise Failure(f"there are {self.total(regex)}")
        elif word == "legal":
            self.legal(rest)
        elif word == "close":
            self.process.stdin.close()
        elif word == "exit":
            self.exit(int(rest))
        else:
            raise Failure("no such step")


def play(tahl, path):
    """What went wrong, or an empty string."""
    engine = Engine(tahl)
    try:
        with open(path) as file:
            for number, line in enumerate(file, 1):
                line = line.rstrip("\n")
                if not line or line.startswith("#"):
                    continue
                try:
                    engine.step(line)
                except Failure as failure:
                    return f"{path}:{number}: {line[:80]}: {failure}"
        return ""
    finally:
        engine.process.kill()
        engine.process.wait()


def play_shared(tahl):
    """The exit status of the cases' own tool, 0 where it cannot be run."""
    cases = os.path.join(ROOT, "..", "shared", "cases")
    tool = os.path.join(cases, "tools", "run_uci.py")
    files = sorted(glob.glob(os.path.join(cases, "uci", "*.txt")))
    if not os.path.exists(tool) or not files:
        print("../shared/cases/uci: not there, not played")
        return 0
    if not importlib.util.find_spec("chess"):
        print("../shared/cases/uci: not played, Python's chess module is missing")
        return 0
    return subprocess.run([sys.executable, tool, tahl, *files]).returncode


def main(tahl, files):
    bad = 0
    own = files or sorted(glob.glob(os.path.join(ROOT, "tests", "data", "uci", "*.txt")))
    if not own:
        sys.exit("uci.test.py: no conversations")
    for path in own:
        problem = play(tahl, path)
        bad += bool(problem)
        print(f"{os.path.basename(path)[:-4]:32} {problem or 'ok'}", flush=True)
    print(f"{len(own) - bad} of {len(own)} conversations as written", flush=True)
    if not files and play_shared(tahl):
        return 1
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: uci.test.py TAHL [FILE...]")
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
