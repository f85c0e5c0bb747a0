# Makes rdt_tiny.pt.zst and rdt_tiny.json with PyTorch 1.13: a checkpoint in RDTChess's form, far
# smaller than any real one, and what PyTorch computes with it. Periodic policy weights keep it small when compressed.
#   python3 rdt_tiny.py && zstd -19 --rm rdt_tiny.pt
import json
from collections import OrderedDict

import torch
import torch.nn.functional as F

torch.manual_seed(20260101)
PLANES, CHANNELS, BLOCKS = 19, 3, 1
net = OrderedDict()


def conv(name, out, inputs, k):
    net[name + ".weight"] = torch.randn(out, inputs, k, k) / (inputs * k * k) ** 0.5


def norm(name, n):
    net[name + ".weight"] = torch.rand(n) + 0.5
    net[name + ".bias"] = torch.randn(n) / 4
    net[name + ".running_mean"] = torch.randn(n) / 4
    net[name + ".running_var"] = torch.rand(n) + 0.5
    net[name + ".num_batches_tracked"] = torch.tensor(7)


def apply(conv_name, norm_name, x):
    w = net[conv_name + ".weight"]
    x = F.conv2d(x, w, padding=w.shape[2] // 2)
    n = [net[f"{norm_name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
    return F.batch_norm(x, *n)


conv("stem.0", CHANNELS, PLANES, 3)
norm("stem.1", CHANNELS)
for b in range(BLOCKS):
    for i in (1, 2):
        conv(f"tower.{b}.conv{i}", CHANNELS, CHANNELS, 3)
        norm(f"tower.{b}.bn{i}", CHANNELS)
conv("policy_conv", 1, CHANNELS, 1)
norm("policy_bn", 1)
i, j = torch.arange(4096).unsqueeze(1), torch.arange(64)
net["policy_fc.weight"] = ((i * 7 + j * 3) % 16 - 7.5) / 32
net["policy_fc.bias"] = (torch.arange(4096) % 8 - 3.5) / 8
conv("value_conv", 2, CHANNELS, 1)
norm("value_bn", 2)
net["value_fc1.weight"] = torch.randn(4, 128) / 8
net["value_fc1.bias"] = torch.randn(4)
net["value_fc2.weight"] = torch.randn(1, 4)
net["value_fc2.bias"] = torch.randn(1)
net._metadata = OrderedDict({"": {"version": 1}, "stem": {"version": 1}})

p, s = torch.arange(PLANES).unsqueeze(1), torch.arange(64)
x = ((p * 37 + s * 11) % 7 == 0).float().reshape(1, PLANES, 8, 8)
x = F.relu(apply("stem.0", "stem.1", x))
for b in range(BLOCKS):
    y = F.relu(apply(f"tower.{b}.conv1", f"tower.{b}.bn1", x))
    x = F.relu(x + apply(f"tower.{b}.conv2", f"tower.{b}.bn2", y))
policy = F.relu(apply("policy_conv", "policy_bn", x)).flatten(1)
policy = F.linear(policy, net["policy_fc.weight"], net["policy_fc.bias"])[0]
value = F.relu(apply("value_conv", "value_bn", x)).flatten(1)
value = F.relu(F.linear(value, net["value_fc1.weight"], net["value_fc1.bias"]))
value = torch.tanh(F.linear(value, net["value_fc2.weight"], net["value_fc2.bias"]))[0]

config = {"input_planes": PLANES, "channels": CHANNELS, "blocks": BLOCKS, "action_size": 4096}
torch.save({"network_config": config, "network": net}, "rdt_tiny.pt")
with open("rdt_tiny.json", "w") as out:
    json.dump({"value": round(value.item(), 6), "logits_0_64": [round(q, 5) for q in policy[:64].tolist()]}, out)
    out.write("\n")
