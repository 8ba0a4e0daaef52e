// Arrays that a WebGPU device cannot bind as a whole: every job works on them in pieces, or leaves them to the CPU. The
// device is told to have smaller limits than any has, and every bind group is held against them. What it cannot allocate is
// refused in words.
#include "test.h"
#include "test_other.h"

#include <webgpu/webgpu.h>

enum { BINDING = 1 << 20, MOST = 1 << 23 }; // bytes of a buffer argument, of a buffer

static int larger; // buffer arguments than there may be

// The linker puts these in front of the library's own (-Wl,--wrap).
WGPUStatus __real_wgpuDeviceGetLimits(WGPUDevice device, WGPULimits *limits);
WGPUStatus __wrap_wgpuDeviceGetLimits(WGPUDevice device, WGPULimits *limits);
WGPUStatus __wrap_wgpuDeviceGetLimits(WGPUDevice device, WGPULimits *limits) {
    WGPUStatus status = __real_wgpuDeviceGetLimits(device, limits);
    limits->maxStorageBufferBindingSize = BINDING;
    limits->maxBufferSize = MOST;
    return status;
}

WGPUBindGroup __real_wgpuDeviceCreateBindGroup(WGPUDevice device, WGPUBindGroupDescriptor const *d);
WGPUBindGroup __wrap_wgpuDeviceCreateBindGroup(WGPUDevice device, WGPUBindGroupDescriptor const *d);
WGPUBindGroup __wrap_wgpuDeviceCreateBindGroup(WGPUDevice device, WGPUBindGroupDescriptor const *d) {
    for (size_t i = 0; i < d->entryCount; i++) larger += d->entries[i].size > BINDING;
    return __real_wgpuDeviceCreateBindGroup(device, d);
}

// Numbers between -1 and 1, or integers below 1000.
static gn_array *numbers(gn_context *g, gn_dtype t, int64_t rows, int64_t columns, uint32_t seed) {
    const int64_t n = rows * columns;
    float *x = (float *)malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = t == GN_F32 || t == GN_F16 ? (float)(int32_t)seed * 0x1p-31f : (float)(seed >> 8) * (1000 * 0x1p-24f);
        if (t != GN_F32 && t != GN_F16) x[i] = floorf(x[i]);
    }
    gn_array *a = gn_array_from(g, GN_F32, GN_SHAPE(rows, columns), x);
    free(x);
    return gn_eval(gn_cast(a, t));
}

enum { M = 700, N = 900 }; // 2.4 MiB of float32

static gn_array *matrix(gn_context *g, uint32_t seed) { return numbers(g, GN_F32, M, N, seed); }
static gn_array *places(gn_context *g, int64_t count, int64_t below) {
    return gn_cast(gn_mod(numbers(g, GN_I32, 1, count, 3), gn_full(g, GN_I32, GN_SHAPE(1), (double)below)), GN_I64);
}
static gn_array *flat(gn_array *a) { return gn_reshape(a, GN_SHAPE(-1)); }

