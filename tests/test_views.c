// Views and joins: chains of them compared with NumPy, sharing of memory, and messages.

#include "test.h"

static gn_array *iota(gn_context *g, gn_shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dim[i];
    return gn_reshape(gn_arange(g, GN_F32, 0, (double)n, 1), s);
}

static void test_reshape(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = iota(g, GN_SHAPE(3, 4));
    expect_shape(gn_reshape(a, GN_SHAPE(2, -1)), 2, 6);
    expect_shape(gn_reshape(a, GN_SHAPE(1, 2, 1, 6, 1)), 1, 2, 1, 6, 1);
    expect_shape(gn_ravel(a), 12);
    expect_values(gn_ravel(gn_transpose(a)), 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
    expect_shape(gn_reshape(gn_scalar(g, GN_F32, 1), GN_SHAPE(1, 1)), 1, 1);
    expect_shape(gn_reshape(gn_zeros(g, GN_F32, GN_SHAPE(0, 4)), GN_SHAPE(-1, 2)), 0, 2);
    assert_null(gn_reshape(a, GN_SHAPE(5, -1)));
    expect_error(g, GN_ERROR_SHAPE,
                 "gn_reshape: cannot reshape array of size 12 into shape (5,-1)");
    assert_null(gn_reshape(a, GN_SHAPE(-1, -1)));
    expect_error(g, GN_ERROR_SHAPE, "gn_reshape: only one dimension may be -1: (-1,-1)");
    assert_null(gn_reshape(a, GN_SHAPE(-2, 6)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_reshape(a, GN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 12)));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    assert_null(gn_reshape(NULL, GN_SHAPE(1)));
}

static void test_shares_memory(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = iota(g, GN_SHAPE(2, 3));
    gn_array *t = gn_transpose(a), *flat = gn_reshape(a, GN_SHAPE(6)),
             *column = gn_index(a, ":, 1");
    gn_array *row = gn_reshape(gn_slice(a, 0, 1, 2, 1), GN_SHAPE(3)), *copy = gn_ravel(t);
    const float values[] = {10, 11, 12, 13, 14, 15};
    assert_int_equal(gn_write(a, values, sizeof values), GN_OK);
    expect_values(t, 10, 13, 11, 14, 12, 15);
    expect_values(flat, 10, 11, 12, 13, 14, 15);
    expect_values(column, 11, 14);
    expect_values(row, 13, 14, 15);
    expect_values(copy, 0, 3, 1, 4, 2, 5);
    const float two[] = {-1, -2};
    assert_int_equal(gn_write(column, two, sizeof two), GN_OK);
    expect_values(a, 10, -1, 12, 13, -2, 15);
    expect_values(t, 10, 13, -1, -2, 12, 15);
    // A view keeps the memory alive.
    gn_release(gn_retain(a));
    gn_array *z = gn_zeros(g, GN_F32, GN_SHAPE(4)), *v = gn_slice(z, 0, GN_NONE, GN_NONE, 2);
    assert_int_equal(gn_write(z, values, 16), GN_OK);
    expect_values(v, 10, 12);
}

// Elements of what is computed of arrays that all lie in another order of axes, whatever reads them. Whole numbers, which are exact.
static void expect_turned(gn_array *y, double (*f)(int i, int j, int k)) {
    double have[3 * 4 * 5];
    expect_shape(y, 3, 4, 5);
    gn_array *wide = gn_cast(gn_real(y), GN_F64);
    assert_int_equal(gn_read(wide, have, sizeof have), GN_OK);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 5; k++) assert_true(have[(i * 4 + j) * 5 + k] == f(i, j, k));
}

static double at_turned(int i, int j, int k) { return k * 12 + i * 4 + j; } // of arange (5,3,4) with its first axis last
static double turned_sum(int i, int j, int k) { return 3 * at_turned(i, j, k) + 1; }
static double turned_square(int i, int j, int k) { return turned_sum(i, j, k) * turned_sum(i, j, k); }
static double turned_both(int i, int j, int k) { return turned_sum(i, j, k) + (i * 20 + j * 5 + k); }
static double turned_rows(int i, int j, int k) { return turned_sum(i, j, k) + k; }
static double turned_twice(int i, int j, int k) { return 2 * at_turned(i, j, k); }

