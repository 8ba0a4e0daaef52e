// Arrays to and from DLPack: layouts, who owns what and when it is freed, tensors that are refused.
#include "dlpack.h"
#include "test.h"

// Every dtype with its code and bits, by the text of the standard.
static const struct {
    gn_dtype t;
    uint8_t code, bits;
} dtypes[] = {
    {GN_BOOL, kDLBool, 8},  {GN_I8, kDLInt, 8},     {GN_I16, kDLInt, 16},     {GN_I32, kDLInt, 32},   {GN_I64, kDLInt, 64},
    {GN_U8, kDLUInt, 8},    {GN_U16, kDLUInt, 16},  {GN_U32, kDLUInt, 32},    {GN_U64, kDLUInt, 64},  {GN_F16, kDLFloat, 16},
    {GN_F32, kDLFloat, 32}, {GN_F64, kDLFloat, 64}, {GN_BF16, kDLBfloat, 16}, {GN_C64, kDLComplex, 64}, {GN_C128, kDLComplex, 128},
};

static void test_every_dtype(void **state) {
    gn_context *g = (gn_context *)*state;
    assert_int_equal(sizeof dtypes / sizeof dtypes[0], GN_DTYPE_COUNT);
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        gn_array *a = gn_full(g, dtypes[i].t, GN_SHAPE(2, 3), 1.0);
        DLManagedTensor *t = gn_to_dlpack(a);
        assert_non_null(t);
        assert_int_equal(t->dl_tensor.dtype.code, dtypes[i].code);
        assert_int_equal(t->dl_tensor.dtype.bits, dtypes[i].bits);
        assert_int_equal(t->dl_tensor.dtype.lanes, 1);
        assert_int_equal(t->dl_tensor.device.device_type, kDLCPU);
        assert_int_equal(t->dl_tensor.device.device_id, 0);
        assert_int_equal(t->dl_tensor.ndim, 2);
        assert_true(t->dl_tensor.shape[0] == 2 && t->dl_tensor.shape[1] == 3 && t->dl_tensor.byte_offset == 0);
        assert_true(t->dl_tensor.strides[0] == 3 && t->dl_tensor.strides[1] == 1);
        gn_array *b = gn_from_dlpack(g, t); // calls the deleter when it goes
        assert_int_equal(gn_dtype_of(b), dtypes[i].t);
        assert_true(gn_array_equal(a, b, false));
    }
    assert_int_equal(gn_status_get(g), GN_OK);
}

static void test_export(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_eval(gn_reshape(gn_arange(g, GN_F32, 0, 12, 1), GN_SHAPE(3, 4)));
    DLManagedTensor *whole = gn_to_dlpack(a), *view = gn_to_dlpack(gn_index(a, "1:, 1::2"));
    const float *p = (const float *)whole->dl_tensor.data, *q = (const float *)view->dl_tensor.data;
    assert_true(q == p + 5); // the same memory
    assert_true(view->dl_tensor.strides[0] == 4 && view->dl_tensor.strides[1] == 2 && view->dl_tensor.shape[1] == 2);
    assert_true(q[0] == 5 && q[2] == 7 && q[4] == 9 && q[6] == 11);
    whole->deleter(whole);
    view->deleter(view);
    // Copies, for few take such strides.
    DLManagedTensor *turned = gn_to_dlpack(gn_index(a, "::-1")), *repeated = gn_to_dlpack(gn_broadcast_to(gn_index(a, "0"), GN_SHAPE(2, 4)));
    assert_true(turned->dl_tensor.strides[0] == 4 && ((float *)turned->dl_tensor.data)[0] == 8);
    assert_true(repeated->dl_tensor.strides[0] == 4 && ((float *)repeated->dl_tensor.data)[5] == 1);
    turned->deleter(turned);
    repeated->deleter(repeated);
    DLManagedTensor *none = gn_to_dlpack(gn_zeros(g, GN_F64, GN_SHAPE(0, 3))), *one = gn_to_dlpack(gn_scalar(g, GN_I32, 7));
    gn_array *m = gn_transpose(a);
    DLManagedTensor *sum = gn_to_dlpack(gn_eval(gn_add(m, m))), *copy = gn_to_dlpack(gn_eval(gn_copy(gn_add(m, m)))); // as NumPy's order='K' has it
    assert_true(test_on_vulkan() || (sum->dl_tensor.strides[0] == 1 && sum->dl_tensor.strides[1] == 4));
    assert_true(copy->dl_tensor.strides[0] == 3 && ((float *)copy->dl_tensor.data)[1] == 8);
    sum->deleter(sum);
    copy->deleter(copy);
    assert_true(none->dl_tensor.data == NULL && none->dl_tensor.shape[1] == 3 && one->dl_tensor.ndim == 0);
    assert_int_equal(*(int32_t *)one->dl_tensor.data, 7);
    none->deleter(none);
    one->deleter(one);
    assert_null(gn_to_dlpack(NULL));
}

