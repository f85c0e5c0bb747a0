#!/usr/bin/python3
"""Training throughput of tahl-train against the same loop in Python with Debian's python3-torch.

Same network (64x6 with squeeze-and-excitation and the twelve-plane head unless told otherwise), batch, threads, bf16
autocast, channels last, loss, clipping and AdamW. tahl-train reads real games, replays them and makes its batches while it
trains; the Python loop is given ready batches of the same shapes (30 legal moves of up to four terms, padded to 60), so the
comparison leaves Python's data loading out and can only flatter it. Rounds alternate; the ratio is of medians.

  bench/train_compare.py --tahl-train build/train/bin/tahl-train --data DIR [--rounds 5] [--steps 25] [--json]
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

PYTHON_LOOP = "--python-loop"


def python_loop(channels, blocks, batch, steps, threads):
    import ctypes

    import torch
    from torch import nn
    from torch.nn import functional as F

    libc = ctypes.CDLL(None)  # the same allocator settings as tahl-train's
    libc.mallopt(-3, 32 << 20)
    libc.mallopt(-1, 2000 << 20)
    torch.set_num_threads(threads)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.se1 = nn.Linear(channels, channels // 4)
            self.se2 = nn.Linear(channels // 4, 2 * channels)

        def forward(self, x):
            y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
            s = self.se2(torch.relu(self.se1(y.mean((2, 3)))))[:, :, None, None]
            scale, bias = s.chunk(2, 1)
            return torch.relu(torch.sigmoid(scale) * y + bias + x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(19, channels, 3, padding=1, bias=False)
            self.stem_bn = nn.BatchNorm2d(channels)
            self.tower = nn.Sequential(*[Block() for _ in range(blocks)])
            self.policy1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.policy_bn = nn.BatchNorm2d(channels)
            self.policy2 = nn.Conv2d(channels, 12, 1)
            self.value1 = nn.Conv2d(channels, 16, 1, bias=False)
            self.value_bn = nn.BatchNorm2d(16)
            self.value2 = nn.Linear(16 * 64, 128)
            self.value3 = nn.Linear(128, 1)

        def forward(self, x):
            x = self.tower(torch.relu(self.stem_bn(self.stem(x))))
            p = self.policy2(torch.relu(self.policy_bn(self.policy1(x)))).flatten(1)
            v = torch.relu(self.value_bn(self.value1(x))).flatten(1)
            v = torch.tanh(self.value3(torch.relu(self.value2(v))))
            return p.float(), v.float().flatten()

    torch.manual_seed(1)
    net = Net().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-4)
    moves, most = 30, 60
    batches = []
    for _ in range(4):
        signs = torch.randint(0, 2, (batch, most, 4)).float() * 2 - 1
        absent = (torch.arange(most) >= moves).expand(batch, most)
        planes = (torch.rand(batch, 19, 8, 8) < 0.1).float()
        batches.append((planes, torch.randint(0, 768, (batch, most * 4)), signs, absent,
                        torch.randint(0, moves, (batch,)), torch.randint(-1, 2, (batch,)).float()))
    start = None
    for step in range(steps + 5):
        if step == 5:  # the first steps choose kernels
            start = time.perf_counter()
        planes, terms, signs, absent, target, result = batches[step % len(batches)]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            outputs, value = net(planes.contiguous(memory_format=torch.channels_last))
        logits = (outputs.gather(1, terms).view(batch, most, 4) * signs).sum(2).masked_fill(absent, float("-inf"))
        loss = F.cross_entropy(logits, target) + F.mse_loss(value, result)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        loss.item()
    print(steps * batch / (time.perf_counter() - start))


def tahl_round(options, folder, number):
    """The rate after five steps, as the Python loop's."""
    out = os.path.join(folder, str(number))
    subprocess.run([options.tahl_train, "--data", options.data, "--out", out, "--channels", str(options.channels),
                    "--blocks", str(options.blocks), "--se", "--head", "planes12", "--bf16", "--batch", str(options.batch),
                    "--threads", str(options.threads), "--steps", str(options.steps + 5), "--log-every", "5", "--val-every", "0"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rates = []
    with open(os.path.join(out, "log.jsonl"), encoding="utf-8") as log:
        for line in log:
            point = json.loads(line)
            if "positions_per_second" in point and point["step"] > 5:
                rates.append(point["positions_per_second"])
    return statistics.harmonic_mean(rates)


def python_round(options):
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")
    out = subprocess.run([sys.executable, __file__, PYTHON_LOOP, str(options.channels), str(options.blocks), str(options.batch),
                          str(options.steps), str(options.threads)], check=True, capture_output=True, text=True, env=environment)
    return float(re.findall(r"[\d.]+", out.stdout)[-1])


def main():
    if len(sys.argv) > 1 and sys.argv[1] == PYTHON_LOOP:
        python_loop(*[int(a) for a in sys.argv[2:7]])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tahl-train", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=25, help="a multiple of 5")
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ours, python = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            # Who goes first alternates, so that a load that grows or falls favours neither.
            for who in ((0, 1), (1, 0))[number % 2]:
                if who == 0:
                    ours.append(tahl_round(options, folder, number))
                else:
                    python.append(python_round(options))
            print(f"round {number + 1}: tahl-train {ours[-1]:.0f}, python {python[-1]:.0f} positions/s, "
                  f"ratio {ours[-1] / python[-1]:.3f}", file=sys.stderr, flush=True)
    ratios = [a / b for a, b in zip(ours, python)]
    result = {"tahl_train": statistics.median(ours), "python": statistics.median(python),
              "ratio_of_medians": statistics.median(ours) / statistics.median(python), "ratios": ratios}
    if options.json:
        print(json.dumps(result))
    else:
        print(f"tahl-train {result['tahl_train']:.0f} positions/s, python {result['python']:.0f}, "
              f"ratio {result['ratio_of_medians']:.3f} (rounds {min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