static void test_turned_operands(void **state) {
    gn_context *g = (gn_context *)*state;
    const gn_dtype dtypes[] = {GN_F32, GN_F64, GN_I32, GN_I64, GN_C64, GN_C128};
    const int axes[] = {1, 2, 0};
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (int evaluated = 0; evaluated < 2; evaluated++) {
            gn_scope_begin(g);
            gn_array *flat = gn_cast(gn_arange(g, GN_F64, 0, 60, 1), dtypes[t]);
            gn_array *c_order = gn_reshape(flat, GN_SHAPE(3, 4, 5)), *row = gn_slice(flat, 0, 0, 5, 1);
            gn_array *a = gn_permute_axes(gn_eval(gn_reshape(flat, GN_SHAPE(5, 3, 4))), axes, 3);
            gn_array *b = gn_permute_axes(gn_eval(gn_add_s(gn_add(gn_reshape(flat, GN_SHAPE(5, 3, 4)), gn_reshape(flat, GN_SHAPE(5, 3, 4))), 1)), axes, 3);
            const bool is_complex = dtypes[t] == GN_C64 || dtypes[t] == GN_C128;
            for (int what = 0; what < 12; what++) {
                gn_array *y = gn_add(a, b), *x = y;
                if (evaluated) gn_eval(y);
                switch (what) {
                case 0: expect_turned(gn_copy(y), turned_sum); break;
                case 1: expect_turned(gn_mul(y, y), turned_square); break;
                case 2: expect_turned(gn_add(y, c_order), turned_both); break;
                case 3: expect_turned(gn_add(row, y), turned_rows); break;
                case 4: expect_turned(gn_transpose(gn_eval(gn_transpose(y))), turned_sum); break;
                case 5: expect_turned(gn_reshape(gn_eval(gn_reshape(y, GN_SHAPE(12, 5))), GN_SHAPE(3, 4, 5)), turned_sum); break;
                case 6: expect_turned(gn_concat((gn_array *[]){gn_slice(y, 1, 0, 2, 1), gn_slice(y, 1, 2, 4, 1)}, 2, 1), turned_sum); break;
                case 7: expect_turned(gn_matmul(y, gn_eye(g, dtypes[t], 5, 5, 0)), turned_sum); break;
                case 8: expect_turned(gn_flip(gn_sum(gn_expand_dims(gn_flip(y, GN_AXES(0, 2)), 1), 1), GN_AXES(0, 2)), turned_sum); break;
                case 9: expect_turned(gn_stack((gn_array *[]){gn_at(y, 0), gn_at(y, 1), gn_at(y, 2)}, 3, 0), turned_sum); break;
                case 10: // written to
                    gn_assign(y, gn_add(a, a));
                    expect_turned(x, turned_twice);
                    break;
                default: // its parts
                    if (!is_complex) break;
                    y = gn_complex(gn_imag(y), gn_real(y));
                    if (evaluated) gn_eval(y);
                    expect_turned(gn_add(gn_real(y), gn_imag(y)), turned_sum);
                    expect_turned(gn_imag(gn_conj(gn_mul_s(y, -1))), turned_sum);
                }
            }
            gn_scope_end(g);
        }
    // A view of what is pending shows its memory.
    gn_array *m = gn_transpose(iota(g, GN_SHAPE(2, 3))), *y = gn_add(m, m), *view = gn_reshape(y, GN_SHAPE(6));
    gn_assign(view, gn_scalar(g, GN_F32, 7));
    expect_values(y, 7, 7, 7, 7, 7, 7);
}

