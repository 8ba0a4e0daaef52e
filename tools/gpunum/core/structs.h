// >>structs
// Every internal type that more than one room uses, and how they hold each other:
// gn_array -> gni_buffer (memory) or gni_expr (not computed yet), gn_array -> gni_node (its record for
// autograd) -> input arrays. Rooms reach each other through the functions declared in room `internal`.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/train.h"
#include "../api/data.h"
#include "../core/platform.h"
#include "../core/device.h"
#include "../core/slots.h"
#endif

enum {
    GNI_MAX_INPUTS = 8,  // operands a program reads
    GNI_MAX_OUTPUTS = 4, // operands it writes
    GNI_MAX_CONSTS = 8,  // immediates
    GNI_MAX_INSNS = 24,  // instructions
    GNI_MAX_REGS = GNI_MAX_INPUTS + GNI_MAX_CONSTS + GNI_MAX_INSNS,
    GNI_ON_CPU = 1,
    GNI_ON_GPU = 2
};

// CPU memory of freed arrays that is kept for later ones.
enum { GNI_HOST_CACHE_SLOTS = 64, GNI_HOST_CACHE_LEAST = 1 << 14 };
#define GNI_HOST_CACHE_BYTES ((uint64_t)512 << 20)
// Sizes below GNI_HOST_CACHE_LEAST that gni_host_bytes makes, and the most that is kept of them.
enum { GNI_SMALL_CLASSES = 48, GNI_SMALL_CACHE_BYTES = 1 << 20 };

// So many elements of the largest dtype have bytes that a size_t and an int64_t count.
#define GNI_MOST_ELEMENTS ((int64_t)GNI_MIN((uint64_t)SIZE_MAX, (uint64_t)INT64_MAX) / 16)

// Work that is pending may hold so many bytes that nobody else refers to before it is done.
#define GNI_LAZY_BYTES ((uint64_t)256 << 20)

enum { GNI_KEPT = 64 }; // kinds of matrix products that are remembered


// Memory of one or more arrays, on the CPU, on the GPU, or on both with the same contents.
typedef struct gni_buffer {
    int32_t refs;
    int32_t orphans; // arrays among these that only pending work holds
    int32_t passed;  // and those that are `passed`
    int32_t readers; // the lazy_refs of all
    bool counted;    // in the context's lazy_bytes: they are all
    uint32_t version; // of the contents; autograd compares it
    uint32_t where;   // GNI_ON_CPU | GNI_ON_GPU: which sides hold the current contents
    uint32_t read_version;
    uint64_t read; // bytes of that version that jobs have read on the CPU: see gni_note_reads
    uint64_t bytes;
    void *host;           // NULL: no CPU memory yet
    gn_free_fn host_free; // of borrowed memory, called when the call that lets go of it ends
    struct gni_buffer *next; // until then
    void *host_user;
    bool host_borrowed, device_borrowed;
    bool exported; // others look at `host`, which stays as long as the buffer
    bool has_device;
    gni_gpu_mem device;
    struct gni_even *even; // a copy of its lines on the GPU, or NULL: see room gpu_matmul
    // NULL, or of a buffer that is on neither side: makes what it will be on one, for which there is memory: truth values
    // (GNI_RAND_BELOW) or numbers at even distances.
    bool (*draw)(gn_context *g, struct gni_buffer *b, uint32_t side);
    gn_dtype drawn;
    uint64_t seed, counter;
    uint32_t limit;
    double first, step, last;
    bool ends; // with `last`
} gni_buffer;

// Whether programs can draw it.
GNI_INLINE bool gni_is_undrawn(const gni_buffer *b) { return b->draw != NULL && b->where == 0 && b->drawn == GN_BOOL; }

// An operand of 16 bits as lines of neighbours, step elements apart.
typedef struct gni_lines {
    int64_t lines, length, step;
} gni_lines;

// Lines of a buffer's contents of that version, which are from `offset` on there, each from 16 bytes on here.
typedef struct gni_even {
    gni_buffer buffer;
    uint32_t version;
    int64_t offset;
    gni_lines lines;
} gni_even;

// Elementwise work not done yet. Sources broadcast against the array's shape. GNI_OP_PRODUCT: the matrix
// product of src[0] and src[1], of the float dtype `compute`, which are computed unless it may make them while it reads
// them; elementwise work on its result goes into its store.
typedef struct gni_builder gni_builder; // of room `evaluate`
typedef struct gni_expr {
    gni_op op;
    gn_dtype compute; // dtype the sources are converted to before the op
    gn_array *src[3]; // a reference each; NULL: the constant beside it
    double konst[3];
    int n_src;
    bool prologue;                // a product made this while it read it: it does not do so twice
    int insns, leaves, consts; // of the tree below, upper bounds
    int products;              // in the tree: matrix products, an upper bound
    bool wide;
    // Of a product: computes it into `root`, through the program unless that is NULL.
    bool (*run)(gn_context *g, gn_array *product, gn_array *root, gni_builder *b);
    bool shares;   // what occurs several times in the tree was counted once: computed by others, it may need more
    bool consumed; // a product that went into another array's store, so that it may never be asked for
    gn_array *prev, *next; // the context's list of pending arrays, oldest first
    uint32_t walk;         // that met it last, and the register it got there
    int reg;
    int seen, unread; // references from a tree under examination: of expressions, of records
} gni_expr;

