#!/usr/bin/env python3
"""Writes torch_values.h: what PyTorch computes for the small problems of test_train.c, test_losses.c, test_conv.c, test_pool.c and test_norm.c.

    python3 tests/torch_values.py > tests/torch_values.h

The header is checked in, so that the tests need no PyTorch.
"""
import torch

from torch_emit import emit, series

torch.set_default_dtype(torch.float64)


class Formula:
    """An optimizer that PyTorch 1.13 lacks, from its paper: update(parameter, gradient, momentum) gives both anew."""

    def __init__(self, params, update):
        self.p, self.m, self.update = params[0], torch.zeros_like(params[0]), update

    def zero_grad(self):
        self.p.grad = None

    def step(self):
        with torch.no_grad():
            p, self.m = self.update(self.p, self.p.grad, self.m)
            self.p.copy_(p)


def lion(p, d, m, lr=0.02, decay=0.1, beta1=0.9, beta2=0.99):
    p = p - lr * (torch.sign(beta1 * m + (1 - beta1) * d) + decay * p)
    return p, beta2 * m + (1 - beta2) * d


def lion_more(p, d, m):
    return lion(p, d, m, 0.03, 0.0, 0.7, 0.8)


def muon(p, d, m, lr=0.05, decay=0.1, momentum=0.95, plain=False):
    """Weights are (in, out): PyTorch's are transposed."""
    m = momentum * m + (1 - momentum) * d
    x = (m if plain else (1 - momentum) * d + momentum * m).T
    flip = x.shape[0] > x.shape[1]
    x = x.T if flip else x
    x = x / x.norm()
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    x = x.T if flip else x
    return p * (1 - lr * decay) - lr * max(1, x.shape[0] / x.shape[1]) ** 0.5 * x.T, m


def muon_plain(p, d, m):
    return muon(p, d, m, 0.02, 0.3, 0.8, True)


def trajectory(make, shape=(5,)):
    """Parameters after steps 1, 2, 5, 10 and 20 on sum(c * (p - t)^4 + p), where p starts as a series."""
    n = torch.Size(shape).numel()
    p = series(n, 2.0, -1.0).reshape(shape).requires_grad_()
    c, t = series(n, 1.5, 0.2).reshape(shape), series(n, -1.0, 0.5).reshape(shape)
    opt = make([p])
    path = []
    for step in range(1, 21):
        opt.zero_grad()
        (c * (p - t) ** 4 + p).sum().backward()
        opt.step()
        if step in (1, 2, 5, 10, 20):
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
    ("torch_rmsprop", lambda p: torch.optim.RMSprop(p), "RMSprop, defaults"),
    ("torch_rmsprop_more", lambda p: torch.optim.RMSprop(p, lr=0.02, alpha=0.9, eps=1e-3, weight_decay=0.1, momentum=0.5,
                                                         centered=True), "RMSprop with all that there is"),
    ("torch_rmsprop_centered", lambda p: torch.optim.RMSprop(p, centered=True), "RMSprop centered"),
    ("torch_adagrad", lambda p: torch.optim.Adagrad(p), "Adagrad, defaults"),
    ("torch_adagrad_more", lambda p: torch.optim.Adagrad(p, lr=0.2, lr_decay=0.1, weight_decay=0.1,
                                                         initial_accumulator_value=0.3, eps=1e-3), "Adagrad with all"),
    ("torch_sgd_all", lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.05),
     "SGD lr 0.05, momentum 0.9, Nesterov, weight decay 0.05"),
    ("torch_adamw_more", lambda p: torch.optim.AdamW(p, lr=0.05, betas=(0.7, 0.9), eps=1e-3, weight_decay=0.2),
     "AdamW lr 0.05, betas 0.7 and 0.9, eps 1e-3, weight decay 0.2"),
    ("torch_rmsprop_momentum", lambda p: torch.optim.RMSprop(p, momentum=0.9), "RMSprop momentum 0.9"),
    ("torch_lion_more", lambda p: Formula(p, lion_more), "Lion lr 0.03, betas 0.7 and 0.8"),
    ("torch_lion", lambda p: Formula(p, lion), "Lion lr 0.02, weight decay 0.1"),
    ("torch_muon_wide", lambda p: Formula(p, muon), "Muon lr 0.05 of a (2, 3)", (2, 3)),
    ("torch_muon_tall", lambda p: Formula(p, muon), "Muon lr 0.05 of a (3, 2)", (3, 2)),
    ("torch_muon_plain", lambda p: Formula(p, muon_plain), "Muon lr 0.02, momentum 0.8, weight decay 0.3, without Nesterov's, of a (3, 2)",
     (3, 2)),
]


