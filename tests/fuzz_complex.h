// The part of fuzz_programs.c for complex numbers: both parts of every result are intervals.
#ifndef GN_FUZZ_COMPLEX_H
#define GN_FUZZ_COMPLEX_H

enum { COMPLEX_NODES = 20, COMPLEX_MOST = 600 };

typedef enum complex_op {
    C_LEAF, C_ADD, C_SUB, C_MUL, C_SCALE, C_WHERE, C_PARTS, C_NEG, C_CONJ, C_SQUARE, C_ADD_S, C_MUL_S, C_RSUB_S, C_CAST, C_OPS
} complex_op;
static const char *const complex_names[] = {"leaf",   "add",    "sub",   "mul",   "mul by abs", "where real > c", "complex of imag, real",
                                            "neg",    "conj",   "square", "add_s", "mul_s",      "rsub_s",         "cast"};

typedef struct complex_node {
    complex_op op;
    int in[2];
    double c;
    gn_dtype t; // of the parts
    int64_t rows, columns;
    iv re[COMPLEX_MOST], im[COMPLEX_MOST];
} complex_node;

static complex_node complexes[COMPLEX_NODES];
static int complex_nodes;

static iv one_of(bool first, bool both, iv a, iv b) { return both ? hull(a, b) : first ? a : b; }

static void complex_element(complex_node *x, int64_t i) {
    const complex_node *a = &complexes[x->in[0]], *b = &complexes[x->in[1]];
    const int64_t row = i / x->columns, column = i % x->columns;
    const int64_t p = (a->rows == 1 ? 0 : row) * a->columns + (a->columns == 1 ? 0 : column);
    const int64_t q = (b->rows == 1 ? 0 : row) * b->columns + (b->columns == 1 ? 0 : column);
    T = a->t;
    const iv size = x->op != C_SCALE || says_nothing(a->re[p]) || says_nothing(a->im[p])
                        ? anything()
                        : grown(ends(hypotl(apply(ABS, a->re[p]).lo, apply(ABS, a->im[p]).lo),
                                     hypotl(apply(ABS, a->re[p]).hi, apply(ABS, a->im[p]).hi)), T == GN_F64 ? 2 : 4, 0, T);
    T = x->t;
    const iv ar = cast(a->re[p], a->t, T), ai = cast(a->im[p], a->t, T), br = cast(b->re[q], b->t, T), bi = cast(b->im[q], b->t, T);
    iv *re = &x->re[i], *im = &x->im[i];
    *re = ar, *im = ai;
    switch (x->op) {
    case C_ADD: *re = add(ar, br), *im = add(ai, bi); break;
    case C_SUB: *re = sub(ar, br), *im = sub(ai, bi); break;
    case C_MUL: *re = sub(mul(ar, br), mul(ai, bi)), *im = add(mul(ar, bi), mul(ai, br)); break;
    case C_SCALE: *re = mul(size, br), *im = mul(size, bi); break;
    case C_WHERE: {
        const real c = (real)x->c;
        const bool both = says_nothing(a->re[p]) || (a->re[p].lo <= c && a->re[p].hi > c), first = a->re[p].lo > c;
        *re = one_of(first, both, ar, br), *im = one_of(first, both, ai, bi);
        break;
    }
    case C_PARTS: *re = ai, *im = br; break;
    case C_NEG: *re = neg(ar), *im = neg(ai); break;
    case C_CONJ: *im = neg(ai); break;
    case C_SQUARE: *re = sub(mul(ar, ar), mul(ai, ai)), *im = add(mul(ar, ai), mul(ai, ar)); break;
    case C_ADD_S: *re = add(ar, konst((real)x->c)); break;
    case C_MUL_S: *re = mul(ar, konst((real)x->c)), *im = mul(ai, konst((real)x->c)); break;
    case C_RSUB_S: *re = sub(konst((real)x->c), ar), *im = neg(ai); break;
    default: break;
    }
}

static void make_complexes(void) {
    const int64_t rows = 1 + draw(20), columns = 1 + draw(30);
    complex_nodes = 0;
    const int leaves = 2 + (int)draw(4), most = leaves + 2 + (int)draw((uint32_t)(COMPLEX_NODES - leaves - 2));
    while (complex_nodes < most) {
        complex_node *x = &complexes[complex_nodes];
        const bool leaf = complex_nodes < leaves;
        x->op = leaf ? C_LEAF : (complex_op)(1 + draw(C_OPS - 1));
        x->c = halves(1);
        x->rows = draw(4) ? rows : 1, x->columns = draw(4) ? columns : 1;
        x->t = draw(4) ? GN_F32 : GN_F64;
        x->in[0] = x->in[1] = 0;
        if (!leaf) {
            const int last = complex_nodes - 1 - (int)draw(2);
            x->in[0] = draw(3) ? last : (int)draw((uint32_t)complex_nodes);
            x->in[1] = x->op <= C_PARTS ? (int)draw((uint32_t)complex_nodes) : x->in[0];
            const complex_node *a = &complexes[x->in[0]], *b = &complexes[x->in[1]];
            x->rows = a->rows == 1 ? b->rows : a->rows, x->columns = a->columns == 1 ? b->columns : a->columns;
            if (x->op != C_CAST) x->t = a->t == GN_F64 || b->t == GN_F64 ? GN_F64 : GN_F32;
        }
        for (int64_t i = 0; i < x->rows * x->columns; i++) {
            if (leaf)
                x->re[i] = point((real)halves(1)), x->im[i] = point((real)halves(1));
            else
                complex_element(x, i);
        }
        complex_nodes++;
    }
}