static void test_outlives(void **state) {
    gn_context *g = (gn_context *)*state;
    DLManagedTensor *t = NULL;
    GN_SCOPE(g) {
        gn_array *a = gn_full(g, GN_F32, GN_SHAPE(1000), 3.0);
        t = gn_to_dlpack(gn_add_s(a, 1.0));
        a = gn_from_dlpack(g, t);
        assert_true(gn_item(gn_sum(gn_to(a, GN_DEVICE_GPU), GN_ALL)) == 4000.0);
        t = gn_to_dlpack(gn_mul_s(a, 2.0));
    }
    assert_true(((float *)t->dl_tensor.data)[999] == 8.0f);
    t->deleter(t);
    gn_array *a = gn_eval(gn_add_s(gn_zeros(g, GN_F32, GN_SHAPE(64)), 1.0));
    t = gn_to_dlpack(a);
    gn_to(a, GN_DEVICE_GPU); // which would let go of the memory
    assert_true(((float *)t->dl_tensor.data)[63] == 1.0f);
    t->deleter(t);
    assert_int_equal(gn_status_get(g), GN_OK);
}

static int deleted;
static void count_deleted(DLManagedTensor *self) {
    assert_ptr_equal(self->manager_ctx, &deleted);
    deleted++;
}

static DLManagedTensor tensor_of(void *data, uint8_t code, uint8_t bits, int32_t rank, int64_t *shape, int64_t *strides) {
    DLManagedTensor t;
    memset(&t, 0, sizeof t);
    t.dl_tensor.data = data;
    t.dl_tensor.device.device_type = kDLCPU;
    t.dl_tensor.ndim = rank;
    t.dl_tensor.dtype.code = code;
    t.dl_tensor.dtype.bits = bits;
    t.dl_tensor.dtype.lanes = 1;
    t.dl_tensor.shape = shape;
    t.dl_tensor.strides = strides;
    t.manager_ctx = &deleted;
    t.deleter = count_deleted;
    return t;
}

static void expect(gn_array *a, int n, const int32_t *want) {
    int32_t got[16];
    assert_int_equal(gn_size(a), n);
    assert_int_equal(gn_read(a, got, (size_t)n * 4), GN_OK);
    for (int i = 0; i < n; i++) assert_int_equal(got[i], want[i]);
}

