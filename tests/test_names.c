// Every public function, called with what it refuses: its message starts with the name that the caller wrote, and what
// gives no array says why. The list of functions is made out of the header, by make_names.py.
#include "test.h"

typedef struct arguments {
    gn_context *g;
    gn_array *a[5], *list[8], *out[4];
    double x[4];
    int i[8], ints[8];
    int64_t n[4], longs[8];
    gn_axes axes;
    gn_dtype dtype;
    gn_shape shape;
    size_t bytes;
    uint64_t words[4];
    void *memory;
    const char *text;
    const char *texts[8];
} arguments;

typedef struct public_function {
    const char *name, *shown; // and how messages call it
    gn_array *(*call)(arguments *v);
    int arrays; // parameters that are one
    bool list;  // has a list of arrays
    bool maker; // returns an array
} public_function;

// What a shape of three dimensions up to 16 takes in any dtype.
static double memory[16 * 16 * 16 * 2];

static void done(void *user, gn_status status) {
    (void)user;
    (void)status;
}

static gn_array *function(gn_context *g, gn_array *const *inputs, int count, void *user) {
    (void)g;
    (void)user;
    return count > 0 ? gn_sum(gn_square(inputs[0]), GN_ALL) : NULL;
}

static void gradient(gn_context *g, gn_array *const *in, int count, gn_array *out, gn_array *gy, gn_array **gx, void *user) {
    (void)g, (void)in, (void)count, (void)out, (void)user;
    gx[0] = gy;
}

#include "names.h"

enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static gn_array *array_of(gn_context *g, uint32_t kind, uint32_t form) {
    static const gn_dtype types[] = {GN_F32, GN_F32, GN_I32, GN_F64, GN_C64, GN_BOOL, GN_F16, GN_U8, GN_I64, GN_C128};
    const gn_shape shapes[] = {GN_SHAPE(3, 3), GN_SHAPE(3), GN_SHAPE(),        GN_SHAPE(1),    GN_SHAPE(2, 3),
                               GN_SHAPE(0),    GN_SHAPE(4, 3, 3), GN_SHAPE(2, 0, 3), GN_SHAPE(5, 2), GN_SHAPE(1, 1, 1, 2, 1, 1, 1, 2)};
    gn_array *a = gn_full(g, types[kind], shapes[form], 1.0);
    return gn_eval(a);
}

// Arguments of which few fit together.
static void draw_arguments(gn_context *g, arguments *v) {
    static const double reals[] = {0, 1, -1, 2.5, 1e-3, NAN, INFINITY, 300};
    static const int64_t longs[] = {0, 1, -1, 2, 3, 5, 16, -7};
    static const int ints[] = {0, 1, -1, 2, 3, -4, 7, 40};
    static const char *const texts[] = {"0", "1:2, ..., None", "ij,jk->ik", "7", "nowhere/no.npy", "", "ii", "::0"};
    const gn_axes axes[] = {0, 1, -1, 5, GN_ALL, GN_AXES(0, 1), GN_KEEP(0), GN_AXES(0, 0), GN_AXES(), GN_AXES(0) + 1};
    memset(v, 0, sizeof *v);
    v->g = g;
    v->memory = memory;
    // Mostly what works alone: else the first check hides the others.
    const uint32_t kind = draw(10), form = draw(10);
    for (int k = 0; k < 5; k++) v->a[k] = array_of(g, draw(3) ? kind : draw(10), draw(3) ? form : draw(10));
    for (int k = 0; k < 8; k++) {
        v->list[k] = v->a[k % 4];
        v->i[k] = ints[draw(8)];
        v->ints[k] = draw(2) ? k : ints[draw(8)];
        v->longs[k] = longs[draw(8)];
    }
    for (int k = 0; k < 4; k++) {
        v->out[k] = v->a[k];
        v->x[k] = reals[draw(8)];
        v->n[k] = longs[draw(8)];
    }
    for (int k = 4; k < 8; k++) v->list[k] = NULL;
    v->i[1] = draw(4) ? v->i[1] : 9; // a count in most
    v->axes = axes[draw(10)];
    v->dtype = (gn_dtype)draw(GN_DTYPE_COUNT + 1);
    v->shape = gn_shape_from((int)draw(4), v->longs);
    v->bytes = draw(2) ? gn_bytes(v->a[0]) : 7;
    v->text = texts[draw(8)];
    for (int k = 0; k < 8; k++) v->texts[k] = texts[(draw(8) + (uint32_t)k) % 8];
}

