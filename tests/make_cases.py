#!/usr/bin/env python3
"""Writes the cases that tests compare with NumPy.

    make_cases.py print FILE      arrays and their repr, for test_print.c
    make_cases.py ops FILE        ops, operands and results, for test_ops.c
    make_cases.py create FILE     sequences, for test_create.c
    make_cases.py random FILE     Philox numbers, for test_random.c
    make_cases.py views FILE      chains of views and joins, for test_views.c
    make_cases.py arrays FILE     arrangements, statistics and products, for test_arrays.c
    make_cases.py order FILE      scans, sorts and what stands on them, for test_order.c
    make_cases.py index FILE      gathers, scatters and masks, for test_index.c
    make_cases.py npy FILE        .npy files beside a list of them, for test_io.c
    make_cases.py npy_check FILE  checks what test_io.c saved; npz, npz_check, csv, csv_check, safetensors_check as well
    make_cases.py random_check FILE  tests the distributions that test_random.c saved
    make_cases.py trace_check FILE  checks what test_profile.c saved
"""
import itertools
import os
import re
import struct
import sys

import numpy as np

DTYPES = ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64', 'uint8', 'int8', 'uint32', 'bool',
          'complex64', 'complex128', 'int16', 'uint16', 'uint64']
CODE = {name: i for i, name in enumerate(DTYPES)}
NUMPY = tuple(int(n) for n in np.__version__.split('.')[:2])


def text(s):
    data = s.encode()
    return struct.pack('<i', len(data)) + data


def array(a):
    """dtype, rank, shape, bytes in C order"""
    return (struct.pack('<ii', CODE[a.dtype.name], a.ndim) + struct.pack('<%dq' % a.ndim, *a.shape)
            + np.ascontiguousarray(a).tobytes())


# --- printing ------------------------------------------------------------------------------------

def print_arrays(rng):
    f = lambda *v: np.array(v, dtype=np.float64)
    yield from (np.array(x) for x in (0, -0.0, 1, 0.1, 1e8, 1e-5, 123456.789, np.nan, np.inf, -np.inf))
    lists = [f(), f(1), f(1, 2, 3), f(0.1, 0.25, 100), f(1e8, 1), f(99999999, 1e5), f(1e-4, 1), f(9.9e-5, 1), f(1000, 1),
             f(1001, 1), f(1, np.nan), f(np.nan, np.inf), f(-np.inf, np.inf), f(-np.inf), f(np.nan), f(0, 0), f(0, -0.0),
             f(1e10, np.nan, -np.inf), f(-1.5, 2), f(1e300, 1e-300), f(5e-324), f(1.7976931348623157e308), f(1 / 3, 2 / 3),
             f(0.1 + 0.2), f(1e100, -1e100), f(1e-100, 1e100, np.inf), f(123456789.123, 0.5), f(2.0 ** -44, 2.0 ** 60),
             f(9007199254740993.0), f(0.00012345678912345), f(99999.999999999, 100), f(0.999999999), f(0.9999999949),
             f(1e22, 1e23), f(9.5, 99.5), f(-0.0, 1e9), f(0.0001, 0.00010001), f(1e-5, 0), f(100000000), f(12345678.9)]
    for a in lists:
        yield a
        if (~np.isfinite(a) | (np.abs(a) < 6e4)).all():
            yield a.astype(np.float16)
        if np.all(~np.isfinite(a) | (np.abs(a) < 3e38)):
            yield a.astype(np.float32)
    for shape in [(3,), (7,), (2, 3), (3, 1, 4), (2, 2, 2, 2), (20,), (30,), (13, 9), (1, 1), (50, 3), (999,), (1000,),
                  (1001,), (40, 40), (12, 10, 10), (3, 500), (500, 3), (7, 7, 21), (2, 2, 300), (0,), (0, 3), (2, 0, 4),
                  (5, 5, 5, 9)]:
        yield rng.standard_normal(shape)
        yield rng.standard_normal(shape).astype(np.float32)
        yield (rng.standard_normal(shape) * 10).astype(np.float16)
        yield np.exp(rng.standard_normal(shape) * 6).astype(np.float32)
        yield rng.integers(-1000, 1000, shape).astype(np.float32)
        yield rng.integers(-3, 300, shape).astype(np.int32)
        yield rng.integers(-2 ** 62, 2 ** 62, shape)
        yield rng.integers(0, 256, shape).astype(np.uint8)
        yield rng.integers(-128, 128, shape).astype(np.int8)
        yield rng.integers(-2 ** 15, 2 ** 15, shape).astype(np.int16)
        yield rng.integers(0, 2 ** 16, shape).astype(np.uint16)
        yield rng.integers(0, 2 ** 64, shape, dtype=np.uint64)
        yield rng.integers(0, 2 ** 32, shape).astype(np.uint32)
        yield rng.integers(0, 2, shape).astype(bool)
        yield (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
        yield rng.standard_normal(shape) + 1j * np.exp(9 * rng.standard_normal(shape))
    yield np.array(True)
    yield np.array(-7, dtype=np.int8)
    yield np.array(1.5 - 2j)
    yield np.array([1 + 1j, np.nan + 1j, 1 - np.inf * 1j, complex(np.inf, np.nan)])
    yield np.array([1e9 + 1j, 3 - 1e-7j], dtype=np.complex64)
    # Every float16, and floats at and around powers of two, where the neighbours are unevenly near.
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    yield from halves[np.isfinite(halves)].reshape(-1, 1)
    for t, u in ((np.float32, np.uint32), (np.float64, np.uint64)):
        powers = np.exp2(np.arange(-149 if t is np.float32 else -1074, 128 if t is np.float32 else 1024)).astype(t)
        bits = powers.view(u)
        yield from np.concatenate([powers, (bits + u(1)).view(t), (bits - u(1)).view(t)]).reshape(-1, 1)
        random = rng.integers(0, 2 ** (8 * t().itemsize), 4000, dtype=u).view(t)
        yield from random[np.isfinite(random)].reshape(-1, 1)
        yield from np.exp(rng.standard_normal(2000) * 5).astype(t).reshape(-1, 4)
        yield from (10.0 ** rng.integers(-20, 20, 200)).astype(t).reshape(-1, 1)
        yield from np.round(rng.standard_normal(400) * 100, 2).astype(t).reshape(-1, 4)


def print_cases(path):
    rng = np.random.default_rng(1)
    options = [(0, 0, 0, 0), (3, 0, 0, 0), (1, 0, 0, 40), (0, 5, 1, 0), (17, 20, 2, 120), (4, 100000, 0, 30), (2, 10, 0, 0)]
    count, parts = 0, []
    for i, a in enumerate(print_arrays(rng)):
        chosen = options if i < 500 else options[:1] if i % 16 else [options[i // 16 % len(options)]]
        for precision, threshold, edge, width in chosen:
            with np.printoptions(precision=precision or 8, threshold=threshold or 1000, edgeitems=edge or 3,
                                 linewidth=width or 75):
                shown = repr(a)
            if NUMPY < (2, 0) and a.ndim and a.size and float_boundary(a) or NUMPY < (2, 3) and newly_scientific(a):
                continue
            if NUMPY < (2, 2) and (a.size > (threshold or 1000) or (a.size == 0 and a.ndim > 1)):
                shown = with_shape(shown, a.shape, width or 75)
            parts.append(struct.pack('<4i', precision, threshold, edge, width) + array(a) + text(shown))
            count += 1
    with open(path, 'wb') as f:
        f.write(struct.pack('<i', count))
        f.writelines(parts)


def with_shape(shown, shape, width):
    """The repr of a summarised or empty array as NumPy 2.2 and later have it, from an older one's"""
    body, _, dtype = re.fullmatch(r'(?s)(.*?)(,\s+(dtype=\w+))?\)', shown.replace(f', shape={shape}', '')).groups()
    more = ', '.join(filter(None, [f'shape={shape}', dtype])) + ')'
    last = len(body) + 1 - (body.rfind('\n') + 1)
    return body + ',' + ('\n      ' if last + len(more) + 1 > width else ' ') + more


def float_boundary(a):
    """NumPy 1 compares float32 numbers with the float64 limits of the notation."""
    if a.dtype not in (np.float32, np.float16):
        return False
    v = np.abs(a[np.isfinite(a) & (a != 0)])
    return bool(v.size) and bool(np.any(v == a.dtype.type(1e-4)))


def newly_scientific(a):
    """NumPy 2.3 writes numbers of short floats with an exponent from smaller ones on."""
    if a.dtype not in (np.float16, np.float32, np.complex64):
        return False
    limit = 1e3 if a.dtype == np.float16 else 1e6
    for part in (a.real, a.imag):
        v = np.abs(part[np.isfinite(part)]).astype(np.float64)
        if v.size and limit <= v.max() < 1e8:
            return True
    return False


# --- creation ------------------------------------------------------------------------------------

def to_bfloat16(a):
    """float64 to bfloat16 bits, rounded once, to nearest even"""
    f = a.astype(np.float32)
    with np.errstate(invalid='ignore'):
        up = np.abs(f.astype(np.float64)) > np.abs(a)
    bits = f.view(np.uint32).astype(np.int64) - up
    inexact = f.astype(np.float64) != a
    bits = np.where(np.isfinite(a), bits | inexact, bits)
    return np.where(np.isnan(a), 0x7fc0, (bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def typed(a, name):
    """dtype, rank, shape and bytes of a float64 array as dtype `name`"""
    if name == 'bfloat16':
        return struct.pack('<ii', CODE[name], a.ndim) + struct.pack('<%dq' % a.ndim, *a.shape) + to_bfloat16(a).tobytes()
    return array(a.astype(name))


def create_cases(path):
    rng = np.random.default_rng(4)
    parts = []
    ranges = [(0, 10, 1), (0, 1, 0.1), (1, 2, 0.1), (5, -5, -1.5), (0, 0, 1), (3, 1, 1), (-2.5, 2.5, 0.25), (0, 100, 7),
              (1e-3, 2e-3, 1e-4), (10, 0, -3), (0, 1, 1 / 3), (100, 27, -0.7)]
    ranges += [(rng.uniform(-50, 50), rng.uniform(-50, 50), rng.uniform(-3, 3)) for _ in range(40)]
    for start, stop, step in ranges:
        a = np.arange(start, stop, step)
        for name in DTYPES:
            if not (name.startswith('u') and a.size and a.min() < 0):
                parts.append(struct.pack('<i3dq', 0, start, stop, step, 0) + typed(a, name))
    spans = [(0, 1, 11), (0, 1, 1), (0, 1, 0), (2, 2, 5), (-1, 1, 3), (10, -10, 7), (0, 127, 128), (0.5, 99.5, 34),
             (0, 5e-324, 3), (1, 1e-9, 20)]
    spans += [(rng.uniform(-50, 50), rng.uniform(-50, 50), int(rng.integers(1, 40))) for _ in range(40)]
    for start, stop, count in spans:
        a = np.linspace(start, stop, count)
        for name in DTYPES:
            if not (name.startswith('u') and a.size and a.min() < 0):
                b = np.floor(a) if 'int' in name else a
                parts.append(struct.pack('<i3dq', 1, start, stop, 0, count) + typed(b, name))
    for n, m, k in [(3, 3, 0), (2, 5, 1), (5, 2, -1), (4, 4, 9), (4, 4, -9), (0, 3, 0), (3, 0, 0), (1, 1, 0), (3, 4, 3),
                    (3, 4, -2), (2, 2, 2 ** 62), (2, 2, -2 ** 62), (65, 70, 0), (70, 65, 3), (100, 67, -66), (67, 100, 99),
                    (67, 80, 2 ** 62), (80, 67, -2 ** 62), (65, 1000, 200)]:
        a = np.eye(n, m, int(np.clip(k, -200, 200)))
        for name in DTYPES:
            parts.append(struct.pack('<i3dq', 2, n, m, k, 0) + typed(a, name))
    with open(path, 'wb') as f:
        f.write(struct.pack('<i', len(parts)))
        f.writelines(parts)


# --- random --------------------------------------------------------------------------------------

def philox(seed, first, blocks):
    """Philox 4x32-10 (Salmon et al. 2011): words of blocks first, first + 1, ... with key `seed`"""
    n = (np.arange(blocks, dtype=np.uint64) + np.uint64(first))
    low = np.uint64(0xffffffff)
    c = [n & low, n >> np.uint64(32), np.zeros_like(n), np.zeros_like(n)]
    k = [seed & 0xffffffff, seed >> 32]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), p1 & low,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), p0 & low]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return np.stack(c, 1).ravel()


def random_cases(path):
    """A seed, then calls in a row; each takes the next blocks of the counter."""
    parts = []
    for seed in (0, 1, 12345678901234567890, 2 ** 64 - 1):
        at, calls = 0, []
        for kind, dtype, n, low, high in [
                ('rand', 'float32', 1, 0, 0), ('rand', 'float32', 7, 0, 0), ('rand', 'float64', 5, 0, 0),
                ('rand', 'float16', 9, 0, 0), ('rand', 'bfloat16', 9, 0, 0), ('randint', 'uint32', 8, 0, 2 ** 32),
                ('randint', 'int32', 33, -10, 10), ('randint', 'int64', 9, -2 ** 62, 2 ** 62),
                ('randint', 'uint8', 300, 0, 256), ('randint', 'int8', 3, -128, 128), ('randint', 'bool', 40, 0, 2),
                ('randint', 'int32', 1001, 0, 2 ** 20), ('randint', 'uint32', 1001, 5, 2 ** 20 + 6),
                ('randint', 'int32', 3, -2 ** 31, 2 ** 31), ('randint', 'int64', 7, 0, 3 * 2 ** 30),
                ('randn', 'float32', 1001, 0, 0), ('randn', 'float64', 101, 0, 0), ('rand', 'float32', 5000, 0, 0),
                ('randn', 'float32', 1, 0, 0), ('randint', 'int64', 5, 7, 8), ('rand', 'float32', 0, 0, 0),
                ('rand', 'float32', 3, 0, 0)]:
            size = np.dtype(dtype).itemsize if dtype != 'bfloat16' else 2
            pairs = high - low > 2 ** 20 if kind == 'randint' else size == 8
            per = 2 if pairs else 4
            w = philox(seed, at, 2 * n // per + 2)
            at += -(-n // per)
            wide = w[0::2] | w[1::2] << np.uint64(32)
            if kind == 'randint':
                span = high - low
                words, bits = (wide, 64) if pairs else (w, 32)
                a = np.array([low + (int(x) * span >> bits) for x in words[:n]], dtype=dtype)
                result = array(a)
            elif kind == 'rand':
                bits = {'float32': 24, 'float64': 53, 'float16': 11, 'bfloat16': 8}[dtype]
                words, width = (wide, 64) if size == 8 else (w, 32)
                a = (words[:n] >> np.uint64(width - bits)).astype(np.float64) * 2.0 ** -bits
                result = typed(a, dtype)
            else:  # Box and Muller; the angle is two signs, an exchange and a place within an octant
                words, width, place = (wide, 64, 50) if size == 8 else (w, 32, 23)
                words = words[:n + n % 2]
                u, b = words[0::2], words[1::2]
                u = 1 - (u >> np.uint64(11)) * 2.0 ** -53 if size == 8 else (u + 0.5) * 2.0 ** -32
                r = np.sqrt(-2 * np.log(u))
                shift = width - 3 - place
                t = ((b >> np.uint64(shift) & np.uint64(2 ** place - 1)) + 0.5) * 2.0 ** -place * np.pi / 4
                bit = lambda i: (b >> np.uint64(width - i)) & np.uint64(1) != 0
                x, y = np.where(bit(3), [np.cos(t), np.sin(t)], [np.sin(t), np.cos(t)])
                x, y = np.where(bit(1), -x, x), np.where(bit(2), -y, y)
                result = array(np.stack([r * x, r * y], 1).ravel()[:n].astype(dtype))
            calls.append(text(kind) + struct.pack('<qq', low, high) + result)
        parts.append(struct.pack('<Qi', seed, len(calls)) + b''.join(calls))
    with open(path, 'wb') as f:
        f.write(struct.pack('<i', len(parts)))
        f.writelines(parts)


# --- views ---------------------------------------------------------------------------------------

NONE = -2 ** 63


def view_subscript(rng, shape):
    """Text for a random basic index; now and then one that NumPy refuses."""
    items = []
    for n in shape:
        kind = rng.integers(0, 5)
        number = lambda lo, hi: str(rng.integers(lo, hi + 1))
        if kind == 0 and n > 0:
            items.append(number(-n, n - 1) if rng.integers(0, 30) else str(n))
        elif kind == 1:
            items.append(':')
        else:
            part = [number(-n - 2, n + 2) if rng.integers(0, 2) else '' for _ in range(2)]
            if rng.integers(0, 2):
                part.append(rng.choice(['', '1', '2', '-1', '-2', '-3', '7', '99999999999999999999', '-9223372036854775807']))
            items.append((' : ' if rng.integers(0, 4) == 0 else ':').join(part))
    if rng.integers(0, 3) == 0:
        cut = sorted(rng.integers(0, len(items) + 1, 2))
        items[cut[0]:cut[1]] = ['...']
    elif rng.integers(0, 2):
        items = items[:rng.integers(0, len(items) + 1)]
    if rng.integers(0, 4) == 0:
        items.insert(rng.integers(0, len(items) + 1), 'None')
    if rng.integers(0, 40) == 0:
        items += rng.choice(['...', '0', '1:2:0', 'x', '::', '1 2', '-'], 2).tolist()
    return rng.choice([', ', ',', ' , ']).join(items)


def view_reshape(rng, n, extra=0):
    """A random shape of n elements."""
    dims = []
    while n > 1 and len(dims) < 5:
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        dims.append(int(rng.choice(divisors)))
        n //= dims[-1]
    if n != 1 or not dims:
        dims.append(n)
    return dims


def view_step(rng, a):
    """One op: name, integer parameters, text, function."""
    rank = a.ndim
    axis = lambda r: int(rng.integers(-r, r)) if r else 0
    name = rng.choice(['reshape', 'ravel', 'permute', 'transpose', 'swap_axes', 'move_axis', 'expand_dims', 'squeeze',
                       'broadcast_to', 'slice', 'index', 'index', 'index', 'flip', 'concat', 'stack', 'take'])
    if name == 'reshape':
        shape = view_reshape(rng, a.size)
        if rng.integers(0, 3) == 0:
            shape[rng.integers(0, len(shape))] = -1
        if rng.integers(0, 40) == 0:
            shape.append(7)
        return name, shape, '', lambda: a.reshape(shape)
    if name == 'ravel':
        return name, [], '', lambda: a.ravel()
    if name == 'permute':
        axes = [int(x) - (rank if rng.integers(0, 2) else 0) for x in rng.permutation(rank)]
        if axes and rng.integers(0, 40) == 0:
            axes[0] = axes[-1]
        return name, axes, '', lambda: a.transpose(axes)
    if name == 'transpose':
        return name, [], '', lambda: a.T
    if name in ('swap_axes', 'move_axis'):
        p = [axis(rank), axis(rank) if rng.integers(0, 40) else rank]
        f = np.swapaxes if name == 'swap_axes' else np.moveaxis
        return name, p, '', lambda: f(a, *p)
    if name == 'expand_dims':
        p = [axis(rank + 1)]
        return name, p, '', lambda: np.expand_dims(a, p[0])
    if name == 'squeeze':
        axes = [i for i in range(rank) if a.shape[i] == 1 or rng.integers(0, 40) == 0]
        if not axes or rng.integers(0, 2) == 0:
            return name, [0], '', lambda: np.squeeze(a)
        chosen = tuple(int(rng.choice(axes)) - (rank if rng.integers(0, 2) else 0) for _ in range(1))
        return name, [axis_bits(chosen)], '', lambda: np.squeeze(a, chosen)
    if name == 'broadcast_to':
        shape = [int(rng.integers(0, 4)) if n == 1 else n for n in a.shape]
        for _ in range(rng.integers(0, 3)):
            shape.insert(0, int(rng.integers(0, 4)))
        if shape and rng.integers(0, 40) == 0:
            shape[-1] += 1
        return name, shape, '', lambda: np.broadcast_to(a, shape)
    if name == 'slice' and rank:
        i = axis(rank)
        n = a.shape[i]
        part = [NONE if rng.integers(0, 3) == 0 else int(rng.integers(-n - 2, n + 3)) for _ in range(2)]
        part.append(int(rng.choice([1, 1, 2, 3, -1, -2, -5, NONE, 2 ** 62, -2 ** 62, 0])))
        index = [slice(None)] * rank
        index[i] = slice(*(None if x == NONE else x for x in part))
        return name, [i] + part, '', lambda: a[tuple(index)]
    if name == 'index':
        t = view_subscript(rng, a.shape)
        return name, [], t, lambda: eval('a[%s]' % (t if t.strip() else '()'), {'a': a})
    if name == 'flip':
        axes = tuple(axis(rank) for _ in range(rng.integers(0, 3))) if rank else ()
        axes = tuple({x % rank: x for x in axes}.values())
        return name, [axis_bits(axes)], '', lambda: np.flip(a, axes or None)
    if name == 'concat':
        p = [axis(rank), int(rng.integers(1, 4))]
        return name, p, '', lambda: np.concatenate([np.flip(a), a, a][:p[1]], p[0])
    if name == 'stack':
        p = [axis(rank + 1), int(rng.integers(1, 4))]
        return name, p, '', lambda: np.stack([np.flip(a), a, a][:p[1]], p[0])
    if name == 'take' and rank:
        i = axis(rank)
        n = a.shape[i]
        p = [int(x) for x in rng.integers(-n, n, 4)] if n else [0, 0, 0, 0]
        if a.size and rng.integers(0, 40) == 0:
            p[2] = n
        shape = (4,) if rng.integers(0, 2) else (2, 2)
        return name, [i, len(shape)] + p, '', lambda: np.take(a, np.reshape(p, shape), i)
    return 'ravel', [], '', lambda: a.ravel()


def axis_bits(axes):
    return sum({1 << (a & 15) for a in axes})


def view_cases(path):
    rng = np.random.default_rng(3)
    count, parts = 0, []
    dtypes = [t for t in DTYPES if t != 'bfloat16']
    while count < 6000:
        shape = tuple(int(x) for x in rng.integers(0 if rng.integers(0, 8) == 0 else 1, 6, rng.integers(0, 5)))
        a = base = np.arange(int(np.prod(shape))).reshape(shape).astype(dtypes[count % len(dtypes)])
        steps, failed = [], False
        for _ in range(rng.integers(1, 5)):
            name, params, words, run = view_step(rng, a)
            steps.append(text(name) + struct.pack('<i%dq' % len(params), len(params), *params) + text(words))
            try:
                b = run()
            except (ValueError, IndexError, TypeError, SyntaxError, NameError):
                failed = True
                break
            if b.ndim > 8 or b.size > 20000:
                steps.pop()
                break
            a = b
        if not steps:
            continue
        result = struct.pack('<i', -1) if failed else array(a)
        parts.append(array(base) + struct.pack('<i', len(steps)) + b''.join(steps) + result)
        count += 1
    with open(path, 'wb') as f:
        f.write(struct.pack('<i', count))
        f.writelines(parts)


# --- ops -----------------------------------------------------------------------------------------
#
# A case: op, numbers, operands, result dtype, expected values as float64 or int64, and how far a result
# may be off: `ulp` units in the last place of the result's dtype, plus `slack` (absolute, per element).
# Expected values come from long double or exact arithmetic.

REAL = DTYPES[:10] + DTYPES[12:]
FLOATS = ['float32', 'float16', 'bfloat16', 'float64']
INTS = ['int32', 'int64', 'uint8', 'int8', 'uint32', 'int16', 'uint16', 'uint64']
BITS = {t: 8 * np.dtype(t).itemsize for t in INTS}
EPS = {'float32': 2.0 ** -23, 'float16': 2.0 ** -10, 'bfloat16': 2.0 ** -7, 'float64': 2.0 ** -52}
L = np.longdouble

# Flags: operands or results below the smallest normal number; zeros' signs count; one more of its kind, which
# slow devices leave out.
SUBNORMAL, ZERO_SIGN, MORE = 1, 2, 4


def is_float(t):
    return t in FLOATS


def promote(a, b):
    """gn_promote: the array API's rules, where a float wins over any integer"""
    if a == b:
        return a
    if a == 'bool':
        return b
    if b == 'bool':
        return a
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if is_float(a):
        return 'float64' if 'float64' in (a, b) else 'float32'
    return np.promote_types(a, b).name


def limits(t):
    if t == 'bool':
        return 0, 1
    return (0, 2 ** BITS[t] - 1) if t[0] == 'u' else (-2 ** (BITS[t] - 1), 2 ** (BITS[t] - 1) - 1)


def bfloat16_value(a):
    """The nearest bfloat16 values, as float64"""
    a = np.asarray(a, dtype=np.float64)
    bits = to_bfloat16(a.ravel()).astype(np.uint32) << np.uint32(16)
    return bits.view(np.float32).astype(np.float64).reshape(a.shape)


def rounded(a, t):
    """Values of dtype t nearest to `a`: float64 for floats, object integers (wrapped) for the rest"""
    with np.errstate(all='ignore'):
        if t == 'bfloat16':
            return bfloat16_value(a)
        if is_float(t):
            return np.asarray(a, dtype=np.float64).astype(t).astype(np.float64)
        if t == 'bool':
            return np.asarray(np.asarray(a) != 0, dtype=object) * 1
        low, high = limits(t)
        # NumPy's own integers overflow, Python's do not.
        wrap = np.frompyfunc(lambda x: ((int(x) if isinstance(x, np.integer) else x) - low) % (high - low + 1) + low, 1, 1)
        return np.asarray(wrap(np.asarray(a, dtype=object)), dtype=object)


class Values:
    """An operand: dtype and values, float64 for floats and exact integers for the rest"""

    def __init__(self, v, t):
        self.t = t
        self.v = rounded(v, t)
        self.shape = self.v.shape

    def packed(self):
        if self.t == 'bfloat16':
            return (struct.pack('<ii', CODE[self.t], self.v.ndim) + struct.pack('<%dq' % self.v.ndim, *self.shape)
                    + to_bfloat16(self.v).tobytes())
        return array(self.v.astype(self.t))

    def to(self, t):
        """As another dtype, the way gn_cast does it"""
        if self.t == t:
            return self.v
        if is_float(t):
            return rounded(self.v, t) if is_float(self.t) else rounded_int(self.v, t)
        if t == 'bool' or not is_float(self.t):
            return rounded(self.v, t)
        low, high = limits(t)
        return np.array([0 if x != x else low if x <= low else high if x >= high else int(x) for x in self.v.ravel()],
                        dtype=object).reshape(self.shape)


def rounded_int(v, t):
    """Exact integers to the nearest float of dtype t: through float64 with round-to-odd, so one rounding counts"""
    def odd(i):
        i = int(i)
        f = float(i)
        if int(f) != i and t != 'float64':
            f = np.float64(f)
            if abs(int(f)) > abs(i):
                f = np.nextafter(f, 0)
            if int(f) != i and not (f.view(np.uint64) & np.uint64(1)):
                f = np.nextafter(f, np.inf if f > 0 else -np.inf)
        return float(f)
    return rounded(np.array([odd(x) for x in v.ravel()], dtype=np.float64).reshape(v.shape), t)


class Cases:
    def __init__(self):
        self.parts = []
        self.flags = 0  # of all that are added

    def add(self, op, operands, result, expected, numbers=(), ulp=0.0, slack=None, flags=0):
        """`expected` None: refused with an error"""
        parts = [text(op), struct.pack('<ii%dd' % len(numbers), flags | self.flags, len(numbers), *[float(x) for x in numbers]),
                 struct.pack('<i', len(operands))] + [a.packed() for a in operands]
        if expected is None:
            parts.append(struct.pack('<i', -1))
        else:
            e = np.asarray(expected)
            parts.append(struct.pack('<i', CODE[result]))
            if is_float(result):
                # Halves are computed in float32 and rounded once more.
                if result in ('float16', 'bfloat16'):
                    ulp = 0.5 + ulp * EPS['float32'] / EPS[result] if ulp else 0.5
                with np.errstate(over='ignore'):
                    parts.append(array(e.astype(np.float64)))
            else:
                parts.append(array(np.array([(int(v) + 2 ** 63) % 2 ** 64 - 2 ** 63 for v in e.ravel()], np.int64).reshape(e.shape)))
            parts.append(struct.pack('<di', ulp, slack is not None))
            if slack is not None:
                slack = np.where(np.isfinite(slack), slack, 0.0)
                parts.append(np.ascontiguousarray(np.broadcast_to(slack, e.shape), dtype=np.float64).tobytes())
        self.parts.append(b''.join(parts))

    def write(self, path):
        with open(path, 'wb') as f:
            f.write(struct.pack('<i', len(self.parts)))
            f.writelines(self.parts)


def samples(rng, t, n=193):
    """Values that tend to be hard, and random ones; nothing below the smallest normal number"""
    if t == 'bool':
        return Values(rng.integers(0, 2, n), t)
    if not is_float(t):
        low, high = limits(t)
        special = [0, 1, 2, 3, 5, 7, 10, 100, high, high - 1, low, low + 1, high // 2] + [x for x in (-1, -2, -7) if low < 0]
        return Values(np.array(special + [int(rng.integers(-2 ** 40, 2 ** 40)) for _ in range(n // 2)]
                               + [int(x) for x in rng.integers(-20, 21, n)], dtype=object)[:n], t)
    special = [0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 1.5, 2.5, -2.5, 3, 10, -10, 100, -100, 1e-3, -1e-3, 1e4, -1e4, np.inf, -np.inf,
               np.nan, np.pi, np.pi / 2, -np.pi / 2, 0.9999, -0.9999, 1.0001, 88, 88.9, -87, 11.1, -16.7, 0.1, 1 / 3]
    if t != 'float16':
        special += [1e-8, -1e-8, 1e8, -1e8, 1e30, -1e30, 1e-30, 16777216, 8388607.5, 2147483648, 1e20, -103]
    if t == 'float64':
        special += [1e300, -1e300, 1e-300, 709.7, -745, 4503599627370497.5]
    random = np.concatenate([rng.standard_normal(n), rng.standard_normal(n) * 10, rng.uniform(-1, 1, n),
                             np.exp(rng.standard_normal(n) * (5 if t == 'float16' else 12))])
    v = rounded(np.concatenate([special, rng.permutation(random)])[:n], t)
    tiny = np.finfo('float32' if t == 'bfloat16' else t).tiny
    return Values(np.where((np.abs(v) < tiny) & (v != 0), tiny, v), t)


def normals(rng, t, shape, scale=1.0):
    if t == 'bool':
        return Values(rng.integers(0, 2, shape), t)
    if is_float(t):
        return Values(rng.standard_normal(shape) * scale, t)
    low = 0 if t[0] == 'u' else -9
    return Values(rng.integers(low, 10, shape).astype(object), t)


def phi(x):
    return scipy.special.ndtr(x)


def longs(f):
    return lambda *v: f(*[np.asarray(x, dtype=L) for x in v])


def with_limit(f, at, value):
    return lambda x: np.where(x == at, L(value), f(x))


# op: reference, bound in ulp of float32, bound in ulp of float64
UNARY_FLOAT = {
    'gn_sqrt': (np.sqrt, 0.5, 0.5), 'gn_rsqrt': (lambda x: 1 / np.sqrt(x), 2, 2), 'gn_cbrt': (np.cbrt, 4, 2),
    'gn_recip': (lambda x: 1 / x, 0.5, 0.5), 'gn_exp': (np.exp, 2, 2), 'gn_exp2': (np.exp2, 4, 2),
    'gn_expm1': (np.expm1, 4, 2), 'gn_log': (np.log, 2, 2), 'gn_log2': (np.log2, 4, 2), 'gn_log10': (np.log10, 4, 2),
    'gn_log1p': (np.log1p, 4, 2), 'gn_sin': (np.sin, 2, 2), 'gn_cos': (np.cos, 2, 2), 'gn_tan': (np.tan, 4, 2),
    'gn_asin': (np.arcsin, 4, 2), 'gn_acos': (np.arccos, 4, 2), 'gn_atan': (np.arctan, 4, 2), 'gn_sinh': (np.sinh, 4, 2),
    'gn_cosh': (np.cosh, 4, 2), 'gn_tanh': (np.tanh, 2, 2), 'gn_asinh': (np.arcsinh, 4, 2), 'gn_acosh': (np.arccosh, 4, 2),
    'gn_atanh': (np.arctanh, 4, 2), 'gn_erf': (lambda x: scipy.special.erf(x.astype(np.float64)), 2, 4),
    'gn_sigmoid': (lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))), 4, 4),
    'gn_silu': (with_limit(lambda x: x * np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))), -np.inf, -0.0), 5, 5),
    'gn_gelu': (with_limit(lambda x: x * phi(x.astype(np.float64)), -np.inf, -0.0), 4, None),
    'gn_softplus': (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), 4, 4),
}


