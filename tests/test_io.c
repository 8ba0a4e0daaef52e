// .npy and IDX files: NumPy's own, damaged ones, and ones that cannot be written.

#include "test.h"

static void test_numpy_files(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases c;
    char name[64], saved[128];
    if (!test_cases_open(&c, "npy")) skip();
    FILE *list = fopen("saved.txt", "w");
    assert_non_null(list);
    for (int32_t i = 0; i < c.count; i++) {
        test_array expected;
        test_take_text(&c, name, sizeof name);
        test_take_array(&c, &expected);
        gn_scope_begin(g);
        gn_array *a = gn_load_npy(g, name);
        if (!test_same_bytes(a, &expected)) fail_msg("%s: %s", name, gn_error(g));
        snprintf(saved, sizeof saved, "saved.%s", name);
        assert_int_equal(gn_save_npy(a, saved), GN_OK);
        assert_true(test_same_bytes(gn_load_npy(g, saved), &expected));
        fprintf(list, "%s\n", name);
        gn_scope_end(g);
    }
    fclose(list);
    test_cases_close(&c);
    assert_true(test_make_cases("npy_check", "saved.txt"));
}

static void test_save_views(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_reshape(gn_arange(g, GN_F32, 0, 6, 1), GN_SHAPE(2, 3));
    assert_int_equal(gn_save_npy(gn_transpose(gn_flip(a, 1)), "view.npy"), GN_OK);
    gn_array *b = gn_load_npy(g, "view.npy");
    expect_shape(b, 3, 2);
    expect_values(b, 2, 5, 1, 4, 0, 3);
    assert_int_equal(gn_save_npy(gn_add_s(a, 1), "lazy.npy"), GN_OK);
    expect_values(gn_load_npy(g, "lazy.npy"), 1, 2, 3, 4, 5, 6);
    assert_int_equal(gn_save_npy(gn_cast(a, GN_BF16), "b.npy"), GN_ERROR_DTYPE);
    expect_error(g, GN_ERROR_DTYPE, "gn_save_npy: .npy has no bfloat16: gn_cast to float32 first");
    assert_true(gn_save_npy(NULL, "x.npy") != GN_OK);
}

