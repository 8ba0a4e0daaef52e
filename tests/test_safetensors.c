// Named arrays and their files: against a reader and a writer in Python, files that are damaged or hostile, and training that
// goes on from a file with the same bits.
#include "test.h"

static const gn_dtype dtypes[] = {GN_F64, GN_F32, GN_F16, GN_BF16, GN_I64, GN_I32, GN_I16, GN_I8, GN_U64, GN_U32, GN_U16, GN_U8, GN_BOOL, GN_C64};
static const char *const names[] = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL", "C64"};
enum { DTYPES = (int)(sizeof dtypes / sizeof dtypes[0]) };
static const char turned[] = "turned \"\\\n\xf0\x9f\x98\x80", key[] = "\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87";

static gn_array *numbers(gn_context *g, gn_dtype t) {
    return gn_cast(gn_reshape(gn_mod_s(gn_mul_s(gn_arange(g, GN_I32, 0, 12, 1), 3), 7), GN_SHAPE(3, 4)), t);
}

static gn_params *filled(gn_context *g) {
    gn_params *p = gn_params_new(g);
    GN_SCOPE(g) { // which the list outlives
        for (int i = 0; i < DTYPES; i++) assert_int_equal(gn_params_add(p, names[i], numbers(g, dtypes[i])), GN_OK);
        assert_int_equal(gn_params_add(p, "empty", gn_zeros(g, GN_F32, GN_SHAPE(0, 5))), GN_OK);
        assert_int_equal(gn_params_add(p, "scalar", gn_scalar(g, GN_F16, 1.5)), GN_OK);
        assert_int_equal(gn_params_add(p, turned, gn_transpose(numbers(g, GN_F32))), GN_OK);
    }
    assert_int_equal(gn_params_note(p, "format", "np"), GN_OK);
    assert_int_equal(gn_params_note(p, key, "a \"b\"\n"), GN_OK);
    assert_int_equal(gn_params_note(p, "format", "pt"), GN_OK);
    return p;
}

static void expect_filled(gn_context *g, const gn_params *p, bool reversed) {
    assert_non_null(p);
    assert_int_equal(gn_params_count(p), DTYPES + 3);
    assert_string_equal(gn_params_noted(p, key), "a \"b\"\n");
    assert_string_equal(gn_params_noted(p, "format"), "pt");
    for (int i = 0; i < DTYPES + 3; i++)
        GN_SCOPE(g) {
            gn_array *a = gn_params_at(p, i);
            assert_true(gn_params_get(p, gn_params_name(p, i)) == a);
            const int at = reversed ? DTYPES + 2 - i : i;
            if (at >= DTYPES || reversed) continue;
            assert_string_equal(gn_params_name(p, at), names[at]);
        }
    for (int i = 0; i < DTYPES; i++)
        GN_SCOPE(g) {
            gn_array *a = gn_params_get(p, names[i]);
            assert_true(gn_dtype_of(a) == dtypes[i] && gn_array_equal(a, numbers(g, dtypes[i]), false));
        }
    expect_shape(gn_params_get(p, "empty"), 0, 5);
    expect_values(gn_params_get(p, "scalar"), 1.5);
    GN_SCOPE(g) assert_true(gn_array_equal(gn_params_get(p, turned), gn_transpose(numbers(g, GN_F32)), false));
}

