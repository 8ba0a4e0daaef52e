// vk_split from inside: the parts that operands are cut into, against what they must add up to, and products with
// each mode asked for, on shapes and numbers that public functions reach only in large sizes. Where the device has
// no matrix units, products are the exact kernels'; the parts are tested anyway.
//
// Also every tile of the float16 and bfloat16 kernels, which the planner chooses by size.

#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"

#include "test.h"

#if !GNI_VULKAN

int main(void) { return 0; }

#else

static double draw_unit(void) { // [-1, 1)
    draw(1);
    return (double)(test_lot >> 11) * 0x1p-52 - 1;
}

static void force_split(gn_context *g, int mode) { gni_job_state(g->gpu)->split_force = mode; }

// ---- products

typedef enum numbers {
    ORDINARY,
    FEW_OUTLIERS,
    WIDE,
    WIDER,
    SPECIAL,
    MUCH_NAN,
    ZEROS,
    SMALL,
    KINDS
} numbers;

// (rows, columns); a line is a row of a or a column of b.
static void fill(numbers kind, float *x, int rows, int columns, bool lines_down) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            int line = lines_down ? j : i, k = lines_down ? i : j;
            double v = draw_unit();
            if (kind == FEW_OUTLIERS && line % 9 == 4 && k == line % 7) v *= 1e-20;
            if (kind == WIDE) v = ldexp(v, (int)(30 * draw_unit()));
            if (kind == WIDER) v = ldexp(v, (int)(62 * draw_unit()));
            if (kind == SPECIAL && line == 7 && k == 3) v = NAN;
            if (kind == SPECIAL && line == 11 && k == 2) v = INFINITY;
            if (kind == MUCH_NAN && line % 2 == 1 && k == 0) v = NAN;
            if (kind == ZEROS && (line % 3 == 0 || k % 5 == 0)) v = 0;
            if (kind == SMALL) v = ldexp(v, -70 - line % 3 * 40);
            x[i * columns + j] = (float)v;
        }
}

typedef struct shape {
    int batch, m, n, k;
    bool a_batched, b_batched;
} shape;

// Against float64: sums rounded k times, parts to 2^-23, and what float32 cannot hold flushed to zero.
static void compare(shape s, const float *c, const float *a, const float *b, const float *bias,
                    const char *what) {
    for (int q = 0; q < s.batch; q++)
        for (int i = 0; i < s.m; i++)
            for (int j = 0; j < s.n; j++) {
                const float *x = a + (s.a_batched ? q : 0) * s.m * s.k + i * s.k;
                const float *z = b + (s.b_batched ? q : 0) * s.k * s.n + j;
                double want = bias != NULL ? (double)bias[j] : 0, size = fabs(want);
                for (int l = 0; l < s.k; l++) {
                    want += (double)x[l] * (double)z[l * s.n];
                    size += fabs((double)x[l] * (double)z[l * s.n]);
                }
                double have = (double)c[(q * s.m + i) * s.n + j];
                double bound = (s.k + 8) * 0x1p-24 * size + s.k * 0x1p-126;
                bool same = isnan(want)   ? isnan(have)
                            : isinf(want) ? have == want
                                          : fabs(have - want) <= bound;
                if (!same)
                    fail_msg(
                        "%s: (%d x %d x %d) batch %d: element %d, %d, %d is %.9g, not %.9g, bound %.3g",
                        what, s.m, s.n, s.k, s.batch, q, i, j, have, want, bound);
            }
}

static gn_array *operand(gn_context *g, const float *x, int batch, int rows, int columns, int how) {
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(batch, rows, columns), x);
    if (how == 1) a = gn_swap_axes(gn_eval(gn_copy(gn_swap_axes(a, 1, 2))), 1, 2);
    if (how == 2) { // every second column of something wider, off the grid
        int pitch = 2 * columns + 3;
        float *wide = (float *)malloc((size_t)(batch * rows * pitch) * 4);
        for (int i = 0; i < batch * rows; i++)
            for (int j = 0; j < pitch; j++)
                wide[i * pitch + j] = j % 2 && j < 2 * columns ? x[i * columns + j / 2] : NAN;
        a = gn_slice(gn_array_from(g, GN_F32, GN_SHAPE(batch, rows, pitch), wide), 2, 1,
                     1 + 2 * columns, 2);
        free(wide);
    }
    return gn_eval(a);
}

static void product(gn_context *g, shape s, numbers kind_a, numbers kind_b, int how_a, int how_b) {
    int na = s.a_batched ? s.batch : 1, nb = s.b_batched ? s.batch : 1;
    float *a = (float *)malloc((size_t)(na * s.m * s.k) * 4),
          *b = (float *)malloc((size_t)(nb * s.k * s.n) * 4),
          *c = (float *)malloc((size_t)(s.batch * s.m * s.n) * 4);
    for (int q = 0; q < na; q++) fill(kind_a, a + q * s.m * s.k, s.m, s.k, false);
    for (int q = 0; q < nb; q++) fill(kind_b, b + q * s.k * s.n, s.k, s.n, true);
    for (int mode = 1; mode <= 3; mode++) {
        char what[80];
        snprintf(what, sizeof what, "numbers %d and %d, layouts %d and %d, mode %d", kind_a, kind_b,
                 how_a, how_b, mode - 1);
        force_split(g, mode);
        gn_scope_begin(g);
        gn_array *y =
            gn_matmul(operand(g, a, na, s.m, s.k, how_a), operand(g, b, nb, s.k, s.n, how_b));
        if (gn_read(y, c, (size_t)(s.batch * s.m * s.n) * 4) != GN_OK)
            fail_msg("%s: %s", what, gn_error(g));
        compare(s, c, a, b, NULL, what);
        gn_scope_end(g);
    }
    free(a);
    free(b);
    free(c);
}

