#!/usr/bin/env python3
"""Writes torch_models.h: the losses of two networks that PyTorch trains, step by step, for test_models.c.

    python3 tests/torch_models.py > tests/torch_models.h

The header is checked in, so that the tests need no PyTorch.
"""
import math

import torch

from torch_emit import emit, series

torch.set_default_dtype(torch.float64)
f = torch.nn.functional


def made(*shape, scale=1.0, shift=None):
    """A parameter; around 0 unless its shift is said."""
    values = series(math.prod(shape), scale, -scale / 2 if shift is None else shift)
    return values.reshape(shape).requires_grad_()


def images():
    """Convolutions, norms and pools by SGD with all that it has, clipped, at a rate that rises and falls."""
    x, labels = series(8 * 2 * 8 * 8, 2.0, -1.0).reshape(8, 2, 8, 8), torch.arange(8) % 3
    conv1, bias1, scale1, shift1 = made(4, 2, 3, 3), made(4), made(4, scale=0.4, shift=0.8), made(4, scale=0.2)
    conv2, scale2, shift2 = made(6, 2, 3, 3), made(6, scale=0.4, shift=0.8), made(6, scale=0.2)
    w, b = made(24, 3), made(3)
    mean, var = torch.zeros(4), torch.ones(4)
    params = [conv1, bias1, scale1, shift1, conv2, scale2, shift2, w, b]

    def forward(training):
        y = f.batch_norm(f.conv2d(x, conv1, bias1, padding=1), mean, var, scale1, shift1, training)
        y = f.conv2d(f.max_pool2d(f.relu(y), 2), conv2, stride=2, padding=1, groups=2)
        return f.silu(f.group_norm(y, 3, scale2, shift2)).flatten(1) @ w + b

    opt = torch.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
    rates = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=20, cycle_momentum=False)
    losses = []
    for _ in range(20):
        loss = f.cross_entropy(forward(True), labels, label_smoothing=0.1)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        if len(losses) < 19:
            rates.step()
        losses.append(loss.item())
    emit("torch_images", torch.cat([torch.tensor(losses), mean, var, forward(False).detach().reshape(-1)]),
         "20 losses, the running moments, and what the network says behind them")


def text():
    """A transformer with grouped heads and rotary embedding by AdamW, warmed up, with averages of its table."""
    all_ids = ((torch.arange(44) * 7 + torch.arange(44) ** 2) % 11).reshape(4, 11)
    ids, labels = all_ids[:, :-1], all_ids[:, 1:].clone()
    labels[1, 3:5] = -100
    table, scale1, qkv = made(11, 16), made(16, scale=0.4, shift=0.8), made(16, 32)
    out, scale2, shift2 = made(16, 16), made(16, scale=0.4, shift=0.8), made(16, scale=0.2)
    up, down = made(16, 24), made(24, 16)
    params = [table, scale1, qkv, out, scale2, shift2, up, down]
    angle = torch.arange(10.0)[:, None] * 10000.0 ** (-torch.arange(0, 4, 2) / 4.0)

    def turned(x):
        a, b = x[..., :2], x[..., 2:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def forward():
        x = f.embedding(ids, table)
        h = (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * scale1) @ qkv
        q, k, v = (a.reshape(4, 10, -1, 4).transpose(1, 2) for a in h.split([16, 8, 8], -1))
        q, k, v = turned(q), turned(k).repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        s = (q @ k.transpose(-1, -2) / 2).masked_fill(~torch.ones(10, 10).tril().bool(), -math.inf)
        x = x + (s.softmax(-1) @ v).transpose(1, 2).reshape(4, 10, 16) @ out
        h = f.layer_norm(x, (16,), scale2, shift2)
        return (x + f.gelu(h @ up, approximate="tanh") @ down) @ table.T

    opt = torch.optim.AdamW(params, lr=0.02, weight_decay=0.1)
    average, losses = table.detach().clone(), []
    for step in range(15):
        opt.param_groups[0]["lr"] = min(1.0, 0.25 + 0.75 * step / 3) * (0.001 + 0.019 * (1 + math.cos(math.pi * step / 15)) / 2)
        loss = f.cross_entropy(forward().reshape(-1, 11), labels.reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        average = 0.9 * average + 0.1 * table.detach()
        losses.append(loss.item())
    emit("torch_text", torch.cat([torch.tensor(losses), average.reshape(-1)]), "15 losses, and the averages of the table")


if __name__ == "__main__":
    print("// Written by torch_models.py with PyTorch", torch.__version__.split("a")[0], end="\n\n")
    images()
    text()
