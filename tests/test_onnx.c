// The backend tests of ONNX (onnx/onnx, backend/test; Debian's libonnx-testdata): for each op how it is said in gn_ functions, or
// why it is not. tests/make_onnx.py turns these tests into cases. Prints what passed and what is left out.

#include "test.h"

enum { MOST = 10 };

typedef struct attribute {
    char name[32];
    int kind, count; // 1 reals, 2 integers, 3 text, 4 an array
    double real[16];
    int64_t integer[16];
    char text[64];
    test_array array;
} attribute;

typedef struct node {
    gn_context *g;
    char name[96], op[48];
    int inputs, outputs, attributes;
    bool given[MOST];
    test_array in[MOST];
    attribute attribute[MOST];
    gn_array *more[MOST]; // results beside the first one
} node;

// ---- what a node says

static const attribute *find(const node *n, const char *name) {
    for (int i = 0; i < n->attributes; i++)
        if (strcmp(n->attribute[i].name, name) == 0) return &n->attribute[i];
    return NULL;
}
static double real(const node *n, const char *name, double otherwise) {
    const attribute *a = find(n, name);
    return a != NULL ? a->real[0] : otherwise;
}
static int64_t integer(const node *n, const char *name, int64_t otherwise) {
    const attribute *a = find(n, name);
    return a != NULL ? a->integer[0] : otherwise;
}
static bool says(const node *n, const char *name, const char *text, bool otherwise) {
    const attribute *a = find(n, name);
    return a != NULL ? strcmp(a->text, text) == 0 : otherwise;
}
static gn_array *of(gn_context *g, const test_array *a) { return gn_array_from(g, a->t, a->s, a->data); }
static gn_array *in(node *n, int i) { return i < n->inputs && n->given[i] ? of(n->g, &n->in[i]) : NULL; }
static gn_dtype type_of(const node *n, int i) { return n->in[i].t; }

// An input that is a list of integers, which a call has as numbers: axes, shapes, ends. -1: it is not given.
static int list(const node *n, int i, int64_t *to) {
    if (i >= n->inputs || !n->given[i]) return -1;
    for (int k = 0; k < n->in[i].n && k < 16; k++) to[k] = (int64_t)test_element(n->in[i].t, n->in[i].data, k);
    return (int)n->in[i].n;
}
static double one(const node *n, int i, double otherwise) {
    return i < n->inputs && n->given[i] ? test_element(n->in[i].t, n->in[i].data, 0) : otherwise;
}

static gn_axes axes_from(const int64_t *a, int count) {
    int all[16];
    for (int i = 0; i < count; i++) all[i] = (int)a[i];
    return count == 1 ? all[0] : gn_axes_from(count, all);
}

// TensorProto.DataType
static gn_dtype onnx_type(int64_t t) {
    static const gn_dtype types[] = {GN_DTYPE_COUNT, GN_F32, GN_U8, GN_I8, GN_U16, GN_I16, GN_I32, GN_I64, GN_DTYPE_COUNT,
                                     GN_BOOL, GN_F16, GN_F64, GN_U32, GN_U64, GN_C64, GN_C128, GN_BF16};
    return t >= 0 && t < 17 ? types[t] : GN_DTYPE_COUNT;
}

static gn_shape shape_in(const node *n, int i) {
    int64_t dims[16];
    const int rank = list(n, i, dims);
    return gn_shape_from(rank, dims);
}
// Of two arrays that broadcast.
static gn_shape both(gn_shape a, gn_shape b) {
    gn_shape s = a.rank > b.rank ? a : b;
    for (int i = 1; i <= a.rank && i <= b.rank; i++) {
        const int64_t m = a.dim[a.rank - i], k = b.dim[b.rank - i];
        s.dim[s.rank - i] = m == 1 ? k : m;
    }
    return s;
}
// A list of an attribute, or else of an input. -1: neither.
static int numbers(const node *n, const char *name, int i, int64_t *to) {
    const attribute *a = find(n, name);
    if (a == NULL) return list(n, i, to);
    memcpy(to, a->integer, sizeof a->integer);
    return a->count;
}

// ---- ops

#define ONE(op, call)                       \
    static gn_array *op_##op(node *n) {     \
        gn_array *a = in(n, 0);             \
        return call;                        \
    }
#define TWO(op, call)                                 \
    static gn_array *op_##op(node *n) {               \
        gn_array *a = in(n, 0), *b = in(n, 1);        \
        return call;                                  \
    }
ONE(Abs, gn_abs(a))
ONE(Acos, gn_acos(a))
ONE(Acosh, gn_acosh(a))
ONE(Asin, gn_asin(a))
ONE(Asinh, gn_asinh(a))
ONE(Atan, gn_atan(a))
ONE(Atanh, gn_atanh(a))
ONE(Ceil, gn_ceil(a))
ONE(Cos, gn_cos(a))
ONE(Cosh, gn_cosh(a))
ONE(Det, gn_det(a))
ONE(Erf, gn_erf(a))
ONE(Exp, gn_exp(a))
ONE(Floor, gn_floor(a))
ONE(GlobalAveragePool, gn_mean(a, GN_KEEP(GN_AXES(2, 3))))
ONE(GlobalMaxPool, gn_max(a, GN_KEEP(GN_AXES(2, 3))))
ONE(HardSwish, gn_mul(a, gn_clamp(gn_add_s(gn_div_s(a, 6), 0.5), 0, 1)))
ONE(Identity, gn_copy(a))
ONE(IsNaN, gn_isnan(a))
ONE(Log, gn_log(a))
ONE(MeanVarianceNormalization,
    gn_div(gn_sub(a, gn_mean(a, GN_KEEP(GN_AXES(0, 2, 3)))), gn_std(a, GN_KEEP(GN_AXES(0, 2, 3)), 0)))