static shape sized(int m, int n, int k) {
    shape s = {1, m, n, k, false, false};
    return s;
}

static void test_shapes(void **state) {
    gn_context *g = (gn_context *)*state;
    if (!test_on_vulkan()) skip();
    static const int size[][3] = {{2, 2, 1},      {33, 17, 16},    {64, 64, 31},
                                  {130, 131, 33}, {257, 129, 100}, {40, 300, 500}};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
        for (int how = 0; how < 9; how++)
            product(g, sized(size[i][0], size[i][1], size[i][2]), ORDINARY, ORDINARY, how / 3,
                    how % 3);
}

static void test_batches(void **state) {
    gn_context *g = (gn_context *)*state;
    if (!test_on_vulkan()) skip();
    for (int how = 1; how < 4; how++) {
        shape s = {3, 50, 70, 45, (how & 1) != 0, (how & 2) != 0};
        product(g, s, ORDINARY, ORDINARY, 0, 1);
        product(g, s, FEW_OUTLIERS, SPECIAL, 1, 0);
    }
}

static void test_numbers(void **state) {
    gn_context *g = (gn_context *)*state;
    if (!test_on_vulkan()) skip();
    for (int kind = 0; kind < KINDS; kind++)
        for (int other = 0; other < KINDS; other += kind == 0 ? 1 : KINDS - 1)
            product(g, sized(150, 140, 70), (numbers)kind, (numbers)other, 0, 0);
}

static void test_bias(void **state) {
    gn_context *g = (gn_context *)*state;
    if (!test_on_vulkan()) skip();
    enum { M = 140, N = 70, K = 60 };
    static float a[M * K], b[K * N], bias[N], c[M * N];
    for (int kind = 0; kind < 2; kind++) {
        fill(kind ? FEW_OUTLIERS : ORDINARY, a, M, K, false);
        fill(kind ? FEW_OUTLIERS : ORDINARY, b, K, N, true);
        fill(ORDINARY, bias, 1, N, true);
        for (int mode = 1; mode <= 3; mode++) {
            force_split(g, mode);
            gn_array *y = gn_linear(operand(g, a, 1, M, K, 0),
                                    gn_squeeze(operand(g, b, 1, K, N, 1), 0),
                                    gn_array_from(g, GN_F32, GN_SHAPE(N), bias));
            assert_int_equal(gn_read(y, c, sizeof c), GN_OK);
            compare(sized(M, N, K), c, a, b, bias, "gn_linear");
        }
    }
}

// ---- parts

static double half_value(uint32_t h) {
    double m = (double)(h & 0x3ffu),
           v = h & 0x7c00u ? ldexp(m + 1024, (int)(h >> 10 & 31) - 25) : ldexp(m, -24);
    return h & 0x8000u ? -v : v;
}
static double bfloat_value(uint32_t h) {
    uint32_t u = h << 16;
    float f;
    memcpy(&f, &u, 4);
    return (double)f;
}