static void test_paths(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_zeros(g, GN_F32, GN_SHAPE(3));
    assert_null(gn_load_npy(g, "missing.npy"));
    expect_error(g, GN_ERROR_IO, "gn_load_npy: cannot open missing.npy: No such file or directory");
    assert_null(gn_load_idx(g, "missing.idx"));
    expect_error(g, GN_ERROR_IO, "gn_load_idx: cannot open missing.idx: No such file or directory");
    assert_null(gn_load_npy(g, "."));
    assert_int_equal(gn_status_get(g), GN_ERROR_IO);
    gn_error_clear(g);
    assert_null(gn_load_npy(g, NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_load_npy: the path is NULL");
    assert_int_equal(gn_save_npy(a, NULL), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_int_equal(gn_save_npy(a, "no/such/folder.npy"), GN_ERROR_IO);
    expect_error(g, GN_ERROR_IO,
                 "gn_save_npy: cannot create no/such/folder.npy: No such file or directory");
    FILE *full = fopen("/dev/full", "wb"); // where every write fails
    if (full != NULL) {
        fclose(full);
        assert_int_equal(gn_save_npy(a, "/dev/full"), GN_ERROR_IO);
        expect_error(g, GN_ERROR_IO,
                     "gn_save_npy: cannot write /dev/full: No space left on device");
    }
    assert_null(gn_load_npy(NULL, "x.npy"));
}

// An .npy file of 24 bytes of data with that header.
static void write_npy(const char *path, const char *header) {
    unsigned char file[512];
    size_t n = strlen(header);
    memset(file, 0, sizeof file);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (unsigned char)n;
    memcpy(file + 10, header, n);
    test_write_file(path, file, 10 + n + 24);
}

static void test_headers(void **state) {
    gn_context *g = (gn_context *)*state;
    static const char *const good[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f4\"}",
        "  { 'descr' : '|u1' , 'shape' : ( 24L , ) , 'fortran_order' : False }  ",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
    };
    static const char *const bad[][2] = {
        {"", "the header is not a dict"},
        {"{", "the header is not a dict"},
        {"{}", "the header lacks one of descr, fortran_order, shape"},
        {"{'descr': '<f4', 'fortran_order': False}",
         "the header lacks one of descr, fortran_order, shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", "the header is not a dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}",
         "the shape is not a tuple of sizes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
         "the shape is not a tuple of sizes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [2]}", "the shape is not a tuple"},
        {"{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}", "fortran_order is not a bool"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
         "arrays of records are not supported"},
        {"{'descr': <f4, 'fortran_order': False, 'shape': (2,)}", "descr is not a string"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (2,)}", "the header has a key twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
         "the header has an unknown key"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
         "something follows the header's dict"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
         "the array has more than 8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         "a dimension is too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,)}",
         "the header asks for 28 bytes, the file has 24"},
    };
    char text[256];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        write_npy("header.npy", good[i]);
        assert_non_null(gn_load_npy(g, "header.npy"));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_npy("header.npy", bad[i][0]);
        assert_null(gn_load_npy(g, "header.npy"));
        snprintf(text, sizeof text, "gn_load_npy: header.npy: %s", bad[i][1]);
        expect_error(g, GN_ERROR_FORMAT, text);
    }
    write_npy("header.npy", "{'descr': '<i3', 'fortran_order': False, 'shape': (2,)}");
    assert_null(gn_load_npy(g, "header.npy"));
    expect_error(g, GN_ERROR_DTYPE, "gn_load_npy: header.npy: dtype '<i3' has no counterpart here");
    write_npy("header.npy",
              "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776)}");
    assert_null(gn_load_npy(g, "header.npy"));
    expect_error(g, GN_ERROR_SHAPE, NULL);
    test_write_file("header.npy", "PK\3\4 and so on", 14);
    assert_null(gn_load_npy(g, "header.npy"));
    expect_error(g, GN_ERROR_FORMAT,
                 "gn_load_npy: header.npy: this is an .npz archive: unpack it first");
    test_write_file("header.npy", "\x93NUMPY\7\0\1\0\0\0", 12);
    assert_null(gn_load_npy(g, "header.npy"));
    expect_error(g, GN_ERROR_FORMAT, "gn_load_npy: header.npy: .npy version 7.0 is not known");
    test_write_file("header.npy", "\x93NUMPY\2\0\377\377\377\377", 12);
    assert_null(gn_load_npy(g, "header.npy"));
    expect_error(g, GN_ERROR_FORMAT, NULL);
}