static void test_axes(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = iota(g, GN_SHAPE(2, 3, 1, 4));
    expect_shape(gn_permute(a, 3, 0, 1, 2), 4, 2, 3, 1);
    expect_shape(gn_permute(a, -1, 0, -3, 2), 4, 2, 3, 1);
    expect_shape(gn_transpose(a), 4, 1, 3, 2);
    expect_shape(gn_swap_axes(a, 0, -1), 4, 3, 1, 2);
    expect_shape(gn_move_axis(a, 0, -1), 3, 1, 4, 2);
    expect_shape(gn_move_axis(a, 3, 1), 2, 4, 3, 1);
    expect_shape(gn_expand_dims(a, 0), 1, 2, 3, 1, 4);
    expect_shape(gn_expand_dims(a, -1), 2, 3, 1, 4, 1);
    expect_shape(gn_squeeze(a, GN_ALL), 2, 3, 4);
    expect_shape(gn_squeeze(a, -2), 2, 3, 4);
    expect_shape(gn_flip(a, GN_ALL), 2, 3, 1, 4);
    assert_null(gn_permute(a, 0, 1, 2));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_permute_axes: 3 axes for an array of rank 4");
    assert_null(gn_permute(a, 0, 1, 2, -4));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_permute_axes: axis 0 comes twice");
    assert_null(gn_permute_axes(a, NULL, 4));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_null(gn_swap_axes(a, 0, 4));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_swap_axes: axis 4 is out of bounds for array of rank 4");
    assert_null(gn_squeeze(a, 1));
    expect_error(g, GN_ERROR_SHAPE, "gn_squeeze: axis 1 of (2,3,1,4) has size 3, not 1");
    assert_null(gn_squeeze(a, 5));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_squeeze: axis 5 is out of bounds for array of rank 4");
    gn_array *most = gn_reshape(a, GN_SHAPE(1, 1, 1, 1, 1, 1, 1, 24));
    assert_null(gn_expand_dims(most, 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_expand_dims: the rank would be 9, the most is 8");
    expect_values(gn_transpose(gn_scalar(g, GN_F32, 3)), 3);
}

// What names axes, and what only looks as if it did.
static void test_axes_named(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = iota(g, GN_SHAPE(2, 3, 2));
    expect_values(gn_sum(a, 0), 6, 8, 10, 12, 14, 16);
    expect_values(gn_sum(a, -1), 1, 5, 9, 13, 17, 21);
    expect_values(gn_sum(a, GN_ALL), 66);
    expect_values(gn_sum(a, GN_AXES(0, -1)), 14, 22, 30);
    expect_values(gn_sum(a, GN_AXES(0) | GN_AXES(-1)), 14, 22, 30);
    expect_values(gn_sum(a, GN_AXES()), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    expect_shape(gn_sum(a, GN_AXES()), 2, 3, 2);
    expect_shape(gn_sum(a, GN_KEEP(1)), 2, 1, 2);
    expect_shape(gn_sum(a, GN_KEEP(-1)), 2, 3, 1);
    expect_shape(gn_sum(a, GN_KEEP(GN_ALL)), 1, 1, 1);
    expect_shape(gn_sum(a, GN_KEEP(GN_AXES(0, -1))), 1, 3, 1);
    expect_shape(gn_sum(a, GN_KEEP(GN_KEEP(GN_AXES(0)))), 1, 3, 2);
    assert_int_equal(gn_rank(gn_sum(gn_scalar(g, GN_F32, 1), GN_ALL)), 0);
    expect_shape(gn_logsumexp(gn_reshape(a, GN_SHAPE(1, 1, 1, 1, 1, 2, 3, 2)), GN_AXES()), 1, 1, 1, 1, 1, 2, 3, 2);
    expect_values(gn_argmax(a, GN_ALL), 11);
    assert_int_equal(gn_rank(gn_argmax(a, GN_ALL)), 0);
    expect_shape(gn_argmax(a, GN_KEEP(GN_ALL)), 1, 1, 1);
    expect_shape(gn_argmin(a, GN_KEEP(-2)), 2, 1, 2);
    expect_shape(gn_argmin(a, GN_AXES(1)), 2, 2);
    expect_values(gn_flip(gn_arange(g, GN_F32, 0, 3, 1), GN_AXES()), 0, 1, 2);
    expect_shape(gn_squeeze(gn_ones(g, GN_F32, GN_SHAPE(1, 2, 1)), GN_AXES()), 1, 2, 1);
    expect_shape(gn_squeeze(gn_ones(g, GN_F32, GN_SHAPE(1, 2, 1)), GN_AXES(0, -1)), 2);
    expect_shape(gn_expand_dims(a, GN_AXES(0, -1)), 1, 2, 3, 2, 1);
    expect_shape(gn_expand_dims(a, GN_AXES(1, 3)), 2, 1, 3, 1, 2);
    expect_shape(gn_expand_dims(a, GN_AXES()), 2, 3, 2);
    expect_values(gn_fftshift(gn_arange(g, GN_F32, 0, 4, 1), GN_AXES(0)), 2, 3, 0, 1);
    static const int list[] = {0, 2};
    assert_int_equal(gn_axes_from(2, list), GN_AXES(0, 2));
    assert_int_equal(gn_axes_from(0, NULL), GN_AXES());

    const char *joined = "gn_sum: sets of axes are not joined to numbers: name all of them in one GN_AXES(0, 1)";
    const gn_axes wrong[] = {GN_AXES(0, 2) | 1,  GN_AXES(0, 2) + 1,       GN_AXES(0) + GN_AXES(1), GN_AXES(0) + GN_AXES(0),
                             GN_AXES(-1) + GN_AXES(-1), GN_ALL | 1,       GN_ALL | GN_AXES(0),     GN_ALL + GN_AXES(0),
                             GN_KEEP(0) + GN_KEEP(0),   GN_KEEP(GN_ALL) + 1, 0x1000000 + 0x40000000, 0x40000100,
                             GN_AXES(0) - 1, 0x2000000, 0x8000100};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (gn_sum(a, wrong[i]) != NULL) fail_msg("axes %d of the list", (int)i);
        expect_error(g, GN_ERROR_ARGUMENT, joined);
        assert_null(gn_flip(a, wrong[i]));
        assert_int_equal(gn_status_get(g), GN_ERROR_ARGUMENT);
        gn_error_clear(g);
    }
    for (int i = 8; i < 40; i++) {
        assert_null(gn_max(a, GN_AXES(0, i)));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_max: an axis in GN_AXES or GN_KEEP is not in -8 to 7");
        assert_null(gn_mean(a, GN_KEEP(-i - 1)));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_mean: an axis in GN_AXES or GN_KEEP is not in -8 to 7");
        assert_null(gn_squeeze(a, GN_AXES(-i - 1)));
        expect_error(g, GN_ERROR_ARGUMENT, "gn_squeeze: an axis in GN_AXES or GN_KEEP is not in -8 to 7");
    }
    const int far[] = {3, 7, 8, 255, 256, 65536, 0xffffff, -4, -1000000, INT32_MIN};
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        char text[100];
        snprintf(text, sizeof text, "gn_sum: axis %d is out of bounds for array of rank 3", far[i]);
        assert_null(gn_sum(a, far[i]));
        expect_error(g, GN_ERROR_ARGUMENT, text);
    }
    assert_null(gn_sum(a, GN_AXES(0, 3)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_sum: axis 3 is out of bounds for array of rank 3");
    assert_null(gn_var(a, GN_KEEP(-4), 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_var: axis -4 is out of bounds for array of rank 3");
    assert_null(gn_sum(a, GN_AXES(1, 1)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_sum: duplicate value in axis: GN_AXES names one twice");
    assert_null(gn_sum(a, GN_KEEP(GN_AXES(1, -2))));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_sum: duplicate value in axis: 1 and -2 are the same of rank 3");
    assert_null(gn_expand_dims(a, GN_AXES(0, -5)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_expand_dims: duplicate value in axis: 0 and -5 are the same of rank 5");
    assert_null(gn_expand_dims(a, GN_ALL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_expand_dims: GN_ALL does not say which axes are made, GN_AXES(0, -1) does");
    assert_null(gn_expand_dims(a, GN_AXES(0, 1, 2, 3, 4, 5)));
    expect_error(g, GN_ERROR_SHAPE, "gn_expand_dims: the rank would be 9, the most is 8");
    assert_null(gn_flip(a, GN_KEEP(0)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_flip: GN_KEEP is for reductions");
    assert_null(gn_fftshift(a, GN_KEEP(GN_ALL)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_fftshift: GN_KEEP is for reductions");
    assert_null(gn_argmax(a, GN_AXES(0, 1)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_argmax: one axis or GN_ALL is asked for, not some");
    assert_null(gn_argmin(a, GN_AXES()));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_argmin: one axis or GN_ALL is asked for, not some");
    assert_null(gn_softmax(a, GN_ALL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_softmax: one axis is asked for, such as 0 or -1, not GN_ALL or a set");
    assert_null(gn_concat(&a, 1, GN_AXES(0)));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_concat: one axis is asked for, such as 0 or -1, not GN_ALL or a set");
}

static void test_broadcast(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = iota(g, GN_SHAPE(3, 1));
    expect_values(gn_broadcast_to(a, GN_SHAPE(3, 2)), 0, 0, 1, 1, 2, 2);
    expect_shape(gn_broadcast_to(a, GN_SHAPE(4, 3, 0)), 4, 3, 0);
    expect_values(gn_ravel(gn_broadcast_to(gn_scalar(g, GN_F32, 7), GN_SHAPE(1, 3))), 7, 7, 7);
    assert_null(gn_broadcast_to(a, GN_SHAPE(2, 2)));
    expect_error(g, GN_ERROR_SHAPE, "gn_broadcast_to: shape (3,1) does not broadcast to (2,2)");
    assert_null(gn_broadcast_to(a, GN_SHAPE(3)));
    expect_error(g, GN_ERROR_SHAPE, "gn_broadcast_to: shape (3,1) does not broadcast to (3,)");
}

static void test_slices(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = iota(g, GN_SHAPE(10));
    expect_values(gn_slice(a, 0, 2, 5, 1), 2, 3, 4);
    expect_values(gn_slice(a, -1, -3, GN_NONE, 1), 7, 8, 9);
    expect_values(gn_slice(a, 0, GN_NONE, GN_NONE, -4), 9, 5, 1);
    expect_values(gn_slice(a, 0, GN_NONE, 2, GN_NONE), 0, 1);
    expect_values(gn_slice(a, 0, 3, INT64_MAX, INT64_MAX), 3);
    expect_values(gn_slice(a, 0, INT64_MAX, -INT64_MAX, -INT64_MAX), 9);
    expect_shape(gn_slice(a, 0, 5, 2, 1), 0);
    assert_null(gn_slice(a, 0, 0, 1, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_slice: the step is 0");
    assert_null(gn_slice(a, 1, 0, 1, 1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_slice: axis 1 is out of bounds for array of rank 1");
}

static void test_index_messages(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = iota(g, GN_SHAPE(2, 3));
    static const char *const bad[][2] = {
        {"2", "gn_index: index 2 is out of bounds for axis 0 with size 2"},
        {"..., -4", "gn_index: index -4 is out of bounds for axis 1 with size 3"},
        {"0, 0, 0", "gn_index: \"0, 0, 0\" has 3 indices for an array of rank 2"},
        {"0, x",
         "gn_index: an integer, a slice, '...' or None was expected at character 4 of \"0, x\""},
        {"0 1", "gn_index: ',' was expected at character 3 of \"0 1\""},
        {"1:2:3:4", "gn_index: ',' was expected at character 6 of \"1:2:3:4\""},
        {"..., ...", "gn_index: a second ellipsis at character 9 of \"..., ...\""},
        {"::0", "gn_index: the step is 0 at character 3 of \"::0\""},
        {",", "gn_index: an integer, a slice, '...' or None was expected at character 1 of \",\""},
        {"-", "gn_index: an integer, a slice, '...' or None was expected at character 1 of \"-\""},
        {"1.5", "gn_index: ',' was expected at character 2 of \"1.5\""},
        {"None,None,None,None,None,None,None", NULL},
        {"0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(gn_index(a, bad[i][0]));
        expect_error(g, i == 11 ? GN_ERROR_SHAPE : GN_ERROR_ARGUMENT, bad[i][1]);
    }
    assert_null(gn_at(a, 2));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_at: index 2 is out of bounds for axis 0 with size 2");
    assert_null(gn_at(gn_at(a, 0), -4));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_at: index -4 is out of bounds for axis 0 with size 3");
    assert_null(gn_at(gn_scalar(g, GN_F32, 1), 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_at: axis 0 is out of bounds for array of rank 0");
    assert_null(gn_at(NULL, 0));
    expect_values(gn_at(a, 0), 0, 1, 2);
    expect_values(gn_at(a, -1), 3, 4, 5);
    expect_values(gn_at(gn_at(a, 1), -3), 3);
    expect_values(gn_at(gn_transpose(a), 1), 1, 4);
    gn_array *x = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(2, 3)), true);
    assert_int_equal(gn_backward(gn_sum(gn_mul(gn_at(x, -1), gn_at(a, 0)), GN_ALL)), GN_OK);
    expect_values(gn_grad(x), 0, 0, 0, 0, 1, 2);
    gn_assign(gn_at(gn_at(a, 1), 0), gn_scalar(g, GN_F32, 7)); // a view
    expect_values(a, 0, 1, 2, 7, 4, 5);
    gn_assign(gn_at(gn_at(a, 1), 0), gn_scalar(g, GN_F32, 3));
    expect_values(gn_index(a, " 1 , "), 3, 4, 5);
    expect_values(gn_index(a, ""), 0, 1, 2, 3, 4, 5);
    expect_values(gn_index(a, NULL), 0, 1, 2, 3, 4, 5);
    expect_values(gn_index(a, "+1, -1"), 5);
    expect_shape(gn_index(a, "newaxis, ..., None"), 1, 2, 3, 1);
}

static void test_joins(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = iota(g, GN_SHAPE(2, 2)),
             *b = gn_array_from(g, GN_I32, GN_SHAPE(1, 2), (int32_t[]){-5, 16777217});
    gn_array *pair[2], *bad[2];
    pair[0] = a;
    pair[1] = b;
    gn_array *c = gn_concat(pair, 2, 0);
    assert_int_equal(gn_dtype_of(c), GN_F32);
    expect_values(c, 0, 1, 2, 3, -5, 16777216);
    pair[1] = gn_transpose(a);
    expect_values(gn_concat(pair, 2, -1), 0, 1, 0, 2, 2, 3, 1, 3);
    expect_values(gn_stack(pair, 2, 2), 0, 0, 1, 2, 2, 1, 3, 3);
    bad[0] = a;
    bad[1] = iota(g, GN_SHAPE(2, 3));
    assert_null(gn_concat(bad, 2, 0));
    expect_error(g, GN_ERROR_SHAPE,
                 "gn_concat: array 0 has shape (2,2), array 1 has (2,3): only axis 0 may differ");
    assert_null(gn_stack(bad, 2, 0));
    expect_error(g, GN_ERROR_SHAPE, "gn_stack: array 0 has shape (2,2), array 1 has (2,3)");
    bad[0] = gn_scalar(g, GN_F32, 1);
    assert_null(gn_concat(bad, 1, 0));
    expect_error(g, GN_ERROR_SHAPE,
                 "gn_concat: arrays of rank 0 have no axis to join: use gn_stack");
    expect_shape(gn_stack(bad, 1, 0), 1);
    assert_null(gn_concat(NULL, 0, 0));
    pair[1] = NULL;
    assert_null(gn_concat(pair, 2, 0));
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    // Pieces that are not computed yet.
    pair[0] = gn_add_s(a, 1);
    pair[1] = gn_mul(a, a);
    expect_values(gn_concat(pair, 2, 0), 1, 2, 3, 4, 0, 1, 4, 9);
}

static void test_joins_of_complex(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *two[2];
    two[0] = gn_ones(g, GN_F32, GN_SHAPE(1));
    two[1] = gn_ones(g, GN_C64, GN_SHAPE(1));
    float z[4];
    gn_array *mixed = gn_concat(two, 2, 0);
    assert_int_equal(gn_dtype_of(mixed), GN_C64);
    assert_int_equal(gn_read(mixed, z, sizeof z), GN_OK);
    assert_true(z[0] == 1 && z[1] == 0 && z[2] == 1 && z[3] == 0);
    two[0] = gn_requires_grad(gn_full(g, GN_F64, GN_SHAPE(1), 3), true);
    mixed = gn_stack(two, 2, 0);
    assert_int_equal(gn_dtype_of(mixed), GN_C128);
    expect_values(gn_real(mixed), 3, 1);
    gn_backward(gn_sum(gn_real(gn_mul(mixed, mixed)), GN_ALL));
    expect_values(gn_grad(two[0]), 6);
    two[0] = gn_zeros(g, GN_C64, GN_SHAPE(1));
    assert_int_equal(gn_read(gn_stack(two, 2, 0), z, sizeof z), GN_OK);
    assert_true(z[0] == 0 && z[1] == 0 && z[2] == 1 && z[3] == 0);
}

static void test_take(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = iota(g, GN_SHAPE(3, 2));
    static const gn_dtype types[] = {GN_I32, GN_I64, GN_U8, GN_I8, GN_U32};
    for (int i = 0; i < 5; i++) {
        gn_array *at = gn_cast(gn_array_from(g, GN_I32, GN_SHAPE(2), (int32_t[]){2, 0}), types[i]);
        expect_values(gn_take(a, at, 0), 4, 5, 0, 1);
    }
    gn_array *last = gn_array_from(g, GN_I64, GN_SHAPE(1, 2), (int64_t[]){-1, -2});
    gn_array *y = gn_take(gn_transpose(a), last, 0);
    expect_shape(y, 1, 2, 3);
    expect_values(y, 1, 3, 5, 0, 2, 4);
    assert_null(gn_take(a, a, 0));
    expect_error(g, GN_ERROR_DTYPE, "gn_take: indices must be integers, not float32");
    assert_null(gn_take(a, gn_array_from(g, GN_I32, GN_SHAPE(1), (int32_t[]){3}), 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_take: index 3 is out of bounds for axis 0 with size 3");
    assert_null(gn_take(gn_zeros(g, GN_F32, GN_SHAPE(0)), gn_zeros(g, GN_I32, GN_SHAPE(1)), 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_take: cannot take from axis 0 with size 0");
    expect_shape(gn_take(a, gn_zeros(g, GN_I32, GN_SHAPE(0, 5)), 1), 3, 0, 5);
}

static void test_one_hot(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *at = gn_array_from(g, GN_U8, GN_SHAPE(3), (uint8_t[]){2, 0, 9});
    gn_array *y = gn_one_hot(at, GN_F32, 3);
    expect_shape(y, 3, 3);
    expect_values(y, 0, 0, 1, 1, 0, 0, 0, 0, 0);
    assert_int_equal(gn_dtype_of(gn_one_hot(at, GN_BOOL, 300)), GN_BOOL);
    assert_null(gn_one_hot(gn_cast(at, GN_F32), GN_F32, 3));
    expect_error(g, GN_ERROR_DTYPE, "gn_one_hot: indices must be integers, not float32");
    assert_null(gn_one_hot(at, GN_F32, -1));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_one_hot: -1 classes");
    assert_null(gn_one_hot(at, (gn_dtype)3, GN_F32)); // the number and the dtype in each other's place
    expect_error(g, GN_ERROR_ARGUMENT, "gn_one_hot: 0 classes");
}

static void everything(gn_context *g) {
    gn_scope_begin(g);
    gn_array *a = iota(g, GN_SHAPE(3, 4)), *pair[2];
    gn_requires_grad(a, true);
    gn_array *b = gn_reshape(gn_transpose(a), GN_SHAPE(2, 6));
    pair[0] = gn_index(a, "1:, ::-1, None");
    pair[1] = gn_cast(gn_expand_dims(gn_slice(a, 0, 0, 2, 1), -1), GN_F64);
    gn_eval(gn_concat(pair, 2, 0));
    pair[1] = gn_swap_axes(gn_move_axis(pair[0], 0, 2), 0, 2);
    gn_eval(gn_stack(pair, 1, 1));
    gn_eval(gn_take(gn_broadcast_to(b, GN_SHAPE(3, 2, 6)), gn_cast(gn_arange(g, GN_I32, 0, 2, 1), GN_U8), 1));
    gn_eval(gn_one_hot(gn_arange(g, GN_I32, 0, 3, 1), GN_F32, 4));
    gn_ravel(gn_squeeze(gn_flip(pair[0], GN_ALL), GN_ALL));
    gn_scope_end(g);
}

static void test_out_of_memory(void **state) {
    (void)state;
    test_most_allocations(everything);
}

// ---- chains from NumPy

typedef struct step {
    char name[32], text[256];
    int count;
    int64_t p[16];
} step;

static gn_array *join(gn_context *g, gn_array *a, const step *s) {
    gn_array *list[3];
    (void)g;
    list[0] = gn_flip(a, GN_ALL);
    list[1] = list[2] = a;
    return strcmp(s->name, "concat") == 0 ? gn_concat(list, (int)s->p[1], (int)s->p[0])
                                          : gn_stack(list, (int)s->p[1], (int)s->p[0]);
}

static gn_array *apply(gn_context *g, gn_array *a, const step *s) {
    const char *name = s->name;
    gn_shape shape = gn_shape_from(s->count, s->p);
    int i0 = (int)s->p[0], i1 = (int)s->p[1], axes[16];
    for (int i = 0; i < 16; i++) axes[i] = (int)s->p[i];
    if (strcmp(name, "reshape") == 0) return gn_reshape(a, shape);
    if (strcmp(name, "ravel") == 0) return gn_ravel(a);
    if (strcmp(name, "permute") == 0) return gn_permute_axes(a, axes, s->count);
    if (strcmp(name, "transpose") == 0) return gn_transpose(a);
    if (strcmp(name, "swap_axes") == 0) return gn_swap_axes(a, i0, i1);
    if (strcmp(name, "move_axis") == 0) return gn_move_axis(a, i0, i1);
    if (strcmp(name, "expand_dims") == 0) return gn_expand_dims(a, i0);
    if (strcmp(name, "squeeze") == 0) return gn_squeeze(a, axes_of_bits((uint32_t)s->p[0]));
    if (strcmp(name, "broadcast_to") == 0) return gn_broadcast_to(a, shape);
    if (strcmp(name, "slice") == 0) return gn_slice(a, i0, s->p[1], s->p[2], s->p[3]);
    if (strcmp(name, "index") == 0) return gn_index(a, s->text);
    if (strcmp(name, "flip") == 0) return gn_flip(a, axes_of_bits((uint32_t)s->p[0]));
    if (strcmp(name, "concat") == 0 || strcmp(name, "stack") == 0) return join(g, a, s);
    if (strcmp(name, "take") == 0) {
        gn_shape four = i1 == 1 ? GN_SHAPE(4) : GN_SHAPE(2, 2);
        return gn_take(a, gn_array_from(g, GN_I64, four, s->p + 2), i0);
    }
    fail_msg("unknown step %s", name);
    return NULL;
}

static void print_steps(const step *steps, int n) {
    for (int k = 0; k < n; k++) {
        print_error("  %s \"%s\"", steps[k].name, steps[k].text);
        for (int j = 0; j < steps[k].count; j++) print_error(" %lld", (long long)steps[k].p[j]);
        print_error("\n");
    }
}

static void test_like_numpy(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases c;
    int refused = 0;
    if (!test_cases_open(&c, "views")) skip();
    for (int32_t i = 0; i < c.count; i++) {
        test_array base, expected;
        step steps[8];
        gn_scope_begin(g);
        test_take_array(&c, &base);
        gn_array *a = gn_array_from(g, base.t, base.s, base.data);
        int n = test_take_int(&c);
        for (int k = 0; k < n; k++) {
            memset(&steps[k], 0, sizeof steps[k]);
            test_take_text(&c, steps[k].name, sizeof steps[k].name);
            steps[k].count = test_take_int(&c);
            test_take_bytes(&c, steps[k].p, sizeof(int64_t) * (size_t)steps[k].count);
            test_take_text(&c, steps[k].text, sizeof steps[k].text);
            a = apply(g, a, &steps[k]);
        }
        bool valid = test_take_array(&c, &expected);
        if (!valid) refused++;
        if (valid ? !test_same_bytes(a, &expected) : a != NULL || gn_status_get(g) == GN_OK) {
            print_error("case %d, %s%s\n", (int)i, valid ? "" : "NumPy refuses: ", gn_error(g));
            print_steps(steps, n);
            fail();
        }
        gn_error_clear(g);
        gn_scope_end(g);
    }
    assert_true(refused > 50);
    test_cases_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_reshape),    GN_TEST(test_shares_memory), GN_TEST(test_turned_operands), GN_TEST(test_axes),          GN_TEST(test_axes_named),
        GN_TEST(test_broadcast),  GN_TEST(test_slices),        GN_TEST(test_index_messages),
        GN_TEST(test_joins),      GN_TEST(test_take),            GN_TEST(test_joins_of_complex),
                 GN_TEST(test_one_hot),
        cmocka_unit_test(test_out_of_memory),
        GN_TEST(test_like_numpy),
    };
    return test_run(tests);
}