// Packs a (rows x k) and the same numbers as b, as one mode or another, and adds the parts up again.
static void check_parts(gn_context *g, numbers kind, int rows, int k, int how, int mode) {
    float *x = (float *)malloc((size_t)(rows * k) * 4);
    fill(kind, x, rows, k, false);
    gn_array *a = operand(g, x, 1, rows, k, how);
    assert_true(gni_buffer_need(g, a->buf, GNI_ON_GPU));
    gni_matmul m;
    memset(&m, 0, sizeof m);
    m.m = m.n = rows;
    m.k = k;
    m.a_rs = m.b_cs = a->stride[1];
    m.a_cs = m.b_rs = a->stride[2];
    m.a.buf = a->buf;
    m.a.offset = a->offset;
    m.b = m.a;
    gni_job_call c;
    gni_job_split p;
    memset(&c, 0, sizeof c);
    memset(&p, 0, sizeof p);
    c.gpu = g->gpu;
    for (int i = 0; i < 2; i++)
        assert_true(gni_job_matrix_reach(g->gpu, &m, &m.a, rows, m.a_rs, k, m.a_cs, m.a_batch,
                                         &c.use[i], &c.param[i == 0 ? GNI_P_MATMUL_A_BASE : GNI_P_MATMUL_B_BASE]));
    p.c = &c;
    p.m = &m;
    p.tile = &gni_job_split_tiles[0].tile;
    p.batches = 1;
    p.slices = gni_job_ceil(k, 32) * 2;
    p.force = mode + 1;
    assert_true(gni_job_split_side_init(&p, 0) && gni_job_split_side_init(&p, 1) &&
                gni_job_split_room(&p));
    for (int i = 0; i < 4; i++) assert_true(gni_job_split_side_run(&p, i & 1, i > 1, true));
    uint32_t *control = (uint32_t *)malloc(p.control.bytes);
    uint16_t *packed = (uint16_t *)malloc(p.side[1].packed.bytes);
    assert_true(gni_gpu_download(g->gpu, &p.mem, 0, control, p.control.bytes));
    uint32_t chosen = control[0], listed = control[1], parts = chosen + 2;
    if (kind == ORDINARY || kind == FEW_OUTLIERS) assert_int_equal(chosen, mode);
    if (kind == MUCH_NAN && rows > 60) assert_int_equal(chosen, 2);
    assert_int_equal(listed, control[2]);
    for (int side = 0; side < 2 && chosen < 2; side++) {
        assert_true(gni_gpu_download(g->gpu, &p.mem, p.side[side].packed.offset, packed,
                                    p.side[side].packed.bytes));
        for (int i = 0; i < rows; i++) {
            double most = 0;
            bool left_out = false;
            for (uint32_t l = 0; l < listed; l++)
                left_out =
                    left_out || control[4 + side * GNI_SPLIT_PATCHES + (int)l] == (uint32_t)i;
            for (int l = 0; l < k; l++) most = fmax(most, fabs((double)x[i * k + l]));
            double scale = most > 0 ? ldexp(1, 14 - (int)fmax(ilogb(most), -112)) : 0;
            for (int l = 0; l < p.slices * 16; l++) {
                double sum = 0, want = l < k && !left_out ? (double)x[i * k + l] * scale : 0;
                for (uint32_t part = 0; part < parts; part++) {
                    size_t piece =
                        ((size_t)(l / 16) * (size_t)p.side[side].padded + (size_t)(i & ~7)) * 2 *
                            parts +
                        (2 * part + (size_t)(l / 8 % 2)) * 8 + (size_t)(i % 8);
                    uint32_t h = packed[piece * 8 + (size_t)(l % 8)];
                    sum += parts == 3 ? bfloat_value(h) : half_value(h) * (part ? 0x1p-12 : 1);
                }
                double off = fabs(sum - want), bound = parts == 3 ? 0 : fabs(want) * 0x1p-22;
                if (!(off <= bound))
                    fail_msg(
                        "numbers %d, layout %d, mode %d, side %d: row %d, element %d is %.9g, not %.9g",
                        kind, how, (int)chosen, side, i, l, sum, want);
            }
        }
    }
    gni_gpu_free(g->gpu, &p.mem);
    free(control);
    free(packed);
    free(x);
}

static void test_parts(void **state) {
    gn_context *g = (gn_context *)*state;
    if (!test_on_vulkan() || !g->gpu->caps.addresses) skip();
    for (int kind = 0; kind < KINDS; kind++)
        for (int how = 0; how < 3; how++)
            for (int mode = 0; mode < 2; mode++) {
                check_parts(g, (numbers)kind, 70, 45, how, mode);
                check_parts(g, (numbers)kind, 9, 300, how, mode);
            }
}

// ---- images that kernels take apart

// What is largest of what is finite in each 64 places of 32 channels, behind an image with zeros around it.
static void check_images(gn_context *g, int n, int channels) {
    enum { H = 9, W = 8 };
    const int64_t before[3] = {1, 0, 0}, size[3] = {H + 2, W, 1};
    const int width = (channels + 7) / 8 * 8, places = n * (H + 2) * W, across = (width + 31) / 32, count = n * channels * H * W,
              all = places * width, blocks = (places + 63) / 64 * across;
    float *x = (float *)malloc((size_t)count * 4), *have = (float *)malloc((size_t)(all + blocks) * 4),
          *want = (float *)calloc((size_t)blocks, 4);
    gni_conv_parts s;
    memset(&s, 0, sizeof s);
    s.on = true;
    for (int i = 0; i < count; i++) x[i] = ldexpf((float)draw_unit(), i / 7 % 60 - 30);
    x[count / 2] = NAN;
    x[count / 3] = -INFINITY;
    gn_scope_begin(g);
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(n, channels, H, W), x), *y = gni_conv_image(g, a, before, size, width, &s, 1);
    assert_non_null(y);
    assert_int_equal(s.largest[1].from, all);
    assert_int_equal(s.largest[1].groups, across);
    assert_int_equal(s.largest[1].places, (H + 2) * W);
    const int64_t one = 1;
    const gn_shape flat = GN_SHAPE(all + blocks);
    y = gni_adopt(g, gni_array_view(g, "test", y, &flat, &one, 0));
    assert_int_equal(gn_read(y, have, (size_t)(all + blocks) * 4), GN_OK);
    for (int i = 0; i < places; i++)
        for (int c = 0; c < width; c++) {
            const int row = i / W % (H + 2) - 1;
            const bool inside = row >= 0 && row < H && c < channels;
            const float v = inside ? x[((i / W / (H + 2) * channels + c) * H + row) * W + i % W] : 0;
            float *most = &want[i / 64 * across + c / 32];
            if (isfinite(v)) *most = fmaxf(*most, fabsf(v));
            if (memcmp(&have[i * width + c], &v, 4) != 0) fail_msg("%d channels: place %d, channel %d", channels, i, c);
        }
    for (int i = 0; i < blocks; i++)
        if (have[all + i] != want[i])
            fail_msg("%d images of %d channels: block %d says %.9g, not %.9g", n, channels, i, (double)have[all + i], (double)want[i]);
    gn_scope_end(g);
    free(want);
    free(have);
    free(x);
}

