// Convolutions against loops over float64, for random shapes, strides, groups, dtypes and layouts; first and second derivatives;
// what is odd; and PyTorch's numbers (torch_values.h), which say what the arguments mean.
#include "test.h"
#include "torch_series.h"
#include "torch_values.h"

// ---- random problems

// x (n, groups * c, in...), w (o, c, k...), y (n, o, out...): all with three spatial axes, of which the first may be of size 1.
typedef struct problem {
    int nd, n, groups, c, o, in[3], k[3], out[3], stride[3], pad[3], dilation[3];
    bool transposed, same;
    int more[3];
} problem;

static problem problem_of(int nd, bool transposed, bool large) {
    problem p;
    memset(&p, 0, sizeof p);
    p.nd = nd;
    p.transposed = transposed;
    p.n = (int)draw(4);
    p.groups = draw(3) == 0 ? 1 + (int)draw(4) : 1;
    p.c = 1 + (int)draw(large ? 20 : 4);
    p.o = p.groups * (1 + (int)draw(large ? 20 : 3));
    if (draw(5) == 0) { // groups of channels that are multiples of 16 bytes, for which GPUs have a way of their own
        p.c = 4 + 4 * (int)draw(3);
        p.o = p.groups * 4 * (1 + (int)draw(3));
    }
    const uint32_t kind = test_on_vulkan() ? 0 : draw(4); // those for which CPUs have ways of their own
    if (kind == 2 && !transposed) { // depthwise
        p.c = 1;
        p.o = p.groups = 2 + (int)draw(40);
    }
    if (kind == 3) { // many channels
        p.c = 8 + (int)draw(32);
        p.o = p.groups * (12 + (int)draw(60));
    }
    p.same = !transposed && draw(5) == 0;
    for (int i = 0; i < 3; i++) p.in[i] = p.k[i] = p.out[i] = p.stride[i] = p.dilation[i] = 1;
    for (int i = 3 - nd; i < 3; i++) {
        p.k[i] = 1 + (int)draw(4);
        p.stride[i] = p.same ? 1 : 1 + (int)draw(3);
        p.dilation[i] = 1 + (int)draw(3);
        const int reach = (p.k[i] - 1) * p.dilation[i];
        p.pad[i] = p.same ? reach / 2 : (int)draw(transposed ? (uint32_t)(reach + 1) : 4) / (transposed ? 2 : 1);
        const int most = p.stride[i] > p.dilation[i] ? p.stride[i] : p.dilation[i];
        if (transposed) {
            p.more[i] = (int)draw((uint32_t)most);
            p.out[i] = 1 + (int)draw(nd == 3 ? 4 : 8);
            p.in[i] = (p.out[i] - 1) * p.stride[i] - 2 * p.pad[i] + reach + p.more[i] + 1;
        } else {
            p.in[i] = 1 + (int)draw(nd == 3 ? 6 : large ? 40 : 12);
            if (!p.same && p.in[i] + 2 * p.pad[i] <= reach) p.in[i] = reach + 1;
            p.out[i] = p.same ? p.in[i] : (p.in[i] + 2 * p.pad[i] - reach - 1) / p.stride[i] + 1;
        }
    }
    return p;
}

static int volume(const int *dim) { return dim[0] * dim[1] * dim[2]; }