ONE(Neg, gn_neg(a))
ONE(NonZero, gn_nonzero(a))
ONE(Not, gn_logical_not(a))
ONE(Reciprocal, gn_recip(a))
ONE(Relu, gn_relu(a))
ONE(Round, gn_round(a))
ONE(Sigmoid, gn_sigmoid(a))
ONE(Sign, gn_sign(a))
ONE(Sin, gn_sin(a))
ONE(Sinh, gn_sinh(a))
ONE(Size, gn_full_int(n->g, GN_I64, GN_SHAPE(), gn_size(a)))
ONE(Softplus, gn_softplus(a))
ONE(Softsign, gn_div(a, gn_add_s(gn_abs(a), 1)))
ONE(Sqrt, gn_sqrt(a))
ONE(Tan, gn_tan(a))
ONE(Tanh, gn_tanh(a))
TWO(Add, gn_add(a, b))
TWO(And, gn_logical_and(a, b))
TWO(CastLike, gn_cast(a, gn_dtype_of(b)))
TWO(Equal, gn_eq(a, b))
TWO(Greater, gn_gt(a, b))
TWO(GreaterOrEqual, gn_ge(a, b))
TWO(Less, gn_lt(a, b))
TWO(LessOrEqual, gn_le(a, b))
TWO(MatMul, gn_matmul(a, b))
TWO(Mul, gn_mul(a, b))
TWO(Or, gn_logical_or(a, b))
TWO(Pow, gn_cast(gn_pow(a, b), gn_dtype_of(a)))
TWO(PRelu, gn_where(gn_lt_s(a, 0), gn_mul(a, b), a))
TWO(Sub, gn_sub(a, b))
TWO(Xor, gn_logical_xor(a, b))
// Of integers the quotient's type is theirs.
TWO(Div, gn_dtype_of(a) == GN_U8 ? gn_floor_div(a, b) : gn_div(a, b))
TWO(BitShift, says(n, "direction", "LEFT", false) ? gn_shl(a, b) : gn_shr(a, b))
// fmod has the sign of the first.
TWO(Mod, integer(n, "fmod", 0) != 0 ? gn_mul(gn_sign(a), gn_mod(gn_abs(a), gn_abs(b))) : gn_mod(a, b))
ONE(Celu, gn_mul_s(gn_elu(gn_div_s(a, real(n, "alpha", 1)), 1), real(n, "alpha", 1)))
ONE(Elu, gn_elu(a, real(n, "alpha", 1)))
ONE(LeakyRelu, gn_leaky_relu(a, real(n, "alpha", 0.01)))
ONE(Selu, gn_mul_s(gn_elu(a, real(n, "alpha", 1.6732632423543772)), real(n, "gamma", 1.0507009873554805)))
ONE(HardSigmoid, gn_clamp(gn_add_s(gn_mul_s(a, real(n, "alpha", 0.2)), real(n, "beta", 0.5)), 0, 1))
ONE(ThresholdedRelu, gn_where(gn_gt_s(a, real(n, "alpha", 1)), a, gn_zeros_like(a)))
ONE(Softmax, gn_softmax(a, (int)integer(n, "axis", -1)))
ONE(LogSoftmax, gn_log_softmax(a, (int)integer(n, "axis", -1)))
ONE(EyeLike, gn_eye(n->g, find(n, "dtype") != NULL ? onnx_type(integer(n, "dtype", 1)) : gn_dtype_of(a), gn_dim(a, 0),
                    gn_dim(a, 1), integer(n, "k", 0)))
ONE(Cast, gn_cast(a, onnx_type(integer(n, "to", 1))))
ONE(Expand, gn_broadcast_to(a, both(gn_shape_of(a), shape_in(n, 1))))
ONE(Trilu, integer(n, "upper", 1) != 0 ? gn_triu(a, (int64_t)one(n, 1, 0)) : gn_tril(a, (int64_t)one(n, 1, 0)))
TWO(Gather, gn_take(a, b, (int)integer(n, "axis", 0)))
TWO(GatherElements, gn_take_along(a, b, (int)integer(n, "axis", 0)))
ONE(Tile, gn_tile(a, shape_in(n, 1)))

static gn_array *op_Constant(node *n) { // an array, a number, or a list of them
    const attribute *a = &n->attribute[0];
    const size_t end = strlen(a->name) - 1;
    const gn_shape s = a->name[end] == 's' ? GN_SHAPE(a->count) : GN_SHAPE();
    if (a->kind == 4) return of(n->g, &a->array);
    return a->kind == 1 ? gn_cast(gn_array_from(n->g, GN_F64, s, a->real), GN_F32) : gn_array_from(n->g, GN_I64, s, a->integer);
}
static gn_array *op_ConstantOfShape(node *n) {
    const attribute *value = find(n, "value");
    gn_array *v = value != NULL ? of(n->g, &value->array) : gn_zeros(n->g, GN_F32, GN_SHAPE(1));
    return gn_copy(gn_broadcast_to(gn_reshape(v, GN_SHAPE()), shape_in(n, 0)));
}
static gn_array *op_Range(node *n) { return gn_arange(n->g, type_of(n, 0), one(n, 0, 0), one(n, 1, 0), one(n, 2, 0)); }
static gn_array *op_Where(node *n) { return gn_where(in(n, 0), in(n, 1), in(n, 2)); }
static gn_array *op_Clip(node *n) { return gn_clip(in(n, 0), in(n, 1), in(n, 2)); }
static gn_array *op_Concat(node *n) {
    gn_array *a[MOST];
    for (int i = 0; i < n->inputs; i++) a[i] = in(n, i);
    return gn_concat(a, n->inputs, (int)integer(n, "axis", 0));
}
static gn_array *fold(node *n, gn_array *(*fn)(gn_array *, gn_array *)) {
    gn_array *y = in(n, 0);
    for (int i = 1; i < n->inputs; i++) y = fn(y, in(n, i));
    return y;
}
static gn_array *op_Max(node *n) { return fold(n, gn_maximum); }
static gn_array *op_Min(node *n) { return fold(n, gn_minimum); }
static gn_array *op_Sum(node *n) { return fold(n, gn_add); }
static gn_array *op_Mean(node *n) { return gn_div_s(fold(n, gn_add), n->inputs); }

// Periodic windows go on where they begin. The recorded ones were made with this pi.
static gn_array *window(node *n, double a0, double a1, double a2) {
    const int64_t count = (int64_t)one(n, 0, 0), over = integer(n, "periodic", 1) != 0 ? count : count - 1;
    gn_array *x = gn_mul_s(gn_arange(n->g, GN_F32, 0, (double)count, 1), 2 * 3.1415 / (double)over);
    return gn_add(gn_rsub_s(gn_mul_s(gn_cos(x), a1), a0), gn_mul_s(gn_cos(gn_mul_s(x, 2)), a2));
}
static gn_array *op_HannWindow(node *n) { return window(n, 0.5, 0.5, 0); }
static gn_array *op_HammingWindow(node *n) { return window(n, 25.0 / 46, 21.0 / 46, 0); }
static gn_array *op_BlackmanWindow(node *n) { return window(n, 0.42, 0.5, 0.08); }

static gn_array *op_IsInf(node *n) {
    gn_array *a = in(n, 0), *y = gn_isinf(a);
    if (integer(n, "detect_negative", 1) == 0) y = gn_logical_and(y, gn_gt_s(a, 0));
    if (integer(n, "detect_positive", 1) == 0) y = gn_logical_and(y, gn_lt_s(a, 0));
    return y;
}
static gn_array *op_Shrink(node *n) {
    const double l = real(n, "lambd", 0.5), bias = real(n, "bias", 0);
    gn_array *a = in(n, 0), *zero = gn_zeros_like(a);
    return gn_where(gn_lt_s(a, -l), gn_add_s(a, bias), gn_where(gn_gt_s(a, l), gn_sub_s(a, bias), zero));
}
static gn_array *op_Shape(node *n) {
    gn_array *dims = gn_array_from(n->g, GN_I64, GN_SHAPE(n->in[0].s.rank), n->in[0].s.dim);
    return gn_copy(gn_slice(dims, 0, integer(n, "start", 0), integer(n, "end", GN_NONE), 1));
}

// Reductions: axes of the attribute, or of input 1.
static gn_axes reduced(const node *n) {
    int64_t list_of[16];
    const int count = numbers(n, "axes", 1, list_of);
    const bool none = count < 0 || (count == 0 && integer(n, "noop_with_empty_axes", 0) == 0);
    const gn_axes axes = none ? GN_ALL : axes_from(list_of, count);
    return integer(n, "keepdims", 1) != 0 ? GN_KEEP(axes) : axes;
}
ONE(ReduceL1, gn_sum(gn_abs(a), reduced(n)))
ONE(ReduceL2, gn_norm(a, reduced(n)))
ONE(ReduceLogSum, gn_log(gn_sum(a, reduced(n))))
ONE(ReduceLogSumExp, gn_logsumexp(a, reduced(n)))
ONE(ReduceMax, gn_max(a, reduced(n)))
ONE(ReduceMean, gn_mean(a, reduced(n)))
ONE(ReduceMin, gn_min(a, reduced(n)))
ONE(ReduceProd, gn_prod(a, reduced(n)))
ONE(ReduceSum, gn_sum(a, reduced(n)))
ONE(ReduceSumSquare, gn_sum(gn_square(a), reduced(n)))

