#!/usr/bin/env python3
"""Command lines: help as written in tests/data/cli, errors as one line, and answers held to golden data.

    cli.test.py TAHL [--update]     --update writes the help texts anew
"""
import json
import math
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import OrderedDict

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "tests", "data")
SHARED = os.path.join(ROOT, "..", "shared")
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"

HELP = {
    "help": ["--help"],
    "help-perft": ["perft", "--help"],
    "help-predict": ["predict", "--help"],
    "help-encode": ["encode", "--help"],
    "help-uci": ["uci", "--help"],
    "help-net": ["net", "--help"],
    "help-net-show": ["net", "show", "--help"],
    "help-net-convert": ["net", "convert", "--help"],
    "help-net-compare": ["net", "compare", "--help"],
    "help-net-quantize": ["net", "quantize", "--help"],
    "help-bench-nn": ["bench", "nn", "--help"],
    "encode-start": ["encode"],
}

# Arguments, exit status (1 failed, 2 wrong usage), and what the one line on stderr says.
ERRORS = [
    (["nosuch"], 2, "nosuch"),
    (["--nosuch"], 2, "--nosuch"),
    (["perft"], 2, "--depth"),
    (["perft", "--depth", "x"], 2, "--depth"),
    (["perft", "--depth", "-1"], 2, "--depth"),
    (["perft", "--depth", "99999999999999999999"], 2, "--depth"),
    (["perft", "--depth", "1", "--sliders", "wood"], 2, "wood"),
    (["perft", "--depth"], 2, "--depth"),
    (["perft", "--depth", "1", "--leaves", "fallen"], 2, "fallen"),
    (["perft", "--depth", "1", "--threads", "0"], 2, "--threads"),
    (["perft", "--depth", "1", "--hash", "-1"], 2, "--hash"),
    (["perft", "--depth", "1", "--hash", "1000000"], 1, "--hash"),
    (["perft", "--depth", "1", "--rounds", "3"], 2, "--rounds"),
    (["perft", "--compare", "--depth", "1"], 2, "--compare"),
    (["perft", START, "--compare"], 2, "--compare"),
    (["perft", "--compare", "--sliders", "magic"], 2, "--compare"),
    (["perft", "--depth", "1", "--divide", "--json"], 2, "--json"),
    (["perft", "8/8/4k3/8/8/4K3/8/8 w - - 0 1", "--depth", "40", "--hash", "64"], 1, "2^64"),
    (["encode", "--encoding", "morse"], 2, "morse"),
    (["encode", "--moves"], 2, "--moves"),
    (["perft", "", "--depth", "1"], 1, "fen"),
    (["perft", "8/8/8/8/8/8/8/8 w", "--depth", "1"], 1, "king"),
    (["perft", "nonsense", "--depth", "1"], 1, "fen"),
    (["perft", START + " extra", "--depth", "1"], 1, "fen"),
    (["perft", *START.split(), "extra", "--depth", "1"], 1, "fen"),
    (["perft", "\x01\x1b[31m\xff", "--depth", "1"], 1, "fen"),
    (["perft", "p" * 100000, "--depth", "1"], 1, "fen"),
    (["perft", "--depth", "1", "--moves", "e2e4", "e2e4"], 1, "move 2"),
    (["encode", "--moves", "e2e4 e7e5 e1e3"], 1, "move 3"),
    (["encode", "K7/8/8/8/8/8/8/7K", "w"], 1, "fen"),
    (["predict", "k7/P7/8/8/8/8/8/K6x"], 1, "fen"),
    (["predict", "--moves", "a1a1"], 1, "move 1"),
    (["predict", "--net", "/no/such/net"], 1, "/no/such/net"),
    (["predict", "--net", "/"], 1, "/"),
    (["predict", "--precision", "fp8"], 2, "fp8"),
    (["net"], 2, "subcommand"),
    (["net", "weigh"], 2, "subcommand"),
    (["net", "show", "/no/such/net"], 1, "/no/such/net"),
    (["net", "show", "/"], 1, "folder"),
    (["net", "show", os.path.join(DATA, "perft.epd")], 1, "neither safetensors nor"),
    (["net", "convert", "x"], 2, "out"),
    (["net", "convert", "/no/such/net", "a.safetensors"], 1, "/no/such/net"),
    (["net", "convert", "x", "y.onnx"], 2, ".safetensors"),
    (["net", "convert", "x", "y.pt", "--dtype", "f16"], 2, "--dtype"),
    (["net", "convert", "x", "y.safetensors", "--dtype", "f8"], 2, "f8"),
    (["net", "quantize", "a", "b.pt", "--positions", "x"], 2, ".safetensors"),
    (["net", "quantize", "a", "b.safetensors"], 2, "--positions"),
    (["net", "quantize", "/no/such/net", "b.safetensors", "--positions", "x"], 1, "/no/such/net"),
    (["bench"], 2, "subcommand"),
    (["bench", "nn", "/no/such/net"], 1, "/no/such/net"),
    (["bench", "nn", "--only", "abacus", "--batch", "1"], 1, "abacus"),
    (["bench", "nn", "--batch", "0"], 2, "--batch"),
    (["net", "compare", "a", "b"], 2, "--positions"),
    (["net", "compare", "/no/such/net", "b", "--positions", "x"], 1, "/no/such/net"),
    (["net", "compare", "a", "b", "--positions", "x", "--precision-a", "fp8"], 2, "fp8"),
    (["net", "compare", "a", "b", "--positions", "x", "--count", "0"], 2, "--count"),
]

failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED: " + what)


def run(tahl, arguments):
    return subprocess.run(
        [tahl, *arguments], capture_output=True, text=True, errors="replace", timeout=120, stdin=subprocess.DEVNULL
    )


def answer(tahl, *arguments):
    """The JSON of a command that must do well."""
    done = run(tahl, arguments)
    if done.returncode != 0 or done.stderr:
        raise SystemExit(f"cli.test.py: {' '.join(arguments)}: status {done.returncode}, {done.stderr}")
    return json.loads(done.stdout)


def check_help(tahl, update):
    for name, arguments in HELP.items():
        path = os.path.join(DATA, "cli", name + ".txt")
        done = run(tahl, arguments)
        check(done.returncode == 0 and not done.stderr, f"{arguments}: status {done.returncode}, {done.stderr}")
        if update:
            with open(path, "w") as file:
                file.write(done.stdout)
        with open(path) as file:
            check(done.stdout == file.read(), f"{arguments}: differs from {path} (--update writes it anew)")


def check_error(tahl, arguments, status, text):
    done = run(tahl, arguments)
    shown = " ".join(a[:40] for a in arguments)
    check(done.returncode == status, f"{shown!r}: status {done.returncode}, not {status}: {done.stderr[:200]}")
    lines = done.stderr.splitlines()
    check(len(lines) == 1, f"{shown!r}: {len(lines)} lines on stderr: {done.stderr[:300]}")
    check(lines and lines[0].startswith("tahl: ") and text in lines[0], f"{shown!r}: says {done.stderr[:200]}")
    check(len(done.stderr) < 500, f"{shown!r}: a line of {len(done.stderr)} bytes")
    check(not done.stdout, f"{shown!r}: prints {done.stdout[:100]}")


