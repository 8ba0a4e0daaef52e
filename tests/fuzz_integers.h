// The part of fuzz_programs.c for integers and bool: every result is one number.
#ifndef GN_FUZZ_INTEGERS_H
#define GN_FUZZ_INTEGERS_H

enum { INTEGER_NODES = 16, INTEGER_MOST = 600 };

typedef enum integer_op {
    I_LEAF, I_ADD, I_SUB, I_MUL, I_MINIMUM, I_MAXIMUM, I_FLOOR_DIV, I_MOD, I_AND, I_OR, I_XOR, I_SHL, I_SHR, I_EQ, I_NE, I_LT, I_LE,
    I_GT, I_GE, I_LOGICAL_AND, I_LOGICAL_XOR, I_NEG, I_ABS, I_SIGN, I_SQUARE, I_NOT, I_CAST, I_WHERE, I_ADD_S, I_MUL_S, I_SUM, I_MAX,
    I_MIN, I_ANY, I_ALL, I_OPS
} integer_op;
static const char *const integer_names[] = {"leaf", "add", "sub", "mul", "minimum", "maximum", "floor_div", "mod", "and", "or", "xor",
                                            "shl", "shr", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_xor", "neg",
                                            "abs", "sign", "square", "logical_not", "cast", "where", "add_s", "mul_s", "sum", "max",
                                            "min", "any", "all"};

typedef struct integer_node {
    integer_op op;
    int in[3];
    int64_t c;
    gn_dtype t;
    int64_t rows, columns, v[INTEGER_MOST];
} integer_node;

static integer_node integers[INTEGER_NODES];
static int integer_nodes;

static int bits_of(gn_dtype t) { return t == GN_BOOL ? 1 : 8 * (int)gn_dtype_size(t); }
static bool is_unsigned(gn_dtype t) { return t == GN_U8 || t == GN_U16 || t == GN_U32 || t == GN_U64 || t == GN_BOOL; }

// The number of dtype t that is v modulo 2^bits.
static int64_t wrapped(uint64_t v, gn_dtype t) {
    int bits = bits_of(t);
    if (bits == 64) return (int64_t)v; // uint64 is kept as the same bits
    v &= ((uint64_t)1 << bits) - 1;
    if (is_unsigned(t) || v >> (bits - 1) == 0) return (int64_t)v;
    return (int64_t)v - ((int64_t)1 << bits);
}

// The array API's promotion; GN_F64 where there is no integer dtype for both.
static gn_dtype join_integers(gn_dtype a, gn_dtype b) {
    if (a == b || b == GN_BOOL) return a;
    if (a == GN_BOOL) return b;
    int most = bits_of(a) > bits_of(b) ? bits_of(a) : bits_of(b);
    if (is_unsigned(a) == is_unsigned(b)) return bits_of(a) > bits_of(b) ? a : b;
    int unsigned_bits = is_unsigned(a) ? bits_of(a) : bits_of(b);
    if (unsigned_bits >= most) most = 2 * unsigned_bits;
    return most <= 8 ? GN_I8 : most <= 16 ? GN_I16 : most <= 32 ? GN_I32 : most <= 64 ? GN_I64 : GN_F64;
}