static gn_array *arg(node *n, gn_array *(*fn)(gn_array *, gn_axes)) {
    const int axis = (int)integer(n, "axis", 0);
    const gn_axes axes = integer(n, "keepdims", 1) != 0 ? GN_KEEP(axis) : axis;
    gn_array *a = in(n, 0);
    if (integer(n, "select_last_index", 0) == 0) return fn(a, axes);
    return gn_rsub_s(fn(gn_flip(a, axis), axes), (double)gn_dim(a, axis) - 1);
}
static gn_array *op_ArgMax(node *n) { return arg(n, gn_argmax); }
static gn_array *op_ArgMin(node *n) { return arg(n, gn_argmin); }
static gn_array *op_Hardmax(node *n) {
    const int axis = (int)integer(n, "axis", -1);
    gn_array *a = in(n, 0);
    return gn_move_axis(gn_one_hot(gn_argmax(a, axis), gn_dtype_of(a), gn_dim(a, axis)), -1, axis);
}
static gn_array *op_CumSum(node *n) {
    const int axis = (int)one(n, 1, 0);
    const bool back = integer(n, "reverse", 0) != 0;
    gn_array *a = in(n, 0), *x = back ? gn_flip(a, axis) : a;
    gn_array *y = gn_cumsum(x, axis);
    if (integer(n, "exclusive", 0) != 0) y = gn_sub(y, x);
    return back ? gn_flip(y, axis) : y;
}
static gn_array *op_TopK(node *n) {
    const int axis = (int)integer(n, "axis", -1);
    const int64_t k = (int64_t)one(n, 1, 1);
    gn_array *a = in(n, 0);
    if (integer(n, "largest", 1) != 0) return gn_topk(a, k, axis, &n->more[1]);
    n->more[1] = gn_slice(gn_argsort(a, axis, false), axis, 0, k, 1);
    return gn_slice(gn_sort(a, axis, false), axis, 0, k, 1);
}
// Unsorted: in the order of their first places.
static gn_array *op_Unique(node *n) {
    if (find(n, "axis") != NULL) return gn_unique_axis(in(n, 0), (int)integer(n, "axis", 0), &n->more[1], &n->more[2], &n->more[3]);
    gn_array *y = gn_unique(in(n, 0), &n->more[1], &n->more[2], &n->more[3]);
    n->more[2] = gn_ravel(n->more[2]);
    if (integer(n, "sorted", 1) != 0) return y;
    gn_array *order = gn_argsort(n->more[1], 0, false);
    n->more[1] = gn_take(n->more[1], order, 0);
    n->more[2] = gn_take(gn_argsort(order, 0, false), n->more[2], 0);
    n->more[3] = gn_take(n->more[3], order, 0);
    return gn_take(y, order, 0);
}

// Views.
static gn_array *op_Reshape(node *n) {
    gn_shape s = shape_in(n, 1);
    for (int i = 0; i < s.rank && integer(n, "allowzero", 0) == 0; i++)
        if (s.dim[i] == 0) s.dim[i] = n->in[0].s.dim[i];
    return gn_reshape(in(n, 0), s);
}
static gn_array *op_Flatten(node *n) {
    const gn_shape s = n->in[0].s;
    int64_t axis = integer(n, "axis", 1), rows = 1;
    if (axis < 0) axis += s.rank;
    for (int i = 0; i < axis; i++) rows *= s.dim[i];
    return gn_reshape(in(n, 0), GN_SHAPE(rows, -1));
}
static gn_array *op_Transpose(node *n) {
    const attribute *perm = find(n, "perm");
    int axes[8];
    if (perm == NULL) return gn_transpose(in(n, 0));
    for (int i = 0; i < perm->count; i++) axes[i] = (int)perm->integer[i];
    return gn_permute_axes(in(n, 0), axes, perm->count);
}
static gn_array *op_Squeeze(node *n) {
    int64_t axes[16];
    const int count = numbers(n, "axes", 1, axes);
    return gn_squeeze(in(n, 0), count < 0 ? GN_ALL : axes_from(axes, count));
}
static gn_array *op_Unsqueeze(node *n) {
    int64_t axes[16];
    const int count = numbers(n, "axes", 1, axes);
    return gn_expand_dims(in(n, 0), axes_from(axes, count));
}
static gn_array *op_Slice(node *n) {
    int64_t start[16], stop[16], axis[16], step[16];
    const int count = list(n, 1, start);
    list(n, 2, stop);
    const bool axes = list(n, 3, axis) >= 0, steps = list(n, 4, step) >= 0;
    gn_array *a = in(n, 0);
    for (int i = 0; i < count; i++)
        a = gn_slice(a, axes ? (int)axis[i] : i, start[i], stop[i], steps ? step[i] : 1);
    return a;
}
static gn_array *op_Split(node *n) {
    const int axis = (int)integer(n, "axis", 0);
    int64_t places[16];
    if (list(n, 1, places) < 0) return gn_split(in(n, 0), n->outputs, axis, n->more) == GN_OK ? n->more[0] : NULL;
    for (int i = 1; i < n->outputs; i++) places[i] += places[i - 1];
    return gn_split_at(in(n, 0), places, n->outputs - 1, axis, n->more) == GN_OK ? n->more[0] : NULL;
}
static gn_array *op_DepthToSpace(node *n) {
    const int64_t k = integer(n, "blocksize", 1), *d = n->in[0].s.dim, c = d[1] / (k * k);
    const bool crd = says(n, "mode", "CRD", false);
    gn_array *a = gn_reshape(in(n, 0), crd ? GN_SHAPE(d[0], c, k, k, d[2], d[3]) : GN_SHAPE(d[0], k, k, c, d[2], d[3]));
    a = crd ? gn_permute(a, 0, 1, 4, 2, 5, 3) : gn_permute(a, 0, 3, 4, 1, 5, 2);
    return gn_reshape(a, GN_SHAPE(d[0], c, d[2] * k, d[3] * k));
}
static gn_array *op_SpaceToDepth(node *n) {
    const int64_t k = integer(n, "blocksize", 1), *d = n->in[0].s.dim;
    gn_array *a = gn_reshape(in(n, 0), GN_SHAPE(d[0], d[1], d[2] / k, k, d[3] / k, k));
    return gn_reshape(gn_permute(a, 0, 3, 5, 1, 2, 4), GN_SHAPE(d[0], d[1] * k * k, d[2] / k, d[3] / k));
}
static gn_array *op_Pad(node *n) {
    int64_t pads[16], widths[16];
    const int count = list(n, 1, pads);
    for (int i = 0; i < count / 2; i++) widths[2 * i] = pads[i], widths[2 * i + 1] = pads[count / 2 + i];
    const gn_pad_mode mode = says(n, "mode", "edge", false)      ? GN_PAD_EDGE
                             : says(n, "mode", "reflect", false) ? GN_PAD_REFLECT
                                                                 : GN_PAD_CONSTANT;
    return gn_pad(in(n, 0), widths, count, mode, one(n, 2, 0));
}