// Every other leaf lies transposed in memory.
static gn_array *complex_leaf(gn_context *g, const complex_node *x, bool turned) {
    static double data[2 * COMPLEX_MOST];
    for (int64_t i = 0; i < x->rows * x->columns; i++) {
        const int64_t at = turned ? i % x->columns * x->rows + i / x->columns : i;
        data[2 * at] = (double)x->re[i].lo, data[2 * at + 1] = (double)x->im[i].lo;
    }
    gn_array *a = gn_array_from(g, GN_C128, turned ? GN_SHAPE(x->columns, x->rows) : GN_SHAPE(x->rows, x->columns), data);
    a = gn_eval(gn_cast(a, x->t == GN_F64 ? GN_C128 : GN_C64));
    return turned ? gn_transpose(a) : a;
}

static gn_array *run_complex(gn_context *g, int i, gn_array **y) {
    const complex_node *x = &complexes[i];
    gn_array *a = y[x->in[0]], *b = y[x->in[1]];
    switch (x->op) {
    case C_LEAF: return complex_leaf(g, x, i % 2 == 1);
    case C_ADD: return gn_add(a, b);
    case C_SUB: return gn_sub(a, b);
    case C_MUL: return gn_mul(a, b);
    case C_SCALE: return gn_mul(gn_abs(a), b);
    case C_WHERE: return gn_where(gn_gt_s(gn_real(a), x->c), a, b);
    case C_PARTS: return gn_complex(gn_imag(a), gn_real(b));
    case C_NEG: return gn_neg(a);
    case C_CONJ: return gn_conj(a);
    case C_SQUARE: return gn_square(a);
    case C_ADD_S: return gn_add_s(a, x->c);
    case C_MUL_S: return gn_mul_s(a, x->c);
    case C_RSUB_S: return gn_rsub_s(a, x->c);
    default: return gn_cast(a, x->t == GN_F64 ? GN_C128 : GN_C64);
    }
}

static bool check_complex(const char *where, int i, gn_array *a) {
    static double data[2 * COMPLEX_MOST];
    const complex_node *x = &complexes[i];
    const int64_t n = x->rows * x->columns;
    const gn_dtype t = x->t == GN_F64 ? GN_C128 : GN_C64;
    if (a == NULL || gn_size(a) != n || gn_dtype_of(a) != t ||
        gn_read(gn_cast(a, GN_C128), data, 2 * (size_t)n * sizeof *data) != GN_OK) {
        fprintf(stderr, "%s: node %d: %lld of %s\n", where, i, (long long)gn_size(a), gn_dtype_name(gn_dtype_of(a)));
        return false;
    }
    for (int64_t k = 0; k < 2 * n; k++) {
        const iv want = k % 2 ? x->im[k / 2] : x->re[k / 2];
        if (says_nothing(want)) {
            skipped++;
            continue;
        }
        compared++;
        if ((real)data[k] >= want.lo && (real)data[k] <= want.hi) continue;
        fprintf(stderr, "%s: node %d, %s part of element %lld is %.17g, not in %.17Lg to %.17Lg\n", where, i,
                k % 2 ? "imaginary" : "real", (long long)(k / 2), data[k], want.lo, want.hi);
        return false;
    }
    return true;
}

static bool run_complexes(gn_context *g, const char *where, uint64_t order) {
    gn_array *y[COMPLEX_NODES];
    bool ok = true;
    test_lot = order;
    gn_scope_begin(g);
    for (int i = 0; i < complex_nodes; i++) {
        y[i] = run_complex(g, i, y);
        if (draw(8) == 0) gn_eval(y[draw((uint32_t)i + 1)]); // what others share, too
    }
    for (int i = complex_nodes - 1; i >= 0 && ok; i -= 1 + (int)draw(3)) ok = check_complex(where, i, y[i]);
    if (gn_status_get(g) != GN_OK) {
        fprintf(stderr, "%s: %s\n", where, gn_error(g));
        ok = false;
    }
    gn_scope_end(g);
    return ok;
}

static void print_complexes(void) {
    for (int i = 0; i < complex_nodes; i++) {
        const complex_node *x = &complexes[i];
        fprintf(stderr, "  %2d = %s(%d, %d; %g) parts %s (%d,%d)\n", i, complex_names[x->op], x->in[0], x->in[1], x->c,
                gn_dtype_name(x->t), (int)x->rows, (int)x->columns);
    }
}

#endif