// Adds up what each element of x, tap of w and element of y are for each other.
static void correlate(const problem *p, const double *x, const double *w, const double *y, double *gx, double *gw, double *gy) {
    const int vin = volume(p->in), vk = volume(p->k), vout = volume(p->out), of = p->o / p->groups, taps = vk * p->c;
    for (int at = 0; at < p->n * p->o * vout; at++) {
        const int n = at / vout / p->o, o = at / vout % p->o, i[3] = {at % vout / p->out[2] / p->out[1],
                                                                      at % vout / p->out[2] % p->out[1], at % p->out[2]};
        for (int tap = 0; tap < taps; tap++) {
            const int c = o / of * p->c + tap / vk, k[3] = {tap % vk / p->k[2] / p->k[1], tap % vk / p->k[2] % p->k[1],
                                                            tap % p->k[2]};
            int from = n * p->groups * p->c + c;
            bool inside = true;
            for (int a = 0; a < 3; a++) {
                const int place = i[a] * p->stride[a] + k[a] * p->dilation[a] - p->pad[a];
                inside = inside && place >= 0 && place < p->in[a];
                from = from * p->in[a] + place;
            }
            if (!inside) continue;
            const int by = o * taps + tap;
            assert_true(from < p->n * p->groups * p->c * vin);
            gy[at] += x[from] * w[by];
            gx[from] += y[at] * w[by];
            gw[by] += y[at] * x[from];
        }
    }
}

static double *numbers(int n, double size) {
    double *v = (double *)calloc((size_t)n + 1, sizeof(double));
    for (int i = 0; i < n && size > 0; i++) v[i] = floor(((double)draw(2001) / 1000.0 - 1.0) * size) / 16.0; // exact in every dtype
    return v;
}

// The array with its axes in memory in another order: with channels last, turned round, or every second element of more.
static gn_array *laid_out(gn_array *a) {
    const int rank = gn_rank(a);
    switch (draw(5)) {
    case 0: return rank == 1 ? a : gn_move_axis(gn_copy(gn_move_axis(a, 1, -1)), -1, 1);
    case 1: return gn_flip(gn_copy(gn_flip(a, GN_ALL)), GN_ALL);
    case 2: return gn_slice(gn_repeat(a, 2, rank - 1), rank - 1, GN_NONE, GN_NONE, 2);
    case 3: return gn_mul_s(a, 1.0); // pending
    default: return a;
    }
}

static gn_array *array_of(gn_context *g, gn_dtype t, int a, int b, const int *space, int nd, const double *v) {
    gn_shape s = GN_SHAPE(a, b);
    for (int i = 3 - nd; i < 3; i++) s.dim[s.rank++] = space[i];
    return gn_cast(gn_array_from(g, GN_F64, s, v), t);
}

static gn_array *convolved(const problem *p, gn_array *x, gn_array *w, gn_array *b) {
    gn_conv_options o;
    memset(&o, 0, sizeof o);
    for (int i = 0; i < p->nd; i++) {
        const int from = 3 - p->nd + i;
        o.strides[i] = p->stride[from];
        o.dilations[i] = p->dilation[from];
        if (!p->same) o.pads[i] = p->pad[from];
        o.output_pads[i] = p->more[from];
    }
    o.groups = p->groups;
    o.same = p->same;
    if (p->transposed)
        return p->nd == 1   ? gn_conv_transpose1d(x, w, b, &o)
               : p->nd == 2 ? gn_conv_transpose2d(x, w, b, &o)
                            : gn_conv_transpose3d(x, w, b, &o);
    return p->nd == 1 ? gn_conv1d(x, w, b, &o) : p->nd == 2 ? gn_conv2d(x, w, b, &o) : gn_conv3d(x, w, b, &o);
}