static void test_idx(void **state) {
    gn_context *g = (gn_context *)*state;
    const unsigned char bytes[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255};
    const unsigned char ints[] = {0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 0, 1, 2, 255, 255, 255, 254};
    const unsigned char floats[] = {0, 0, 0x0d, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0};
    const unsigned char doubles[] = {0, 0, 0x0e, 0, 0x40, 0x09, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18};
    const unsigned char odd[] = {0, 0, 0x0a, 1, 0, 0, 0, 0};
    const unsigned char shorts[] = {0, 0, 0x0b, 1, 0, 0, 0, 2, 255, 254, 1, 2};
    test_write_file("a.idx", bytes, sizeof bytes);
    gn_array *a = gn_load_idx(g, "a.idx");
    assert_int_equal(gn_dtype_of(a), GN_U8);
    expect_shape(a, 2, 3);
    expect_values(a, 1, 2, 3, 4, 5, 255);
    test_write_file("a.idx", ints, sizeof ints);
    expect_values(gn_load_idx(g, "a.idx"), 258, -2);
    test_write_file("a.idx", floats, sizeof floats);
    expect_values(gn_load_idx(g, "a.idx"), 1.5);
    test_write_file("a.idx", doubles, sizeof doubles);
    expect_values(gn_load_idx(g, "a.idx"), 3.141592653589793);
    test_write_file("a.idx", bytes, sizeof bytes - 1);
    assert_null(gn_load_idx(g, "a.idx"));
    expect_error(g, GN_ERROR_FORMAT,
                 "gn_load_idx: a.idx: the header says uint8 (2,3), but 5 bytes of data follow");
    test_write_file("a.idx", bytes, 9);
    assert_null(gn_load_idx(g, "a.idx"));
    expect_error(g, GN_ERROR_FORMAT,
                 "gn_load_idx: a.idx: the file ends after 9 bytes, 3 more were expected");
    test_write_file("a.idx", shorts, sizeof shorts);
    expect_values(gn_load_idx(g, "a.idx"), -2, 258);
    test_write_file("a.idx", odd, sizeof odd);
    assert_null(gn_load_idx(g, "a.idx"));
    expect_error(g, GN_ERROR_FORMAT,
                 "gn_load_idx: a.idx: IDX type 0x0a of rank 1 is not supported");
    test_write_file("a.idx", "\x1f\x8b\x08\x00", 4);
    assert_null(gn_load_idx(g, "a.idx"));
    expect_error(g, GN_ERROR_FORMAT, "gn_load_idx: a.idx: the file is compressed: gunzip it first");
    test_write_file("a.idx", "hello", 5);
    assert_null(gn_load_idx(g, "a.idx"));
    expect_error(g, GN_ERROR_FORMAT, "gn_load_idx: a.idx: this is not an IDX file");
}

static uint32_t noise(uint32_t *s) {
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

// Loads damaged files: each gives an array or an error, never both or neither.
static void damage(gn_context *g, const unsigned char *good, size_t size, size_t header,
                   gn_array *(*load)(gn_context *g, const char *path)) {
    unsigned char file[512];
    uint32_t s = 7;
    assert_true(size <= sizeof file);
    for (size_t i = 0; i < size + 3000; i++) {
        size_t n = i < size ? i : size;
        memcpy(file, good, size);
        for (uint32_t k = 0; i >= size && k <= noise(&s) % 4; k++) {
            size_t at = noise(&s) % (noise(&s) % 8 == 0 ? size : header);
            static const unsigned char likely[] = "0123456789,()'{}:-<>|L \0\xff";
            file[at] = noise(&s) % 2 ? (unsigned char)noise(&s) : likely[noise(&s) % sizeof likely];
        }
        test_write_file("damaged", file, n);
        gn_scope_begin(g);
        gn_array *a = load(g, "damaged");
        if (a != NULL) gn_eval(a);
        assert_true((a == NULL) == (gn_status_get(g) != GN_OK));
        gn_error_clear(g);
        gn_scope_end(g);
    }
}

static void test_damaged(void **state) {
    gn_context *g = (gn_context *)*state;
    const unsigned char idx[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255};
    gn_array *a = gn_reshape(gn_arange(g, GN_F32, 0, 24, 1), GN_SHAPE(4, 3, 2));
    assert_int_equal(gn_save_npy(a, "good.npy"), GN_OK);
    size_t size;
    unsigned char *npy = test_read_file("good.npy", &size);
    damage(g, npy, size, 128, gn_load_npy);
    damage(g, idx, sizeof idx, 12, gn_load_idx);
    free(npy);
}

static void save_and_load(gn_context *g) {
    gn_scope_begin(g);
    gn_array *a = gn_transpose(gn_reshape(gn_arange(g, GN_F32, 0, 6, 1), GN_SHAPE(2, 3)));
    gn_save_npy(a, "memory.npy");
    gn_load_npy(g, "memory.npy");
    gn_scope_end(g);
}

static void test_out_of_memory(void **state) {
    (void)state;
    test_every_allocation(save_and_load);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_numpy_files),
        GN_TEST(test_save_views),
        GN_TEST(test_paths),
        GN_TEST(test_headers),
        GN_TEST(test_idx),
        GN_TEST(test_damaged),
        cmocka_unit_test(test_out_of_memory),
    };
    return test_run(tests);
}
