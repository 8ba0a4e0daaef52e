// Transforms against SciPy, against their own mathematics, and their gradients against differences.
#include "test.h"

// ---- SciPy

static gn_array *view_of(gn_array *a, int view) {
    if (view == 1) return gn_transpose(a);
    if (view == 2) return gn_slice(a, -1, GN_NONE, GN_NONE, 2);
    if (view == 3) return gn_flip(a, gn_rank(a) > 1 ? GN_AXES(0, -1) : GN_ALL);
    return a;
}

static gn_array *one_axis(const char *name, gn_array *a, const int32_t *v) {
    gn_fft_norm norm = (gn_fft_norm)v[2];
    if (strcmp(name, "fft") == 0) return gn_fft(a, v[0], v[1], norm);
    if (strcmp(name, "ifft") == 0) return gn_ifft(a, v[0], v[1], norm);
    if (strcmp(name, "rfft") == 0) return gn_rfft(a, v[0], v[1], norm);
    if (strcmp(name, "irfft") == 0) return gn_irfft(a, v[0], v[1], norm);
    if (strcmp(name, "hfft") == 0) return gn_hfft(a, v[0], v[1], norm);
    if (strcmp(name, "ihfft") == 0) return gn_ihfft(a, v[0], v[1], norm);
    norm = (gn_fft_norm)v[1];
    if (strcmp(name, "fftn") == 0) return gn_fftn(a, NULL, NULL, v[0], norm);
    if (strcmp(name, "ifftn") == 0) return gn_ifftn(a, NULL, NULL, v[0], norm);
    if (strcmp(name, "rfftn") == 0) return gn_rfftn(a, NULL, NULL, v[0], norm);
    if (strcmp(name, "irfftn") == 0) return gn_irfftn(a, NULL, NULL, v[0], norm);
    norm = (gn_fft_norm)v[0];
    if (strcmp(name, "fft2") == 0) return gn_fft2(a, norm);
    if (strcmp(name, "ifft2") == 0) return gn_ifft2(a, norm);
    norm = (gn_fft_norm)v[3];
    if (strcmp(name, "dct") == 0) return gn_dct(a, v[0], v[1], v[2], norm);
    if (strcmp(name, "idct") == 0) return gn_idct(a, v[0], v[1], v[2], norm);
    if (strcmp(name, "dst") == 0) return gn_dst(a, v[0], v[1], v[2], norm);
    if (strcmp(name, "idst") == 0) return gn_idst(a, v[0], v[1], v[2], norm);
    return NULL;
}

static gn_array *two_axes(const char *name, gn_array *a, const int32_t *v) {
    const int64_t n[2] = {v[0], v[1]};
    const int axes[2] = {v[2], v[3]};
    if (strcmp(name, "fftn2") == 0) return gn_fftn(a, n, axes, 2, GN_FFT_BACKWARD);
    if (strcmp(name, "ifftn2") == 0) return gn_ifftn(a, n, axes, 2, GN_FFT_BACKWARD);
    if (strcmp(name, "rfftn2") == 0) return gn_rfftn(a, n, axes, 2, GN_FFT_BACKWARD);
    if (strcmp(name, "irfftn2") == 0) return gn_irfftn(a, n, axes, 2, GN_FFT_BACKWARD);
    return NULL;
}

static gn_array *other(gn_context *g, const char *name, gn_array *a, gn_array *b, const int32_t *v) {
    gn_convolution mode = (gn_convolution)v[0];
    if (strcmp(name, "fftshift") == 0) return gn_fftshift(a, v[0] ? 0 : GN_ALL);
    if (strcmp(name, "ifftshift") == 0) return gn_ifftshift(a, v[0] ? 0 : GN_ALL);
    if (strcmp(name, "fftfreq") == 0) return gn_fftfreq(g, GN_F64, v[0], gn_item(a));
    if (strcmp(name, "rfftfreq") == 0) return gn_rfftfreq(g, GN_F64, v[0], gn_item(a));
    if (strcmp(name, "real") == 0) return gn_real(a);
    if (strcmp(name, "imag") == 0) return gn_imag(a);
    if (strcmp(name, "conj") == 0) return gn_conj(a);
    if (strcmp(name, "angle") == 0) return gn_angle(a);
    if (strcmp(name, "complex") == 0) return gn_complex(a, b);
    if (strcmp(name, "convolve") == 0) return gn_convolve(a, b, mode);
    if (strcmp(name, "correlate") == 0) return gn_correlate(a, b, mode);
    if (strcmp(name, "convolve2d") == 0) return gn_convolve2d(a, b, mode);
    if (strcmp(name, "fftconvolve") == 0) return gn_fftconvolve(a, b, mode);
    return NULL;
}

// Parts of element i; a real array's imaginary part is 0.
static double part(gn_dtype t, const void *data, int64_t i, int which) {
    if (t == GN_C64) return test_element(GN_F32, data, 2 * i + which);
    if (t == GN_C128) return test_element(GN_F64, data, 2 * i + which);
    return which == 0 ? test_element(t, data, i) : 0.0;
}

// The error's norm over that of the expected values.
TEST_UNWATCHED static double distance(gn_array *y, const test_array *want) {
    void *have = malloc(gn_bytes(y) + 16);
    double error = 0.0, norm = 0.0;
    if (have == NULL || y == NULL || gn_size(y) != want->n || gn_read(y, have, gn_bytes(y)) != GN_OK) {
        free(have);
        return HUGE_VAL;
    }
    for (int64_t i = 0; i < want->n; i++)
        for (int k = 0; k < 2; k++) {
            double a = part(gn_dtype_of(y), have, i, k), b = part(want->t, want->data, i, k);
            error += (a - b) * (a - b);
            norm += b * b;
        }
    free(have);
    return norm > 0.0 ? sqrt(error / norm) : sqrt(error);
}

static bool same_shape(gn_array *y, const gn_shape *s) {
    gn_shape have = gn_shape_of(y);
    bool same = have.rank == s->rank;
    for (int i = 0; i < s->rank && same; i++) same = have.dim[i] == s->dim[i];
    return same;
}

static bool fft_cases_open(test_cases *c) {
    char command[2304];
    const char *python = getenv("GN_PYTHON");
    if (test_cases_made(c, "fft")) return true;
    if (python == NULL || python[0] == 0) return test_lacks("NumPy");
    snprintf(command, sizeof command, "\"%s\" -c \"import scipy\"", python);
    if (system(command) != 0) return test_lacks("SciPy");
    snprintf(command, sizeof command, "\"%s\" \"%s\" fft.cases", python, test_source_file("tests/make_fft.py"));
    if (system(command) != 0) fail_msg("%s failed", command);
    test_cases_read(c, "fft.cases");
    remove("fft.cases"); // some 400 MB
    return true;
}

