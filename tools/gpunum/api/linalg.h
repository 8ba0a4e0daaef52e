// >>linalg
// Products, sums of products and decompositions of matrices. A matrix is the last two axes of an array, the
// axes in front of them are batches and broadcast.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// NumPy's matmul: (..., m, k) x (..., k, n) -> (..., m, n), batches broadcast, 1-d operands as in NumPy.
// Transposed views cost nothing. float16 and bfloat16 accumulate in float32, and elementwise work that runs at
// the product's store sees that float32 sum, not yet rounded. That work is not fused where the product has
// other readers: other pending work, a reference of the caller's, or a derivative that needs its value. A
// product that only a scope holds may be computed again if it is asked for after its store was fused.
// A large float32 operand that is itself pending elementwise work (a conversion, a scale, a mask) is made while
// the product reads it, where the other operand is a vector and nobody else reads it; sums may round differently then.
// Large operands of 16 bits whose rows are no multiples of 16 bytes are copied first, on a GPU with matrix units. The
// copy stays with its array, for the next product, until that is written or freed, while less than half of the device's
// memory is taken.
GPUNUM_API gn_array *gn_matmul(gn_array *a, gn_array *b);
// NumPy's dot: inner product of 1-d arrays; else sums over the last axis of `a` and the last but one of `b`.
GPUNUM_API gn_array *gn_dot(gn_array *a, gn_array *b);
// Sums of conj(a) b over one axis, counted in the broadcast shape and of the same length in both; the promoted dtype.
GPUNUM_API gn_array *gn_vecdot(gn_array *a, gn_array *b, int axis);
GPUNUM_API gn_array *gn_outer(gn_array *a, gn_array *b); // (n, m), of the raveled arrays
// Sums over axes a_axes[i] of `a` with b_axes[i] of `b`; the result has the others, a's first. NULL: the last
// `count` axes of `a`, the first of `b`.
GPUNUM_API gn_array *gn_tensordot(gn_array *a, gn_array *b, const int *a_axes, const int *b_axes, int count);
// NumPy's einsum: gn_einsum(g, "bij,bjk->bik", a, b). Letters name axes; those that the result has not are summed
// over. Repeated letters in one term take the diagonal, "..." stands for broadcasting axes, and without "->" the
// result has the letters that are named once, in order. Any number of operands, multiplied two at a time
// in a cheap order. Integers keep their dtype. Of one operand without a sum it is a view, as NumPy's.
GPUNUM_API gn_array *gn_einsum_list(gn_context *g, const char *subscripts, gn_array *const *arrays, int count);
// Diagonal j - i = k of (..., n, m) as a view, its sum, and the elements on and below (j - i <= k) or on and
// above it with zeros elsewhere.
GPUNUM_API gn_array *gn_diagonal(gn_array *a, int64_t k);
// The other way round: of (n) the matrix of n + |k| rows with `a` on diagonal k, and zeros; of a matrix a copy of it.
GPUNUM_API gn_array *gn_diag(gn_array *a, int64_t k);
GPUNUM_API gn_array *gn_trace(gn_array *a, int64_t k); // integers sum to int64
GPUNUM_API gn_array *gn_tril(gn_array *a, int64_t k);
GPUNUM_API gn_array *gn_triu(gn_array *a, int64_t k);

// Decompositions are computed at once. On the CPU that is done in float64 and rounded to the operand's dtype;
// integers give float32. Large matrices (gn_options.thresholds.linalg), and batches of small ones that are as large
// together (up to 128 x 128, of float64 64 x 64), are solved, inverted and factored by LU, Cholesky and QR on the GPU in
// their own dtype, halves in float32: residuals are of the order of n times its epsilon. Pivots there are the largest
// up to a factor of 1 + 2^-11. Such batches of small ones have their eigenvalues and singular values there too, by
// Jacobi's method. Large matrices have theirs one after the other: the GPU makes them tridiagonal or bidiagonal by
// reflections and multiplies the vectors, the CPU finds the values in float64 by divide and conquer; both err by n
// epsilon times the largest value at most. A matrix that has no decomposition is a GN_ERROR_ARGUMENT whose message names
// it and says why.

// All of them take complex matrices too, on the CPU in float64; with a GPU gn_solve and gn_inv solve real ones of twice the
// order. What is transposed is conjugated then, symmetric means Hermitian;
// eigenvalues, singular values and the diagonals of triangles are real. Eigenvectors are known up to a phase, and columns of
// u and rows of vt up to one that they share: a loss that depends on it has no derivative.