def ops_unary_float(cases, rng):
    for op, (f, ulp32, ulp64) in UNARY_FLOAT.items():
        for t in REAL:
            result = t if is_float(t) else 'float32'
            a = samples(rng, t)
            if op == 'gn_gelu' and t == 'float64':  # the reference is no better than float64 itself
                a = Values(np.clip(a.v, -5, None), t)
            if op == 'gn_silu' and t == 'float64':  # a product with a subnormal number
                a = Values(np.where(a.v < -700, -700, a.v), t)
            x = a.to(result)
            e = longs(f)(x)
            ulp = ulp64 if result == 'float64' else ulp32
            cases.add(op, [a], result, e, ulp=ulp or 16, flags=ZERO_SIGN)
        tiny = np.array([1e-40, -1e-40, 1e-45, -1e-44, 1.1e-38, -5e-39])
        if op not in ('gn_acos', 'gn_cos', 'gn_cosh'):
            a = Values(tiny, 'float32')
            cases.add(op, [a], 'float32', longs(f)(a.v), ulp=ulp32, flags=SUBNORMAL | ZERO_SIGN)
        a = Values(tiny * 1e32, 'float16')  # float16's are ordinary numbers to the arithmetic
        cases.add(op, [a], 'float16', longs(f)(a.v), ulp=ulp32, flags=ZERO_SIGN)


