#!/usr/bin/env python3
"""Draws the matrix products of a torch_peer.py JSON file: TFLOP/s over size, gpunum and PyTorch.

    tools/bench/plot.py torch.json matmul.svg          (Debian: python3-matplotlib)
"""
import json
import sys

import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as f:
        data = json.load(f)
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gpunum", "font.size": 10})
    figure, axes = plt.subplots(figsize=(7, 4))
    for dtype, colour in (("float32", "tab:blue"), ("float16", "tab:orange")):
        rows = [r for r in data["rows"] if r["family"] == "matmul" and r["name"].startswith(dtype)
                and r["m"] == r["n"] == r["k"]]
        size = [r["m"] for r in rows]
        axes.plot(size, [r["gflops"] / 1e3 for r in rows], "o-", color=colour, label=f"gpunum, {dtype}")
        axes.plot(size, [r["gflops"] / 1e3 * r["seconds"] / r["torch_seconds"] for r in rows], "s--",
                  color=colour, alpha=0.6, label=f"PyTorch {data['torch']}, {dtype}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("n of an n x n product")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(f"Matrix product on {data['device']}")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(sys.argv[2], metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