static void test_images(void **state) {
    gn_context *g = (gn_context *)*state;
    if (!test_on_vulkan() || !g->gpu->caps.addresses) skip();
    const gn_placement asked = g->placement;
    g->placement = GN_PLACE_GPU;
    check_images(g, 5, 40);
    check_images(g, 1, 17);
    check_images(g, 7, 96);
    g->placement = asked;
}

// A convolution and both of its gradients taken apart, or with operands in bfloat16, against float64.
static void convolution(gn_context *g, int c, int o, int groups, int size, int stride, bool fast) {
    enum { N = 3, TAPS = 3 };
    const int out = (size - 1) / stride + 1, cg = c / groups, og = o / groups;
    const int count[3] = {N * c * size * size, o * cg * TAPS * TAPS, N * o * out * out};
    float *have[3], *of[3];
    double *want[3], *bound[3];
    for (int i = 0; i < 3; i++) {
        of[i] = (float *)malloc((size_t)count[i] * 4);
        have[i] = (float *)malloc((size_t)count[i] * 4);
        want[i] = (double *)calloc((size_t)count[i], 8);
        bound[i] = (double *)calloc((size_t)count[i], 8);
        for (int k = 0; k < count[i]; k++) of[i][k] = (float)draw_unit();
    }
    for (int n = 0; n < N; n++)
        for (int p = 0; p < o; p++)
            for (int q = 0; q < cg; q++)
                for (int i = 0; i < out * out; i++)
                    for (int t = 0; t < TAPS * TAPS; t++) {
                        const int row = i / out * stride + t / TAPS - 1, column = i % out * stride + t % TAPS - 1;
                        if (row < 0 || row >= size || column < 0 || column >= size) continue;
                        const int at[3] = {((n * c + p / og * cg + q) * size + row) * size + column, (p * cg + q) * TAPS * TAPS + t,
                                           (n * o + p) * out * out + i};
                        for (int k = 0; k < 3; k++) {
                            const double product = (double)of[(k + 1) % 3][at[(k + 1) % 3]] * (double)of[(k + 2) % 3][at[(k + 2) % 3]];
                            want[k][at[k]] += product;
                            bound[k][at[k]] += fabs(product);
                        }
                    }
    const gn_precision before = g->precision;
    if (fast) g->precision = GN_PRECISION_FAST;
    else force_split(g, 1);
    gni_job_state(g->gpu)->floats_force = true;
    gn_scope_begin(g);
    gn_conv_options options = {0};
    options.stride = stride;
    options.pad = 1;
    options.groups = groups;
    gn_array *x = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(N, c, size, size), of[0]), true);
    gn_array *w = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(o, cg, TAPS, TAPS), of[1]), true);
    gn_array *y = gn_conv2d(x, w, NULL, &options);
    assert_int_equal(gn_backward(gn_sum(gn_mul(y, gn_array_from(g, GN_F32, GN_SHAPE(N, o, out, out), of[2])), GN_ALL)), GN_OK);
    gn_array *result[3];
    result[0] = gn_grad(x);
    result[1] = gn_grad(w);
    result[2] = y;
    for (int k = 0; k < 3; k++) {
        assert_int_equal(gn_read(result[k], have[k], (size_t)count[k] * 4), GN_OK);
        const int depth = k == 0 ? og * 9 : k == 1 ? N * out * out : cg * 9;
        for (int i = 0; i < count[k]; i++)
            if (!(fabs((double)have[k][i] - want[k][i]) <= ((depth + 8) * 0x1p-24 + (fast ? 0x1.02p-8 : 0)) * bound[k][i]))
                fail_msg("%d -> %d channels, %d groups, %d places, stride %d, fast %d: result %d, element %d is %.9g, not %.9g", c, o,
                         groups, size, stride, fast, k, i, (double)have[k][i], want[k][i]);
    }
    gn_scope_end(g);
    force_split(g, 0);
    gni_job_state(g->gpu)->floats_force = false;
    g->precision = before;
    for (int i = 0; i < 3; i++) {
        free(of[i]);
        free(have[i]);
        free(want[i]);
        free(bound[i]);
    }
}

static void test_convolutions(void **state) {
    gn_context *g = (gn_context *)*state;
    if (!test_on_vulkan()) skip();
    const gn_placement asked = g->placement;
    g->placement = GN_PLACE_GPU;
    for (int fast = 0; fast < 2; fast++) {
        convolution(g, 16, 32, 1, 8, 1, fast == 1);
        convolution(g, 17, 20, 1, 9, 2, fast == 1);
        convolution(g, 32, 32, 2, 7, 1, fast == 1);
        convolution(g, 40, 136, 1, 11, 3, fast == 1);
    }
    convolution(g, 3, 8, 1, 6, 1, true);
    g->placement = asked;
}

