#!/usr/bin/env python3
"""Draws what torch_peer.py wrote as JSON, as SVG (Debian: python3-matplotlib):

    tools/bench/plot.py torch.json matmul.svg           TFLOP/s of matrix products over size
    tools/bench/plot.py --fft torch.json fft.svg        GB/s of complex transforms over length, batches and single ones

A GPU's file is drawn against cuFFT (its PyTorch figures) and VkFFT, a CPU's against FFTW and pocketfft.
"""
import json
import re
import sys

import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt

# VkFFT 1.3.4 on an H200, another run: (length, batch): seconds, from its own benchmark.
VKFFT = {(1 << 10, 65536): 0.297e-3, (1 << 12, 16384): 0.461e-3, (1 << 13, 8192): 0.404e-3, (1 << 16, 1): 0.0093e-3,
         (1 << 16, 1024): 1.16e-3, (1 << 20, 1): 0.0245e-3, (1 << 20, 64): 1.58e-3, (1 << 24, 1): 0.444e-3,
         (1000, 65536): 0.361e-3, (59049, 1024): 1.38e-3, (7919, 4096): 1.00e-3, (100003, 64): 0.402e-3}


def draw_matmul(data, axes):
    """Square products; PyTorch's line once for each dtype."""
    for kind, colour in (("float32", "tab:blue"), ("float32 high", "tab:green"), ("float16", "tab:orange")):
        rows = sorted((r for r in data["rows"] if r["family"] == "matmul"
                       and re.fullmatch(kind + r" (\d+)x\1x\1", r["name"])), key=lambda r: r["m"])
        size = [r["m"] for r in rows]
        label = kind.replace(" high", ", GN_PRECISION_HIGH")
        axes.plot(size, [r["gflops"] / 1e3 for r in rows], "o-", color=colour, label=f"gpunum, {label}")
        if " " not in kind:
            axes.plot(size, [r["gflops"] / 1e3 * r["seconds"] / r["torch_seconds"] for r in rows], "s--",
                      color=colour, alpha=0.6, label=f"PyTorch {data['torch']}, {kind}")
    axes.set_yscale("log")
    axes.set_xlabel("n of an n x n product")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(f"Matrix product on {data['device']}")


def draw_fft(data, axes):
    """Lines through powers of two; other lengths are points of the same colour."""
    rows = [r for r in data["rows"] if r["family"] == "fft" and r["name"].startswith("c2c") and r["k"] == 1 and "float64" not in r["name"]]
    on_cpu = data["device"].startswith("CPU")
    peers = ([("FFTW (MEASURE)", "fftw_seconds", "tab:orange"), ("pocketfft (SciPy)", "pocketfft_seconds", "tab:green")]
             if on_cpu else [(f"cuFFT (PyTorch {data['torch']})", "torch_seconds", "tab:orange"),
                             ("VkFFT 1.3.4 (another run)", "vkfft_seconds", "tab:green")])
    for row in rows:
        row["vkfft_seconds"] = VKFFT.get((row["m"], row["n"]), 0.0)
    for label, key, colour in [("gpunum", "seconds", "tab:blue")] + peers:
        for batched, style in ((True, "o-"), (False, "o:")):
            points = sorted((r["m"], r["m"] * r["n"] * 16 / r[key] * 1e-9) for r in rows
                            if r.get(key) and (r["n"] > 1) == batched)
            twos = [p for p in points if p[0] & (p[0] - 1) == 0]
            others = [p for p in points if p[0] & (p[0] - 1)]
            if twos:
                axes.plot(*zip(*twos), style, color=colour, markersize=4,
                          label=f"{label}, {'batches' if batched else 'one at a time'}")
            if others:
                axes.plot(*zip(*others), "o", color=colour, markersize=5,
                          markerfacecolor=colour if batched else "none", alpha=0.6)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("length; points off the lines: 1000, 7919, 59049, 100003")
    axes.set_ylabel("GB/s, each number read and written once")
    axes.set_title(f"complex64 Fourier transform on {data['device']}")


def main():
    fft = sys.argv[1:2] == ["--fft"]
    files = sys.argv[2 if fft else 1:]
    if len(files) != 2:
        sys.exit(__doc__)
    with open(files[0]) as f:
        data = json.load(f)
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gpunum", "font.size": 10})
    figure, axes = plt.subplots(figsize=(8, 5) if fft else (7, 4))
    (draw_fft if fft else draw_matmul)(data, axes)
    axes.set_xscale("log", base=2)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=8 if fft else None)
    figure.tight_layout()
    figure.savefig(files[1], metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