static void test_scipy(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases c;
    memset(&c, 0, sizeof c);
    int bad = 0;
    if (!fft_cases_open(&c)) skip();
    for (int32_t i = 0; i < c.count; i++) {
        char name[32];
        int32_t v[6];
        test_array in[2], want;
        memset(in, 0, sizeof in);
        gn_array *x[2] = {NULL, NULL}, *y;
        test_take_text(&c, name, sizeof name);
        test_take_bytes(&c, v, sizeof v);
        for (int k = 0; k < v[5]; k++) test_take_array(&c, &in[k]);
        test_take_array(&c, &want);
        if (TEST_THREAD_SANITIZER && i % 5 != 0) continue;
        // Some only on a driver that runs on the CPU and compiles for each length.
        if (test_on_vulkan() && v[5] == 1 && in[0].s.rank == 1 && in[0].n > (i % 8 == 0 ? 20000 : i % 3 == 0 ? 64 : 16)) continue;
        if (test_on_vulkan() && in[0].n > 200000) continue;
        gn_scope_begin(g);
        for (int k = 0; k < v[5]; k++) x[k] = gn_array_from(g, in[k].t, in[k].s, in[k].data);
        y = one_axis(name, view_of(x[0], v[0]), v + 1);
        if (y == NULL && gn_status_get(g) == GN_OK) y = two_axes(name, view_of(x[0], v[0]), v + 1);
        if (y == NULL && gn_status_get(g) == GN_OK) y = other(g, name, view_of(x[0], v[0]), x[1], v + 1);
        bool wide = in[0].t == GN_F64 || in[0].t == GN_C128;
        double error = distance(y, &want);
        if (!(error < (wide ? 2e-15 : 1e-6)) || !same_shape(y, &want.s)) {
            print_error("case %d: %s %s, view %d, %d %d %d %d: error %g %s\n", (int)i, name, gn_dtype_name(in[0].t),
                        (int)v[0], (int)v[1], (int)v[2], (int)v[3], (int)v[4], error, gn_error(g));
            gn_error_clear(g);
            if (++bad == 20) fail();
        }
        gn_scope_end(g);
    }
    test_cases_close(&c);
    assert_int_equal(bad, 0);
}

// ---- mathematics

static double largest(gn_array *a) { return gn_item(gn_max(gn_abs(a), GN_ALL)); }
static double magnitude(gn_array *z) {
    return gn_item(gn_norm(gn_hypot(gn_real(z), gn_imag(z)), GN_ALL));
}
static gn_array *minus(gn_array *a, gn_array *b) {
    return gn_complex(gn_sub(gn_real(a), gn_real(b)), gn_sub(gn_imag(a), gn_imag(b)));
}
static gn_array *random_complex(gn_context *g, gn_dtype t, gn_shape s) {
    gn_array *re = gn_randn(g, t, s);
    return gn_complex(re, gn_randn(g, t, s));
}

static const int64_t lengths[] = {1, 2, 3, 7, 16, 30, 61, 64, 97, 128, 210, 256, 343, 512, 1000, 1009, 1024, 2187, 4096,
                                  7919, 8192, 10007, 16384, 32768, 59049, 65536, 65537, 100003, 131072, 262144};

static void test_round_trip(void **state) {
    gn_context *g = (gn_context *)*state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        if (TEST_THREAD_SANITIZER && lengths[i] > 65537) break;
        gn_scope_begin(g);
        int64_t n = lengths[i];
        gn_array *z = random_complex(g, GN_F32, GN_SHAPE(2, n)), *f = gn_fft(z, 0, -1, GN_FFT_BACKWARD);
        double norm = magnitude(z);
        assert_true(magnitude(minus(gn_ifft(f, 0, -1, GN_FFT_BACKWARD), z)) < 2e-6 * norm);
        // Parseval
        assert_true(fabs(magnitude(f) / sqrt((double)n) - norm) < 2e-6 * norm);
        gn_array *x = gn_randn(g, GN_F32, GN_SHAPE(2, n)), *r = gn_rfft(x, 0, -1, GN_FFT_ORTHO);
        assert_true(gn_item(gn_norm(gn_sub(gn_irfft(r, n, -1, GN_FFT_ORTHO), x), GN_ALL)) < 2e-6 * norm);
        // The spectrum of real numbers is half of the complex one.
        gn_array *full = gn_fft(gn_complex(x, gn_zeros_like(x)), 0, -1, GN_FFT_ORTHO);
        assert_true(magnitude(minus(gn_slice(full, -1, 0, n / 2 + 1, 1), r)) < 2e-6 * norm);
        assert_true(magnitude(minus(gn_fft(x, 0, -1, GN_FFT_ORTHO), full)) < 2e-6 * norm);
        gn_scope_end(g);
    }
}

// Every length, at a few frequencies against the sum that defines them.
static void test_every_length(void **state) {
    gn_context *g = (gn_context *)*state;
    static float x[2 * 2048], y[2 * 2048];
    uint32_t seed = 1;
    for (int n = 1; n <= 2048; n += TEST_THREAD_SANITIZER ? 7 : 1) {
        double norm = 0.0, power = 0.0;
        for (int i = 0; i < 2 * n; i++) {
            seed = seed * 1664525u + 1013904223u;
            x[i] = (float)(int32_t)seed * 4.6566129e-10f;
            norm += (double)x[i] * x[i];
        }
        gn_scope_begin(g);
        gn_array *f = gn_fft(gn_array_from(g, GN_C64, GN_SHAPE(n), x), 0, 0, GN_FFT_BACKWARD);
        assert_int_equal(gn_read(f, y, (size_t)n * 8), GN_OK);
        gn_scope_end(g);
        for (int i = 0; i < 2 * n; i++) power += (double)y[i] * y[i];
        assert_true(fabs(power / ((double)n * norm) - 1.0) < 2e-6);
        for (int t = 0; t < 4; t++) {
            int k = (int)((seed >> 8) % (unsigned)n + (unsigned)(t * (n / 4 + 1))) % n;
            double re = 0.0, im = 0.0;
            for (int j = 0; j < n; j++) {
                double angle = -6.283185307179586 * (double)((int64_t)j * k % n) / n, c = cos(angle), s = sin(angle);
                re += x[2 * j] * c - x[2 * j + 1] * s;
                im += x[2 * j] * s + x[2 * j + 1] * c;
            }
            double error = hypot(y[2 * k] - re, y[2 * k + 1] - im) / sqrt(norm);
            if (!(error < 2e-6)) fail_msg("%d points, frequency %d: error %g", n, k, error);
        }
    }
}

