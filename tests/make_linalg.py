#!/usr/bin/env python3
"""Writes the cases that test_linalg.c compares with NumPy: make_linalg.py FILE

A case: name, subscripts, view, 4 integers, expected dtype, operands, what errors are relative to, result.
Results are computed in float64; errors are relative to the largest element of the result, those of products to
that of the product of the absolute values.
"""
import struct
import sys

import numpy as np

DTYPES = ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64', 'uint8', 'int8', 'uint32', 'bool',
          'complex64', 'complex128']


def array(a):
    """dtype, rank, shape, bytes in C order"""
    a = np.asarray(a)
    return (struct.pack('<ii', DTYPES.index(a.dtype.name), a.ndim) + struct.pack('<%dq' % a.ndim, *a.shape)
            + np.ascontiguousarray(a).tobytes())


def text(s):
    return struct.pack('<i', len(s)) + s.encode()


def case(name, operands, result, dtype, subscripts='', view=0, numbers=(), scale=None):
    scale = np.max(np.abs(result if scale is None else scale), initial=0)
    ints = list(numbers) + [0] * (4 - len(numbers))
    return (text(name) + text(subscripts) + struct.pack('<7i', view, *ints, DTYPES.index(np.dtype(dtype).name),
                                                        len(operands))
            + b''.join(array(a) for a in operands) + struct.pack('<d', scale) + array(result))


def viewed(a, view):
    """What the test sees of an operand: itself, its last axes swapped, every other matrix element, backwards."""
    if view == 1:
        return np.swapaxes(a, -1, -2)
    if view == 2:
        return a[..., ::2, ::2]
    if view == 3:
        return a[..., ::-1, ::-1]
    return a


def sample(rng, shape, dtype):
    if np.issubdtype(dtype, np.floating):
        return rng.standard_normal(shape).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.integers(0, 2 if dtype == np.bool_ else 10, shape).astype(dtype)


def both(fn, operands):
    """The result of a product and its scale."""
    return fn(*map(wide, operands)), fn(*(abs(wide(a)) for a in operands))


def wide(a):
    if np.issubdtype(a.dtype, np.complexfloating):
        return a.astype(np.complex128)
    return a.astype(np.float64) if np.issubdtype(a.dtype, np.floating) else a


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


REAL = {np.complex64: np.float32, np.complex128: np.float64}
FLOATS = (np.float32, np.float64, np.complex64, np.complex128)