def schedules():
    """Learning rates of 40 steps, as in test_train.c; those of plateau for a metric that it has as well."""
    s = torch.optim.lr_scheduler
    for name, make in [
            ("step", lambda o: s.StepLR(o, 7, gamma=0.3)), ("multi", lambda o: s.MultiStepLR(o, [3, 8, 8, 30], gamma=0.5)),
            ("exponential", lambda o: s.ExponentialLR(o, 0.9)), ("cosine", lambda o: s.CosineAnnealingLR(o, 30, eta_min=0.01)),
            ("restarts", lambda o: s.CosineAnnealingWarmRestarts(o, 5, T_mult=2, eta_min=0.02)),
            ("restarts_same", lambda o: s.CosineAnnealingWarmRestarts(o, 6)),
            ("linear", lambda o: s.LinearLR(o, 0.1, 0.8, total_iters=11)), ("one_cycle", lambda o: s.OneCycleLR(o, 0.7, total_steps=40)),
            ("plateau", lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=3, min_lr=0.03)),
            ("plateau_max", lambda o: s.ReduceLROnPlateau(o, mode="max", threshold=0.05, patience=1))]:
        opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
        schedule, rates, metric = make(opt), [], series(40, 1.0, 0.0)
        for i in range(40):
            if not name.startswith("plateau"):
                rates.append(opt.param_groups[0]["lr"])
            opt.step()
            if name.startswith("plateau"):
                schedule.step(metric[i].item())
                rates.append(opt.param_groups[0]["lr"])
            elif i < 39:
                schedule.step()
        emit("torch_lr_" + name, rates, "40 rates from 0.5 on")


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


def curves():
    x = series(12, 9.0, -4.5).requires_grad_()
    y = torch.nn.functional.gelu(x, approximate="tanh")
    first = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
    emit("torch_gelu_tanh", torch.cat([v.detach() for v in (y, first)]), "gelu by tanh, derivatives")


def losses():
    """Of each loss every element, the mean and the sum; names and operands as in test_losses.c."""
    f = torch.nn.functional
    x, y = series(12, 4.0, -2.0).reshape(3, 4), series(12, -3.0, 1.6).reshape(3, 4)
    p, sure = series(12, 0.98, 0.01).reshape(3, 4), series(12, 1.0, 0.0).reshape(3, 4).flip(1).clone()
    sure[0, 0], sure[1, 2] = 0.0, 1.0
    three, signs = series(18, 4.0, -2.0).reshape(3, 2, 3), torch.tensor([1, -1, 1])
    weight, q = series(4, 1.5, 0.2), series(12, -3.0, -0.1).reshape(3, 4)
    labels, some, of_two = torch.tensor([2, 0, 3]), torch.tensor([2, -100, 1]), torch.tensor([[1, 0, 1], [0, -1, 1], [1, 1, 0]])

    def ce(a, b, **more):
        return lambda reduction: f.cross_entropy(a, b, reduction=reduction, **more)

    cases = {
        "mse": lambda r: f.mse_loss(x, y, reduction=r),
        "l1": lambda r: f.l1_loss(x, y, reduction=r),
        "smooth": lambda r: f.smooth_l1_loss(x, y, reduction=r),
        "smoother": lambda r: f.smooth_l1_loss(x, y, reduction=r, beta=2.5),
        "smooth_zero": lambda r: f.smooth_l1_loss(x, y, reduction=r, beta=0.0),
        "huber": lambda r: f.huber_loss(x, y, reduction=r, delta=1.7),
        "bce": lambda r: f.binary_cross_entropy(p, sure, reduction=r),
        "bce_edge": lambda r: f.binary_cross_entropy(sure, p, reduction=r),
        "bce_logits": lambda r: f.binary_cross_entropy_with_logits(40 * x, sure, reduction=r),
        "bce_weight": lambda r: f.binary_cross_entropy_with_logits(x, sure, reduction=r, pos_weight=weight),
        "kl": lambda r: f.kl_div(q, sure, reduction=r),
        "kl_log": lambda r: f.kl_div(q, y - 2, reduction=r, log_target=True),
        "cosine_embedding": lambda r: f.cosine_embedding_loss(x, y, signs, margin=-0.4, reduction=r),
        "ce": ce(x, labels),
        "ce_weight": ce(x, labels, weight=weight),
        "ce_smooth": ce(x, labels, label_smoothing=0.3),
        "ce_smooth_weight": ce(x, labels, weight=weight, label_smoothing=0.3),
        "ce_ignored": ce(x, some),
        "ce_ignored_weight": ce(x, some, weight=weight),
        "ce_ignored_smooth": ce(x, some, label_smoothing=0.3),
        "ce_three": ce(three, of_two, ignore_index=-1, weight=weight[:2], label_smoothing=0.1),
        "ce_one": ce(x[1], labels[0]),
        "nll": lambda r: f.nll_loss(q, some, weight=weight, reduction=r),
    }
    for name, of in cases.items():
        parts = [of(r).detach().reshape(-1) for r in ("none", "mean", "sum")]
        emit("torch_" + name, torch.cat(parts), "each, mean, sum")
    emit("torch_kl_batch", f.kl_div(q, sure, reduction="batchmean"), "by the size of the batch")
    emit("torch_cosine", torch.cat([f.cosine_similarity(x, y, dim=1), f.cosine_similarity(x, y, dim=0)]), "axes 1 and 0")
    edge = sure.clone().requires_grad_()
    emit("torch_bce_edge_grad", torch.autograd.grad(f.binary_cross_entropy(edge, p, reduction="sum"), edge)[0], "of the sum")