static void test_linear_and_shift(void **state) {
    gn_context *g = (gn_context *)*state;
    for (size_t i = 2; i < 20; i++) {
        gn_scope_begin(g);
        int64_t n = lengths[i];
        gn_array *x = gn_randn(g, GN_F64, GN_SHAPE(n)), *y = gn_randn(g, GN_F64, GN_SHAPE(n));
        gn_array *sum = gn_fft(gn_add(x, gn_mul_s(y, 3.0)), 0, 0, GN_FFT_BACKWARD);
        gn_array *fx = gn_fft(x, 0, 0, GN_FFT_BACKWARD), *fy = gn_fft(y, 0, 0, GN_FFT_BACKWARD);
        gn_array *other_sum =
            gn_complex(gn_add(gn_real(fx), gn_mul_s(gn_real(fy), 3.0)), gn_add(gn_imag(fx), gn_mul_s(gn_imag(fy), 3.0)));
        assert_true(magnitude(minus(sum, other_sum)) < 1e-14 * magnitude(sum));
        // A shift of the signal turns the spectrum: |f| stays, and so does what is turned back.
        gn_array *two[2];
        two[0] = gn_slice(x, 0, 1, n, 1);
        two[1] = gn_slice(x, 0, 0, 1, 1);
        gn_array *moved = gn_fft(gn_concat(two, 2, 0), 0, 0, GN_FFT_BACKWARD);
        gn_array *turn = gn_mul_s(gn_arange(g, GN_F64, 0.0, (double)n, 1.0), -6.283185307179586 / (double)n);
        gn_array *c = gn_cos(turn), *s = gn_sin(turn), *mr = gn_real(moved), *mi = gn_imag(moved);
        gn_array *back = gn_complex(gn_sub(gn_mul(mr, c), gn_mul(mi, s)), gn_add(gn_mul(mr, s), gn_mul(mi, c)));
        assert_true(magnitude(minus(back, fx)) < 1e-12 * magnitude(fx));
        gn_scope_end(g);
    }
}

// Zeros and constants have spectra that are exactly zero where they should be.
static void test_exact(void **state) {
    gn_context *g = (gn_context *)*state;
    // The CPU sums the last ones.
    static const int64_t smooth[] = {1,    2,    4,    6,  7,  9,  11, 13, 16, 35, 77, 256, 1000,
                                     1001, 2197, 4096, 15, 17, 18, 24, 31, 34, 60, 61, 62,  512};
    const size_t count = test_on_vulkan() ? 16 : sizeof smooth / sizeof smooth[0];
    for (size_t i = 0; i < count; i++) {
        gn_scope_begin(g);
        int64_t n = smooth[i];
        gn_array *one = gn_complex(gn_full(g, GN_F32, GN_SHAPE(n), 3.0), gn_full(g, GN_F32, GN_SHAPE(n), -1.0));
        gn_array *f = gn_fft(one, 0, 0, GN_FFT_BACKWARD);
        if (n > 1) {
            assert_true(largest(gn_real(gn_slice(f, 0, 1, n, 1))) == 0.0);
            assert_true(largest(gn_imag(gn_slice(f, 0, 1, n, 1))) == 0.0);
        }
        assert_true(gn_item(gn_real(gn_slice(f, 0, 0, 1, 1))) == 3.0 * (double)n);
        // One row repeated along the axis, which is a view with a step of 0.
        gn_array *row = gn_complex(gn_arange(g, GN_F32, 0.0, 64.0, 1.0), gn_ones(g, GN_F32, GN_SHAPE(64)));
        f = gn_fft(gn_broadcast_to(row, GN_SHAPE(n, 64)), 0, 0, GN_FFT_BACKWARD);
        assert_true(largest(gn_abs(gn_sub(gn_at(f, 0), gn_mul_s(row, (double)n)))) == 0.0);
        if (n > 1) assert_true(largest(gn_abs(gn_slice(f, 0, 1, n, 1))) == 0.0);
        gn_array *zero = gn_fft(gn_zeros(g, GN_F32, GN_SHAPE(n)), 0, 0, GN_FFT_BACKWARD);
        assert_true(largest(gn_real(zero)) == 0.0 && largest(gn_imag(zero)) == 0.0);
        gn_scope_end(g);
    }
}

// Convolved lengths know constants too.
static void test_exact_primes(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t primes[] = {17, 31, 34, 97, 509, 1009, 2018, 7919};
    if (test_on_vulkan()) skip();
    for (size_t i = 0; i < sizeof primes / sizeof primes[0]; i++)
        for (int real = 0; real < 2; real++) {
            gn_scope_begin(g);
            int64_t n = primes[i];
            gn_array *x = gn_full(g, real ? GN_F64 : GN_F32, GN_SHAPE(3, n), 3.0);
            gn_array *f = real ? gn_rfft(x, 0, -1, GN_FFT_BACKWARD)
                               : gn_ifft(gn_complex(x, x), 0, -1, GN_FFT_FORWARD);
            gn_array *rest = gn_slice(f, -1, 1, GN_NONE, 1), *first = gn_slice(f, -1, 0, 1, 1);
            if (!(largest(gn_real(rest)) == 0.0 && largest(gn_imag(rest)) == 0.0))
                fail_msg("%d points, kind %d: %g", (int)n, real, largest(gn_real(rest)));
            assert_true(gn_item(gn_min(gn_real(first), GN_ALL)) == 3.0 * (double)n);
            assert_true(gn_item(gn_max(gn_imag(first), GN_ALL)) == (real ? 0.0 : 3.0 * (double)n));
            gn_array *zero = gn_fft(gn_zeros(g, GN_F32, GN_SHAPE(n)), 0, 0, GN_FFT_BACKWARD);
            assert_true(largest(gn_real(zero)) == 0.0 && largest(gn_imag(zero)) == 0.0);
            gn_scope_end(g);
        }
}