def numpy_vectors(cases, rng):
    """NumPy's own vectors for these functions: hard numbers with results that were rounded once"""
    folder = os.path.join(os.path.dirname(np.__file__), 'core' if NUMPY < (2, 0) else '_core', 'tests', 'data')
    for op, (_, ulp32, ulp64) in UNARY_FLOAT.items():
        name = op[3:].replace('asin', 'arcsin').replace('acos', 'arccos').replace('atan', 'arctan')
        path = os.path.join(folder, f'umath-validation-set-{name}.csv')
        if not os.path.exists(path):  # of sqrt and a few more there are none
            continue
        with open(path) as f:
            rows = [line.split(',') for line in f if line.startswith('np.float')]
        for t in ('float32', 'float64'):
            bits = np.array([[int(x, 16) for x in row[1:3]] for row in rows if row[0] == 'np.' + t], dtype=np.uint64)
            v, e = (bits.astype('uint%d' % (8 * np.dtype(t).itemsize)).view(t).reshape(-1, 2).astype(np.float64).T
                    if len(bits) else np.zeros((2, 0)))
            subnormal = np.any([(np.abs(x) < np.finfo(t).tiny) & (x != 0) for x in (v, e)], axis=0)
            for which, flags in ((~subnormal, ZERO_SIGN), (subnormal, ZERO_SIGN | SUBNORMAL)):
                if which.any():
                    cases.add(op, [Values(v[which], t)], t, e[which], ulp=0.5 + (ulp64 if t == 'float64' else ulp32), flags=flags)


def int_map(f):
    return lambda *v: np.array([f(*[int(y) for y in x]) for x in zip(*[w.ravel() for w in v])], dtype=object).reshape(v[0].shape)


def rare(cases, rng):
    """Long functions against mpmath: of float64 within 4 units in the last place, shorter floats as elementwise_api.h says"""
    import mpmath
    mpmath.mp.dps = 40
    pi = mpmath.pi

    def lgamma(x):
        if x <= 0 and x == mpmath.floor(x):
            return mpmath.inf
        return mpmath.loggamma(x) if x > 0 else mpmath.log(pi / abs(mpmath.sinpi(x) * x)) - mpmath.loggamma(-x)

    def psi(x):
        return mpmath.nan if x <= 0 and x == mpmath.floor(x) else mpmath.psi(0, x)
    inf = float('inf')
    ends = {'gn_erfc': {inf: 0, -inf: 2}, 'gn_erfinv': {1: inf, -1: -inf}, 'gn_lgamma': {inf: inf, -inf: inf},
            'gn_digamma': {inf: inf, -inf: np.nan, 0: -inf}}
    table = {'gn_erfc': lambda x: mpmath.erfc(x) if abs(x) < 40 else 2 if x < 0 else 0, 'gn_erfinv': lambda x: mpmath.erfinv(x) if abs(x) < 1 else mpmath.nan, 'gn_lgamma': lgamma,
             'gn_digamma': psi}
    units = {'gn_erfc': 1.5, 'gn_erfinv': 2.5, 'gn_lgamma': 2, 'gn_digamma': 2.5}
    reflected = {'gn_lgamma': (2, 1), 'gn_digamma': (4, -1)}  # units of the largest part, its sign
    for op, f in table.items():
        for t in (*FLOATS, 'int16', 'bool'):
            a = samples(rng, t, 151)
            if op == 'gn_erfinv' and is_float(t):
                edge = 1 - np.array([2.0 ** -k for k in range(1, 54)])
                a = Values(np.concatenate([a.v, edge, -edge, rng.uniform(-1, 1, 60)]), t)
            elif is_float(t):
                if t == 'float64':  # odd integers to which a half cannot be added
                    a = Values(np.concatenate([a.v, -2.0 ** 52 - np.array([1, 2, 3, 2.0 ** 52 - 1])]), t)
                a = Values(np.concatenate([a.v, rng.uniform(-20, 20, 60), rng.uniform(0.9, 2.6, 30)]), t)
            if t == 'float32' and op != 'gn_erfinv':  # near roots and poles, and where forms change
                place = np.array([1.4616321449683623, 1, 2, 3, 0.47, 10.05, 4.085e36, *-np.arange(0.25, 12, 0.25)], 'f4').view('i4')
                more = (place[:, None] + np.array([-40, -3, -1, 0, 1, 2, 60])).astype('i4').view('f4').ravel()
                a = Values(np.concatenate([a.v, more, 10.0 ** rng.uniform(-44, 38, 60), -10.0 ** rng.uniform(-44, 8, 60)]), t)
            result = t if is_float(t) else 'float32'

            def one(x):
                x = float(x)
                if x != x:
                    return x
                if x in ends[op]:
                    return float(ends[op][x]) if op != 'gn_digamma' or x or not np.signbit(x) else inf
                try:
                    return float(f(mpmath.mpf(x)))
                except OverflowError:
                    return inf
            x = np.asarray(a.to(result), np.float64)
            # A float64 argument below -1 says too little of its fraction for reflected values: those are for float32.
            if t == 'float64' and op in ('gn_lgamma', 'gn_digamma'):
                a = Values(np.where((x < 0) & (x != np.floor(x)), np.maximum(np.round(x * 16) / 16, -300), x), t)
                x = np.asarray(a.v, np.float64)
            e = np.array([one(v) for v in x])
            size = np.where(np.isfinite(e), np.maximum(np.abs(e), 1), 0)
            slack = {'gn_lgamma': 4, 'gn_digamma': 8}.get(op, 0) * 2.0 ** -52 * size
            if t != 'float64' and op in reflected:
                count, sign = reflected[op]
                right = np.array([one(1 - v) if v < 0 and np.isfinite(v) else 0 for v in x])
                size = np.max([np.ones(len(x)), np.abs(e), np.abs(right), np.abs(e + sign * right)], axis=0)
                slack = np.where((x < 0) & np.isfinite(e) & np.isfinite(right), count * 2.0 ** -23 * size, slack)
            cases.add(op, [a], result, e, ulp=units[op] if result == 'float32' else 4 if t == 'float64' else 0.51, slack=slack + 1e-300)


def ops_bits(cases, rng):
    for t in (*INTS, 'bool'):
        a = samples(rng, t)
        cases.add('gn_invert', [a], t, rounded(int_map(lambda x: 1 - x if t == 'bool' else ~x)(a.v), t))
    cases.add('gn_invert', [samples(rng, 'float32')], 'float32', None)
    for t in ('float32', 'float16', 'float64'):
        v = np.concatenate([samples(rng, t, 99).v, [0, -0.0, np.finfo(t).tiny, -np.finfo(t).tiny, np.finfo(t).max, -np.finfo(t).max,
                                                    np.finfo(t).smallest_subnormal, -np.finfo(t).smallest_subnormal]])
        a, b = Values(v.reshape(-1, 1), t), Values(rng.permutation(v)[:20], t)
        with np.errstate(all='ignore'):
            e = np.where(a.v == b.v, b.v, np.nextafter(a.v.astype(t), b.v.astype(t)))  # NumPy's halves keep a's zero
        cases.add('gn_nextafter', [a, b], t, e.astype(np.float64), ulp=0, flags=SUBNORMAL | ZERO_SIGN)
    cases.add('gn_nextafter', [Values(np.array([1, 7]), 'int32'), Values(np.array([2.0, 0]), 'float32')], 'float32',
              np.nextafter(np.array([1, 7], 'f4'), np.array([2, 0], 'f4')).astype('f8'), ulp=0)
    cases.add('gn_nextafter', [Values(np.array([1.0, 1, 256]), 'bfloat16'), Values(np.array([2.0, 0, 1e9]), 'bfloat16')], 'bfloat16',
              np.array([1 + 2.0 ** -7, 1 - 2.0 ** -8, 258]), ulp=0)


# op: for floats, for integers
UNARY_ANY = {
    'gn_neg': (lambda x: -x, lambda x: -x), 'gn_abs': (np.abs, abs),
    'gn_sign': (lambda x: np.where(np.isnan(x), x, np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0))),
                lambda x: (x > 0) - (x < 0)),
    'gn_square': (lambda x: np.asarray(x, L) * x, lambda x: x * x), 'gn_floor': (np.floor, lambda x: x),
    'gn_ceil': (np.ceil, lambda x: x), 'gn_round': (np.rint, lambda x: x), 'gn_trunc': (np.trunc, lambda x: x),
    'gn_relu': (lambda x: np.where(np.isnan(x), x, np.where(x > 0, x, 0.0)), lambda x: max(x, 0)),
}
UNARY_BOOL = {
    'gn_isnan': (np.isnan, lambda x: 0), 'gn_isinf': (np.isinf, lambda x: 0), 'gn_isfinite': (np.isfinite, lambda x: 1),
    'gn_logical_not': (lambda x: x == 0, lambda x: x == 0),
}


def ops_unary_any(cases, rng):
    for table, truth in ((UNARY_ANY, False), (UNARY_BOOL, True)):
        for op, (f, i) in table.items():
            for t in REAL:
                a = samples(rng, t)
                if t == 'bool' and op == 'gn_neg':
                    cases.add(op, [a], t, None)
                    continue
                e = f(a.v) if is_float(t) else rounded(int_map(i)(a.v), 'bool' if truth else t)
                cases.add(op, [a], 'bool' if truth else t, e, ulp=0.5, flags=ZERO_SIGN if op != 'gn_relu' else 0)


def floor_div(a, b):
    """The exact floor. Quotients of nearly all the digits there are may be one off, as NumPy's are."""
    def one(x, y):
        if y == 0 or not (np.isfinite(x) and np.isfinite(y)):
            with np.errstate(all='ignore'):
                return np.floor_divide(np.float64(x), np.float64(y))
        q = fractions.Fraction(x) / fractions.Fraction(y)
        q = q.numerator // q.denominator
        if q == 0:
            return np.copysign(0.0, x / y)
        return float(q) if abs(q) < 2 ** 1024 else np.copysign(np.inf, 1 if q > 0 else -1)
    return np.array([one(float(x), float(y)) for x, y in zip(a.ravel(), b.ravel())]).reshape(a.shape)


def float_mod(a, b):
    return np.mod(np.asarray(a, L), np.asarray(b, L))


def int_floor_div(a, b):
    return a // b if b else 0


def int_mod(a, b):
    return a % b if b else 0


def shift_left(bits):
    return lambda a, b: a << b if 0 <= b < bits else 0


def shift_right(bits):
    return lambda a, b: a >> b if 0 <= b < bits else (-1 if a < 0 else 0)


BINARY_FLOAT = {
    'gn_div': (lambda a, b: np.asarray(a, L) / b, 0.5), 'gn_atan2': (longs(np.arctan2), 4), 'gn_hypot': (longs(np.hypot), 4),
}
# op: for floats, bound in ulp, for integers
BINARY_ANY = {
    'gn_add': (lambda a, b: np.asarray(a, L) + b, 0.5, lambda a, b: a + b),
    'gn_sub': (lambda a, b: np.asarray(a, L) - b, 0.5, lambda a, b: a - b),
    'gn_mul': (lambda a, b: np.asarray(a, L) * b, 0.5, lambda a, b: a * b),
    'gn_floor_div': (floor_div, 1, int_floor_div), 'gn_mod': (float_mod, 0.5, int_mod),
    'gn_pow': (longs(np.power), 4, None), 'gn_minimum': (np.minimum, 0, min), 'gn_maximum': (np.maximum, 0, max),
}
COMPARE = {
    'gn_eq': np.equal, 'gn_ne': np.not_equal, 'gn_lt': np.less, 'gn_le': np.less_equal, 'gn_gt': np.greater,
    'gn_ge': np.greater_equal, 'gn_logical_and': lambda a, b: (a != 0) & (b != 0),
    'gn_logical_or': lambda a, b: (a != 0) | (b != 0), 'gn_logical_xor': lambda a, b: (a != 0) ^ (b != 0),
}
BINARY_INT = {'gn_and': lambda a, b: a & b, 'gn_or': lambda a, b: a | b, 'gn_xor': lambda a, b: a ^ b}


def binary_dtype(op, t):
    """The dtype that the op computes in, from the promoted one; None where it is refused"""
    if op in BINARY_FLOAT:
        return t if is_float(t) else 'float32'
    if t == 'bool' and op in ('gn_floor_div', 'gn_mod', 'gn_pow', 'gn_shl', 'gn_shr'):
        return 'int8'
    if t == 'bool' and op == 'gn_sub' or is_float(t) and op in (*BINARY_INT, 'gn_shl', 'gn_shr'):
        return None
    return t


def binary_expected(op, x, y, t):
    """Result dtype, values and bound of op(x, y), both of dtype t already"""
    x, y = np.broadcast_arrays(x, y)
    with np.errstate(all='ignore'):
        if op in COMPARE:
            return 'bool', COMPARE[op](x, y).astype(bool), 0
        if op in BINARY_FLOAT:
            return t, BINARY_FLOAT[op][0](x, y), BINARY_FLOAT[op][1]
        if op in ('gn_shl', 'gn_shr'):
            return t, rounded(int_map((shift_left if op == 'gn_shl' else shift_right)(BITS[t]))(x, y), t), 0
        if op in BINARY_INT:
            return t, rounded(int_map(BINARY_INT[op])(x, y), t), 0
        f, ulp, i = BINARY_ANY[op]
        if is_float(t):
            return t, f(x, y), ulp
        if op == 'gn_pow':
            m = 2 ** 64 if t == 'bool' else 2 ** BITS[t]
            i = lambda a, b: pow(a, b, m)
        return t, rounded(int_map(i)(x, y), t), 0


def binary_case(cases, op, a, b, flags=0):
    t = binary_dtype(op, promote(a.t, b.t))
    if t is None:
        cases.add(op, [a, b], 'bool', None)
        return
    if op in COMPARE and a.t != b.t and t in ('float16', 'bfloat16'):
        t = 'float32'  # integers that they do not hold, as NumPy compares them
    exact = op in COMPARE and not is_float(a.t) and not is_float(b.t)  # uint64 with a signed dtype
    result, e, ulp = binary_expected(op, *((a.v, b.v) if exact else (a.to(t), b.to(t))), t)
    if t == 'float64' and ulp == 4:
        ulp = 2
    cases.add(op, [a, b], result, e, ulp=ulp, slack=floor_div_slack(op, t, e), flags=flags)


ALL_BINARY = [*BINARY_FLOAT, *BINARY_ANY, *COMPARE, *BINARY_INT, 'gn_shl', 'gn_shr']


def floor_div_slack(op, t, e):
    if not op.startswith('gn_floor_div') or not is_float(t):
        return None
    return np.where(np.abs(e) > 0.125 / EPS[t], 1.0, 0.0)


def second_operand(op, rng, b):
    if op in ('gn_pow', 'gn_shl', 'gn_shr') and not is_float(b.t) and b.t != 'bool':
        top = 9 if op == 'gn_pow' else BITS[b.t] + 2
        low = 0 if op == 'gn_pow' or b.t[0] == 'u' else -2
        return Values(rng.integers(low, top, b.shape).astype(object), b.t)
    return b


def ops_binary(cases, rng):
    for op in ALL_BINARY:
        for t in REAL:
            a, b = samples(rng, t, 61), second_operand(op, rng, samples(rng, t, 53))
            binary_case(cases, op, Values(a.v.reshape(61, 1), t), Values(b.v.reshape(1, 53), t))  # every pair
            binary_case(cases, op, a, second_operand(op, rng, Values(rng.permutation(a.v), t)))
    for op in ('gn_add', 'gn_lt', 'gn_ge', 'gn_eq', 'gn_ne', 'gn_div', 'gn_maximum', 'gn_floor_div', 'gn_xor'):
        for ta, tb in itertools.product(REAL, REAL):
            if ta != tb:
                binary_case(cases, op, samples(rng, ta, 61), samples(rng, tb, 61))
    shapes = [((), ()), ((), (3,)), ((1,), (5,)), ((0,), (1,)), ((4, 1), (3,)), ((2, 3, 4), (3, 1)), ((2, 1, 4), (1, 3, 1)),
              ((1, 1), ()), ((5, 0), (1, 1)), ((2, 3, 2, 3), (3, 1, 3)), ((7, 1, 5, 1, 3), (1, 6, 1, 2, 1)),
              ((2, 1, 2, 1, 2, 1, 2, 1), (2, 1, 2, 1, 2, 1, 2)), ((1031,), (1031,)), ((97, 89), (89,)), ((97, 89), (97, 1))]
    for sa, sb in shapes:
        for t in ('float32', 'float16', 'int32', 'uint8', 'float64'):
            a, b = normals(rng, t, sa), normals(rng, t, sb)
            binary_case(cases, 'gn_sub' if t != 'uint8' else 'gn_mul', a, b)
            binary_case(cases, 'gn_le', b, a)
    for sa, sb in [((3,), (4,)), ((2, 3), (2,)), ((2, 0), (3,)), ((2, 3), (2, 3, 1, 2))]:
        cases.add('gn_add', [normals(rng, 'float32', sa), normals(rng, 'float32', sb)], 'float32', None)


def scalar_dtype(t, s):
    if is_float(t):
        return t
    if s != np.floor(s) or not np.isfinite(s):
        return 'float32'
    return 'int32' if t == 'bool' and s not in (0, 1) else t


