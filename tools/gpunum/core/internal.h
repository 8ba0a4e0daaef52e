// >>internal
// The functions that rooms offer each other, by the room that defines them.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/structs.h"
#endif

// memory: gni_alloc'd blocks are 64-byte aligned; NULL when there is none left, which the caller reports.
static void *gni_alloc(gn_context *g, size_t bytes);
static void *gni_calloc(gn_context *g, size_t bytes);
static void *gni_realloc(gn_context *g, void *p, size_t old_bytes,
                         size_t new_bytes); // p stays valid on failure
static void gni_free(gn_context *g, void *p);

// log and errors: the first failure is kept on the context, each one makes the public call return NULL.
// Both return false.
static bool gni_fail(gn_context *g, gn_status status, const char *format, ...) GNI_PRINTF(3, 4);
static bool gni_fail_memory(gn_context *g, const char *what, uint64_t bytes);
static void gni_log(gn_context *g, gn_log_level level, const char *format, ...) GNI_PRINTF(3, 4);
static const char *gni_shape_text(char *text, size_t size, const gn_shape *s); // "(3,4)"

// calls (rooms `call` and `array`): every public function that takes arrays starts with gni_begin, which checks them and
// takes the lock, and ends with one of the others. gni_begin returns NULL (unlocked) when one is NULL or stale.
static gn_context *gni_begin(const char *fn, gn_array *const *arrays, int count);
static bool gni_begin_context(const char *fn, gn_context *g); // for functions that take a context
static gn_array *gni_end(gn_context *g,
                         gn_array *y); // y's creator reference becomes the caller's (or its
                                       // scope's); NULL if anything failed inside
static gn_array *gni_adopt(gn_context *g, gn_array *y); // gni_end's hand-over without the end
static gn_status gni_end_status(gn_context *g); // GN_OK, or the status of the failure inside
static void gni_end_plain(gn_context *g);
static void gni_after_fork(gn_context *g); // of room open: makes do with what a child has
// For functions made of public calls: gni_begin; gn_scope_begin(g); ...; return gni_end_scope(g, y).
static gn_array *gni_end_scope(gn_context *g, gn_array *y);

// array: makers return one reference that belongs to their caller, to be passed to gni_end or gni_unref.
// All of them report a shape that no array can have, in the name of `fn`.
static gn_array *gni_array_new(gn_context *g, const char *fn, gn_dtype t,
                               const gn_shape *s); // for an expression or a buffer; C order strides
static gn_array *gni_array_empty(gn_context *g, const char *fn, gn_dtype t,
                                 const gn_shape *s); // with a buffer, no memory yet
static gn_array *gni_array_filled(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s,
                                  void **host); // with CPU memory to fill
static gn_array *
gni_array_view(gn_context *g, const char *fn, gn_array *base, const gn_shape *s,
               const int64_t *stride,
               int64_t offset); // materializes base; offset counts from the buffer's start
static void gni_ref(gn_array *a);
static void gni_unref(gn_context *g, gn_array *a); // NULL is ignored
static int64_t gni_elements(const gn_shape *s);    // -1 if no array can have so many
static int64_t gni_extent_product(const int64_t *dim, int rank); // the same of some extents
static bool gni_is_float(gn_dtype t);
static bool gni_same_shape(const gn_shape *a, const gn_shape *b);
static void gni_strides_of(const gn_shape *s, int64_t *stride); // C order; 0 without elements
static bool gni_is_contiguous(const gn_array *a);                       // C order
static int gni_axis(gn_context *g, const char *fn, int axis, int rank); // -1 after gni_fail
// The axes as a set of bits 0 to rank - 1, or ~0u after gni_fail. `keep` gets whether GN_KEEP is around them; where
// it is NULL that is an error.
static uint32_t gni_axes(gn_context *g, const char *fn, gn_axes axes, int rank, bool *keep);
static gn_axes gni_axes_of(uint32_t set); // and back
static bool gni_broadcast(const gn_shape *a, const gn_shape *b, gn_shape *out);
static gni_buffer *gni_buffer_new(gn_context *g, uint64_t bytes); // no memory yet
static void gni_buffer_release(gn_context *g, gni_buffer *b);
// Makes the contents valid on that side, with memory there: those of the other side, or zeros where nothing was written.
static bool gni_buffer_need(gn_context *g, gni_buffer *b, uint32_t side);
// Gives memory on that side to overwrite whole, and declares it the only valid one.
static bool gni_buffer_claim(gn_context *g, gni_buffer *b, uint32_t side);