static gn_array *chain(gn_context *g) { return gn_add(gn_mul(matrix(g, 1), matrix(g, 2)), numbers(g, GN_F32, 1, N, 3)); }
static gn_array *turned(gn_context *g) { return gn_copy(gn_transpose(matrix(g, 1))); }
static gn_array *backwards(gn_context *g) { return gn_add(gn_index(matrix(g, 1), "::-1, ::-1"), matrix(g, 2)); }
static gn_array *in_place(gn_context *g) {
    gn_array *a = matrix(g, 1);
    gn_assign(a, gn_add_s(gn_mul_s(a, 0.5), 1.0));
    gn_assign(gn_index(a, "100:, ::2"), gn_index(a, ":-100, 1::2"));
    return a;
}
static gn_array *halves(gn_context *g) {
    return gn_cast(gn_add(numbers(g, GN_F16, 2 * M, N, 1), numbers(g, GN_F16, 2 * M, N, 2)), GN_F32);
}
static gn_array *bytes(gn_context *g) {
    return gn_add(gn_cast(numbers(g, GN_I32, 2 * M, N, 1), GN_U8), gn_cast(numbers(g, GN_I32, 2 * M, N, 2), GN_U8));
}
static gn_array *total(gn_context *g) { return gn_sum(gn_square(matrix(g, 1)), GN_ALL); }
static gn_array *by_rows(gn_context *g) { return gn_max(matrix(g, 1), 1); }
static gn_array *by_columns(gn_context *g) { return gn_sum(matrix(g, 1), 0); }
static gn_array *largest(gn_context *g) { return gn_argmax(flat(matrix(g, 1)), 0); }
static gn_array *product(gn_context *g) { return gn_matmul(matrix(g, 1), gn_transpose(matrix(g, 2))); }
static gn_array *biased(gn_context *g) {
    return gn_relu(gn_add(gn_matmul(numbers(g, GN_F32, 2000, 30, 1), numbers(g, GN_F32, 30, 300, 2)), numbers(g, GN_F32, 1, 300, 3)));
}
static gn_array *deep(gn_context *g) { return gn_matmul(numbers(g, GN_F32, 3, 400000, 1), numbers(g, GN_F32, 400000, 2, 2)); }
static gn_array *vector(gn_context *g) { return gn_matmul(matrix(g, 1), numbers(g, GN_F32, N, 1, 2)); }
static gn_array *softened(gn_context *g) { return gn_softmax(matrix(g, 1), 1); }
static gn_array *long_row(gn_context *g) { return gn_log_softmax(flat(matrix(g, 1)), 0); }
static gn_array *running(gn_context *g) { return gn_cumsum(flat(matrix(g, 1)), 0); }
static gn_array *running_down(gn_context *g) { return gn_cumsum(matrix(g, 1), 0); }
static gn_array *sorted(gn_context *g) { return gn_sort(flat(matrix(g, 1)), 0, false); }
static gn_array *sorted_rows(gn_context *g) { return gn_argsort(matrix(g, 1), 1, true); }
static gn_array *smallest(gn_context *g) { return gn_sort(gn_topk(flat(matrix(g, 1)), 50, 0, NULL), 0, false); }
static gn_array *searched(gn_context *g) { return gn_searchsorted(gn_sort(flat(matrix(g, 2)), 0, false), flat(matrix(g, 1)), true); }
static gn_array *counted(gn_context *g) { return gn_bincount(flat(gn_cast(numbers(g, GN_I32, M, N, 1), GN_I64)), NULL, 0); }
static gn_array *taken(gn_context *g) { return gn_take(matrix(g, 1), flat(places(g, 500, M)), 0); }
static gn_array *taken_across(gn_context *g) { return gn_take(matrix(g, 1), flat(places(g, 500, N)), 1); }
static gn_array *taken_flat(gn_context *g) { return gn_take(flat(matrix(g, 1)), flat(places(g, 300000, 1000)), 0); }
static gn_array *scattered(gn_context *g) {
    gn_array *i = gn_reshape(places(g, (int64_t)M * N, 50), GN_SHAPE(M, N));
    return gn_scatter_add(gn_zeros(g, GN_F32, GN_SHAPE(50, N)), i, matrix(g, 1), 0);
}
static gn_array *masked(gn_context *g) { return gn_mask(matrix(g, 1), gn_gt(matrix(g, 1), gn_zeros(g, GN_F32, GN_SHAPE(1)))); }
static gn_array *transformed(gn_context *g) { return gn_real(gn_fft(gn_cast(matrix(g, 1), GN_C64), 0, 1, GN_FFT_BACKWARD)); }
static gn_array *transformed_long(gn_context *g) {
    return gn_imag(gn_rfft(flat(matrix(g, 1)), 0, 0, GN_FFT_BACKWARD));
}
static gn_array *drawn(gn_context *g) {
    gn_seed(g, 5);
    return gn_rand(g, GN_F32, GN_SHAPE(M, N));
}
static gn_array *joined(gn_context *g) {
    gn_array *parts[2];
    parts[0] = matrix(g, 1);
    parts[1] = matrix(g, 2);
    return gn_concat(parts, 2, 1);
}
static gn_array *longs(gn_context *g) { return gn_copy(gn_transpose(gn_cast(numbers(g, GN_I32, M, N, 1), GN_I64))); }
static gn_array *convolved(gn_context *g) {
    gn_array *x = gn_reshape(numbers(g, GN_F32, 6, 300 * 200, 1), GN_SHAPE(2, 3, 300, 200));
    return gn_conv2d(x, gn_reshape(numbers(g, GN_F32, 4, 27, 2), GN_SHAPE(4, 3, 3, 3)), NULL, NULL);
}
static gn_array *derived(gn_context *g) {
    gn_array *x = gn_requires_grad(matrix(g, 1), true);
    gn_array *loss = gn_mean(gn_square(gn_matmul(x, numbers(g, GN_F32, N, 400, 2))), GN_ALL);
    gn_backward(loss);
    return gn_copy(gn_grad(x));
}