def ops_scalar(cases, rng):
    for op in ALL_BINARY + ['gn_rsub', 'gn_rdiv', 'gn_rpow']:
        for t in REAL:
            for s in (2, 0, 3, 1, 0.5, -1.25, -3, 1e-3, 200):
                if op in ('gn_pow', 'gn_rpow', 'gn_shl', 'gn_shr') and not is_float(t) and (s < 0 or s > 30):
                    continue
                a = samples(rng, t, 61)
                if op == 'gn_rpow':
                    a = second_operand('gn_pow', rng, a)
                base = {'gn_rsub': 'gn_sub', 'gn_rdiv': 'gn_div', 'gn_rpow': 'gn_pow'}.get(op, op)
                given = scalar_dtype(t, s)
                compute = binary_dtype(base, given)
                if compute is None:
                    cases.add(op + '_s', [a], 'bool', None, numbers=[s])
                    continue
                if not is_float(compute):
                    low, high = limits(compute)
                    # Comparisons see numbers that do not fit; bounds that change nothing may be such, the rest is refused.
                    if not low <= s <= high and op not in COMPARE:
                        harmless = op == ('gn_minimum' if s > high else 'gn_maximum')
                        cases.add(op + '_s', [a], compute, a.to(compute) if harmless else None, numbers=[s], ulp=0)
                        continue
                    scalar = np.array([int(s)], dtype=object)
                else:
                    scalar = Values(np.array([s]), compute).v
                x = a.to(compute)
                result, e, ulp = binary_expected(base, *((scalar, x) if op != base else (x, scalar)), compute)
                if compute == 'float64' and ulp == 4:
                    ulp = 2
                cases.add(op + '_s', [a], result, e, numbers=[s], ulp=ulp, slack=floor_div_slack(base, compute, e),
                          flags=0 if s in (2, 0.5) else MORE)
    for t in REAL:
        a = samples(rng, t)
        for low, high in ((-1.5, 2.5), (0, 1), (3, 3), (1, 0)):
            given = scalar_dtype(t, low)
            given = scalar_dtype(given, high)
            x = a.to(given)
            with np.errstate(all='ignore'):
                bounds = [Values(np.array([v if is_float(given) else int(v)], dtype=None if is_float(given) else object), given).v
                          for v in (low, high)]
                if (given[0] == 'u' or given == 'bool') and low < 0 or t == 'bool' and high > 1:
                    continue
                cases.add('gn_clamp', [a], given, np.minimum(np.maximum(x, bounds[0]), bounds[1]), numbers=[low, high], ulp=0)
        inf = float('inf')
        for low, high in ((-inf, inf), (-inf, 1), (1, inf), (-1e10, 1e10), (inf, inf), (-inf, -inf), (1e10, inf)):
            given = t if is_float(t) else 'int32' if t == 'bool' else t
            least, most = (-inf, inf) if is_float(given) else limits(given)
            fits = low <= most and high >= least
            bounds = [min(max(v, least), most) for v in (low, high)]
            bounds = [Values(np.array([v if is_float(given) else int(v)], dtype=None if is_float(given) else object), given).v
                      for v in bounds]
            with np.errstate(all='ignore'):
                e = np.minimum(np.maximum(a.to(given), bounds[0]), bounds[1]) if fits else None
            cases.add('gn_clamp', [a], given, e, numbers=[low, high], ulp=0)
        if is_float(t):
            slope, alpha = (Values(np.array([v]), t).v[0] for v in (0.01, 1.5))
            x = np.asarray(a.v, L)
            with np.errstate(all='ignore'):
                cases.add('gn_leaky_relu', [a], t, np.where(x > 0, x, x * slope), numbers=[0.01], ulp=0.5)
                # expm1 is rounded to the dtype before the product
                e = rounded(np.expm1(np.minimum(x, 0)), t) * L(alpha)
                cases.add('gn_elu', [a], t, np.where(x > 0, x, e), numbers=[1.5], ulp=5,
                          slack=np.where(np.isfinite(x), 1.5 * EPS[t] * np.abs(e).astype(float), 0))


def ops_ternary(cases, rng):
    for t in REAL:
        for c in ('bool', t):
            cond, a, b = normals(rng, c, (7, 1)), samples(rng, t, 61), samples(rng, t, 61)
            e = np.where(np.broadcast_to(cond.v != 0, (7, 61)), a.v, b.v)
            cases.add('gn_where', [cond, a, b], t, e, ulp=0, flags=ZERO_SIGN)
        a, b, c = normals(rng, t, (5, 1, 3)), normals(rng, t, (4, 1)), normals(rng, t, (3,))
        if is_float(t):
            e = np.asarray(a.v, L) * b.v + c.v
            cases.add('gn_fma', [a, b, c], t, e, ulp=0.5, slack=EPS[t] * np.abs(a.v * b.v))
            e = np.asarray(a.v, L) + np.asarray(c.v, L) * (np.asarray(b.v, L) - a.v)
            cases.add('gn_lerp', [a, b, c], t, e, ulp=0.5, slack=2 * EPS[t] * (np.abs(a.v) + np.abs(c.v) * (np.abs(a.v) + np.abs(b.v))))
        elif t != 'bool':
            cases.add('gn_fma', [a, b, c], t, rounded(a.v * b.v + c.v, t))
    for ta, tb in itertools.product(REAL, REAL):
        t = promote(ta, tb)
        cond, a, b = normals(rng, 'bool', (61,)), samples(rng, ta, 61), samples(rng, tb, 61)
        cases.add('gn_where', [cond, a, b], t, np.where(cond.v != 0, a.to(t), b.to(t)), ulp=0)


def ops_cast(cases, rng):
    for ta, tb in itertools.product(REAL, REAL):
        a = samples(rng, ta)
        cases.add('gn_cast', [a], tb, a.to(tb), numbers=[CODE[tb]], ulp=0 if ta == tb else 0.5, flags=ZERO_SIGN)
        if is_float(ta) and not is_float(tb):
            a = Values(rng.uniform(*(np.clip(limits(tb), -2e9, 2e9)), 61), ta)
            cases.add('gn_cast', [a], tb, a.to(tb), numbers=[CODE[tb]])
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float64)
    a = Values(halves, 'float16')
    for t in ('float32', 'float64', 'bfloat16', 'int32'):
        cases.add('gn_cast', [a], t, a.to(t), numbers=[CODE[t]], ulp=0.5, flags=ZERO_SIGN)
    # float32 and float64 midway between two halves, and next to that
    for t, step in (('float16', 2.0 ** -11), ('bfloat16', 2.0 ** -8)):
        v = np.concatenate([(1 + (2 * np.arange(64) + 1) * step) * s for s in (1, -1, 2.0 ** -14, 2.0 ** -20, 2.0 ** -24, 2.0 ** 14)])
        for source in ('float32', 'float64'):
            near = [v, np.nextafter(v.astype(source), np.array(1e9, source)), np.nextafter(v.astype(source), np.array(0, source))]
            a = Values(np.concatenate(near), source)
            e = a.to(t)
            cases.add('gn_cast', [a], t, e, numbers=[CODE[t]], ulp=0, flags=ZERO_SIGN)
    for n in (0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 1021, 4099):
        a = normals(rng, 'float32', (n,), 50)
        for t in ('float16', 'int8', 'bool'):
            cases.add('gn_cast', [a], t, a.to(t), numbers=[CODE[t]], ulp=0.5)


# --- reductions

ALL, KEEP, EMPTY = 0, 0x10000, 0x20000


def axes_of(bits, rank):
    if bits & EMPTY:
        return ()
    return tuple(range(rank)) if bits & 0xffff == 0 else tuple(i for i in range(rank) if bits >> i & 1)


def reduce_case(cases, op, a, bits, numbers=()):
    t, v = a.t, a.v
    axes, keep = axes_of(bits, v.ndim), bool(bits & KEEP)
    n = int(np.prod([v.shape[i] for i in axes]))
    k = dict(axis=axes, keepdims=keep)
    numbers = [bits] + list(numbers)
    x = np.asarray(v, L) if is_float(t) else v
    f = t if is_float(t) else 'float32'
    depth = 8 + np.log2(max(n, 1))
    eps = EPS['float64'] if f == 'float64' else EPS['float32']  # halves add up in float32
    with np.errstate(all='ignore'), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        if op in ('gn_min', 'gn_max'):
            e = None if n == 0 else (np.min if op == 'gn_min' else np.max)(v, **k)
            cases.add(op, [a], t, e, numbers=numbers)
        elif op in ('gn_any', 'gn_all'):
            cases.add(op, [a], 'bool', (np.any if op == 'gn_any' else np.all)(v != 0, **k), numbers=numbers)
        elif op == 'gn_count_nonzero':
            cases.add(op, [a], 'int64', np.sum(v != 0, **k), numbers=numbers)
        elif op in ('gn_sum', 'gn_prod') and not is_float(t):
            g = np.sum if op == 'gn_sum' else np.prod
            total = 'uint64' if t[0] == 'u' else 'int64'
            cases.add(op, [a], total, rounded(np.asarray(g(v.astype(object), **k), dtype=object), total), numbers=numbers)
        elif op == 'gn_sum':
            cases.add(op, [a], t, np.sum(x, **k), numbers=numbers, ulp=0.5, slack=depth * eps * np.sum(np.abs(v), **k))
        elif op == 'gn_prod':
            e = np.prod(x, **k)
            cases.add(op, [a], t, e, numbers=numbers, ulp=0.5, slack=n * EPS[t] * np.abs(e.astype(float)))
        elif op == 'gn_mean':
            x = np.asarray(v, L)
            cases.add(op, [a], f, np.sum(x, **k) / L(n), numbers=numbers, ulp=1,
                      slack=depth * eps * np.sum(np.abs(v.astype(float)), **k) / max(n, 1))
        elif op in ('gn_var', 'gn_std'):
            x = np.asarray(a.to(f), L)
            m = np.mean(x, axis=axes, keepdims=True)
            e = np.sum((x - m) ** 2, **k) / L(max(n - numbers[1], 0))
            slack = 4 * depth * eps * e.astype(float) + 4 * eps * eps * np.max(np.abs(x.astype(float)), initial=0) ** 2 * depth ** 2
            if op == 'gn_std':
                e, slack = np.sqrt(e), np.where(e > 0, slack / np.sqrt(np.maximum(e.astype(float), 1e-300)), np.sqrt(slack))
                slack = slack if f not in ('float16', 'bfloat16') else slack + EPS[f] * e.astype(float)
            cases.add(op, [a], f, e, numbers=numbers, ulp=1, slack=slack)
        elif op == 'gn_norm':
            x = np.asarray(a.to(f), L)
            e = np.sqrt(np.sum(x * x, **k))
            cases.add(op, [a], f, e, numbers=numbers, ulp=2, slack=depth * eps * e.astype(float))
        elif op == 'gn_logsumexp':
            x = np.asarray(a.to(f), L)
            m = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
            m = np.where(np.isfinite(m), m, 0)
            e = np.log(np.sum(np.exp(x - m), **k)) + (m if keep else np.squeeze(m, axes))
            cases.add(op, [a], f, e, numbers=numbers, ulp=1, slack=8 * eps * (1 + np.abs(e.astype(float))))


REDUCTIONS = ['gn_sum', 'gn_prod', 'gn_mean', 'gn_min', 'gn_max', 'gn_any', 'gn_all', 'gn_count_nonzero', 'gn_norm',
              'gn_logsumexp', 'gn_var', 'gn_std']


def ops_reduce(cases, rng):
    for op in REDUCTIONS:
        extra = [1] if op in ('gn_var', 'gn_std') else []
        for t in REAL:
            cases.flags = 0 if t in ('float32', 'float16', 'int32') and op not in ('gn_std', 'gn_count_nonzero') else MORE
            for shape in ((), (7,), (5, 3), (2, 3, 4), (3, 1, 5), (2, 3, 2, 3)):
                a = normals(rng, t, shape)
                if op == 'gn_prod' and not is_float(t):
                    a = Values(rng.integers(1, 4, shape).astype(object), t)
                whole = range(2 ** len(shape))
                for bits in whole if t in ('float32', 'int32') or len(shape) < 3 else rng.choice(whole, 2):
                    reduce_case(cases, op, a, int(bits) | (KEEP if rng.integers(0, 2) else 0), extra)
                reduce_case(cases, op, a, EMPTY | (KEEP if len(shape) == 3 else 0), extra)
        cases.flags = 0
        for t in ('float32', 'float16', 'float64', 'int32', 'bool', 'uint8'):
            for shape, bits in [((1009,), ALL), ((257, 33), 1), ((257, 33), 2), ((33, 257), 2), ((33, 257), 1), ((20, 13, 41), 2),
                                ((20, 13, 41), 5), ((70001,), ALL), ((2, 40000), 2), ((40000, 2), 1), ((300, 300), ALL)]:
                if np.prod(shape) > 20000 and (t not in ('float32', 'int32') or op not in ('gn_sum', 'gn_max', 'gn_var')):
                    continue
                a = normals(rng, t, shape, 0.1 if op == 'gn_prod' else 1)
                if op == 'gn_prod':
                    if np.prod(shape) > 9000:
                        continue
                    a = Values(np.where(rng.integers(0, 2, shape), 1, -1) * (1 if not is_float(t) else
                               np.exp(rng.standard_normal(shape) * 0.05)), t) if t not in ('bool', 'uint8') else a
                reduce_case(cases, op, a, bits, extra)
        for shape, bits in [((0,), ALL), ((0,), EMPTY), ((0, 3), 1), ((0, 3), 2), ((3, 0), 2), ((2, 0, 3), 5), ((2, 0, 3), 2)]:
            for t in ('float32', 'int64', 'bool'):
                if op == 'gn_mean' or op in ('gn_var', 'gn_std') or op == 'gn_logsumexp':
                    if t != 'float32':
                        continue
                reduce_case(cases, op, normals(rng, t, shape), bits, extra)
    for op in ('gn_sum', 'gn_min', 'gn_max', 'gn_mean', 'gn_any', 'gn_logsumexp'):
        for t in FLOATS:
            for v in ([1, np.nan, 2], [np.inf, 1], [-np.inf, 1], [np.inf, -np.inf], [np.nan, np.inf], [-np.inf, -np.inf]):
                reduce_case(cases, op, Values(np.array(v * 7), t), ALL)
    for t in REAL:  # a mean that float16 could not add up to, and integers beyond float32
        reduce_case(cases, 'gn_mean', Values(np.full((5000,), 100 if t != 'bool' else 1), t), ALL)
    reduce_case(cases, 'gn_sum', Values(np.full((3,), 2 ** 62, dtype=object), 'int64'), ALL)
    reduce_case(cases, 'gn_var', normals(rng, 'float32', (6,)), ALL, [6])
    reduce_case(cases, 'gn_var', Values(1e4 + rng.standard_normal(500), 'float32'), ALL, [0])


def ops_arg(cases, rng):
    for op, f in (('gn_argmin', np.argmin), ('gn_argmax', np.argmax)):
        for t in REAL:
            for shape in ((1,), (7,), (5, 3), (2, 3, 4), (1009,), (37, 300), (300, 37), (40000,)):
                a = normals(rng, t, shape)
                for axis in (None, *range(-1, len(shape) - 1)):
                    e = f(a.v if is_float(t) else a.v.astype(np.int64), axis)
                    cases.add(op, [a], 'int64', e, numbers=[2 ** 30 if axis is None else axis])
        for v in ([1, np.nan, 5, np.nan], [np.inf, -np.inf, np.inf, -np.inf], [0.0, -0.0, 0.0], [-np.inf] * 5, [np.nan] * 3):
            for t in FLOATS:
                a = Values(np.array(v * 5), t)
                cases.add(op, [a], 'int64', f(a.v), numbers=[2 ** 30])
        cases.add(op, [normals(rng, 'float32', (0,))], 'int64', None, numbers=[0])
        cases.add(op, [normals(rng, 'float32', (3, 0))], 'int64', f(np.zeros((3, 0)), 0), numbers=[0])


def ops_softmax(cases, rng):
    for t in (*FLOATS, 'int32'):
        f = t if is_float(t) else 'float32'
        eps = EPS['float64'] if f == 'float64' else EPS['float32']
        for shape in ((1,), (5,), (4, 7), (2, 3, 5), (1009,), (33, 100), (100, 33), (2, 20000)):
            for scale in (1, 30):
                if shape[-1] == 20000 and (t not in ('float32', 'float16') or scale == 1):
                    continue
                a = normals(rng, t, shape, scale)
                x = np.asarray(a.to(f), L)
                for axis in range(-1, len(shape) - 1):
                    d = x - np.max(x, axis, keepdims=True)
                    z = np.exp(d)
                    total = np.sum(z, axis, keepdims=True)
                    y = z / total
                    cases.add('gn_softmax', [a], f, y, numbers=[axis], ulp=1, slack=np.maximum(
                        eps * (12 - d.astype(float)) * y.astype(float), 1e-38 if f != 'float64' else 0))
                    y = d - np.log(total)
                    cases.add('gn_log_softmax', [a], f, y, numbers=[axis], ulp=1, slack=eps * (8 + np.abs(y.astype(float))))
    for v, e, l in (([np.inf, 1], [np.nan, np.nan], [np.nan, -np.inf]), ([-np.inf, 1, 1], [0, 0.5, 0.5], [-np.inf, -np.log(2), -np.log(2)]),
                    ([np.nan, 1], [np.nan, np.nan], [np.nan, np.nan])):
        cases.add('gn_softmax', [Values(np.array(v), 'float32')], 'float32', np.array(e), numbers=[0], ulp=2)
        cases.add('gn_log_softmax', [Values(np.array(v), 'float32')], 'float32', np.array(l), numbers=[0], ulp=2)
    cases.add('gn_softmax', [normals(rng, 'float32', (3, 0))], 'float32', np.zeros((3, 0)), numbers=[-1])


# --- matmul

