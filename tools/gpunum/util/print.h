// >>print
// Arrays as text, laid out as NumPy's repr does. Nothing here is needed by other rooms.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/access.h"
#endif

// ---- shortest digits: Steele and White, How to Print Floating-Point Numbers Accurately (1990)

enum { GNI_BIG_WORDS = 40, GNI_MAX_DIGITS = 40 }; // 2^1076 x 10 fits

typedef struct gni_big {
    int n; // words in use, the least significant first
    uint32_t w[GNI_BIG_WORDS];
} gni_big;

static void gni_big_set(gni_big *b, uint64_t v) {
    b->w[0] = (uint32_t)v;
    b->w[1] = (uint32_t)(v >> 32);
    b->n = b->w[1] != 0 ? 2 : b->w[0] != 0 ? 1 : 0;
}

static void gni_big_scale(gni_big *b, uint32_t factor) {
    uint64_t carry = 0;
    for (int i = 0; i < b->n; i++) {
        carry += (uint64_t)b->w[i] * factor;
        b->w[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry != 0 && b->n < GNI_BIG_WORDS) b->w[b->n++] = (uint32_t)carry;
}

static void gni_big_shift(gni_big *b, int bits) {
    for (; bits >= 31; bits -= 31) gni_big_scale(b, 1u << 31);
    gni_big_scale(b, 1u << bits);
}

static void gni_big_times_ten_to(gni_big *b, int power) {
    for (; power >= 9; power -= 9) gni_big_scale(b, 1000000000u);
    for (; power > 0; power--) gni_big_scale(b, 10u);
}

static int gni_big_compare(const gni_big *a, const gni_big *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->w[i] != b->w[i]) return a->w[i] < b->w[i] ? -1 : 1;
    return 0;
}