// ---- convolutions by tiles (winograd.comp)

typedef enum tile_numbers { TILE_ORDINARY, TILE_NAN_OF_X, TILE_INFINITY_OF_X, TILE_INFINITY_OF_W, TILE_INFINITY_OF_GY, TILE_KINDS } tile_numbers;
typedef struct tile_shape {
    int n, c, o, h, w, pad;
} tile_shape;

// Arrays: x, w, the gradient of y; results: the gradients of x and w, y. The sums of products, of zeros around x as well, and for
// each result a bound: errors are those of sums of some numbers of both operands' norms, in a tile or of all places.
static void tiles_expected(tile_shape s, float *const *of, double **want, double **norm) {
    const int oh = s.h + 2 * s.pad - 2, ow = s.w + 2 * s.pad - 2;
    double square[3] = {0, 0, 0};
    const int count[3] = {s.n * s.c * s.h * s.w, s.o * s.c * 9, s.n * s.o * oh * ow};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < count[i]; k++)
            if (isfinite(of[i][k])) square[i] = fmax(square[i], fabs((double)of[i][k]));
    const double depth[3] = {s.o * 36.0, s.n * 24.0 * ((oh + 3) / 4) * ((ow + 3) / 4), s.c * 36.0};
    for (int k = 0; k < 3; k++) *norm[k] = depth[k] / 3 * square[(k + 1) % 3] * square[(k + 2) % 3]; // of uniform numbers
    for (int n = 0; n < s.n; n++)
        for (int o = 0; o < s.o; o++)
            for (int c = 0; c < s.c; c++)
                for (int i = 0; i < oh * ow; i++)
                    for (int t = 0; t < 9; t++) {
                        const int row = i / ow + t / 3 - s.pad, column = i % ow + t % 3 - s.pad,
                                  y = (n * s.o + o) * oh * ow + i, w = (o * s.c + c) * 9 + t;
                        const bool inside = row >= 0 && row < s.h && column >= 0 && column < s.w;
                        const int x = inside ? ((n * s.c + c) * s.h + row) * s.w + column : 0;
                        const double value = inside ? (double)of[0][x] : 0.0;
                        want[2][y] += value * (double)of[1][w];
                        want[1][w] += value * (double)of[2][y];
                        if (inside) want[0][x] += (double)of[1][w] * (double)of[2][y];
                    }
    // Zeros stand around the gradient of y as well where that of x is made.
    for (int w = 0; w < count[1]; w++)
        for (int x = 0; !isfinite(of[1][w]) && x < count[0]; x++) {
            const int place = x % (s.h * s.w), row = place / s.w - w % 9 / 3 + s.pad, column = place % s.w - w % 3 + s.pad;
            const bool outside = row < 0 || row >= oh || column < 0 || column >= ow;
            if (x / s.h / s.w % s.c == w / 9 % s.c && outside) want[0][x] = (double)NAN;
        }
}

static gn_array *tiles_operand(gn_context *g, const float *x, gn_shape s, int how) {
    gn_array *a = gn_array_from(g, GN_F32, s, x);
    if (how == 1) a = gn_swap_axes(gn_eval(gn_copy(gn_swap_axes(a, 1, 3))), 1, 3);
    if (how == 2) a = gn_slice(gn_eval(gn_copy(gn_pad(a, (const int64_t[8]){0, 0, 0, 0, 1, 0, 1, 2}, 8, GN_PAD_CONSTANT, 7.0))), 2, 1, s.dim[2] + 1, 1);
    if (how == 2) a = gn_slice(a, 3, 1, s.dim[3] + 1, 1);
    if (how == 3) a = gn_flip(gn_eval(gn_copy(gn_flip(a, 3))), 3);
    return gn_eval(a);
}