EINSUMS = [
    ('i->i', [(5,)]), ('i->', [(5,)]), ('ij->ji', [(3, 4)]), ('ji', [(3, 4)]), ('ii', [(4, 4)]), ('ii->i', [(4, 4)]),
    ('iij->ji', [(3, 3, 2)]), ('iji->j', [(3, 2, 3)]), ('iii->i', [(3, 3, 3)]), ('ijij->ij', [(2, 3, 2, 3)]),
    ('ij->', [(3, 4)]), ('ij->j', [(3, 4)]), ('...ij->...ji', [(2, 3, 4, 5)]), ('...', [(2, 3)]), ('i...->...', [(4, 3, 2)]),
    ('i,i->', [(7,), (7,)]), ('i,i->i', [(7,), (7,)]), ('i,j->ij', [(3,), (4,)]), ('i,j', [(3,), (4,)]),
    ('j,i->ij', [(3,), (4,)]), ('ij,jk->ik', [(3, 4), (4, 5)]), ('ij,jk', [(3, 4), (4, 5)]), ('ij,kj->ki', [(3, 4), (5, 4)]),
    ('ij,ij->', [(3, 4), (3, 4)]), ('ij,ij->i', [(3, 4), (3, 4)]), ('ij,ij', [(3, 4), (3, 4)]), ('ij,ji->', [(3, 4), (4, 3)]),
    ('bij,bjk->bik', [(6, 3, 4), (6, 4, 5)]), (' b i j , b j k -> i b k', [(2, 3, 4), (2, 4, 5)]),
    ('bij,bjk->ik', [(2, 3, 4), (2, 4, 5)]), ('bij,cjk->bcik', [(2, 3, 4), (3, 4, 5)]), ('bhqd,bhkd->bhqk', [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ('...ij,...jk->...ik', [(2, 1, 3, 4), (5, 4, 2)]), ('...ij,jk', [(2, 3, 4), (4, 5)]), ('i...,i...->...', [(4, 3, 2), (4, 2)]),
    ('ijk,jil->kl', [(3, 4, 5), (4, 3, 2)]), ('abcd,cdef->abef', [(2, 3, 4, 5), (4, 5, 2, 3)]), ('abc,abc->', [(2, 3, 4)] * 2),
    ('ij,j->i', [(3, 4), (4,)]), ('i,ij->j', [(3,), (3, 4)]), (',ij->ij', [(), (2, 3)]), (',->', [(), ()]), (',', [(), ()]),
    ('ij,ij->ij', [(1, 3), (2, 3)]), ('ij,jk->ik', [(3, 1), (4, 5)]), ('ij,jk->ik', [(3, 4), (1, 5)]), ('i,i->', [(1,), (5,)]),
    ('bij,bjk->bik', [(1, 3, 4), (6, 4, 5)]), ('ii,i->', [(3, 3), (3,)]), ('ii,ij->j', [(3, 3), (3, 2)]),
    ('ij,jk,kl->il', [(3, 4), (4, 5), (5, 2)]), ('ij,jk,kl,lm->im', [(10, 2), (2, 10), (10, 3), (3, 10)]),
    ('ea,fb,abcd,gc,hd->efgh', [(3, 3), (3, 3), (3, 3, 3, 3), (3, 3), (3, 3)]), ('i,i,i->i', [(4,)] * 3), ('i,j,k->kji', [(2,), (3,), (4,)]),
    ('a,ab,abc->abc', [(2,), (2, 3), (2, 3, 4)]), ('a,ab,abc->abc...', [(2,), (2, 3), (2, 3, 4)]), ('bi,ij,bj->b', [(5, 3), (3, 4), (5, 4)]),
    ('aB,Bc', [(2, 3), (3, 4)]), ('ij,jk->ik', [(0, 4), (4, 5)]), ('ij,jk->ik', [(3, 0), (0, 5)]), ('ij->i', [(3, 0)]),
    ('abcdefgh->hgfedcba', [(2, 1, 2, 1, 2, 1, 2, 3)]), ('ab,bc,cd,de,ef->af', [(4, 5), (5, 6), (6, 4), (4, 3), (3, 2)]),
]


def einsums(rng):
    for subscripts, shapes in EINSUMS:
        for dtype in FLOATS + (np.int32,):
            a = [sample(rng, s, dtype) for s in shapes]
            y, scale = both(lambda *x: np.einsum(subscripts, *x), a)
            yield case('einsum', a, y, dtype, subscripts, scale=scale)
    a = [sample(rng, (3, 4), np.bool_), sample(rng, (4, 2), np.bool_)]
    yield case('einsum', a, np.einsum('ij,jk->ik', *a), np.bool_, 'ij,jk->ik')
    a = [sample(rng, (3, 4), np.float32), sample(rng, (4, 2), np.int32)]
    yield case('einsum', a, np.einsum('ij,jk->ik', *a).astype(np.float64), np.float32, 'ij,jk->ik')
    for view in range(4):
        a = [sample(rng, (2, 6, 6), np.float32), sample(rng, (2, 6, 6), np.float32)]
        y, scale = both(lambda *x: np.einsum('bij,bjk->bki', *(viewed(z, view) for z in x)), a)
        yield case('einsum', a, y, np.float32, 'bij,bjk->bki', view, scale=scale)


def products(rng):
    for dtype in FLOATS + (np.int32,):
        for sa, sb in [((), (3,)), ((2, 3), ()), ((5,), (5,)), ((3, 4), (4, 5)), ((2, 3, 4), (4,)), ((4,), (4, 5)),
                       ((2, 3, 4), (4, 5)), ((2, 3, 4), (5, 4, 6)), ((4,), (5, 4, 6)), ((3, 0), (0, 2))]:
            a, b = sample(rng, sa, dtype), sample(rng, sb, dtype)
            y, scale = both(np.dot, [a, b])
            yield case('dot', [a, b], y, dtype, scale=scale)
        for sa, sb in [((3,), (4,)), ((2, 3), (2, 2)), ((), (3,)), ((0,), (2,))]:
            a, b = sample(rng, sa, dtype), sample(rng, sb, dtype)
            yield case('outer', [a, b], np.outer(wide(a), wide(b)), dtype)
        for sa, sb, count in [((2, 3, 4), (3, 4, 5), 2), ((2, 3), (4, 5), 0), ((3, 4), (4, 5), 1), ((2, 3), (2, 3), 2),
                              ((2, 3, 4), (2, 3, 4), 3)]:
            a, b = sample(rng, sa, dtype), sample(rng, sb, dtype)
            y, scale = both(lambda x, z: np.tensordot(x, z, count), [a, b])
            yield case('tensordot', [a, b], y, dtype, numbers=[count], scale=scale)
        a, b = sample(rng, (4, 3, 5), dtype), sample(rng, (3, 4, 2), dtype)
        for axes in ([0, -2], [1, 0]), ([1, 0], [0, 1]):
            y, scale = both(lambda x, z: np.tensordot(x, z, axes), [a, b])
            yield case('tensordot_axes', [a, b], y, dtype, numbers=axes[0] + axes[1], scale=scale)
        total = np.int64 if dtype == np.int32 else dtype
        for shape in [(4, 4), (3, 5), (5, 3), (2, 4, 3), (1, 1), (0, 3)]:
            for k in (-9, -2, -1, 0, 1, 2, 9):
                a = sample(rng, shape, dtype)
                for view in ((0, 1, 2, 3) if k in (0, 1) else (0,)):
                    x = viewed(a, view)
                    yield case('tril', [a], np.tril(x, k), dtype, view=view, numbers=[k])
                    yield case('triu', [a], np.triu(x, k), dtype, view=view, numbers=[k])
                    yield case('diagonal', [a], np.diagonal(x, k, -2, -1), dtype, view=view, numbers=[k])
                    yield case('trace', [a], np.trace(wide(x), k, -2, -1), total, view=view, numbers=[k],
                               scale=wide(a))


def square(rng):
    sizes = [0, 1, 2, 3, 5, 8, 9, 16, 31, 33, 64, 65, 100, 130]
    shapes = [(n, n) for n in sizes] + [(3, 4, 4), (2, 3, 7, 7), (0, 3, 3), (40, 2, 2), (5, 40, 40)]
    for shape in shapes:
        n = shape[-1]
        for dtype in FLOATS:
            for view in range(4) if n % 2 == 1 or n == 2 else (0, 1):
                a = sample(rng, shape, dtype)
                x = wide(viewed(a, view))
                if x.shape[-1] > 20:  # so that the condition does not blow up
                    a = (a + 3 * np.sqrt(n) * np.eye(n)).astype(dtype)
                    x = wide(viewed(a, view))
                m = x.shape[-1]
                yield case('inv', [a], np.linalg.inv(x), dtype, view=view)
                if m < (70 if dtype in (np.float64, np.complex128) else 20):  # beyond that float32 overflows
                    yield case('det', [a], np.linalg.det(x), dtype, view=view)
                b = sample(rng, (m,), dtype)
                yield case('solve', [a, b], np.linalg.solve(x, np.broadcast_to(wide(b)[:, None], x.shape[:-1] + (1,)))[..., 0],
                           dtype, view=view)
                flags = [int(f) for f in rng.integers(0, 2, 3)]
                lower, transposed, unit = flags
                t = (a / (1 + np.sqrt(m)) + 2 * np.eye(n)).astype(dtype)
                z = wide(viewed(t, view))
                z = np.tril(z, -unit) if lower else np.triu(z, unit)
                z = z + unit * np.eye(m)
                z = np.swapaxes(z, -1, -2) if transposed else z
                for right in ((m,), (m, 1), (m, 5), (1, m, 33)):
                    b = sample(rng, right, dtype)
                    many = wide(b)[:, None] if len(right) == 1 else wide(b)
                    many = np.broadcast_to(many, np.broadcast_shapes(z.shape[:-2], many.shape[:-2]) + many.shape[-2:])
                    y = np.linalg.solve(np.broadcast_to(z, many.shape[:-2] + z.shape[-2:]), many)
                    yield case('solve_triangular', [t, b], y[..., 0] if len(right) == 1 else y, dtype, view=view, numbers=flags)
                for k in (1, 3, 40):
                    b = sample(rng, (m, k), dtype)
                    many = np.broadcast_to(wide(b), x.shape[:-2] + b.shape)  # old NumPys read (n, m) as vectors
                    yield case('solve', [a, b], np.linalg.solve(x, many), dtype, view=view)
                s = (wide(a) @ adjoint(wide(a)) + n * np.eye(n)).astype(dtype)
                if view != 2:
                    yield case('cholesky', [s], np.linalg.cholesky(wide(viewed(s, view))), dtype, view=view)
                s = a + adjoint(a)
                yield case('eigvalsh', [s], np.linalg.eigvalsh(wide(viewed(s, view))), REAL.get(dtype, dtype), view=view)
                values = np.linalg.eigvals(x) + 0j  # in another order: the test says how far apart they are
                yield case('eigvals', [a, values], np.zeros(x.shape[:-2]), np.float64, view=view, scale=values)
    for dtype in np.float16, np.int32, np.bool_, np.uint8:
        a = sample(rng, (3, 5, 5), dtype)
        values = np.linalg.eigvals(a.astype(np.float64)) + 0j
        yield case('eigvals', [a, values], np.zeros(3), np.float64, scale=values)
    a, b = sample(rng, (2, 1, 4, 4), np.float64), sample(rng, (3, 4, 2), np.float64)
    yield case('solve', [a, b], np.linalg.solve(a, np.broadcast_to(b, (2, 3, 4, 2))), np.float64)
    a, b = sample(rng, (4, 4), np.int32) + 20 * np.eye(4, dtype=np.int32), sample(rng, (4, 2), np.int32)
    yield case('solve', [a, b], np.linalg.solve(a, b), np.float32)
    for dtype in np.uint8, np.float16:
        x, y = (a.astype(np.float16) / 4).astype(dtype), sample(rng, (2, 4), np.float32)
        want = np.linalg.solve(np.triu(wide(x).astype(np.float64)), wide(y).T).T
        yield case('solve_triangular', [x, np.ascontiguousarray(y.T)], want.T, np.float32, numbers=[0, 0, 0])
    x, y = a.astype(np.float32), sample(rng, (4, 2), np.complex64)
    yield case('solve_triangular', [x, y], np.linalg.solve(np.tril(wide(x)), wide(y)), np.complex64, numbers=[1, 0, 0])
    yield case('inv', [a], np.linalg.inv(a), np.float32)
    yield case('det', [a], np.linalg.det(a), np.float32)
    # The lower triangle alone counts, and of the diagonal the real part.
    for dtype in np.float64, np.complex128:
        a = sample(rng, (5, 5), dtype)
        yield case('eigvalsh', [a], np.linalg.eigvalsh(a), np.float64)
        s = np.tril(a @ adjoint(a) + 5 * np.eye(5)) + np.triu(a, 1)
        if dtype == np.complex128:
            s += 1j * np.diag(a[0].real)
        yield case('cholesky', [s], np.linalg.cholesky(s), dtype)


def signed_qr(x):
    """NumPy's, with a diagonal of r that is real and not negative."""
    q, r = np.linalg.qr(x)
    d = np.diagonal(r)
    sign = np.where(d == 0, 1.0, d / np.where(d == 0, 1.0, abs(d)))
    return q * sign, r * np.conj(sign)[:, None]


def rectangular(rng):
    for shape in [(0, 0), (0, 3), (3, 0), (1, 1), (1, 5), (5, 1), (3, 3), (4, 7), (7, 4), (32, 32), (33, 33), (40, 70),
                  (70, 40), (100, 100), (2, 3, 5), (2, 2, 6, 4), (0, 4, 3), (30, 3, 3), (200, 5), (5, 200)]:
        for dtype in FLOATS:
            for view in range(4) if shape[-1] < 10 else (0, 1):
                a = sample(rng, shape, dtype)
                x = wide(viewed(a, view))
                q, r = np.empty(0), np.empty(0)
                if x.ndim == 2:  # old NumPys do one matrix at a time
                    q, r = signed_qr(x)
                else:
                    pairs = [signed_qr(y) for y in x.reshape((-1,) + x.shape[-2:])]
                    k = min(x.shape[-2:])
                    q = np.array([p[0] for p in pairs], x.dtype).reshape(x.shape[:-1] + (k,))
                    r = np.array([p[1] for p in pairs], x.dtype).reshape(x.shape[:-2] + (k, x.shape[-1]))
                yield case('qr_q', [a], q, dtype, view=view)
                yield case('qr_r', [a], r, dtype, view=view)
                yield case('svdvals', [a], np.linalg.svd(x, compute_uv=False), REAL.get(dtype, dtype), view=view)


def main():
    rng = np.random.default_rng(11)
    cases = [c for fn in (einsums, products, square, rectangular) for c in fn(rng)]
    with open(sys.argv[1], 'wb') as f:
        f.write(struct.pack('<i', len(cases)) + b''.join(cases))


main()
