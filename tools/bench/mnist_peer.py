#!/usr/bin/env python3
"""Trains the network of examples/mnist.c with gpunum and with PyTorch in turn and prints epoch times.

    tools/bench/mnist_peer.py --mnist build/run/mnist --data DIR [--backend cpu] [--epochs 5] [--rounds 3]

Both do the same: 784-256-128-10, ReLU, cross entropy, Adam, the images as bytes on the device, a new
order every epoch, losses read every 50 steps. Each round runs one after the other. Ratio: PyTorch's
median epoch over gpunum's, so more than 1 means gpunum is faster.
"""
import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time

import numpy as np
import torch


def idx(path, offset):
    return torch.from_numpy(np.fromfile(path, dtype=np.uint8)[offset:].copy())


def train(data, device, epochs, batch):
    """Epoch times in seconds and the test accuracy in percent."""
    x, y, tx, ty = (t.to(device) for t in data)
    net = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128),
                              torch.nn.ReLU(), torch.nn.Linear(128, 10)).to(device)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    loss_of = torch.nn.CrossEntropyLoss()
    times = []
    for _ in range(epochs):
        start = time.perf_counter()
        order = torch.randperm(len(x), device=device)
        losses = []
        for at in range(0, len(x) // batch * batch, batch):
            rows = order[at:at + batch]
            loss = loss_of(net(x[rows].float() * (1 / 255)), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.detach())
            if len(losses) == 50:
                torch.stack(losses).cpu()
                losses = []
        torch.stack(losses or [loss.detach()]).cpu()
        times.append(time.perf_counter() - start)
    with torch.no_grad():
        right = (net(tx.float() * (1 / 255)).argmax(1) == ty).float().mean().item()
    return times, 100 * right


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--mnist", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--backend", default="cpu", choices=["cpu", "vulkan"])
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    device = "cuda" if a.backend == "vulkan" and torch.cuda.is_available() else "cpu"
    data = [idx(a.data + "/train-images-idx3-ubyte", 16).reshape(-1, 784),
            idx(a.data + "/train-labels-idx1-ubyte", 8).long(),
            idx(a.data + "/t10k-images-idx3-ubyte", 16).reshape(-1, 784),
            idx(a.data + "/t10k-labels-idx1-ubyte", 8).long()]
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(a.rounds):
            out = subprocess.run([a.mnist, "--data", a.data, "--backend", a.backend, "--no-progress",
                                  "--epochs", str(a.epochs), "--batch", str(a.batch), "--save", folder,
                                  "--cache", folder], capture_output=True, text=True, check=True).stdout
            ours += [float(t) for t in re.findall(r"^epoch .* ([0-9.]+) s$", out, re.M)]
            print("gpunum ", out.strip().splitlines()[0], "|", out.strip().splitlines()[-2])
            times, accuracy = train(data, device, a.epochs, a.batch)
            theirs += times
            print(f"PyTorch {torch.__version__} {device}, {torch.get_num_threads()} threads | "
                  f"test accuracy {accuracy:.2f} % after {sum(times):.2f} s of training")
    mine, peer = statistics.median(ours), statistics.median(theirs)
    print(f"median epoch: gpunum {mine:.3f} s, PyTorch {peer:.3f} s, ratio {peer / mine:.2f}")


if __name__ == "__main__":
    main()
