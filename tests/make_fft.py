#!/usr/bin/env python3
"""Writes the cases that test_fft.c compares with SciPy: make_fft.py FILE"""
import struct
import sys

import numpy as np
import scipy.fft as sf
import scipy.signal as ss

DTYPES = ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64', 'uint8', 'int8', 'uint32', 'bool',
          'complex64', 'complex128']
NORMS = ['backward', 'ortho', 'forward']
MODES = ['full', 'same', 'valid']


def array(a):
    """dtype, rank, shape, bytes in C order"""
    a = np.asarray(a)
    return (struct.pack('<ii', DTYPES.index(a.dtype.name), a.ndim) + struct.pack('<%dq' % a.ndim, *a.shape)
            + np.ascontiguousarray(a).tobytes())


def case(name, view, numbers, operands, result):
    data = name.encode()
    ints = list(numbers) + [0] * (4 - len(numbers))
    return (struct.pack('<i', len(data)) + data + struct.pack('<6i', view, *ints, len(operands))
            + b''.join(array(a) for a in operands) + array(result))


def viewed(a, view):
    """What the test sees of an array: itself, transposed, every other element, backwards."""
    if view == 1:
        return a.T
    if view == 2:
        return a[..., ::2]
    if view == 3:
        return a[::-1, ..., ::-1] if a.ndim > 1 else a[::-1]
    return a


def sample(rng, shape, dtype):
    if np.issubdtype(dtype, np.complexfloating):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2 if dtype == np.bool_ else 100, shape).astype(dtype)


def wide(a):
    """SciPy's transforms in double precision, so that its error does not count."""
    if np.issubdtype(a.dtype, np.complexfloating):
        return a.astype(np.complex128)
    return a.astype(np.float64)


def lengths():
    for n in list(range(1, 70)) + [96, 97, 100, 121, 125, 127, 128, 169, 200, 243, 250, 251, 255, 256, 257, 300, 343,
                                   360, 480, 500, 509, 512, 600, 625, 729, 1000, 1001, 1009, 1024, 1331, 1536, 2000,
                                   2039, 2048]:
        yield n