static void test_round_trip(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_params *p = filled(g);
    assert_int_equal(gn_params_save(p, "made.safetensors"), GN_OK);
    size_t size, bytes = gn_params_save_memory(p, NULL, 0);
    unsigned char *file = test_read_file("made.safetensors", &size), *memory = (unsigned char *)malloc(bytes);
    assert_int_equal(bytes, size);
    assert_int_equal(gn_params_save_memory(p, memory, bytes), size);
    assert_memory_equal(file, memory, size);
    gn_params *again = gn_load_safetensors(g, "made.safetensors"), *from_memory = gn_load_safetensors_memory(g, memory, bytes);
    expect_filled(g, again, false);
    expect_filled(g, from_memory, false);
    for (int i = 0; i < DTYPES; i++) // overwritten, and read again
        GN_SCOPE(g) if (dtypes[i] != GN_C64) gn_assign(gn_params_get(again, names[i]), gn_scalar(g, GN_I32, 9));
    assert_int_equal(gn_params_load_memory(again, memory, bytes), GN_OK);
    expect_filled(g, again, false);
    if (test_make_cases("safetensors_check", "made.safetensors")) {
        gn_params *python = gn_load_safetensors(g, "made.safetensors.python");
        expect_filled(g, python, true);
        gn_params_free(python);
        assert_int_equal(gn_params_load(again, "made.safetensors.python"), GN_OK);
        expect_filled(g, again, false);
    }
    gn_params_free(p);
    gn_params_free(again);
    gn_params_free(from_memory);
    free(file);
    free(memory);
}

static void test_list(void **state) {
    (void)state;
    gn_context *g = test_open();
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(2, 3)), *wide = gn_ones(g, GN_C128, GN_SHAPE(2)), *half = gn_zeros(g, GN_F16, GN_SHAPE(2, 3));
    gn_params *p = gn_params_new(g), *q = gn_params_new(g), *other = gn_params_new(g);
    assert_int_equal(gn_params_add(p, "a", a), GN_OK);
    assert_int_equal(gn_params_add(p, "a", a), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_params_add: there is a 'a' already");
    assert_int_equal(gn_params_add(p, "__metadata__", a), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_params_add: the name is NULL, empty, __metadata__ or not UTF-8");
    assert_int_equal(gn_params_add(p, "\xff", a), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, NULL);
    assert_int_equal(gn_params_add(NULL, "b", a), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_params_add: the list is none, or of another context");
    assert_int_equal(gn_params_note(p, NULL, "b"), GN_ERROR_ARGUMENT);
    expect_error(g, GN_ERROR_ARGUMENT, "gn_params_note: the key or the text is NULL or not UTF-8");
    assert_null(gn_params_get(p, "b"));
    assert_null(gn_params_at(p, 1));
    assert_null(gn_params_name(p, -1));
    assert_int_equal(gn_params_count(NULL), 0);
    assert_int_equal(gn_params_save(NULL, "x"), GN_ERROR_ARGUMENT);
    assert_int_equal(gn_params_save(p, "no/such/folder"), GN_ERROR_IO);
    expect_error(g, GN_ERROR_IO, NULL);
    assert_null(gn_load_safetensors(g, "no such file"));
    expect_error(g, GN_ERROR_IO, NULL);
    gn_params_add(other, "wide", wide);
    assert_int_equal(gn_params_save(other, "wide.safetensors"), GN_ERROR_DTYPE);
    expect_error(g, GN_ERROR_DTYPE, "gn_params_save: wide is complex128, which safetensors has not");
    // Names and shapes are compared before anything is written; dtypes are converted.
    unsigned char memory[512];
    const size_t bytes = gn_params_save_memory(p, memory, sizeof memory);
    assert_true(bytes > 0 && bytes < sizeof memory);
    gn_params_add(q, "a", half);
    gn_params_add(q, "b", a);
    assert_int_equal(gn_params_load_memory(q, memory, bytes), GN_ERROR_FORMAT);
    expect_error(g, GN_ERROR_FORMAT, "gn_params_load_memory: there is no b");
    expect_values(half, 0, 0, 0, 0, 0, 0);
    assert_int_equal(gn_params_load_memory(other, memory, bytes), GN_ERROR_FORMAT);
    expect_error(g, GN_ERROR_FORMAT, NULL);
    gn_params *empty = gn_params_new(g), *turned_list = gn_params_new(g), *right = gn_params_new(g);
    assert_int_equal(gn_params_load_memory(empty, memory, bytes), GN_ERROR_FORMAT);
    expect_error(g, GN_ERROR_FORMAT, "gn_params_load_memory: nothing takes the file's a; to take a part of it: gn_params_load_matching");
    gn_array *t = gn_ones(g, GN_F32, GN_SHAPE(3, 2));
    gn_params_add(turned_list, "a", t);
    assert_int_equal(gn_params_load_memory(turned_list, memory, bytes), GN_ERROR_SHAPE);
    expect_error(g, GN_ERROR_SHAPE, "gn_params_load_memory: a is float32 (2,3) and not float32 (3,2)");
    gn_params_add(right, "a", half);
    assert_int_equal(gn_params_load_memory(right, memory, bytes), GN_OK);
    expect_values(half, 1, 1, 1, 1, 1, 1);
    // Nor is one written where another one, which an op made, would be refused.
    gn_params *made = gn_params_new(g);
    gn_array *leaf = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(2, 3)), true);
    gn_params_add(made, "a", leaf);
    gn_params_add(made, "b", gn_mul_s(leaf, 3.0));
    const size_t both = gn_params_save_memory(made, memory, sizeof memory);
    assert_true(both > 0 && both < sizeof memory);
    gn_write(leaf, (const float[]){1, 2, 3, 4, 5, 6}, 24);
    assert_int_equal(gn_params_load_memory(made, memory, both), GN_ERROR_GRADIENT);
    expect_error(g, GN_ERROR_GRADIENT, "gn_params_load_memory: gn_mul_s made b");
    expect_values(leaf, 1, 2, 3, 4, 5, 6);
    gn_params_free(p);
    gn_params_free(NULL);
    test_close(g); // frees the others
}