def check_bad_nets(tahl):
    """Nets that are none, or not all there: one line, whatever is in them."""
    whole = b""
    nets = os.path.join(ROOT, "nets")
    for name in sorted(os.listdir(nets)):
        if name.endswith(".safetensors"):
            with open(os.path.join(nets, name), "rb") as file:
                whole = file.read()
            break
    header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    bad = {
        "empty": b"",
        "short": b"\x10\x00\x00",
        "long-header": struct.pack("<Q", 2**63) + b"{}",
        "no-json": struct.pack("<Q", 4) + b"{]{]",
        "no-data": struct.pack("<Q", len(header)) + header,
        "no-arch": struct.pack("<Q", len(header)) + header + bytes(8),
        "deep": struct.pack("<Q", 100000) + b"[" * 100000,
        "text": b"this is no net\n" * 100,
        "zip": b"PK\x03\x04" + bytes(100),
    }
    if whole:
        bad["cut-in-header"] = whole[:100]
        bad["cut-in-data"] = whole[: len(whole) // 2]
        bad["cut-at-end"] = whole[:-1]
    with tempfile.TemporaryDirectory() as folder:
        for name, content in bad.items():
            path = os.path.join(folder, name + (".pt" if name == "zip" else ".safetensors"))
            with open(path, "wb") as file:
                file.write(content)
            check_error(tahl, ["predict", "--net", path], 1, name)


def golden_rows():
    path = os.path.join(SHARED, "golden", "rdt19_planes.jsonl")
    if not os.path.exists(path):
        path = os.path.join(DATA, "golden", "rdt19_planes.jsonl")
    with open(path) as file:
        return [json.loads(line) for line in file]


def check_encode(tahl, rows):
    for row in rows:
        out = answer(tahl, "encode", row["start"], *(["--moves", *row["moves"]] if row["moves"] else []), "--json")
        planes = out["planes"]
        check(list(out) == ["encoding", "planes"] and out["encoding"] == "rdt19", f"encode: keys {list(out)}")
        check(planes[:17] == row["planes"], f"encode {row['fen']}: planes differ")
        check(math.isclose(planes[17], row["fifty"], abs_tol=1e-6), f"encode {row['fen']}: fifty {planes[17]}")
        check(planes[18] == row["repetition"], f"encode {row['fen']}: repetition {planes[18]}")


def without_en_passant(fen):
    words = fen.split()
    return words[:3] + words[4:]


def check_predict(tahl, rows):
    for row in rows:
        out = answer(tahl, "predict", *row["start"].split(), *(["--moves", *row["moves"]] if row["moves"] else []), "--json")
        check(list(out) == ["fen", "value", "moves"], f"predict: keys {list(out)}")
        # There every double step leaves an en passant square, here only one that can be used.
        check(without_en_passant(out["fen"]) == without_en_passant(row["fen"]), f"predict: {out['fen']}, not {row['fen']}")
        check(-1 <= out["value"] <= 1, f"predict {row['fen']}: value {out['value']}")
        p = [move["p"] for move in out["moves"]]
        check(not p or math.isclose(sum(p), 1, abs_tol=1e-4), f"predict {row['fen']}: p sums to {sum(p)}")
        check(p == sorted(p, reverse=True), f"predict {row['fen']}: not sorted by p")
        indices = {move["uci"]: move["index"] for move in out["moves"] if move["index"] is not None}
        check(indices == row["legal"], f"predict {row['fen']}: indices differ")
        for move in out["moves"]:
            check(list(move) == ["uci", "san", "index", "logit", "p"], f"predict: keys {list(move)}")
            if move["logit"] is None:
                check(move["p"] == 0, f"predict {row['fen']}: {move['uci']} has p but no logit")
    # Back rank mate: SAN carries its mark.
    out = answer(tahl, "predict", "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", "--json")
    check("Ra8#" in [move["san"] for move in out["moves"]], "predict: Ra8# is not among the moves")
    # Mated: no moves, no crash.
    out = answer(tahl, "predict", "--moves", "f2f3 e7e5 g2g4 d8h4", "--json")
    check(out["moves"] == [], "predict: moves after checkmate")
    text = run(tahl, ["predict"]).stdout
    check(text.count(" %") == 5, f"predict: not five moves: {text}")


# https://www.chessprogramming.org/Perft_Results
PERFT = [
    (START, 4, 197281),
    ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -", 3, 97862),
    ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - -", 5, 674624),
    ("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", 3, 89890),
]


def check_perft(tahl):
    for fen, depth, nodes in PERFT:
        for words in ([fen], fen.split()):
            out = answer(tahl, "perft", *words, "--depth", str(depth), "--sliders", "all", "--json")
            check(out == {"nodes": nodes}, f"perft {fen}: {out}")
        for options in (["--leaves", "made"], ["--threads", "2", "--hash", "4"]):
            out = answer(tahl, "perft", fen, "--depth", str(depth), "--json", *options)
            check(out == {"nodes": nodes}, f"perft {fen} {options}: {out}")
    done = run(tahl, ["perft", "--depth", "2", "--divide"])
    check("e2e4: 20\n" in done.stdout and "400 nodes" in done.stdout, f"perft --divide: {done.stdout}")
    check(answer(tahl, "perft", "--depth", "0", "--json") == {"nodes": 1}, "perft at depth 0")
    table = answer(tahl, "perft", "--compare", "--rounds", "1", "--json", "--leaves", "made")
    check("magic" in table["sliders"] and table["cpu"] and table["leaves"] == "made", f"perft --compare: {table}")
    check(all(len(row["mnps"]) == 6 and row["mean"] > 0 for row in table["sliders"].values()), f"perft --compare: {table}")
    stopped = subprocess.Popen([tahl, "perft", "--depth", "30"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    stopped.send_signal(signal.SIGINT)
    _, said = stopped.communicate(timeout=30)
    check(stopped.returncode == 1 and said == "tahl: perft: interrupted\n", f"perft interrupted: {said}")


class Storage:
    """What torch.save says of a tensor's bytes."""

    def __init__(self, kind, key, elements):
        self.kind, self.key, self.elements = kind, key, elements


def read_checkpoint(path):
    """A torch.save file by Python's own pickle and zip: {name: (type, shape, bytes)} for tensors."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        folder = names[0].split("/")[0]
        check(archive.testzip() is None and folder + "/version" in names, f"{path}: {names}")

        def rebuild(storage, offset, size, stride, requires_grad, hooks):
            check(offset == 0 and requires_grad is False and hooks == OrderedDict(), f"{path}: odd tensor")
            data = archive.read(f"{folder}/data/{storage.key}")
            check(storage.elements == math.prod(size), f"{path}: {storage.elements} elements for {size}")
            check(stride == tuple(math.prod(size[i + 1 :]) for i in range(len(size))), f"{path}: strides {stride}")
            return storage.kind, size, data

        class Reader(pickle.Unpickler):
            def find_class(self, module, name):
                known = {"collections.OrderedDict": OrderedDict, "torch._utils._rebuild_tensor_v2": rebuild}
                return known.get(f"{module}.{name}", name)

            def persistent_load(self, identity):
                kind, storage_type, key, device, elements = identity
                check(kind == "storage" and device == "cpu", f"{path}: {identity}")
                return Storage(storage_type, key, elements)

        with archive.open(folder + "/data.pkl") as file:
            return Reader(file).load()


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (e["dtype"], tuple(e["shape"]), data[slice(*e["data_offsets"])]) for name, e in header.items()}


def made_up_plain_net(path):
    """A net that RDTChess could build, 3 channels wide, as safetensors."""
    sizes = {"stem.0.weight": [3, 19, 3, 3], "policy_conv.weight": [32, 3, 1, 1], "value_conv.weight": [16, 3, 1, 1]}
    sizes |= {f"tower.0.conv{i}.weight": [3, 3, 3, 3] for i in (1, 2)}
    norms = {"stem.1": 3, "tower.0.bn1": 3, "tower.0.bn2": 3, "policy_bn": 32, "value_bn": 16}
    sizes |= {f"{n}.{part}": [k] for n, k in norms.items() for part in ("weight", "bias", "running_mean", "running_var")}
    sizes |= {"policy_fc.weight": [4096, 2048], "policy_fc.bias": [4096], "value_fc1.weight": [128, 1024]}
    sizes |= {"value_fc1.bias": [128], "value_fc2.weight": [1, 128], "value_fc2.bias": [1]}
    arch = {"family": "rdt", "channels": 3, "blocks": 1, "policy_head": "fromto4096"}
    header, data = {"__metadata__": {"arch": json.dumps(arch), "encoding": "rdt19", "title": "made up"}}, b""
    for k, (name, shape) in enumerate(sizes.items()):
        n = math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * n]}
        data += (struct.pack("<7f", *(0.01 * (k + i + 1) for i in range(7))) * (n // 7 + 1))[: 4 * n]
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def check_net(tahl):
    shown = answer(tahl, "net", "show", "--json")
    check(shown["embedded"] and shown["default"] and shown["parameters"] > 0, f"net show: {shown}")
    check(shown["format"] == "safetensors, f32", f"net show: {shown['format']}")
    name = shown["name"]
    text = run(tahl, ["net", "show", name]).stdout
    check(f"net         {name} (in this program, the default)" in text, f"net show: {text}")
    with tempfile.TemporaryDirectory() as folder:
        at = lambda file: os.path.join(folder, file)
        # Any net to safetensors: the same tensors. (The header may name fields that are newer than the net.)
        check(run(tahl, ["net", "convert", name, at("a.safetensors")]).returncode == 0, "net convert")
        shipped = os.path.join(ROOT, "nets", name + ".safetensors")
        check(read_safetensors(at("a.safetensors")) == read_safetensors(shipped), f"net convert: {name} changes")
        check_error(tahl, ["net", "convert", at("a.safetensors"), at("a.safetensors")], 1, "written over")
        check_error(tahl, ["net", "convert", name, at("a.pt")], 1, "policy head planes12")
        check_error(tahl, ["net", "convert", name, at("no/such/a.safetensors")], 1, "no/such")
        check(os.listdir(folder) == ["a.safetensors"], f"net convert leaves {os.listdir(folder)}")
        for dtype in ("f16", "bf16"):
            half = at(dtype + ".safetensors")
            run(tahl, ["net", "convert", name, half, "--dtype", dtype])
            check(answer(tahl, "net", "show", half, "--json")["format"] == f"safetensors, {dtype} f32", dtype)
            types = {(len(shape) < 2, kind) for kind, shape, _ in read_safetensors(half).values()}
            check(types == {(True, "F32"), (False, dtype.upper())}, f"{dtype}: {types}")
        # To RDTChess's form, as Python reads it, and back.
        made_up_plain_net(at("plain.safetensors"))
        done = run(tahl, ["net", "convert", at("plain.safetensors"), at("plain.pt")])
        check(done.returncode == 0 and "metadata" in done.stdout, f"net convert to .pt: {done.stdout}{done.stderr}")
        checkpoint = read_checkpoint(at("plain.pt"))
        config = {"input_planes": 19, "channels": 3, "blocks": 1, "action_size": 4096}
        check(checkpoint["network_config"] == config, f"network_config: {checkpoint['network_config']}")
        check(isinstance(checkpoint["network"], OrderedDict), "network is no OrderedDict")
        counters = {n: t for n, t in checkpoint["network"].items() if n.endswith("num_batches_tracked")}
        check(len(counters) == 5 and all(t == ("LongStorage", (), bytes(8)) for t in counters.values()), f"{counters}")
        weights = {n: t for n, t in checkpoint["network"].items() if n not in counters}
        check({t[0] for t in weights.values()} == {"FloatStorage"}, "types in the checkpoint")
        original = read_safetensors(at("plain.safetensors"))
        check({n: t[1:] for n, t in weights.items()} == {n: t[1:] for n, t in original.items()}, "weights differ in .pt")
        run(tahl, ["net", "convert", at("plain.pt"), at("again.safetensors")])
        check(read_safetensors(at("again.safetensors")) == original, "weights differ after .pt")
        # A weight that no half can hold.
        with open(at("plain.safetensors"), "r+b") as file:
            file.seek(-4 * 120, os.SEEK_END)  # in value_fc2.weight
            file.write(struct.pack("<f", 1e6))
        check_error(tahl, ["net", "convert", at("plain.safetensors"), at("h.safetensors"), "--dtype", "f16"], 1, "inf")
        # Comparison.
        with open(at("game.pgn"), "w") as file:
            file.write("1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 *\n")
        same = answer(tahl, "net", "compare", name, at("a.safetensors"), "--positions", at("game.pgn"), "--json")
        check(same["positions"] == same["moves_known"] == 10, f"net compare: {same}")
        check(same["top1_agreement"] == 1 and same["kl"] == 0 and same["value_rmse"] == 0, f"net compare: {same}")
        check(same["calibration_a"] == same["calibration_b"], f"net compare: {same}")
        other = answer(tahl, "net", "compare", name, at("plain.pt"), "--positions", os.path.join(DATA, "perft.epd"), "--json")
        check(other["kl"] > 0 and other["calibration_a"] is None and other["moves_left_out"] > 0, f"net compare: {other}")
        check_error(tahl, ["net", "compare", name, name, "--positions", at("nothing.pgn")], 1, "nothing.pgn")
        check_error(tahl, ["net", "compare", name, name, "--positions", folder], 1, folder)
        check_error(tahl, ["net", "compare", name, name, "--positions", at("a.safetensors")], 1, "a.safetensors")
        # Fitted for bytes, in place: the weights stay, the metadata says how far it agrees.
        done = run(tahl, ["net", "quantize", at("a.safetensors"), at("a.safetensors"), "--positions", at("game.pgn")])
        check(done.returncode == 0 and "int8" in done.stdout, f"net quantize: {done.stdout}{done.stderr}")
        check(read_safetensors(at("a.safetensors")) == read_safetensors(shipped), "net quantize changes weights")
        ranges = json.loads(answer(tahl, "net", "show", at("a.safetensors"), "--json")["metadata"]["int8_ranges"])
        check("policy_conv" in ranges and all(x > 0 for x in ranges.values()), f"net quantize: {ranges}")
        check_error(tahl, ["net", "quantize", name, at("q.safetensors"), "--positions", at("nothing.pgn")], 1, "nothing.pgn")
        check(not os.path.exists(at("q.safetensors")), "net quantize leaves a file after an error")
        with open(at("long.pgn"), "w") as file:
            file.write("1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 *\n\n" * 20000)
        command = [tahl, "net", "compare", name, name, "--positions", at("long.pgn"), "--count", "200000"]
        stopped = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)
        stopped.send_signal(signal.SIGINT)
        out, said = stopped.communicate(timeout=30)
        check(stopped.returncode == 1 and not out, f"net compare interrupted: {stopped.returncode} {out}")
        check(said.startswith("tahl: net compare: interrupted"), f"net compare interrupted: {said}")


def main(tahl, update):
    check_help(tahl, update)
    for arguments, status, text in ERRORS:
        check_error(tahl, arguments, status, text)
    check_bad_nets(tahl)
    check_net(tahl)
    check_perft(tahl)
    rows = golden_rows()
    check_encode(tahl, rows)
    check_predict(tahl, rows[:20])
    print(f"{len(rows)} golden positions, {len(ERRORS)} errors, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: cli.test.py TAHL [--update]")
    sys.exit(main(os.path.abspath(sys.argv[1]), "--update" in sys.argv[2:]))