typedef struct gni_node gni_node;
typedef struct gni_math gni_math;               // tables of functions, see core/internal
typedef struct gni_derivatives gni_derivatives;
typedef struct gni_pass gni_pass;

// What the caller holds, all of which begins with a gni_handle, so that one of another kind is seen for what it is.
typedef enum gni_handle_kind {
    GNI_IS_ARRAY,
    GNI_IS_CONTEXT,
    GNI_IS_OPTIMIZER,
    GNI_IS_PARAMS,
    GNI_IS_LOADER,
    GNI_NO_HANDLE
} gni_handle_kind;
typedef struct gni_handle {
    uintptr_t magic; // gni_magic_of; anything else is a stale or foreign pointer
    gn_context *ctx;
} gni_handle;

struct gn_array {
    uintptr_t magic;
    gn_context *ctx;
    int32_t refs;      // all references
    int32_t user_refs; // of the caller and of scopes
    gn_dtype dtype;
    gn_shape shape;
    int64_t stride[GN_MAX_RANK]; // elements, may be 0 or negative
    int64_t offset;              // elements from the buffer's start
    gni_buffer *buf;             // NULL: `expr` says how to compute it
    gni_expr *expr;
    struct gni_stack
        *stack;            // owning scope: its thread's stack, its depth and the place in its list
    int scope, scope_slot; // slot -1: owned by the caller
    bool wants_grad;       // gn_requires_grad
    bool apart;            // made by gn_detach, or a view of what was: autograd sees no writing to others' memory through it
    bool passed;           // had no owner when its memory was written to: room assign looks for it no more
    bool is_grad;          // another array's gradient: one of user_refs is that array's
    bool warned;           // that gn_grad gives nothing here
    int32_t rewritten;     // while gni_rewrites_take looks for the records that have it: its place there, from 1 on
    int32_t steppers;      // optimizers that step it
    int32_t lazy_refs;     // pending expressions that read this array
    bool orphan;           // only pending work holds it
    uint8_t reason;        // gni_reason, why it was computed where it was
    bool on_gpu;           // where that was
    gni_node *node;        // how autograd gets from here to the inputs
    gn_array *grad; // while the array has a user or an optimizer: it may be a pending expression that holds the array
    const char *maker;             // public name of the function that made it
    gn_array *all_prev, *all_next; // the context's list of live arrays; `all_next` links free ones
};

// One recorded op. `backward` turns the gradient of `output` into gradients of the inputs.
typedef bool (*gni_backward_fn)(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);
struct gni_node {
    const char *name;
    gni_backward_fn backward;
    gn_array *output; // not counted: the output holds the node
    int n_in;
    gn_array **in;     // a reference each
    uint32_t *version; // of in[i] when recorded
    uint32_t made;     // of the output then: what works in several steps writes its result several times
    bool reads_output; // `backward` reads its value, which gni_back_reads cannot see
    bool remade;       // the output, pending, reads one array of its size, and `backward` reads that anyway
    uint64_t serial;   // recording order
    int64_t param[12]; // the op's own
    double real[2];
    gn_shape shape;
    uint32_t visited; // bits of the pass under way, see room `autograd`
    gn_array *gy;     // gradient gathered during the pass
};

// What one input or output of a job is: elements at buf + (offset + sum of index * stride) * itemsize.
typedef struct gni_operand {
    gni_buffer *buf;
    gn_dtype dtype;
    int64_t offset;
    int64_t stride[GN_MAX_RANK]; // per dimension of the job; 0 broadcasts
} gni_operand;

// Instructions that the GPU's matrix products run at their stores: few, for the size of their kernels.
GNI_MAYBE_UNUSED static bool gni_in_stores(gni_op op, gni_domain domain) {
    switch (op) {
    case GNI_OP_WHERE:
    case GNI_OP_I_TO_F:
    case GNI_OP_TO_BOOL:
    case GNI_OP_ROUND_F16:
    case GNI_OP_ROUND_BF16: return true;
    case GNI_OP_SQRT:
    case GNI_OP_RSQRT:
    case GNI_OP_RECIP:
    case GNI_OP_EXP:
    case GNI_OP_EXPM1:
    case GNI_OP_LOG:
    case GNI_OP_TANH:
    case GNI_OP_ERF:
    case GNI_OP_SIGMOID:
    case GNI_OP_SILU:
    case GNI_OP_GELU:
    case GNI_OP_SOFTPLUS:
    case GNI_OP_DIV:
    case GNI_OP_FMA: return domain == GNI_F;
    default:
        return domain == GNI_F &&
               ((op >= GNI_OP_NEG && op <= GNI_OP_RELU) || (op >= GNI_OP_ADD && op <= GNI_OP_MUL) ||
                op == GNI_OP_MIN || op == GNI_OP_MAX || (op >= GNI_OP_EQ && op <= GNI_OP_GE));
    }
}

