#!/usr/bin/env python3
"""Writes torch_sequences.h: what PyTorch computes for the small problems of test_sequences.c.

    python3 tests/torch_sequences.py > tests/torch_sequences.h

The header is checked in, so that the tests need no PyTorch.
"""
import math

import torch

from torch_emit import emit, series

torch.set_default_dtype(torch.float64)


def attention(name, note, heads=3, key_heads=3, n=5, m=7, d=4, e=3, mask=None, causal=False, scale=None):
    """Result and gradients of q, k, v of sum(y * series), batch 2."""
    q, k, v = (series(math.prod(s), 4.0, -2.0).reshape(s).requires_grad_()
               for s in ((2, heads, n, d), (2, key_heads, m, d), (2, key_heads, m, e)))
    repeat = lambda x: x.repeat_interleave(heads // key_heads, 1)
    s = q @ repeat(k).transpose(-1, -2) * (scale if scale else d ** -0.5)
    if mask is not None and mask.dtype == torch.bool:
        s = s.masked_fill(~mask, -math.inf)
    elif mask is not None:
        s = s + mask
    if causal:
        s = s.masked_fill(~torch.ones(n, m).tril().bool(), -math.inf)
    dead = (s == -math.inf).all(-1, keepdim=True)
    y = torch.softmax(s.masked_fill(dead, 0.0), -1).masked_fill(dead, 0.0) @ repeat(v)
    (y * series(y.numel(), 2.0, -0.7).reshape(y.shape)).sum().backward()
    parts = [y, q.grad, k.grad, v.grad]
    if mask is not None and mask.requires_grad:
        parts.append(mask.grad)
    emit("torch_attention_" + name, torch.cat([p.reshape(-1) for p in parts]), "Attention, y and gradients: " + note)


def recurrent(name, note, kind, **options):
    """Results, last states and the gradients of x, h0, c0 and all weights of a sum of products with series. n 5, batch 2, in 3, h 4."""
    net = kind(3, 4, **options)
    lstm, layers = kind is torch.nn.LSTM, options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(series(p.numel(), 1.4 - 0.05 * i, -0.6).reshape(p.shape))
    x = series(30, 2.0, -1.0).reshape((2, 5, 3) if options.get("batch_first") else (5, 2, 3)).requires_grad_()
    start = [series(layers * 8, 1.5 - i, -0.5).reshape(layers, 2, 4).requires_grad_() for i in range(2 if lstm else 1)]
    y, last = net(x, tuple(start) if lstm else start[0])
    results = [y, *last] if lstm else [y, last]
    sum((r * series(r.numel(), 2.0, -0.7).reshape(r.shape)).sum() for r in results).backward()
    parts = results + [p.grad for p in [x, *start, *net.parameters()]]
    emit("torch_" + name, torch.cat([p.reshape(-1) for p in parts]), note)


if __name__ == "__main__":
    print("// Written by torch_sequences.py with PyTorch", torch.__version__.split("+")[0], end="\n\n")
    attention("plain", "(2, 3, 5, 4) x (2, 3, 7, 4)")
    attention("causal", "causal", causal=True)
    attention("grouped", "4 heads of 2, causal, scale 0.3", heads=4, key_heads=2, n=7, causal=True, scale=0.3)
    holes = (series(2 * 5 * 7, 1.0, 0.0) > 0.4).reshape(2, 1, 5, 7)
    holes[1, 0, 2] = False
    attention("holes", "mask (2, 1, 5, 7), a row of which is empty", mask=holes)
    attention("added", "float mask (3, 5, 1) and its gradient, causal", mask=series(15, 3.0, -1.0).reshape(3, 5, 1).requires_grad_(),
              causal=True)
    attention("added_keys", "float mask (4, 1, 7) for 4 heads of 1 and its gradient", heads=4, key_heads=1,
              mask=series(28, 3.0, -1.0).reshape(4, 1, 7).requires_grad_())
    attention("one", "one query, one key", n=1, m=1)
    attention("more", "2 heads of 1, 9 queries, 33 keys, causal", heads=2, key_heads=1, n=9, m=33, causal=True)
    holes = (series(9 * 33, 1.0, 0.0) > 0.4).reshape(9, 33)
    holes[4] = False
    attention("more_holes", "the same with a mask (9, 33), a row of which is empty", heads=2, key_heads=1, n=9, m=33, mask=holes)
    recurrent("lstm", "LSTM", torch.nn.LSTM)
    recurrent("lstm_more", "LSTM, 2 layers, both directions, batch first", torch.nn.LSTM, num_layers=2, bidirectional=True, batch_first=True)
    recurrent("gru", "GRU", torch.nn.GRU)
    recurrent("gru_more", "GRU, 2 layers, both directions", torch.nn.GRU, num_layers=2, bidirectional=True)
    recurrent("gru_bare", "GRU without biases, batch first", torch.nn.GRU, bias=False, batch_first=True)
