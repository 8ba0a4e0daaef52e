// Gradients of what writes its result in several steps, or moves its operands: decompositions of large matrices and of
// batches, transforms, joins. The operand is read by another op as well, and so is the result. Against differences.
#include "test_matrices.h"

typedef struct op {
    const char *name;
    gn_array *(*loss)(gn_array *x); // 1 element; x (n, n) or (2, n, n), about diagonal
    bool batches, slow;             // slow: large ones, on a CPU that plays GPU
} op;

// Signs of vectors do not show.
static gn_array *weighted(gn_array *y) {
    if (y == NULL) return NULL;
    gn_context *g = gn_context_of(y);
    gn_array *w = gn_arange(g, gn_dtype_of(y), 1.0, 1.0 + (double)gn_size(y), 1.0);
    w = gn_reshape(gn_sin(gn_mul_s(w, 0.7)), gn_shape_of(y));
    return gn_sum(gn_mul(w, gn_square(y)), GN_ALL);
}

static gn_array *row_of(gn_array *x) { return gn_slice(x, -2, 0, 1, 1); }
static gn_array *even(gn_array *x) { return gn_mul_s(gn_add(x, turned(x)), 0.5); }

static gn_array *use_inv(gn_array *x) { return weighted(gn_inv(x)); }
static gn_array *use_solve(gn_array *x) { return weighted(gn_solve(x, turned(row_of(x)))); }
static gn_array *use_det(gn_array *x) { return gn_sum(gn_log(gn_square(gn_det(x))), GN_ALL); }
static gn_array *use_cholesky(gn_array *x) { return weighted(gn_cholesky(even(x))); }
static gn_array *use_qr(gn_array *x) {
    gn_array *r = NULL, *q = gn_qr(x, &r);
    return gn_add(weighted(q), weighted(r));
}
static gn_array *use_eigh(gn_array *x) {
    gn_array *v = NULL, *w = gn_eigh(even(x), &v);
    return gn_add(weighted(w), weighted(v));
}
static gn_array *use_svd(gn_array *x) {
    gn_array *u = NULL, *vt = NULL, *s = gn_svd(x, false, &u, &vt);
    return gn_add(weighted(s), gn_add(weighted(u), weighted(vt)));
}
static gn_array *use_einsum(gn_array *x) {
    return weighted(gn_einsum(gn_context_of(x), "...ij,...jk,...kl->...il", x, x, x));
}
static gn_array *use_fft(gn_array *x) {
    return weighted(gn_abs(gn_fft(x, gn_dim(x, -1) + 3, -1, GN_FFT_ORTHO)));
}
static gn_array *use_irfft(gn_array *x) {
    return weighted(
        gn_irfftn(gn_rfftn(x, NULL, NULL, 2, GN_FFT_ORTHO), NULL, NULL, 2, GN_FFT_ORTHO));
}
static gn_array *use_dct(gn_array *x) { return weighted(gn_dct(x, 2, 0, -1, GN_FFT_ORTHO)); }
static gn_array *use_convolve(gn_array *x) {
    gn_array *row = gn_ravel(row_of(x));
    return weighted(gn_convolve(row, gn_flip(row, GN_ALL), GN_CONV_FULL));
}
static gn_array *use_convolve2d(gn_array *x) {
    return weighted(gn_convolve2d(x, gn_slice(x, 0, 0, 3, 1), GN_CONV_SAME));
}
static gn_array *use_joins(gn_array *x) {
    gn_array *both[2];
    both[0] = gn_softmax(x, -1);
    both[1] = gn_log_softmax(x, -1);
    return weighted(gn_concat(both, 2, -1));
}
static gn_array *use_stack(gn_array *x) {
    gn_array *both[2];
    both[0] = gn_stack(&x, 1, 0);
    both[1] = gn_stack(&x, 1, 0);
    gn_array *y = gn_concat(both, 2, 0);
    return gn_add(weighted(gn_max(y, -1)),
                  gn_add(weighted(gn_prod(gn_slice(y, -1, 0, 3, 1), -1)),
                         weighted(gn_logsumexp(y, -1))));
}