def convolutions():
    """Results, then the gradients of x, w and b for a gradient of series(..., 1, -0.5); names as in test_conv.c."""
    f = torch.nn.functional
    cases = {
        "conv1d": ((2, 4, 9), (6, 2, 3), 6, lambda x, w, b: f.conv1d(x, w, b, stride=2, padding=1, dilation=2, groups=2)),
        "conv2d": ((2, 3, 6, 5), (4, 3, 3, 2), 4, lambda x, w, b: f.conv2d(x, w, b, stride=(2, 1), padding=(1, 0))),
        "conv2d_same": ((1, 4, 5, 6), (4, 1, 2, 3), 4, lambda x, w, b: f.conv2d(x, w, b, padding="same", dilation=(1, 2), groups=4)),
        "conv3d": ((1, 2, 4, 3, 5), (3, 2, 2, 3, 2), 3, lambda x, w, b: f.conv3d(x, w, b, stride=(1, 2, 3), padding=1)),
        "conv_transpose2d": ((2, 4, 3, 4), (4, 2, 3, 2), 4, lambda x, w, b: f.conv_transpose2d(
            x, w, b, stride=(2, 3), padding=(1, 0), output_padding=(1, 2), groups=2, dilation=(2, 1))),
        "conv_transpose1d": ((2, 4, 5), (4, 3, 3), 3, lambda x, w, b: f.conv_transpose1d(x, w, b, stride=2, padding=1, output_padding=1)),
        "conv_transpose3d": ((1, 2, 2, 3, 2), (2, 2, 2, 2, 3), 2, lambda x, w, b: f.conv_transpose3d(
            x, w, b, stride=(1, 2, 2), padding=(1, 0, 1))),
    }

    def of(*shape, scale=2.0, shift=-1.0):
        n = 1
        for d in shape:
            n *= d
        return series(n, scale, shift).reshape(shape)

    for name, (x, w, b, fn) in cases.items():
        leaves = [of(*x).requires_grad_(), of(*w, scale=-1.5, shift=0.9).requires_grad_(), of(b, scale=0.4).requires_grad_()]
        y = fn(*leaves)
        grads = torch.autograd.grad(y, leaves, of(*y.shape, scale=1.0, shift=-0.5))
        emit("torch_" + name, torch.cat([v.detach().reshape(-1) for v in (y, *grads)]), "result, gradients of x, w and b")