// Straight-line code over registers: inputs, constants, then one result for each instruction (GNI_INSN).
typedef struct gni_program {
    bool wide; // 64-bit registers
    int n_in, n_const, n_insn, n_out;
    gn_dtype in_dtype[GNI_MAX_INPUTS], out_dtype[GNI_MAX_OUTPUTS];
    uint64_t konst[GNI_MAX_CONSTS]; // bits of the register
    uint32_t insn[GNI_MAX_INSNS];
    int out_reg[GNI_MAX_OUTPUTS];
} gni_program;

// An elementwise program over an index space. Equal neighbours of dimensions are merged beforehand.
typedef struct gni_map {
    gni_program program;
    int rank;
    int64_t dim[GN_MAX_RANK];
    gni_operand in[GNI_MAX_INPUTS], out[GNI_MAX_OUTPUTS];
} gni_map;

// What becomes of a sum of floats before it is rounded to the result's dtype.
typedef struct gni_finish {
    bool divides, roots; // one of them, or neither
    double divisor;
} gni_finish;

// Reduces the one output of a program, or sums both of two. Dimensions 0 to kept-1 are kept, the rest are reduced; the
// result is contiguous over the kept ones. `domain` is that of the reduced register.
typedef struct gni_reduce {
    gni_program program;
    gni_reduction op;
    gni_domain domain;
    int rank, kept;
    int64_t dim[GN_MAX_RANK];
    gni_operand in[GNI_MAX_INPUTS], out; // out.dtype: of the result
    bool compiled; // not worth interpreting: a GPU waits for the kernel of this program
    int64_t apart; // two outputs, on GPUs only: elements of `out` from a result to the second one; 0: one output
    bool moments; // both outputs are x, their results its variance (sums over `rest`) and its mean
    double rest;
    gni_finish finish;
} gni_reduce;

// Rows of `n` elements; the input has any row stride and unit stride inside, the output is contiguous
// (rows, n), or (rows, 2) for logsumexp: what is taken off the elements, the largest one or 0 where that is not finite, and
// the logarithm of the sum, float32 of halves. float32, float16, bfloat16; float64 on the CPU.
typedef struct gni_softmax {
    gni_softmax_kind kind;
    int64_t rows, n, row_stride;
    gni_operand in, out;
} gni_softmax;

// Work on rows that needs a sum or two over each row first, on GPUs only: rows.comp says what `kind` (GNI_ROWS_) does. All
// operands are contiguous, those that a kind does not have are without a buffer: x, gy (the gradient) and out (rows, n), or
// out (rows, 2) for logsumexp; mean and scale (rows) float32, written by normalisation and read by its gradient; weight and
// bias (n) or, where stretches > 0, float32 and (period, stretches): one for `inner` places, and for every row that many
// periods on. Of a variance, or its `root`, out is (rows) and eps what the sum of squares is divided by.
typedef struct gni_rows {
    int kind;
    bool root;
    int64_t rows, n, period, stretches, inner;
    double eps;
    gni_operand x, gy, weight, bias, mean, scale, out; // in the order of GNI_P_ROWS_BASE
} gni_rows;

// Where the strides of a product's other operands along m and n are; batch dimensions come first.
enum { GNI_ALONG_M = GN_MAX_RANK - 2, GNI_ALONG_N = GN_MAX_RANK - 1 };

// c (batch, m, n) contiguous = a (batch, m, k) times b (batch, k, n), any strides; up to 6 batch dimensions.
// With `fused` c is the program's output instead: its input 0 is the float32 sum of products, the others
// are in[1] on. Products of float32, float16 and bfloat16 have that; bias and act are then not used.
typedef struct gni_matmul {
    int64_t m, n, k;
    int batch_rank;
    int64_t batch_dim[GN_MAX_RANK], a_batch[GN_MAX_RANK], b_batch[GN_MAX_RANK];
    int64_t a_rs, a_cs, b_rs, b_cs;
    gni_operand a, b, c; // stride[] unused
    gni_operand bias;    // (n) float32 contiguous, buf NULL: none
    int act;             // 0 none, 1 relu
    bool fused;
    gni_program program;
    gni_operand in[GNI_MAX_INPUTS];
    // (n) of b's columns, as c's dtype, or buf NULL: no batches, nothing fused, no bias.
    gni_operand sums;
    // 1: a is what `load` makes of these, 2: b is; 0: both are there. Their strides are over the batch dimensions and
    // the operand's rows (GNI_ALONG_M) and columns (GNI_ALONG_N). Operands are float32. If the other one has one row or
    // column, nothing is fused and there is no bias.
    int prologue;
    bool as_prologue; // by the tiles of a product with a prologue, whose rounding it is to have
    bool in_parts;    // a kernel may take float32 apart: what winograd.comp made, with what is largest there behind it
    gni_program load;
    gni_operand load_in[GNI_MAX_INPUTS];
} gni_matmul;