// The counts that go with lists stay within them.
static void bound(const public_function *f, arguments *v) {
    const bool many = f->list || strstr(f->name, "fft") || strstr(f->name, "tensordot") || strstr(f->name, "permute") ||
                      strstr(f->name, "split") || strstr(f->name, "unstack") || strstr(f->name, "gn_pad") ||
                      strcmp(f->name, "gn_eval_all") == 0;
    if (many && v->i[0] > 4) v->i[0] = 4;
    if (many && v->i[1] > 4) v->i[1] = 4;
    if (strcmp(f->name, "gn_split_at") == 0 && v->i[0] > 3) v->i[0] = 3; // one part more
    for (int k = 0; k < 8 && strcmp(f->name, "gn_pad") == 0; k++) v->longs[k] %= 2; // of eight axes
    if (v->bytes > sizeof memory) v->bytes = sizeof memory;
}

static bool message_fits(gn_context *g, const public_function *f) {
    const char *text = gn_error(g);
    const size_t n = strlen(f->shown);
    const bool own = strncmp(text, f->shown, n) == 0 && text[n] == ':' && text[n + 1] == ' ';
    const bool inner = own && strncmp(text + n + 2, "gn_", 3) == 0 && strchr(text + n + 2, ':') != NULL;
    if (!own || inner) print_error("%s says \"%s\"\n", f->name, text);
    return own && !inner;
}

// A host's handles, which a device cannot look into.
static bool on_device(const public_function *f) { return test_on_vulkan() && strncmp(f->name, "gn_vulkan", 9) == 0; }

static void test_refused(void **state) {
    (void)state;
    gn_context *g = test_open();
    const int calls = test_on_vulkan() ? 4 : 300; // a device compiles a kernel for most of them
    int called = 0, refused = 0, never = 0, wrong = 0;
    for (int k = 0; k < FUNCTIONS; k++) {
        const public_function *f = &functions[k];
        int here = 0;
        bool fits = true;
        if (on_device(f)) continue;
        for (int i = 0; i < calls && fits; i++) {
            arguments v;
            gn_scope_begin(g);
            draw_arguments(g, &v);
            bound(f, &v);
            if (gn_status_get(g) != GN_OK) fail_msg("arguments: %s", gn_error(g));
            gn_array *y = f->call(&v);
            const gn_status status = gn_status_get(g);
            const bool given = f->list ? v.i[0] > 0 : f->arrays > 0; // what knows the context
            if (status != GN_OK) {
                fits = message_fits(g, f);
                here++;
            } else if (f->maker && y == NULL && given && strcmp(f->name, "gn_grad") != 0) {
                print_error("%s gives NULL and does not say why\n", f->name);
                fits = false;
            }
            gn_error_clear(g);
            gn_scope_end(g);
            gn_error_clear(g); // of what gn_keep and gn_release left to be released twice
        }
        called += calls;
        refused += here;
        if (here == 0) never++;
        if (!fits) wrong++;
    }
    gn_close(g);
    if (wrong > 0) fail_msg("%d of %d functions", wrong, FUNCTIONS);
    // That the arguments are neither all good nor all bad.
    if (refused < called / 5 || refused > called * 4 / 5 || (calls > 100 && never > FUNCTIONS / 4))
        fail_msg("%d of %d calls refused, %d of %d functions refused nothing", refused, called, never, FUNCTIONS);
}

static void test_stale(void **state) {
    (void)state;
    gn_context *g = test_open();
    int wrong = 0;
    for (int k = 0; k < FUNCTIONS; k++) {
        const public_function *f = &functions[k];
        for (int at = 0; at < f->arrays + (f->list ? 1 : 0); at++) {
            arguments v;
            gn_scope_begin(g);
            draw_arguments(g, &v);
            for (int i = 0; i < 4; i++) v.list[i] = v.out[i] = v.a[i] = array_of(g, 0, 0);
            v.a[4] = array_of(g, 0, 0);
            v.i[0] = v.i[1] = 2;
            gn_array *dead = array_of(g, 0, 0);
            gn_release(dead);
            if (at < f->arrays)
                v.a[at] = dead;
            else
                v.list[0] = dead;
            gn_array *y = f->call(&v);
            if (strcmp(f->name, "gn_context_of") == 0) { // still knows
                assert_int_equal(gn_status_get(g), GN_OK);
            } else if (y != NULL || gn_status_get(g) != GN_ERROR_STALE || strstr(gn_error(g), "was released") == NULL) {
                print_error("%s of a released array %d: \"%s\"\n", f->name, at, gn_error(g));
                wrong++;
            } else if (!message_fits(g, f)) {
                wrong++;
            }
            gn_error_clear(g);
            gn_scope_end(g);
            gn_error_clear(g);
        }
    }
    gn_close(g);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_stale)};
    return test_run(tests);
}