static void check(gn_context *g, const problem *p, gn_dtype t, double tolerance) {
    const int vin = volume(p->in), vk = volume(p->k), vout = volume(p->out), ci = p->groups * p->c;
    const int sizes[3] = {p->n * ci * vin, p->o * p->c * vk, p->n * p->o * vout};
    const int channels = p->transposed ? ci : p->o, inner = p->transposed ? vin : vout;
    double *v[3], *sum[3], *bias = numbers(channels, 16.0), *gb = numbers(channels, 0);
    for (int i = 0; i < 3; i++) v[i] = numbers(sizes[i], 16.0), sum[i] = numbers(sizes[i], 0);
    correlate(p, v[0], v[1], v[2], sum[0], sum[1], sum[2]);
    // In comes x (transposed: y), out goes the other with the bias.
    const int out = p->transposed ? 0 : 2, in = 2 - out;
    double *want = numbers(sizes[out], 0);
    for (int i = 0; i < sizes[out]; i++) {
        const int c = i / inner % channels;
        want[i] = sum[out][i] + bias[c];
        gb[c] += v[out][i];
    }
    gn_array *leaf[3], *dx[3];
    leaf[0] = in == 0 ? array_of(g, t, p->n, ci, p->in, p->nd, v[0]) : array_of(g, t, p->n, p->o, p->out, p->nd, v[2]);
    leaf[1] = array_of(g, t, p->o, p->c, p->k, p->nd, v[1]);
    leaf[2] = gn_cast(gn_array_from(g, GN_F64, GN_SHAPE(channels), bias), t);
    for (int i = 0; i < 3; i++) leaf[i] = gn_requires_grad(gn_detach(laid_out(leaf[i])), true);
    gn_array *y = convolved(p, leaf[0], leaf[1], leaf[2]);
    if (y == NULL) fail_msg("%s", gn_error(g));
    expect_doubles("result", y, t, want, sizes[out], tolerance);
    gn_array *gy = laid_out(out == 2 ? array_of(g, t, p->n, p->o, p->out, p->nd, v[2]) : array_of(g, t, p->n, ci, p->in, p->nd, v[0]));
    assert_int_equal(gn_gradients(gn_sum(gn_mul(y, gy), GN_ALL), leaf, 3, false, dx), GN_OK);
    expect_doubles("gradient of x", dx[0], t, sum[in], sizes[in], tolerance);
    expect_doubles("gradient of w", dx[1], t, sum[1], sizes[1], tolerance);
    expect_doubles("gradient of b", dx[2], t, gb, channels, tolerance);
    for (int i = 0; i < 3; i++) free(v[i]), free(sum[i]);
    free(bias), free(gb), free(want);
}

static void test_random(void **state) {
    gn_context *g = (gn_context *)*state;
    const int problems = test_on_vulkan() ? 6 : 200;
    for (int i = 0; i < problems; i++)
        GN_SCOPE(g) {
            const gn_dtype kinds[] = {GN_F32, GN_F64, GN_F16, GN_BF16};
            const double slack[] = {1e-5, 1e-13, 4e-3, 3e-2};
            const int nd = 1 + i % 3, kind = i % 2 == 0 ? 0 : (int)draw(4);
            problem p = problem_of(nd, draw(3) == 0, !test_on_vulkan() && nd == 2 && draw(4) == 0);
            check(g, &p, kinds[kind], slack[kind]);
        }
}

// The same bits on any number of threads, where a CPU takes so many images at a time that they are several times.
static void test_threads(void **state) {
    gn_context *of[2] = {NULL, NULL};
    gn_options o;
    float *got[2] = {NULL, NULL};
    const size_t sizes[3] = {(size_t)9 * 40 * 20 * 21, (size_t)9 * 24 * 39 * 41, (size_t)40 * 24 * 9};
    const size_t all = sizes[0] + sizes[1] + sizes[2];
    (void)state;
    if (test_on_vulkan()) return;
    for (int i = 0; i < 2; i++) {
        memset(&o, 0, sizeof o);
        o.backend = GN_BACKEND_CPU;
        o.threads = i == 0 ? 1 : 3;
        gn_context *g = of[i] = gn_open(&o);
        assert_non_null(g);
        float *to = got[i] = (float *)malloc(all * sizeof(float));
        gn_array *leaf[2], *dx[2];
        leaf[0] = gn_requires_grad(gn_randn(g, GN_F32, GN_SHAPE(9, 24, 39, 41)), true);
        leaf[1] = gn_requires_grad(gn_randn(g, GN_F32, GN_SHAPE(40, 24, 3, 3)), true);
        gn_conv_options c;
        memset(&c, 0, sizeof c);
        c.stride = 2, c.pad = 1;
        gn_array *y = gn_conv2d(leaf[0], leaf[1], NULL, &c);
        expect_shape(y, 9, 40, 20, 21);
        assert_int_equal(gn_gradients(gn_sum(gn_square(y), GN_ALL), leaf, 2, false, dx), GN_OK);
        assert_int_equal(gn_read(y, to, sizes[0] * sizeof(float)), GN_OK);
        assert_int_equal(gn_read(dx[0], to + sizes[0], sizes[1] * sizeof(float)), GN_OK);
        assert_int_equal(gn_read(dx[1], to + sizes[0] + sizes[1], sizes[2] * sizeof(float)), GN_OK);
    }
    assert_memory_equal(got[0], got[1], all * sizeof(float));
    for (int i = 0; i < 2; i++) free(got[i]), gn_close(of[i]);
}