// Where an image's numbers lie that tell what is largest: from that element on, so many of the same places; and how many of k
// or of columns are one image's, of so many places.
typedef struct gni_magnitudes {
    int64_t from, groups, each, places;
} gni_magnitudes;

// c (batch, m, n) contiguous = a times b, as gni_matmul, but the rows and columns of b are counted by several indices each,
// the last one fastest: windows of an image are such a matrix.
typedef struct gni_conv {
    int64_t m, n, k; // n and k are the products of n_dim and k_dim
    int64_t a_rs, a_cs;
    int64_t batch_dim[2], a_batch[2], b_batch[2];
    int64_t n_dim[4], b_n[4], k_dim[4], b_k[4];
    gni_operand a, b, c; // stride[] unused
    // Other than 0, on a CPU: images (k_dim[0]) of a are so far apart, and neighbours along the last axis of k that has more
    // than one place are neighbours in a and in b.
    int64_t a_jump;
    // Other than 0, on a CPU: rows of b's images are combed, elements i, i + comb, ... one after the other and comb_part
    // elements in front of those from i + 1 on. The last axis of kernels, of so many taps, steps as if they were not; b_k or
    // b_n has 0 for it.
    int64_t comb, comb_part, comb_taps, comb_step;
    // On a GPU, where b has its channels last: runs of c's columns that follow each other, where the next run and the next
    // row begin.
    int64_t c_run, c_jump, c_row;
    // On a GPU: a kernel may take float32 apart. What is largest in a and b lies behind them, see gni_image.
    bool in_parts;
    gni_magnitudes largest[2];
} gni_conv;

// out (n, out..., width) contiguous = in (n, channels, in...) of any strides as if it began `before` places earlier, with
// zeros around it, or cut; channels behind its own are zeros. For GPUs.
typedef struct gni_image {
    int64_t n, channels, width;
    int64_t have[3], before[3], size[3];
    gni_operand in, out; // in's strides: of n, channels and three axes
    bool tells; // what is largest in 64 places of 32 channels, behind them all
} gni_image;

// A step of a convolution by tiles of 4x4 results: winograd.comp says which there are and what each takes as its buffers
// 0 to 3. Strides are those of x, w and y; what the tiles become is in C order. For GPUs.
typedef enum gni_winograd_step {
    GNI_WINOGRAD_IMAGE,
    GNI_WINOGRAD_GRADIENT,
    GNI_WINOGRAD_KERNEL,
    GNI_WINOGRAD_RESULT,
    GNI_WINOGRAD_KERNEL_RESULT
} gni_winograd_step;
typedef struct gni_winograd {
    gni_winograd_step step;
    int64_t n, c, o, in[2], out[2], before[2]; // images, channels; places of x and y, and in front of x: rows, columns
    gni_operand use[4];
} gni_winograd;

// A convolution of each of c channels with a kernel of its own, forward or a gradient of it (depth.comp): `in` (n, c, from)
// is read by taps at places `to`. For GPUs.
typedef struct gni_depth {
    uint32_t step; // GNI_DEPTH_FORWARD, ...
    int64_t n, c, read, made, block; // c: results' channels, or kernels; of a group `read` give `made`, `block` at once
    int64_t k[2], stride[2], pad[2], dilation[2], from[2], to[2], parts;
    gni_operand in, other, out; // other: w, or the gradient of y
} gni_depth;

// Pooling of n images (pool.comp), for GPUs: `in` (n, from) becomes `out` (n, to), and `places` the taps of the largest,
// which `taps` are for the gradient. All are contiguous; those that are not there have no buffer.
typedef struct gni_pooling {
    uint32_t step; // GNI_POOL_LARGEST, ...
    bool inside;
    float value; // around a frame's image
    int64_t n, from[2], to[2], size[2], stride[2], pad[2], dilation[2];
    gni_operand in, taps, out, places;
} gni_pooling;

// Attention of (batches, heads, n, d), `share` heads to each of k and v. Elements are neighbours, a stride[] is of batch,
// head, row.
typedef enum gni_attend_step {
    GNI_ATTEND_FORWARD, // GN_STEP of attention.comp: y and, where there is a buffer for it, lse (batches, heads, n), float32
    GNI_ATTEND_QUERIES, // dq from these, lse, gy, and dot, the rows' sums of y gy, which is like lse
    GNI_ATTEND_KEYS,    // dk and dv, summed over the heads that share them
    GNI_ATTEND_ALL      // on a CPU: those of the three that have a buffer; dk and dv are float32
} gni_attend_step;
typedef struct gni_attend_job {
    gni_attend_step step;
    int64_t batches, heads, share, n, m, d, e;
    double scale;
    bool causal;
    gni_operand q, k, v, gy, lse, dot, y, dq, dk, dv;
    gni_operand mask; // bool or float32, with a stride[3] of keys; without a buffer there is none
    uint32_t below; // dropout, on a GPU: weights go whose numbers' upper 24 bits are below it, `keep` scales the others
    float keep;
    uint64_t seed, counter; // where in the stream the numbers begin; which they are gni_attend_staying says
} gni_attend_job;