// Indices.
static gn_array *op_Compress(node *n) {
    return gn_compress(in(n, 1), in(n, 0), find(n, "axis") != NULL ? (gn_axes)integer(n, "axis", 0) : GN_ALL);
}
static gn_array *op_OneHot(node *n) {
    const int64_t depth = (int64_t)one(n, 1, 0);
    gn_array *i = gn_cast(in(n, 0), GN_I64), *values = in(n, 2);
    i = gn_where(gn_lt_s(i, 0), gn_add_s(i, (double)depth), i);
    gn_array *y = gn_where(gn_one_hot(i, GN_BOOL, depth), gn_index(values, "1"), gn_index(values, "0"));
    return gn_move_axis(y, -1, (int)integer(n, "axis", -1));
}
static gn_array *op_ScatterElements(node *n) {
    const int axis = (int)integer(n, "axis", 0);
    gn_array *a = in(n, 0), *i = in(n, 1), *v = in(n, 2);
    return says(n, "reduction", "add", false) ? gn_scatter_add(a, i, v, axis) : gn_put_along(a, i, v, axis);
}
// Indices (..., k) into the first k axes behind the batches, as one index into their elements.
static gn_array *flat_indices(node *n, int batches, int64_t *elements) {
    gn_array *i = in(n, 1), *flat = NULL;
    const gn_shape s = n->in[0].s;
    const int k = (int)gn_dim(i, -1);
    *elements = 1;
    for (int axis = batches + k - 1; axis >= batches; axis--) {
        gn_array *x = gn_slice(i, -1, axis - batches, axis - batches + 1, 1);
        x = gn_squeeze(gn_where(gn_lt_s(x, 0), gn_add_s(x, (double)s.dim[axis]), x), -1);
        x = gn_mul_s(x, (double)*elements);
        flat = flat != NULL ? gn_add(flat, x) : x;
        *elements *= s.dim[axis];
    }
    return flat;
}
// One batch axis at most.
static gn_array *op_GatherND(node *n) {
    const int batches = (int)integer(n, "batch_dims", 0), k = (int)n->in[1].s.dim[n->in[1].s.rank - 1];
    const gn_shape a = n->in[0].s, b = n->in[1].s;
    int64_t elements;
    gn_shape s = b;
    gn_array *i = flat_indices(n, batches, &elements);
    if (batches == 1) {
        gn_array *first = gn_mul_s(gn_arange(n->g, GN_I64, 0, (double)a.dim[0], 1), (double)elements);
        i = gn_add(gn_reshape(i, GN_SHAPE(a.dim[0], -1)), gn_expand_dims(first, 1));
        elements *= a.dim[0];
    }
    s.rank--;
    for (int axis = batches + k; axis < a.rank; axis++) s.dim[s.rank++] = a.dim[axis];
    return gn_reshape(gn_take(gn_reshape(in(n, 0), GN_SHAPE(elements, -1)), gn_ravel(i), 0), s);
}
static gn_array *op_ScatterND(node *n) {
    int64_t elements;
    gn_array *i = gn_ravel(flat_indices(n, 0, &elements)), *a = gn_reshape(in(n, 0), GN_SHAPE(elements, -1));
    gn_array *v = gn_reshape(in(n, 2), GN_SHAPE(gn_size(i), -1));
    gn_array *y = says(n, "reduction", "add", false) ? gn_scatter_add(a, gn_expand_dims(i, 1), v, 0)
                                                     : gn_put_along(a, gn_expand_dims(i, 1), v, 0);
    return gn_reshape(y, n->in[0].s);
}
static gn_array *op_ReverseSequence(node *n) {
    const int time = (int)integer(n, "time_axis", 0), batch = (int)integer(n, "batch_axis", 1);
    gn_array *a = in(n, 0), *t = gn_arange(n->g, GN_I64, 0, (double)gn_dim(a, time), 1), *length = in(n, 1);
    t = gn_expand_dims(t, time < batch ? 1 : 0);
    length = gn_expand_dims(length, time < batch ? 0 : 1);
    gn_array *i = gn_where(gn_lt(t, length), gn_sub(gn_sub_s(length, 1), t), t);
    for (int axis = 2; axis < gn_rank(a); axis++) i = gn_expand_dims(i, -1);
    return gn_take_along(a, i, time);
}
// Places count in the plane of the windows, which stands at the beginning of a larger output_shape.
static gn_array *op_MaxUnpool(node *n) {
    const attribute *kernel = find(n, "kernel_shape"), *stride = find(n, "strides");
    gn_shape s = n->in[0].s;
    for (int i = 2; i < s.rank; i++) s.dim[i] = (s.dim[i] - 1) * stride->integer[i - 2] + kernel->integer[i - 2];
    gn_array *y = gn_put_along(gn_ravel(gn_zeros(n->g, GN_F32, s)), gn_ravel(in(n, 1)), gn_ravel(in(n, 0)), 0);
    int64_t widths[16] = {0};
    if (n->inputs > 2) {
        const gn_shape wide = shape_in(n, 2);
        for (int i = 0; i < s.rank; i++) widths[2 * i + 1] = wide.dim[i] - s.dim[i];
    }
    return gn_pad(gn_reshape(y, s), widths, 2 * s.rank, GN_PAD_CONSTANT, 0);
}

// Products and transforms.
static gn_array *op_Einsum(node *n) {
    gn_array *a[MOST];
    for (int i = 0; i < n->inputs; i++) a[i] = in(n, i);
    return gn_einsum_list(n->g, find(n, "equation")->text, a, n->inputs);
}
static gn_array *op_Gemm(node *n) {
    gn_array *a = in(n, 0), *b = in(n, 1), *c = in(n, 2);
    if (integer(n, "transA", 0) != 0) a = gn_transpose(a);
    if (integer(n, "transB", 0) != 0) b = gn_transpose(b);
    gn_array *y = gn_mul_s(gn_matmul(a, b), real(n, "alpha", 1));
    return c != NULL ? gn_add(y, gn_mul_s(c, real(n, "beta", 1))) : y;
}
static gn_array *op_MatMulInteger(node *n) {
    gn_array *a = gn_sub(gn_cast(in(n, 0), GN_I32), gn_cast(in(n, 2), GN_I32));
    return gn_matmul(a, gn_sub(gn_cast(in(n, 1), GN_I32), gn_cast(in(n, 3), GN_I32)));
}
static gn_array *pair(gn_array *c) { // complex numbers as pairs
    gn_array *parts[2] = {gn_real(c), gn_imag(c)};
    return gn_stack(parts, 2, -1);
}
static gn_array *op_DFT(node *n) {
    const int axis = (int)integer(n, "axis", 1);
    gn_array *a = in(n, 0), *re = gn_index(a, "..., 0");
    gn_array *x = gn_dim(a, -1) == 2 ? gn_complex(re, gn_index(a, "..., 1")) : gn_complex(re, gn_zeros_like(re));
    return pair(integer(n, "inverse", 0) != 0 ? gn_ifft(x, 0, axis, GN_FFT_BACKWARD) : gn_fft(x, 0, axis, GN_FFT_BACKWARD));
}
static gn_array *op_STFT(node *n) {
    gn_array *a = gn_squeeze(in(n, 0), -1), *taper = in(n, 2);
    const int64_t size = (int64_t)one(n, 3, taper != NULL ? (double)gn_size(taper) : 0);
    gn_array *frames = gn_slice(gn_sliding_window(a, size, 1), 1, GN_NONE, GN_NONE, (int64_t)one(n, 1, 1));
    return pair(gn_rfft(taper != NULL ? gn_mul(frames, taper) : frames, 0, -1, GN_FFT_BACKWARD));
}
static gn_array *op_LRN(node *n) {
    const int64_t size = integer(n, "size", 1), front = (size - 1) / 2;
    const int64_t widths[8] = {0, 0, front, size - 1 - front, 0, 0, 0, 0};
    gn_array *a = in(n, 0), *squares = gn_pad(gn_square(a), widths, 8, GN_PAD_CONSTANT, 0);
    gn_array *sum = gn_sum(gn_sliding_window(squares, size, 1), -1);
    gn_array *scale = gn_add_s(gn_mul_s(sum, real(n, "alpha", 1e-4) / (double)size), real(n, "bias", 1));
    return gn_div(a, gn_pow_s(scale, real(n, "beta", 0.75)));
}

