// .npy, .npz, CSV and IDX files: NumPy's own, damaged ones, and ones that cannot be written.

#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L // symlink, which strict C99 leaves out
#endif
#include "test.h"

#ifndef _WIN32
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

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

// A disk that is full while a file is replaced: the old one stays, and nothing else.
static void test_replaced(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_arange(g, GN_F32, 0, 4, 1), *b = gn_zeros(g, GN_F32, GN_SHAPE(4096));
    assert_int_equal(gn_save_npy(a, "replaced.npy"), GN_OK);
#if !defined(_WIN32) && !defined(__EMSCRIPTEN__) // where a process has no limits
    struct rlimit had, small_files = {4096, 4096};
    getrlimit(RLIMIT_FSIZE, &had);
    small_files.rlim_max = had.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small_files);
    const gn_status status = gn_save_npy(b, "replaced.npy");
    setrlimit(RLIMIT_FSIZE, &had);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, GN_ERROR_IO);
    expect_error(g, GN_ERROR_IO, "gn_save_npy: cannot write replaced.npy: File too large");
#endif
    expect_values(gn_load_npy(g, "replaced.npy"), 0, 1, 2, 3);
    assert_null(fopen("replaced.npy.partial00", "rb"));
#if !defined(_WIN32) && !defined(__EMSCRIPTEN__)
    struct stat is;
    assert_int_equal(chmod("replaced.npy", 0600), 0);
#endif
    assert_int_equal(gn_save_npy(b, "replaced.npy"), GN_OK);
    assert_int_equal(gn_size(gn_load_npy(g, "replaced.npy")), 4096);
#if !defined(_WIN32) && !defined(__EMSCRIPTEN__)
    assert_int_equal(stat("replaced.npy", &is), 0);
    assert_int_equal(is.st_mode & 0777, 0600);
#endif
    assert_null(fopen("replaced.npy.partial00", "rb"));
    FILE *other = fopen("replaced.npy.partial00", "wb"); // somebody's, or of a save at the same time
    fputs("stays", other);
    fclose(other);
    char text[6] = "";
    assert_int_equal(gn_save_npy(a, "replaced.npy"), GN_OK);
    expect_values(gn_load_npy(g, "replaced.npy"), 0, 1, 2, 3);
    other = fopen("replaced.npy.partial00", "rb");
    assert_non_null(fgets(text, sizeof text, other));
    fclose(other);
    remove("replaced.npy.partial00");
    assert_string_equal(text, "stays");
#if !defined(_WIN32) && !defined(__EMSCRIPTEN__)
    remove("link.npy");
    assert_int_equal(symlink("replaced.npy", "link.npy"), 0);
    assert_int_equal(gn_save_npy(b, "link.npy"), GN_OK); // into the file that the link leads to
    assert_int_equal(gn_size(gn_load_npy(g, "replaced.npy")), 4096);
    assert_int_equal(gn_save_npy(a, "replaced.npy"), GN_OK); // and that it still leads to
    expect_values(gn_load_npy(g, "link.npy"), 0, 1, 2, 3);
