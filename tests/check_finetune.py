#!/usr/bin/env python3
"""Runs examples/finetune on a network of PyTorch's: its outputs, its losses while it trains on, and the weights behind that.

    check_finetune.py PROGRAM

Where there is no PyTorch it is skipped (status 77).
"""
import json
import re
import subprocess
import sys

try:
    import torch
except ImportError:
    sys.exit(77)
from torch.nn import functional as f


def save(path, tensors):
    """What safetensors.torch.save_file does."""
    names = {torch.float32: "F32", torch.int64: "I64"}
    header, at, data = {}, 0, b""
    for name, t in tensors.items():
        raw = t.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": names[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        at, data = at + len(raw), data + raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def load(path):
    raw = open(path, "rb").read()
    size = int.from_bytes(raw[:8], "little")
    header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
    dtypes = {"F32": torch.float32, "I64": torch.int64}
    return {k: torch.frombuffer(bytearray(data[slice(*v["data_offsets"])]), dtype=dtypes[v["dtype"]]).reshape(v["shape"])
            for k, v in header.items() if k != "__metadata__"}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.fc1, self.fc2 = torch.nn.Linear(8 * 4 * 4, 32), torch.nn.Linear(32, 10)

    def forward(self, x):
        x = f.max_pool2d(f.relu(self.norm(self.conv(x))), 2).flatten(1)
        return self.fc2(f.relu(self.fc1(x)))


torch.manual_seed(1)
net, x, labels = Net(), torch.randn(20, 1, 8, 8), torch.randint(0, 10, (20,))
net(torch.randn(50, 1, 8, 8) * 2 + 1)  # moves the running statistics
net.eval()
save("torch.safetensors", {**net.state_dict(), "input": x, "output": net(x), "labels": labels})
net.train()
opt, losses = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9), []
for _ in range(10):
    loss = f.cross_entropy(net(x), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())

out = subprocess.run([sys.argv[1], "torch.safetensors", "--steps", "10", "--backend", "cpu", "--save", "back.safetensors"],
                     stdout=subprocess.PIPE, check=True, text=True).stdout
off = float(re.search(r"differ from PyTorch's by ([-+.e0-9]+)", out).group(1))
mine = [float(v) for v in re.findall(r"loss ([.0-9]+)", out)]
if not off < 1e-5:
    sys.exit(f"outputs differ by {off}")
if len(mine) != 10 or max(abs(a - b) for a, b in zip(mine, losses)) > 1e-4:
    sys.exit(f"losses are {mine}, not {losses}")
back = load("back.safetensors")
count = back.pop("norm.num_batches_tracked")
want = {k: v for k, v in net.state_dict().items() if k != "norm.num_batches_tracked"}
if set(back) != set(want) or count.ndim != 0:
    sys.exit(f"the file has {sorted(back)}")
for name, v in want.items():
    if not torch.allclose(back[name], v, rtol=1e-3, atol=2e-4):
        sys.exit(f"{name} is off by {(back[name] - v).abs().max()}")
Net().load_state_dict({**back, "norm.num_batches_tracked": count})