def ops_matmul(cases, rng):
    shapes = [((3,), (3,)), ((1, 1), (1, 1)), ((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3, 4)),
              ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((4, 1, 2, 3), (5, 3, 2)), ((3,), (5, 3, 2)), ((5, 2, 3), (3,)),
              ((17, 19), (19, 23)), ((64, 64), (64, 64)), ((1, 300), (300, 1)), ((300, 1), (1, 300)), ((1, 257), (257, 129)),
              ((129, 257), (257, 1)), ((127, 131), (131, 137)), ((2, 3, 31, 33), (2, 1, 33, 35)), ((0, 3), (3, 4)),
              ((2, 0), (0, 4)), ((2, 3), (3, 0)), ((0, 2, 3), (3, 4)), ((200, 300), (300, 100)), ((5, 1030), (1030, 6)),
              ((2, 1, 3, 1, 4, 5), (1, 2, 1, 3, 5, 4))]
    for sa, sb in shapes:
        for t in REAL:
            if np.prod(sa) * sb[-1] > 500000 and t not in ('float32', 'float16', 'bfloat16', 'float64', 'int32'):
                continue
            a, b = normals(rng, t, sa), normals(rng, t, sb)
            if is_float(t):
                x, y = a.v.astype(np.float64), b.v.astype(np.float64)
                e = np.matmul(x, y) if t != 'float64' else np.matmul(x.astype(L), y.astype(L))
                eps = EPS['float64'] if t == 'float64' else EPS['float32']
                cases.add('gn_matmul', [a, b], t, e, ulp=0.5, slack=(sa[-1] + 1) * eps * np.matmul(np.abs(x), np.abs(y)))
            else:
                e = np.matmul(a.v.astype(np.int64), b.v.astype(np.int64))
                cases.add('gn_matmul', [a, b], t, rounded(e.astype(object), t))
    for ta, tb in (('float32', 'float16'), ('bfloat16', 'float16'), ('int32', 'float32'), ('float64', 'float32'), ('uint8', 'int8')):
        a, b, t = normals(rng, ta, (4, 5)), normals(rng, tb, (5, 3)), promote(ta, tb)
        e = np.matmul(np.asarray(a.to(t), float), np.asarray(b.to(t), float))
        cases.add('gn_matmul', [a, b], t, e, ulp=0.5, slack=6 * EPS.get(t, 0) * 30)
    for sa, sb in (((2, 3), (4, 5)), ((), (3,)), ((3,), ()), ((3,), (4,)), ((2, 2, 3), (3, 3, 4))):
        cases.add('gn_matmul', [normals(rng, 'float32', sa), normals(rng, 'float32', sb)], 'float32', None)


def op_cases(path):
    global fractions, scipy, warnings
    import fractions
    import warnings
    import scipy.special
    rng = np.random.default_rng(5)
    cases = Cases()
    with np.errstate(all='ignore'):
        for part in (ops_unary_float, numpy_vectors, ops_unary_any, ops_binary, ops_scalar, ops_ternary, ops_cast, ops_reduce, ops_arg,
                     ops_softmax, ops_matmul, rare, ops_bits):
            part(cases, rng)
    cases.write(path)


# --- arrangements, statistics, products: a case has a name, operands as arrays and subscripts, numbers, results -------

class ArrayCases:
    def __init__(self):
        self.parts = []

    def add(self, name, operands, p=(), x=(), out=None, near=0.0, kept='', as_dtype=None):
        """`out`: results, or None where it is refused. `near`: 0 for the same bytes, else the largest error in units of the
        result's largest value. `as_dtype` is what operands are cast to, and results from."""
        data = text(name) + struct.pack('<i', CODE[as_dtype] if as_dtype else -1) + struct.pack('<i', len(operands))
        for base, subscript in operands:
            data += array(base) + text(subscript)
        data += struct.pack('<i%dq' % len(p), len(p), *(int(v) for v in p)) + struct.pack('<i%dd' % len(x), len(x), *x)
        data += struct.pack('<di', near, -1 if out is None else len(out))
        self.parts.append(data + b''.join(array(np.asarray(o)) for o in out or ()))

    def write(self, path):
        with open(path, 'wb') as f:
            f.write(struct.pack('<i', len(self.parts)))
            f.writelines(self.parts)


def array_values(rng, shape, dtype, special=False):
    a = rng.integers(-40, 41, shape)
    if dtype == 'bool':
        return np.asarray(a > 0)
    if dtype.startswith('uint'):
        return np.asarray(abs(a)).astype(dtype)
    if dtype.startswith('int'):
        return np.asarray(a).astype(dtype)
    a = np.asarray(a + np.round(rng.standard_normal(shape), 2))
    if special and a.size:
        a = np.where(rng.random(a.shape) < 0.2, rng.choice([np.nan] if dtype.startswith('complex') else [np.nan, np.inf, -np.inf, -0.0], a.shape), a)
    return np.asarray(a.astype(dtype) * (1 + 2j if dtype.startswith('complex') else 1), dtype)


def array_operand(rng, dtype, rank=None, dims=(0, 1, 2, 3, 5), special=False):
    """(base, subscript, the view), and whether that is bfloat16"""
    rank = int(rng.integers(0, 4)) if rank is None else rank
    shape = [int(rng.choice(dims)) for _ in range(rank)]
    kind = rng.integers(0, 4)
    if dtype == 'bfloat16':
        base = array_values(rng, shape, 'int32').astype('float32')
    else:
        base = array_values(rng, shape, dtype, special)
    subscript = ''
    if kind == 0 and rank:
        base = np.repeat(base, 2, -1)
        subscript = '..., ::2'
    if kind == 1 and rank:
        subscript = '::-1'
    return base, subscript, eval('base[%s]' % subscript) if subscript else base


def walked(n, mode, before, after):
    """Indices of n elements and of their border, by walking away from them"""
    if n == 0:
        raise ValueError('empty')

    def walk(at, step, count):
        found = []
        for _ in range(count):
            at += step
            if mode == 'edge':
                at = min(max(at, 0), n - 1)
            elif mode == 'wrap':
                at %= n
            elif not 0 <= at < n:
                step = -step
                at += step * (1 if mode == 'symmetric' else 2)
                at = min(max(at, 0), n - 1)
            found.append(at)
        return found
    return walk(0, -1, before)[::-1] + list(range(n)) + walk(n - 1, 1, after)


def arrange_cases(cases, rng):
    for i in range(300):
        dtype = DTYPES[i % len(DTYPES)]
        as_dtype = 'bfloat16' if dtype == 'bfloat16' else None
        base, subscript, a = array_operand(rng, dtype, special=True)
        operands = [(base, subscript)]
        axis = int(rng.integers(-a.ndim - (rng.integers(0, 12) == 0), max(a.ndim, 1)))

        def case(name, p, f):
            try:
                out = f()
            except (ValueError, IndexError):
                out = None
            cases.add(name, operands, p, out=out, as_dtype=as_dtype)

        shift = int(rng.choice([0, 1, -1, 2, 5, -9, 2 ** 40 + 1, -2 ** 62]))
        case('roll', [shift, axis], lambda: [np.roll(a, shift, axis)] if a.ndim else None)
        case('roll_flat', [shift], lambda: [np.roll(a, shift % max(a.size, 1))])
        if a.ndim > 1:
            case('roll_two', [shift], lambda: [np.roll(a, (shift, shift), (0, -1))])
            turned = [int(v) for v in rng.integers(-a.ndim, a.ndim, 2)]
            quarters = int(rng.integers(-5, 6))
            case('rot90', [quarters] + turned, lambda: [np.rot90(a, quarters, turned)] if (turned[0] - turned[1]) % a.ndim else None)
        diagonal = int(rng.integers(-3, 4))
        case('diag', [diagonal], lambda: [np.diag(a, diagonal)])
        mask = np.asarray(rng.integers(0, 2, a.shape[int(rng.integers(0, a.ndim + 1)):]) > 0)
        filled = lambda: np.where(mask, np.asarray(1).astype(a.dtype), a)
        cases.add('masked_fill', operands + [(mask, '')], [1], out=[filled()], as_dtype=as_dtype)
        repeats = [int(v) for v in rng.choice([0, 1, 1, 2, 3], rng.integers(0, 4))]
        case('tile', repeats, lambda: [np.tile(a, repeats)])
        many = int(rng.choice([0, 1, 2, 3, 4]))
        case('repeat', [many, axis], lambda: [np.repeat(a, many, axis)] if a.ndim else None)
        case('repeat_flat', [many], lambda: [np.repeat(a, many)])
        widths = [int(v) for v in rng.integers(0, 4 if rng.integers(0, 3) else 12, 2 * a.ndim)]
        pairs = [(widths[2 * k], widths[2 * k + 1]) for k in range(a.ndim)]
        value = 1 if dtype == 'bool' else 7
        case('pad', [0, value] + widths, lambda: [np.pad(a, pairs, constant_values=value)] if a.ndim else [a])
        for k, mode in enumerate(['edge', 'reflect', 'symmetric', 'wrap']):
            def padded():
                y = a
                for j, (before, after) in enumerate(pairs):
                    if before + after:
                        y = np.take(y, walked(a.shape[j], mode, before, after), j)
                        if max(before, after) < a.shape[j]:
                            some = [(before, after) if m == j else (0, 0) for m in range(a.ndim)]
                            again = np.pad(a, some, mode=mode)
                            assert np.array_equal(np.take(a, walked(a.shape[j], mode, before, after), j), again,
                                                  equal_nan=again.dtype.kind in 'fc')
                return [y]
            case('pad', [k + 1, 0] + widths, padded)
        if a.ndim:
            case('pad', [0, 0, 2], lambda: [np.pad(a, 2)])
            case('pad', [0, 0, 1, 3], lambda: [np.pad(a, (1, 3))])
        sections = int(rng.integers(1, 6))
        case('split', [sections, axis], lambda: np.split(a, sections, axis) if a.ndim else None)
        case('array_split', [sections, axis], lambda: np.array_split(a, sections, axis) if a.ndim else None)
        if -a.ndim <= axis < a.ndim and a.shape[axis] > 0:
            case('unstack', [axis, a.shape[axis]], lambda: list(np.moveaxis(a, axis, 0)))
        window = int(rng.integers(1, 6))
        case('window', [window, axis], lambda: [np.lib.stride_tricks.sliding_window_view(a, window, axis)] if a.ndim else None)
        if not as_dtype and a.ndim and a.size < 600:
            n = int(rng.integers(0, 4)) # NumPy looks at no axis for n = 0
            n = n if -a.ndim <= axis < a.ndim else max(n, 1)
            with np.errstate(all='ignore'):
                case('diff', [n, axis], lambda: [np.diff(a, n, axis)])
        if i % 3 == 0:
            others = [array_operand(rng, dtype, int(rng.integers(0, 2)), (0, 1, 2, 3)) for _ in range(rng.integers(1, 5))]
            operands = [(b, s) for b, s, _ in others]
            views = [v for _, _, v in others]
            for ij in (False, True):
                case('meshgrid', [ij], lambda: np.meshgrid(*views, indexing='ij' if ij else 'xy'))


NEAR = {'float16': 2e-3, 'float32': 4e-6, 'float64': 1e-12, 'complex64': 8e-6, 'complex128': 1e-12}


def floating(dtype):
    """What means of such arrays are"""
    return dtype if dtype.startswith(('float', 'complex')) else 'float32'


def some_axes(rng, ndim):
    """Bits for axes_of_bits, NumPy's axis, keepdims"""
    named = [k for k in range(ndim) if rng.integers(0, 2)]
    keep = bool(rng.integers(0, 2))
    return sum(1 << k for k in named) | keep << 16, tuple(named) or None, keep


def wide(a):
    return a.astype('complex128' if a.dtype.kind == 'c' else 'float64' if a.dtype.kind == 'f' else a.dtype)


def statistics_cases(cases, rng):
    names = [n for n in DTYPES if n != 'bfloat16']
    for i in range(330):
        dtype = names[i % len(names)]
        base, subscript, a = array_operand(rng, dtype, special=i % 2)
        operands = [(base, subscript)]
        bits, axis, keep = some_axes(rng, a.ndim)
        empty = a.size == 0
        result = floating(dtype)
        parts = result.startswith('complex')
        plain = {'complex64': 'float32', 'complex128': 'float64'}.get(result, result)

        def case(name, value, t, p=(), x=(), near=None, ins=None):
            cases.add(name, ins or operands, p, x, None if value is None else [np.asarray(value).astype(t)],
                      near=NEAR.get(t, 0.0) if near is None else near)
        total = result if a.dtype.kind in 'fc' else 'uint64' if a.dtype.kind == 'u' else 'int64'
        case('nansum', np.nansum(wide(a), axis, keepdims=keep), total, [bits])
        case('nanmean', np.nanmean(wide(a), axis, keepdims=keep), result, [bits])
        if not parts:
            case('nanprod', np.nanprod(wide(np.sign(a) if a.dtype.kind != 'b' else a), axis, keepdims=keep), total, [bits],
                 ins=operands if a.dtype.kind == 'b' else [(np.sign(base), subscript)])
            if not empty:
                k = int(rng.integers(-1, a.ndim)) # -1: of the raveled array
                for name, f in (('nanargmax', np.nanargmax), ('nanargmin', np.nanargmin)):
                    try:
                        case(name, f(a, None if k < 0 else k), 'int64', [k])
                    except ValueError:
                        pass # all of them are NaN
                case('nanmax', np.nanmax(a, axis, keepdims=keep), dtype, [bits])
                case('nanmin', np.nanmin(a, axis, keepdims=keep), dtype, [bits])
                if dtype != 'bool':
                    case('ptp', np.ptp(a, axis, keepdims=keep), dtype, [bits], near=0.0)
        ddof = int(rng.integers(0, 3))
        if a.dtype.kind != 'b':
            case('nanvar', np.nanvar(wide(a), axis, ddof=ddof, keepdims=keep), plain, [bits, ddof], near=4 * NEAR[plain])
            case('nanstd', np.nanstd(wide(a), axis, ddof=ddof, keepdims=keep), plain, [bits, ddof], near=4 * NEAR[plain])
        weights = np.asarray(np.abs(array_values(rng, a.shape, 'float32')) + 1, 'float32')
        mixed = {'float64': 'float64', 'complex64': 'complex64', 'complex128': 'complex128'}.get(dtype, 'float32')
        if not empty:
            mean = np.sum(wide(a) * weights.astype('f8'), axis, keepdims=keep) / np.sum(weights.astype('f8'), axis, keepdims=keep)
            # Sums may cancel: errors are of the size of what is summed.
            most = lambda v: np.max(np.abs(v)[np.isfinite(v)], initial=0.0)
            size = lambda y: NEAR[mixed] * (1 + min(most(a) / max(most(np.asarray(y)), 1e-9), 1e6))
            case('average', mean, mixed, [bits], ins=operands + [(weights, '')], near=size(mean))
            if a.ndim:
                k = int(rng.integers(0, a.ndim))
                line = np.asarray(np.abs(array_values(rng, a.shape[k:k + 1], 'float32')) + 1, 'float32')
                mean = np.average(wide(a), k, line.astype('f8'))
                case('average', mean, mixed, [1 << k], ins=operands + [(line, '')], near=size(mean))
        if a.ndim <= 2 and a.dtype.kind != 'b' and a.shape[-1:] > (2,) and not empty and np.isfinite(a).all():
            case('cov', np.cov(wide(a), ddof=ddof), result, [ddof], near=4 * NEAR[result])
            if min(a.shape) > 2:
                case('corrcoef', np.corrcoef(wide(a)), result, near=20 * NEAR[result])
        b = a.copy()
        if b.size and b.dtype.kind != 'b':
            b = np.asarray(np.where(rng.random(b.shape) < 0.5, b, b + np.asarray(rng.choice([0, 1, 3], b.shape)).astype(dtype)), dtype)
        rtol, atol = (0.07, 0.3)
        for equal_nan in (False, True):
            wa, wb = wide(a), wide(b)
            if a.dtype.kind not in 'fc':
                wa, wb = a.astype('f8'), b.astype('f8')
            case('isclose', np.isclose(wa, wb, rtol, atol, equal_nan), 'bool', [equal_nan], [rtol, atol],
                 ins=operands + [(b, '')])
        if a.dtype.kind in 'fc':
            case('nan_to_num', np.nan_to_num(a, nan=2.0), dtype, x=[2.0, np.nan, np.nan], near=0.0)
            case('nan_to_num', np.nan_to_num(a, nan=0.0, posinf=7.0, neginf=-8.0), dtype, x=[0.0, 7.0, -8.0], near=0.0)
        else:
            case('nan_to_num', a, dtype, x=[0.0, np.nan, np.nan])
        if not parts:
            low, high = array_values(rng, a.shape[-1:], dtype), array_values(rng, a.shape[:1] + (1,) * (a.ndim - 1), dtype)
            case('clip', np.minimum(np.maximum(a, low), high), dtype, [3], near=0.0, ins=operands + [(low, ''), (high, '')])
            case('clip', np.maximum(a, low), dtype, [1], near=0.0, ins=operands + [(low, '')])
            case('clip', np.minimum(a, high), dtype, [2], near=0.0, ins=operands + [(high, '')])
            case('signbit', np.signbit(a) if a.dtype.kind == 'f' else a < 0 if a.dtype.kind != 'b' else a & False, 'bool')
            if a.dtype.kind == 'f':
                other = array_values(rng, a.shape, dtype, True)
                case('copysign', np.copysign(a, other), dtype, near=1e-300, ins=operands + [(other, '')])
                quarter = (wide(a) / 8).astype(dtype)
                case('sinc', exact_sinc(quarter), dtype, near=NEAR[dtype] / 8, ins=[(quarter, '')])
                case('logaddexp', np.logaddexp(wide(a), wide(other)), dtype, ins=operands + [(other, '')], near=NEAR[dtype] / 8)
    for t in ('float32', 'float64', 'int32', 'uint8'):
        for start, stop, count, base in ((0, 3, 4, 10), (0, 2, 5, 10), (-2, 1, 7, 2), (1, 1, 1, 10), (2, 0, 3, 2), (0, 1, 0, 10)):
            if t == 'uint8' and base ** max(start, stop) > 255:
                continue
            cases.add('logspace', [], [CODE[t], count], [start, stop, base],
                      [np.logspace(start, stop, count, base=base).astype(t)], near=NEAR.get(t, 0.0))


