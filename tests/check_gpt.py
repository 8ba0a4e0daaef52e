#!/usr/bin/env python3
"""Runs examples/gpt for a moment: it learns; and with a file of GPT-2's layout, written here, its ids are those of NumPy's formulas.

    check_gpt.py PROGRAM
"""
import json
import re
import subprocess
import sys

import numpy as np


def save(path, arrays, notes):
    """A file of the format safetensors."""
    header, at = {"__metadata__": notes}, 0
    for name, a in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(a.tobytes() for a in arrays.values()))


def made(vocab, context, width, layers, prefix):
    """GPT-2's parameters with its names and shapes, its mask among them."""
    rng = np.random.default_rng(3)
    draw = lambda *s, scale=0.3: (rng.standard_normal(s) * scale).astype(np.float32)
    p = {"wte.weight": draw(vocab, width), "wpe.weight": draw(context, width)}
    for i in range(layers):
        for name in ("ln_1", "ln_2"):
            p[f"h.{i}.{name}.weight"], p[f"h.{i}.{name}.bias"] = 1 + draw(width), draw(width)
        p[f"h.{i}.attn.bias"] = np.tril(np.ones((1, 1, context, context), np.float32))
        for name, a, b in (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width), ("mlp.c_fc", width, 4 * width),
                           ("mlp.c_proj", 4 * width, width)):
            p[f"h.{i}.{name}.weight"], p[f"h.{i}.{name}.bias"] = draw(a, b), draw(b)
    p["ln_f.weight"], p["ln_f.bias"] = 1 + draw(width), draw(width)
    return {prefix + k: v for k, v in p.items()}


def logits(p, ids, layers, heads):
    """Of the id behind the last one."""
    p = {k: v.astype(np.float64) for k, v in p.items()}

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p[name + ".weight"] + p[name + ".bias"]

    linear = lambda x, name: x @ p[name + ".weight"] + p[name + ".bias"]
    n, width = len(ids), p["wte.weight"].shape[1]
    x = p["wte.weight"][ids] + p["wpe.weight"][:n]
    for i in range(layers):
        q, k, v = (linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").reshape(n, 3, heads, -1).transpose(1, 2, 0, 3))
        s = q @ k.transpose(0, 2, 1) / np.sqrt(width / heads)
        s = np.where(np.tril(np.ones((n, n))) > 0, s, -np.inf)
        s = np.exp(s - s.max(-1, keepdims=True))
        h = (s / s.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(n, width)
        x = x + linear(h, f"h.{i}.attn.c_proj")
        h = linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h ** 3)))
        x = x + linear(h, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f")[-1] @ p["wte.weight"].T


def run(*arguments):
    return subprocess.run([sys.argv[1], "--backend", "cpu", *arguments], stdout=subprocess.PIPE, check=True, text=True).stdout


for prefix, heads, layers in (("", 4, 2), ("transformer.", 1, 3)):
    p = made(50, 6, 64, layers, prefix)
    save("tiny.safetensors", p, {"heads": str(heads)} if heads != 1 else {"format": "pt"})  # GPT-2's heads are 64 wide
    bare = {k[len(prefix):]: v for k, v in p.items()}
    ids, want = [7, 31, 2], []
    for _ in range(8):  # past the context
        want.append(int(logits(bare, ids[-6:], layers, heads).argmax()))
        ids.append(want[-1])
    got = run("--model", "tiny.safetensors", "--ids", "7,31,2", "--sample", "8").strip()
    if got != ",".join(map(str, want)):
        sys.exit(f"the ids are {got}, not {want}")

with open("text", "w") as f:
    f.write("the quick brown fox jumps over the lazy dog. " * 80)
small = ["text", "--width", "32", "--layers", "2", "--heads", "2", "--context", "32", "--batch", "8", "--sample", "40"]
for more in ([], ["--half"]):
    out = run(*small, "--steps", "200", "--lr", "0.01", "--save", "made.safetensors", *more)
    before, after = (float(re.search(w + r": ([0-9.]+) bits", out).group(1)) for w in ("before", "after"))
    if not (before > 7 and after < 2):
        sys.exit(f"from {before} to {after} bits a byte")
out = run(*small, "--steps", "1", "--model", "made.safetensors")
again = float(re.search(r"before: ([0-9.]+) bits", out).group(1))
if abs(again - after) > 0.002:
    sys.exit(f"{after} bits a byte when saved, {again} when loaded")
