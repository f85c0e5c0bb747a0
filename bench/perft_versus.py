#!/usr/bin/env python3
"""Perft programs against each other on the six standard positions, one thread, in turns.

  bench/perft_versus.py 'tahl=build/release/bin/tahl perft {fen} --depth {depth}' 'other=./other {fen} {depth}'

Each COMMAND prints the leaves and the seconds they took in its last line: as tahl does, "... N nodes, S s, ...", or as two
numbers. In every round each command runs once on each position, on one core; who comes first turns with the rounds.
Another process on that core shows as a low share of it (CPU time / wall time): such runs are repeated. All must
report the published counts. The ratio is the median over the rounds of the ratio of geometric means to the first.
"""
import argparse
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
import time

SIX = [  # name, FEN, published counts by depth (chessprogramming.org/Perft_Results)
    ("initial", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
     {4: 197281, 5: 4865609, 6: 119060324, 7: 3195901860}),
    ("kiwipete", "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
     {3: 97862, 4: 4085603, 5: 193690690, 6: 8031647685}),
    ("3", "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", {5: 674624, 6: 11030083, 7: 178633661}),
    ("4", "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
     {4: 422333, 5: 15833292, 6: 706045033}),
    ("5", "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", {4: 2103487, 5: 89941194}),
    ("6", "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
     {4: 3894594, 5: 164075551, 6: 6923051137}),
]


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def run(command, fen, depth, core):
    """Leaves, seconds, and the share of the core that the process had."""
    words = [w.replace("{fen}", fen).replace("{depth}", str(depth)) for w in shlex.split(command)]
    start = time.monotonic()
    process = subprocess.Popen(["taskset", "-c", str(core), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               text=True)
    out = process.stdout.read().strip()
    _, status, usage = os.wait4(process.pid, 0)
    share = (usage.ru_utime + usage.ru_stime) / (time.monotonic() - start)
    process.returncode = os.waitstatus_to_exitcode(status)
    last = out.splitlines()[-1] if out else ""
    found = re.search(r"(\d+) nodes, ([\d.]+) s\b", last) or re.fullmatch(r"(\d+) ([\d.e-]+)", last)
    if process.returncode or not found:
        sys.exit(f"{shlex.join(words)}: exit status {process.returncode}, last line {last!r}")
    return int(found[1]), max(float(found[2]), 1e-9), share


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--depths", default="6,5,7,5,5,5", help="six numbers; 5,4,6,5,4,4 where leaves are made")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--share", type=float, default=0.97, help="repeat runs that had less of the core")
    parser.add_argument("commands", nargs="+", metavar="NAME=COMMAND")
    options = parser.parse_args()
    if not re.fullmatch(r"\d+(,\d+){5}", options.depths) or not all("=" in c for c in options.commands):
        parser.error("--depths takes six numbers, and a command is NAME=COMMAND")
    depths = [int(d) for d in options.depths.split(",")]
    for (label, _, counts), depth in zip(SIX, depths):
        if depth not in counts:
            parser.error(f"no published count of position {label} at depth {depth} here")
    commands = dict(c.split("=", 1) for c in options.commands)
    if len(commands) != len(options.commands):
        parser.error("a NAME is given twice")

    speed = {name: [] for name in commands}  # [round][position], million leaves a second
    shares = []
    for round_ in range(options.rounds):
        order = list(commands)
        order = order[round_ % len(order):] + order[:round_ % len(order)]
        this_round = {name: [] for name in commands}
        for (label, fen, counts), depth in zip(SIX, depths):
            for name in order:
                best = run(commands[name], fen, depth, options.core)
                for _ in range(3):
                    if best[2] >= options.share:
                        break
                    best = max(best, run(commands[name], fen, depth, options.core), key=lambda r: r[2])
                nodes, seconds, share = best
                if nodes != counts[depth]:
                    sys.exit(f"position {label}, depth {depth}: {name} counts {nodes}, published are {counts[depth]}")
                shares.append(share)
                this_round[name].append(nodes / seconds / 1e6)
        for name in commands:
            speed[name].append(this_round[name])
        print(f"round {round_ + 1} of {options.rounds}", file=sys.stderr)

    first = next(iter(commands))
    width = max(map(len, commands))
    print(f"million leaves/s, medians of {options.rounds} rounds; depths {options.depths}; "
          f"share of the core: median {statistics.median(shares):.2f}, least {min(shares):.2f}")
    print(" " * width + "".join(f"{label:>10}" for label, _, _ in SIX) + f"{'mean':>9}{'ratio':>8}  rounds")
    for name in commands:
        medians = [statistics.median(r[i] for r in speed[name]) for i in range(6)]
        ratios = sorted(geometric_mean(a) / geometric_mean(b) for a, b in zip(speed[name], speed[first]))
        print(f"{name:{width}}" + "".join(f"{m:10.1f}" for m in medians) +
              f"{geometric_mean(medians):9.1f}{statistics.median(ratios):8.3f}  {ratios[0]:.3f} to {ratios[-1]:.3f}")


if __name__ == "__main__":
    main()