def exact_sinc(x):
    x = x.astype('f8')
    n = np.round(x)
    y = np.where(n % 2 == 0, 1.0, -1.0) * np.sin(np.pi * (x - n)) / np.where(x == 0, 1, np.pi * x)
    return np.where(x == 0, 1.0, y)


def exponential(a):
    """Of matrices, by Taylor's series in extended precision"""
    a = a.astype(np.clongdouble if a.dtype.kind == 'c' else np.longdouble)
    times = 10 + int(np.ceil(np.log2(np.max(np.abs(a), initial=1.0) * max(a.shape[-1], 1))))
    x = a / np.longdouble(2) ** times
    y = term = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    for k in range(1, 12):
        term = term @ x / k
        y = y + term
    for _ in range(times):
        y = y @ y
    return y.astype('c16' if a.dtype.kind == 'c' else 'f8')


def matrix_cases(cases, rng):
    names = ['float32', 'float64', 'int32', 'float16', 'complex64', 'uint8', 'complex128', 'int64', 'bool']
    orders = ['fro', 'nuc', 1, -1, 2, -2, np.inf, -np.inf]
    for i in range(90):
        dtype = names[i % len(names)]
        result = floating(dtype)
        plain = {'complex64': 'float32', 'complex128': 'float64'}.get(result, result)

        def case(name, operands, value, t, p=(), x=(), near=None):
            value = None if value is None else [np.asarray(v) for v in (value if isinstance(value, list) else [value])]
            value = value if value is None or t is None else [v.astype(t) for v in value]
            cases.add(name, operands, p, x, value, near=NEAR.get(t, 0.0) if near is None else near)
        first, second = (array_operand(rng, dtype, int(rng.integers(0, 4)), (0, 1, 2, 3, 3)) for _ in range(2))
        with np.errstate(all='ignore'):
            value = np.kron(first[2], second[2]).astype(dtype)
        case('kron', [first[:2], second[:2]], value, dtype, near=NEAR.get(dtype, 0.0))
        if dtype != 'bool':
            shape = (2, 3, 4)
            u, v = array_values(rng, shape, dtype), array_values(rng, shape[1:], dtype)
            case('cross', [(u, ''), (v, '')], None, dtype, [-1])
            case('cross', [(u, ''), (v[None], '')], np.cross(u, v[None], axis=1), dtype, [1], near=4 * NEAR.get(dtype, 0.0))
            w = array_values(rng, (5, 3), dtype)
            case('cross', [(w, ''), (w[:, ::-1].copy(), '')], np.cross(w, w[:, ::-1]), dtype, [-1], near=4 * NEAR.get(dtype, 0.0))
        base, subscript, a = array_operand(rng, dtype, None, (1, 2, 3, 5), special=i % 3 == 0)
        bits, axis, keep = some_axes(rng, a.ndim)
        if dtype != 'bool':
            if a.ndim > 1 and np.isfinite(a).all() and a.dtype.kind != 'c':
                value = np.linalg.cond(wide(a).astype('f8'))
                most = np.max(value, initial=1.0)
                if most < 1e4:
                    case('cond', [(base, subscript)], value, result, near=20 * NEAR[result] * most)
            for order in (0, 1, 2, 3, -1, 0.5, np.inf, -np.inf):
                size = np.abs(wide(a)).astype('f8')
                with np.errstate(all='ignore'):
                    value = (np.sum(size != 0, axis, keepdims=keep) if order == 0 else np.max(size, axis, keepdims=keep)
                             if order == np.inf else np.min(size, axis, keepdims=keep) if order == -np.inf else
                             np.sum(size ** order, axis, keepdims=keep) ** (1 / order))
                if plain == 'float16' and order in (3, 0.5):
                    continue
                case('vector_norm', [(base, subscript)], value, plain, [bits], [order], near=8 * NEAR[plain])
        m, n = (int(v) for v in rng.choice([1, 2, 3, 5], 2))
        many = (2,) if rng.integers(0, 2) else ()
        a = array_values(rng, many + (m, n), dtype)
        square = array_values(rng, many + (n, n), dtype)
        if dtype in ('float32', 'float64', 'int32', 'complex64'):
            for k, order in enumerate(orders):
                case('matrix_norm', [(a, '')], np.linalg.norm(wide(a), order, (-2, -1)), plain, [k], near=8 * NEAR[plain])
        if dtype in ('float32', 'float64', 'int64', 'complex128'):
            for power in (0, 1, 2, 5):
                case('matrix_power', [(square, '')], np.linalg.matrix_power(wide(square), power), dtype, [power],
                     near=20 * NEAR.get(dtype, 0.0))
        for size in (0.03, 1.0, 8.0, 40.0):
            shape = [(0, 0), (1, 1), (n, n), (2, n, n), (3, 1, 7, 7), (2, 0, 3, 3)][int(rng.integers(0, 6))]
            x = array_values(rng, shape, dtype)
            if x.dtype.kind in 'fc':
                x = (x / 16 * size / max(shape[-1], 1) - (0 if size < 5 else size) * np.eye(shape[-1])).astype(dtype)
            elif x.dtype.kind != 'b':
                x = np.where(np.eye(shape[-1]) > 0, 1, x % 3).astype(dtype)
            want = exponential(wide(x)) if dtype != 'bfloat16' else None
            if dtype == 'bfloat16' or np.max(np.abs(want), initial=0.0) > 6e4:
                continue
            # A squaring is for each power of two of the norm.
            norm = 1 + np.max(np.sum(np.abs(wide(x).astype('c16')), -2), initial=0.0)
            case('expm', [(x, '')], want, result, near=NEAR[result] * 4 * norm)
            case('expm', [(np.ascontiguousarray(np.swapaxes(x, -1, -2)), '')], np.swapaxes(want, -1, -2), result, near=NEAR[result] * 4 * norm)
        if dtype in ('float32', 'float64', 'complex64', 'complex128'):
            t = dtype
            loose = 100 * NEAR[t]
            square = (square / 40 + 2 * np.eye(n)).astype(t)
            case('matrix_power', [(square, '')], np.linalg.matrix_power(wide(square), -3), t, [-3], near=loose)
            sign, log = np.linalg.slogdet(wide(square))
            case('slogdet', [(square, '')], [sign.astype(t), log.astype(plain)], None, near=loose)
            for scale in (1e-30, 1e30):
                scaled = (wide(np.tile(square, (1, 1))) * scale).astype(t)
                sign, log = np.linalg.slogdet(wide(scaled))
                case('slogdet', [(scaled, '')], [sign.astype(t), log.astype(plain)], None, near=loose)
            singular = np.ones((n + 1, n + 1)).astype(t)
            case('slogdet', [(singular, '')], [np.zeros((), t), np.array(-np.inf, plain)], None)
            symmetric = (a @ np.conj(np.swapaxes(a, -1, -2))).astype(t)
            case('eigvalsh', [(symmetric, '')], np.linalg.eigvalsh(wide(symmetric)), plain, near=loose)
            case('svdvals', [(a, '')], np.linalg.svd(wide(a), compute_uv=False), plain, near=loose)
            flat = (a[..., :1] * a[..., :1, :]).astype(t)  # of rank one
            for x in (a, flat):
                if x is a and np.linalg.cond(wide(x)).max() > 50:
                    continue
                # NumPy's limits are for its float64.
                rtol = max(m, n) * np.finfo(t).eps
                case('pinv', [(x, '')], np.linalg.pinv(wide(x), rtol), t, x=[-1], near=loose)
                s = np.linalg.svd(wide(x), compute_uv=False)
                case('matrix_rank', [(x, '')], np.sum(s > rtol * s.max(-1, keepdims=True), -1), 'int64', x=[-1])
                b = array_values(rng, many + (m, 2), t)
                case('lstsq', [(x, ''), (b, '')], np.linalg.pinv(wide(x), rtol) @ wide(b), t, x=[-1], near=loose)
                line = array_values(rng, (m,), t)
                case('lstsq', [(x, ''), (line, '')], np.linalg.pinv(wide(x), rtol) @ wide(line), t, x=[-1], near=loose)
                if not many:
                    want = np.linalg.lstsq(wide(x), wide(line), rtol)[0]
                    case('lstsq', [(x, ''), (line, '')], want, t, x=[rtol], near=loose)
            case('pinv', [(a, '')], np.linalg.pinv(wide(a), 0.3), t, x=[0.3], near=loose) if n == 1 else None


def array_cases(path):
    rng = np.random.default_rng(21)
    cases = ArrayCases()
    arrange_cases(cases, rng)
    import warnings
    with np.errstate(all='ignore'), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        statistics_cases(cases, rng)
        matrix_cases(cases, rng)
    cases.write(path)


# --- scans, sorts and what stands on them ---------------------------------------------------------

def falling(a):
    """Stable places in descending order, NaN last, along the last axis"""
    return np.argsort(-a.astype('f8' if a.dtype.kind == 'f' else 'i8' if a.dtype != 'uint64' else object), -1, kind='stable')


def scan_values(a, name):
    """Along the last axis, widened"""
    if name == 'cumsum':
        return np.cumsum(wide(a), -1)
    if name == 'cumprod':
        return np.cumprod(wide(a), -1)
    if name == 'logcumsumexp':
        return np.logaddexp.accumulate(a.astype('f8'), -1)
    return (np.maximum if name == 'cummax' else np.minimum).accumulate(a, -1)