// ---- PyTorch

typedef struct pinned {
    const char *name;
    gn_array *(*fn)(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options);
    int nd, x[5], w[5], b;
    gn_conv_options o;
    const double *want;
    int count;
} pinned;
#define PINNED(name, fn, nd, x, w, b, o) {#name, fn, nd, x, w, b, o, torch_##name, (int)(sizeof torch_##name / sizeof(double))}
#define LIST(...) {__VA_ARGS__}
static const pinned cases[] = {
    PINNED(conv1d, gn_conv1d, 1, LIST(2, 4, 9), LIST(6, 2, 3), 6, LIST(2, 1, 2, {0}, {0}, {0}, 2, false, 0, {0})),
    PINNED(conv2d, gn_conv2d, 2, LIST(2, 3, 6, 5), LIST(4, 3, 3, 2), 4, LIST(0, 0, 0, {2, 1}, {1, 0}, {0}, 0, false, 0, {0})),
    PINNED(conv2d_same, gn_conv2d, 2, LIST(1, 4, 5, 6), LIST(4, 1, 2, 3), 4, LIST(0, 0, 0, {0}, {0}, {1, 2}, 4, true, 0, {0})),
    PINNED(conv3d, gn_conv3d, 3, LIST(1, 2, 4, 3, 5), LIST(3, 2, 2, 3, 2), 3, LIST(0, 1, 0, {1, 2, 3}, {0}, {0}, 1, false, 0, {0})),
    PINNED(conv_transpose2d, gn_conv_transpose2d, 2, LIST(2, 4, 3, 4), LIST(4, 2, 3, 2), 4,
           LIST(0, 0, 0, {2, 3}, {1, 0}, {2, 1}, 2, false, 0, {1, 2})),
    PINNED(conv_transpose1d, gn_conv_transpose1d, 1, LIST(2, 4, 5), LIST(4, 3, 3), 3, LIST(2, 1, 0, {0}, {0}, {0}, 1, false, 1, {0})),
    PINNED(conv_transpose3d, gn_conv_transpose3d, 3, LIST(1, 2, 2, 3, 2), LIST(2, 2, 2, 2, 3), 2,
           LIST(0, 0, 0, {1, 2, 2}, {1, 0, 1}, {0}, 1, false, 0, {0})),
};
enum { CASES = (int)(sizeof cases / sizeof cases[0]) };

static gn_shape shape_of(const int *dim, int rank) {
    gn_shape s = GN_SHAPE();
    for (int i = 0; i < rank; i++) s.dim[s.rank++] = dim[i];
    return s;
}

static void leaves_of(gn_context *g, const pinned *c, gn_dtype t, gn_array **leaf) {
    leaf[0] = gn_requires_grad(series(g, t, shape_of(c->x, 2 + c->nd), 2.0, -1.0), true);
    leaf[1] = gn_requires_grad(series(g, t, shape_of(c->w, 2 + c->nd), -1.5, 0.9), true);
    leaf[2] = gn_requires_grad(series(g, t, GN_SHAPE(c->b), 0.4, -1.0), true);
}