static void check_tiles(gn_context *g, tile_shape s, tile_numbers kind, int how) {
    const int oh = s.h + 2 * s.pad - 2, ow = s.w + 2 * s.pad - 2, count[3] = {s.n * s.c * s.h * s.w, s.o * s.c * 9, s.n * s.o * oh * ow};
    float *have[3], *of[3];
    double *want[3], bound[3], *norm[3];
    for (int i = 0; i < 3; i++) {
        of[i] = (float *)malloc((size_t)count[i] * 4);
        have[i] = (float *)malloc((size_t)count[i] * 4);
        want[i] = (double *)calloc((size_t)count[i], 8);
        norm[i] = &bound[i];
        for (int k = 0; k < count[i]; k++) of[i][k] = (float)draw_unit();
    }
    if (kind == TILE_NAN_OF_X) of[0][count[0] / 3] = NAN;
    if (kind == TILE_INFINITY_OF_X) of[0][count[0] / 2] = INFINITY;
    if (kind == TILE_INFINITY_OF_W) of[1][count[1] / 2] = -INFINITY;
    if (kind == TILE_INFINITY_OF_GY) of[2][count[2] / 2] = INFINITY;
    tiles_expected(s, of, want, norm);
    gn_scope_begin(g);
    gn_conv_options options = {0};
    options.pad = s.pad;
    gn_array *x = gn_requires_grad(tiles_operand(g, of[0], GN_SHAPE(s.n, s.c, s.h, s.w), how), true);
    gn_array *w = gn_requires_grad(tiles_operand(g, of[1], GN_SHAPE(s.o, s.c, 3, 3), how), true);
    gn_array *gy = tiles_operand(g, of[2], GN_SHAPE(s.n, s.o, oh, ow), how), *y = gn_conv2d(x, w, NULL, &options);
    assert_int_equal(gn_backward(gn_sum(gn_mul(y, gy), GN_ALL)), GN_OK);
    gn_array *result[3] = {gn_grad(x), gn_grad(w), y};
    for (int k = 0; k < 3; k++) {
        assert_int_equal(gn_read(result[k], have[k], (size_t)count[k] * 4), GN_OK);
        for (int i = 0; i < count[k]; i++) {
            const double a = (double)have[k][i], b = want[k][i];
            if (isnan(b) ? !isnan(a) : isinf(b) ? a != b : !(fabs(a - b) <= 4 * 0x1p-24 * bound[k]))
                fail_msg("%d x %d -> %d channels, %d x %d, pad %d, numbers %d, layout %d: result %d, element %d is %.9g, not %.9g, within %.3g",
                         s.n, s.c, s.o, s.h, s.w, s.pad, (int)kind, how, k, i, a, b, 4 * 0x1p-24 * bound[k]);
        }
    }
    gn_scope_end(g);
    for (int i = 0; i < 3; i++) {
        free(of[i]);
        free(have[i]);
        free(want[i]);
    }
}

static void test_tiles(void **state) {
    gn_context *g = (gn_context *)*state;
    if (!test_on_vulkan() || !g->gpu->caps.addresses) skip();
    static const tile_shape all[] = {{2, 8, 8, 8, 8, 1},  {2, 16, 24, 12, 7, 1}, {1, 5, 9, 13, 17, 0}, {3, 17, 33, 5, 4, 2},
                                       {2, 8, 8, 3, 3, 0}, {1, 2, 3, 9, 9, 4},   {1, 8, 8, 1, 1, 1},   {1, 3, 2, 1, 200, 1},
                                       {3, 72, 40, 10, 6, 1}};
    const gn_placement asked = g->placement;
    g->placement = GN_PLACE_GPU;
    // With matrix units, both kinds of products.
    for (size_t k = 0; k < (gni_job_has_units(g->gpu, GN_F16) ? 2 : 1) * sizeof all / sizeof *all; k++) {
        const size_t i = k % (sizeof all / sizeof *all);
        gni_job_state(g->gpu)->floats_force = k != i;
        gni_job_state(g->gpu)->winograd_force = 1;
        for (int how = 0; how < 4; how++) check_tiles(g, all[i], TILE_ORDINARY, how);
        for (int kind = 1; kind < TILE_KINDS; kind++) check_tiles(g, all[i], (tile_numbers)kind, kind % 4);
        gni_job_state(g->gpu)->winograd_force = 2;
        check_tiles(g, all[i], (tile_numbers)(i % 2), (int)i % 4);
    }
    // The same by windows that are taken apart.
    gni_job_state(g->gpu)->winograd_force = -1;
    gni_job_state(g->gpu)->floats_force = true;
    force_split(g, 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int kind = 0; kind < TILE_KINDS; kind++) check_tiles(g, all[i], (tile_numbers)kind, kind % 4);
    force_split(g, 0);
    gni_job_state(g->gpu)->winograd_force = 0;
    gni_job_state(g->gpu)->floats_force = false;
    g->placement = asked;
}

static void bits_of_convolution(gn_context *g, int force, gn_precision precision, float *to, size_t bytes) {
    const gn_precision before = g->precision;
    gni_job_state(g->gpu)->winograd_force = force;
    g->precision = precision;
    gn_scope_begin(g);
    gn_seed(g, 3);
    gn_array *x = gn_randn(g, GN_F32, GN_SHAPE(16, 8, 16, 16)), *w = gn_randn(g, GN_F32, GN_SHAPE(8, 8, 3, 3));
    gn_conv_options options = {0};
    options.pad = 1;
    assert_int_equal(gn_read(gn_conv2d(x, w, NULL, &options), to, bytes), GN_OK);
    gn_scope_end(g);
    g->precision = before;
    gni_job_state(g->gpu)->winograd_force = 0;
}

// GN_PRECISION_HIGH takes them, and nothing else does.
static void test_tiles_chosen(void **state) {
    enum { COUNT = 16 * 8 * 16 * 16 };
    gn_context *g = (gn_context *)*state;
    if (!test_on_vulkan() || !g->gpu->caps.addresses) skip();
    const gn_placement asked = g->placement;
    g->placement = GN_PLACE_GPU;
    float *by[4];
    for (int i = 0; i < 4; i++) by[i] = (float *)malloc(COUNT * 4);
    bits_of_convolution(g, 1, GN_PRECISION_HIGH, by[0], COUNT * 4);
    bits_of_convolution(g, 0, GN_PRECISION_HIGH, by[1], COUNT * 4);
    bits_of_convolution(g, -1, GN_PRECISION_F32, by[2], COUNT * 4);
    bits_of_convolution(g, 0, GN_PRECISION_F32, by[3], COUNT * 4);
    assert_memory_equal(by[0], by[1], COUNT * 4);
    assert_memory_equal(by[2], by[3], COUNT * 4);
    assert_true(memcmp(by[0], by[2], COUNT * 4) != 0);
    for (int i = 0; i < 4; i++) free(by[i]);
    g->placement = asked;
}