// Where indices lead: into the axis in the middle of (outer, extent, inner). They are `count`, int32 or int64, or with
// `along` (outer, count, inner), one for each element. All is contiguous.
typedef struct gni_places {
    int64_t outer, extent, inner, count;
    bool along;
    bool checked; // all are known to be within the axis
    const char *fn; // that asked, and its axis, for an error
    int axis;
} gni_places;

// out (outer, count, inner) = in (outer, extent, inner) there.
typedef struct gni_take {
    gni_places at;
    gni_operand in, index, out;
} gni_take;

// What is where mask (n) is true: with no `out` yet counts, how many in each chunk; then either `rank` rows of `count` int64
// places in an array of these dimensions, or of rank 0 the elements of in (n) there. Of GPUs alone.
typedef struct gni_keep {
    int64_t n, count;
    int rank;
    int64_t dim[GN_MAX_RANK];
    gni_operand mask, in, counts, out;
} gni_keep;

// The elements of a chunk, so that there are at most 2048 of them, and how many there are. The first one may be 15 shorter.
GNI_INLINE int64_t gni_keep_chunk(int64_t n) { return (n / ((int64_t)4096 * 2047) + 1) * 4096; }
GNI_INLINE int64_t gni_keep_chunks(int64_t n) { return (n + 14) / gni_keep_chunk(n) + 1; }

typedef enum gni_scan_op { GNI_SCAN_SUM, GNI_SCAN_PROD, GNI_SCAN_MAX, GNI_SCAN_MIN, GNI_SCAN_LOGSUMEXP } gni_scan_op;
// Along the middle axis of (outer, n, inner), all contiguous, in and out of one dtype.
typedef struct gni_scan {
    gni_scan_op op;
    int64_t outer, n, inner;
    gni_operand in, out;
} gni_scan;

// Elements `first` to `first` + count of each sorted row of in (rows, n): as values out and int64 places index, both
// (rows, count) and one of them without a buffer if it is not asked for. Stable, NaN last.
typedef struct gni_sort {
    int64_t rows, n, first, count;
    // Unless 0, all that is asked for: that element is where sorting puts it, smaller ones are in front of it.
    int64_t parted;
    bool descending;
    gni_operand in, out, index;
} gni_sort;

// out (count) int64: where each of in (count) goes into sorted (n), of its dtype. With a scale, which is for float32 and
// float64, x is about at (x - start) scale.
typedef struct gni_search {
    int64_t n, count;
    bool right;
    double start, scale;
    gni_operand sorted, in, out;
} gni_search;

// out (bins): how often each number from `least` on is among in (n), int64; with weight (n), float64, their sums. Numbers
// outside are left out. With edges (bins + 1), which rise, in is of their dtype, float32, and its number is how many edges
// are not above it; with a scale that is about (x - start) scale.
typedef struct gni_count {
    int64_t n, bins, least;
    double start, scale;
    gni_operand in, weight, edges, out;
} gni_count;

// GNI_SCATTER_PUT: the last one is what stays, on the CPU.
typedef enum gni_scatter_op { GNI_SCATTER_ADD, GNI_SCATTER_MAX, GNI_SCATTER_MIN, GNI_SCATTER_PUT } gni_scatter_op;
// To out (outer, extent, inner), float32, float64 or an integer of 32 or 64 bits, go the elements of in (outer, count,
// inner). Sums are the same in every run.
typedef struct gni_scatter {
    gni_places at;
    gni_scatter_op op;
    gni_operand in, index, out, base; // base: what out is before, in an array of its own; buf NULL: out has it
} gni_scatter;

// All steps of one direction of a recurrent layer (room sequences) on a GPU, of contiguous float32. Forward, in: the input's
// part of the gates, their weights, the first h, the first c (GRU: a bias, if there is `bias`). Out: states, behind them an
// LSTM's last c, and with `keep` gates and an LSTM's c. Back, in: the states' derivatives, weights, gates, c (GRU: the states
// before), the first c (GRU: the state's part of n). Out: the gates' derivatives, the first c's (GRU: room for as many), the
// first h's. With `half` the products' operands are of that dtype and h is a multiple of 16: weights, in[5] (forward the
// first h) and out[3] (room for two steps' states, or gates' derivatives) are tiles of 16 by 16.
typedef struct gni_recurrence {
    bool lstm, reversed, keep, bias, back;
    gn_dtype half; // or float32
    int64_t n, batch, h;
    gni_operand in[6], out[4]; // without strides; those without a buffer are not needed
} gni_recurrence;