static void test_pytorch(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < CASES; i++)
        for (int k = 0; k < 2; k++)
            GN_SCOPE(g) {
                const pinned *c = &cases[i];
                const gn_dtype t = k == 0 ? GN_F64 : GN_F32;
                const double tolerance = k == 0 ? 1e-13 : 2e-5;
                gn_array *leaf[3], *dx[3];
                leaves_of(g, c, t, leaf);
                gn_array *y = c->fn(leaf[0], leaf[1], leaf[2], &c->o);
                assert_non_null(y);
                gn_array *gy = series(g, t, gn_shape_of(y), 1.0, -0.5);
                assert_int_equal(gn_gradients(gn_sum(gn_mul(y, gy), GN_ALL), leaf, 3, false, dx), GN_OK);
                const double *want = c->want;
                expect_doubles(c->name, y, t, want, (int)gn_size(y), tolerance);
                want += gn_size(y);
                for (int q = 0; q < 3; q++) {
                    expect_doubles(c->name, dx[q], t, want, (int)gn_size(leaf[q]), tolerance);
                    want += gn_size(leaf[q]);
                }
                assert_int_equal(want - c->want, c->count);
            }
}

// ---- derivatives

static gn_array *weighed(gn_context *g, gn_array *const *in, int n, void *user) {
    const pinned *c = (const pinned *)user;
    (void)n;
    gn_array *y = c->fn(in[0], in[1], in[2], &c->o);
    return weigh(g, y);
}

static gn_array *weighed_twice(gn_context *g, gn_array *const *in, int n, void *user) {
    return test_sines(weighed(g, in, n, user), in, n);
}

static gn_array *weighed_thrice(gn_context *g, gn_array *const *in, int n, void *user) {
    gn_array *dx[3], *sum = NULL;
    if (gn_gradients(weighed_twice(g, in, n, user), in, n, true, dx) != GN_OK) return NULL;
    for (int i = 0; i < n; i++) {
        gn_array *s = gn_sum(gn_square(dx[i]), GN_ALL);
        sum = sum != NULL ? gn_add(sum, s) : s;
    }
    return sum;
}

static void test_differences(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int i = 0; i < CASES; i++)
        GN_SCOPE(g) {
            if (test_on_vulkan() && i != 1) continue; // the same calls
            gn_array *leaf[3];
            pinned c = cases[i];
            leaves_of(g, &c, GN_F64, leaf);
            double error = gn_gradcheck(weighed, leaf, 3, 1e-6, &c);
            if (!(error < 1e-6)) fail_msg("%s: %g", c.name, error);
            error = gn_gradcheck(weighed_twice, leaf, 3, 1e-6, &c);
            if (!(error < 1e-6)) fail_msg("%s, second derivative: %g", c.name, error);
            if (i > 1) continue;
            error = gn_gradcheck(weighed_thrice, leaf, 3, 1e-5, &c);
            if (!(error < 1e-4)) fail_msg("%s, third derivative: %g", c.name, error);
        }
}

// ---- what is odd