static const op ops[] = {
    {"inv", use_inv, true, false},
    {"solve", use_solve, true, false},
    {"det", use_det, true, false},
    {"cholesky", use_cholesky, true, false},
    {"qr", use_qr, true, false},
    {"eigh", use_eigh, true, true},
    {"svd", use_svd, true, true},
    {"einsum", use_einsum, true, false},
    {"fft", use_fft, true, false},
    {"irfft", use_irfft, true, false},
    {"dct", use_dct, true, false},
    {"convolve", use_convolve, false, false},
    {"convolve2d", use_convolve2d, false, false},
    {"softmax", use_joins, true, false},
    {"stack", use_stack, true, false},
};

// The op beside one that reads its operand before it and one that does so after it.
static gn_array *loss_of(const op *o, gn_array *x) {
    gn_array *before = gn_sum(gn_square(x), GN_ALL), *y = o->loss(x);
    return gn_add(gn_add(before, y), gn_sum(gn_exp(x), GN_ALL));
}

// What differences along d say on the CPU.
static double differences(gn_context *cpu, const op *o, gn_array *x, gn_array *d, double *size) {
    const double h = 1e-6;
    gn_scope_begin(cpu);
    double high = gn_item(loss_of(o, gn_add(x, gn_mul_s(d, h))));
    double low = gn_item(loss_of(o, gn_sub(x, gn_mul_s(d, h))));
    gn_scope_end(cpu);
    *size = fabs(high);
    return (high - low) / (2.0 * h);
}

static void check(gn_context *g, const op *o, gn_dtype t, const double *const *data, gn_shape s,
                  double want, double size) {
    gn_scope_begin(g);
    gn_array *x = gn_requires_grad(gn_eval(gn_cast(gn_array_from(g, GN_F64, s, data[0]), t)), true);
    gn_array *d = gn_array_from(g, GN_F64, s, data[1]);
    gn_backward(loss_of(o, x));
    double have = gn_item(gn_sum(gn_mul(gn_cast(gn_grad(x), GN_F64), d), GN_ALL));
    // Of float32 the rounding of n^2 terms, of differences the rounding of the loss.
    double bound = t == GN_F64 ? 1e-6 : 1e-4;
    if (!(fabs(have - want) <= bound * (fabs(want) + size + 1.0)))
        fail_msg("%s, %s, order %d: %.9g, differences say %.9g: %s", o->name, gn_dtype_name(t),
                 (int)s.dim[s.rank - 1], have, want, gn_error(g));
    gn_scope_end(g);
}

static void check_all(int64_t n, bool batch) {
    gn_options options = test_options();
    options.thresholds.linalg = options.thresholds.fft = 1;
    gn_context *g = test_share(&options);
    options.backend = GN_BACKEND_CPU;
    gn_context *cpu = test_open_with(&options);
    gn_scope_begin(cpu);
    gn_seed(cpu, 5);
    const gn_shape s = batch ? GN_SHAPE(2, n, n) : GN_SHAPE(n, n);
    gn_array *ramp = gn_arange(cpu, GN_F64, 1.0, 1.0 + (double)n, 1.0);
    gn_array *x =
        gn_mul(gn_eye(cpu, GN_F64, n, n, 0), gn_add_s(gn_mul_s(ramp, 1.0 / (double)n), 1.0));
    x = gn_add(x, gn_mul_s(gn_randn(cpu, GN_F64, s), 0.1 / (double)n));
    gn_array *d = gn_randn(cpu, GN_F64, s);
    double *data[2];
    for (int i = 0; i < 2; i++) {
        data[i] = (double *)malloc(gn_bytes(x));
        assert_non_null(data[i]);
        assert_int_equal(gn_read(i == 0 ? x : d, data[i], gn_bytes(x)), GN_OK);
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        double size;
        if (batch ? !ops[i].batches : ops[i].slow && !is_patient(g)) continue;
        double want = differences(cpu, &ops[i], x, d, &size);
        check(g, &ops[i], GN_F64, (const double *const *)data, s, want, size);
        check(g, &ops[i], GN_F32, (const double *const *)data, s, want, size);
    }
    free(data[0]);
    free(data[1]);
    gn_scope_end(cpu);
    gn_close(cpu);
    test_close(g);
}

static void test_batches(void **state) {
    (void)state;
    check_all(6, true);
}

// Beyond one panel of 128 columns.
static void test_large(void **state) {
    (void)state;
    check_all(150, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_batches),
                                       cmocka_unit_test(test_large)};
    return test_run(tests);
}