// Numbers in 8 bits: x = (q - zero) scale, where these go along an axis or are one for all.
static gn_array *along(node *n, int i, int axis) {
    gn_array *a = in(n, i);
    for (int k = axis + 1; k < n->in[0].s.rank && gn_rank(a) > 0; k++) a = gn_expand_dims(a, -1);
    return a;
}
static gn_array *op_QuantizeLinear(node *n) {
    const int axis = (int)integer(n, "axis", 1);
    gn_array *q = gn_round(gn_div(in(n, 0), along(n, 1, axis)));
    return gn_cast(gn_add(q, gn_cast(along(n, 2, axis), GN_F32)), type_of(n, 2));
}
static gn_array *op_DequantizeLinear(node *n) {
    const int axis = (int)integer(n, "axis", 1);
    gn_array *q = gn_sub(gn_cast(in(n, 0), GN_F32), gn_cast(along(n, 2, axis), GN_F32));
    return gn_mul(q, along(n, 1, axis));
}
static gn_array *op_DynamicQuantizeLinear(node *n) {
    gn_array *a = in(n, 0), *low = gn_minimum_s(gn_min(a, GN_ALL), 0), *high = gn_maximum_s(gn_max(a, GN_ALL), 0);
    gn_array *scale = gn_div_s(gn_sub(high, low), 255);
    gn_array *zero = gn_round(gn_clamp(gn_div(gn_neg(low), scale), 0, 255));
    n->more[1] = scale;
    n->more[2] = gn_cast(zero, GN_U8);
    return gn_cast(gn_add(gn_round(gn_div(a, scale)), zero), GN_U8);
}

// Convolutions and pooling: what an axis has in front and behind, said by pads or by auto_pad.
typedef struct border {
    int axes; // spatial ones
    int64_t size[3], stride[3], dilation[3], front[3], back[3];
    bool even; // the same on both sides, and as a call takes it
} border;

static border border_of(const node *n, const int64_t *kernel, int axes, bool pools) {
    const attribute *strides = find(n, "strides"), *dilations = find(n, "dilations"), *pads = find(n, "pads");
    const bool upper = says(n, "auto_pad", "SAME_UPPER", false), lower = says(n, "auto_pad", "SAME_LOWER", false);
    border b;
    memset(&b, 0, sizeof b);
    b.axes = axes;
    b.even = true;
    for (int i = 0; i < axes; i++) {
        b.size[i] = kernel[i];
        b.stride[i] = strides != NULL ? strides->integer[i] : 1;
        b.dilation[i] = dilations != NULL ? dilations->integer[i] : 1;
        b.front[i] = pads != NULL ? pads->integer[i] : 0;
        b.back[i] = pads != NULL ? pads->integer[axes + i] : 0;
        if (upper || lower) {
            const int64_t x = n->in[0].s.dim[2 + i], reach = (kernel[i] - 1) * b.dilation[i] + 1;
            const int64_t all = ((x + b.stride[i] - 1) / b.stride[i] - 1) * b.stride[i] + reach - x;
            b.front[i] = all < 0 ? 0 : upper ? all / 2 : all - all / 2;
            b.back[i] = all < 0 ? 0 : all - b.front[i];
        }
        if (b.front[i] != b.back[i]) b.even = false;
        if (pools && b.front[i] > kernel[i] / 2) b.even = false; // which pools refuse
    }
    return b;
}
// x with that border of `value` around it, which is then none any more.
static gn_array *bordered(gn_array *x, border *b, double value) {
    int64_t widths[10] = {0};
    for (int i = 0; i < b->axes; i++) {
        widths[4 + 2 * i] = b->front[i];
        widths[5 + 2 * i] = b->back[i];
        b->front[i] = b->back[i] = 0;
    }
    return gn_pad(x, widths, 4 + 2 * b->axes, GN_PAD_CONSTANT, value);
}

static gn_array *convolved(node *n, gn_array *x, gn_array *w) {
    gn_conv_options o;
    border b = border_of(n, gn_shape_of(w).dim + 2, gn_rank(w) - 2, false);
    if (!b.even) x = bordered(x, &b, 0);
    memset(&o, 0, sizeof o);
    memcpy(o.strides, b.stride, sizeof o.strides);
    memcpy(o.pads, b.front, sizeof o.pads);
    memcpy(o.dilations, b.dilation, sizeof o.dilations);
    o.groups = integer(n, "group", 1);
    return b.axes == 1 ? gn_conv1d(x, w, NULL, &o) : b.axes == 2 ? gn_conv2d(x, w, NULL, &o) : gn_conv3d(x, w, NULL, &o);
}
TWO(Conv, convolved(n, a, b))
static gn_array *op_ConvInteger(node *n) {
    gn_array *x = gn_sub(gn_cast(in(n, 0), GN_F32), gn_cast(in(n, 2), GN_F32));
    return gn_cast(convolved(n, x, gn_cast(in(n, 1), GN_F32)), GN_I32);
}
// All that the kernel reaches, cut and widened to what is asked for.
static gn_array *op_ConvTranspose(node *n) {
    gn_array *x = in(n, 0), *w = in(n, 1);
    border b = border_of(n, n->in[1].s.dim + 2, n->in[1].s.rank - 2, false);
    const attribute *more = find(n, "output_padding"), *out = find(n, "output_shape");
    const bool same = says(n, "auto_pad", "SAME_UPPER", false), lower = says(n, "auto_pad", "SAME_LOWER", false);
    gn_conv_options o;
    memset(&o, 0, sizeof o);
    for (int i = 0; i < 3; i++) {
        o.strides[i] = i < b.axes ? b.stride[i] : 1;
        o.dilations[i] = i < b.axes ? b.dilation[i] : 1;
    }
    o.groups = integer(n, "group", 1);
    gn_array *y = b.axes == 1   ? gn_conv_transpose1d(x, w, NULL, &o)
                  : b.axes == 2 ? gn_conv_transpose2d(x, w, NULL, &o)
                                : gn_conv_transpose3d(x, w, NULL, &o);
    for (int i = 0; i < b.axes; i++) {
        const int64_t reach = gn_dim(y, 2 + i), behind = more != NULL ? more->integer[i] : 0;
        int64_t front = b.front[i], size = reach + behind - b.front[i] - b.back[i], widths[10] = {0};
        if (same || lower || out != NULL) {
            size = out != NULL ? out->integer[i] : n->in[0].s.dim[2 + i] * b.stride[i];
            const int64_t all = reach + behind - size;
            front = all < 0 ? 0 : same ? all / 2 : all - all / 2;
        }
        widths[5 + 2 * i] = front + size > reach ? front + size - reach : 0;
        y = gn_slice(gn_pad(y, widths, 4 + 2 * b.axes, GN_PAD_CONSTANT, 0), 2 + i, front, front + size, 1);
    }
    return y;
}

