// Damaged files: what savers write, and small ones by hand, with bytes changed, cut out, repeated, moved, and numbers in the place of
// numbers. A loader gives what can be saved and loaded again to the same bytes, or an error in words that says what is wrong with the
// file; memory is asked for only as far as the file's own size bears out.
//
//   fuzz_files [seconds [seed [files]]]
//
// Every file has a seed of its own, which is printed when something is wrong: fuzz_files 0 SEED 1.
#include "fuzz.h"
#include "test.h"

enum { MOST = 1 << 15, KINDS = 6 };

typedef struct file {
    size_t size;
    unsigned char data[2 * MOST];
} file;

static const char *const kinds[KINDS] = {"safetensors", "safetensors into a list", "npy", "npz", "csv", "idx"};

// ---- good files

static gn_array *some_array(gn_context *g, gn_dtype t) {
    static const int64_t dims[] = {0, 1, 2, 3, 5};
    gn_shape s = gn_shape_from(0, NULL);
    for (s.rank = 0; s.rank < 4 && draw(4) > 0; s.rank++) s.dim[s.rank] = dims[draw(5)];
    return gn_cast(gn_randint(g, GN_I32, s, 0, 100), t);
}

static gn_params *some_list(gn_context *g) {
    gn_params *p = gn_params_new(g);
    const int count = (int)draw(5);
    for (int i = 0; i < count; i++) {
        char name[16];
        gn_dtype t = (gn_dtype)draw(GN_DTYPE_COUNT);
        snprintf(name, sizeof name, draw(3) ? "layer.%d" : "\xc3\xa4\"\\\n%d", i);
        gn_params_add(p, name, some_array(g, t == GN_C128 ? GN_C64 : t));
    }
    if (draw(2)) gn_params_note(p, "step", "12 \xe2\x82\xac \t");
    return p;
}