static void test_odd(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_conv_options o;
    memset(&o, 0, sizeof o);
    gn_array *x = series(g, GN_F32, GN_SHAPE(3, 6, 5), 2.0, -1.0), *w = series(g, GN_F32, GN_SHAPE(2, 3, 2, 2), 1.0, -0.5);
    // Without a batch, and lazily behind it.
    gn_array *y = gn_conv2d(x, w, NULL, NULL), *batch = gn_conv2d(gn_expand_dims(x, 0), w, NULL, NULL);
    expect_shape(y, 2, 5, 4);
    assert_true(gn_array_equal(y, gn_index(batch, "0"), false));
    expect_shape(gn_conv1d(gn_ones(g, GN_F32, GN_SHAPE(1, 3)), gn_ones(g, GN_F32, GN_SHAPE(1, 1, 3)), NULL, NULL), 1, 1);
    expect_values(gn_conv1d(gn_ones(g, GN_F32, GN_SHAPE(1, 3)), gn_ones(g, GN_F32, GN_SHAPE(1, 1, 3)), NULL, NULL), 3);
    // A stride far beyond the image.
    o.stride = 100000;
    gn_array *pixel = gn_full(g, GN_F32, GN_SHAPE(1, 1, 1, 1), 3), *pair = gn_array_from(g, GN_F32, GN_SHAPE(1, 1, 1, 2), (float[]){1, 2});
    expect_values(gn_conv_transpose2d(pixel, pair, NULL, &o), 3, 6);
    o.stride = 0;
    // Dtypes meet.
    y = gn_conv2d(x, gn_cast(w, GN_F64), gn_ones(g, GN_F16, GN_SHAPE(2)), NULL);
    assert_int_equal(gn_dtype_of(y), GN_F64);
    // Nothing in, and nothing out.
    expect_shape(gn_conv2d(gn_zeros(g, GN_F32, GN_SHAPE(0, 3, 6, 5)), w, NULL, NULL), 0, 2, 5, 4);
    expect_shape(gn_conv2d(x, gn_zeros(g, GN_F32, GN_SHAPE(0, 3, 2, 2)), NULL, NULL), 0, 5, 4);
    expect_values(gn_conv1d(gn_zeros(g, GN_F32, GN_SHAPE(0, 3)), gn_zeros(g, GN_F32, GN_SHAPE(1, 0, 2)), gn_ones(g, GN_F32, GN_SHAPE(1)),
                            NULL), 1, 1);
    // Infinity and NaN reach the windows that they are in, and no others.
    gn_array *odd = gn_zeros(g, GN_F32, GN_SHAPE(1, 1, 40)), *one = gn_ones(g, GN_F32, GN_SHAPE(1, 1, 2));
    const float inf = INFINITY, nan_ = NAN;
    gn_assign(gn_index(odd, "0, 0, 7"), gn_array_from(g, GN_F32, GN_SHAPE(), &inf));
    gn_assign(gn_index(odd, "0, 0, 35"), gn_array_from(g, GN_F32, GN_SHAPE(), &nan_));
    o.pad = 1;
    float got[41];
    assert_int_equal(gn_read(gn_conv1d(odd, one, NULL, &o), got, sizeof got), GN_OK);
    for (int i = 0; i < 41; i++)
        assert_true(i == 7 || i == 8 ? got[i] == INFINITY : i == 35 || i == 36 ? got[i] != got[i] : got[i] == 0);
    // A pad that reaches further than the kernel.
    o.pad = 5;
    y = gn_requires_grad(gn_ones(g, GN_F64, GN_SHAPE(1, 1, 2)), true);
    gn_array *kernel = gn_requires_grad(gn_ones(g, GN_F64, GN_SHAPE(1, 1, 2)), true), *both[2], *dx[2];
    both[0] = y, both[1] = kernel;
    gn_array *z = gn_conv1d(y, kernel, NULL, &o);
    expect_values(z, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0);
    assert_int_equal(gn_gradients(gn_sum(z, GN_ALL), both, 2, false, dx), GN_OK);
    expect_values(dx[0], 2, 2);
    expect_values(dx[1], 2, 2);
}