static gn_pool_options pool_options(const node *n, const border *b) {
    gn_pool_options o;
    memset(&o, 0, sizeof o);
    for (int i = 0; i < 2; i++) { // of one axis the second is a window of one
        o.sizes[i] = i < b->axes ? b->size[i] : 1;
        o.strides[i] = i < b->axes ? b->stride[i] : 1;
        o.pads[i] = i < b->axes ? b->front[i] : 0;
        o.dilations[i] = i < b->axes ? b->dilation[i] : 1;
    }
    o.ceil = integer(n, "ceil_mode", 0) != 0;
    o.inside = integer(n, "count_include_pad", 0) == 0;
    return o;
}
static gn_array *op_MaxPool(node *n) {
    const attribute *kernel = find(n, "kernel_shape");
    border b = border_of(n, kernel->integer, kernel->count, true);
    gn_array *x = gn_cast(in(n, 0), GN_F32);
    if (!b.even) x = bordered(x, &b, -(double)INFINITY);
    const gn_pool_options o = pool_options(n, &b);
    gn_array *y = gn_max_pool2d(b.axes == 1 ? gn_expand_dims(x, 3) : x, 1, &o, n->outputs > 1 ? &n->more[1] : NULL);
    if (integer(n, "storage_order", 0) != 0) { // columns first
        const double h = (double)gn_dim(x, 2), w = (double)gn_dim(x, 3);
        n->more[1] = gn_add(gn_mul_s(gn_mod_s(n->more[1], w), h), gn_floor_div_s(n->more[1], w));
    }
    return gn_cast(b.axes == 1 ? gn_squeeze(y, 3) : y, type_of(n, 0));
}
static gn_array *op_AveragePool(node *n) {
    const attribute *kernel = find(n, "kernel_shape");
    border b = border_of(n, kernel->integer, kernel->count, true), of_ones = b;
    gn_array *x = in(n, 0), *ones = gn_ones_like(x);
    const bool uneven = !b.even && integer(n, "count_include_pad", 0) == 0;
    if (!b.even) x = bordered(x, &b, 0), ones = bordered(ones, &of_ones, 0);
    const gn_pool_options o = pool_options(n, &b);
    gn_array *y = gn_avg_pool2d(b.axes == 1 ? gn_expand_dims(x, 3) : x, 1, &o);
    if (uneven) y = gn_div(y, gn_avg_pool2d(ones, 1, &o)); // by what of each window is x
    return b.axes == 1 ? gn_squeeze(y, 3) : y;
}

static gn_array *op_GridSample(node *n) {
    gn_grid_options o;
    o.nearest = says(n, "mode", "nearest", false);
    o.outside = says(n, "padding_mode", "border", false)       ? GN_OUTSIDE_BORDER
                : says(n, "padding_mode", "reflection", false) ? GN_OUTSIDE_REFLECTION
                                                               : GN_OUTSIDE_ZEROS;
    o.align_corners = integer(n, "align_corners", 0) != 0;
    return gn_grid_sample(in(n, 0), in(n, 1), &o);
}
static gn_array *op_Resize(node *n) { // by sizes, input 3, or else by factors, the input in front of it or the last one
    const bool sizes = n->inputs > 3 && n->given[3];
    const test_array *by = &n->in[sizes ? 3 : n->inputs > 2 ? 2 : 1];
    int64_t to[2];
    for (int i = 0; i < 2; i++) {
        const double x = test_element(by->t, by->data, 2 + i);
        to[i] = (int64_t)floor(sizes ? x : (double)n->in[0].s.dim[2 + i] * x);
    }
    const bool corners = says(n, "coordinate_transformation_mode", "align_corners", false);
    return gn_interpolate(in(n, 0), to[0], to[1], says(n, "mode", "linear", false) ? GN_BILINEAR : GN_NEAREST, corners);
}

// Layers and losses.
static gn_array *op_Dropout(node *n) {
    gn_array *a = in(n, 0);
    n->more[1] = gn_ones(n->g, GN_BOOL, n->in[0].s);
    return gn_dropout(a, n->inputs > 1 ? one(n, 1, 0.5) : real(n, "ratio", 0.5), one(n, 2, 0) != 0);
}
static gn_array *loss(node *n, gn_array *x, gn_array *(*fn)(gn_array *, gn_array *, const gn_cross_entropy_options *)) {
    gn_cross_entropy_options o;
    memset(&o, 0, sizeof o);
    o.weight = in(n, 2);
    o.ignores = find(n, "ignore_index") != NULL;
    o.ignored = integer(n, "ignore_index", 0);
    o.reduction = says(n, "reduction", "sum", false)    ? GN_REDUCE_SUM
                  : says(n, "reduction", "none", false) ? GN_REDUCE_NONE
                                                        : GN_REDUCE_MEAN;
    return fn(x, in(n, 1), &o);
}
// In training the second and third result are the running moments, here with the variance of a population.
static gn_array *op_BatchNormalization(node *n) {
    gn_array *x = in(n, 0), *mean = in(n, 3), *var = in(n, 4), *old = in(n, 4);
    const bool training = integer(n, "training_mode", 0) != 0;
    const double keep = real(n, "momentum", 0.9), count = (double)(gn_size(x) / gn_dim(x, 1));
    gn_array *y = gn_batch_norm(x, mean, var, in(n, 1), in(n, 2), training, 1 - keep, real(n, "epsilon", 1e-5));
    old = gn_mul_s(old, keep);
    n->more[1] = mean;
    n->more[2] = gn_add(old, gn_mul_s(gn_sub(var, old), (count - 1) / count));
    return y;
}
static gn_array *op_InstanceNormalization(node *n) {
    return gn_instance_norm(in(n, 0), in(n, 1), in(n, 2), real(n, "epsilon", 1e-5));
}
static gn_array *op_LayerNormalization(node *n) {
    const int rank = n->in[0].s.rank;
    int axis = (int)integer(n, "axis", -1), axes[8];
    if (axis < 0) axis += rank;
    for (int i = axis; i < rank; i++) axes[i - axis] = i;
    const gn_axes over = GN_KEEP(gn_axes_from(rank - axis, axes));
    const double eps = real(n, "epsilon", 1e-5);
    gn_array *x = in(n, 0);
    n->more[1] = gn_mean(x, over);
    n->more[2] = gn_rsqrt(gn_add_s(gn_var(x, over, 0), eps));
    return gn_layer_norm(x, rank - axis, in(n, 1), in(n, 2), eps);
}
// One direction; gates i, o, f, c instead of i, f, c, o.
static gn_array *gates(gn_array *w) {
    gn_array *part[4], *turned[4];
    w = gn_squeeze(w, 0);
    if (gn_split(w, 4, 0, part) != GN_OK) return NULL;
    turned[0] = part[0], turned[1] = part[2], turned[2] = part[3], turned[3] = part[1];
    return gn_concat(turned, 4, 0);
}
static gn_array *op_LSTM(node *n) {
    const bool batches = integer(n, "layout", 0) != 0; // come first
    const int64_t h = integer(n, "hidden_size", 1);
    gn_array *b = n->inputs > 3 && n->given[3] ? in(n, 3) : gn_zeros(n->g, GN_F32, GN_SHAPE(1, 8 * h)), *weights[4], *hn, *cn;
    gn_rnn_options o;
    memset(&o, 0, sizeof o);
    o.batch_first = batches;
    weights[0] = gates(in(n, 1));
    weights[1] = gates(in(n, 2));
    weights[2] = gates(gn_slice(b, 1, 0, 4 * h, 1));
    weights[3] = gates(gn_slice(b, 1, 4 * h, 8 * h, 1));
    gn_array *y = gn_lstm(in(n, 0), weights, 4, NULL, NULL, &o, &hn, &cn);
    n->more[1] = batches ? gn_swap_axes(hn, 0, 1) : hn;
    n->more[2] = batches ? gn_swap_axes(cn, 0, 1) : cn;
    return gn_expand_dims(y, batches ? 2 : 1);
}
static gn_array *op_NegativeLogLikelihoodLoss(node *n) { return loss(n, in(n, 0), gn_nll_loss); }
static gn_array *op_SoftmaxCrossEntropyLoss(node *n) {
    gn_array *x = in(n, 0);
    n->more[1] = gn_log_softmax(x, 1);
    return loss(n, x, gn_cross_entropy_with);
}