static int64_t floor_quotient(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return wrapped(0 - (uint64_t)a, GN_I64);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t shifted(int64_t a, int64_t by, gn_dtype t, bool left) {
    if (by < 0 || by >= bits_of(t)) return !left && a < 0 ? -1 : 0;
    if (left) return wrapped((uint64_t)a << by, t);
    return a < 0 ? ~(~a >> by) : a >> by;
}

// Of two uint64, where that differs from int64.
static bool unsigned_result(integer_op kind, uint64_t a, uint64_t b, uint64_t *y) {
    switch (kind) {
    case I_MINIMUM: *y = a < b ? a : b; return true;
    case I_MAXIMUM: *y = a > b ? a : b; return true;
    case I_FLOOR_DIV: *y = b == 0 ? 0 : a / b; return true;
    case I_MOD: *y = b == 0 ? 0 : a % b; return true;
    case I_SHR: *y = b >= 64 ? 0 : a >> b; return true;
    case I_LT: *y = a < b; return true;
    case I_LE: *y = a <= b; return true;
    case I_GT: *y = a > b; return true;
    case I_GE: *y = a >= b; return true;
    case I_ABS: *y = a; return true;
    case I_SIGN: *y = a != 0; return true;
    default: return false;
    }
}

static int64_t integer_result(const integer_node *x, gn_dtype t, int64_t a, int64_t b, int64_t c) {
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b, y;
    if (t == GN_U64 && unsigned_result(x->op, ua, ub, &y)) return (int64_t)y;
    switch (x->op) {
    case I_ADD: return wrapped(ua + ub, x->t);
    case I_SUB: return wrapped(ua - ub, x->t);
    case I_MUL: return wrapped(ua * ub, x->t);
    case I_MINIMUM: return a < b ? a : b;
    case I_MAXIMUM: return a > b ? a : b;
    case I_FLOOR_DIV: return wrapped((uint64_t)floor_quotient(a, b), x->t);
    case I_MOD: return b == 0 ? 0 : wrapped(ua - (uint64_t)floor_quotient(a, b) * ub, x->t);
    case I_AND: return a & b;
    case I_OR: return a | b;
    case I_XOR: return a ^ b;
    case I_SHL: return shifted(a, b, x->t, true);
    case I_SHR: return shifted(a, b, x->t, false);
    case I_EQ: return a == b;
    case I_NE: return a != b;
    case I_LT: return a < b;
    case I_LE: return a <= b;
    case I_GT: return a > b;
    case I_GE: return a >= b;
    case I_LOGICAL_AND: return a != 0 && b != 0;
    case I_LOGICAL_XOR: return (a != 0) != (b != 0);
    case I_NEG: return wrapped(0 - ua, x->t);
    case I_ABS: return a < 0 ? wrapped(0 - ua, x->t) : a;
    case I_SIGN: return (a > 0) - (a < 0);
    case I_SQUARE: return wrapped(ua * ua, x->t);
    case I_NOT: return a == 0;
    case I_CAST: return x->t == GN_BOOL ? a != 0 : wrapped(ua, x->t);
    case I_WHERE: return a != 0 ? b : c;
    case I_ADD_S: return wrapped(ua + (uint64_t)x->c, x->t);
    case I_MUL_S: return wrapped(ua * (uint64_t)x->c, x->t);
    default: return a;
    }
}

static int64_t operand(const integer_node *x, int k, int64_t i) {
    const integer_node *a = &integers[x->in[k]];
    int64_t row = i / x->columns, column = i % x->columns;
    return a->v[(a->rows == 1 ? 0 : row) * a->columns + (a->columns == 1 ? 0 : column)];
}

static int operands_of(integer_op o) { return o == I_LEAF ? 0 : o <= I_LOGICAL_XOR ? 2 : o == I_WHERE ? 3 : 1; }

static void compute_integers(integer_node *x) {
    const integer_node *a = &integers[x->in[0]];
    int n = operands_of(x->op);
    if (x->op < I_SUM) {
        for (int64_t i = 0; i < x->rows * x->columns; i++) {
            int64_t v[3] = {0, 0, 0};
            for (int k = 0; k < n; k++) v[k] = operand(x, k, i);
            gn_dtype t = x->op >= I_EQ && x->op <= I_LOGICAL_XOR ? join_integers(a->t, integers[x->in[1]].t) : x->t;
            for (int k = x->op == I_WHERE; k < n && n > 1; k++) v[k] = wrapped((uint64_t)v[k], t);
            x->v[i] = integer_result(x, t, v[0], v[1], v[2]);
        }
        return;
    }
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t y = x->op == I_SUM || x->op == I_ANY ? 0 : x->op == I_ALL ? 1 : a->v[i * a->columns];
        for (int64_t j = 0; j < a->columns; j++) {
            int64_t v = a->v[i * a->columns + j];
            y = x->op == I_SUM                ? wrapped((uint64_t)y + (uint64_t)v, GN_I64)
                : x->op == I_ANY              ? y || v != 0
                : x->op == I_ALL              ? y && v != 0
                : (x->op == I_MAX) == (a->t == GN_U64 ? (uint64_t)v > (uint64_t)y : v > y) ? v
                                              : y;
        }
        x->v[i] = y;
    }
}

static void integer_leaf(gn_dtype t, int64_t rows, int64_t columns) {
    integer_node *x = &integers[integer_nodes++];
    x->op = I_LEAF;
    x->t = t;
    x->rows = rows, x->columns = columns;
    int64_t low = is_unsigned(t) ? 0 : wrapped((uint64_t)1 << (bits_of(t) - 1), t);
    int64_t high = is_unsigned(t) ? wrapped(~(uint64_t)0, t) : ~low;
    for (int64_t i = 0; i < rows * columns; i++) {
        uint32_t what = draw(8);
        x->v[i] = what == 0   ? low
                  : what == 1 ? high
                  : what < 4  ? wrapped(((uint64_t)draw(UINT32_MAX) << 32) + draw(UINT32_MAX), t)
                              : wrapped((uint64_t)draw(12) - 5, t);
    }
}