typedef enum gni_random_kind {
    GNI_RAND_UNIFORM,
    GNI_RAND_NORMAL,
    GNI_RAND_BITS,
    GNI_RAND_RANGE,
    GNI_RAND_BELOW,
    GNI_RAND_DECAYING,    // exponential numbers of mean 1, of 32 bits
    GNI_RAND_EXPONENTIAL, // and other distributions, whose numbers (room slots) say what they are
    GNI_RAND_GAMMA,
    GNI_RAND_BETA,
    GNI_RAND_POISSON,
    GNI_RAND_BINOMIAL,
    GNI_RAND_TRUNCATED,
    GNI_RAND_PERMUTATION, // of the numbers below `range`, which have 2 `low` bits or one more; `numbers` are its keys
    GNI_RAND_STEPS // none: first + i step, on a GPU; of element `range` - 1 the last
} gni_random_kind;
// Element i comes from Philox block `counter` + i / 4, word i % 4. Elements of two words (see
// gni_random_pairs) come two from a block. An element of a distribution has a stream of its own, `counter` + i.
typedef struct gni_random {
    gni_random_kind kind;
    uint64_t seed, counter;
    int64_t n;
    int64_t low;
    uint64_t range; // GNI_RAND_RANGE: low + [0, range). GNI_RAND_BELOW, of dtype bool: 2^24 times a number is below it
    bool scaled;    // floats of up to 32 bits: by[0] times the float32 and by[1], rounded to the dtype once
    float by[2];
    double numbers[GNI_D_COUNT];
    gni_operand out;
} gni_random;

// With one word, some numbers of a range would come more often than others by range / 2^32 of their
// share. That shows from about 2^20 on.
GNI_INLINE bool gni_random_pairs(const gni_random *r) {
    if (r->kind == GNI_RAND_RANGE) return r->range > (uint64_t)1 << 20;
    return r->out.dtype == GN_F64;
}
// Elements that a block gives.
GNI_INLINE int64_t gni_random_each(const gni_random *r) {
    return r->kind >= GNI_RAND_EXPONENTIAL ? 1 : gni_random_pairs(r) ? 2 : 4;
}

typedef enum gni_fft_kind { GNI_FFT_C2C, GNI_FFT_R2C, GNI_FFT_C2R } gni_fft_kind;
// Transforms of n points along one axis, over all other dimensions: sums with exp(-2 pi i j k / n), or
// exp(+...) for `inverse`, times `scale`. Real spectra have n / 2 + 1 numbers; C2R takes the others to be
// their conjugates. Of the axis n_in elements exist, zeros follow. Both sides are of one precision;
// the input of C2C may be real.
typedef struct gni_fft {
    gni_fft_kind kind;
    bool inverse;
    int rank; // of the other dimensions
    int64_t dim[GN_MAX_RANK];
    int64_t n, n_in, in_step, out_step; // steps along the axis, in elements
    double scale;
    gni_operand in, out; // strides over the other dimensions
} gni_fft;

// Steps of matrix decompositions that are no products: factor.comp and factor_small.glsl say what they do, what
// their buffers hold and what the words mean. Up to GNI_FACTOR_UPDATE a is the matrix, b the state (uint32) or a triangle,
// c the block, all may be written, and there is no d. Of the others a is read and b written; c and d are read by
// GNI_FACTOR_BACK, written by the rest. From GNI_FACTOR_SINGULAR on there is e, and it and d are written where they are
// there. From GNI_FACTOR_SIZE on: reflections, in room gpu_factor. GNI_FACTOR_TRIANGLE and _TINY write c and read d.
typedef enum gni_factor_step {
    GNI_FACTOR_PICK,
    GNI_FACTOR_SWAP,
    GNI_FACTOR_BELOW,
    GNI_FACTOR_SOLVE,
    GNI_FACTOR_ROOT,
    GNI_FACTOR_UPDATE,
    GNI_FACTOR_CHOLESKY,
    GNI_FACTOR_LU,
    GNI_FACTOR_BACK,
    GNI_FACTOR_QR,
    GNI_FACTOR_TRIANGLE,
    GNI_FACTOR_TINY,
    GNI_FACTOR_SINGULAR, // eigen.glsl; vectors are the step behind
    GNI_FACTOR_SINGULAR_VECTORS,
    GNI_FACTOR_EIGEN,
    GNI_FACTOR_EIGEN_VECTORS,
    GNI_FACTOR_SIZE,    // reflect_load.comp: a is read, b the state
    GNI_FACTOR_LOAD,    // a is read, b written, c the state
    GNI_FACTOR_REFLECT, // reflect.comp, all columns: a the matrix, b the vectors; both are written
    GNI_FACTOR_STEPS
} gni_factor_step;
enum { GNI_FACTOR_WORDS = 17 };
// The words of GNI_FACTOR_REFLECT: sizes, places and distances of rows in a and b. The others are GNI_P_ of
// room slots.
enum {
    GNI_REFLECT_M,
    GNI_REFLECT_N,
    GNI_REFLECT_SYMMETRIC,
    GNI_REFLECT_MATRIX,
    GNI_REFLECT_LD,
    GNI_REFLECT_TRANSPOSED, // where the matrix's transpose is
    GNI_REFLECT_LD_TRANSPOSED,
    GNI_REFLECT_NUMBERS,
    GNI_REFLECT_LEFT, // vectors,
    GNI_REFLECT_RIGHT,
    GNI_REFLECT_RAW, // their products with the matrix,
    GNI_REFLECT_RAW_LD,
    GNI_REFLECT_ZERO // and zeros
};
typedef struct gni_factor {
    gni_factor_step step;
    int64_t items; // rows or columns that are dealt out; from GNI_FACTOR_CHOLESKY on matrices
    int64_t order; // from GNI_FACTOR_CHOLESKY on: their rows or columns, the greater number
    int64_t word[GNI_FACTOR_WORDS];
    gni_operand a, b, c, d, e; // stride[] unused, and offsets: they are among the words
} gni_factor;