static void gni_header_doom(gn_context *g, gn_array *a, gn_array **todo);
// Checks what the functions above check, before work that would be in vain.
static bool gni_shape_ok(gn_context *g, const char *fn, gn_dtype t,
                         const gn_shape *s); // or gni_fail

// lazy
static void gni_pending_remove(gn_context *g, gn_array *a);
static bool gni_source_drop(gn_context *g, gn_array *src); // true: that was its last reference
static void gni_lazy_orphaned(gn_context *g, gn_array *a); // the caller let go of it

// evaluate
static bool gni_materialize(gn_context *g, gn_array *a);   // a->buf afterwards
static bool gni_in_order(gn_context *g, gn_array *a);       // in C order afterwards
static gn_array *gni_contiguous(gn_context *g,
                                gn_array *a); // a itself (one more reference) or a C order copy
static const void *gni_host(gn_context *g,
                            gn_array *a); // materialized, on the CPU; pointer to its first element
// Before the contents of `a` are overwritten: gives pending work that reads them the old contents.
static bool gni_before_write(gn_context *g, gn_array *a);
static bool gni_before_overwrite(gn_context *g, gn_array *a, uint32_t walk, int held);
// Copies `src` (any dtype that converts, any strides) into a strided place of `dst`.
static bool gni_copy_into(gn_context *g, gni_buffer *dst, gn_dtype t, int64_t offset,
                          const int64_t *stride, gn_array *src);
// Computes several arrays of one shape in one program, into `into[i]`'s own memory where into[i] is not NULL
// (same shape and dtype, contiguous; its pending readers keep the old values).
static bool gni_evaluate(gn_context *g, gn_array *const *roots, gn_array *const *into, int count);

// place
static bool gni_run(gn_context *g, const gni_kind *kind, void *job,
                    gn_array *y); // places, moves, runs; y gets the result

// backends (rooms cpu to cpu_jobs, gpu_jobs) and profile
static gni_takes_fn gni_cpu_takes_any, gni_cpu_takes_none, gni_cpu_takes_map, gni_cpu_takes_reduce, gni_cpu_takes_softmax,
    gni_cpu_takes_matmul, gni_cpu_takes_conv, gni_cpu_takes_take, gni_cpu_takes_attend, gni_cpu_takes_random;
static bool gni_cpu_map(gn_context *g, const void *job), gni_cpu_reduce(gn_context *g, const void *job),
    gni_cpu_softmax(gn_context *g, const void *job), gni_cpu_matmul(gn_context *g, const void *job),
    gni_cpu_conv(gn_context *g, const void *job), gni_cpu_attend(gn_context *g, const void *job),
    gni_cpu_take(gn_context *g, const void *job), gni_cpu_scatter(gn_context *g, const void *job),
    gni_cpu_random(gn_context *g, const void *job), gni_cpu_scan(gn_context *g, const void *job),
    gni_cpu_sort(gn_context *g, const void *job), gni_cpu_search(gn_context *g, const void *job),
    gni_cpu_counts(gn_context *g, const void *job);
