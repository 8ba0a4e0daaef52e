// Cases of functions on arrays that make_cases.py writes: name, operands, numbers, results.
#ifndef GN_ARRAY_CASES_H
#define GN_ARRAY_CASES_H

#include "test.h"

enum { MOST = 16 };

typedef struct array_case {
    gn_context *g;
    char name[32], subscript[32];
    gn_array *in[MOST], *out[MOST];
    int n_in, n_p, n_x, n_out;
    int64_t p[MOST];
    double x[MOST];
} array_case;

static int is(const array_case *c, const char *name) { return strcmp(c->name, name) == 0; }

static void print_case(const array_case *c) {
    print_error("%s", c->name);
    for (int k = 0; k < c->n_in; k++) {
        gn_shape s = gn_shape_of(c->in[k]);
        print_error(" %s (", gn_dtype_name(gn_dtype_of(c->in[k])));
        for (int i = 0; i < s.rank; i++) print_error("%lld,", (long long)s.dim[i]);
        print_error(")");
    }
    for (int k = 0; k < c->n_p; k++) print_error(" %lld", (long long)c->p[k]);
    for (int k = 0; k < c->n_x; k++) print_error(" %g", c->x[k]);
    print_error("\n");
}

// Runs the cases of file `what`, on a device one in `every`, which takes its time to compile kernels; how many were refused as
// they are to be.
static int test_array_cases(gn_context *g, const char *what, bool (*apply)(array_case *c), int every) {
    test_cases file;
    int refused = 0, wrong = 0;
    if (!test_cases_open(&file, what)) skip();
    for (int32_t i = 0; i < file.count; i++) {
        array_case c;
        memset(&c, 0, sizeof c);
        c.g = g;
        gn_scope_begin(g);
        test_take_text(&file, c.name, sizeof c.name);
        const int as = test_take_int(&file);
        c.n_in = test_take_int(&file);
        for (int k = 0; k < c.n_in; k++) {
            test_array base;
            test_take_array(&file, &base);
            test_take_text(&file, c.subscript, sizeof c.subscript);
            c.in[k] = gn_array_from(g, base.t, base.s, base.data);
            if (c.subscript[0] != 0) c.in[k] = gn_index(c.in[k], c.subscript);
            if (as >= 0) c.in[k] = gn_cast(c.in[k], (gn_dtype)as); // pending, of a view
        }
        c.n_p = test_take_int(&file);
        test_take_bytes(&file, c.p, sizeof(int64_t) * (size_t)c.n_p);
        c.n_x = test_take_int(&file);
        test_take_bytes(&file, c.x, sizeof(double) * (size_t)c.n_x);
        const double near = test_take_double(&file);
        const int n = test_take_int(&file);
        if (gn_status_get(g) != GN_OK) fail_msg("operands: %s", gn_error(g));
        const bool left_out = test_on_vulkan() && i % every != 0;
        if (!left_out && !apply(&c)) fail_msg("%s is not known", c.name);
        bool ok = left_out ? true : n < 0 ? gn_status_get(g) != GN_OK : n == c.n_out && gn_status_get(g) == GN_OK;
        for (int k = 0; k < c.n_out && n < 0; k++) ok = ok && c.out[k] == NULL;
        for (int k = 0; k < n; k++) {
            test_array want;
            test_take_array(&file, &want);
            gn_array *y = k < c.n_out ? c.out[k] : NULL;
            if (as >= 0 && y != NULL && gn_dtype_of(y) == (gn_dtype)as) y = gn_cast(y, want.t);
            ok = left_out || (ok && (near > 0.0 ? test_near(y, &want, near) : test_same_bytes(y, &want)));
        }
        if (n < 0) refused++;
        if (!ok) {
            print_error("case %d%s: %s\n    ", (int)i, n < 0 ? ", refused" : "", gn_error(g));
            print_case(&c);
            if (++wrong > 10) fail();
        }
        gn_error_clear(g);
        gn_scope_end(g);
    }
    assert_int_equal(wrong, 0);
    test_cases_close(&file);
    return refused;
}

#endif