// What both have is loaded, and what either lacks is listed.
static void test_matching(void **state) {
    (void)state;
    gn_context *g = test_open();
    gn_params *saved = gn_params_new(g), *p = gn_params_new(g), *missing = NULL, *unused = NULL;
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(2)), *b = gn_full(g, GN_F64, GN_SHAPE(), 5), *c = gn_full(g, GN_F32, GN_SHAPE(3), 7);
    gn_params_add(saved, "a", a);
    gn_params_add(saved, "b", b);
    gn_params_add(saved, "c", c);
    gn_params_note(saved, "epoch", "3");
    assert_int_equal(gn_params_save(saved, "part.safetensors"), GN_OK);
    gn_array *own_a = gn_copy(gn_zeros(g, GN_F16, GN_SHAPE(2))), *own_c = gn_copy(gn_zeros(g, GN_F32, GN_SHAPE(3))), *head = gn_zeros(g, GN_F32, GN_SHAPE(4));
    gn_params_add(p, "head", head);
    gn_params_add(p, "a", own_a);
    gn_params_add(p, "c", own_c);
    assert_int_equal(gn_params_load_matching(p, "part.safetensors", &missing, &unused), GN_OK);
    expect_values(own_a, 1, 1);
    expect_values(own_c, 7, 7, 7);
    expect_values(head, 0, 0, 0, 0);
    assert_string_equal(gn_params_noted(p, "epoch"), "3");
    assert_int_equal(gn_params_count(missing), 1);
    assert_string_equal(gn_params_name(missing, 0), "head");
    assert_ptr_equal(gn_params_at(missing, 0), head);
    assert_int_equal(gn_params_count(unused), 1);
    assert_string_equal(gn_params_name(unused, 0), "b");
    expect_values(gn_params_at(unused, 0), 5);
    gn_params_free(missing);
    gn_params_free(unused);
    assert_int_equal(gn_params_load_matching(p, "part.safetensors", NULL, NULL), GN_OK);
    size_t bytes;
    unsigned char *file = test_read_file("part.safetensors", &bytes);
    gn_assign(own_a, gn_zeros(g, GN_F32, GN_SHAPE(2)));
    assert_int_equal(gn_params_load_matching_memory(p, file, bytes, &missing, &unused), GN_OK);
    expect_values(own_a, 1, 1);
    assert_string_equal(gn_params_name(missing, 0), "head");
    assert_string_equal(gn_params_name(unused, 0), "b");
    gn_params_free(missing);
    gn_params_free(unused);
    missing = unused = p;
    assert_int_equal(gn_params_load_matching_memory(p, file, bytes - 1, &missing, &unused), GN_ERROR_FORMAT);
    gn_error_clear(g);
    assert_true(missing == NULL && unused == NULL);
    missing = p;
    assert_int_equal(gn_params_load_matching_memory(NULL, file, bytes, &missing, NULL), GN_ERROR_ARGUMENT);
    assert_null(missing);
    free(file);
    // All can be written, or none is.
    gn_params *repeated = gn_params_new(g);
    gn_params_add(repeated, "a", gn_copy(gn_zeros(g, GN_F32, GN_SHAPE(2))));
    gn_params_add(repeated, "c", gn_broadcast_to(gn_eval(gn_zeros(g, GN_F32, GN_SHAPE(1))), GN_SHAPE(3)));
    assert_int_equal(gn_params_load_matching(repeated, "part.safetensors", NULL, NULL), GN_ERROR_ARGUMENT);
    gn_error_clear(g);
    expect_values(gn_params_get(repeated, "a"), 0, 0);
    gn_params_free(repeated);
    // Shapes have to be the same: nothing is written, and there are no lists.
    gn_params *wrong = gn_params_new(g);
    gn_array *zero = gn_copy(gn_zeros(g, GN_F32, GN_SHAPE(2)));
    gn_params_add(wrong, "a", zero);
    gn_params_add(wrong, "c", zero);
    missing = unused = p;
    assert_int_equal(gn_params_load_matching(wrong, "part.safetensors", &missing, &unused), GN_ERROR_SHAPE);
    expect_error(g, GN_ERROR_SHAPE, "gn_params_load_matching: c is float32 (3,) and not float32 (2,)");
    assert_true(missing == NULL && unused == NULL);
    expect_values(zero, 0, 0);
    missing = unused = p;
    assert_int_equal(gn_params_load_matching(p, "no such file", &missing, &unused), GN_ERROR_IO);
    expect_error(g, GN_ERROR_IO, NULL);
    assert_true(missing == NULL && unused == NULL);
    missing = p;
    assert_int_equal(gn_params_load_matching(NULL, "part.safetensors", &missing, NULL), GN_ERROR_ARGUMENT);
    assert_null(missing);
    // An optimizer's states take no parameter's name, and where one is taken none is added.
    gn_array *w = gn_requires_grad(gn_copy(gn_ones(g, GN_F32, GN_SHAPE(2))), true);
    gn_optimizer *opt = gn_adam(&w, 1, NULL);
    static const char *const states[] = {"opt.0.1", "opt.numbers"};
    for (int i = 0; i < 2; i++) {
        gn_params *taken = gn_params_new(g);
        char text[100];
        gn_params_add(taken, states[i], a);
        assert_int_equal(gn_params_add_optimizer(taken, "opt", opt), GN_ERROR_ARGUMENT);
        snprintf(text, sizeof text, "gn_params_add_optimizer: there is a '%s' already", states[i]);
        expect_error(g, GN_ERROR_ARGUMENT, text);
        assert_int_equal(gn_params_count(taken), 1);
        assert_ptr_equal(gn_params_get(taken, states[i]), a);
    }
    test_close(g);
}