// Of room `cpu`: computes one op on short arrays of one dtype without gaps, which most calls on small arrays are, without a
// program. False: it is other work, or there is no memory. Where there is no GPU.
static bool gni_cpu_short(gn_context *g, gn_array *a);
// Of room `cpu_jobs`: whether all indices, which the CPU has, are within the axis; or gni_fail.
static bool gni_indices_ok(gn_context *g, const gni_places *at, const gni_operand *index);
static const gni_kind gni_kind_map = {GNI_JOB_MAP, gni_cpu_takes_map, gni_cpu_map},
                      gni_kind_reduce = {GNI_JOB_REDUCE, gni_cpu_takes_reduce, gni_cpu_reduce},
                      gni_kind_softmax = {GNI_JOB_SOFTMAX, gni_cpu_takes_softmax, gni_cpu_softmax},
                      gni_kind_matmul = {GNI_JOB_MATMUL, gni_cpu_takes_matmul, gni_cpu_matmul},
                      gni_kind_conv = {GNI_JOB_CONV, gni_cpu_takes_conv, gni_cpu_conv},
                      gni_kind_take = {GNI_JOB_TAKE, gni_cpu_takes_take, gni_cpu_take},
                      gni_kind_scatter = {GNI_JOB_SCATTER, gni_cpu_takes_any, gni_cpu_scatter},
                      gni_kind_random = {GNI_JOB_RANDOM, gni_cpu_takes_random, gni_cpu_random},
                      gni_kind_scan = {GNI_JOB_SCAN, gni_cpu_takes_any, gni_cpu_scan},
                      gni_kind_sort = {GNI_JOB_SORT, gni_cpu_takes_any, gni_cpu_sort},
                      gni_kind_search = {GNI_JOB_SEARCH, gni_cpu_takes_any, gni_cpu_search},
                      gni_kind_count = {GNI_JOB_COUNT, gni_cpu_takes_any, gni_cpu_counts},
                      gni_kind_rows = {GNI_JOB_ROWS, gni_cpu_takes_any, NULL}, // made of others there
                      gni_kind_attend = {GNI_JOB_ATTEND, gni_cpu_takes_attend, gni_cpu_attend},
                      gni_kind_image = {GNI_JOB_IMAGE, gni_cpu_takes_none, NULL},
                      gni_kind_recur = {GNI_JOB_RECUR, gni_cpu_takes_none, NULL},
                      gni_kind_winograd = {GNI_JOB_WINOGRAD, gni_cpu_takes_none, NULL},
                      gni_kind_depth = {GNI_JOB_DEPTH, gni_cpu_takes_none, NULL},
                      gni_kind_pooling = {GNI_JOB_POOLING, gni_cpu_takes_none, NULL},
                      gni_kind_keep = {GNI_JOB_KEEP, gni_cpu_takes_none, NULL};
#ifndef GPUNUM_NO_FFT
static gni_takes_fn gni_cpu_takes_fft;
static bool gni_cpu_fft(gn_context *g, const void *job);
static const gni_kind gni_kind_fft = {GNI_JOB_FFT, gni_cpu_takes_fft, gni_cpu_fft};
#endif
#ifndef GPUNUM_NO_LINALG
static const gni_kind gni_kind_factor = {GNI_JOB_FACTOR, gni_cpu_takes_none, NULL};
#endif
static const gni_backend_api *gni_backend_gpu(void);
// Of room `gpu_places`: around a wait for the GPU, which tells then of indices that were none.
static bool gni_faults_begin(gn_context *g, gni_gpu_ticket *t), gni_faults_end(gn_context *g, gni_gpu_ticket *t);
static void gni_profile_span(gn_context *g, const char *name, uint64_t start_ns, uint64_t end_ns,
                             int track);

// complex: what public functions do with complex operands, inside a scope that is open
typedef gn_array *(*gni_binary_fn)(gn_array *a, gn_array *b);
static gn_array *gni_complex_unary(gn_context *g, const char *fn, gni_op op, gn_array *a);
static gn_array *gni_complex_math(gn_context *g, const char *fn, gni_op op, gn_array *a); // those of gni_math
static gn_array *gni_complex_pow(gn_context *g, gn_array *a, gn_array *b);
static gn_array *gni_complex_binary(gn_context *g, const char *fn, gni_op op, gn_array *a,
                                    gn_array *b);
static gn_array *gni_complex_binary_s(gn_context *g, const char *fn, gni_op op, gn_array *a,
                                      double s, bool first);