// One NaN or infinity makes all of its line's result NaN, and nothing of its neighbours'. `kind`: complex forward,
// inverse padded with zeros, real forward, inverse, back to real.
TEST_UNWATCHED static void check_not_finite(gn_context *g, gn_dtype t, int64_t n, int kind, bool columns) {
    enum { LINES = 21 };
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    const int64_t m = kind == 4 ? n / 2 + 1 : kind == 1 ? n - n / 3 : n;
    const int parts = kind == 2 ? 1 : 2, axis = columns ? 0 : 1;
    double *x[2];
    bool spoilt[LINES];
    for (int k = 0; k < 2; k++) {
        x[k] = (double *)malloc(sizeof(double) * (size_t)(m * LINES));
        if (x[k] == NULL) fail_msg("out of memory");
        for (int64_t i = 0; i < m * LINES; i++) x[k][i] = (double)draw(2048) / 1024.0 - 1.0;
    }
    for (int64_t l = 0; l < LINES; l++) {
        int64_t at = (int64_t)draw((uint32_t)m), part = draw((uint32_t)parts);
        if (l == 3) at = 0;
        if (l == 4) at = m - 1;
        if (l == 5) at = n / 4 < m ? n / 4 : 0;
        spoilt[l] = l % 4 != 0;
        if (spoilt[l]) x[part][columns ? at * LINES + l : l * m + at] = bad[draw(3)];
        // As in NumPy the imaginary parts of the ends are ignored.
        if (kind == 4 && part == 1 && (at == 0 || 2 * at == n)) spoilt[l] = false;
    }
    gn_scope_begin(g);
    gn_shape s = columns ? GN_SHAPE(m, LINES) : GN_SHAPE(LINES, m);
    gn_array *a = gn_cast(gn_array_from(g, GN_F64, s, x[0]), t), *b = gn_cast(gn_array_from(g, GN_F64, s, x[1]), t), *y;
    gn_array *z = parts == 2 ? gn_complex(a, b) : a;
    switch (kind) {
    case 0: y = gn_fft(z, 0, axis, GN_FFT_BACKWARD); break;
    case 1: y = gn_ifft(z, n, axis, GN_FFT_BACKWARD); break;
    case 2: y = gn_rfft(z, 0, axis, GN_FFT_BACKWARD); break;
    case 3: y = gn_ifft(z, 0, axis, GN_FFT_ORTHO); break;
    default: y = gn_irfft(z, n, axis, GN_FFT_BACKWARD); break;
    }
    gn_array *re = gn_isnan(gn_real(y)), *im = kind == 4 ? re : gn_isnan(gn_imag(y));
    const gn_axes along = axis;
    uint8_t all[LINES], any[LINES];
    assert_int_equal(gn_read(gn_all(gn_logical_and(re, im), along), all, sizeof all), GN_OK);
    assert_int_equal(gn_read(gn_any(gn_logical_or(re, im), along), any, sizeof any), GN_OK);
    for (int l = 0; l < LINES; l++)
        if (all[l] != spoilt[l] || any[l] != spoilt[l])
            fail_msg("%s, %lld points, kind %d, line %d of %s: %s", gn_dtype_name(t), (long long)n, kind, l,
                     columns ? "columns" : "rows", spoilt[l] ? "not all NaN" : "NaN");
    gn_scope_end(g);
    free(x[0]);
    free(x[1]);
}

static void test_not_finite(void **state) {
    gn_context *g = (gn_context *)*state;
    static const int64_t sizes[] = {2, 3, 4, 5, 8, 12, 16, 17, 31, 60, 64, 67, 128, 256, 331, 1000, 1024, 4096, 5003, 8192};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int kind = 0; kind < 5; kind++)
            for (int form = 0; form < 4; form++) {
                if (test_on_vulkan() && form > 1) continue;
                if ((test_on_vulkan() || TEST_THREAD_SANITIZER) && (i + (size_t)kind + (size_t)form) % 3 != 0) continue;
                check_not_finite(g, form > 1 ? GN_F64 : GN_F32, sizes[i], kind, form % 2 != 0);
            }
    // Of length 1 what is there, infinite or not.
    const double one[] = {-INFINITY, INFINITY, 1.5, -2.0};
    for (int kind = 0; kind < 5; kind++) {
        gn_array *x = gn_array_from(g, GN_F64, GN_SHAPE(4, 1), one);
        x = gn_cast(x, kind % 2 ? GN_F64 : GN_F32);
        gn_array *y = kind == 0   ? gn_fft(x, 0, -1, GN_FFT_BACKWARD)
                      : kind == 1 ? gn_ifft(gn_cast(x, GN_C128), 1, 1, GN_FFT_ORTHO)
                      : kind == 2 ? gn_rfft(x, 0, -1, GN_FFT_FORWARD)
                      : kind == 3 ? gn_irfft(gn_cast(x, GN_C128), 1, -1, GN_FFT_BACKWARD)
                                  : gn_fft2(gn_expand_dims(x, -1), GN_FFT_BACKWARD);
        expect_values(gn_ravel(kind == 3 ? y : gn_real(y)), -INFINITY, INFINITY, 1.5, -2.0);
        if (kind != 3) expect_values(gn_ravel(gn_imag(y)), 0, 0, 0, 0);
    }
    gn_array *leaf = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(2, 1), (float[]){1, 2}), true);
    gn_backward(gn_sum(gn_real(gn_mul_s(gn_fft(leaf, 0, -1, GN_FFT_BACKWARD), 3)), GN_ALL));
    expect_values(gn_ravel(gn_grad(leaf)), 3, 3);
    // Along both axes: everything.
    gn_array *x = gn_where(gn_eq_s(gn_reshape(gn_arange(g, GN_I32, 0, 1024, 1), GN_SHAPE(32, 32)), 333.0),
                           gn_scalar(g, GN_F32, (double)INFINITY), gn_ones(g, GN_F32, GN_SHAPE(1)));
    gn_array *y = gn_fft2(gn_complex(x, gn_zeros_like(x)), GN_FFT_BACKWARD);
    expect_values(gn_all(gn_and(gn_isnan(gn_real(y)), gn_isnan(gn_imag(y))), GN_ALL), 1);
}

