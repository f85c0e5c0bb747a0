#!/usr/bin/env python3
"""Evaluations a second of one net here and in lc0, in turns, each on two threads.

  bench/nn_versus_lc0.py build/release/bin/tahl path/to/lc0 maia-1900.pb.gz [rounds]

lc0 runs its own backendbench with the backend named by LC0_BACKEND (onednn if not set), OpenMP on two
threads and the batch size made known to it, which is what suits it best.
"""

import json
import os
import re
import statistics
import subprocess
import sys

BATCHES = (1, 64)
# The way of computing, by a part of its name in `tahl bench nn`.
ONLY = os.environ.get("TAHL_WAY", "bf16 winograd")


def run(command, **variables):
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, **variables})
    if done.returncode != 0:
        sys.exit(f"{command[0]}: exit {done.returncode}: {(done.stderr.strip() or done.stdout.strip())[-300:]}")
    return done.stdout


def ours(tahl, net, batch):
    out = run([tahl, "bench", "nn", net, "--threads", "2", "--batch", str(batch), "--rounds", "15", "--only", ONLY, "--json"])
    row = json.loads(out)["rows"][0]
    return 1000 / row["milliseconds"]


def theirs(lc0, net, batch):
    backend = os.environ.get("LC0_BACKEND", "onednn")
    options = [f"--backend-opts=batch={batch},steps=1"] if backend == "onednn" else []
    out = run([lc0, "backendbench", f"--weights={net}", f"--backend={backend}", *options,
               f"--batches={max(40, 1500 // batch)}", f"--start-batch-size={batch}", f"--max-batch-size={batch}"],
              OMP_NUM_THREADS="2")
    # size, mean nps, mean ms, sdev, cv, max nps, median nps, ...
    row = re.search(rf"^\s*{batch},(.*)$", out, re.M)
    return float(row[1].split(",")[5])


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    tahl, lc0, net = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) == 5 else 7
    for batch in BATCHES:
        pairs = [(ours(tahl, net, batch), theirs(lc0, net, batch)) for _ in range(rounds)]
        ratios = sorted(a / b for a, b in pairs)
        print(f"batch {batch}: here {statistics.median(a for a, _ in pairs):.0f}/s, "
              f"lc0 {statistics.median(b for _, b in pairs):.0f}/s, ratio {statistics.median(ratios):.2f} "
              f"({ratios[0]:.2f} to {ratios[-1]:.2f}), {rounds} rounds in turns", flush=True)


if __name__ == "__main__":
    main()