static gn_array *gni_complex_where(gn_array *condition, gn_array *a, gn_array *b);
static gn_array *gni_complex_cast(gn_context *g, gn_array *a, gn_dtype t);
static gn_array *gni_complex_product(gni_binary_fn f, gn_array *a, gn_array *b); // bilinear f
static gn_dtype gni_part_of(gn_dtype t); // of the parts of such numbers, float32 or float64
static gn_dtype gni_complex_of(gn_dtype t); // of the numbers of such parts, complex64 or complex128

// What only programs need that call one of the functions of UNARY_FLOAT, BINARY_ANGLE, BINARY_DIVIDE, UNARY_SIZE or a rare
// one: these set it, and the linker leaves all of it out of a program that has none of them.
struct gni_math {
    gni_kernel (*kernel)(gni_isa isa, bool wide, uint32_t code);
    void (*rare)(uint32_t code, void *dst, const void *pa, bool wide, int n);
    gn_array *(*complex)(gn_context *g, const char *fn, gni_op op, gn_array *a);
    gn_array *(*power)(gn_context *g, gn_array *a, gn_array *b); // complex
};
static const gni_math *gni_math_get(const gn_context *g) { return gni_pointer_load(&g->math); }
// The same of derivatives of elementwise ops: set where an array requires a gradient.
struct gni_derivatives {
    gni_backward_fn back;
    uint32_t (*reads)(const gni_node *node, bool (*wants)(const gni_node *node, int i));
};

// lazy: the unlocked makers behind the public ops
static gn_array *gni_apply(gn_context *g, const char *fn, gni_op op, gn_dtype compute,
                           gn_dtype result, gn_array *const *src, const double *konst,
                           int n_src); // lazy; src[i] NULL: konst[i]
static gn_array *gni_const(gn_context *g, const char *fn, gn_dtype t, const gn_shape *s,
                           double value);

// autograd
static bool gni_tracks(const gn_context *g, gn_array *const *in,
                       int n_in); // recording, and one of them needs it
// Records how y was made. NULL when nothing needs a gradient or memory ran out (then gni_fail).
static gni_node *gni_record(gn_context *g, gn_array *y, const char *name, gni_backward_fn backward,
                            gn_array *const *in, int n_in);
static void gni_note(gni_node *node, int64_t a, int64_t b, int64_t c); // its params, if there is one
static void gni_node_free(gn_context *g, gni_node *node);
static gni_node *gni_node_new(gn_context *g, const char *name, int n_in);

// gradients: how the gradient of a result reaches its operands, one function per kind of op.
static bool gni_back_elementwise(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static void gni_derivatives_use(gn_context *g); // before there is a node of one
static bool gni_back_sum(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_mean(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_prod(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_minmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_log_sum(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_softmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_log_softmax(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_matmul(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_reshape(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_permute(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_broadcast(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_slice(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_flip(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_concat(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_stack(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static bool gni_back_take(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
// Of room `indexing`; the result is the scope's.
static gn_array *gni_scattered(gn_context *g, const char *fn, gni_scatter_op op, gn_array *a, gn_array *index,
                               gn_array *values, int axis, bool along);
static bool gni_back_copy(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
// What a backward function reads: bit i for the value of in[i], GNI_READS_OUTPUT for that of the output.
#define GNI_READS_OUTPUT 0x80000000u
static uint32_t gni_back_reads(const gni_node *node);
// The same of an elementwise op when the gradients of the operands that `wants` names are needed.
static uint32_t gni_elementwise_reads(const gni_node *node,
                                      bool (*wants)(const gni_node *node, int i));
static bool gni_may_want(const gni_node *node, int i); // in[i] leads to something with a gradient
static bool gni_wants_grad(const gn_array *a); // requires a gradient, or depends on one that does
static bool gni_wanted(const gni_node *node,
                       int i); // the pass under way needs the gradient of in[i]
static void gni_set_grad(gn_context *g, gn_array *a,
                         gn_array *grad); // takes over a reference to grad; NULL drops
static void gni_drop_grad(gn_context *g, gn_array *a); // after an owner went: where it was the last one
static bool gni_back_linear(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
static gn_array *gni_unbroadcast(gn_array *gx,
                                 const gn_shape *shape); // sums over repeated elements
