// >>arrays
// Making arrays, reading them, and who owns them.
//
// A new array has one reference. Inside a scope the scope owns it and drops it at the scope's end;
// outside any scope the caller owns it and calls gn_release. gn_close frees what is left.
// Every function that takes an array accepts NULL, does nothing and returns NULL or 0: check once, at
// the end of a chain. What a function gives through a pointer is NULL after a failure.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

#define GN_SCOPE_NAME2(line) gni_scope_##line
#define GN_SCOPE_NAME(line) GN_SCOPE_NAME2(line)
// GN_SCOPE(g) { ... }: gn_scope_begin and gn_scope_end around a block. Do not leave the block by
// return or goto; `continue` and `break` end the block alone, no loop around it, and the scope is closed.
#define GN_SCOPE(g)                                                                                \
    for (int GN_SCOPE_NAME(__LINE__) = (gn_scope_begin(g), 2); GN_SCOPE_NAME(__LINE__) > 0;        \
         GN_SCOPE_NAME(__LINE__) = 0, gn_scope_end(g))                                             \
        for (; GN_SCOPE_NAME(__LINE__) > 1; GN_SCOPE_NAME(__LINE__) = 1)
GPUNUM_API void gn_scope_begin(gn_context *g);
GPUNUM_API void gn_scope_end(gn_context *g);
GPUNUM_API gn_array *gn_keep(gn_array *a);   // moves `a` to the enclosing scope, or to the caller; returns a
GPUNUM_API gn_array *gn_retain(gn_array *a); // one more reference, owned by the caller; returns a
GPUNUM_API void gn_release(gn_array *a);     // one reference less
// Releases *slot and stores `value` there, which takes the old array's place: its owner, and if it was
// a parameter its requires_grad. Takes over the caller's reference to `value`.
// A NULL value after an error leaves the slot as it was; without one it empties the slot. Optimizers and gn_params keep the
// array that they were given: gn_assign writes into a parameter.
GPUNUM_API void gn_set(gn_array **slot, gn_array *value);

GPUNUM_API gn_shape gn_shape_from(int rank, const int64_t *dims);

// Copies gn_size x itemsize bytes in C order from `data`.
GPUNUM_API gn_array *gn_array_from(gn_context *g, gn_dtype t, gn_shape s, const void *data);
// Borrows `data` (C order, aligned to the item); it must stay valid until `release` is called with it at the end of a call,
// but not of one that fails. `release` may be NULL; called by gn_close it may let go of arrays, but not compute.
// The CPU backend reads and writes it in place: what the program writes there is seen by work that is still
// pending (gn_eval). Bytes of GN_BOOL must be 0 or 1.
GPUNUM_API gn_array *gn_array_wrap(gn_context *g, gn_dtype t, gn_shape s, void *data,
                                   gn_free_fn release, void *user);

GPUNUM_API gn_array *gn_empty(gn_context *g, gn_dtype t, gn_shape s); // memory on first use; 0 where never written
GPUNUM_API gn_array *gn_zeros(gn_context *g, gn_dtype t, gn_shape s);
GPUNUM_API gn_array *gn_ones(gn_context *g, gn_dtype t, gn_shape s);
GPUNUM_API gn_array *gn_full(gn_context *g, gn_dtype t, gn_shape s, double value); // see gn_arange
GPUNUM_API gn_array *gn_scalar(gn_context *g, gn_dtype t, double value); // 0-d
// gn_full with a number that float64 may not hold. GN_SHAPE() makes an operand for exact int64 arithmetic of it.
GPUNUM_API gn_array *gn_full_int(gn_context *g, gn_dtype t, gn_shape s, int64_t value);
// Of the one element that `value` points to: a float[2] for complex64, a uint64_t for uint64, and so on.
GPUNUM_API gn_array *gn_full_from(gn_context *g, gn_dtype t, gn_shape s, const void *value);
GPUNUM_API gn_array *gn_eye(gn_context *g, gn_dtype t, int64_t n, int64_t m, int64_t k); // (n, m), ones on diagonal k
// start, start + step, ... while before stop; length ceil((stop - start) / step). Here, in gn_linspace, gn_full,
// gn_full_like and gn_scalar, integer dtypes cut fractions off (gn_linspace rounds down, as NumPy's), and a number outside
// of their range is GN_ERROR_ARGUMENT.
GPUNUM_API gn_array *gn_arange(gn_context *g, gn_dtype t, double start, double stop, double step);
GPUNUM_API gn_array *gn_linspace(gn_context *g, gn_dtype t, double start, double stop, int64_t count);
GPUNUM_API gn_array *gn_linspace_open(gn_context *g, gn_dtype t, double start, double stop, int64_t count); // without stop
// base to the power of what gn_linspace gives.
GPUNUM_API gn_array *gn_logspace(gn_context *g, gn_dtype t, double start, double stop, int64_t count, double base);
// Of the shape and dtype of `a`; of another dtype: gn_zeros(g, t, gn_shape_of(a)).
GPUNUM_API gn_array *gn_empty_like(gn_array *a);
GPUNUM_API gn_array *gn_zeros_like(gn_array *a);
GPUNUM_API gn_array *gn_ones_like(gn_array *a);
GPUNUM_API gn_array *gn_full_like(gn_array *a, double value);