def pools():
    """Results, then the gradient of x for a gradient of series(..., 1, -0.5); for largest ones their places too."""
    f = torch.nn.functional
    x = series(2 * 7 * 9, 2.0, -1.0).reshape(1, 2, 7, 9).requires_grad_()
    cases = {
        "max_pool": lambda: f.max_pool2d(x, 2, return_indices=True),
        "max_pool_over": lambda: f.max_pool2d(x, (3, 2), (2, 1), (1, 0), (1, 2), ceil_mode=True, return_indices=True),
        "max_pool_ceil": lambda: f.max_pool2d(x, 4, 3, 2, ceil_mode=True, return_indices=True),
        "max_pool_adaptive": lambda: f.adaptive_max_pool2d(x, (3, 4), return_indices=True),
        "max_pool_whole": lambda: f.adaptive_max_pool2d(x, 1, return_indices=True),
        "avg_pool": lambda: f.avg_pool2d(x, (2, 3)),
        "avg_pool_over": lambda: f.avg_pool2d(x, 3, 2, 1),
        "avg_pool_inside": lambda: f.avg_pool2d(x, (3, 4), (2, 3), (1, 2), ceil_mode=True, count_include_pad=False),
        "avg_pool_ceil": lambda: f.avg_pool2d(x, 2, 2, 1, ceil_mode=True),
        "avg_pool_adaptive": lambda: f.adaptive_avg_pool2d(x, (3, 4)),
        "avg_pool_whole": lambda: f.adaptive_avg_pool2d(x, 1),
        "nearest": lambda: f.interpolate(x, (14, 27)),
        "nearest_odd": lambda: f.interpolate(x, (5, 13)),
        "bilinear": lambda: f.interpolate(x, (10, 5), mode="bilinear"),
        "bilinear_align": lambda: f.interpolate(x, (4, 20), mode="bilinear", align_corners=True),
    }
    for name, of in cases.items():
        y, *places = of() if "max" in name else (of(),)
        grad = torch.autograd.grad(y, x, series(y.numel(), 1.0, -0.5).reshape(y.shape))[0]
        emit("torch_" + name, torch.cat([v.detach().double().reshape(-1) for v in (y, grad, *places)]), "result, gradient, places")


def norms():
    """Results, the gradients of x, w and b for a gradient of series(..., 1, -0.5), and the running moments."""
    f = torch.nn.functional
    x = series(4 * 6 * 2 * 3, 2.0, -0.7).reshape(4, 6, 2, 3).requires_grad_()
    w, b = series(6, 1.0, 0.3).requires_grad_(), series(6, -0.8, 0.1).requires_grad_()
    w2, b2 = series(6, 1.0, 0.3).reshape(2, 3).requires_grad_(), series(6, -0.8, 0.1).reshape(2, 3).requires_grad_()
    mean, var = series(6, 1.0, -0.5), series(6, 1.0, 0.5)
    rms = lambda x: x * torch.rsqrt((x * x).mean((-2, -1), keepdim=True) + 1e-3) * w2
    cases = {
        "batch_norm": (lambda: f.batch_norm(x, mean, var, w, b, True, 0.3, 1e-3), [x, w, b]),
        "batch_norm_eval": (lambda: f.batch_norm(x, mean, var, w, b, False, 0.3, 1e-3), [x, w, b]),
        "batch_norm_plain": (lambda: f.batch_norm(x, None, None, None, None, True), [x]),
        "layer_norm": (lambda: f.layer_norm(x, (2, 3), w2, b2, 1e-3), [x, w2, b2]),
        "layer_norm_plain": (lambda: f.layer_norm(x, (6, 2, 3)), [x]),
        "group_norm": (lambda: f.group_norm(x, 3, w, b, 1e-3), [x, w, b]),
        "instance_norm": (lambda: f.instance_norm(x, weight=w, bias=b, eps=1e-3), [x, w, b]),
        "rms_norm": (lambda: rms(x), [x, w2]),
    }
    for name, (of, leaves) in cases.items():
        y = of()
        grads = torch.autograd.grad(y, leaves, series(y.numel(), 1.0, -0.5).reshape(y.shape))
        emit("torch_" + name, torch.cat([v.detach().reshape(-1) for v in (y, *grads, mean, var)]), "result, gradients, moments")



def main():
    print("// Written by torch_values.py with PyTorch", torch.__version__.split("a")[0])
    print()
    for name, make, note, *shape in OPTIMIZERS:
        emit(name, trajectory(make, *shape), f"{note}: after steps 1, 2, 5, 10 and 20" + (" of 5 parameters" if not shape else ""))
    schedules()
    network()
    losses()
    curves()
    convolutions()
    pools()
    norms()


main()