// ---- the table

typedef struct row {
    const char *op;
    gn_array *(*fn)(node *n); // NULL: it is not here, and why
    const char *why;
} row;

static const char detection[] = "detection: no such functions",
                  states[] = "an optimizer with states of the caller's: test_train.c has PyTorch's",
                  drawn[] = "the random numbers of another generator", volumes[] = "pools have two spatial axes",
                  cubic[] = "no cubic interpolation", places[] = "places that gn_interpolate does not take",
                  pi[] = "computed with pi, recorded with 3.1415";
#define HERE(op) {#op, op_##op, NULL}
static const row rows[] = {
    HERE(Abs), HERE(Acos), HERE(Acosh), HERE(Add), HERE(And), HERE(ArgMax), HERE(ArgMin), HERE(Asin), HERE(Asinh),
    HERE(Atan), HERE(Atanh), HERE(AveragePool), HERE(BatchNormalization), HERE(BitShift), HERE(BlackmanWindow),
    HERE(Cast), HERE(CastLike), HERE(Ceil), HERE(Celu), HERE(Clip), HERE(Compress), HERE(Concat), HERE(Constant),
    HERE(ConstantOfShape), HERE(Conv), HERE(ConvInteger), HERE(ConvTranspose), HERE(Cos), HERE(Cosh), HERE(CumSum),
    HERE(DFT), HERE(DepthToSpace), HERE(DequantizeLinear), HERE(Det), HERE(Div), HERE(Dropout),
    HERE(DynamicQuantizeLinear), HERE(Einsum), HERE(Elu), HERE(Equal), HERE(Erf), HERE(Exp), HERE(Expand),
    HERE(EyeLike), HERE(Flatten), HERE(Floor), HERE(Gather), HERE(GatherElements), HERE(GatherND), HERE(Gemm),
    HERE(GlobalAveragePool), HERE(GlobalMaxPool), HERE(Greater), HERE(GreaterOrEqual), HERE(GridSample),
    HERE(HammingWindow), HERE(HannWindow), HERE(HardSigmoid), HERE(HardSwish), HERE(Hardmax), HERE(Identity),
    HERE(InstanceNormalization), HERE(IsInf), HERE(IsNaN), HERE(LRN), HERE(LSTM), HERE(LayerNormalization),
    HERE(LeakyRelu), HERE(Less), HERE(LessOrEqual), HERE(Log), HERE(LogSoftmax), HERE(MatMul), HERE(MatMulInteger),
    HERE(Max), HERE(MaxPool), HERE(MaxUnpool), HERE(Mean), HERE(MeanVarianceNormalization), HERE(Min), HERE(Mod),
    HERE(Mul), HERE(Neg), HERE(NegativeLogLikelihoodLoss), HERE(NonZero), HERE(Not), HERE(OneHot), HERE(Or),
    HERE(PRelu), HERE(Pad), HERE(Pow), HERE(QuantizeLinear), HERE(Range), HERE(Reciprocal), HERE(ReduceL1),
    HERE(ReduceL2), HERE(ReduceLogSum), HERE(ReduceLogSumExp), HERE(ReduceMax), HERE(ReduceMean), HERE(ReduceMin),
    HERE(ReduceProd), HERE(ReduceSum), HERE(ReduceSumSquare), HERE(Relu), HERE(Reshape), HERE(Resize),
    HERE(ReverseSequence), HERE(Round), HERE(STFT), HERE(ScatterElements), HERE(ScatterND), HERE(Selu), HERE(Shape),
    HERE(Shrink), HERE(Sigmoid), HERE(Sign), HERE(Sin), HERE(Sinh), HERE(Size), HERE(Slice), HERE(Softmax),
    HERE(SoftmaxCrossEntropyLoss), HERE(Softplus), HERE(Softsign), HERE(SpaceToDepth), HERE(Split), HERE(Sqrt),
    HERE(Squeeze), HERE(Sub), HERE(Sum), HERE(Tan), HERE(Tanh), HERE(ThresholdedRelu), HERE(Tile), HERE(TopK),
    HERE(Transpose), HERE(Trilu), HERE(Unique), HERE(Unsqueeze), HERE(Where), HERE(Xor),
    {"Scatter", op_ScatterElements, NULL}, {"Upsample", op_Resize, NULL},
    {"Adagrad", NULL, states},
    {"Adam", NULL, states},
    {"Bernoulli", NULL, drawn},
    {"GRU", NULL, "gn_gru resets behind the product with the state, as PyTorch does"},
    {"MelWeightMatrix", NULL, "a filter bank for sound: no such function"},
    {"Momentum", NULL, states},
    {"NonMaxSuppression", NULL, detection},
    {"QLinearConv", NULL, "products of quantised numbers"},
    {"QLinearMatMul", NULL, "products of quantised numbers"},
    {"RNN", NULL, "no recurrent layer without gates"},
    {"RandomUniformLike", NULL, drawn},
    {"RoiAlign", NULL, detection},
    {"SequenceEmpty", NULL, "a sequence or optional"},
    {"SequenceLength", NULL, "a sequence or optional"},
    {"TfIdfVectorizer", NULL, "text"},
};

// Single tests of ops that are here.
static const struct {
    const char *name, *why;
} apart[] = {
    {"test_training_dropout", drawn},
    {"test_training_dropout_default", drawn},
    {"test_training_dropout_default_mask", drawn},
    {"test_training_dropout_mask", drawn},
    {"test_scatternd_multiply", "no scatter that multiplies"},
    {"test_averagepool_3d_default", volumes},
    {"test_maxpool_3d_default", volumes},
    {"test_resize_downsample_scales_linear", places},
    {"test_resize_downsample_scales_linear_align_corners", places},
    {"test_resize_downsample_sizes_linear_pytorch_half_pixel", places},
    {"test_resize_downsample_sizes_nearest", places},
    {"test_resize_tf_crop_and_resize", places},
    {"test_resize_downsample_sizes_nearest_tf_half_pixel_for_nn", places},
    {"test_blackmanwindow_expanded", pi},
    {"test_blackmanwindow_symmetric_expanded", pi},
    {"test_hammingwindow_expanded", pi},
    {"test_hammingwindow_symmetric_expanded", pi},
    {"test_hannwindow_expanded", pi},
    {"test_hannwindow_symmetric_expanded", pi},
    {"test_resize_upsample_sizes_nearest_ceil_half_pixel", places},
    {"test_resize_upsample_sizes_nearest_floor_align_corners", places},
    {"test_resize_upsample_sizes_nearest_round_prefer_ceil_asymmetric", places},
    {"test_lstm_with_peepholes", "no peepholes"},
};