def row_cases(cases, rng, base, subscript, a, axis, as_dtype=None):
    """Functions along one axis, or (axis None) of the raveled array"""
    dtype = a.dtype.name
    real, result = a.dtype.kind != 'c', floating(dtype)
    flat = axis is None
    rows = a.reshape(-1) if flat else np.moveaxis(a, axis, -1)
    back = (lambda y: y) if flat else (lambda y: np.moveaxis(y, -1, axis))
    p = [99 if flat else axis]
    total = dtype if a.dtype.kind in 'fc' else 'uint64' if a.dtype.kind == 'u' else 'int64'

    def case(name, out, q=(), x=(), near=1e-300):
        out = None if out is None else [np.asarray(o) for o in (out if isinstance(out, list) else [out])]
        cases.add(name, [(base, subscript)], p + list(q), x, out, near=near, as_dtype=as_dtype)
    few = (a / 16).astype(dtype) if a.dtype.kind in 'fc' else np.sign(a) if a.dtype.kind != 'b' else a
    if not as_dtype:
        case('cumsum', back(scan_values(rows, 'cumsum')).astype(total), near=2 * NEAR.get(total, 1e-300))
        case('nancumsum', back(np.nancumsum(wide(rows), -1)).astype(total), near=2 * NEAR.get(total, 1e-300))
        few_rows = few.reshape(-1) if flat else np.moveaxis(few, axis, -1)
        if few_rows.shape[-1] < 20:
            cases.add('cumprod', [(few, '')], p, [], [back(scan_values(few_rows, 'cumprod')).astype(total)],
                      near=4 * NEAR.get(total, 1e-300))
            cases.add('nancumprod', [(few, '')], p, [], [back(np.nancumprod(wide(few_rows), -1)).astype(total)],
                      near=4 * NEAR.get(total, 1e-300))
    if not real:
        for name in ('cummax', 'logcumsumexp', 'sort', 'argsort', 'topk'):
            case(name, None, [0])
        return
    for name in ('cummax', 'cummin'):
        case(name, back(scan_values(rows, name)))
    if not as_dtype:
        value = scan_values(rows, 'logcumsumexp')
        most = np.max(np.abs(value)[np.isfinite(value)], initial=0.0) # a sum of exponentials near 1 errs by its own last digits
        case('logcumsumexp', back(value).astype(result), near=NEAR[result] * max(1.0, 1.0 / max(most, 1e-9)))
    down = falling(rows)
    case('sort', back(np.sort(rows, -1)), [0])
    case('sort', back(np.take_along_axis(rows, down, -1)), [1])
    if not as_dtype:
        case('argsort', back(np.argsort(rows, -1, kind='stable')), [0])
        case('argsort', back(down), [1])
        n = rows.shape[-1]
        for k in {0, min(n, 3), n // 2, n}:
            case('topk', [back(np.take_along_axis(rows, down, -1)[..., :k]), back(down[..., :k])], [k])
        case('topk', None, [n + 1])
        case('topk', None, [-1])
        case('partition', None, [n])
        if n:
            case('partition', back(np.sort(rows, -1)), [int(rng.integers(-n, n))])
            case('argpartition', back(np.sort(rows, -1)), [2 * n // 3 - n * (rows.size % 2)])
        case('argpartition', None, [-n - 1])


def quantile_cases(cases, base, subscript, a, bits, axis, keep):
    result = floating(a.dtype.name)
    values = a.astype('f8')
    for q in (0.5, 0.0, 1.0, 0.3, 0.77, 2.0 ** -30):
        out = np.quantile(values, q, axis, keepdims=keep) if a.size else np.full(np.sum(values, axis, keepdims=keep).shape, np.nan)
        cases.add('quantile', [(base, subscript)], [bits], [q], [np.asarray(out).astype(result)], near=NEAR[result])
    for parts in ([0.5, 0.0, 1.0, 0.3, 0.77, 2.0 ** -30], [0.25], []):
        many = np.quantile(values, parts, axis, keepdims=keep) if a.size else np.full((len(parts),) + np.asarray(out).shape, np.nan)
        cases.add('quantiles', [(base, subscript), (np.array(parts), '')], [bits], [], [many.astype(result)] if a.ndim - (0 if keep else 1) < 8 else None,
                  near=NEAR[result])
    cases.add('quantiles', [(base, subscript), (np.array([0.5, 1.5]), '')], [bits])
    cases.add('quantiles', [(base, subscript), (np.array([[0.5]]), '')], [bits])
    out = np.median(values, axis, keepdims=keep) if a.size else out
    cases.add('median', [(base, subscript)], [bits], [], [np.asarray(out).astype(result)], near=NEAR[result])
    cases.add('percentile', [(base, subscript)], [bits], [50.0], [np.asarray(out).astype(result)], near=NEAR[result])
    cases.add('percentile', [(base, subscript)], [bits], [100.5])
    for q in (0.5, 0.0, 1.0, 0.3, 0.77):
        out = np.nanquantile(values, q, axis, keepdims=keep) if a.size else np.full(np.sum(values, axis, keepdims=keep).shape, np.nan)
        for name, x in (('nanquantile', q), ('nanpercentile', 100 * q)):
            cases.add(name, [(base, subscript)], [bits], [x], [np.asarray(out).astype(result)], near=NEAR[result])
    out = np.nanmedian(values, axis, keepdims=keep) if a.size else out
    cases.add('nanmedian', [(base, subscript)], [bits], [], [np.asarray(out).astype(result)], near=NEAR[result])
    cases.add('quantile', [(base, subscript)], [bits], [np.nan])


def unique_slices(a, axis):
    """np.unique along an axis: a slice with NaN equals none, a zero the one with a minus sign"""
    rows = np.moveaxis(a, axis, 0)
    flat = rows.reshape(rows.shape[0], int(np.prod(rows.shape[1:])))
    keys = [tuple((bool(v != v), 0 if v != v else v) for v in row) for row in flat.tolist()]
    order = sorted(range(len(keys)), key=lambda i: keys[i])
    index, counts, inverse = [], [], np.zeros(len(keys), 'i8')
    for i in order:
        if not index or keys[i] != keys[index[-1]] or any(nan for nan, _ in keys[i]):
            index.append(i)
            counts.append(0)
        counts[-1] += 1
        inverse[i] = len(index) - 1
    index = np.array(index, 'i8')
    return [np.moveaxis(rows[index], 0, axis), index, inverse, np.array(counts, 'i8')]


def place_cases(cases, rng, dtype):
    """Searches, sets, counts"""
    def case(name, operands, out, p=(), x=(), near=1e-300):
        out = None if out is None else [np.asarray(o) for o in (out if isinstance(out, list) else [out])]
        cases.add(name, operands, p, x, out, near=near)
    kind = np.dtype(dtype).kind
    base, subscript, a = array_operand(rng, dtype, special=True)
    operand = (base, subscript)
    n = int(rng.choice([0, 1, 2, 7, 40]))
    values = array_values(rng, (n,), dtype, True)
    line = np.sort(values)
    for right in (0, 1):
        case('searchsorted', [(line, ''), operand], np.searchsorted(line, a, 'right' if right else 'left'), [right])
        clean = line[~np.isnan(line)] if kind == 'f' else line
        case('digitize', [operand, (clean, '')], np.digitize(a, clean, bool(right)), [right])
        case('digitize', [operand, (clean[::-1].copy(), '')], np.digitize(a, clean[::-1], bool(right)), [right])
    case('searchsorted', [(line[None], ''), operand], None, [0])
    case('isin', [operand, (values.reshape(-1, 1), '')], np.isin(a, values))
    other = array_values(rng, a.shape, 'int32')
    case('isin', [operand, (other, '')], np.isin(a.astype('f8'), other.astype('f8')))
    found = np.unique(a, True, True, True)
    case('unique', [operand], [found[0], found[1], found[2].reshape(a.shape), found[3]])
    if a.ndim:
        own = np.random.default_rng(a.size)
        k = int(own.integers(-a.ndim, a.ndim))
        few = np.take(a, own.integers(0, max(a.shape[k], 1), 2 * a.shape[k]), k) if a.size else a
        found = unique_slices(few, k)
        cases.add('unique_axis', [(few, '')], [k], [], found)
        cases.add('unique_axis', [(np.ascontiguousarray(np.flip(few)), '...' + ', ::-1' * a.ndim)], [k], [], found)
        cases.add('unique_axis', [(few, '')], [a.ndim], [], None)
    sets = a.reshape(-1)
    if kind == 'f': # NaN is none of the elements in NumPy's joins of two sets, with exceptions
        base, subscript, a = array_operand(rng, dtype)
        operand, sets, values = (base, subscript), a.reshape(-1), array_values(rng, (n,), dtype)
    for name, f in (('union1d', np.union1d), ('intersect1d', np.intersect1d), ('setdiff1d', np.setdiff1d), ('setxor1d', np.setxor1d)):
        case(name, [operand, (values, '')], f(sets, values).astype(dtype))
    if kind in 'iub':
        counts = np.abs(sets.astype('i8')).astype(dtype)
        length = int(rng.integers(0, 60))
        weights = array_values(rng, counts.shape, 'float32')
        case('bincount', [(counts, '')], np.bincount(counts.astype('i8'), None, length), [length])
        case('bincount', [(counts, ''), (weights, '')], np.bincount(counts.astype('i8'), weights, length).astype('f8'), [length],
             near=1e-13)
        if counts.size and dtype.startswith('int'):
            case('bincount', [(-1 - counts, '')], None, [0])
    else:
        case('bincount', [(sets, '')], None, [0])
    inner = 'float64' if dtype == 'float64' or kind in 'iu' and np.dtype(dtype).itemsize > 1 else 'float32'
    x = sets.astype(inner)
    for bins, low, high in ((1, 0, 0), (10, 0, 0), (7, -16, 16), (64, -32, 32), (5, 3, 3), (12, -1, 7), (9, -1, 2)):
        if low == high == 0 and x.size == 0:
            low_high = (0.0, 1.0)
        else:
            low_high = (float(x.min()), float(x.max())) if low == high == 0 else (low, high)
        counts, edges = np.histogram(x.astype('f8'), bins, low_high)
        edges = edges.astype(inner)
        # What is in which part is for the edges as they are rounded to say.
        counts = np.histogram(x, edges)[0] if x.size else counts
        case('histogram', [operand], [counts, edges], [bins], [low, high])
        if bins not in (10, 7, 5):
            continue
        own = np.random.default_rng(bins)
        weights = array_values(own, a.shape, 'float32')
        heavy = weights.reshape(-1).astype('f8')
        exact = edges.astype('f8')
        with np.errstate(all='ignore'):
            density = counts / (np.sum(counts, dtype='f8') * np.diff(exact))
            sums = np.histogram(x, edges, weights=heavy)[0]
            heights = sums / (np.sum(sums) * np.diff(exact))
        close = 1e-12 * (1 + np.sum(np.abs(heavy)) / max(np.max(np.abs(sums), initial=0.0), 1e-9))
        case('histogram_with', [operand], [counts, edges], [bins, 0], [low, high])
        case('histogram_with', [operand], [density, edges], [bins, 1], [low, high], near=1e-12)
        case('histogram_with', [operand, (weights, '')], [sums, edges], [bins, 0], [low, high], near=close)
        if abs(np.sum(sums)) > 1e-3 * np.sum(np.abs(heavy)):
            case('histogram_with', [operand, (weights, '')], [heights, edges], [bins, 1], [low, high], near=1e3 * close)
        if bins == 7 and x.size:
            other = array_values(own, a.shape, 'float64')
            below = np.histogram(other, 3, (-20.0, 30.0))[1]
            table = np.histogram2d(x, other.reshape(-1), [exact, below])[0]
            case('histogram2d', [operand, (other, '')], [table.astype('i8'), edges, below], [bins, 3, 0], [low, high, -20, 30])
            table = np.histogram2d(x, other.reshape(-1), [exact, below], weights=heavy)[0]
            case('histogram2d', [operand, (other, ''), (weights, '')], [table, edges, below], [bins, 3, 0], [low, high, -20, 30], near=close)
            with np.errstate(all='ignore'):
                table = np.histogram2d(other.reshape(-1), x, [below, exact], density=True)[0]
            case('histogram2d', [(other, ''), operand], [table, below, edges], [3, bins, 1], [-20, 30, low, high], near=1e-10)
    case('histogram_with', [operand], None, [0, 0], [0, 1])
    case('histogram2d', [operand, operand], None, [2, 2, 0], [0, 1, np.nan, 1])
    case('histogram2d', [operand, (np.zeros(a.shape + (2,)), '')], None, [2, 2, 0], [0, 1, 0, 1])
    case('histogram', [operand], None, [0], [0, 1])
    case('histogram', [operand], None, [3], [1, 0])
    case('histogram', [operand], None, [3], [0, np.inf])
    edges = np.unique(array_values(rng, (8,), 'float32')).astype(inner)
    if edges.size > 1:
        case('histogram_edges', [operand, (edges, '')], np.histogram(x, edges)[0])
        case('histogram_edges', [operand, (edges[::-1].copy(), '')], None)
    if n:
        points, result = np.unique(values).astype(inner), floating(dtype)
        y = array_values(rng, points.shape, dtype).astype(inner)
        out = np.interp(a.astype('f8'), points.astype('f8'), y.astype('f8'))
        t = 'float64' if inner == 'float64' and kind == 'f' else 'float32'
        if kind == 'f' and dtype != 'float16':
            case('interp', [operand, (points, ''), (y, '')], out.astype(t), near=4 * NEAR[t])
        case('interp', [operand, (points, ''), (y[:-1].copy(), '')], None)


def order_cases(path):
    rng = np.random.default_rng(23)
    cases = ArrayCases()
    names = [n for n in DTYPES if n != 'bfloat16']
    import warnings
    with np.errstate(all='ignore'), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for i in range(8 * len(names)):
            dtype = names[i % len(names)]
            base, subscript, a = array_operand(rng, dtype, special=i % 2)
            row_cases(cases, rng, base, subscript, a, None)
            for axis in range(-a.ndim, a.ndim, 2):
                row_cases(cases, rng, base, subscript, a, axis)
            if a.dtype.kind == 'c':
                continue
            base, subscript, a = array_operand(rng, dtype)
            if a.dtype.kind == 'f' and a.size and i % 2:
                base.reshape(-1)[rng.integers(0, base.size, 1 + i % 4 * base.size // 6)] = np.nan
            quantile_cases(cases, base, subscript, a, *some_axes(rng, a.ndim))
            place_cases(cases, rng, dtype)
        for n in (1, 2, 11, 13, 599, 601, 4099):
            for dtype in ('float32', 'int8', 'int64', 'float16', 'float64', 'uint32'):
                a = array_values(rng, (n,), dtype, True) if n != 601 else array_values(rng, (3, n), dtype)
                row_cases(cases, rng, a, '', a, -1)
        for n, dtype in ((1, 'float32'), (5, 'float32'), (70, 'float64'), (256, 'float32'), (33, 'int64'), (100, 'uint8')): # side by side
            a = array_values(rng, (19, n), dtype, True)
            row_cases(cases, rng, a, '', a, -1)
        a = np.asarray(rng.integers(0, 3, (2, 9000)), 'float32') # of many equal ones
        row_cases(cases, rng, a, '', a, 1)
        quantile_cases(cases, a, '', a, 2, 1, False)
        base = array_values(rng, (3, 700), 'int32').astype('float32')
        row_cases(cases, rng, base, '', base, 1, 'bfloat16')
        for n, dtype in ((70001, 'float32'), (33001, 'float64'), (33001, 'int32')): # several parts, each with its thread
            a = array_values(rng, (n,), dtype)
            if dtype != 'int32':
                a = (a * rng.standard_normal(a.shape)).astype(dtype)
            row_cases(cases, rng, a, '', a, 0)
            if n > 70000:
                quantile_cases(cases, a, '', a, 1, 0, False)
        a = array_values(rng, (5000, 3), 'float32')
        row_cases(cases, rng, a, '', a, 0)
        a = array_values(rng, (3, 70, 300), 'float32')
        row_cases(cases, rng, a, '', a, 1)
        for dtype in [t for t in names if not t.startswith('complex')]:
            keys = [np.asarray(array_values(rng, (3, 40), dtype, True) // 16 * 16, dtype) if dtype != 'bool' else
                    array_values(rng, (3, 40), dtype) for _ in range(3)]
            for axis in (0, 1, -1):
                cases.add('lexsort', [(k, '') for k in keys], [axis], [], [np.lexsort(keys, axis)], near=1e-300)
            cases.add('lexsort', [(keys[0], ''), (keys[1][:2].copy(), '')], [0])
    cases.write(path)


# --- samples along an axis -----------------------------------------------------------------------

def curve_cases(path):
    rng = np.random.default_rng(41)
    cases = ArrayCases()
    names = [n for n in DTYPES if n not in ('bfloat16', 'bool')]
    for i in range(20 * len(names)):
        dtype = names[i % len(names)]
        base, subscript, a = array_operand(rng, dtype, dims=(1, 2, 3, 5, 17), special=i % 4 == 3)
        result = floating(dtype)
        real = a.dtype.kind != 'c'
        axis = int(rng.integers(-a.ndim - (i % 11 == 0), max(a.ndim, 1)))

        def case(name, operands, p, f, x=(), near=None, t=result):
            try:
                with np.errstate(all='ignore'):
                    out = f()
                out = None if out is None else [np.asarray(out).astype(t)]
            except (ValueError, IndexError, TypeError):
                out = None
            cases.add(name, operands, p, x, out, near=NEAR.get(t, 1e-300) if near is None else near)

        operand, values = (base, subscript), wide(a).astype('c16' if not real else 'f8')
        n = a.shape[axis] if a.ndim and -a.ndim <= axis < a.ndim else 3
        points = np.cumsum(rng.integers(1, 5, n)).astype(str(rng.choice(['float32', 'int32', 'uint8'])))
        mixed = {'float64': 'float64', 'complex64': 'complex64', 'complex128': 'complex128', 'float16': 'float16'}.get(dtype, 'float32')
        if mixed == 'float16' and points.dtype != 'uint8':
            mixed = 'float32' if points.dtype == 'float32' else 'float16'
        most = np.max(np.abs(values)[np.isfinite(values)], initial=0.0)
        slack = lambda y: (1 + min(most / max(np.max(np.abs(y)[np.isfinite(y)], initial=0.0), 1e-9), 1e6))
        dx = float(rng.choice([1.0, 0.25, -3.0]))
        f = lambda: np.gradient(values, dx, axis=axis) if a.ndim else None
        case('gradient', [operand], [axis], f, [dx])
        if np.isfinite(values).all(): # NumPy's formula keeps some infinities where slopes have none
            case('gradient', [operand, (points, '')], [axis], lambda: np.gradient(values, points.astype('f8'), axis=axis) if a.ndim else None,
                 [1.0], NEAR[mixed] * 20, mixed)
        case('gradient', [operand, (points[:-1].copy(), '')], [axis], lambda: np.zeros(-1), [1.0])
        f = lambda x, d: np.trapz(values, x, d, axis) if a.ndim else None
        case('trapezoid', [operand], [axis], lambda: f(None, dx), [dx], NEAR[result] * (slack(f(None, 1.0)) if a.ndim and axis >= -a.ndim else 1))
        if a.ndim and -a.ndim <= axis:
            size = slack(f(points.astype('f8'), 1.0))
            case('trapezoid', [operand, (points, '')], [axis], lambda: f(points.astype('f8'), 1.0), [1.0], 4 * NEAR[mixed] * size, mixed)
            many = np.cumsum(rng.integers(1, 5, a.shape), axis).astype('float32')
            t = 'float32' if mixed == 'float16' else mixed
            case('trapezoid', [operand, (many, '')], [axis], lambda: f(many.astype('f8'), 1.0), [1.0], 4 * NEAR[t] * slack(f(many.astype('f8'), 1.0)), t)
        if real and dtype in ('float32', 'float64', 'int32') and i % 4 != 3:
            case('unwrap', [operand], [axis], lambda: np.unwrap(values, axis=axis) if a.ndim else None)
        # polynomials
        line = array_values(rng, (int(rng.integers(0, 6)),), dtype)
        p = array_values(rng, (int(rng.integers(0, 9)),), dtype)
        p[:int(rng.integers(0, 3))] = 0
        p[p.size - int(rng.integers(0, 3)):] = 0
        with np.errstate(all='ignore'):
            want = np.roots(wide(p).astype('f8' if real else 'c16')) + 0j
        # In another order: the test says by how much they differ, with 1 added.
        case('roots', [(p, ''), (want.astype('c16'), '')], [], lambda: 1.0, near=1e-10 if dtype in ('float64', 'complex128') else 1e-6, t='float64')
        case('roots', [(p[::-1].copy(), '::-1'), (want.astype('c16'), '')], [], lambda: 1.0, near=1e-6, t='float64')
        p, x = (line / 8).astype(dtype) if a.dtype.kind in 'fc' else line, (a / 16).astype(dtype) if a.dtype.kind in 'fc' else a
        small = a.dtype.kind in 'fc'
        reach = np.polyval(np.abs(wide(p)), np.abs(wide(x))) if small else 0.0
        with np.errstate(all='ignore'):
            value = np.polyval(wide(p), wide(x)) if small else np.zeros(a.shape, dtype)
            for c in [] if small else p:
                value = (value * x + c).astype(dtype)
        if not small or np.isfinite(wide(x)).all():
            worst = np.max(np.abs(reach) / np.maximum(np.abs(value), 1e-9), initial=1.0) if small else 1.0
            case('polyval', [(p, ''), (x, '')], [], lambda: value, (), NEAR.get(dtype, 1e-300) * 4 * min(worst, 1e6), dtype)
        k, rising = int(rng.integers(0, 6)), int(rng.integers(0, 2))
        v = (line / 16).astype(dtype) if small else np.sign(line)
        total = dtype if small else 'uint64' if a.dtype.kind == 'u' else 'int64'
        case('vander', [(v, '')], [k, rising], lambda: np.vander(wide(v), k, bool(rising)), (), NEAR.get(dtype, 1e-300), total)
        case('vander', [(a, '')], [-1, 0], lambda: np.zeros(-1))
        m, degree = int(rng.integers(1, 12)), int(rng.integers(0, 4))
        x = (np.arange(m) - m // 3).astype(dtype if real and a.dtype.kind != 'u' else 'float32')
        for shape in ((m,), (m, 3)):
            y = array_values(rng, shape, dtype)
            if m <= degree:
                continue
            want = np.polyfit(x.astype('f8'), wide(y).astype('c16' if not real else 'f8'), degree)
            near = NEAR[result] * (1 + np.max(np.abs(want)) / np.maximum(np.min(np.abs(want)), 1e-6))
            case('polyfit', [(x, ''), (y, '')], [degree], lambda: want, (), min(near, 1.0) if result != 'float16' else near)
        case('polyfit', [(x, ''), (array_values(rng, (m + 1,), dtype), '')], [2], lambda: np.zeros(-1))
    for n in (0, 1, 2, 3, 8, 51, 256):
        for k, f in enumerate((np.hanning, np.hamming, np.blackman)):
            for t in ('float32', 'float64'):
                cases.add('window', [], [k, CODE[t], n], [], [f(n).astype(t)], near={'float32': 1e-7, 'float64': 1e-15}[t] * 8)
    cases.write(path)


# --- gathers, scatters, masks --------------------------------------------------------------------

def index_operand(rng, shape, extent, outside):
    """(base, subscript, the view): indices into an axis; with `outside` one of them is none"""
    dtype = str(rng.choice(['int64', 'int64', 'int32', 'int8', 'uint8', 'uint32']))
    low = 0 if dtype.startswith('u') else -extent
    a = rng.integers(low, max(extent, low + 1), shape) if extent else np.zeros(shape, int)
    if outside and a.size:
        a.flat[int(rng.integers(0, a.size))] = int(rng.choice([extent] if low == 0 else [extent, -extent - 1]))
    a = np.asarray(a).astype(dtype)
    if a.ndim and rng.integers(0, 3) == 0:
        return (np.ascontiguousarray(a[::-1]), '::-1'), a
    if a.ndim and rng.integers(0, 3) == 0:
        return (np.repeat(a, 2, -1), '..., ::2'), a
    return (a, ''), a


def scattered(f, a, index, values, axis, dtype):
    """`a` with `values` at the places that indices beside an axis name"""
    y = np.array(a, dtype=dtype)
    places = list(np.meshgrid(*[np.arange(n) for n in index.shape], indexing='ij')) if index.ndim else []
    places[axis] = index
    f(y, tuple(places), values.astype(dtype))
    return y


def index_cases(path):
    rng = np.random.default_rng(77)
    cases = ArrayCases()
    for i in range(480):
        dtype = DTYPES[i % len(DTYPES)]
        as_dtype = 'bfloat16' if dtype == 'bfloat16' else None
        base, subscript, a = array_operand(rng, dtype, special=i % 3 == 0, rank=None if i % 7 == 0 else int(rng.integers(1, 4)))
        axis = int(rng.integers(-a.ndim, a.ndim)) if a.ndim else 0
        extent = a.shape[axis] if a.ndim else 0
        outside = rng.integers(0, 8) == 0

        def case(name, operands, p, f, near=0.0, got=None):
            try:
                with np.errstate(all='ignore'):
                    out = f()
            except (ValueError, IndexError):
                out = None
            cases.add(name, [(base, subscript)] + operands, p, out=out, near=near, as_dtype=as_dtype)

        count = [int(v) for v in rng.choice([0, 1, 2, 5, 9], rng.integers(0, 3))]
        operand, index = index_operand(rng, count, extent, outside)
        case('take', [operand], [axis], lambda: [np.take(a, index, axis)] if a.ndim else None)
        case('nonzero', [], [], lambda: [np.array(np.nonzero(a)).reshape(a.ndim, -1).astype('int64')] if a.ndim else None)
        case('flatnonzero', [], [], lambda: [np.flatnonzero(a).astype('int64')])
        masks = int(rng.integers(0, a.ndim + 1))
        m = np.asarray(rng.integers(0, 3, a.shape[:masks]) > 0) & bool(rng.integers(0, 9))
        case('mask', [(m, '')], [], lambda: [a[m]])
        rest, true = a.shape[masks:], int(m.sum())
        for shape in [(), rest, (1,) * len(rest), (true,) + rest, (1,) + rest, (true + 2,) + rest, (1, 1) + rest]:
            values = array_values(rng, shape, 'int32' if as_dtype else str(rng.choice([dtype, 'bool'])))
            values = values.astype('float32') if as_dtype else values

            def assigned():
                if len(shape) > 1 + len(rest):
                    raise ValueError # NumPy takes axes of size 1 in front
                y = np.array(a)
                y[m] = values
                return [y]
            case('assign_mask', [(m, ''), (values, '')], [], assigned)
        if not a.ndim:
            continue
        places = int(rng.integers(1, a.ndim + 1))
        shapes = [int(v) for v in rng.choice([0, 1, 2, 3], rng.integers(0, 3))]
        pairs = [index_operand(rng, [1 if rng.integers(0, 4) == 0 else n for n in shapes[rng.integers(0, len(shapes) + 1):]],
                               a.shape[k], outside) for k in range(places)]
        try:
            at = np.broadcast_arrays(*[i for _, i in pairs])
        except ValueError:
            at = None
        beyond = at is not None and any(((i < -n) | (i >= n)).any() for i, n in zip(at, a.shape))
        if at is not None and not (beyond and 0 in a.shape): # nobody looks where there is none
            operands, tuples = [o for o, _ in pairs], tuple(i.astype('int64') for i in at)
            case('index_arrays', operands, [places], lambda: [a[tuples]])
            full = tuples[0].shape + a.shape[places:]
            shape = full[int(rng.integers(0, len(full) + 1)):]
            values = array_values(rng, shape, 'int32' if as_dtype else dtype)
            values = values.astype('float32') if as_dtype else values

            def written():
                y = np.array(a)
                y[tuples] = values
                return [y]
            case('assign_arrays', operands + [(values, '')], [places], written)
            if places == a.ndim and min(a.shape) > 0:
                inside = [np.where(i < 0, i + n, i) for i, n in zip(tuples, a.shape)]
                if not beyond:
                    number = np.asarray(np.ravel_multi_index(inside, a.shape))
                    case('ravel_multi_index', operands, [places], lambda: [number.astype('int64')])
                    case('unravel_index', [(number, '')], [places], lambda: [np.array(inside).reshape((a.ndim,) + number.shape).astype('int64')])
        for where in (axis, None):
            n = a.size if where is None else extent
            counts = rng.integers(0, 4, 1 if rng.integers(0, 4) == 0 else n) - (rng.integers(0, 20) == 0)
            counts = np.asarray(counts).astype(str(rng.choice(['int64', 'int32', 'int8'])))
            name = 'repeat_counts' + ('' if where is not None else '_flat')
            case(name, [(counts, '')], [] if where is None else [axis], lambda: [np.repeat(a, counts.astype('int64'), where)])
        condition = np.asarray(rng.integers(0, 2, int(rng.integers(0, extent + 1))) > 0)
        case('compress', [(condition, '')], [axis], lambda: [np.compress(condition, a, axis)])
        flat = np.asarray(rng.integers(0, 2, a.size) > 0)
        case('compress_flat', [(flat, '')], [], lambda: [np.compress(flat, a)])
        shape = [1 if rng.integers(0, 4) == 0 else n for n in a.shape] if rng.integers(0, 3) else [1] * a.ndim
        shape[axis] = int(rng.choice([0, 1, 4, 11]))
        operand, index = index_operand(rng, shape, extent, outside and a.size)
        full = list(a.shape)
        full[axis] = shape[axis]
        spread = np.broadcast_to(index, full)
        if not extent and spread.size:
            continue
        # Indices that nothing is at are looked at nevertheless, or not.
        if spread.size or not index.size:
            case('take_along', [operand], [axis], lambda: [np.take_along_axis(a, spread, axis)])
        values = array_values(rng, full if rng.integers(0, 2) else [full[-1]] if rng.integers(0, 2) else [], 'int32' if as_dtype else dtype)
        values = values.astype('float32') if as_dtype else values
        many = np.broadcast_to(values, full)
        operands = [operand, (values, '')]

        def put():
            y = np.array(a)
            np.put_along_axis(y, spread, many, axis)
            return [y]
        if spread.size or not index.size:
            case('put_along', operands, [axis], put)
            wide = {'float16': 'float32', 'bfloat16': 'float32'}.get(dtype, dtype)
            near = {'float16': 1e-3, 'bfloat16': 8e-3, 'float32': 1e-6, 'float64': 1e-14, 'complex64': 1e-6, 'complex128': 1e-14}.get(dtype, 0.0)
            add = lambda: [scattered(np.logical_or.at if dtype == 'bool' else np.add.at, a, spread, many, axis, wide).astype(a.dtype)]
            case('scatter_add', operands, [axis], add, near)
            if dtype == 'bool' or dtype.startswith('complex'):
                continue
            case('scatter_max', operands, [axis], lambda: [scattered(np.maximum.at, a, spread, many, axis, a.dtype)], near)
            case('scatter_min', operands, [axis], lambda: [scattered(np.minimum.at, a, spread, many, axis, a.dtype)], near)
    cases.write(path)


# --- files ---------------------------------------------------------------------------------------

def npy_files(path):
    rng = np.random.default_rng(2)
    parts = []

    def add(name, a, write=np.save):
        write(name, a)
        parts.append(text(name) + array(a.astype(a.dtype.newbyteorder('='))))

    for name in DTYPES:
        if name == 'bfloat16':
            continue
        a = rng.standard_normal((3, 4, 5)) * 50
        if name.startswith('complex'):
            a = a + 1j * rng.standard_normal(a.shape)
        if name.startswith('u'):
            a = np.abs(a)
        a = a.astype(name)
        add(name + '.c.npy', a)
        add(name + '.f.npy', np.asfortranarray(a))
        add(name + '.big.npy', a.astype(a.dtype.newbyteorder('>')))
        add(name + '.0d.npy', np.array(a[1, 2, 3]))
        add(name + '.1d.npy', a.ravel()[:7])
        add(name + '.empty.npy', a[:, :0])
        add(name + '.1f.npy', np.asfortranarray(a[:, :1, 0]))
        for major in (2, 3):
            def write(path, a):
                with open(path, 'wb') as f:
                    np.lib.format.write_array(f, a, version=(major, 0))
            add('%s.v%d.npy' % (name, major), a, write)
    with open(path, 'wb') as f:
        f.write(struct.pack('<i', len(parts)))
        f.writelines(parts)


def npy_check(path):
    """For every NAME.npy in a list of names: saved.NAME.npy holds the same."""
    for name in open(path).read().split():
        a, b = np.load(name), np.load('saved.' + name)
        assert b.dtype == a.dtype.newbyteorder('=') and b.shape == a.shape, (name, b.dtype, b.shape)
        assert b.flags.c_contiguous and b.tobytes() == a.astype(b.dtype).tobytes(), name


def random_check(path):
    """Kolmogorov-Smirnov and chi-square tests of saved numbers. Seeds are fixed: a fair generator passes for good."""
    import scipy.stats
    for line in open(path).read().splitlines():
        name, text = line.split()
        a, kind = np.load(name), text[:text.index('(')]
        numbers = [float(x) for x in text[text.index('(') + 1:-1].split(',')]
        if kind == 'apart':  # the first is in proportion to the weights; none without weight, none twice
            p = np.array(numbers) / np.sum(numbers)
            assert (p[a] > 0).all() and all(len(set(row)) == len(row) for row in a), text
            a, kind, numbers = a[:, 0], 'weights', numbers
        if kind == 'weights':
            p = np.array(numbers) / np.sum(numbers)
            counts = np.bincount(a, minlength=len(p))
            assert (counts[p == 0] == 0).all(), text
            value = scipy.stats.chisquare(counts[p > 0], p[p > 0] * a.size).pvalue
        elif kind in ('poisson', 'binom'):
            d = getattr(scipy.stats, kind)(*numbers)
            low, high = int(d.ppf(1e-3)), int(d.ppf(1 - 1e-3))  # each bin holds 20 and more of 20000, the ends are joined
            k = np.clip(a.astype(np.int64), low, high)
            p = d.pmf(np.arange(low, high + 1))
            p[0], p[-1] = d.cdf(low), d.sf(high - 1)
            assert (a == np.floor(a)).all(), text
            value = scipy.stats.chisquare(np.bincount(k - low, minlength=len(p)), p * a.size).pvalue
        else:
            value = scipy.stats.kstest(a.astype(np.float64), getattr(scipy.stats, kind)(*numbers).cdf).pvalue
        assert value > 1e-3, (text, value)


def npz_files(path):
    """Archives of several arrays, stored and deflated: name of the file, names of its arrays, and these."""
    rng = np.random.default_rng(3)
    parts = []
    arrays = {name: (rng.standard_normal((5, 7)) * 50).astype(name) for name in DTYPES
              if name != 'bfloat16' and not name.startswith('u')}
    noise = rng.integers(0, 256, 70000).astype(np.uint8)          # which does not get smaller
    steps = np.repeat(np.arange(3000, dtype=np.int32), 50)        # long copies, far back
    skewed = rng.geometric(0.3, 90001).astype(np.uint8)           # long codes
    for name, write, content in [
            ('dtypes.npz', np.savez, arrays), ('packed.npz', np.savez_compressed, arrays),
            ('one.npz', np.savez_compressed, {'x': np.zeros((300, 40), np.float32)}),
            ('large.npz', np.savez_compressed, {'noise': noise, 'steps': steps, 'skewed': skewed,
                                                'fortran': np.asfortranarray(rng.standard_normal((9, 11))),
                                                'empty': np.zeros((0, 3), np.int8), 'scalar': np.float64(2.5)})]:
        write(name, **content)
        parts += [text(name) + text(key) + array(np.asarray(a)) for key, a in content.items()]
    with open(path, 'wb') as f:
        f.write(struct.pack('<i', len(parts)))
        f.writelines(parts)


def npz_check(path):
    """Archive `path`.npz, written by test_io.c out of what npz_files wrote"""
    import zipfile
    assert zipfile.ZipFile(path).testzip() is None
    a = np.load(path)
    steps = np.repeat(np.arange(3000, dtype=np.int32), 50)
    assert sorted(a.files) == ['half', 'steps', 'view'], a.files
    assert a['steps'].dtype == np.int32 and (a['steps'] == steps).all()
    assert (a['view'] == np.arange(6, dtype=np.float32).reshape(2, 3).T[::-1]).all() and a['view'].shape == (3, 2)
    assert a['half'].dtype == np.float16 and a['half'].shape == () and a['half'] == 1.5


SAFETENSORS = {'F64': '<f8', 'F32': '<f4', 'F16': '<f2', 'BF16': '<u2', 'I64': '<i8', 'I32': '<i4', 'I16': '<i2', 'I8': 'i1',
               'U64': '<u8', 'U32': '<u4', 'U16': '<u2', 'U8': 'u1', 'BOOL': '?', 'C64': '<c8'}


def safetensors_read(path):
    """The arrays of a file by name, and its metadata; bfloat16 as its bits"""
    import json
    data = open(path, 'rb').read()
    size = int.from_bytes(data[:8], 'little')
    header, data, arrays, at = json.loads(data[8:8 + size].decode()), data[8 + size:], {}, 0
    assert size % 8 == 0
    notes = header.pop('__metadata__', {})
    for name, e in sorted(header.items(), key=lambda e: e[1]['data_offsets']):
        (begin, end), t = e['data_offsets'], np.dtype(SAFETENSORS[e['dtype']])
        assert begin == at and begin % t.itemsize == 0, 'gaps, or not aligned'
        arrays[name], at = (e['dtype'], np.frombuffer(data[begin:end], t).reshape(e['shape'])), end
    assert at == len(data)
    return arrays, notes, list(header)


def safetensors_write(path, arrays, notes):
    import json
    header, data = {'__metadata__': notes}, b''
    for name, (t, a) in arrays.items():
        header[name] = {'shape': list(a.shape), 'data_offsets': [len(data), len(data) + a.nbytes], 'dtype': t}
        data += a.tobytes()
    text = json.dumps(header, indent=1).encode() + b'  \n'
    open(path, 'wb').write(len(text).to_bytes(8, 'little') + text + data)


def safetensors_check(path):
    """What test_safetensors.c saved; writes it anew, the other way round, for it to read"""
    arrays, notes, order = safetensors_read(path)
    want = np.arange(12).reshape(3, 4) * 3 % 7
    assert notes == {'format': 'pt', '\u043a\u043b\u044e\u0447': 'a "b"\n'}, notes
    assert order == list(SAFETENSORS) + ['empty', 'scalar', 'turned "\\\n\U0001f600'], order
    for name, t in SAFETENSORS.items():
        kind, a = arrays[name]
        if name == 'BF16':
            a = (a.astype(np.uint32) << 16).view(np.float32)
        assert kind == name and (a == want.astype(bool if name == 'BOOL' else float)).all() and a.shape == (3, 4), name
    assert arrays['empty'][1].shape == (0, 5) and arrays['scalar'][1].shape == () and arrays['scalar'][1] == 1.5
    assert (arrays[order[-1]][1] == want.T).all()
    safetensors_write(path + '.python', dict(reversed(arrays.items())), notes)


def csv_files(path):
    """Tables as np.savetxt writes them, and what np.loadtxt reads from them"""
    rng = np.random.default_rng(4)
    parts = []
    for name, dtype, fmt, delimiter in [('f8', 'float64', '%.18e', ','), ('f4', 'float32', '%.9g', ';'),
                                        ('i8', 'int64', '%d', '\t'), ('f2', 'float16', '%.5g', ' '), ('u1', 'uint8', '%d', ',')]:
        a = (rng.standard_normal((23, 5)) * 10.0 ** rng.integers(0, 4, (23, 5))).astype(np.float64)
        a = np.abs(a) % 256 if name == 'u1' else a
        if name == 'i8':
            a = rng.integers(-2**63, 2**63 - 1, (23, 5))
        if name == 'f8':
            a *= 10.0 ** rng.integers(-300, 300, (23, 5))
        np.savetxt(name + '.csv', a.astype(dtype), fmt=fmt, delimiter=delimiter, header='a b c', comments='')
        parts.append(text(name + '.csv') + text(delimiter)
                     + array(np.loadtxt(name + '.csv', dtype=dtype, delimiter=delimiter, skiprows=1)))
    with open(path, 'wb') as f:
        f.write(struct.pack('<i', len(parts)))
        f.writelines(parts)


def csv_check(path):
    """saved.NAME.csv, written by test_io.c, holds what NAME.csv holds"""
    for name, delimiter in [('f8', ','), ('f4', ';'), ('i8', '\t'), ('f2', ' '), ('u1', ',')]:
        dtype = np.dtype(name)
        a = np.loadtxt(name + '.csv', dtype=dtype, delimiter=delimiter, skiprows=1)
        b = np.loadtxt('saved.' + name + '.csv', dtype=dtype, delimiter=delimiter, skiprows=1)
        assert a.shape == b.shape and (a == b).all(), name
        if name == 'f8': # as short as Python's own
            words = open('saved.f8.csv').read().split('\n')[1].split(',')
            assert [len(w.replace('e+', 'e')) for w in words] <= [len(repr(float(w))) + 1 for w in words], words


def trace_check(path):
    """A Chrome trace: valid JSON, spans on named tracks"""
    import json
    trace = json.load(open(path))
    events = trace['traceEvents']
    assert {e['args']['name'] for e in events if e['ph'] == 'M'} == {'CPU', 'GPU'}
    spans = [e for e in events if e['ph'] == 'X']
    assert spans and all(e['ts'] >= 0 and e['dur'] >= 0 and e['pid'] == 1 and e['tid'] in (1, 2) for e in spans)
    assert any(e['name'] == 'matmul' for e in spans), spans


if __name__ == '__main__':
    what, where = sys.argv[1:3]
    {'print': print_cases, 'create': create_cases, 'random': random_cases, 'views': view_cases, 'ops': op_cases, 'arrays': array_cases, 'order': order_cases, 'index': index_cases, 'curves': curve_cases, 'npy': npy_files,
     'npy_check': npy_check, 'npz': npz_files, 'npz_check': npz_check, 'csv': csv_files, 'csv_check': csv_check,
     'safetensors_check': safetensors_check,
     'random_check': random_check, 'trace_check': trace_check}[what](where)