// More windows than a GPU makes at a time: by samples, by rows and, for the weights, by terms.
static void test_pieces(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_conv_options o;
    memset(&o, 0, sizeof o);
    gn_array *x = gn_broadcast_to(gn_arange(g, GN_F32, 0, 2, 1), GN_SHAPE(2, 2, 750, 2)), *dx[2], *leaf[2];
    x = gn_requires_grad(gn_detach(gn_copy(gn_reshape(x, GN_SHAPE(2, 2, 1500)))), true);
    gn_array *w = gn_requires_grad(gn_copy(gn_ones(g, GN_F32, GN_SHAPE(2, 2, 1001))), true);
    leaf[0] = x, leaf[1] = w;
    gn_array *y = gn_conv1d(x, w, NULL, NULL); // 2 samples of 2002 x 500 windows: 8 MB
    o.pad = 2000;
    gn_array *padded = gn_conv1d(x, w, NULL, &o); // 2002 x 4500: 72 MB
    expect_shape(padded, 2, 2, 4500);
    assert_true(gn_array_equal(y, gn_slice(padded, 2, 2000, 2500, 1), false));
    expect_values(gn_slice(y, 2, 0, 2, 1), 1000, 1002, 1000, 1002, 1000, 1002, 1000, 1002);
    assert_int_equal(gn_gradients(gn_sum(padded, GN_ALL), leaf, 2, false, dx), GN_OK);
    expect_values(gn_sum(gn_ne_s(dx[0], 2002.0), GN_ALL), 0); // each element is under each tap of two
    expect_values(gn_sum(gn_ne_s(dx[1], 1500.0), GN_ALL), 0);
    gn_array *line = gn_copy(gn_ones(g, GN_F32, GN_SHAPE(1, 4500))), *row = gn_copy(gn_ones(g, GN_F32, GN_SHAPE(1, 1, 4001)));
    o.pad = 2000;
    gn_array *one = gn_conv1d(line, row, NULL, &o); // 4001 x 4500: by places
    expect_values(gn_slice(one, 1, 0, 4500, 500), 2001, 2501, 3001, 3501, 4001, 4000, 3500, 3000, 2500);
}

// Weights (out, in, kernel...): the variance is by the numbers that go into an element of the result, and come out.
static void test_weights(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_seed(g, 5);
    const gn_shape shapes[] = {GN_SHAPE(64, 16, 5, 5), GN_SHAPE(32, 64, 9), GN_SHAPE(128, 96), GN_SHAPE(16, 8, 3, 4, 5)};
    const double in[] = {400, 576, 128, 480}, out[] = {1600, 288, 96, 960};
    for (int i = 0; i < 4; i++) {
        gn_array *he = gn_he_normal(g, GN_F32, shapes[i]), *xavier = gn_xavier_uniform(g, GN_F32, shapes[i]);
        assert_true(gn_needs_grad(he) && gn_needs_grad(xavier));
        const double a = gn_item(gn_var(he, GN_ALL, 0)) * in[i] / 2.0, b = gn_item(gn_var(xavier, GN_ALL, 0)) * (in[i] + out[i]) / 2.0;
        assert_true(fabs(a - 1.0) < 0.06 && fabs(b - 1.0) < 0.06);
        const double limit = sqrt(6.0 / (in[i] + out[i])), most = gn_item(gn_max(gn_abs(xavier), GN_ALL));
        assert_true(most <= limit * 1.000001 && most > 0.99 * limit);
    }
    assert_null(gn_he_normal(g, GN_F32, GN_SHAPE(4, 3, 0)));
    expect_error(g, GN_ERROR_SHAPE, "gn_he_normal: (4,3,0) is not (in, out) or (out, in, kernel...)");
}

