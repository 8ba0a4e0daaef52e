#!/usr/bin/env python3
"""Writes torch_augment.h: PyTorch's affine_grid and grid_sample with their gradients, for test_augment.c.

    python3 tests/torch_augment.py > tests/torch_augment.h

The header is checked in, so that the tests need no PyTorch.
"""
import torch
from torch.nn.functional import affine_grid, grid_sample

from torch_emit import emit, series

torch.set_default_dtype(torch.float64)
print(f"// Written by torch_augment.py with PyTorch {torch.__version__}\n")

theta = series(12, 2.0, -1.0).reshape(2, 2, 3)
for align in (0, 1):
    emit(f"torch_affine_{align}", affine_grid(theta, (2, 1, 3, 4), align_corners=bool(align)), f"theta (2, 2, 3) for 3 x 4, align {align}")

for mode in ("bilinear", "nearest"):
    for outside in ("zeros", "border", "reflection"):
        for align in (0, 1):
            x = series(120, 2.0, -1.0).reshape(2, 3, 5, 4).requires_grad_()
            grid = series(72, 4.6, -2.3).reshape(2, 3, 6, 2).requires_grad_()
            y = grid_sample(x, grid, mode, outside, bool(align))
            (y ** 2 * series(y.numel(), 1.0, 0.5).reshape(y.shape)).sum().backward()
            emit(f"torch_{mode}_{outside}_{align}", torch.cat([y.detach().reshape(-1), x.grad.reshape(-1), grid.grad.reshape(-1)]),
                 "y, and of sum(y^2 weights) the gradients of x and grid")