static void test_import(void **state) {
    gn_context *g = (gn_context *)*state;
    int32_t data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int64_t shape[] = {2, 3}, strides[] = {-4, 1}, columns[] = {1, 4}, repeated[] = {0, 2};
    deleted = 0;
    gn_scope_begin(g);
    DLManagedTensor plain = tensor_of(data, kDLInt, 32, 2, shape, NULL);
    plain.dl_tensor.byte_offset = 8;
    expect(gn_from_dlpack(g, &plain), 6, (const int32_t[]){2, 3, 4, 5, 6, 7});
    DLManagedTensor turned = tensor_of(data + 4, kDLInt, 32, 2, shape, strides);
    gn_array *a = gn_from_dlpack(g, &turned);
    expect(a, 6, (const int32_t[]){4, 5, 6, 0, 1, 2});
    expect(gn_add(a, gn_index(a, "::-1")), 6, (const int32_t[]){4, 6, 8, 4, 6, 8});
    DLManagedTensor turned_axes = tensor_of(data, kDLInt, 32, 2, shape, columns);
    expect(gn_from_dlpack(g, &turned_axes), 6, (const int32_t[]){0, 4, 8, 1, 5, 9});
    DLManagedTensor again = tensor_of(data, kDLInt, 32, 2, shape, repeated);
    gn_array *rows = gn_from_dlpack(g, &again);
    expect(rows, 6, (const int32_t[]){0, 2, 4, 0, 2, 4});
    assert_int_equal(gn_write(rows, data, 24), GN_ERROR_ARGUMENT); // its elements share memory
    gn_error_clear(g);
    assert_int_equal(deleted, 0);
    gn_scope_end(g);
    assert_int_equal(deleted, 4);
    // Written through, in place.
    gn_scope_begin(g);
    DLManagedTensor mine = tensor_of(data, kDLInt, 32, 2, shape, columns);
    mine.deleter = NULL;
    a = gn_from_dlpack(g, &mine);
    if (!test_on_vulkan()) {
        gn_assign(gn_index(a, "0"), gn_scalar(g, GN_I32, -1));
        assert_true(data[0] == -1 && data[1] == 1 && data[4] == -1 && data[8] == -1);
    }
    gn_scope_end(g);
    // An empty one goes at once, whatever it points to.
    gn_scope_begin(g);
    int64_t empty[] = {3, 0}, odd[] = {INT64_MIN, INT64_MAX};
    DLManagedTensor none = tensor_of(NULL, kDLFloat, 64, 2, empty, odd);
    assert_int_equal(gn_dim(gn_from_dlpack(g, &none), 0), 3);
    DLManagedTensor one = tensor_of(data + 2, kDLInt, 32, 0, NULL, NULL);
    assert_true(gn_item(gn_from_dlpack(g, &one)) == 2.0);
    assert_int_equal(deleted, 5);
    assert_int_equal(gn_status_get(g), GN_OK);
    gn_scope_end(g); // tensors and what they describe end with this function
    assert_int_equal(deleted, 6);
}

// A call that fails leaves the tensor to the caller.
static void test_no_memory(void **state) {
    (void)state;
    int32_t data[6] = {0, 1, 2, 3, 4, 5};
    int64_t shape[] = {2, 3};
    for (int empty = 0; empty < 2; empty++)
        for (int64_t k = 0, failed = 1; failed; k++) {
            gn_context *g = test_open();
            gn_scope_begin(g);
            deleted = 0;
            shape[1] = empty ? 0 : 3;
            DLManagedTensor t = tensor_of(data, kDLInt, 32, 2, shape, NULL);
            test_refuse(k, true);
            failed = gn_from_dlpack(g, &t) == NULL;
            test_refuse(-1, false);
            assert_int_equal(deleted, !failed && empty);
            if (failed) expect_error(g, GN_ERROR_OUT_OF_MEMORY, NULL);
            gn_scope_end(g);
            assert_int_equal(deleted, !failed);
            test_close(g);
        }
}