#endif
    assert_null(fopen("replaced.npy.partial01", "rb"));
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
        "{u'descr': u'<f4', u'fortran_order': False, u'shape': (2L, 3L)}", // as Python 2 has text
        "{'descr': 'complex64', 'fortran_order': False, 'shape': (3,)}",
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
    for (int t = 0; t < GN_DTYPE_COUNT; t++) { // NumPy takes the names as well, but not with an order in front of them
        for (int order = 0; order < 2; order++) {
            snprintf(text, sizeof text, "{'descr': '%s%s', 'fortran_order': False, 'shape': (1,)}", order ? "<" : "",
                     gn_dtype_name((gn_dtype)t));
            write_npy("header.npy", text);
            gn_array *a = gn_load_npy(g, "header.npy");
            assert_int_equal(a == NULL, t == GN_BF16 || order);
            if (a != NULL) assert_int_equal(gn_dtype_of(a), t);
            else expect_error(g, GN_ERROR_DTYPE, NULL);
        }
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
                 "gn_load_npy: header.npy: this is an .npz archive: gn_load_npz reads it");
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
    expect_values(gn_load_idx_memory(g, shorts, sizeof shorts), -2, 258);
    assert_null(gn_load_idx_memory(g, bytes, sizeof bytes - 1));
    expect_error(g, GN_ERROR_FORMAT, "gn_load_idx_memory: memory: the header says uint8 (2,3), but 5 bytes of data follow");
    assert_null(gn_load_idx_memory(g, NULL, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_load_idx_memory: data is NULL");
}

static void test_npz(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases c;
    char name[64], key[64];
    if (!test_cases_open(&c, "npz")) skip();
    for (int32_t i = 0; i < c.count; i++) {
        test_array expected;
        test_take_text(&c, name, sizeof name);
        test_take_text(&c, key, sizeof key);
        test_take_array(&c, &expected);
        gn_scope_begin(g);
        if (!test_same_bytes(gn_load_npz(g, name, key), &expected)) fail_msg("%s: %s: %s", name, key, gn_error(g));
        size_t size;
        unsigned char *data = test_read_file(name, &size);
        assert_true(test_same_bytes(gn_load_npz_memory(g, data, size, key), &expected));
        free(data);
        gn_scope_end(g);
    }
    test_cases_close(&c);
    gn_array *one = gn_load_npz(g, "one.npz", NULL);
    expect_shape(one, 300, 40);
    assert_null(gn_load_npz(g, "one.npz", "y"));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_load_npz: one.npz: there is no array 'y', but: x");
    assert_null(gn_load_npz(g, "large.npz", NULL));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_load_npz: large.npz: which of its 6 arrays? noise steps skewed fortran empty scalar");
    char *names = gn_npz_names(g, "large.npz");
    assert_string_equal(names, "noise\nsteps\nskewed\nfortran\nempty\nscalar");
    gn_string_free(g, names);
    // What is saved is what NumPy reads.
    gn_array *arrays[3] = {gn_load_npz(g, "large.npz", "steps"), NULL, gn_scalar(g, GN_F16, 1.5)};
    const char *keys[3] = {"steps", "view", "half"};
    arrays[1] = gn_flip(gn_transpose(gn_reshape(gn_arange(g, GN_F32, 0, 6, 1), GN_SHAPE(2, 3))), 0);
    assert_int_equal(gn_save_npz("made.npz", arrays, keys, 3), GN_OK);
    assert_true(test_make_cases("npz_check", "made.npz"));
    size_t size, written = gn_save_npz_memory(arrays, keys, 3, NULL, 0);
    unsigned char *file = test_read_file("made.npz", &size), *memory = (unsigned char *)malloc(written);
    assert_int_equal(written, size);
    assert_int_equal(gn_save_npz_memory(arrays, keys, 3, memory, written), size);
    assert_memory_equal(memory, file, size);
    names = gn_npz_names_memory(g, memory, size);
    assert_string_equal(names, "steps\nview\nhalf");
    gn_string_free(g, names);
    gn_array *view = gn_load_npz_memory(g, memory, size, "view");
    expect_values(view, 2, 5, 1, 4, 0, 3);
    for (size_t at = 0; at + 8 <= size; at++) // of two with one name the last counts, as in NumPy
        if (memcmp(memory + at, "half.npy", 8) == 0) memcpy(memory + at, "view", 4);
    expect_values(gn_load_npz_memory(g, memory, size, "view"), 1.5);
    memcpy(memory, file, size);
    // Every byte of the data counts.
    size_t wrong = 0, tried = 0;
    for (size_t at = 0; at < 3000; at += 29, tried++) {
        memory[at] ^= 0x10;
        gn_scope_begin(g);
        wrong += gn_load_npz_memory(g, memory, size, "steps") == NULL;
        gn_error_clear(g);
        gn_scope_end(g);
        memory[at] ^= 0x10;
    }
    assert_true(wrong + 3 >= tried); // but for the local header's, whose numbers the directory has as well
    free(memory);
    free(file);
}

static void test_npz_arguments(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = gn_zeros(g, GN_F32, GN_SHAPE(3)), *arrays[2] = {a, a};
    const char *same[2] = {"a", "a"}, *none[2] = {"a", ""};
    assert_int_equal(gn_save_npz("n.npz", arrays, same, 2), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_save_npz: name 2 is there twice");
    assert_int_equal(gn_save_npz("n.npz", arrays, none, 2), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_save_npz: name 2 is NULL, empty, of several lines or longer than 255 bytes");
    assert_int_equal(gn_save_npz("n.npz", arrays, NULL, 2), GN_ERROR_ARGUMENT);
    gn_error_clear(g);
    assert_int_equal(gn_save_npz(NULL, arrays, same, 1), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_save_npz: the path is NULL");
    arrays[1] = gn_cast(a, GN_BF16);
    const char *names[2] = {"a", "b"};
    assert_int_equal(gn_save_npz("n.npz", arrays, names, 2), GN_ERROR_DTYPE);
    expect_error(g, GN_ERROR_DTYPE, "gn_save_npz: .npy has no bfloat16: gn_cast to float32 first");
    assert_int_equal(gn_save_npz_memory(arrays, names, 2, NULL, 0), 0);
    gn_error_clear(g);
    assert_int_equal(gn_save_npz("n.npz", NULL, names, 2), GN_ERROR_ARGUMENT);
    gn_error_clear(g);
    test_write_file("n.npz", "this is no archive at all", 25);
    assert_null(gn_load_npz(g, "n.npz", "a"));
    expect_error(g, GN_ERROR_FORMAT, "gn_load_npz: n.npz: this is not an .npz archive, or its end is missing");
    assert_null(gn_load_npz_memory(g, NULL, 0, "a"));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_load_npz_memory: data is NULL");
    assert_null(gn_npz_names(g, "missing.npz"));
    expect_error(g, GN_ERROR_IO, "gn_npz_names: cannot open missing.npz: No such file or directory");
    assert_null(gn_npz_names_memory(g, "this is no archive at all", 25));
    expect_error(g, GN_ERROR_FORMAT, "gn_npz_names_memory: memory: this is not an .npz archive, or its end is missing");
}

static void test_npy_memory(void **state) {
    gn_context *g = (gn_context *)*state;
    unsigned char memory[256];
    gn_array *a = gn_transpose(gn_reshape(gn_arange(g, GN_I16, 0, 6, 1), GN_SHAPE(2, 3)));
    size_t n = gn_save_npy_memory(a, NULL, 0), size;
    assert_int_equal(n, 128 + 12);
    memset(memory, 7, sizeof memory);
    assert_int_equal(gn_save_npy_memory(a, memory, n), n);
    assert_int_equal(memory[n], 7);
    gn_save_npy(a, "same.npy");
    unsigned char *file = test_read_file("same.npy", &size);
    assert_int_equal(size, n);
    assert_memory_equal(file, memory, n);
    free(file);
    gn_array *b = gn_load_npy_memory(g, memory, n);
    assert_int_equal(gn_dtype_of(b), GN_I16);
    expect_values(b, 0, 3, 1, 4, 2, 5);
    assert_null(gn_load_npy_memory(g, memory, n - 1));
    expect_error(g, GN_ERROR_FORMAT, "gn_load_npy_memory: memory: the header asks for 12 bytes, the file has 11");
    memset(memory, 7, sizeof memory); // too small: nothing is written behind the end
    assert_int_equal(gn_save_npy_memory(a, memory, 130), n);
    assert_int_equal(memory[130], 7);
}

static gn_array *csv(gn_context *g, const char *text, gn_dtype t) {
    return gn_load_csv_memory(g, text, strlen(text), t, 0, 0);
}

static void test_csv(void **state) {
    gn_context *g = (gn_context *)*state;
    test_cases c;
    char name[64], saved[80], delimiter[8];
    if (!test_cases_open(&c, "csv")) skip();
    for (int32_t i = 0; i < c.count; i++) {
        test_array expected;
        test_take_text(&c, name, sizeof name);
        test_take_text(&c, delimiter, sizeof delimiter);
        test_take_array(&c, &expected);
        gn_array *a = gn_load_csv(g, name, expected.t, 1, delimiter[0]);
        if (!test_same_bytes(a, &expected)) fail_msg("%s: %s", name, gn_error(g));
        snprintf(saved, sizeof saved, "saved.%s", name);
        assert_int_equal(gn_save_csv(a, saved, "a b c", delimiter[0]), GN_OK);
        assert_true(test_same_bytes(gn_load_csv(g, saved, expected.t, 1, delimiter[0]), &expected));
    }
    test_cases_close(&c);
    assert_true(test_make_cases("csv_check", "saved"));
}

static void test_csv_text(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_array *a = csv(g, "\xef\xbb\xbf 1, \"-2.5\" ,inf\r\n\r\n  \n+3e2,nan,.5", GN_F64);
    expect_shape(a, 2, 3);
    expect_values(a, 1, -2.5, INFINITY, 300, NAN, .5);
    expect_shape(csv(g, "", GN_F32), 0, 0);
    FILE *made = fopen("/proc/sys/kernel/pid_max", "r"), *page = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "r");
    int most = 0, size = 0; // the system says 0 bytes of the first, and 4096 of the second
    if (made != NULL && fscanf(made, "%d", &most) == 1)
        expect_values(gn_load_csv(g, "/proc/sys/kernel/pid_max", GN_I32, 0, 0), most);
    if (page != NULL && fscanf(page, "%d", &size) == 1)
        expect_values(gn_load_csv(g, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", GN_I32, 0, 0), size);
    if (made != NULL) fclose(made);
    if (page != NULL) fclose(page);
    expect_values(csv(g, "\" 1\",\"2 \", \"\t3 \" \n", GN_I32), 1, 2, 3);
    expect_values(csv(g, "1,0,true,False\n", GN_BOOL), 1, 0, 1, 0);
    expect_values(csv(g, "18446744073709551615,0", GN_U64), 18446744073709551615.0, 0);
    static const struct {
        const char *text;
        gn_dtype t;
        const char *says;
    } bad[] = {
        {"1,2\n3\n", GN_F32, "line 2, column 1: the lines before have 2 columns"},
        {"1,2\n3,4,5\n", GN_F32, "line 2, column 3: the lines before have 2 columns"},
        {"1,,3\n", GN_F32, "line 1, column 2: there is no number"},
        {"1,2,\n", GN_F32, "line 1, column 3: there is no number"},
        {"1,2\n\n3,x1\n", GN_F32, "line 3, column 2: 'x1' is not a number of dtype float32"},
        {"1,0x10\n", GN_F64, "line 1, column 2: '0x10' is not a number of dtype float64"},
        {"1.5\n", GN_I32, "line 1, column 1: '1.5' is not a number of dtype int32"},
        {"128\n", GN_I8, "line 1, column 1: '128' is out of the range of int8"},
        {"-1\n", GN_U8, "line 1, column 1: '-1' is out of the range of uint8"},
        {"-1\n", GN_U64, "line 1, column 1: '-1' is out of the range of uint64"},
        {"9223372036854775808\n", GN_I64, "line 1, column 1: '9223372036854775808' is out of the range of int64"},
        {"2\n", GN_BOOL, "line 1, column 1: '2' is not a number of dtype bool"},
        {"1 2\n", GN_F32, "line 1, column 1: '1 2' is not a number of dtype float32"},
    };
    char text[160];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(csv(g, bad[i].text, bad[i].t));
        snprintf(text, sizeof text, "gn_load_csv_memory: memory: %s", bad[i].says);
        expect_error(g, GN_ERROR_FORMAT, text);
    }
    assert_null(csv(g, "1", GN_C64));
    expect_error(g, GN_ERROR_DTYPE, "gn_load_csv_memory: complex64 has no form in a table of numbers");
    assert_null(gn_load_csv_memory(g, "1", 1, GN_F32, -1, 0));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_load_csv_memory: -1 lines to skip");
    assert_null(gn_load_csv_memory(g, "1", 1, GN_F32, 0, '.'));
    expect_error(g, GN_ERROR_ARGUMENT, "gn_load_csv_memory: '.' cannot separate numbers");
    char out[64] = "";
    a = gn_mul_s(gn_reshape(gn_arange(g, GN_F32, 0, 6, 1), GN_SHAPE(2, 3)), 0.1);
    // Names are the caller's text: with separators and quotes it is written and skipped as it is.
    static const char titled[] = "\"a,b\",\"say \"\"c\"\"\"\n4,4\n";
    size_t named = gn_save_csv_memory(gn_full(g, GN_I32, GN_SHAPE(1, 2), 4), "\"a,b\",\"say \"\"c\"\"\"", 0, out, sizeof out - 1);
    assert_true(named == sizeof titled - 1 && memcmp(out, titled, named) == 0);
    expect_values(gn_load_csv_memory(g, out, named, GN_I32, 1, 0), 4, 4);
    static const char *const empty[] = {"1,,3", ",2,3", "1,2,", "1,\"\",3", "1, ,3"};
    for (int i = 0; i < 5; i++) {
        char says[80];
        const int column = i == 1 ? 1 : i == 2 ? 3 : 2;
        assert_null(csv(g, empty[i], GN_F64));
        snprintf(says, sizeof says, "gn_load_csv_memory: memory: line 1, column %d: there is no number", column);
        expect_error(g, GN_ERROR_FORMAT, says);
    }
    // As printf writes doubles in full.
    char digits[1500];
    snprintf(digits, sizeof digits, "%f,-%.1074f", 1.7976931348623157e308, 4.9406564584124654e-324);
    expect_values(csv(g, digits, GN_F64), 1.7976931348623157e308, -4.9406564584124654e-324);
    memset(digits, '0', 1201);
    digits[1201] = 0;
    assert_null(csv(g, digits, GN_F64));
    expect_error(g, GN_ERROR_FORMAT, "gn_load_csv_memory: memory: line 1, column 1: the number is longer than 1200 characters");
    size_t n = gn_save_csv_memory(a, "a,b,c", 0, out, sizeof out - 1);
    assert_string_equal(out, "a,b,c\n0,0.1,0.2\n0.3,0.4,0.5\n");
    assert_int_equal(n, strlen(out));
    const double small[] = {5e-324, -1.5e-323, 2.5e-320, 1.25};
    const float smaller[] = {1e-45f, 2.5e-40f};
    memset(out, 0, sizeof out);
    gn_save_csv_memory(gn_array_from(g, GN_F64, GN_SHAPE(1, 4), small), NULL, 0, out, sizeof out - 1);
    assert_string_equal(out, "5e-324,-1.5e-323,2.5e-320,1.25\n");
    memset(out, 0, sizeof out);
    gn_save_csv_memory(gn_array_from(g, GN_F32, GN_SHAPE(1, 2), smaller), NULL, 0, out, sizeof out - 1);
    assert_string_equal(out, "1e-45,2.5e-40\n");
    memset(out, 0, sizeof out);
    gn_save_csv_memory(gn_cast(gn_full(g, GN_F64, GN_SHAPE(1, 1), 6e-8), GN_F16), NULL, 0, out, sizeof out - 1);
    assert_string_equal(out, "6e-08\n");
    assert_int_equal(gn_save_csv_memory(gn_zeros(g, GN_F32, GN_SHAPE(1, 2, 2)), NULL, 0, NULL, 0), 0);
    expect_error(g, GN_ERROR_SHAPE, "gn_save_csv_memory: an array of 3 dimensions is no table");
    assert_int_equal(gn_save_csv(a, "x.csv", "a\nb", 0), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_save_csv: the header has more than one line");
}

static uint32_t noise(uint32_t *s) {
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

// Loads what was a file: each gives an array or an error, never both or neither.
static void damage(gn_context *g, const unsigned char *good, size_t size, size_t header,
                   gn_array *(*load)(gn_context *g, const void *data, size_t bytes)) {
    unsigned char file[1024];
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
        gn_scope_begin(g);
        gn_array *a = load(g, file, n);
        if (a != NULL) gn_eval(a);
        assert_true((a == NULL) == (gn_status_get(g) != GN_OK));
        gn_error_clear(g);
        gn_scope_end(g);
    }
}

static gn_array *load_npz(gn_context *g, const void *data, size_t bytes) { return gn_load_npz_memory(g, data, bytes, NULL); }

static void test_damaged(void **state) {
    gn_context *g = (gn_context *)*state;
    const unsigned char idx[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255};
    gn_array *a = gn_reshape(gn_arange(g, GN_F32, 0, 24, 1), GN_SHAPE(4, 3, 2));
    assert_int_equal(gn_save_npy(a, "good.npy"), GN_OK);
    size_t size;
    unsigned char *npy = test_read_file("good.npy", &size);
    damage(g, npy, size, 128, gn_load_npy_memory);
    damage(g, idx, sizeof idx, 12, gn_load_idx_memory);
    free(npy);
    // Archives: the first entry, stored and deflated, and the directory behind it.
    gn_array *arrays[2] = {a, gn_scalar(g, GN_U8, 3)};
    const char *names[2] = {"a", "b"};
    assert_int_equal(gn_save_npz("good.npz", arrays, names, 1), GN_OK);
    npy = test_read_file("good.npz", &size);
    damage(g, npy, size, size, load_npz);
    free(npy);
    if (!test_make_cases("npz", "npz.cases")) skip();
    npy = test_read_file("one.npz", &size);
    damage(g, npy, size, size, load_npz);
    free(npy);
}

static void save_and_load(gn_context *g) {
    gn_scope_begin(g);
    gn_array *a = gn_transpose(gn_reshape(gn_arange(g, GN_F32, 0, 6, 1), GN_SHAPE(2, 3)));
    gn_save_npy(a, "memory.npy");
    gn_load_npy(g, "memory.npy");
    const char *names[1] = {"a"};
    gn_save_npz("memory.npz", &a, names, 1);
    gn_load_npz(g, "memory.npz", "a");
    gn_string_free(g, gn_npz_names(g, "memory.npz"));
    gn_save_csv(a, "memory.csv", NULL, 0);
    gn_load_csv(g, "memory.csv", GN_F32, 0, 0);
    gn_scope_end(g);
}

static void test_out_of_memory(void **state) {
    (void)state;
    test_most_allocations(save_and_load);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        GN_TEST(test_numpy_files),
        GN_TEST(test_save_views),
        GN_TEST(test_paths),
        GN_TEST(test_replaced),
        GN_TEST(test_headers),
        GN_TEST(test_idx),
        GN_TEST(test_npy_memory),
        GN_TEST(test_npz),
        GN_TEST(test_npz_arguments),
        GN_TEST(test_csv),
        GN_TEST(test_csv_text),
        GN_TEST(test_damaged),
        cmocka_unit_test(test_out_of_memory),
    };
    return test_run(tests);
}
