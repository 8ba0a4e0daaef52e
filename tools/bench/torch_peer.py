#!/usr/bin/env python3
"""Runs the cases of a bench JSON file through PyTorch and prints the ratio for each row.

    bench --json ours.json && tools/bench/torch_peer.py ours.json [--device cuda|cpu] [--threads N]

Same shapes and dtypes, random data, median of 21 batches of about 20 ms, one wait at a batch's end.
Ratio: PyTorch's time over gpunum's, so more than 1 means gpunum is faster.
"""
import argparse
import json
import statistics
import time

import torch


def matrix(dtype, batch, rows, columns, turned, device):
    shape = (columns, rows) if turned else (rows, columns)
    a = torch.randn(*((batch,) if batch else ()), *shape, device=device).to(dtype)
    return a.transpose(-1, -2) if turned else a


def transform_shape(row):
    """Of the complex or real input of a Fourier transform."""
    m, n, k = row["m"], row["n"], row["k"]
    if k > 1:
        return (m,) * k
    return (n, m // 2 + 1 if row["name"].startswith("c2r") else m)


def transform_runner(row, device):
    kind, wide = row["name"][:3], "float64" in row["name"]
    real, number = (torch.float64, torch.complex128) if wide else (torch.float32, torch.complex64)
    a = torch.randn(*transform_shape(row), device=device, dtype=real if kind == "r2c" else number)
    if row["k"] > 1:
        return lambda: torch.fft.fftn(a)
    return {"c2c": lambda: torch.fft.fft(a), "r2c": lambda: torch.fft.rfft(a),
            "c2r": lambda: torch.fft.irfft(a, row["m"])}[kind]


def pocketfft_runner(row, threads):
    """SciPy's own pocketfft (in C++, with its vectors and threads), or None."""
    try:
        import numpy
        import scipy.fft
    except ImportError:
        return None
    kind, shape, wide = row["name"][:3], transform_shape(row), "float64" in row["name"]
    a = numpy.random.default_rng(1).standard_normal(shape, dtype=numpy.float64 if wide else numpy.float32)
    if kind != "r2c":
        a = a.astype(numpy.complex128 if wide else numpy.complex64)
    # More workers than transforms bring nothing: it has no threads inside of one.
    if row["k"] > 1:
        return lambda: scipy.fft.fftn(a, workers=threads)
    workers = min(threads, row["n"])
    return {"c2c": lambda: scipy.fft.fft(a, workers=workers), "r2c": lambda: scipy.fft.rfft(a, workers=workers),
            "c2r": lambda: scipy.fft.irfft(a, row["m"], workers=workers)}[kind]


def index_runner(row, device):
    m = row["m"]
    a, b = torch.randn(m, device=device), torch.randn(m, device=device)
    places = torch.randint(0, m, (m,), device=device)
    mask = a > 0
    even, inner = b[::2], b.view(-1, 1000)[:, 1:-1]
    return {
        "gather": lambda: a[places],
        "scatter_add": lambda: a.scatter_add(0, places, b),
        "put_along": lambda: a.scatter(0, places, b),
        "assign ::2": lambda: even.copy_(a[:even.numel()]),
        "assign rows": lambda: inner.copy_(a.view(-1, 1000)[:, 1:-1]),
        "compress": lambda: a[mask],
        "flatnonzero": lambda: torch.nonzero(mask),
        "concat": lambda: torch.cat((a, b)),
        "pad": lambda: torch.nn.functional.pad(a, (5, 5)),
        "roll": lambda: torch.roll(a, m // 3),
        "tile": lambda: torch.tile(a, (2,)),
        "where mask": lambda: b.masked_fill_(mask, 1.5),
    }[row["name"].rsplit(" ", 1)[0]]


def image_runner(row, device):
    f = torch.nn.functional
    op, sizes, what, *mode = row["name"].split()
    torch.backends.cudnn.allow_tf32 = bool(mode)  # which gpunum's other precisions are compared with
    n, c, side, out, kernel, stride, groups = map(int, sizes.split(","))
    x = torch.randn(n, c, side, side, device=device, requires_grad=True)
    w = torch.randn(out, c // groups, kernel, kernel, device=device, requires_grad=True)
    scale, shift = (torch.ones(c, device=device, requires_grad=True) for _ in range(2))
    forward, leaves = {
        "conv2d": (lambda: f.conv2d(x, w, None, stride, kernel // 2, 1, groups), (x, w)),
        "max_pool2d": (lambda: f.max_pool2d(x, kernel), (x,)),
        "avg_pool2d": (lambda: f.avg_pool2d(x, kernel), (x,)),
        "batch_norm": (lambda: f.batch_norm(x, None, None, scale, shift, True), (x, scale, shift)),
        "group_norm": (lambda: f.group_norm(x, 8, scale, shift), (x, scale, shift)),
        "layer_norm": (lambda: f.layer_norm(x, x.shape[1:]), (x,)),
    }[op]

    def gradients():
        with torch.enable_grad():
            y = forward()
            return torch.autograd.grad((y * y).sum(), leaves)

    return gradients if what == "gradients" else forward


def rows_runner(row, device):
    f = torch.nn.functional
    op, dtype, sizes, what = row["name"].split()
    m, n = map(int, sizes.split("x"))
    x, w, b, gy = (t.to(getattr(torch, dtype)) for t in (torch.randn(m, n, device=device), torch.ones(n, device=device),
                                                         torch.zeros(n, device=device), torch.randn(m, n, device=device)))
    for t in (x, w, b):
        t.requires_grad_()
    forward, leaves = {
        "layer_norm": (lambda: f.layer_norm(x, (n,), w, b), (x, w, b)),
        "rms_norm": (lambda: f.rms_norm(x, (n,), w, 1e-5), (x, w)),
        "softmax": (lambda: torch.softmax(x, -1), (x,)),
    }[op]

    def gradients():
        with torch.enable_grad():
            return torch.autograd.grad((forward() * gy).sum(), leaves)

    return gradients if what == "gradients" else forward


def train_runner(row, device):
    f = torch.nn.functional
    op, m, n = row["name"].split()[0], row["m"], row["n"]
    if not op.startswith("cross_entropy"):
        raise RuntimeError("no peer")
    x = torch.randn(m, n, device=device, requires_grad=True)
    labels = torch.randint(0, n, (m,), device=device)
    smoothing = 0.1 if op.endswith("_with") else 0.0

    def gradients():
        with torch.enable_grad():
            return torch.autograd.grad(f.cross_entropy(x, labels, label_smoothing=smoothing), x)

    return gradients


def attention(q, k, v, causal, masked, dropout):
    """PyTorch's fused one, or where it is older than that its formula."""
    n = k.shape[-2]
    seen = torch.linspace(n // 2, n, len(k), device=k.device).reshape(-1, 1, 1, 1)
    mask = torch.arange(n, device=k.device) < seen if masked else None
    if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
    s = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1), float("-inf"))
    if masked:
        s = s.masked_fill(~mask, float("-inf"))
    return torch.dropout(torch.softmax(s, -1), dropout, True) @ v


def wide_runner(row, device):
    a, b = (torch.randn(row["m"], dtype=torch.float64, device=device) for _ in range(2))
    size, whole = a.abs(), torch.randint(0, 1000, (row["m"],), device=device)
    ops = {
        "add": lambda: a + b,
        "exp": lambda: torch.exp(a),
        "log": lambda: torch.log(size),
        "sin": lambda: torch.sin(a),
        "tanh": lambda: torch.tanh(a),
        "sinh": lambda: torch.sinh(a),
        "cosh": lambda: torch.cosh(a),
        "greater": lambda: a > b,
        "sum": lambda: a.sum(),
        "max": lambda: a.max(),
        "int64 to float32": lambda: whole.float(),
        "float64 to int32": lambda: a.int(),
        "cumsum of int64": lambda: whole.cumsum(0),
        "bincount with weights": lambda: torch.bincount(whole, a, 1000),
    }
    return ops[row["name"].rsplit(" ", 1)[0]]


def half_runner(row, device):
    op, dtype, _ = row["name"].rsplit(" ", 2)
    a = torch.randn(row["m"], device=device).to(getattr(torch, dtype))
    return {
        "relu": lambda: torch.relu(a),
        "exp": lambda: torch.exp(a),
        "tanh": lambda: torch.tanh(a),
        "silu": lambda: torch.nn.functional.silu(a),
        "gelu": lambda: torch.nn.functional.gelu(a),
        "25 rows turned": lambda: a.reshape(25, -1).t().contiguous(),
    }[op]


def dtypes_runner(row, device):
    op, dtype, n = row["name"].rsplit(" ", 2)
    n, dtype = int(n), getattr(torch, dtype)
    rounds = dtype.is_complex or dtype.is_floating_point

    def numbers(*shape):
        if rounds:
            return torch.randn(*shape, device=device).to(dtype)
        return torch.randint(0, 100, shape, device=device).to(dtype)

    a, b, row_of, column = numbers(n, n), numbers(n, n), numbers(n), numbers(n, 1)
    # Its mean is of floating-point numbers alone.
    mean = (lambda: a.mean()) if rounds else (lambda: a.sum().float() / a.numel())
    return {
        "add": lambda: a + b,
        "neg": lambda: -a,
        "add a row": lambda: a + row_of,
        "add a column": lambda: a + column,
        "mean": mean,
        "sum of rows": lambda: a.sum(1),
        "sum of columns": lambda: a.sum(0),
        "any of columns": lambda: a.any(0),
        "max of rows": lambda: a.amax(1),
        "max of columns": lambda: a.amax(0),
        "argmax of rows": lambda: a.argmax(1),
        "prod of rows": lambda: a.prod(1),
        "cumsum of rows": lambda: a.cumsum(1),
        "cumprod of rows": lambda: a.cumprod(1),
    }[op]


def sequence_runner(row, device):
    op, dtype, sizes, *words = row["name"].split()
    batch, heads, n, size = map(int, sizes.split(","))
    dtype = getattr(torch, dtype)
    if heads:
        leaves = tuple(torch.randn(batch, heads, n, size, device=device).to(dtype).requires_grad_() for _ in range(3))
        forward = lambda: attention(*leaves, "causal" in words, "masked" in words, 0.1 if "dropped" in words else 0.0)
    else:
        net = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[op](size, size, bias=False).to(device)
        leaves = (torch.randn(n, batch, size, device=device).requires_grad_(), *net.parameters())
        forward = lambda: net(leaves[0])[0]
    w = torch.randn_like(forward())

    def gradients():
        with torch.enable_grad():
            return torch.autograd.grad((forward() * w).sum(), leaves)

    return gradients if "gradients" in words else forward


def step_runner(row, device):
    if "mlp" not in row["name"]:
        raise RuntimeError("no peer")
    width = [int(w) for w in row["name"].split()[1].split("-")]
    layers = [torch.nn.Linear(a, b) for a, b in zip(width, width[1:])]
    net = torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.ReLU())][:-1]).to(device)
    optimizer = torch.optim.Adam(net.parameters(), fused=device == "cuda")
    x, labels = torch.rand(row["m"], width[0], device=device), torch.randint(0, width[-1], (row["m"],), device=device)

    def step():
        with torch.enable_grad():
            torch.nn.functional.cross_entropy(net(x), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def runner(row, device):
    """A function that does the row's op once."""
    m, n, k = row["m"], row["n"], row["k"]
    name = row["name"]
    if row["family"] == "fft":
        return transform_runner(row, device)
    if row["family"] == "index":
        return index_runner(row, device)
    if row["family"] == "wide":
        return wide_runner(row, device)
    if row["family"] == "dtypes":
        return dtypes_runner(row, device)
    if row["family"] == "half":
        return half_runner(row, device)
    if row["family"] == "conv":
        return image_runner(row, device)
    if row["family"] == "rows":
        return rows_runner(row, device)
    if row["family"] == "train":
        return train_runner(row, device)
    if row["family"] == "sequence":
        return sequence_runner(row, device)
    if row["family"] == "step":
        return step_runner(row, device)
    if row["family"] == "fusions":
        raise RuntimeError("no peer")
    if row["family"] == "matmul":
        dtype = getattr(torch, name.split()[0])
        batch, turned = row.get("batch", 0), row.get("turned", 0)
        a = matrix(dtype, batch, m, k, turned & 1, device)
        b = matrix(dtype, batch, k, n, turned & 2, device)
        # What gpunum's fast mode is compared with.
        torch.backends.cuda.matmul.allow_tf32 = " fast " in name
        return lambda: a @ b
    shape = (m, n) if name.endswith("^2") else (m,)
    a = torch.randn(*shape, device=device)
    b = torch.randn(*shape, device=device)
    ops = {
        "copy": lambda: a.clone(),
        "add": lambda: a + b,
        "sin": lambda: torch.sin(a),
        "exp": lambda: torch.exp(a),
        "tanh": lambda: torch.tanh(a),
        "sigmoid(sin(a)*b+a)": lambda: torch.sigmoid(torch.sin(a) * b + a),
        "sum": lambda: a.sum(),
        "max": lambda: a.max(),
        "var": lambda: a.var(unbiased=False),
        "argmax": lambda: a.argmax(),
        "uniform": lambda: torch.rand(m, device=device),
        "normal": lambda: torch.randn(m, device=device),
        "exponential": lambda: torch.empty(m, device=device).exponential_(),
        "gamma(2)": lambda: torch._standard_gamma(torch.full((m,), 2.0, device=device)),
        "permutation": lambda: torch.randperm(m, device=device),
        "lgamma": lambda: torch.lgamma(a),
        "sum of rows": lambda: a.sum(1),
        "sum of columns": lambda: a.sum(0),
        "softmax": lambda: torch.softmax(a, -1),
        "transpose": lambda: a.t().contiguous(),
        "cumsum": lambda: a.cumsum(0),
        "cumsum of rows": lambda: a.cumsum(1),
        "cumsum of columns": lambda: a.cumsum(0),
        "sort": lambda: a.sort()[0],
        "sort of rows": lambda: a.sort(1)[0],
        "argsort": lambda: a.argsort(stable=True),
        "topk(100)": lambda: a.topk(100),
        "median": lambda: a.median(),
        "histogram(100)": lambda: torch.histc(a, 100, -4, 4),
    }
    return ops[name.rsplit(" ", 1)[0]]


def seconds(op, device):
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)

    def batch(reps):
        start = time.perf_counter()
        for _ in range(reps):
            op()
        wait()
        return time.perf_counter() - start

    for _ in range(3):
        batch(1)
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.2:  # raises the GPU's clock
        batch(8)
    reps = 1
    while (spent := batch(reps)) < 0.01 and reps < 1 << 20:
        reps = int(reps * (1 + 0.02 / (spent + 1e-6)))
    begin = time.perf_counter()
    samples = []
    while len(samples) < 21 and (len(samples) < 3 or time.perf_counter() - begin < 1.2):
        samples.append(batch(reps) / reps)
    return statistics.median(samples)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json")
    parser.add_argument("--markdown", help="also write the table to this file, as notes/ has them")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    with open(args.file) as f:
        ours = json.load(f)
    print(f"gpunum on {ours['device']}, PyTorch {torch.__version__} on {args.device}")
    print(f"{'case':36} {'gpunum us':>12} {'PyTorch us':>12} {'ratio':>7}")
    rows = []
    with torch.no_grad():
        for row in ours["rows"]:
            try:
                peer = seconds(runner(row, args.device), args.device)
            except RuntimeError as e:
                print(f"{row['family'] + ' ' + row['name']:36} {row['seconds'] * 1e6:12.2f}  PyTorch: {e}")
                continue
            rows.append({**row, "torch_seconds": peer})
            also = ""
            if row["family"] == "fft" and args.device == "cpu":
                pocketfft = pocketfft_runner(row, args.threads or torch.get_num_threads())
                if pocketfft:
                    rows[-1]["pocketfft_seconds"] = seconds(pocketfft, "cpu")
                    also = f"  pocketfft {rows[-1]['pocketfft_seconds'] / row['seconds']:.2f}"
            print(f"{row['family'] + ' ' + row['name']:36} {row['seconds'] * 1e6:12.2f} {peer * 1e6:12.2f} "
                  f"{peer / row['seconds']:7.2f}{also}", flush=True)
    if args.markdown:
        with open(args.markdown, "w") as f:
            f.write("| case | gpunum | | PyTorch | ratio |\n|---|---:|---:|---:|---:|\n")
            for row in rows:
                work = (f"{row['gflops']:.0f} GFLOP/s" if row["family"] in ("matmul", "fft", "sequence") or row["name"].startswith("conv2d")
                        else f"{row['gbps']:.0f} GB/s")
                f.write(f"| {row['family']} {row['name']} | {row['seconds'] * 1e6:.1f} us | {work} | "
                        f"{row['torch_seconds'] * 1e6:.1f} us | "
                        f"{row['torch_seconds'] / row['seconds']:.2f} |\n")
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"device": ours["device"], "torch": torch.__version__, "rows": rows}, f, indent=1)


if __name__ == "__main__":
    main()