def transforms(rng):
    one = {'fft': sf.fft, 'ifft': sf.ifft, 'rfft': sf.rfft, 'irfft': sf.irfft, 'hfft': sf.hfft, 'ihfft': sf.ihfft}
    for n in lengths():
        for k, (name, fn) in enumerate(one.items()):
            narrow = (n + k) % 2 == 0
            real = name in ('rfft', 'ihfft') or (name in ('fft', 'ifft') and n % 3 == 0)
            dtype = (np.float32 if narrow else np.float64) if real else (np.complex64 if narrow else np.complex128)
            size = max(n // 2 + 1, 2) if name in ('irfft', 'hfft') else n
            a = sample(rng, (3, size), dtype)
            norm = (n + k) % 3
            yield case(name, 0, [n if name in ('irfft', 'hfft') else 0, -1, norm], [a],
                       fn(wide(a), n if name in ('irfft', 'hfft') else None, -1, NORMS[norm]))
    for shape in [(5, 8), (17, 12), (6, 20, 18), (32, 40), (4, 3, 5, 6)]:
        for name, fn in one.items():
            for view in range(4):
                for axis in range(-1, len(shape) - 1):
                    real = name in ('rfft', 'ihfft')
                    a = sample(rng, shape, np.float32 if real else np.complex64)
                    x = viewed(a, view)
                    length = x.shape[axis]
                    for n in (0, length + 3, max(length - 3, 1)):
                        if name in ('irfft', 'hfft') and n == 0 and length < 2:
                            continue
                        yield case(name, view, [n, axis, 0], [a], fn(wide(x), n or None, axis))
    for dtype in (np.float16, np.int32, np.uint8, np.bool_, np.int64):
        a = sample(rng, (4, 30), dtype)
        yield case('fft', 0, [0, -1, 0], [a], sf.fft(wide(a)))
        yield case('rfft', 0, [0, 0, 1], [a], sf.rfft(wide(a), axis=0, norm='ortho'))
    a = sample(rng, (40, 40), np.complex64)
    yield case('fft', 0, [0, 0, 0], [a[:1].repeat(40, 0)], sf.fft(wide(a[:1].repeat(40, 0)), axis=0))


def every_length(rng):
    """Each length to 2048 by one of the six, larger ones of all kinds by fft and rfft; results rounded to float32."""
    one = {'fft': sf.fft, 'rfft': sf.rfft, 'ifft': sf.ifft, 'irfft': sf.irfft, 'hfft': sf.hfft, 'ihfft': sf.ihfft}
    names = list(one)
    for n in range(1, 2049):
        name = names[n * 5 % 7 % 6]
        short = name in ('irfft', 'hfft')
        a = sample(rng, n // 2 + 1 if short else n, np.float32 if name in ('rfft', 'ihfft') else np.complex64)
        y = one[name](wide(a), n)
        yield case(name, 0, [n, 0, 0], [a], y.astype(np.complex64 if np.iscomplexobj(y) else np.float32))
    for n in (2401, 4096, 4099, 6561, 8192, 10000, 10007, 14641, 16384, 20449, 30030, 32768, 65536, 65537, 100000,
              100003, 131072, 200200, 1 << 20):
        for name in ('fft', 'rfft')[:1 if n > 100000 else 2]:
            a = sample(rng, n, np.complex64 if name == 'fft' else np.float32)
            yield case(name, 0, [0, 0, 1], [a], one[name](wide(a), norm='ortho').astype(np.complex64))


def long_ones(rng):
    """Up to 2^22 points: powers of two and of three, smooth lengths and primes."""
    for n in (1 << 22, 3 ** 13, 2097143):
        a = sample(rng, n, np.complex64)
        yield case('fft', 0, [0, 0, 1], [a], sf.fft(wide(a), norm='ortho').astype(np.complex64))
    for n in (1 << 21, 10 ** 6, 1000003):
        a = sample(rng, n, np.complex128)
        yield case('ifft', 0, [0, 0, 1], [a], sf.ifft(a, norm='ortho'))
    a = sample(rng, 1 << 22, np.float32)
    yield case('rfft', 0, [0, 0, 1], [a], sf.rfft(wide(a), norm='ortho').astype(np.complex64))


def large_axes(rng):
    """Arrays whose columns are copied to a buffer, with and without a remainder."""
    for shape in ((48, 96, 160), (60, 9001), (40, 52, 300)):
        a = sample(rng, shape, np.complex64)
        yield case('fft', 0, [0, 0, 1], [a], sf.fft(wide(a), axis=0, norm='ortho').astype(np.complex64))
        yield case('fftn', 0, [0, 1], [a], sf.fftn(wide(a), norm='ortho').astype(np.complex64))


def some_axes(rng):
    """Two axes in any order, cut and padded: a shape of three and n, n, axis, axis."""
    many = {'fftn2': sf.fftn, 'ifftn2': sf.ifftn, 'rfftn2': sf.rfftn, 'irfftn2': sf.irfftn}
    for view in range(4):
        for name, fn in many.items():
            for axes in ((0, 1), (2, 0), (-1, -2), (1, 2)):
                a = sample(rng, (9, 10, 12), np.float32 if name == 'rfftn2' else np.complex64)
                x = viewed(a, view)
                for n in ((x.shape[axes[0]], x.shape[axes[1]]), (5, 14), (16, 4)):
                    if name == 'irfftn2' and n[1] == x.shape[axes[1]]:
                        n = (n[0], 2 * (n[1] - 1))
                    yield case(name, view, [*n, *axes], [a], fn(wide(x), n, axes))


def several(rng):
    many = {'fftn': sf.fftn, 'ifftn': sf.ifftn, 'rfftn': sf.rfftn, 'irfftn': sf.irfftn}
    for shape in [(8, 6), (5, 9, 16), (33, 20), (3, 4, 5, 6)]:
        for name, fn in many.items():
            for view in range(3):
                a = sample(rng, shape, np.float32 if name == 'rfftn' else np.complex64)
                x = viewed(a, view)
                for count in (0, 1, 2):
                    axes = None if count == 0 else tuple(range(-count, 0))
                    for norm in range(3):
                        yield case(name, view, [count, norm], [a], fn(wide(x), None, axes, NORMS[norm]))
        a = sample(rng, shape, np.complex128)
        yield case('fft2', 0, [0], [a], sf.fft2(a))
        yield case('ifft2', 0, [1], [a], sf.ifft2(a, norm='ortho'))


def sine(fn, a, kind, n=None, axis=-1, norm=None):
    """SciPy up to 1.10 scales the first element where the orthogonal matrix needs the last one scaled."""
    if norm != 'ortho' or kind not in (2, 3):
        return fn(a, kind, n, axis, norm)
    n = n or a.shape[axis]
    forward = kind if fn is sf.dst else 5 - kind
    a = np.moveaxis(a, axis, -1)
    a = np.concatenate([a[..., :n], np.zeros(a.shape[:-1] + (max(n - a.shape[-1], 0),))], -1)
    ends = np.ones(n)
    ends[-1] = np.sqrt(2)
    y = sf.dst(a, 2) / ends if forward == 2 else sf.dst(a * ends, 3)
    return np.moveaxis(y / np.sqrt(2 * n), -1, axis)


def cosine(fn, a, kind, n=None, axis=-1, norm=None):
    return fn(a, kind, n, axis, norm)


def trigonometric(rng):
    for name, fn in {'dct': sf.dct, 'idct': sf.idct, 'dst': sf.dst, 'idst': sf.idst}.items():
        by = sine if 's' in name else cosine
        for kind in range(1, 5):
            for n in (1, 2, 3, 4, 5, 8, 9, 16, 31, 40, 128):
                if kind == 1 and n == 1 and 'c' in name:
                    continue
                for norm in range(3):
                    a = sample(rng, (3, n), np.float64 if n % 2 else np.float32)
                    yield case(name, 0, [kind, 0, -1, norm], [a], by(fn, wide(a), kind, norm=NORMS[norm]))
            a = sample(rng, (10, 7), np.float32)
            for view in (1, 2, 3):
                for axis in (0, -1):
                    yield case(name, view, [kind, 0, axis, 0], [a], by(fn, wide(viewed(a, view)), kind, axis=axis))
            yield case(name, 0, [kind, 6, 0, 0], [a], by(fn, wide(a), kind, 6, 0))
            yield case(name, 0, [kind, 12, 0, 1], [a], by(fn, wide(a), kind, 12, 0, 'ortho'))


def others(rng):
    for shape in [(7,), (8,), (5, 6), (4, 1, 3)]:
        for dtype in (np.float32, np.complex64, np.int32):
            a = sample(rng, shape, dtype)
            yield case('fftshift', 0, [0], [a], sf.fftshift(a))
            yield case('ifftshift', 0, [0], [a], sf.ifftshift(a))
            yield case('fftshift', 0, [1], [a], sf.fftshift(a, 0))
            yield case('ifftshift', 0, [1], [a], sf.ifftshift(a, 0))
            for view in (1, 2, 3):
                yield case('fftshift', view, [0], [a], sf.fftshift(viewed(a, view)))
    for n in (1, 2, 7, 8):
        yield case('fftfreq', 0, [n], [np.float64(0.25)], sf.fftfreq(n, 0.25))
        yield case('rfftfreq', 0, [n], [np.float64(0.25)], sf.rfftfreq(n, 0.25))
    for shape in [(5,), (4, 3), (2, 3, 4)]:
        for view in range(4):
            z = sample(rng, shape, np.complex64 if view % 2 else np.complex128)
            x = viewed(z, view)
            for name, fn in {'real': np.real, 'imag': np.imag, 'conj': np.conj, 'angle': np.angle}.items():
                yield case(name, view, [], [z], fn(x))
                yield case(name, view, [], [z.real.copy()], fn(x.real).astype(x.real.dtype))
    a, b = sample(rng, (4, 1), np.float32), sample(rng, (3,), np.float32)
    yield case('complex', 0, [], [a, b], (a + 1j * b).astype(np.complex64))
    for view in (2, 3):
        for mode in range(3):
            a, b = sample(rng, 90, np.float32), sample(rng, 40, np.float32)
            x = viewed(a, view)
            yield case('convolve', view, [mode], [a, b], np.convolve(x, b, MODES[mode]))
            yield case('correlate', view, [mode], [a, b], np.correlate(x, b, MODES[mode]))
            yield case('fftconvolve', view, [mode], [a, b], ss.fftconvolve(wide(x), wide(b), MODES[mode]))
            c, d = sample(rng, (14, 12), np.float32), sample(rng, (3, 4), np.float32)
            yield case('convolve2d', view, [mode], [c, d], ss.convolve2d(wide(viewed(c, view)), wide(d), MODES[mode]))
    for n, m in [(1, 1), (5, 3), (3, 5), (8, 8), (100, 7), (7, 100), (100, 60), (1000, 333)]:
        for dtype in (np.float32, np.float64, np.complex64, np.int32):
            a, b = sample(rng, n, dtype), sample(rng, m, dtype)
            for mode in range(3):
                yield case('convolve', 0, [mode], [a, b], np.convolve(a, b, MODES[mode]))
                yield case('correlate', 0, [mode], [a, b], np.correlate(a, b, MODES[mode]))
                if dtype != np.int32:
                    yield case('fftconvolve', 0, [mode], [a, b], ss.fftconvolve(wide(a), wide(b), MODES[mode]))
    for sa, sb in [((6, 7), (3, 3)), ((6, 7), (3, 2)), ((20, 30), (9, 8)), ((4, 4), (5, 6))]:
        for mode in range(3):
            a, b = sample(rng, sa, np.float32), sample(rng, sb, np.float32)
            yield case('convolve2d', 0, [mode], [a, b], ss.convolve2d(wide(a), wide(b), MODES[mode]))
            if sa[0] > sb[0] or mode < 2:
                yield case('fftconvolve', 0, [mode], [a, b], ss.fftconvolve(wide(a), wide(b), MODES[mode]))


def main():
    rng = np.random.default_rng(7)
    count = 0
    with open(sys.argv[1], 'wb') as f:
        f.write(struct.pack('<i', count))
        for fn in (transforms, every_length, long_ones, large_axes, several, some_axes, trigonometric, others):
            for c in fn(rng):
                f.write(c)
                count += 1
        f.seek(0)
        f.write(struct.pack('<i', count))


main()