static void tiles_of_few(gn_context *g) {
    const gn_placement asked = g->placement;
    g->placement = GN_PLACE_GPU;
    gni_job_state(g->gpu)->winograd_force = 2;
    gn_scope_begin(g);
    gn_conv_options options = {0};
    options.pad = 1;
    gn_array *x = gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(2, 2, 5, 5), 1.0), true);
    gn_array *w = gn_requires_grad(gn_full(g, GN_F32, GN_SHAPE(3, 2, 3, 3), 0.5), true);
    float have[9 * 6] = {0};
    gn_array *y = gn_conv2d(x, w, NULL, &options);
    if (y != NULL) gn_backward(gn_sum(y, GN_ALL));
    if (gn_status_get(g) == GN_OK) gn_read(gn_grad(w), have, sizeof have);
    if (gn_status_get(g) == GN_OK) {
        assert_float_equal(have[4], 50.0, 1e-3);
        assert_float_equal(have[0], 32.0, 1e-3);
    }
    gn_scope_end(g);
    gni_job_state(g->gpu)->winograd_force = 0;
    g->placement = asked;
}

static void test_tiles_memory(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    test_most_allocations(tiles_of_few);
}

// ---- tiles of float16 and bfloat16

// Makes `which` the tile that is chosen, with k in one part.
static void choose_tile(gn_context *g, const gni_job_tile *tiles, int count, int which) {
    gni_gpu *gpu = g->gpu;
    if (gpu->rates == NULL)
        gpu->rates = (gni_gpu_rates *)gni_calloc(g, GNI_MODULE_COUNT * sizeof(gni_gpu_rates));
    assert_non_null(gpu->rates);
    for (int i = 0; i < count; i++) {
        gni_gpu_rates *r = &gpu->rates[tiles[i].module];
        r->rate = r->alone = i == which ? GNI_VK_MOST_RATE : 1;
        r->resident = 1;
    }
    memset(gni_job_state(gpu)->choices, 0, sizeof gni_job_state(gpu)->choices); // made before
}

// Operands whose sums float32 holds exactly, from float16's subnormals to past its largest, so that the result is
// the exact one rounded once, bit for bit.
static void exact_product(gn_context *g, gn_dtype t, shape s, int how_a, int how_b, bool relu) {
    float *a = (float *)malloc((size_t)(s.m * s.k) * 4),
          *b = (float *)malloc((size_t)(s.k * s.n) * 4),
          *c = (float *)malloc((size_t)(s.m * s.n) * 4);
    uint16_t *have = (uint16_t *)malloc((size_t)(s.m * s.n) * 2),
             *want = (uint16_t *)malloc((size_t)(s.m * s.n) * 2);
    for (int i = 0; i < s.m; i++)
        for (int l = 0; l < s.k; l++)
            a[i * s.k + l] = ldexpf((float)(int)(draw_unit() * 8), i * 5 % 37 - 24);
    for (int i = 0; i < s.k * s.n; i++) b[i] = (float)(int)(draw_unit() * 16) / 16;
    for (int i = 0; i < s.m; i++)
        for (int j = 0; j < s.n; j++) {
            double sum = 0;
            for (int l = 0; l < s.k; l++) sum += (double)a[i * s.k + l] * (double)b[l * s.n + j];
            c[i * s.n + j] = (float)(relu && sum < 0 ? 0 : sum);
        }
    gn_scope_begin(g);
    gn_array *y = gn_matmul(gn_cast(operand(g, a, 1, s.m, s.k, how_a), t),
                            gn_cast(operand(g, b, 1, s.k, s.n, how_b), t));
    if (relu) y = gn_relu(y);
    gn_array *z = gn_cast(gn_array_from(g, GN_F32, GN_SHAPE(1, s.m, s.n), c), t);
    assert_int_equal(gn_read(y, have, (size_t)(s.m * s.n) * 2), GN_OK);
    assert_int_equal(gn_read(z, want, (size_t)(s.m * s.n) * 2), GN_OK);
    for (int i = 0; i < s.m * s.n; i++)
        if (have[i] != want[i] && ((have[i] | want[i]) & 0x7fff) != 0)
            fail_msg(
                "%s (%d x %d x %d), layouts %d and %d: element %d, %d is %04x, not %04x (%.9g)",
                gn_dtype_name(t), s.m, s.n, s.k, how_a, how_b, i / s.n, i % s.n, have[i], want[i],
                (double)c[i]);
    gn_scope_end(g);
    free(a);
    free(b);
    free(c);
    free(have);
    free(want);
}