static void test_refused(void **state) {
    gn_context *g = (gn_context *)*state;
    static double data[4];
    int64_t good[] = {2, 2, 1, 1, 1, 1, 1, 1, 1}, negative[] = {2, -1}, large[] = {INT64_MAX, 2}, wide[] = {(int64_t)1 << 40, 2};
    int64_t beyond[] = {INT64_MAX, 1}, below[] = {INT64_MIN, 1}, product[] = {(int64_t)1 << 20, (int64_t)1 << 30};
    const struct {
        DLManagedTensor t;
        gn_status status;
        const char *says;
    } bad[] = {
        {tensor_of(data, kDLFloat, 64, -1, good, NULL), GN_ERROR_SHAPE, "rank -1 is not in 0..8"},
        {tensor_of(data, kDLFloat, 64, 9, good, NULL), GN_ERROR_SHAPE, "rank 9 is not in 0..8"},
        {tensor_of(data, kDLFloat, 64, INT32_MIN, good, NULL), GN_ERROR_SHAPE, "rank"},
        {tensor_of(data, kDLFloat, 64, 2, negative, NULL), GN_ERROR_SHAPE, "negative dimension in (2,-1)"},
        {tensor_of(data, kDLFloat, 64, 2, large, NULL), GN_ERROR_SHAPE, "too many elements"},
        {tensor_of(data, kDLFloat, 64, 2, good, beyond), GN_ERROR_SHAPE, "strides beyond all memory"},
        {tensor_of(data, kDLFloat, 64, 2, good, below), GN_ERROR_SHAPE, "strides beyond all memory"},
        {tensor_of(data, kDLFloat, 64, 2, wide, product), GN_ERROR_SHAPE,
         sizeof(size_t) < 8 ? "too many elements" : "strides beyond all memory"},
        {tensor_of(data, kDLFloat, 64, 2, NULL, NULL), GN_ERROR_SHAPE, "the shape is NULL"},
        {tensor_of(NULL, kDLFloat, 64, 2, good, NULL), GN_ERROR_ARGUMENT, "data is NULL"},
        {tensor_of((char *)data + 4, kDLFloat, 64, 1, good, NULL), GN_ERROR_ARGUMENT, "data is not aligned to its items of 8 bytes"},
        {tensor_of((char *)data + 4, kDLComplex, 128, 1, good, NULL), GN_ERROR_ARGUMENT, "data is not aligned to its items of 16 bytes"},
        {tensor_of(data, kDLFloat, 80, 1, good, NULL), GN_ERROR_DTYPE, "no dtype for code 2 with 80 bits in 1 lanes"},
        {tensor_of(data, kDLBool, 1, 1, good, NULL), GN_ERROR_DTYPE, "no dtype for code 6 with 1 bits"},
        {tensor_of(data, kDLOpaqueHandle, 64, 1, good, NULL), GN_ERROR_DTYPE, "no dtype for code 3"},
        {tensor_of(data, kDLInt, 4, 1, good, NULL), GN_ERROR_DTYPE, "no dtype for code 0 with 4 bits"},
    };
    deleted = 0;
    for (size_t i = 0; i <= sizeof bad / sizeof bad[0] + 1; i++) {
        DLManagedTensor t = tensor_of(data, kDLFloat, 64, 1, good, NULL);
        const bool listed = i < sizeof bad / sizeof bad[0];
        gn_status status = GN_ERROR_UNSUPPORTED;
        const char *says = "on a device of type 2, not in CPU memory";
        if (listed) {
            t = bad[i].t;
            status = bad[i].status;
            says = bad[i].says;
        } else if (i == sizeof bad / sizeof bad[0]) {
            t.dl_tensor.device.device_type = kDLCUDA;
        } else {
            t.dl_tensor.dtype.lanes = 4;
            status = GN_ERROR_DTYPE;
            says = "in 4 lanes";
        }
        assert_null(gn_from_dlpack(g, &t));
        if (gn_status_get(g) != status || strstr(gn_error(g), says) == NULL || strncmp(gn_error(g), "gn_from_dlpack: ", 16) != 0)
            fail_msg("%d: \"%s\"", (int)i, gn_error(g));
        gn_error_clear(g);
    }
    assert_null(gn_from_dlpack(g, NULL));
    assert_int_equal(gn_status_get(g), GN_ERROR_ARGUMENT);
    gn_error_clear(g);
    assert_int_equal(deleted, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_every_dtype), GN_TEST(test_export), GN_TEST(test_outlives), GN_TEST(test_import),
                                       cmocka_unit_test(test_no_memory), GN_TEST(test_refused)};
    return test_run(tests);
}
