#!/usr/bin/env python3
"""Writes torch_values.h: what PyTorch computes for the small problems of test_train.c.

    python3 tests/torch_values.py > tests/torch_values.h

The header is checked in, so that the tests need no PyTorch.
"""
import torch

torch.set_default_dtype(torch.float64)


def series(n, scale, shift):
    """The same numbers as series() in test_train.c: no generator of random numbers to agree on."""
    return torch.tensor([((i * 7919 + 104729) % 1000) / 1000.0 * scale + shift for i in range(n)])


def emit(name, values, note):
    flat = [float(v) for v in torch.as_tensor(values).reshape(-1)]
    print(f"// {note}")
    print(f"static const double {name}[] = {{")
    for at in range(0, len(flat), 4):
        print("    " + " ".join(f"{v:.17g}," for v in flat[at:at + 4]))
    print("};\n")


def trajectory(make, steps=6):
    """Parameters after each of some steps on sum(c * (p - t)^4 + p), where p starts as a series."""
    p = series(5, 2.0, -1.0).requires_grad_()
    c, t = series(5, 1.5, 0.2), series(5, -1.0, 0.5)
    opt = make([p])
    path = []
    for _ in range(steps):
        opt.zero_grad()
        (c * (p - t) ** 4 + p).sum().backward()
        opt.step()
        path.append(p.detach().clone())
    return torch.stack(path)


OPTIMIZERS = [
    ("torch_sgd", lambda p: torch.optim.SGD(p, lr=0.05), "SGD lr 0.05"),
    ("torch_sgd_momentum", lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.1, weight_decay=0.02),
     "SGD lr 0.05, momentum 0.9, dampening 0.1, weight decay 0.02"),
    ("torch_sgd_nesterov", lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, nesterov=True),
     "SGD lr 0.05, momentum 0.8, Nesterov"),
    ("torch_adam", lambda p: torch.optim.Adam(p), "Adam, defaults"),
    ("torch_adam_decay", lambda p: torch.optim.Adam(p, lr=0.1, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1),
     "Adam lr 0.1, betas 0.8 and 0.95, eps 1e-4, weight decay 0.1"),
    ("torch_adamw", lambda p: torch.optim.AdamW(p, lr=0.1), "AdamW lr 0.1, weight decay 0.01"),
]


def network():
    """Two layers, relu, cross entropy: the loss and the gradients of a step."""
    x, y = series(4 * 3, 2.0, -1.0).reshape(4, 3), torch.tensor([2, 0, 1, 2])
    w1 = series(3 * 5, 1.6, -0.8).reshape(3, 5).requires_grad_()
    b1 = series(5, 0.4, -0.2).requires_grad_()
    w2 = series(5 * 3, -1.4, 0.7).reshape(5, 3).requires_grad_()
    b2 = series(3, 0.2, 0.0).requires_grad_()
    loss = torch.nn.functional.cross_entropy(torch.relu(x @ w1 + b1) @ w2 + b2, y)
    params = [w1, b1, w2, b2]
    grads = torch.autograd.grad(loss, params, create_graph=True)
    penalty = sum((g ** 2).sum() for g in grads)
    second = torch.autograd.grad(penalty, params)
    emit("torch_net_loss", loss, "loss of the network")
    emit("torch_net_grad", torch.cat([g.detach().reshape(-1) for g in grads]), "its gradients: w1, b1, w2, b2")
    emit("torch_net_second", torch.cat([g.reshape(-1) for g in second]), "gradients of their sum of squares")


def main():
    print("// Written by torch_values.py with PyTorch", torch.__version__.split("a")[0])
    print()
    for name, make, note in OPTIMIZERS:
        emit(name, trajectory(make), f"{note}: 6 steps of 5 parameters")
    network()


main()