// Evaluates and copies out in C order. `bytes` must be gn_bytes(a).
GPUNUM_API gn_status gn_read(gn_array *a, void *dst, size_t bytes);
// The same without waiting: `done` is called once, from this or a later gn_ call on this context (gn_poll does nothing else;
// gn_sync at the latest, or gn_close), on the thread that made that call. `dst` must stay valid until then.
GPUNUM_API void gn_read_async(gn_array *a, void *dst, size_t bytes, gn_done_fn done, void *user);
// Overwrites the elements of `a` (C order); views of the same memory see it, values computed before do not.
// An array that autograd recorded or that repeats an element (gn_broadcast_to) is refused; an error for one
// whose value autograd still needs is reported by gn_backward.
GPUNUM_API gn_status gn_write(gn_array *a, const void *src, size_t bytes);
// The value of a 1-element array as double (NaN on error). int64 beyond 2^53 loses digits: use gn_read.
GPUNUM_API double gn_item(gn_array *a);
// The same exactly, of int64 and uint64 (from 2^63 on the int64 of the same bits); floats are cut off as by gn_cast. 0 on
// errors.
GPUNUM_API int64_t gn_item_int(gn_array *a);

GPUNUM_API gn_shape gn_shape_of(const gn_array *a);
GPUNUM_API gn_dtype gn_dtype_of(const gn_array *a);
GPUNUM_API int64_t gn_size(const gn_array *a);  // elements
GPUNUM_API size_t gn_bytes(const gn_array *a);  // elements x itemsize
GPUNUM_API int gn_rank(const gn_array *a);
GPUNUM_API int64_t gn_dim(const gn_array *a, int axis); // negative axes count from the end; -1 on error
GPUNUM_API gn_context *gn_context_of(const gn_array *a);
GPUNUM_API size_t gn_dtype_size(gn_dtype t);
GPUNUM_API const char *gn_dtype_name(gn_dtype t); // NumPy's name, "float32"
GPUNUM_API gn_dtype gn_promote(gn_dtype a, gn_dtype b); // GN_DTYPE_COUNT if they have no common dtype

GPUNUM_API gn_array *gn_cast(gn_array *a, gn_dtype t); // floats to integers truncate and saturate, NaN gives 0
GPUNUM_API gn_array *gn_copy(gn_array *a);             // own memory, C order
GPUNUM_API gn_array *gn_eval(gn_array *a);             // starts computing `a` now; returns a
GPUNUM_API gn_status gn_eval_all(gn_array **arrays, int count); // several at once, sharing common work
GPUNUM_API gn_array *gn_to(gn_array *a, gn_device device); // a copy of the data there; returns a
// Why `a` was computed where it was: "gn_matmul (128,256) float32: computed on the GPU: operands are on the GPU
// already", or that it is still pending. Valid until the next gn_explain on this context.
GPUNUM_API const char *gn_explain(gn_array *a);

// NumPy 2's repr layout, summarised beyond 1000 elements. gn_to_string's result is freed with gn_string_free.
typedef struct gn_print_options {
    int precision;     // digits after the point; 0 = 8
    int64_t threshold; // summarise above so many elements; 0 = 1000
    int edge_items;    // shown at each edge of a summary; 0 = 3
    int line_width;    // 0 = 75
} gn_print_options;
GPUNUM_API void gn_print(gn_array *a); // to stdout, the one function that prints; NULL of NULL
GPUNUM_API char *gn_to_string(gn_array *a, const gn_print_options *options); // options may be NULL
GPUNUM_API void gn_string_free(gn_context *g, char *text);