// A file of that header and so many zero bytes, with the header's length as said or its own.
static size_t file_of(unsigned char *to, const char *header, size_t data) {
    const size_t n = strlen(header);
    memset(to, 0, 8 + n + data);
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)((uint64_t)n >> (8 * i));
    memcpy(to + 8, header, n);
    return 8 + n + data;
}

static void test_headers(void **state) {
    gn_context *g = (gn_context *)*state;
    static const struct {
        const char *header;
        int data;
        const char *why; // NULL: it is fine
    } files[] = {
        {"{}", 0, NULL},
        {" \t\r\n{ } ", 0, NULL},
        {"{\"__metadata__\":{}}", 0, NULL},
        {"{\"\\u00e4\\ud83d\\ude00\\/\":{\"shape\":[ 1 , 2 ],\"data_offsets\":[0,8],\"dtype\":\"F32\"}}", 8, NULL},
        {"{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 2, NULL},
        {"{\"b\":{\"dtype\":\"U8\",\"shape\":[0,9223372036854775799],\"data_offsets\":[0,0]}}", 0, NULL},
        {"", 0, "the header is not JSON"},
        {"[]", 0, "the header is not JSON"},
        {"{", 0, "the header is not JSON"},
        {"{}}", 0, "something follows"},
        {"{} x", 0, "something follows"},
        {"{\"a\"", 0, "not JSON"},
        {"{\"a\":", 0, "not JSON"},
        {"{\"a\":{}}", 0, "not JSON"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},}", 1, "not JSON"},
        {"{'a':{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "not JSON"},
        {"{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "no name"},
        {"{\"a\\u0000\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "string"},
        {"{\"\\ud83d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "string"},
        {"{\"\\udc00\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "string"},
        {"{\"\\x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "string"},
        {"{\"a\nb\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "string"},
        {"{\"\xc0\x80\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "string"},
        {"{\"\xed\xa0\x80\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "string"},
        {"{\"\xe2\x82\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "string"},
        {"{\"a\\", 1, "string"},
        {"{\"a\\u12", 1, "string"},
        {"{\"a", 1, "string"},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype 'F8_E4M3' has no counterpart here"},
        {"{\"a\":{\"dtype\":\"C128\",\"shape\":[1],\"data_offsets\":[0,16]}}", 16, "dtype"},
        {"{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "not JSON"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, "number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}", 1, "number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1e0],\"data_offsets\":[0,1]}}", 1, "number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[01],\"data_offsets\":[0,1]}}", 1, "number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775808],\"data_offsets\":[0,1]}}", 1, "number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[18446744073709551617],\"data_offsets\":[0,1]}}", 1, "number"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, "8 dimensions"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,1]}}", 1, "more elements"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "not JSON"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, "not JSON"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}}", 1, "places"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, "places"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, "places"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2, "fill the file"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1000],\"data_offsets\":[0,1000]}}", 2, "fill the file"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1125899906842624],\"data_offsets\":[0,1125899906842624]}}", 2,
         sizeof(size_t) < 8 ? "than there can be" : "fill the file"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3, "places"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}", 3, "places"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, "twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"size\":1,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "not known"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "lacks"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "not JSON"},
        {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "twice"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
        {"{\"__metadata__\":[]}", 0, "not JSON"},
    };
    unsigned char file[1024];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (int cut = 0; cut < (files[i].why == NULL ? 2 : 1); cut++) {
            const size_t bytes = file_of(file, files[i].header, (size_t)files[i].data);
            gn_params *p = gn_load_safetensors_memory(g, file, bytes - (size_t)cut);
            const bool fine = files[i].why == NULL && cut == 0;
            if ((p != NULL) != fine) fail_msg("%s: %s", files[i].header, fine ? gn_error(g) : "was taken");
            if (p == NULL && (gn_status_get(g) != GN_ERROR_FORMAT || (cut == 0 && strstr(gn_error(g), files[i].why) == NULL)))
                fail_msg("%s: %s", files[i].header, gn_error(g));
            gn_error_clear(g);
            gn_params_free(p);
        }
    file_of(file, "{}", 0);
    for (int i = 0; i < 8; i++) { // no room is asked for by a number that nothing bears out
        file[i] |= 0x80;
        assert_null(gn_load_safetensors_memory(g, file, 10));
        expect_error(g, GN_ERROR_FORMAT, "gn_load_safetensors_memory: memory: the header would be longer than the file, or than 100 MB");
    }
    for (size_t n = 0; n < 8; n++) {
        assert_null(gn_load_safetensors_memory(g, file, n));
        expect_error(g, GN_ERROR_FORMAT, NULL);
    }
    file_of(file, "{}  ", 0);
    file[10] = 0;
    assert_null(gn_load_safetensors_memory(g, file, 12));
    expect_error(g, GN_ERROR_FORMAT, "gn_load_safetensors_memory: memory: the header holds a zero byte");
}

// A list from a damaged file, or an error that says so, and nothing left.
static void test_damaged(void **state) {
    gn_context *g = (gn_context *)*state;
    gn_params *p = filled(g);
    const size_t bytes = gn_params_save_memory(p, NULL, 0);
    unsigned char *good = (unsigned char *)malloc(bytes), *bad = (unsigned char *)malloc(bytes);
    gn_params_save_memory(p, good, bytes);
    int taken = 0;
    for (int i = 0; i < 20000; i++) {
        memcpy(bad, good, bytes);
        size_t size = draw(4) == 0 ? draw((uint32_t)bytes + 1) : bytes;
        for (uint32_t k = draw(3); k < 3; k++) {
            const uint32_t byte = draw(256), mark = draw(14);
            bad[draw(2) ? draw(1400) : draw((uint32_t)bytes)] = draw(2) ? (unsigned char)byte : (unsigned char)"\"\\{}[],:0179u "[mark];
        }
        unsigned char *exact = (unsigned char *)malloc(size + 1); // so that a sanitizer sees what is behind
        memcpy(exact, bad, size);
        exact = (unsigned char *)realloc(exact, size > 0 ? size : 1);
        gn_params *q = gn_load_safetensors_memory(g, exact, size);
        if (q == NULL && gn_status_get(g) != GN_ERROR_FORMAT) fail_msg("%s", gn_error(g));
        taken += q != NULL;
        gn_error_clear(g);
        gn_params_free(q);
        free(exact);
    }
    assert_true(taken > 100 && taken < 19000); // changes of the data are none of the format's business
    gn_params_free(p);
    free(good);
    free(bad);
}

// ---- training that goes on

enum { OPTIMIZERS = 10 };

typedef struct model {
    gn_array *w[3], *average; // the third is of a group of its own
    gn_optimizer *opt;
    gn_params *list;
    gn_plateau plateau;
} model;

static gn_optimizer *optimizer_of(gn_array *const *w, int count, int kind) {
    const gn_rmsprop_options centered = {0.01, 0, 0, 0.01, 0.9, true};
    const gn_sgd_options nesterov = {0.1, 0.9, 0, 1e-3, true}, damped = {0.1, 0.8, 0.2, 0, false};
    const gn_adagrad_options adagrad = {0.1, 0.05, 0.01, 0.2, 0};
    switch (kind) {
    case 0: return gn_adam(w, count, NULL);
    case 1: return gn_rmsprop(w, count, &centered);
    case 2: return gn_sgd(w, count, NULL);
    case 3: return gn_sgd(w, count, &nesterov);
    case 4: return gn_sgd(w, count, &damped);
    case 5: return gn_adamw(w, count, NULL);
    case 6: return gn_rmsprop(w, count, NULL);
    case 7: return gn_adagrad(w, count, &adagrad);
    case 8: return gn_lion(w, count, NULL);
    default: return gn_muon(w, count, NULL);
    }
}

// `other`: with settings of the group that are not those of the file.
static model model_of(gn_context *g, int kind, bool other) {
    static const char *const called[] = {"first", "second", "third"};
    model m;
    memset(&m, 0, sizeof m);
    for (int i = 0; i < 3; i++)
        m.w[i] = gn_requires_grad(gn_detach(gn_eval(gn_cast(gn_full(g, GN_F64, GN_SHAPE(3, 4), 0.5 + i), i == 1 ? GN_F16 : GN_F32))), true);
    m.average = gn_copy(gn_detach(m.w[0]));
    m.opt = optimizer_of(m.w, 2, kind);
    gn_group_options group = {0.5, 0.02, 0.7, 0, 0.8, 0.9, 0.95, 1e-4, 0.02, 0.1, 0, 0};
    if (other) group.lr_factor = group.momentum = group.alpha = group.beta1 = group.beta2 = group.eps = group.lr_decay = 0.25;
    if (kind % 2 == 0)
        assert_int_equal(gn_optimizer_add_group(m.opt, m.w + 2, 1, 0.5, 0.02), GN_OK);
    else
        assert_int_equal(gn_optimizer_add_group_with(m.opt, m.w + 2, 1, &group), GN_OK);
    m.plateau.lr = 0.1;
    m.plateau.patience = 1;
    m.list = gn_params_new(g);
    for (int i = 0; i < 3; i++) gn_params_add(m.list, called[i], m.w[i]);
    gn_params_add(m.list, "average", m.average);
    return m;
}

// Each optimizer has a schedule of its own.
static double rate(int kind, int step, gn_plateau *plateau) {
    static const int64_t milestones[] = {2, 5};
    switch (kind) {
    case 1: return gn_lr_step(step, 0.1, 3, 0.5);
    case 2: return gn_lr_multi_step(step, 0.1, milestones, 2, 0.3);
    case 3: return gn_lr_exponential(step, 0.1, 0.9);
    case 4: return gn_lr_cosine_restarts(step, 0.1, 3, 2, 0.01);
    case 5: return gn_lr_linear(step, 0.1, 0.1, 1, 5);
    case 6: return gn_lr_one_cycle(step, 0.1, 9);
    case 7: return gn_lr_plateau(plateau, 1.0 + 0.3 * sin(step));
    default: return gn_lr_cosine(step, 0.1, 10, 0.0);
    }
}

static void train(gn_context *g, model *m, int kind, int from, int to) {
    for (int i = from; i < to; i++)
        GN_SCOPE(g) {
            gn_zero_grads(m->opt);
            gn_array *x = gn_dropout(m->w[0], 0.3, true), *noise = gn_randn(g, GN_F32, GN_SHAPE(3, 4));
            gn_array *y = gn_mul(gn_mul(x, gn_cast(m->w[1], GN_F32)), m->w[2]);
            gn_backward(gn_mean(gn_square(gn_sub(y, noise)), GN_ALL));
            gn_lr_set(m->opt, rate(kind, i, &m->plateau));
            gn_step(m->opt);
            gn_ema_update(&m->average, m->w, 1, 0.9);
        }
}

static void expect_same_model(const model *a, const model *b, int kind, int stop) {
    bool same = gn_lr_get(a->opt) == gn_lr_get(b->opt) && gn_array_equal(a->average, b->average, false);
    for (int i = 0; i < 3; i++) same = same && gn_array_equal(a->w[i], b->w[i], false);
    if (!same) fail_msg("optimizer %d that stopped behind step %d: others than in one go", kind, stop);
}

static void test_resume(void **state) {
    gn_context *g = (gn_context *)*state;
    for (int kind = 0; kind < OPTIMIZERS; kind++)
        GN_SCOPE(g) {
            const int stop = 1 + (int)draw(7), end = 9;
            gn_seed(g, 21);
            model a = model_of(g, kind, false);
            train(g, &a, kind, 0, stop - 1);
            assert_int_equal(gn_params_add_optimizer(a.list, "opt", a.opt), GN_OK);
            train(g, &a, kind, stop - 1, stop);
            assert_int_equal(gn_params_add_optimizer(a.list, "opt", a.opt), GN_OK); // as it is now
            assert_int_equal(gn_params_save(a.list, "model.safetensors"), GN_OK);
            const gn_plateau plateau = a.plateau; // all that there is to be saved
            const double before = gn_lr_get(a.opt);
            train(g, &a, kind, stop, end);
            gn_seed(g, 99);
            model b = model_of(g, kind, true), c = model_of(g, kind, true);
            assert_int_equal(gn_params_add_optimizer(b.list, "opt", b.opt), GN_OK);
            assert_int_equal(gn_params_load(b.list, "model.safetensors"), GN_OK);
            assert_int_equal(gn_optimizer_restore(b.opt, b.list, "opt"), GN_OK);
            assert_true(gn_lr_get(b.opt) == before);
            b.plateau = c.plateau = plateau;
            train(g, &b, kind, stop, end);
            expect_same_model(&a, &b, kind, stop);
            // The same from a list of the file's own arrays.
            gn_params *file = gn_load_safetensors(g, "model.safetensors");
            gn_no_grad_begin(g);
            for (int i = 0; i < 3; i++) gn_assign(c.w[i], gn_params_at(file, i));
            gn_assign(c.average, gn_params_at(file, 3));
            gn_no_grad_end(g);
            assert_int_equal(gn_optimizer_restore(c.opt, file, "opt"), GN_OK);
            train(g, &c, kind, stop, end);
            expect_same_model(&a, &c, kind, stop);
            // Of another kind with as many states each, and of the same one with fewer.
            gn_optimizer *other = optimizer_of(c.w, 3, kind == 8 ? 3 : 8);
            const double rate_of_other = gn_lr_get(other);
            assert_int_equal(gn_optimizer_restore(other, file, "opt"), GN_ERROR_FORMAT);
            expect_error(g, GN_ERROR_FORMAT, "gn_optimizer_restore: opt.numbers is of another kind of optimizer");
            assert_true(gn_lr_get(other) == rate_of_other);
            gn_optimizer_free(other);
            if (kind == 3) {
                other = optimizer_of(c.w, 3, 2);
                assert_int_equal(gn_optimizer_restore(other, file, "opt"), GN_ERROR_FORMAT);
                expect_error(g, GN_ERROR_FORMAT, "gn_optimizer_restore: opt.0.0 is of another kind of optimizer");
                gn_optimizer_free(other);
                gn_array *first = gn_index(gn_params_get(file, "opt.numbers"), "1"); // older files do not tell the kind
                gn_assign(first, gn_mod_s(first, 4294967296.0));
                assert_int_equal(gn_optimizer_restore(c.opt, file, "opt"), GN_OK);
            }
            if (kind == 0) {
                assert_int_equal(gn_optimizer_restore(c.opt, file, "other"), GN_ERROR_FORMAT);
                expect_error(g, GN_ERROR_FORMAT, "gn_optimizer_restore: other.numbers is not that of an optimizer with 3 parameters");
                assert_int_equal(gn_params_add_optimizer(file, "", c.opt), GN_ERROR_ARGUMENT);
                expect_error(g, GN_ERROR_ARGUMENT, NULL);
                assert_int_equal(gn_params_add_optimizer(NULL, "a", c.opt), GN_ERROR_ARGUMENT);
                assert_int_equal(gn_params_add(c.list, "mine.0.0", c.average), GN_OK); // is no state of an optimizer
                assert_int_equal(gn_params_add_optimizer(c.list, "mine", c.opt), GN_ERROR_ARGUMENT);
                expect_error(g, GN_ERROR_ARGUMENT, "gn_params_add_optimizer: there is a 'mine.0.0' already");
                gn_array *steps = gn_params_get(file, "opt.numbers");
                gn_assign(gn_index(steps, "5"), gn_scalar(g, GN_F64, -1.0));
                assert_int_equal(gn_optimizer_restore(c.opt, file, "opt"), GN_ERROR_FORMAT);
                expect_error(g, GN_ERROR_FORMAT, NULL);
            }
            gn_params_free(file);
            gn_optimizer_free(a.opt), gn_optimizer_free(b.opt), gn_optimizer_free(c.opt);
            gn_params_free(a.list), gn_params_free(b.list), gn_params_free(c.list);
        }
}

static void save_and_load(gn_context *g) {
    gn_params *p = gn_params_new(g);
    gn_array *a = gn_ones(g, GN_F32, GN_SHAPE(3));
    gn_optimizer *opt = gn_adam(&a, a != NULL, NULL);
    unsigned char memory[1024];
    gn_params_add(p, "a", a);
    gn_params_note(p, "key", "text");
    gn_params_add_optimizer(p, "opt", opt);
    const size_t bytes = gn_params_save_memory(p, memory, sizeof memory);
    if (bytes > 0 && gn_params_load_memory(p, memory, bytes) == GN_OK) gn_optimizer_restore(opt, p, "opt");
    gn_optimizer_free(opt);
    gn_params_free(p);
    if (a != NULL) gn_release(a);
}

static void test_no_memory(void **state) {
    (void)state;
    if (!test_on_vulkan()) test_every_allocation(save_and_load);
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_round_trip), cmocka_unit_test(test_list), cmocka_unit_test(test_matching), GN_TEST(test_headers),
                                       GN_TEST(test_damaged), GN_TEST(test_resume), cmocka_unit_test(test_no_memory)};
    return test_run(tests);
}