typedef enum gni_job_kind {
    GNI_JOB_MAP,
    GNI_JOB_REDUCE,
    GNI_JOB_SOFTMAX,
    GNI_JOB_ROWS, // of GPUs only: see gni_run_on_gpu
    GNI_JOB_MATMUL,
    GNI_JOB_CONV, // on a GPU it is made of other jobs where b has not its channels last: see gni_conv_run
    GNI_JOB_IMAGE,
    GNI_JOB_RECUR,
    GNI_JOB_TAKE,
    GNI_JOB_SCATTER,
    GNI_JOB_KEEP,
    GNI_JOB_RANDOM,
    GNI_JOB_FFT,
    GNI_JOB_FACTOR,
    GNI_JOB_SCAN,
    GNI_JOB_SORT,
    GNI_JOB_SEARCH,
    GNI_JOB_COUNT,
    GNI_JOB_ATTEND, // of room `attention`, which has another way where a GPU does not do it
    GNI_JOB_WINOGRAD,
    GNI_JOB_DEPTH,
    GNI_JOB_POOLING
} gni_job_kind;
// A kind of job: what the CPU takes of it, and how it does it. Who asks for a job hands its kind over, so that a program
// that never does holds none of its loops. Every function returns false after gni_fail, or when it does not do the job:
// `takes` and `supports` are asked first. Operands are where the backend wants them when it is called.
typedef bool gni_takes_fn(const gn_context *g, const void *job);
typedef struct gni_kind {
    gni_job_kind id;
    gni_takes_fn *takes;
    bool (*run)(gn_context *g, const void *job);
} gni_kind;
// A GPU's backend.
typedef struct gni_backend_api {
    bool (*supports)(gn_context *g, gni_job_kind kind, const void *job);
    bool (*run)(gn_context *g, gni_job_kind kind, const void *job);
} gni_backend_api;

typedef struct gni_scope {
    gn_array **list;
    int count, capacity;
} gni_scope;

// The open scopes of one thread. scopes[0] is unused: it stands for the caller.
typedef struct gni_stack {
    const void *owner;
    gni_scope *scopes;
    int count, capacity;
    int lost;    // scopes begun when there was no memory for them
    int no_grad; // of this thread, between calls
    uint64_t autocast;
    struct gni_stack *next;
} gni_stack;

typedef struct gni_read {
    gn_array *array;
    void *dst;
    size_t bytes;
    gn_done_fn done;
    void *user;
    bool on_gpu, watched;
    gni_gpu_ticket ticket, faults; // of `watched` ones
    struct gni_read *next;
} gni_read;

// See core/learn.
typedef enum gni_loop_state { GNI_LOOP_WATCHED, GNI_LOOP_WARMED, GNI_LOOP_TRIED, GNI_LOOP_CPU, GNI_LOOP_GPU } gni_loop_state;
typedef struct gni_loop {
    uint64_t calls, met; // a hash of a round's calls; when it was met last
    gni_loop_state state;
    int windows, broken; // timed in this state; interruptions of its trial
    uint64_t spent, best[2]; // ns in all; of a round, on the CPU and on the GPU
} gni_loop;

enum { GNI_LOOPS = 8 };
typedef struct gni_learn {
    uint64_t calls, rounds, begun; // a hash of the calls since the last round; rounds so far; when the window began
    int count, limit;      // calls since the last round, and with how many the loop is still thought to go on
    int in_window, by_rule, little; // rounds; jobs that a rule put on the GPU, and those that were too small for one
    gni_loop *current, loops[GNI_LOOPS];
} gni_learn;