// Smaller dtypes are what their float32 values are.
static void test_dtypes(void **state) {
    gn_context *g = (gn_context *)*state;
    static const gn_dtype types[] = {GN_F16, GN_BF16, GN_I32, GN_U8, GN_I8, GN_BOOL, GN_I64, GN_U32};
    gn_array *x = gn_mul_s(gn_rand(g, GN_F32, GN_SHAPE(3, 45)), 100.0);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        gn_array *a = gn_cast(x, types[i]), *b = gn_cast(a, GN_F32);
        gn_array *f = gn_fft(a, 0, -1, GN_FFT_BACKWARD), *h = gn_fft(b, 0, -1, GN_FFT_BACKWARD);
        assert_int_equal(gn_dtype_of(f), GN_C64);
        assert_true(magnitude(minus(f, h)) == 0.0);
        assert_true(magnitude(minus(gn_rfft(a, 64, 0, GN_FFT_ORTHO), gn_rfft(b, 64, 0, GN_FFT_ORTHO))) == 0.0);
        gn_array *c = gn_dct(a, 2, 0, -1, GN_FFT_ORTHO), *d = gn_dct(b, 2, 0, -1, GN_FFT_ORTHO);
        assert_int_equal(gn_dtype_of(c), GN_F32);
        assert_true(largest(gn_sub(c, d)) == 0.0);
        gn_array *s = gn_irfft(a, 20, -1, GN_FFT_BACKWARD), *t = gn_irfft(b, 20, -1, GN_FFT_BACKWARD);
        assert_true(largest(gn_sub(s, t)) == 0.0);
    }
    // Of two dtypes the wider one's precision: a sum of whole numbers and thirds, 1 + 2 + ... + 100 of them.
    double thirds[100];
    float whole[400] = {0}; // of complex numbers too
    for (int i = 0; i < 100; i++) thirds[i] = 1.0 / 3.0;
    for (int i = 0; i < 100; i++) whole[i] = (float)(i + 1);
    gn_array *t = gn_array_from(g, GN_F64, GN_SHAPE(100), thirds), *w = gn_array_from(g, GN_F32, GN_SHAPE(100), whole), *y;
    gn_array *const pairs[][2] = {{t, w}, {t, gn_cast(w, GN_I32)}, {gn_cast(t, GN_C128), w}, {gn_cast(w, GN_C64), t}};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            y = gn_abs(gn_index(gn_convolve(pairs[i][k], pairs[i][1 - k], GN_CONV_FULL), "99"));
            assert_int_equal(gn_dtype_of(y), GN_F64);
            assert_true(fabs(gn_item(y) - 5050.0 / 3.0) < 1e-10);
        }
}

// Relative distance of y, brought from another context, from z.
static double apart_by(gn_array *y, gn_array *z) {
    y = gn_cast(brought(gn_context_of(z), y), GN_C128);
    return magnitude(minus(y, z)) / magnitude(z);
}

// Transforms of float32 or float64 against the CPU's in float64, of rows and of columns.
static void check_length(gn_context *g, gn_context *cpu, gn_dtype t, int64_t n) {
    const double tolerance = t == GN_F32 ? 4e-7 : 1e-15;
    gn_array *re = gn_randn(g, t, GN_SHAPE(3, n)), *z = gn_complex(re, gn_randn(g, t, GN_SHAPE(3, n)));
    gn_array *wide = gn_cast(brought(cpu, z), GN_C128), *half = gn_rfft(gn_real(wide), 0, -1, GN_FFT_BACKWARD);
    gn_array *r = gn_rfft(re, 0, -1, GN_FFT_BACKWARD);
    if (t == GN_F64 || n < 16384)
        assert_true(apart_by(gn_fft(z, 0, -1, GN_FFT_BACKWARD), gn_fft(wide, 0, -1, GN_FFT_BACKWARD)) < tolerance);
    assert_true(apart_by(r, half) < tolerance);
    if (n != 62) // a convolution
        assert_true(gn_item(gn_norm(gn_imag(gn_slice(r, -1, 0, GN_NONE, n / 2)), GN_ALL)) == 0.0);
    if (t == GN_F32) return;
    assert_true(apart_by(gn_ifft(gn_transpose(z), 0, 0, GN_FFT_ORTHO), gn_ifft(gn_transpose(wide), 0, 0, GN_FFT_ORTHO)) < tolerance);
    assert_true(apart_by(gn_irfft(r, n, -1, GN_FFT_BACKWARD), gn_cast(gn_real(wide), GN_C128)) < tolerance);
}

// The kernels that a device made of CPU threads leaves alone unless pipelines are waited for: lengths with wide
// butterflies, folds of pairs in registers, passes at fixed steps.
static void test_kernels_of_lengths(void **state) {
    (void)state;
    static const int64_t sizes[] = {128, 512, 1000, 4096, 8192, 16384}, doubles[] = {62, 1000, 1232, 4096, 16384};
    if (!test_on_vulkan()) skip();
    gn_options o = test_options(), host = test_options();
    o.vulkan_flags |= GN_VULKAN_NO_ASYNC_PIPELINES;
    host.backend = GN_BACKEND_CPU;
    gn_context *g = test_open_with(&o), *cpu = test_open_with(&host);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t n = sizes[i];
        gn_scope_begin(cpu);
        gn_scope_begin(g);
        check_length(g, cpu, GN_F32, n);
        for (int kind = 0; kind < 5; kind += n > 1000 ? 2 : 1) check_not_finite(g, GN_F32, n, kind, kind % 2 != 0);
        if (i < sizeof doubles / sizeof doubles[0]) check_length(g, cpu, GN_F64, doubles[i]);
        gn_scope_end(g);
        gn_scope_end(cpu);
    }
    assert_int_equal(gn_status_get(g), GN_OK);
    assert_int_equal(gn_status_get(cpu), GN_OK);
    gn_close(cpu);
    test_close(g);
}

// ---- gradients

typedef struct step {
    int kind;
    int64_t n;
} step;

// A weighted sum of squares of whatever the transform gives.
// Rows of a batch against each of them by itself: numbers of rows around those that fill vectors; dense, spaced,
// repeated and reversed rows.
static void rows_of(gn_context *g, gn_dtype t, int64_t n, int64_t rows, int view) {
    gn_scope_begin(g);
    gn_array *x = random_complex(g, t, GN_SHAPE(view == 2 ? 1 : rows, n + (view == 1 ? 3 : 0)));
    if (view == 1) x = gn_slice(x, 1, 2, n + 2, 1);
    if (view == 2) x = gn_broadcast_to(x, GN_SHAPE(rows, n));
    if (view == 3) x = gn_flip(x, 0);
    gn_array *y = gn_fft(x, 0, 1, GN_FFT_BACKWARD), *z = gn_ifft(x, 0, 1, GN_FFT_BACKWARD);
    const double tolerance = (t == GN_F32 ? 4e-7 : 1e-15) * sqrt((double)n) * 4.0;
    for (int64_t i = 0; i < rows; i += rows > 8 ? 7 : 1) {
        gn_array *row = gn_copy(gn_slice(x, 0, i, i + 1, 1));
        assert_true(magnitude(minus(gn_slice(y, 0, i, i + 1, 1), gn_fft(row, 0, 1, GN_FFT_BACKWARD))) <= tolerance);
        assert_true(magnitude(minus(gn_slice(z, 0, i, i + 1, 1), gn_ifft(row, 0, 1, GN_FFT_BACKWARD))) <= tolerance);
    }
    gn_scope_end(g);
}