static void test_refusals(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_ones(g, GN_F32, GN_SHAPE(1, 4, 5, 5)), *w = gn_ones(g, GN_F32, GN_SHAPE(6, 4, 3, 3));
    gn_conv_options o;
    memset(&o, 0, sizeof o);
    assert_null(gn_conv2d(gn_ones(g, GN_I32, GN_SHAPE(1, 4, 5, 5)), w, NULL, NULL));
    expect_error(g, GN_ERROR_DTYPE, "gn_conv2d: int32 is not a float dtype");
    assert_null(gn_conv1d(x, w, NULL, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_conv1d: x (1,4,5,5), w (6,4,3,3), b none: not of rank 3");
    assert_null(gn_conv2d(x, gn_ones(g, GN_F32, GN_SHAPE(6, 2, 3, 3)), NULL, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_conv2d: x (1,4,5,5), w (6,2,3,3), b none: the channels do not fit");
    assert_null(gn_conv2d(x, w, gn_ones(g, GN_F32, GN_SHAPE(4)), NULL));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_conv2d(x, gn_ones(g, GN_F32, GN_SHAPE(6, 4, 6, 3)), NULL, NULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_conv2d: x (1,4,5,5), w (6,4,6,3), b none: nothing is left of the image");
    assert_null(gn_conv2d(x, gn_ones(g, GN_F32, GN_SHAPE(6, 4, 0, 3)), NULL, NULL));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    o.stride = -1;
    assert_null(gn_conv2d(x, w, NULL, &o));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_conv2d: stride -1");
    o.stride = 2;
    o.same = true;
    assert_null(gn_conv2d(x, w, NULL, &o));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_conv2d: 'same' with a stride or a pad");
    o.same = false;
    o.output_pad = 2;
    assert_null(gn_conv_transpose2d(x, gn_ones(g, GN_F32, GN_SHAPE(4, 4, 3, 3)), NULL, &o));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_conv_transpose2d: output pad 2, not below stride or dilation");
    o.groups = 3;
    assert_null(gn_conv2d(x, w, NULL, &o));
    expect_error(g, GN_ERROR_SHAPE, NULL);
}

// A convolution that finds no room on the device goes to the CPU where placement is automatic; told to be on the GPU it fails.
static void test_full_device(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    double sums[3][3];
    for (int kind = 0; kind < 3; kind++) {
        gn_options o = test_options();
        o.backend = kind == 0 ? GN_BACKEND_CPU : GN_BACKEND_VULKAN;
        o.placement = kind == 2 ? GN_PLACE_GPU : GN_PLACE_AUTO;
        o.memory_limit = (uint64_t)8 << 20;
        o.thresholds.matmul = kind == 1;
        gn_context *g = test_open_with(&o);
        gn_conv_options pad = {0};
        pad.pad = 1;
        gn_seed(g, 5);
        GN_SCOPE(g) {
            gn_array *x = gn_requires_grad(gn_detach(gn_eval(gn_cast(gn_randint(g, GN_I32, GN_SHAPE(8, 32, 64, 64), -2, 3), GN_F32))), true),
                     *w = gn_requires_grad(gn_detach(gn_eval(gn_cast(gn_randint(g, GN_I32, GN_SHAPE(32, 32, 3, 3), -2, 3), GN_F32))), true);
            gn_array *y = gn_conv2d(x, w, NULL, &pad); // of whole numbers: every sum is exact
            gn_array *loss = gn_sum(gn_mul(y, gn_mod_s(y, 3)), GN_ALL);
            if (kind == 2) {
                assert_true(y == NULL || loss == NULL);
                assert_int_equal(gn_status_get(g), GN_ERROR_OUT_OF_MEMORY);
                gn_error_clear(g);
            } else {
                gn_backward(loss);
                sums[kind][0] = gn_item(gn_sum(gn_mul(gn_cast(y, GN_F64), gn_mod_s(gn_cast(y, GN_F64), 5)), GN_ALL));
                sums[kind][1] = gn_item(gn_sum(gn_abs(gn_cast(gn_grad(x), GN_F64)), GN_ALL));
                sums[kind][2] = gn_item(gn_sum(gn_abs(gn_cast(gn_grad(w), GN_F64)), GN_ALL));
                if (gn_status_get(g) != GN_OK) fail_msg("%d: %s", kind, gn_error(g));
            }
        }
        test_close(g);
    }
    for (int i = 0; i < 3; i++)
        if (sums[1][i] != sums[0][i] || sums[0][i] == 0.0) fail_msg("%d: %.17g on the GPU's side, %.17g on the CPU", i, sums[1][i], sums[0][i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_random), GN_TEST(test_threads), GN_TEST(test_pytorch), GN_TEST(test_differences),
                                       GN_TEST(test_odd), GN_TEST(test_pieces), GN_TEST(test_weights), GN_TEST(test_refusals), cmocka_unit_test(test_full_device)};
    return test_run(tests);
}