// ---- cases

static void take_attribute(test_cases *c, attribute *a) {
    test_take_text(c, a->name, sizeof a->name);
    a->kind = test_take_int(c);
    if (a->kind == 3) test_take_text(c, a->text, sizeof a->text);
    if (a->kind == 4) test_take_array(c, &a->array);
    if (a->kind > 2) return;
    const int count = a->count = test_take_int(c);
    for (int i = 0; i < count; i++) {
        double x = 0;
        int64_t k = 0;
        test_take_bytes(c, a->kind == 1 ? (void *)&x : (void *)&k, 8);
        if (i < 16) a->real[i] = x, a->integer[i] = k;
    }
    if (count > 16 && a->kind == 2) a->count = 16;
}

static double nearness(gn_dtype t) {
    switch (t) {
    case GN_F64: return 1e-12;
    case GN_F32: return 2e-6;
    case GN_F16: return 1e-3;
    default: return t == GN_BF16 ? 8e-3 : 0;
    }
}

enum { VALUES = 200 };

// What a case computes with: arrays by their numbers, some of which are its own.
typedef struct value {
    test_array a;
    void *owned;
    bool there;
} value;

static bool keep_value(value *v, gn_array *y) {
    const gn_shape s = gn_shape_of(y);
    if (y == NULL) return false;
    v->a.t = gn_dtype_of(y);
    v->a.s = s;
    v->a.n = gn_size(y);
    v->a.bytes = gn_bytes(y);
    v->owned = malloc(v->a.bytes + 1);
    v->a.data = (const unsigned char *)v->owned;
    return v->there = gn_read(y, v->owned, v->a.bytes) == GN_OK;
}

// A node's values from the table, and its results into it.
static bool compute(node *n, const row *r, value *table, const int *ins, const int *outs) {
    for (int i = 0; i < n->inputs; i++) {
        n->given[i] = ins[i] >= 0 && table[ins[i]].there;
        if (ins[i] >= 0) n->in[i] = table[ins[i]].a;
    }
    gn_scope_begin(n->g);
    n->more[0] = r->fn(n);
    bool ok = n->more[0] != NULL;
    for (int i = 0; i < n->outputs && ok; i++)
        if (outs[i] >= 0) ok = keep_value(&table[outs[i]], n->more[i]);
    if (!ok) print_error("%s (%s): %s\n", n->name, n->op, gn_error(n->g));
    gn_error_clear(n->g);
    gn_scope_end(n->g);
    return ok;
}

static int take_number(test_cases *c) {
    const int k = test_take_int(c);
    if (k >= VALUES) fail_msg("%d values are too many", k);
    return k;
}

static const row *row_of(const char *op) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (strcmp(rows[k].op, op) == 0) return &rows[k];
    fail_msg("the op %s has no row", op);
    return NULL;
}

// The next node of the case, computed if all is well so far; into *why, where it is not NULL already, why it cannot be.
static bool next_node(test_cases *c, node *n, value *table, bool ok, const char **why) {
    int ins[MOST], outs[MOST];
    memset(n->more, 0, sizeof n->more);
    test_take_text(c, n->op, sizeof n->op);
    n->attributes = test_take_int(c);
    if (n->attributes > MOST) fail_msg("%s: too many attributes", n->name);
    memset(n->attribute, 0, sizeof n->attribute);
    for (int k = 0; k < n->attributes; k++) take_attribute(c, &n->attribute[k]);
    n->inputs = test_take_int(c);
    for (int k = 0; k < n->inputs; k++) ins[k] = take_number(c);
    n->outputs = test_take_int(c);
    for (int k = 0; k < n->outputs; k++) outs[k] = take_number(c);
    const row *r = row_of(n->op);
    if (*why == NULL && (says(n, "mode", "cubic", false) || says(n, "mode", "bicubic", false))) *why = cubic;
    if (*why == NULL) *why = r->why;
    return *why != NULL || (ok && compute(n, r, table, ins, outs));
}

// Runs a case; false if it is wrong. *why: it is left out.
static bool run_case(test_cases *c, node *n, const char **why) {
    static value table[VALUES];
    memset(table, 0, sizeof table);
    bool ok = true;
    for (int k = test_take_int(c); k > 0; k--) {
        value *v = &table[take_number(c)];
        v->there = test_take_array(c, &v->a);
    }
    for (int k = test_take_int(c); k > 0; k--)
        ok = next_node(c, n, table, ok, why);
    for (int k = test_take_int(c); k > 0; k--) {
        test_array want;
        const value *v = &table[take_number(c)];
        test_take_array(c, &want);
        if (*why != NULL || !ok) continue;
        gn_scope_begin(n->g);
        ok = test_near(of(n->g, &v->a), &want, nearness(want.t));
        if (!ok) print_error("%s (%s)\n", n->name, n->op);
        gn_scope_end(n->g);
    }
    for (int k = 0; k < VALUES; k++) free(table[k].owned);
    return ok;
}

typedef struct reasons {
    const char *why[200];
    char what[200][600];
    int count[200], used;
} reasons;

static void leave_out(reasons *r, const char *why, const char *what) {
    int i = 0;
    while (i < r->used && strcmp(r->why[i], why) != 0) i++;
    if (i == r->used) r->why[r->used++] = why;
    const size_t n = strlen(r->what[i]);
    r->count[i]++;
    if (strstr(r->what[i], what) == NULL && n + strlen(what) + 2 < sizeof r->what[i]) {
        strcat(r->what[i], n > 0 ? " " : "");
        strcat(r->what[i], what);
    }
}

static void test_nodes(void **state) {
    static reasons left;
    static node n;
    char why[64], op[48];
    static char kept[16][64]; // of the reader
    int reader = 0, passed = 0, failed = 0;
    test_cases c;
    if (!test_cases_made(&c, "onnx")) {
        test_lacks("libonnx-testdata");
        skip();
    }
    for (int i = 0; i < c.count; i++) {
        memset(&n, 0, sizeof n);
        n.g = (gn_context *)*state;
        test_take_text(&c, n.name, sizeof n.name);
        test_take_text(&c, op, sizeof op); // of a single node
        test_take_text(&c, why, sizeof why);
        if (why[0] != 0) {
            int k = 0;
            while (k < reader && strcmp(kept[k], why) != 0) k++;
            if (k == reader) strcpy(kept[reader++], why);
            leave_out(&left, kept[k], op);
            continue;
        }
        const char *reason = NULL;
        for (size_t k = 0; k < sizeof apart / sizeof *apart; k++)
            if (strcmp(apart[k].name, n.name) == 0) reason = apart[k].why;
        const bool ok = run_case(&c, &n, &reason);
        if (reason != NULL)
            leave_out(&left, reason, op);
        else if (ok)
            passed++;
        else
            failed++;
    }
    print_message("ONNX: %d of %d tests pass, %d fail; left out:\n", passed, c.count, failed);
    for (int i = 0; i < left.used; i++) print_message("%4d  %s: %s\n", left.count[i], left.why[i], left.what[i]);
    test_cases_close(&c);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_nodes)};
    return test_run(tests);
}