static void test_short_rows(void **state) {
    gn_context *g = (gn_context *)*state;
    if (test_on_vulkan()) return; // the others see to its kernels
    static const int64_t counts[] = {1, 5, 8, 16, 17, 24, 25, 41};
    for (int64_t n = 1; n <= 18; n++)
        for (int i = 0; i < 8; i++) {
            rows_of(g, GN_F32, n, counts[i], i % 4);
            rows_of(g, GN_F32, n, counts[i], 0);
            rows_of(g, GN_F64, n, counts[i], (int)(i + n) % 4);
        }
    // Long enough that rows are fetched early, and in place along the second axis.
    for (int64_t n = 512; n <= 2048; n *= 2) rows_of(g, GN_F32, n, (1 << 18) / n + 3, 0);
    gn_scope_begin(g);
    gn_array *x = random_complex(g, GN_F32, GN_SHAPE(32, 16)), *y = gn_fft2(x, GN_FFT_BACKWARD);
    gn_array *want = gn_fft(gn_fft(x, 0, 0, GN_FFT_BACKWARD), 0, 1, GN_FFT_BACKWARD);
    assert_true(magnitude(minus(y, want)) < 1e-3);
    gn_scope_end(g);
}

static gn_array *energy(gn_context *g, gn_array *y) {
    if (y == NULL) return NULL;
    bool is_complex = gn_dtype_of(y) == GN_C64 || gn_dtype_of(y) == GN_C128;
    gn_array *w = gn_reshape(gn_linspace(g, GN_F64, 0.5, 2.0, gn_size(y)), gn_shape_of(y));
    gn_array *e = gn_mul(w, gn_square(is_complex ? gn_real(y) : y));
    if (is_complex) e = gn_add(e, gn_mul(gn_mul(w, w), gn_mul(gn_imag(y), gn_add_s(gn_real(y), 0.3))));
    return gn_sum(e, GN_ALL);
}

static gn_array *transformed(gn_context *g, gn_array *const *in, int count, void *user) {
    const step *s = (const step *)user;
    gn_array *x = in[0], *z = count > 1 && s->kind < 12 ? gn_complex(in[0], in[1]) : x, *y = NULL;
    switch (s->kind) {
    case 0: y = gn_fft(z, s->n, 0, GN_FFT_BACKWARD); break;
    case 1: y = gn_ifft(z, s->n, -1, GN_FFT_BACKWARD); break;
    case 2: y = gn_irfft(z, s->n, -1, GN_FFT_BACKWARD); break;
    case 3: y = gn_hfft(z, s->n, 0, GN_FFT_ORTHO); break;
    case 4: y = gn_fft2(z, GN_FFT_ORTHO); break;
    case 5: y = gn_irfftn(z, NULL, NULL, 0, GN_FFT_FORWARD); break;
    case 6: y = gn_fftshift(gn_conj(z), GN_ALL); break;
    case 7: y = gn_ifftn(gn_transpose(z), NULL, NULL, 2, GN_FFT_BACKWARD); break;
    case 8: y = gn_rfft(x, s->n, -1, GN_FFT_BACKWARD); break;
    case 9: y = gn_ihfft(x, s->n, 0, GN_FFT_BACKWARD); break;
    case 10: y = gn_rfftn(x, NULL, NULL, 0, GN_FFT_ORTHO); break;
    case 11: y = gn_angle(z); break;
    case 12: y = gn_convolve(gn_ravel(in[0]), gn_ravel(in[1]), (gn_convolution)s->n); break;
    case 13: y = gn_fftconvolve(in[0], in[1], (gn_convolution)s->n); break;
    case 14: y = gn_correlate(gn_ravel(in[0]), gn_ravel(in[1]), (gn_convolution)s->n); break;
    case 23: y = gn_fftn(gn_complex(in[0], in[1]), NULL, NULL, 0, GN_FFT_BACKWARD); break;
    case 24: y = gn_ifft2(gn_complex(in[0], in[1]), GN_FFT_FORWARD); break;
    case 25: y = gn_ifftshift(gn_complex(in[0], in[1]), -1); break;
    case 26: y = gn_convolve2d(in[0], gn_slice(in[1], 0, 0, 3, 1), (gn_convolution)s->n); break;
    case 27: y = gn_fft(x, s->n, 0, GN_FFT_ORTHO); break; // real input
    case 28: y = gn_fft(gn_transpose(gn_flip(gn_complex(in[0], in[1]), 0)), 0, 0, GN_FFT_BACKWARD); break;
    case 31:
    case 32:
    case 33:
    case 34: y = gn_idct(x, s->kind - 30, s->n, 0, GN_FFT_BACKWARD); break;
    case 35:
    case 36:
    case 37:
    case 38: y = gn_idst(x, s->kind - 34, s->n, -1, GN_FFT_ORTHO); break;
    default: {
        int type = (s->kind - 15) % 4 + 1;
        y = s->kind < 19 ? gn_dct(x, type, s->n, -1, GN_FFT_ORTHO) : gn_dst(x, type, s->n, 0, GN_FFT_BACKWARD);
    }
    }
    return energy(g, y);
}