// The list that a file is loaded over: as the file has it, mostly.
static size_t make_good(gn_context *g, int kind, file *f, gn_params **list) {
    *list = NULL;
    if (kind < 2) {
        *list = some_list(g);
        return gn_params_save_memory(*list, f->data, MOST);
    }
    if (kind == 3) {
        gn_array *a[3];
        const char *const names[] = {"a", "weights/of it", "c"};
        for (int i = 0; i < 3; i++) a[i] = some_array(g, draw(2) ? GN_F32 : GN_U16);
        return gn_save_npz_memory(a, names, (int)draw(3) + 1, f->data, MOST);
    }
    if (kind == 4) return gn_save_csv_memory(gn_randn(g, draw(2) ? GN_F32 : GN_F64, GN_SHAPE(draw(5), draw(4) + 1)),
                                             draw(2) ? "a,b" : NULL, draw(2) ? ',' : ';', f->data, MOST);
    if (kind == 5) {
        static const unsigned char idx[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
        memcpy(f->data, idx, sizeof idx);
        return sizeof idx;
    }
    gn_dtype t = (gn_dtype)draw(GN_DTYPE_COUNT);
    return gn_save_npy_memory(some_array(g, t == GN_BF16 ? GN_F16 : t), f->data, MOST);
}

// ---- damage

static size_t place(const file *f) {
    const uint32_t near_front = draw(3);
    return f->size == 0 ? 0 : draw((uint32_t)(near_front && f->size > 300 ? 300 : f->size));
}

// `n` bytes at `at` become the `m` at `by`.
static void replace(file *f, size_t at, size_t n, const void *by, size_t m) {
    static unsigned char behind[2 * MOST];
    if (at + n > f->size) n = f->size - at;
    if (f->size - n + m > MOST) return;
    const size_t rest = f->size - at - n;
    memcpy(behind, f->data + at + n, rest);
    memmove(f->data + at, by, m);
    memcpy(f->data + at + m, behind, rest);
    f->size += m - n;
}

static void replace_number(file *f) {
    static const char *const numbers[] = {"0", "1", "-1", "2", "9223372036854775807", "9223372036854775808", "18446744073709551615",
                                          "4294967296", "1e9", "007", "1.0", "99999999999999999999999999", "null", "[]", "nan"};
    size_t at = place(f), n = 0;
    while (at < f->size && (f->data[at] < '0' || f->data[at] > '9')) at++;
    while (at + n < f->size && f->data[at + n] >= '0' && f->data[at + n] <= '9') n++;
    const char *by = numbers[draw(sizeof numbers / sizeof *numbers)];
    replace(f, at, n, by, strlen(by));
}

static void damage(file *f) {
    static unsigned char piece[2 * MOST];
    static const char marks[] = "\"\\{}[],:'() \n\0x\xff\x80uF";
    const size_t at = place(f), n = draw(draw(4) ? 8 : 200) + 1;
    switch (draw(8)) {
    case 0:
        if (f->size > 0) f->data[at] = (unsigned char)draw(256);
        break;
    case 1:
        if (f->size > 0) f->data[at] ^= (unsigned char)(1u << draw(8));
        break;
    case 2:
        if (f->size > 0) f->data[at] = (unsigned char)marks[draw(sizeof marks - 1)];
        break;
    case 3: replace(f, at, n, "", 0); break;
    case 4: f->size = f->size > 0 ? draw((uint32_t)f->size) : 0; break;
    case 5: replace_number(f); break;
    default: { // a piece of it once more
        const size_t from = place(f), m = n < f->size - from ? n : f->size - from;
        memcpy(piece, f->data + from, m);
        replace(f, at, draw(2) ? m : 0, piece, m);
    }
    }
}

// A header's length that fits what has become of the header.
static void mend_length(file *f) {
    const unsigned char *end = f->size > 8 ? (const unsigned char *)memchr(f->data + 8, '}', f->size - 8) : NULL;
    size_t n = 0;
    for (; end != NULL; end = (const unsigned char *)memchr(end + 1, '}', (size_t)(f->data + f->size - end - 1)))
        n = (size_t)(end - f->data) - 7;
    for (int i = 0; i < 8 && f->size > 8; i++) f->data[i] = (unsigned char)((uint64_t)n >> (8 * i));
}

// ---- loaders

static const char *wrong; // what is, of the case that runs

static void expect_list_again(gn_context *g, gn_params *p) {
    const size_t bytes = gn_params_save_memory(p, NULL, 0);
    unsigned char *once = (unsigned char *)malloc(bytes + 1), *twice = (unsigned char *)malloc(bytes + 1);
    gn_params *q = NULL;
    if (gn_params_save_memory(p, once, bytes) != bytes || (q = gn_load_safetensors_memory(g, once, bytes)) == NULL)
        wrong = "what was loaded is not saved and loaded again";
    else if (gn_params_save_memory(q, twice, bytes) != bytes || memcmp(once, twice, bytes) != 0)
        wrong = "saved again it differs";
    gn_params_free(q);
    free(once);
    free(twice);
}

static void expect_array_again(gn_context *g, gn_array *a) {
    if (gn_dtype_of(a) == GN_BF16) return;
    const size_t bytes = gn_save_npy_memory(a, NULL, 0);
    unsigned char *once = (unsigned char *)malloc(bytes + 1);
    gn_array *b = gn_save_npy_memory(a, once, bytes) == bytes ? gn_load_npy_memory(g, once, bytes) : NULL;
    if (b == NULL || gn_dtype_of(b) != gn_dtype_of(a) || !gn_array_equal(a, b, gn_dtype_of(a) < GN_I32)) {
        if (gn_status_get(g) != GN_OK || b == NULL) wrong = "what was loaded is not saved and loaded again";
    }
    free(once);
}

// Loads a copy that ends where the memory does. Whether it was taken.
static bool load(gn_context *g, int kind, const file *f, gn_params *list) {
    unsigned char *exact = (unsigned char *)malloc(f->size > 0 ? f->size : 1);
    gn_params *p = NULL;
    gn_array *a = NULL;
    bool taken = false;
    memcpy(exact, f->data, f->size);
    test_heap.most = test_heap.bytes + (1 << 20) + (int64_t)f->size * (kind == 3 ? 1100 : 100);
    switch (kind) {
    case 0: taken = (p = gn_load_safetensors_memory(g, exact, f->size)) != NULL; break;
    case 1: taken = gn_params_load_memory(list, exact, f->size) == GN_OK; break;
    case 2: a = gn_load_npy_memory(g, exact, f->size); break;
    case 3: a = gn_load_npz_memory(g, exact, f->size, draw(2) ? NULL : "a"); break;
    case 4: a = gn_load_csv_memory(g, exact, f->size, (gn_dtype)draw(GN_DTYPE_COUNT), (int)draw(3), draw(2) ? ';' : 0); break;
    default: a = gn_load_idx_memory(g, exact, f->size);
    }
    test_heap.most = INT64_MAX;
    taken = taken || a != NULL;
    const gn_status status = gn_status_get(g);
    if (taken != (status == GN_OK)) wrong = "the result and the error do not go together";
    if (status == GN_ERROR_OUT_OF_MEMORY) wrong = "memory was asked for that the file does not bear out";
    if (status != GN_OK && strncmp(gn_error(g), "gn_", 3) != 0) wrong = "the error names no function";
    if (wrong == NULL && p != NULL) expect_list_again(g, p);
    if (wrong == NULL && a != NULL) expect_array_again(g, a);
    if (wrong != NULL) fprintf(stderr, "%s: %s\n", wrong, gn_error(g));
    gn_error_clear(g);
    gn_params_free(p);
    free(exact);
    return taken;
}

// A file; whether it was taken.
static bool one_file(gn_context *g, uint64_t seed, int *kind) {
    static file f;
    gn_params *list;
    test_lot = seed * 6364136223846793005u + 1442695040888963407u;
    for (int i = 0; i < 4; i++) draw(2);
    gn_scope_begin(g);
    gn_seed(g, seed);
    *kind = (int)draw(KINDS);
    f.size = make_good(g, *kind, &f, &list);
    if (f.size > MOST) f.size = 0;
    if (gn_status_get(g) != GN_OK) wrong = "the good file was not made";
    const int times = (int)draw(5);
    for (int i = 0; i < times; i++) damage(&f);
    if (*kind < 2 && times > 0 && draw(2)) mend_length(&f);
    const bool taken = load(g, *kind, &f, list);
    if (times == 0 && !taken && *kind < 2) wrong = "a good file was refused";
    gn_params_free(list);
    gn_scope_end(g);
    return taken;
}

int main(int argc, char **argv) {
    const fuzz_run r = fuzz_begin(argc, argv);
    long done = 0, all[KINDS] = {0}, taken[KINDS] = {0};
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU;
    o.placement = GN_PLACE_CPU;
    o.threads = 1;
    gn_context *g = gn_open(&o);
    if (g == NULL) return 1;
    for (; fuzz_goes_on(&r, done); done++) {
        int kind;
        const bool ok = one_file(g, r.seed + (uint64_t)done, &kind);
        all[kind]++;
        taken[kind] += ok;
        if (wrong == NULL) continue;
        printf("fuzz_files: %s: %s (again: fuzz_files 0 %llu 1)\n", kinds[kind], wrong, (unsigned long long)(r.seed + (uint64_t)done));
        return 1;
    }
    for (int i = 0; i < KINDS; i++) {
        printf("%8ld of %8ld taken: %s\n", taken[i], all[i], kinds[i]);
        if (done > 20000 && (taken[i] * 20 < all[i] || taken[i] * 20 > 19 * all[i])) {
            printf("fuzz_files: too many or too few: this tests nothing\n");
            return 1;
        }
    }
    gn_close(g);
    if (test_leaks(&test_heap)) return 1;
    return 0;
}