// x with a x = b, by LU with partial pivoting: a (..., n, n), b (n) or (..., n, k) as in NumPy 2. A pivot of
// exactly 0 is an error.
GPUNUM_API gn_array *gn_solve(gn_array *a, gn_array *b);
// The same of the lower or the upper triangle of `a`, whose other elements count as 0, whatever they are; with `transposed`
// of a^T (not conjugated), with `unit` as if its diagonal were 1. A diagonal with 0 is an error. Large ones and
// batches are solved on the GPU, complex ones and small ones on the CPU.
GPUNUM_API gn_array *gn_solve_triangular(gn_array *a, gn_array *b, bool lower, bool transposed, bool unit);
GPUNUM_API gn_array *gn_inv(gn_array *a);
GPUNUM_API gn_array *gn_det(gn_array *a); // (...); 0 for singular matrices, whose derivative has none itself
// Lower L with L L^T = a. Reads the lower triangle; the gradient is symmetric. Not positive definite is an error.
GPUNUM_API gn_array *gn_cholesky(gn_array *a);
// a (..., m, n) = q r with q (..., m, k) orthonormal columns, r (..., k, n) upper, k = min(m, n). `r` may be
// NULL. r's diagonal is not negative, so that independent columns have one q and one r (LAPACK's signs differ).
// Derivatives need independent columns, of a wide matrix the first m.
GPUNUM_API gn_array *gn_qr(gn_array *a, gn_array **r);
// Eigenvalues (..., n) of symmetric matrices, in ascending order, and into *v (unless NULL) the eigenvectors as
// columns: a v = v diag(w). Reads the lower triangle. NaN and infinity are errors. The derivative of the values is
// finite always. That of the vectors divides by the differences of all pairs of eigenvalues: where two are equal it
// does not exist, and the gradient of the whole matrix has infinities and NaN in it, without an error, also where the
// loss does not depend on how the vectors of that pair are chosen; where two are close it is as large as 1 / difference.
GPUNUM_API gn_array *gn_eigh(gn_array *a, gn_array **v);
// Eigenvalues (..., n) of any square matrices, in no order, and into *v (unless NULL) eigenvectors as columns: a v =
// v diag(w). Both are always complex, also where all parts that are imaginary are 0: complex128 of float64 and complex128,
// else complex64 (NumPy's dtype depends on the values). Computed on the CPU in float64, by QR steps with shifts. Vectors have
// length 1 and a real number where they are largest, but those of equal values may be the same, or nearly. NaN and infinity
// are errors, and so are matrices for which the steps do not converge. Derivatives divide by the differences of eigenvalues,
// as gn_eigh's, those of the values too: they solve with v, which equal values may leave singular. A loss that depends on the
// phases of the vectors has none.
GPUNUM_API gn_array *gn_eig(gn_array *a, gn_array **v);
// Singular values (..., k) in descending order, k = min(m, n), and into *u and *vt (unless NULL) the vectors:
// a = u diag(s) vt with u (..., m, k) and vt (..., k, n), or with `full` (..., m, m) and (..., n, n). NaN and
// infinity are errors. The derivative of the values is finite always. That of the vectors divides by the differences of
// the squares of all pairs of values, and unless the matrix is square by the values: where two are equal, or one is 0,
// the gradient has infinities and NaN in it, without an error. Vectors that `full` adds have none.
GPUNUM_API gn_array *gn_svd(gn_array *a, bool full, gn_array **u, gn_array **vt);

GPUNUM_API gn_array *gn_eigvalsh(gn_array *a); // gn_eigh's values alone
GPUNUM_API gn_array *gn_eigvals(gn_array *a);  // gn_eig's
GPUNUM_API gn_array *gn_svdvals(gn_array *a);  // gn_svd's
// The sign of the determinant (...), 0 for singular matrices (of complex ones det / |det|), and into *logdet (unless NULL)
// the logarithm of its magnitude.
GPUNUM_API gn_array *gn_slogdet(gn_array *a, gn_array **logdet);
// The pseudo-inverse (..., n, m). Singular values up to rtol times the largest count as 0; rtol below 0 stands for the
// larger of m and n times the dtype's epsilon. The derivative is that of matrices whose rank stays.
GPUNUM_API gn_array *gn_pinv(gn_array *a, double rtol);
GPUNUM_API gn_array *gn_cond(gn_array *a); // the largest singular value over the smallest; infinite where that is 0
GPUNUM_API gn_array *gn_matrix_rank(gn_array *a, double rtol); // int64: how many singular values count
// The shortest x for which a x - b is the shortest: a (..., m, n), b (m) or (..., m, k).
// Into *residuals and *rank, unless they are NULL, go the sums of squares of a x - b, (...) or (..., k), and gn_matrix_rank
// of a. rtol as in gn_pinv.
GPUNUM_API gn_array *gn_lstsq(gn_array *a, gn_array *b, double rtol, gn_array **residuals, gn_array **rank);
GPUNUM_API gn_array *gn_matrix_power(gn_array *a, int64_t n); // below 0 of the inverse
// The exponential of square matrices, the sum of a^k / k!, by scaling and squaring in their own dtype, halves in float32,
// integers in float64 and rounded to it; errors are of the order of epsilon times the norm of `a`, and more where the sum's
// terms cancel. It waits for the norm: GN_ERROR_UNSUPPORTED while a host's commands are recorded. NaN where there is one, and
// what overflows is infinite or NaN.
GPUNUM_API gn_array *gn_expm(gn_array *a);
GPUNUM_API gn_array *gn_kron(gn_array *a, gn_array *b);       // blocks a[i, j] b, with 8 axes above size 1 at most
GPUNUM_API gn_array *gn_cross(gn_array *a, gn_array *b, int axis); // of vectors of 3 elements along that axis
// (sum of |a|^order)^(1/order); the largest or smallest magnitude for an order of +-infinity, how many are not 0 for 0.
GPUNUM_API gn_array *gn_vector_norm(gn_array *a, gn_axes axes, double order);
typedef enum gn_norm_order {
    GN_NORM_FROBENIUS, // root of the sum of squares
    GN_NORM_NUCLEAR,   // sum of the singular values
    GN_NORM_1,         // the largest sum of a column's magnitudes, and the smallest
    GN_NORM_MINUS_1,
    GN_NORM_2, // the largest singular value, and the smallest
    GN_NORM_MINUS_2,
    GN_NORM_INF, // the largest sum of a row's magnitudes, and the smallest
    GN_NORM_MINUS_INF
} gn_norm_order;
GPUNUM_API gn_array *gn_matrix_norm(gn_array *a, gn_norm_order order);