static void test_gradients(void **state) {
    gn_context *g = (gn_context *)*state;
    static const step steps[] = {{0, 0}, {0, 3}, {0, 7}, {1, 0}, {1, 8}, {1, 4}, {2, 0}, {2, 7}, {2, 12}, {2, 5}, {3, 0},
                                 {3, 9}, {4, 0}, {5, 0}, {6, 0}, {7, 0}, {8, 0}, {8, 9}, {8, 3}, {9, 0}, {9, 8}, {10, 0},
                                 {11, 0}, {12, 0}, {12, 1}, {12, 2}, {13, 0}, {13, 1}, {14, 1}, {15, 0}, {16, 0}, {17, 0},
                                 {18, 0}, {19, 0}, {20, 0}, {21, 7}, {22, 3}, {23, 0}, {24, 0}, {25, 0}, {26, 0}, {26, 1},
                                 {26, 2}, {27, 0}, {27, 9}, {28, 0}, {12, 0}, {13, 2}, {14, 0}, {14, 2}, {31, 0},
                                 {32, 7}, {33, 0}, {34, 3}, {35, 0}, {36, 0}, {37, 9}, {38, 0}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        gn_scope_begin(g);
        step s = steps[i];
        gn_array *in[2];
        in[0] = gn_requires_grad(gn_randn(g, GN_F64, GN_SHAPE(5, 6)), true);
        in[1] = gn_requires_grad(gn_randn(g, GN_F64, GN_SHAPE(5, 6)), true);
        bool one = (s.kind >= 8 && s.kind <= 10) || (s.kind >= 15 && s.kind <= 22) || s.kind == 27 || s.kind > 30;
        double error = gn_gradcheck(transformed, in, one ? 1 : 2, 0.0, &s);
        if (!(error < 1e-6)) fail_msg("gradient of transform %d, n = %d: error %g %s", s.kind, (int)s.n, error, gn_error(g));
        gn_scope_end(g);
    }
}

// PyTorch: the derivative of the angle is 0 at 0 and of real numbers; elsewhere (-im, re) / (re^2 + im^2).
static void test_angle_at_zero(void **state) {
    gn_context *g = (gn_context *)*state;
    static const float re[4] = {0, 3, -0.0f, -1}, im[4] = {0, 4, 0, 0};
    for (int real = 0; real < 2; real++) {
        gn_scope_begin(g);
        gn_array *a = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(4), re), true);
        gn_array *b = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(4), im), true);
        assert_int_equal(gn_backward(gn_sum(gn_angle(real ? a : gn_complex(a, b)), GN_ALL)), GN_OK);
        static const float da[2][4] = {{0, -4.0f / 25, 0, 0}, {0}}, db[4] = {0, 3.0f / 25, 0, -1};
        float got[4];
        assert_int_equal(gn_read(gn_grad(a), got, sizeof got), GN_OK);
        for (int i = 0; i < 4; i++) assert_true(fabsf(got[i] - da[real][i]) < 1e-6f);
        assert_int_equal(real ? GN_OK : gn_read(gn_grad(b), got, sizeof got), GN_OK);
        for (int i = 0; i < 4 && !real; i++) assert_true(fabsf(got[i] - db[i]) < 1e-6f);
        gn_scope_end(g);
    }
}

// The gradient of a gradient.
static void test_second_gradient(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_requires_grad(gn_randn(g, GN_F64, GN_SHAPE(12)), true), *d = NULL, *dd = NULL;
    gn_array *f = gn_rfft(x, 0, 0, GN_FFT_ORTHO);
    gn_array *p = gn_add(gn_square(gn_real(f)), gn_square(gn_imag(f)));
    gn_array *loss = gn_sum(gn_square(p), GN_ALL);
    assert_int_equal(gn_gradients(loss, &x, 1, true, &d), GN_OK);
    assert_int_equal(gn_gradients(gn_sum(gn_square(d), GN_ALL), &x, 1, false, &dd), GN_OK);
    // p^2 is of degree 4, so its gradient is of degree 3 and that of the squares of degree 5.
    double inner = gn_item(gn_sum(gn_mul(d, x), GN_ALL)), squares = gn_item(gn_sum(gn_square(d), GN_ALL));
    assert_true(fabs(inner - 4.0 * gn_item(loss)) < 1e-10 * fabs(inner));
    assert_true(fabs(gn_item(gn_sum(gn_mul(dd, x), GN_ALL)) - 6.0 * squares) < 1e-9 * squares);
}

// Sums of integers wrap, directly and by FFT; of 64 bits they are exact where they are summed directly.
static void test_convolve_integers(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int64_t n = 20; n <= 60; n += 40)
        GN_SCOPE(g) {
            gn_array *a = gn_full(g, GN_U8, GN_SHAPE(n), 200), *b = gn_full(g, GN_U8, GN_SHAPE(n), 77);
            assert_int_equal(gn_item_int(gn_index(gn_convolve(a, b, GN_CONV_VALID), "0")), n * 200 * 77 % 256);
            a = gn_full(g, GN_I32, GN_SHAPE(n), 30000);
            b = gn_full(g, GN_I32, GN_SHAPE(n), -29999);
            assert_int_equal(gn_item_int(gn_index(gn_convolve(a, b, GN_CONV_VALID), "0")), (int32_t)(uint32_t)(-n * 30000 * 29999));
        }
    gn_array *a = gn_full_int(g, GN_I64, GN_SHAPE(3), ((int64_t)1 << 61) + 1), *b = gn_full_int(g, GN_I64, GN_SHAPE(2), 3);
    const int64_t once = (int64_t)(3 * (((uint64_t)1 << 61) + 1)), twice = (int64_t)(6 * (((uint64_t)1 << 61) + 1));
    int64_t have[4];
    assert_int_equal(gn_read(gn_convolve(a, b, GN_CONV_FULL), have, sizeof have), GN_OK);
    assert_true(have[0] == once && have[1] == twice && have[2] == twice && have[3] == once);
}

// Long signals and short kernels of both float dtypes, every second element of which is read.
static void test_convolve_long(void **state) {
    enum { N = 1500 };
    static const int64_t kernels[] = {1, 3, 9, 32};
    gn_context *g = (gn_context *)*state;
    static float data[2 * N], kernel[64], have[N + 31];
    for (int i = 0; i < 2 * N; i++) data[i] = (float)(i * 37 % 101) - 50.0f;
    for (int i = 0; i < 64; i++) kernel[i] = (float)(i * 11 % 17) - 7.5f;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
        for (int d = 0; d < 2; d++)
            GN_SCOPE(g) {
                const int64_t m = kernels[k];
                gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(2 * N), data), *b = gn_array_from(g, GN_F32, GN_SHAPE(2 * m), kernel);
                if (d) a = gn_eval(gn_cast(a, GN_F64)), b = gn_eval(gn_cast(b, GN_F64));
                gn_array *y = gn_convolve(gn_index(a, "::2"), gn_index(b, "::-2"), GN_CONV_FULL);
                assert_int_equal(gn_dtype_of(y), d ? GN_F64 : GN_F32);
                assert_int_equal(gn_read(gn_cast(y, GN_F32), have, (size_t)(N + m - 1) * sizeof(float)), GN_OK);
                for (int64_t i = 0; i < N + m - 1; i++) { // halves, all of which float32 holds
                    double sum = 0;
                    for (int64_t j = 0; j < m; j++)
                        if (i >= j && i - j < N) sum += (double)data[2 * (i - j)] * (double)kernel[2 * m - 1 - 2 * j];
                    assert_true((double)have[i] == sum);
                }
            }
}