struct gn_context {
    gni_handle handle;
    gni_lock lock;
    gn_options options; // strings copied
    // In force: those of the options, but while a large decomposition runs on the GPU.
    gn_placement placement;
    gn_precision precision;
    gni_learn learn;
    gn_allocator allocator;
    gn_status status;
    bool told;        // somebody asked for the error in `status`
    bool call_failed; // something failed inside the public call under way
    bool trying;      // what fails is done in another way, and told to nobody
    int call_depth;
    int forks; // gni_forks when it was opened, or looked at last
    int call_base;    // its value while a callback of the caller's runs, else 0: a call one above is the caller's
    const char *call; // name of that call; NULL while a callback runs and calls nothing
    const char *part; // the op whose gradient is being computed, or NULL
    char message[512];
    char explain[512];
    gn_device_info info;
    gni_isa isa;
    struct gni_pool *pool;
    gni_gpu *gpu;      // NULL: no GPU
    struct gni_gemm_work *gemm_work;
    struct gni_fft_gpu_state *fft_gpu; // tables of the GPU's transforms
    struct gni_fft_state *fft; // plans and memory of the CPU's transforms; NULL until the first
    // memory
    gni_mutex stats_lock;
    uint64_t host_used, host_peak;
    struct {
        void *p;
        size_t bytes;
    } host_cache[GNI_HOST_CACHE_SLOTS]; // freed CPU memory of arrays, oldest first
    int host_cache_count;
    uint64_t host_cached; // its bytes
    // The same of small ones, each with the next one's address.
    void *small_cache[GNI_SMALL_CLASSES];
    uint64_t small_cached;
    // arrays
    gn_array *arrays, *free_arrays, *free_last;
    int free_count;
    struct gni_slab *slabs;
    char *slot_next; // of those that no header was in
    int slots_left;
    uint64_t array_count;
    gni_buffer *ended; // which wait for their host_free
    bool wraps; // there were arrays over buffers of the host's device
    gni_stack *stacks; // one for each thread that has open scopes
    gni_stack *stack;  // of the thread inside the lock; NULL: it has none
    int lost_scopes;   // begun when there was no memory for a stack,
    int lost_no_grad, lost_autocast; // and these, or where there was no room for one more
    // lazy
    gn_array *pending_first, *pending_last, *pending_read; // the last: whose operand was overwritten last
    uint64_t lazy_bytes; // memory held only by pending work
    uint32_t walk; // over expressions, the last one's number
    uint32_t kept[GNI_KEPT]; // kinds of products that were asked for after going into a store
    // autograd
    int no_grad; // of the thread inside the lock
    uint64_t autocast; // too: the dtypes that were asked for, two bits each, the last one lowest: gni_autocast_bits
    const gni_math *math; // NULL until it is used
    const gni_derivatives *derivatives; // NULL until gn_requires_grad was called
    bool repeats; // gn_checkpoint runs its function for the second time
    gni_pass *pass; // back over the record: the innermost one under way
    bool near_gpu; // what is made of nothing goes with arrays that are there
    uint64_t serial;
    gn_optimizer *optimizers;
    gn_params *params;
    gn_loader *loaders;
    // random
    uint64_t seed, counter;
    // reads under way, oldest first
    gni_read *reads;
    bool delivering;
    struct gni_profile *profile;
    bool host_recording; // into a host's command buffer
};

// Headers of arrays stand in slabs, aligned, so that any pointer to one leads to its context.
#define GNI_SLAB_BYTES 65536
typedef struct gni_slab {
    gn_context *ctx;
    void *block;           // in the first of a group: what was allocated, and the next group
    struct gni_slab *next;
} gni_slab;

static gni_atomic gni_contexts; // that are open: with none, memory of handles is gone and must not be looked at

static gn_context *gni_home(const gn_array *a) {
    if (gni_pointer_load(&gni_contexts) == 0) return NULL;
    return ((const gni_slab *)((uintptr_t)a & ~(uintptr_t)(GNI_SLAB_BYTES - 1)))->ctx;
}

// In a live header: no other word in a slab is equal to it.
static uintptr_t gni_magic_of(const void *handle, gni_handle_kind kind) {
    return (uintptr_t)handle ^ (uintptr_t)0x6e756d216e756d21u ^ (uintptr_t)kind;
}

// GNI_NO_HANDLE of NULL and of an array that was released: headers stand at multiples of 8, so that no other array's magic
// number in its place is taken for one of these.
static gni_handle_kind gni_kind_of(const void *handle) {
    if (handle == NULL || gni_pointer_load(&gni_contexts) == 0) return GNI_NO_HANDLE;
    const uintptr_t kind = gni_magic_of(handle, GNI_IS_ARRAY) ^ ((const gni_handle *)handle)->magic;
    return kind < GNI_NO_HANDLE ? (gni_handle_kind)kind : GNI_NO_HANDLE;
}

// The context of a handle; NULL unless it is of that kind.
static gn_context *gni_home_of(const void *handle, gni_handle_kind kind) {
    return gni_kind_of(handle) == kind ? ((const gni_handle *)handle)->ctx : NULL;
}

static void gni_handle_init(gn_context *g, void *handle, gni_handle_kind kind) {
    gni_handle *h = (gni_handle *)handle;
    h->magic = gni_magic_of(handle, kind);
    h->ctx = g;
}