static void make_integers(void) {
    static const gn_dtype types[] = {GN_I32, GN_I64, GN_U8, GN_I8, GN_U32, GN_BOOL, GN_I16, GN_U16, GN_U64};
    int64_t rows = 1 + draw(20), columns = 1 + draw(30);
    integer_nodes = 0;
    for (int i = 0; i < 3; i++) integer_leaf(types[draw(9)], draw(3) ? rows : 1, draw(3) ? columns : 1);
    int most = 5 + (int)draw(INTEGER_NODES - 5);
    for (int tries = 0; tries < 200 && integer_nodes < most; tries++) {
        integer_node *x = &integers[integer_nodes];
        memset(x->in, 0, sizeof x->in);
        x->op = (integer_op)(1 + draw(I_OPS - 1));
        x->c = (int64_t)draw(9) - 3;
        int n = operands_of(x->op);
        bool truths = false, none = false;
        for (int k = 0; k < n; k++) x->in[k] = (int)draw((uint32_t)integer_nodes);
        const integer_node *a = &integers[x->in[0]];
        x->t = a->t;
        x->rows = a->rows, x->columns = a->columns;
        for (int k = 0; k < n; k++) {
            const integer_node *b = &integers[x->in[k]];
            truths = truths || (b->t == GN_BOOL && !(k == 0 && x->op == I_WHERE));
            x->t = k == 1 && x->op == I_WHERE ? b->t : join_integers(x->t, b->t);
            none = none || x->t == GN_F64;
            if (x->rows == 1) x->rows = b->rows;
            if (x->columns == 1) x->columns = b->columns;
        }
        if (none) continue;
        // Of arithmetic with bool too little is promised, and negative numbers do not fit unsigned dtypes.
        bool bitwise = x->op >= I_AND && x->op <= I_XOR, number = x->op == I_ADD_S || x->op == I_MUL_S;
        if (truths && !bitwise && !(x->op >= I_EQ && x->op <= I_LOGICAL_XOR) && x->op < I_NOT) continue;
        if (number && (x->t == GN_BOOL || (is_unsigned(x->t) && x->c < 0))) continue;
        if (x->op == I_CAST) x->t = types[draw(9)];
        if ((x->op >= I_EQ && x->op <= I_LOGICAL_XOR) || x->op == I_NOT || x->op == I_ANY || x->op == I_ALL) x->t = GN_BOOL;
        if (x->op == I_SUM) x->t = is_unsigned(a->t) && a->t != GN_BOOL ? GN_U64 : GN_I64;
        if (x->op >= I_SUM) x->columns = 1;
        compute_integers(x);
        integer_nodes++;
    }
}

static gn_array *integer_array(gn_context *g, const integer_node *x) {
    gn_array *wide = gn_array_from(g, GN_I64, GN_SHAPE(x->rows, x->columns), x->v);
    return gn_eval(gn_cast(wide, x->t));
}

static gn_array *run_integer(gn_context *g, const integer_node *x, gn_array **y) {
    static gn_array *(*const two[])(gn_array *, gn_array *) = {
        gn_add, gn_sub, gn_mul, gn_minimum, gn_maximum, gn_floor_div, gn_mod, gn_and, gn_or, gn_xor,
        gn_shl, gn_shr, gn_eq, gn_ne, gn_lt, gn_le, gn_gt, gn_ge, gn_logical_and, gn_logical_xor};
    static gn_array *(*const one[])(gn_array *) = {gn_neg, gn_abs, gn_sign, gn_square, gn_logical_not};
    static gn_array *(*const over[])(gn_array *, gn_axes) = {gn_sum, gn_max, gn_min, gn_any, gn_all};
    gn_array *a = y[x->in[0]], *b = y[x->in[1]];
    if (x->op == I_LEAF) return integer_array(g, x);
    if (x->op <= I_LOGICAL_XOR) return two[x->op - I_ADD](a, b);
    if (x->op <= I_NOT) return one[x->op - I_NEG](a);
    if (x->op >= I_SUM) return over[x->op - I_SUM](a, GN_KEEP(-1));
    if (x->op == I_CAST) return gn_cast(a, x->t);
    if (x->op == I_WHERE) return gn_where(a, b, y[x->in[2]]);
    return x->op == I_ADD_S ? gn_add_s(a, (double)x->c) : gn_mul_s(a, (double)x->c);
}

static bool run_integers(gn_context *g, const char *where) {
    static int64_t data[INTEGER_MOST];
    gn_array *y[INTEGER_NODES];
    bool ok = true;
    gn_scope_begin(g);
    for (int i = 0; i < integer_nodes; i++) y[i] = run_integer(g, &integers[i], y);
    for (int i = integer_nodes - 1; i >= 0 && ok; i--) {
        const integer_node *x = &integers[i];
        const int64_t n = x->rows * x->columns;
        if (y[i] == NULL || gn_size(y[i]) != n || gn_dtype_of(y[i]) != x->t ||
            gn_read(gn_cast(y[i], GN_I64), data, (size_t)n * sizeof *data) != GN_OK) {
            fprintf(stderr, "%s: node %d: %lld of %s: %s\n", where, i, (long long)gn_size(y[i]), gn_dtype_name(gn_dtype_of(y[i])),
                    gn_error(g));
            ok = false;
        }
        for (int64_t k = 0; k < n && ok; k++) {
            compared++;
            if (data[k] == x->v[k]) continue;
            fprintf(stderr, "%s: node %d, element %lld is %lld, not %lld\n", where, i, (long long)k, (long long)data[k],
                    (long long)x->v[k]);
            ok = false;
        }
    }
    gn_scope_end(g);
    return ok && gn_status_get(g) == GN_OK;
}

static void print_integers(void) {
    for (int i = 0; i < integer_nodes; i++) {
        const integer_node *x = &integers[i];
        fprintf(stderr, "  %2d = %s(%d, %d, %d; %d) %s (%d,%d)\n", i, integer_names[x->op], x->in[0], x->in[1], x->in[2], (int)x->c,
                gn_dtype_name(x->t), (int)x->rows, (int)x->columns);
    }
}

#endif