// ---- misuse and memory

static void test_errors(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *x = gn_ones(g, GN_F32, GN_SHAPE(3, 4)), *z = gn_complex(x, x);
    assert_null(gn_fft(x, -1, 0, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_fft: n is -1, it must be positive, or 0 for the axis's own");
    assert_null(gn_fft(x, 0, 2, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_fft: axis 2 is out of bounds for array of rank 2");
    assert_null(gn_rfft(z, 0, 0, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_DTYPE, "gn_rfft: the input must be real, it is complex64");
    assert_null(gn_fft(gn_scalar(g, GN_F32, 1.0), 0, 0, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_SHAPE, "gn_fft: an array of rank 0 has no axis");
    assert_null(gn_fft(gn_zeros(g, GN_F32, GN_SHAPE(2, 0)), 0, -1, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_SHAPE, "gn_fft: axis 1 of size 0 is too short");
    assert_null(gn_dct(x, 5, 0, 0, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_dct: type 5 is not in 1..4");
    assert_null(gn_convolve(x, x, GN_CONV_FULL));
    expect_error(g, GN_ERROR_SHAPE, "gn_convolve: shapes (3,4) and (3,4) are not 1-d");
    assert_null(gn_convolve(gn_ravel(x), gn_ravel(x), (gn_convolution)7));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_convolve: 7 is not a gn_convolution");
    assert_null(gn_convolve2d(gn_ones(g, GN_F32, GN_SHAPE(3, 9)), gn_ones(g, GN_F32, GN_SHAPE(5, 2)), GN_CONV_VALID));
    expect_error(g, GN_ERROR_SHAPE, "gn_convolve2d: neither operand covers the other on every axis");
    assert_null(gn_ifft(x, 0, 0, (gn_fft_norm)3));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_ifft: 3 is not a gn_fft_norm");
    assert_null(gn_fft2(gn_ravel(x), GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    const int twice[2] = {0, -2};
    assert_null(gn_fftn(x, NULL, twice, 2, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_fftn: axis 0 is given more than once");
    assert_null(gn_rfftn(z, NULL, NULL, 0, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_DTYPE, NULL);
    assert_null(gn_irfft(gn_slice(z, 1, 0, 1, 1), 0, 1, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_SHAPE, "gn_irfft: axis 1 of size 1 is too short");
    assert_null(gn_dct(x, 1, 1, 0, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_dct: type 1 needs two points or more");
    assert_null(gn_dst(z, 2, 0, 0, GN_FFT_BACKWARD));
    expect_error(g, GN_ERROR_DTYPE, NULL);
    assert_null(gn_fftshift(x, 2));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_fftfreq(g, GN_F32, 0, 1.0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_fftfreq: n is 0, it must be positive");
    assert_null(gn_fftfreq(g, GN_F32, 4, 0.0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_fftfreq: the spacing d is 0, it must not be 0 or NaN");
    assert_null(gn_rfftfreq(g, GN_I32, 4, 1.0));
    expect_error(g, GN_ERROR_DTYPE, NULL);
    expect_shape(gn_fft(gn_zeros(g, GN_F32, GN_SHAPE(0, 4)), 0, -1, GN_FFT_BACKWARD), 0, 4);
    expect_shape(gn_fft(gn_zeros(g, GN_F32, GN_SHAPE(2, 0)), 5, -1, GN_FFT_BACKWARD), 2, 5);
    assert_null(gn_fft(NULL, 0, 0, GN_FFT_BACKWARD));
}

static void use_everything(gn_context *g) {
    gn_scope_begin(g);
    gn_array *x = gn_ones(g, GN_F32, GN_SHAPE(3, 256));
    gn_irfft(gn_rfft(x, 0, -1, GN_FFT_BACKWARD), 0, -1, GN_FFT_BACKWARD);
    gn_fft(gn_complex(x, x), 31, -1, GN_FFT_BACKWARD);
    gn_fft2(x, GN_FFT_BACKWARD);
    gn_scope_end(g);
}

static void test_out_of_memory(void **state) {
    (void)state;
    test_most_allocations(use_everything);
}

// More plans than the cache holds.
static void test_plan_cache(void **state) {
    gn_context *g = (gn_context *)*state;
    const int64_t first = test_on_vulkan() || TEST_THREAD_SANITIZER ? 8 << 17 : 1 << 17; // two fill it there
    for (int pass = 0; pass < 2; pass++)
        for (int64_t n = first; n < 10 << 17; n += 1 << 17) {
            gn_scope_begin(g);
            gn_array *x = gn_ones(g, GN_F32, GN_SHAPE(n + 1));
            gn_array *y = gn_rfft(x, 0, 0, GN_FFT_BACKWARD);
            assert_true(fabs(gn_item(gn_real(gn_slice(y, 0, 0, 1, 1))) / (double)(n + 1) - 1.0) < 1e-5);
            gn_scope_end(g);
        }
    gn_memory_stats kept, left;
    gn_sync(g);
    gn_memory_get(g, &kept);
    gn_memory_trim(g);
    gn_memory_get(g, &left);
    if (test_on_vulkan()) return; // a device's tables stay
    assert_true(kept.host_used > left.host_used + (1 << 24));
    assert_true(left.host_used < 1 << 23);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_scipy),   GN_TEST(test_round_trip),      GN_TEST(test_every_length),   GN_TEST(test_linear_and_shift),
        GN_TEST(test_exact),   GN_TEST(test_exact_primes),    GN_TEST(test_not_finite),     GN_TEST(test_dtypes),
        cmocka_unit_test(test_kernels_of_lengths), GN_TEST(test_short_rows),
        GN_TEST(test_gradients), GN_TEST(test_angle_at_zero), GN_TEST(test_second_gradient),
        GN_TEST(test_convolve_integers),
        GN_TEST(test_convolve_long),
        GN_TEST(test_errors),  cmocka_unit_test(test_out_of_memory), GN_TEST(test_plan_cache)};
    return test_run(tests);
}