#define JOB(fn, ulp) {#fn, fn, ulp}
static const struct {
    const char *name;
    gn_array *(*make)(gn_context *g);
    double ulp; // of the largest number
} jobs[] = {
    JOB(chain, 2), JOB(turned, 0), JOB(backwards, 0), JOB(in_place, 1), JOB(halves, 0), JOB(bytes, 0), JOB(total, 4),
    JOB(by_rows, 0), JOB(by_columns, 4), JOB(largest, 0), JOB(product, 40), JOB(biased, 20), JOB(deep, 2000), JOB(vector, 40),
    JOB(softened, 8), JOB(long_row, 16), JOB(running, 500), JOB(running_down, 100), JOB(sorted, 0), JOB(sorted_rows, 0),
    JOB(smallest, 0), JOB(searched, 0), JOB(counted, 0), JOB(taken, 0), JOB(taken_across, 0), JOB(taken_flat, 0),
    JOB(scattered, 4), JOB(masked, 0), JOB(transformed, 8), JOB(transformed_long, 8), JOB(drawn, 0), JOB(joined, 0),
    JOB(longs, 0), JOB(convolved, 20), JOB(derived, 40),
};

static void check(gn_context *g, int k) {
    gn_array *a = gn_cast(jobs[k].make(g), GN_F64), *b = gn_cast(jobs[k].make(other), GN_F64);
    if (a == NULL || b == NULL) fail_msg("%s: %s", jobs[k].name, gn_error(a == NULL ? g : other));
    const int64_t n = gn_size(b);
    assert_int_equal(gn_size(a), n);
    double *x = (double *)malloc((size_t)n * 8), *y = (double *)malloc((size_t)n * 8), most = 0;
    gn_status status = gn_read(a, x, (size_t)n * 8);
    if (status != GN_OK) fail_msg("%s: %s", jobs[k].name, gn_error(g));
    assert_int_equal(gn_read(b, y, (size_t)n * 8), GN_OK);
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(y[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) <= jobs[k].ulp * 1.2e-7 * most))
            fail_msg("%s: element %lld is %.9g, on the CPU %.9g", jobs[k].name, (long long)i, x[i], y[i]);
    free(x);
    free(y);
}

static void test_pieces(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int k = 0; k < (int)(sizeof jobs / sizeof jobs[0]); k++) {
        gn_scope_begin(g);
        gn_scope_begin(other);
        larger = 0;
        check(g, k);
        if (larger > 0) fail_msg("%s: %d arguments are larger than the device can bind", jobs[k].name, larger);
        gn_scope_end(other);
        gn_scope_end(g);
    }
}

// More than the device's largest buffer: the CPU computes it, and who wants it there is told why not.
static void test_refused(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_eval(gn_ones(g, GN_F32, GN_SHAPE(3, 1 << 20)));
    assert_true(gn_item(gn_sum(a, GN_ALL)) == 3 << 20);
    assert_non_null(strstr(gn_explain(a), "computed on the CPU: device memory is full"));
    assert_null(gn_to(a, GN_DEVICE_GPU));
    assert_string_equal(gn_error(g), "gn_to: device memory: out of memory (12582912 bytes)");
    assert_int_equal(gn_status_get(g), GN_ERROR_OUT_OF_MEMORY);
    gn_error_clear(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_pieces), GN_TEST(test_refused)};
    return test_end(cmocka_run_group_tests(tests, open_other, close_other));
}