static void gni_big_add(gni_big *a, const gni_big *b) {
    uint64_t carry = 0;
    for (int i = 0; i < b->n || carry != 0; i++) {
        if (i == GNI_BIG_WORDS) return;
        if (i >= a->n) a->w[a->n++] = 0;
        carry += (uint64_t)a->w[i] + (i < b->n ? b->w[i] : 0u);
        a->w[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

// b is not larger than a.
static void gni_big_subtract(gni_big *a, const gni_big *b) {
    uint64_t borrow = 0;
    for (int i = 0; i < a->n; i++) {
        uint64_t d = (uint64_t)a->w[i] - (i < b->n ? b->w[i] : 0u) - borrow;
        a->w[i] = (uint32_t)d;
        borrow = (d >> 32) & 1u;
    }
    while (a->n > 0 && a->w[a->n - 1] == 0) a->n--;
}

// A float taken apart: (-1)^negative x mantissa x 2^exponent.
typedef struct gni_parts {
    bool negative, nan, inf;
    bool lopsided; // the next smaller number is nearer than the next larger one
    uint64_t mantissa;
    int exponent;
} gni_parts;

static gni_parts gni_take_apart(gn_dtype t, const void *p) {
    static const int fraction_bits[] = {23, 10, 7, 52},
                     bias[] = {127, 15, 127, 1023}; // f32, f16, bf16, f64
    uint64_t u = 0;
    uint32_t u32;
    uint16_t u16;
    if (t == GN_F64) {
        memcpy(&u, p, sizeof u);
    } else if (t == GN_F32) {
        memcpy(&u32, p, sizeof u32);
        u = u32;
    } else {
        memcpy(&u16, p, sizeof u16);
        u = u16;
    }
    int bits = fraction_bits[t], width = 8 * (int)gn_dtype_size(t) - 1 - bits;
    uint64_t fraction = u & (((uint64_t)1 << bits) - 1),
             field = (u >> bits) & (((uint64_t)1 << width) - 1);
    gni_parts x;
    x.negative = (u >> (bits + width)) & 1u;
    x.nan = x.inf = false;
    if (field == ((uint64_t)1 << width) - 1) {
        x.nan = fraction != 0;
        x.inf = fraction == 0;
    }
    x.lopsided = fraction == 0 && field > 1;
    x.mantissa = field == 0 ? fraction : fraction | ((uint64_t)1 << bits);
    x.exponent = (field == 0 ? 1 : (int)field) - bias[t] - bits;
    return x;
}

// Decimal digits; the first stands for 10^exponent. No digits: zero.
typedef struct gni_digits {
    int count, exponent;
    char digit[GNI_MAX_DIGITS];
} gni_digits;

static void gni_digits_round_up(gni_digits *d) {
    while (d->count > 0 && d->digit[d->count - 1] == '9') d->count--;
    if (d->count > 0) {
        d->digit[d->count - 1]++;
        return;
    }
    d->digit[d->count++] = '1';
    d->exponent++;
}

// The number as a fraction r / s in [1, 10) times 10^k, and half the distances to its neighbours, over s too.
typedef struct gni_fraction {
    gni_big r, s, low, high;
    int k;
} gni_fraction;

static void gni_fraction_of(const gni_parts *x, gni_fraction *f) {
    int extra = x->lopsided ? 2 : 1, e = x->exponent, top = 63;
    gni_big_set(&f->r, x->mantissa);
    gni_big_set(&f->s, 1);
    gni_big_set(&f->low, 1);
    gni_big_shift(&f->r, extra + GNI_MAX(e, 0));
    gni_big_shift(&f->s, extra + GNI_MAX(-e, 0));
    gni_big_shift(&f->low, GNI_MAX(e, 0));
    while (!((x->mantissa >> top) & 1u)) top--;
    f->k = (int)floor((top + e) * 0.30102999566398119521); // right or one too small
    if (f->k >= 0) {
        gni_big_times_ten_to(&f->s, f->k);
    } else {
        gni_big_times_ten_to(&f->r, -f->k);
        gni_big_times_ten_to(&f->low, -f->k);
    }
    gni_big ten = f->s;
    gni_big_scale(&ten, 10);
    if (gni_big_compare(&f->r, &ten) >= 0) {
        f->s = ten;
        f->k++;
    }
    f->high = f->low;
    if (x->lopsided) gni_big_scale(&f->high, 2);
}

// The fewest digits that tell the number from its neighbours, but none below 10^cutoff, and at least
// those down to 10^least. With `relative` both count from the first digit.
static void gni_digits_of(const gni_parts *x, int cutoff, int least, bool relative, gni_digits *d) {
    d->count = d->exponent = 0;
    if (x->mantissa == 0) return;
    gni_fraction f;
    gni_fraction_of(x, &f);
    if (relative) {
        cutoff += f.k;
        least += f.k;
    }
    if (f.k < cutoff - 1) return;
    if (f.k < cutoff) { // it may still round up to the last digit
        gni_big_scale(&f.s, 10);
        f.k++;
    }
    d->exponent = f.k;
    bool even = x->mantissa % 2 == 0, low, high; // reading rounds ties to an even mantissa
    for (int at = f.k;; at--) {
        int digit = 0;
        for (; gni_big_compare(&f.r, &f.s) >= 0; digit++) gni_big_subtract(&f.r, &f.s);
        d->digit[d->count++] = (char)('0' + digit);
        gni_big above = f.r;
        gni_big_add(&above, &f.high);
        int from_low = gni_big_compare(&f.r, &f.low), to_high = gni_big_compare(&above, &f.s);
        low = even ? from_low <= 0 : from_low < 0;
        high = even ? to_high >= 0 : to_high > 0;
        if (((low || high) && at <= least) || at == cutoff || d->count == GNI_MAX_DIGITS) break;
        gni_big_scale(&f.r, 10);
        gni_big_scale(&f.low, 10);
        gni_big_scale(&f.high, 10);
    }
    bool up = high;
    if (low == high) { // to nearest, ties to even
        gni_big_scale(&f.r, 2);
        int half = gni_big_compare(&f.r, &f.s);
        up = half > 0 || (half == 0 && (d->digit[d->count - 1] - '0') % 2 != 0);
    }
    if (up) gni_digits_round_up(d);
}

// ---- one float

// How the floats of one array are written.
typedef struct gni_float_format {
    gn_dtype t;
    bool scientific, plus; // plus: positive numbers have a sign too
    int precision;         // most digits after the point
    int left, right;       // columns before and after the point
    int exponent;          // columns of the exponent's digits
    double most, least;    // largest and smallest absolute value but 0, while it is set up
    bool any, any_finite, odd, minus_inf; // numbers but 0; finite ones; NaN or infinities; -inf
} gni_float_format;

typedef struct gni_word {
    int n;
    char text[160];
} gni_word;

static void gni_word_add(gni_word *w, char c, int times) {
    for (; times > 0 && w->n < (int)sizeof w->text - 1; times--) w->text[w->n++] = c;
}

// The digits as text without padding, down to `zeros` places after the point at least. `point` is where
// the point is, `mantissa` where an exponent starts (or the end).
static void gni_float_body(const gni_float_format *f, const gni_parts *x, int zeros, gni_word *w,
                           int *point, int *mantissa) {
    gni_digits d;
    // What pads a number up to the point, or to the others' precision, are more of its own digits.
    if (f->scientific)
        gni_digits_of(x, -f->precision, -zeros, true, &d);
    else
        gni_digits_of(x, -f->precision, 0, false, &d);
    int first = d.count == 0 ? 0 : d.exponent, whole = f->scientific ? 1 : GNI_MAX(first + 1, 1);
    w->n = 0;
    if (x->negative)
        gni_word_add(w, '-', 1);
    else if (f->plus)
        gni_word_add(w, '+', 1);
    for (int i = 0; i < whole; i++) {
        int at = f->scientific ? i : i + GNI_MIN(first + 1, 1) - 1;
        gni_word_add(w, at >= 0 && at < d.count ? d.digit[at] : '0', 1);
    }
    *point = w->n;
    gni_word_add(w, '.', 1);
    int start =
        f->scientific ? 1 : first + 1; // the digit after the point, negative for zeros before it
    for (int i = start; i < d.count; i++) gni_word_add(w, i < 0 ? '0' : d.digit[i], 1);
    while (w->text[w->n - 1] == '0') w->n--;
    gni_word_add(w, '0', zeros - (w->n - *point - 1));
    *mantissa = w->n;
    if (!f->scientific) return;
    int size = first < 0 ? -first : first;
    gni_word_add(w, 'e', 1);
    gni_word_add(w, first < 0 ? '-' : '+', 1);
    if (f->exponent >= 3 || size >= 100) gni_word_add(w, (char)('0' + size / 100), 1);
    gni_word_add(w, (char)('0' + size / 10 % 10), 1);
    gni_word_add(w, (char)('0' + size % 10), 1);
}

// First look at a number: which notation.
static void gni_float_look(gni_float_format *f, const void *p) {
    gni_parts x = gni_take_apart(f->t, p);
    if (x.nan || x.inf) {
        f->odd = true;
        f->minus_inf = f->minus_inf || (x.inf && x.negative);
        return;
    }
    f->any_finite = true;
    double v = fabs(gni_element(f->t, p));
    if (v == 0.0) return;
    f->most = f->any ? GNI_MAX(f->most, v) : v;
    f->least = f->any ? GNI_MIN(f->least, v) : v;
    f->any = true;
}

static void gni_float_choose(gni_float_format *f) {
    f->exponent = 2;
    f->scientific = false;
    if (!f->any) return;
    double ratio = f->most / f->least; // in the array's own precision, as NumPy has it
    if (f->t != GN_F64) ratio = (double)((float)f->most / (float)f->least);
    if (f->t == GN_F16) ratio = (double)gni_f16_to_f32(gni_f32_to_f16((float)ratio));
    double least_plain = f->t == GN_F64 ? 1e-4 : (double)1e-4f;
    double most_plain = f->t == GN_F64 ? 1e8 : f->t == GN_F16 ? 1e3 : 1e6; // by the dtype's decimal digits
    f->scientific = f->most >= most_plain || f->least < least_plain || ratio > 1000.0;
}

// Second look: how many columns.
static void gni_float_measure(gni_float_format *f, const void *p) {
    gni_parts x = gni_take_apart(f->t, p);
    gni_word w;
    int point, mantissa;
    if (x.nan || x.inf) return;
    gni_float_body(f, &x, 0, &w, &point, &mantissa);
    f->left = GNI_MAX(f->left, point);
    f->right = GNI_MAX(f->right, mantissa - point - 1);
    if (f->scientific) f->exponent = GNI_MAX(f->exponent, w.n - mantissa - 2);
}

static void gni_float_finish(gni_float_format *f) {
    if (f->scientific) {
        f->precision = f->right;
        f->right += f->exponent + 2; // what NaN and Inf are padded to
    }
    if (!f->odd) return;
    int width = GNI_MAX(3, 3 + (f->plus || f->minus_inf ? 1 : 0)) - (f->right + 1);
    f->left = GNI_MAX(f->left, width);
}

static void gni_float_text(const gni_float_format *f, const void *p, gni_word *w) {
    gni_parts x = gni_take_apart(f->t, p);
    int point, mantissa;
    if (x.nan || x.inf) {
        const char *sign = x.inf && x.negative ? "-" : f->plus ? "+" : "";
        int blanks = f->left + f->right + 1 - 3 - (int)strlen(sign);
        w->n = snprintf(w->text, sizeof w->text, "%*s%s%s", GNI_MAX(blanks, 0), "", sign,
                        x.nan ? "nan" : "inf");
        return;
    }
    gni_word body;
    gni_float_body(f, &x, f->scientific ? f->precision : 0, &body, &point, &mantissa);
    w->n = 0;
    gni_word_add(w, ' ', f->left - point);
    for (int i = 0; i < body.n; i++) gni_word_add(w, body.text[i], 1);
    if (!f->scientific) gni_word_add(w, ' ', f->right - (body.n - point - 1));
}

// ---- one element of any dtype

typedef struct gni_printer {
    gn_context *g;
    const gn_array *a;
    gn_print_options o;
    bool summary;
    gni_float_format real, imag;
    int width; // of integers
    char *text;
    size_t n, capacity;
    bool failed;
    size_t line; // where the line under construction starts
} gni_printer;

static gn_dtype gni_part_dtype(gn_dtype t) {
    return t == GN_C64 ? GN_F32 : t == GN_C128 ? GN_F64 : t;
}

static void gni_integer_text(gn_dtype t, const void *p, gni_word *w) {
    int64_t v = 0;
    if (gn_dtype_size(t) == 8)
        memcpy(&v, p, sizeof v); // as a double it would lose digits
    else
        v = (int64_t)gni_element(t, p);
    w->n = snprintf(w->text, sizeof w->text, t == GN_U64 ? "%llu" : "%lld", (long long)v);
}

static void gni_element_text(const gni_printer *pr, const char *p, gni_word *w) {
    gn_dtype t = pr->a->dtype;
    if (t == GN_BOOL) {
        w->n = snprintf(w->text, sizeof w->text, "%*s", pr->a->shape.rank > 0 ? 5 : 0,
                        *p ? "True" : "False");
    } else if (gni_is_float(t)) {
        gni_float_text(&pr->real, p, w);
    } else if (gni_is_complex(t)) {
        gni_word imag;
        gni_float_text(&pr->real, p, w);
        gni_float_text(&pr->imag, p + gn_dtype_size(t) / 2, &imag);
        int end = imag.n; // the j comes before the padding
        while (end > 0 && imag.text[end - 1] == ' ') end--;
        for (int i = 0; i < end; i++) gni_word_add(w, imag.text[i], 1);
        gni_word_add(w, 'j', 1);
        gni_word_add(w, ' ', imag.n - end);
    } else {
        gni_word v;
        gni_integer_text(t, p, &v);
        w->n = 0;
        gni_word_add(w, ' ', pr->width - v.n);
        for (int i = 0; i < v.n; i++) gni_word_add(w, v.text[i], 1);
    }
    w->text[w->n] = 0;
}

// ---- the formats, from the elements that will be shown

static bool gni_print_cuts(const gni_printer *pr, int axis) {
    return pr->summary && pr->a->shape.dim[axis] > 2 * (int64_t)pr->o.edge_items;
}

static void gni_print_visit(gni_printer *pr, int axis, const char *p, int look) {
    const gn_array *a = pr->a;
    gn_dtype t = a->dtype;
    if (axis < a->shape.rank) {
        int64_t n = a->shape.dim[axis], step = a->stride[axis] * (int64_t)gn_dtype_size(t),
                edge = pr->o.edge_items;
        for (int64_t i = 0; i < n; i++) {
            if (i == edge && gni_print_cuts(pr, axis)) i = n - edge;
            gni_print_visit(pr, axis + 1, p + i * step, look);
        }
        return;
    }
    if (gni_is_float(t) || gni_is_complex(t)) {
        (look == 0 ? gni_float_look(&pr->real, p) : gni_float_measure(&pr->real, p));
        p += gn_dtype_size(t) / 2;
        if (gni_is_complex(t))
            (look == 0 ? gni_float_look(&pr->imag, p) : gni_float_measure(&pr->imag, p));
    } else if (look == 0 && t != GN_BOOL) {
        gni_word w;
        gni_integer_text(t, p, &w);
        pr->width = GNI_MAX(pr->width, w.n);
    }
}

static void gni_print_formats(gni_printer *pr, const char *p) {
    GNI_ZEROED(gni_float_format, start);
    start.t = gni_part_dtype(pr->a->dtype);
    start.precision = pr->o.precision;
    pr->real = pr->imag = start;
    pr->imag.plus = true;
    gni_print_visit(pr, 0, p, 0);
    if (gni_is_integer(pr->a->dtype) || pr->a->dtype == GN_BOOL) return;
    gni_float_choose(&pr->real);
    gni_float_choose(&pr->imag);
    gni_print_visit(pr, 0, p, 1);
    gni_float_finish(&pr->real);
    gni_float_finish(&pr->imag);
}

// ---- layout

static void gni_print_add(gni_printer *pr, const char *text, size_t n) {
    if (pr->n + n + 1 > pr->capacity && !pr->failed) {
        size_t capacity = GNI_MAX(2 * pr->capacity, pr->n + n + 256);
        char *more = (char *)gni_realloc(pr->g, pr->text, pr->n, capacity);
        if (more == NULL) {
            gni_fail_memory(pr->g, "gn_to_string", capacity);
            pr->failed = true;
        } else {
            pr->text = more;
            pr->capacity = capacity;
        }
    }
    if (pr->failed) return;
    memcpy(pr->text + pr->n, text, n);
    pr->n += n;
    pr->text[pr->n] = 0;
}

static void gni_print_text(gni_printer *pr, const char *text) {
    gni_print_add(pr, text, strlen(text));
}

static void gni_print_newlines(gni_printer *pr, int count, int indent) {
    while (pr->n > 0 && !pr->failed && pr->text[pr->n - 1] == ' ') pr->n--;
    for (int i = 0; i < count; i++) gni_print_text(pr, "\n");
    pr->line = pr->n;
    for (int i = 0; i < indent; i++) gni_print_text(pr, " ");
}

// A word of the last axis, on the next line where it does not fit.
static void gni_print_word(gni_printer *pr, const char *word, int n, int indent, int width) {
    int column = (int)(pr->n - pr->line);
    if (column + n > width && column > indent) gni_print_newlines(pr, 1, indent);
    gni_print_add(pr, word, (size_t)n);
}

// `indent` is the column after this axis's bracket, `width` what is left of the line at its depth.
static void gni_print_axis(gni_printer *pr, int axis, const char *p, int indent, int width) {
    const gn_array *a = pr->a;
    int inner = a->shape.rank - 1 - axis; // axes below this one
    int64_t n = a->shape.dim[axis], edge = pr->o.edge_items;
    int64_t step = a->stride[axis] * (int64_t)gn_dtype_size(a->dtype);
    bool cut = gni_print_cuts(pr, axis);
    gni_print_text(pr, "[");
    for (int64_t i = 0; i < n && !pr->failed; i++) {
        if (i > 0 && inner > 0) gni_print_newlines(pr, inner, indent);
        if (i == edge && cut) {
            if (inner == 0)
                gni_print_word(pr, "...", 3, indent, width - 1);
            else
                gni_print_text(pr, "...");
            gni_print_text(pr, inner == 0 ? ", " : ",");
            if (inner > 0) gni_print_newlines(pr, inner, indent);
            i = n - edge;
        }
        if (inner == 0) {
            gni_word w;
            gni_element_text(pr, p + i * step, &w);
            gni_print_word(pr, w.text, w.n, indent, width - 1);
        } else {
            gni_print_axis(pr, axis + 1, p + i * step, indent + 1, width - 1);
        }
        if (i + 1 < n) gni_print_text(pr, inner == 0 ? ", " : ",");
    }
    gni_print_text(pr, "]");
}

static void gni_print_body(gni_printer *pr, int64_t size) {
    const gn_array *a = pr->a;
    if (size == 0) {
        gni_print_text(pr, "[]");
        return;
    }
    const char *p = (const char *)gni_host(pr->g, (gn_array *)(uintptr_t)a);
    if (p == NULL) {
        pr->failed = true;
        return;
    }
    pr->summary = size > pr->o.threshold;
    gni_print_formats(pr, p);
    if (a->shape.rank > 0) {
        gni_print_axis(pr, 0, p, 7,
                       pr->o.line_width - 1); // after "array(["; the closing bracket counts
    } else {
        gni_word w;
        gni_element_text(pr, p, &w);
        gni_print_text(pr, w.text);
    }
}

static void gni_print_array(gni_printer *pr) {
    const gn_shape *s = &pr->a->shape;
    gn_dtype t = pr->a->dtype;
    int64_t size = gni_elements(s);
    gni_print_text(pr, "array(");
    gni_print_body(pr, size);
    // What the text does not tell: the shape of what is cut short or empty. Python's own kinds of number go without saying.
    bool shape = pr->summary || (size == 0 && s->rank != 1);
    bool dtype = size == 0 || !(t == GN_I64 || t == GN_F64 || t == GN_BOOL || t == GN_C128);
    char more[GN_MAX_RANK * 24 + 48];
    int n = shape ? snprintf(more, sizeof more, "shape=(") : 0;
    for (int i = 0; i < s->rank && shape; i++)
        n += snprintf(more + n, sizeof more - (size_t)n, "%s%lld", i > 0 ? ", " : "", (long long)s->dim[i]);
    if (shape) n += snprintf(more + n, sizeof more - (size_t)n, "%s)%s", s->rank == 1 ? "," : "", dtype ? ", " : "");
    if (dtype) n += snprintf(more + n, sizeof more - (size_t)n, "dtype=%s", gn_dtype_name(t));
    if (n > 0) gni_print_text(pr, ",");
    if (n > 0 && (int)(pr->n - pr->line) + n + 2 > pr->o.line_width)
        gni_print_newlines(pr, 1, 6);
    else if (n > 0)
        gni_print_text(pr, " ");
    gni_print_add(pr, more, (size_t)n);
    gni_print_text(pr, ")");
}

GPUNUM_API char *gn_to_string(gn_array *a, const gn_print_options *options) {
    gn_context *g = gni_begin("gn_to_string", &a, 1);
    if (g == NULL) return NULL;
    GNI_ZEROED(gni_printer, pr);
    pr.g = g;
    pr.a = a;
    if (options != NULL) pr.o = *options;
    if (pr.o.precision < 0 || pr.o.threshold < 0 || pr.o.edge_items < 0 || pr.o.line_width < 0) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_to_string: negative options");
        gni_end_plain(g);
        return NULL;
    }
    if (pr.o.precision == 0) pr.o.precision = 8;
    if (pr.o.threshold == 0) pr.o.threshold = 1000;
    if (pr.o.edge_items == 0) pr.o.edge_items = 3;
    if (pr.o.line_width == 0) pr.o.line_width = 75;
    if (pr.o.precision > GNI_MAX_DIGITS) pr.o.precision = GNI_MAX_DIGITS;
    if (gni_materialize(g, a)) gni_print_array(&pr);
    if (pr.failed || g->call_failed) {
        gni_free(g, pr.text);
        pr.text = NULL;
    }
    gni_end_plain(g);
    return pr.text;
}

GPUNUM_API void gn_string_free(gn_context *g, char *text) {
    if (g != NULL) gni_free(g, text);
}

GPUNUM_API void gn_print(gn_array *a) {
    gn_context *g = gni_begin("gn_print", &a, 1);
    char *text = g != NULL ? gn_to_string(a, NULL) : NULL;
    if (g != NULL) gni_end_plain(g);
    if (text == NULL && a != NULL) return;
    fputs(text != NULL ? text : "NULL", stdout);
    fputc('\n', stdout);
    if (text != NULL) gn_string_free(gn_context_of(a), text);
}