static void test_half_tiles(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    static const int size[][3] = {
        {128, 128, 64}, {256, 384, 128}, {72, 136, 40}, {130, 72, 67}, {61, 131, 96}};
    enum { TILES = sizeof gni_job_half_tiles / sizeof gni_job_half_tiles[0] };
    gn_options o = test_options();
    o.vulkan_flags |=
        GN_VULKAN_NO_ASYNC_PIPELINES; // programs at the store from the first product on
    for (int type = 0; type < 2; type++) {
        gn_context *g = test_open_with(&o);
        for (int tile = 0; tile < TILES; tile++)
            for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
                shape s = sized(size[i][0], size[i][1], size[i][2]);
                choose_tile(g, type == 0 ? gni_job_half_tiles : gni_job_bfloat_tiles, TILES, tile);
                exact_product(g, type == 0 ? GN_F16 : GN_BF16, s, 0, 0, false);
                if (i < 2) exact_product(g, type == 0 ? GN_F16 : GN_BF16, s, 1, 1, true);
            }
        test_close(g);
    }
}

// Operands and results whose lines are moved to 16 bytes, by copies.
static void test_even_lines(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    static const int size[][3] = {{33, 41, 19}, {64, 57, 129}, {17, 48, 25}, {9, 11, 10}};
    gn_context *g = test_open();
    gni_job_state(g->gpu)->even_force = true;
    for (int type = 0; type < 2; type++)
        for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
            for (int how = 0; how < 4; how++)
                exact_product(g, type == 0 ? GN_F16 : GN_BF16, sized(size[i][0], size[i][1], size[i][2]), how & 1, how >> 1, how == 3);
    gni_job_state(g->gpu)->even_force = false;
    test_close(g);
}

// Small integers, whose sums 16 bits hold: the product by a loop over what was read from a and b.
static void check_product_as_read(gn_array *a, gn_array *b) {
    const int m = (int)gn_dim(a, 0), k = (int)gn_dim(a, 1), n = (int)gn_dim(b, 1);
    float *x = (float *)malloc((size_t)(m * k) * 4), *y = (float *)malloc((size_t)(k * n) * 4), *z = (float *)malloc((size_t)(m * n) * 4);
    assert_int_equal(gn_read(gn_cast(gn_matmul(a, b), GN_F32), z, (size_t)(m * n) * 4), GN_OK);
    assert_int_equal(gn_read(gn_cast(a, GN_F32), x, (size_t)(m * k) * 4), GN_OK);
    assert_int_equal(gn_read(gn_cast(b, GN_F32), y, (size_t)(k * n) * 4), GN_OK);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++) sum += (double)x[i * k + l] * (double)y[l * n + j];
            if ((double)z[i * n + j] != sum) fail_msg("element %d, %d is %g, not %g", i, j, (double)z[i * n + j], sum);
        }
    free(x);
    free(y);
    free(z);
}

// Moved lines stay with their array for the next product, as long as it is what it was.
static void test_kept_lines(void **state) {
    (void)state;
    if (!test_on_vulkan()) skip();
    gn_context *g = test_open();
    gni_job_state(g->gpu)->even_force = true;
    for (int type = 0; type < 2; type++) {
        gn_scope_begin(g);
        const gn_dtype t = type == 0 ? GN_F16 : GN_BF16;
        gn_array *a = gn_to(gn_copy(gn_cast(gn_randint(g, GN_I32, GN_SHAPE(19, 21), -2, 3), t)), GN_DEVICE_GPU);
        gn_array *b = gn_cast(gn_randint(g, GN_I32, GN_SHAPE(21, 24), -2, 3), t), *c = gn_transpose(a);
        check_product_as_read(a, b);
        const gni_even *kept = a->buf->even;
        assert_non_null(kept);
        check_product_as_read(a, b);
        assert_ptr_equal(a->buf->even, kept);
        check_product_as_read(c, gn_cast(gn_randint(g, GN_I32, GN_SHAPE(19, 8), -2, 3), t)); // the same lines
        assert_ptr_equal(a->buf->even, kept);
        check_product_as_read(gn_slice(a, 0, 2, 19, 1), b); // others of the same memory
        check_product_as_read(gn_slice(a, 1, 1, 20, 1), gn_slice(b, 0, 0, 19, 1));
        check_product_as_read(a, b);
        gn_assign(gn_slice(a, 0, 3, 9, 2), gn_scalar(g, t, 2.0));
        check_product_as_read(a, b);
        gn_assign(a, gn_add_s(a, 1.0));
        check_product_as_read(a, b);
        check_product_as_read(c, gn_slice(b, 0, 0, 19, 1));
        gn_scope_end(g);
    }
    gni_job_state(g->gpu)->even_force = false;
    test_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_even_lines),
        cmocka_unit_test(test_kept_lines),
        cmocka_unit_test(test_half_tiles),
        GN_TEST(test_parts),
        GN_TEST(test_shapes),
        GN_TEST(test_batches),
        GN_TEST(test_numbers),
        GN_TEST(test_bias),
        GN_TEST(test_images),
        GN_TEST(test_convolutions),
        GN_TEST(test_tiles),
        GN_TEST(test_tiles_chosen),
        cmocka_unit_test(test_tiles_memory),
    };
    return test_run(tests);
}

#endif
