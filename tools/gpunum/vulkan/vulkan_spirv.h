// >>vulkan_spirv
// Cuts a SPIR-V module down to what one set of specialisation constants leaves of it, because drivers take
// their time from the size of what they are given: constants are put in, integer arithmetic on them is
// done, branches that they decide are taken, and what nothing reaches or uses any more is left out.
// Floating-point instructions stay as they are. From outside: gni_spv_specialise.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/memory.h"
#include "../vulkan/vulkan_loader.h"
#endif

#if GNI_VULKAN

// The instructions that this room knows, under their numbers. Others stay, with all that they name.
enum {
    GNI_SPV_UNDEF = 1,
    GNI_SPV_IMPORT = 11,
    GNI_SPV_EXTENDED = 12,
    GNI_SPV_ENTRY_POINT = 15,
    GNI_SPV_BOOL = 20,
    GNI_SPV_INT = 21,
    GNI_SPV_TRUE = 41,
    GNI_SPV_FALSE = 42,
    GNI_SPV_CONSTANT = 43,
    GNI_SPV_COMPOSITE = 44,
    GNI_SPV_NULL = 46,
    GNI_SPV_SPEC_TRUE = 48,
    GNI_SPV_SPEC_FALSE = 49,
    GNI_SPV_SPEC_CONSTANT = 50,
    GNI_SPV_SPEC_COMPOSITE = 51,
    GNI_SPV_SPEC_OP = 52,
    GNI_SPV_FUNCTION = 54,
    GNI_SPV_PARAMETER = 55,
    GNI_SPV_FUNCTION_END = 56,
    GNI_SPV_CALL = 57,
    GNI_SPV_VARIABLE = 59,
    GNI_SPV_LOAD = 61,
    GNI_SPV_DECORATE = 71,
    GNI_SPV_MEMBER_DECORATE = 72,
    GNI_SPV_COPY = 83,
    GNI_SPV_SELECT = 169,
    GNI_SPV_PHI = 245,
    GNI_SPV_LOOP_MERGE = 246,
    GNI_SPV_SELECTION_MERGE = 247,
    GNI_SPV_LABEL = 248,
    GNI_SPV_BRANCH = 249,
    GNI_SPV_BRANCH_IF = 250,
    GNI_SPV_SWITCH = 251,
    GNI_SPV_UNREACHABLE = 255
};

// What is known of an id.
enum {
    GNI_SPV_IS_INT = 1,     // a type: 32-bit integers
    GNI_SPV_IS_BOOL = 2,    // a type
    GNI_SPV_KNOWN = 4,      // a scalar of such a type whose value is in `value`
    GNI_SPV_HAS_SPEC = 8,   // a constant with a SpecId, which is in `value`
    GNI_SPV_BUILT_IN = 16,  // the workgroup's size, which counts as used
    GNI_SPV_MOVES = 32,     // computed in a function, to be a constant of the module
    GNI_SPV_REACHED = 64,   // a function or a label
    GNI_SPV_LOOPS = 128,    // a label that a later block branches to
    GNI_SPV_STUB = 256,     // a label that must stay, without its block: of a merge
    GNI_SPV_LATCH = 512,    // of a loop's continue target, whose header is in `value`
    GNI_SPV_REWOUND = 1024, // the header of such a loop; its continue target is in `value`
    GNI_SPV_CALLED = 2048,  // a parameter: `value` is what calls pass for it
    GNI_SPV_VARIES = 4096,  // a parameter for which they do not all pass one constant
    GNI_SPV_USED = 8192,
    GNI_SPV_LISTED = 16384, // defined where it is reached
    GNI_SPV_LASTS = GNI_SPV_IS_INT | GNI_SPV_IS_BOOL | GNI_SPV_KNOWN | GNI_SPV_BUILT_IN
};

typedef struct gni_spv {
    const uint32_t *spec;
    uint32_t n_spec;
    const uint32_t *w; // the module, n words
    uint32_t n, bound;
    uint32_t *out; // what is made of it, `room` words at most
    uint32_t at, room;
    bool full; // they were not enough: not from a module that is right
    // Of every id. `place`: the instruction of functions and labels. `type`: for a label that is reached,
    // the instruction that ends its block.
    uint32_t *type, *value, *place;
    uint32_t *list; // room for n words
    uint16_t *flags;
    uint32_t glsl;
    bool more; // another round finds more
} gni_spv;

static uint32_t gni_spv_op(const uint32_t *w) { return w[0] & 0xffffu; }
static uint32_t gni_spv_count(const uint32_t *w) { return w[0] >> 16; }
static bool gni_spv_is(const gni_spv *s, uint32_t id, uint32_t flags) {
    return id < s->bound && (s->flags[id] & flags);
}
static void gni_spv_set(gni_spv *s, uint32_t id, uint32_t flags) {
    s->flags[id] = (uint16_t)(s->flags[id] | flags);
}
static bool gni_spv_scalar(const gni_spv *s, uint32_t type) {
    return gni_spv_is(s, type, GNI_SPV_IS_INT | GNI_SPV_IS_BOOL);
}
static bool gni_spv_ends_block(uint32_t op) {
    return (op >= GNI_SPV_BRANCH && op <= GNI_SPV_UNREACHABLE) ||
           op == 4416u; // OpTerminateInvocation
}

// Whether an instruction with a type and a result does nothing but make that.
static bool gni_spv_pure(const gni_spv *s, const uint32_t *w) {
    uint32_t op = gni_spv_op(w), count = gni_spv_count(w);
    if (count < 3) return false;
    if (op == GNI_SPV_LOAD) return count < 5 || !(w[4] & 1u); // volatile
    if (op == GNI_SPV_EXTENDED)                               // but modf and frexp, which write
        return count >= 5 && w[3] == s->glsl && w[4] != 35u && w[4] != 51u;
    return op == GNI_SPV_UNDEF || (op >= GNI_SPV_TRUE && op <= GNI_SPV_SPEC_OP) ||
           op == GNI_SPV_VARIABLE || (op >= 65u && op <= 67u) || (op >= 77u && op <= 84u) ||
           (op >= 109u && op <= 124u) || (op >= 126u && op <= 152u) || (op >= 154u && op <= 191u) ||
           (op >= 194u && op <= 205u) || op == GNI_SPV_PHI;
}

// A type, the promise of one, or what is said of its members: left out where nothing has the type.
static bool gni_spv_of_type(const uint32_t *w) {
    const uint32_t op = gni_spv_op(w);
    return (op >= 19u && op <= 33u) || op == 39u || op == GNI_SPV_MEMBER_DECORATE;
}

// ---- arithmetic

static bool gni_spv_compare(uint32_t op, uint32_t a, uint32_t b) {
    bool is_signed = (op & 1u) != 0; // the signed ones follow the unsigned ones
    if (is_signed) {                 // in the same order from there on
        a ^= 0x80000000u;
        b ^= 0x80000000u;
    }
    switch (op & ~1u) {
    case 172: return a > b;
    case 174: return a >= b;
    case 176: return a < b;
    default: return a <= b; // 178
    }
}

// An operation on two known operands. False: not one of ours, or undefined.
static bool gni_spv_binary(uint32_t op, uint32_t a, uint32_t b, uint32_t *out) {
    const uint32_t top = 0x80000000u;
    bool divides = op == 134u || op == 135u || (op >= 137u && op <= 139u);
    if ((divides && (b == 0 || (op != 134u && op != 137u && ((a | b) & top)))) ||
        (op >= 194u && op <= 196u && b >= 32u))
        return false;
    switch (op) {
    case 128: *out = a + b; return true;
    case 130: *out = a - b; return true;
    case 132: *out = a * b; return true;
    case 134:
    case 135: *out = a / b; return true;
    case 137:
    case 138:
    case 139: *out = a % b; return true;
    case 166: *out = a | b; return true;
    case 167: *out = a & b; return true;
    case 164:
    case 170: *out = a == b; return true;
    case 165:
    case 171: *out = a != b; return true;
    case 194: *out = a >> b; return true;
    case 195: *out = a & top && b ? a >> b | ~(UINT32_MAX >> b) : a >> b; return true;
    case 196: *out = a << b; return true;
    case 197: *out = a | b; return true;
    case 198: *out = a ^ b; return true;
    case 199: *out = a & b; return true;
    default: break;
    }
    if (op < 172u || op > 179u) return false;
    *out = gni_spv_compare(op, a, b);
    return true;
}

static bool gni_spv_unary(uint32_t op, uint32_t a, uint32_t *out) {
    switch (op) {
    case GNI_SPV_COPY:
    case 113:
    case 114:
    case 124: *out = a; return true; // conversions between integers of one width
    case 126: *out = 0u - a; return true;
    case 168: *out = !a; return true;
    case 200: *out = ~a; return true;
    default: return false;
    }
}

// The value of an operation on `count` operands, of a type that gni_spv_scalar likes.
static bool gni_spv_fold(const gni_spv *s, uint32_t op, const uint32_t *in, uint32_t count,
                         uint32_t *out) {
    if (count == 0 || count > 3) return false;
    bool know_a = gni_spv_is(s, in[0], GNI_SPV_KNOWN);
    uint32_t a = know_a ? s->value[in[0]] : 0;
    if (count == 1) return know_a && gni_spv_unary(op, a, out);
    uint32_t other = count == 3 && op == GNI_SPV_SELECT && know_a && !a ? in[2] : in[1];
    bool know_b = gni_spv_is(s, other, GNI_SPV_KNOWN);
    uint32_t b = know_b ? s->value[other] : 0;
    if (count == 3) {
        *out = b;
        return op == GNI_SPV_SELECT && know_a && know_b;
    }
    if (know_a && know_b) return gni_spv_binary(op, a, b, out);
    // One operand may be enough.
    bool zero = (know_a && a == 0) || (know_b && b == 0), one = know_a ? a == 1 : know_b && b == 1;
    *out = op == 166u;
    return (zero && (op == 132u || op == 167u || op == 199u)) || (one && op == 166u);
}

// Which operand a result is the same as, or 0.
static uint32_t gni_spv_same(const gni_spv *s, const uint32_t *w) {
    uint32_t op = gni_spv_op(w), count = gni_spv_count(w), same = 0;
    if (count == 6 && op == GNI_SPV_SELECT && gni_spv_is(s, w[3], GNI_SPV_KNOWN))
        same = s->value[w[3]] ? w[4] : w[5];
    if (count == 5 && gni_spv_scalar(s, w[1])) {
        bool a = gni_spv_is(s, w[3], GNI_SPV_KNOWN), b = gni_spv_is(s, w[4], GNI_SPV_KNOWN);
        bool sum = op == 128u || op == 166u || op == 197u || op == 198u;
        bool product = op == 132u || op == 167u;
        bool shift = op == 130u || (op >= 194u && op <= 196u);
        if (a && s->value[w[3]] == (product ? 1u : 0u) && (sum || product)) same = w[4];
        if (b && s->value[w[4]] == (product || op == 134u ? 1u : 0u) &&
            (sum || product || shift || op == 134u))
            same = w[3];
    }
    return same < s->bound && s->type[same] == w[1] ? same : 0;
}

// ---- reading

static void gni_spv_know(gni_spv *s, uint32_t id, uint32_t value) {
    gni_spv_set(s, id, GNI_SPV_KNOWN);
    s->value[id] = value;
}

static void gni_spv_read_constant(gni_spv *s, const uint32_t *w) {
    uint32_t op = gni_spv_op(w), count = gni_spv_count(w), id = w[2];
    uint32_t value = op == GNI_SPV_TRUE || op == GNI_SPV_SPEC_TRUE;
    if (op == GNI_SPV_SPEC_OP) {
        if (count > 4 && gni_spv_scalar(s, w[1]) && gni_spv_fold(s, w[3], w + 4, count - 4, &value))
            gni_spv_know(s, id, value);
        return;
    }
    if (op == GNI_SPV_CONSTANT || op == GNI_SPV_SPEC_CONSTANT) {
        if (count != 4) return;
        value = w[3];
    }
    if (op >= GNI_SPV_SPEC_TRUE && (s->flags[id] & GNI_SPV_HAS_SPEC) && s->value[id] < s->n_spec)
        value = s->spec[s->value[id]];
    s->value[id] = value; // of a float too, for gni_spv_put_constant
    if (gni_spv_scalar(s, w[1]))
        gni_spv_know(s, id, gni_spv_is(s, w[1], GNI_SPV_IS_BOOL) ? value != 0 : value);
}

// Whether all that a phi can be is one constant.
static bool gni_spv_phi_known(const gni_spv *s, const uint32_t *w, uint32_t *value) {
    bool any = false;
    for (uint32_t k = 3; k + 1 < gni_spv_count(w); k += 2) {
        if (w[k] == w[2]) continue;
        if (!gni_spv_is(s, w[k], GNI_SPV_KNOWN) || (any && s->value[w[k]] != *value)) return false;
        *value = s->value[w[k]];
        any = true;
    }
    return any;
}

static void gni_spv_read_result(gni_spv *s, const uint32_t *w) {
    uint32_t op = gni_spv_op(w), count = gni_spv_count(w), value = 0;
    s->type[w[2]] = w[1];
    if (op >= GNI_SPV_TRUE && op <= GNI_SPV_SPEC_OP) {
        if (op != GNI_SPV_COMPOSITE && op != GNI_SPV_SPEC_COMPOSITE && op != 45u)
            gni_spv_read_constant(s, w);
        return;
    }
    if (!gni_spv_scalar(s, w[1]) || op == GNI_SPV_LOAD || op == GNI_SPV_EXTENDED) return;
    if (op == GNI_SPV_PHI ? gni_spv_phi_known(s, w, &value)
                          : gni_spv_fold(s, op, w + 3, count - 3, &value)) {
        gni_spv_know(s, w[2], value);
        gni_spv_set(s, w[2], GNI_SPV_MOVES);
    }
}

static bool gni_spv_read_one(gni_spv *s, uint32_t i) {
    const uint32_t *w = s->w + i;
    uint32_t op = gni_spv_op(w), count = gni_spv_count(w);
    bool defines = op == GNI_SPV_FUNCTION || op == GNI_SPV_PARAMETER || op == GNI_SPV_CALL;
    if (op == GNI_SPV_IMPORT && count > 2 && w[2] == 0x4c534c47u) s->glsl = w[1]; // "GLSL"
    // Groups of decorations, decorations with ids and with strings
    if ((op >= 73u && op <= 75u) || op == 332u || op == 5632u) return false;
    if (count > 1 && w[1] >= s->bound)              // an id wherever it matters
        return op == 10u || op == 14u || op == 17u; // OpExtension, OpMemoryModel, OpCapability
    if (op == GNI_SPV_DECORATE && count == 4 && w[2] == 1) {
        gni_spv_set(s, w[1], GNI_SPV_HAS_SPEC);
        s->value[w[1]] = w[3];
    }
    if (op == GNI_SPV_DECORATE && count == 4 && w[2] == 11 && w[3] == 25)
        gni_spv_set(s, w[1], GNI_SPV_BUILT_IN);
    if (op == GNI_SPV_BOOL) gni_spv_set(s, w[1], GNI_SPV_IS_BOOL);
    if (op == GNI_SPV_INT && count == 4 && w[2] == 32) gni_spv_set(s, w[1], GNI_SPV_IS_INT);
    if (op == GNI_SPV_LABEL) s->place[w[1]] = i;
    if (!defines && !gni_spv_pure(s, w)) return true;
    if (count < 3 || w[2] >= s->bound) return false;
    if (op == GNI_SPV_FUNCTION) s->place[w[2]] = i;
    if (defines)
        s->type[w[2]] = w[1];
    else
        gni_spv_read_result(s, w);
    return true;
}

// Learns all constants. False: this is no module that the room understands.
static bool gni_spv_read(gni_spv *s) {
    enum { OUTSIDE, BETWEEN, INSIDE } where = OUTSIDE; // of functions, blocks
    for (uint32_t id = 0; id < s->bound; id++) {
        s->flags[id] = (uint16_t)(s->flags[id] & GNI_SPV_LASTS);
        s->place[id] = 0;
    }
    for (uint32_t i = 5, count; i < s->n; i += count) {
        uint32_t op = gni_spv_op(s->w + i);
        count = gni_spv_count(s->w + i);
        if (count == 0 || count > s->n - i || !gni_spv_read_one(s, i)) return false;
        if (op == GNI_SPV_FUNCTION || op == GNI_SPV_FUNCTION_END) {
            if (where != (op == GNI_SPV_FUNCTION ? OUTSIDE : BETWEEN)) return false;
            where = op == GNI_SPV_FUNCTION ? BETWEEN : OUTSIDE;
        } else if (op == GNI_SPV_LABEL) {
            if (where != BETWEEN || count != 2) return false;
            where = INSIDE;
        } else if (gni_spv_ends_block(op)) {
            if (where != INSIDE || (op == GNI_SPV_SWITCH && count < 3) ||
                (op == GNI_SPV_BRANCH_IF && count < 4) || (op == GNI_SPV_BRANCH && count != 2))
                return false;
            if (op == GNI_SPV_SWITCH && !gni_spv_scalar(s, s->type[s->w[i + 1]])) return false;
            where = BETWEEN;
        } else if (where == BETWEEN && op != GNI_SPV_PARAMETER) {
            return false;
        }
    }
    return where == OUTSIDE;
}

// ---- what is reached

// The k-th block that the instruction at i branches to, 0 after the last.
static uint32_t gni_spv_target(const gni_spv *s, uint32_t i, uint32_t k) {
    const uint32_t *w = s->w + i;
    uint32_t op = gni_spv_op(w), count = gni_spv_count(w);
    bool known = op != GNI_SPV_BRANCH && count > 2 && gni_spv_is(s, w[1], GNI_SPV_KNOWN);
    if (op == GNI_SPV_BRANCH) return k == 0 ? w[1] : 0;
    if (op == GNI_SPV_BRANCH_IF && known) {
        uint32_t taken = w[s->value[w[1]] ? 2 : 3], left = w[s->value[w[1]] ? 3 : 2];
        // A loop without a way back would be none, but is still marked as one.
        if (left < s->bound && s->place[left] > i) return k == 0 ? taken : 0;
    }
    if (op == GNI_SPV_BRANCH_IF) return k < 2 ? w[2 + k] : 0;
    if (op != GNI_SPV_SWITCH) return 0;
    if (!known) return k == 0 ? w[2] : 2 + 2 * k < count ? w[2 + 2 * k] : 0;
    uint32_t taken = w[2];
    for (uint32_t c = 3; c + 1 < count; c += 2)
        if (w[c] == s->value[w[1]]) taken = w[c + 1];
    return k == 0 ? taken : 0;
}

static bool gni_spv_branches_to(const gni_spv *s, uint32_t i, uint32_t label) {
    for (uint32_t k = 0, to; (to = gni_spv_target(s, i, k)) != 0; k++)
        if (to == label) return true;
    return false;
}

// Whether only one block follows, and the instruction can be a plain branch.
static bool gni_spv_straight(const gni_spv *s, uint32_t i) {
    uint32_t op = gni_spv_op(s->w + i);
    return op == GNI_SPV_BRANCH || (op == GNI_SPV_BRANCH_IF && gni_spv_target(s, i, 1) == 0);
}

static bool gni_spv_push(gni_spv *s, uint32_t label, uint32_t *top) {
    if (label >= s->bound || s->place[label] == 0) return false;
    if (!(s->flags[label] & GNI_SPV_REACHED)) s->list[(*top)++] = label;
    gni_spv_set(s, label, GNI_SPV_REACHED);
    return true;
}

// A function is called by the instruction at `call`, or (0) is where the shader begins.
static bool gni_spv_enter(gni_spv *s, uint32_t function, uint32_t call, uint32_t *top) {
    if (function >= s->bound || s->place[function] == 0) return false;
    uint32_t i = s->place[function], k = 4;
    if (gni_spv_op(s->w + i) != GNI_SPV_FUNCTION) return false;
    gni_spv_set(s, function, GNI_SPV_REACHED);
    for (i += gni_spv_count(s->w + i); gni_spv_op(s->w + i) == GNI_SPV_PARAMETER;
         i += gni_spv_count(s->w + i), k++) {
        uint32_t p = s->w[i + 2], with = 0;
        if (s->flags[p] & GNI_SPV_KNOWN) continue;
        if (call != 0 && k < gni_spv_count(s->w + call)) with = s->w[call + k];
        if (!gni_spv_is(s, with, GNI_SPV_KNOWN) ||
            ((s->flags[p] & GNI_SPV_CALLED) && s->value[p] != s->value[with])) {
            gni_spv_set(s, p, GNI_SPV_VARIES);
        } else {
            gni_spv_set(s, p, GNI_SPV_CALLED);
            s->value[p] = s->value[with];
        }
    }
    return gni_spv_op(s->w + i) == GNI_SPV_LABEL && gni_spv_push(s, s->w[i + 1], top);
}

// Parameters for which every call passes the same constant.
static void gni_spv_learn_parameters(gni_spv *s) {
    for (uint32_t i = 5; i < s->n; i += gni_spv_count(s->w + i)) {
        if (gni_spv_op(s->w + i) != GNI_SPV_PARAMETER) continue;
        uint32_t p = s->w[i + 2], m = s->flags[p];
        if (!(m & GNI_SPV_CALLED) || (m & GNI_SPV_VARIES)) continue;
        gni_spv_set(s, p, GNI_SPV_KNOWN);
        s->more = true;
    }
}

static bool gni_spv_reach(gni_spv *s) {
    uint32_t top = 0;
    for (uint32_t i = 5; i < s->n; i += gni_spv_count(s->w + i))
        if (gni_spv_op(s->w + i) == GNI_SPV_ENTRY_POINT && !gni_spv_enter(s, s->w[i + 2], 0, &top))
            return false;
    while (top > 0) {
        uint32_t label = s->list[--top], i = s->place[label], to;
        for (; !gni_spv_ends_block(gni_spv_op(s->w + i)); i += gni_spv_count(s->w + i))
            if (gni_spv_op(s->w + i) == GNI_SPV_CALL && !gni_spv_enter(s, s->w[i + 3], i, &top))
                return false;
        s->type[label] = i;
        for (uint32_t k = 0; (to = gni_spv_target(s, i, k)) != 0; k++) {
            if (!gni_spv_push(s, to, &top)) return false;
            if (s->place[to] <= i) gni_spv_set(s, to, GNI_SPV_LOOPS);
        }
    }
    gni_spv_learn_parameters(s);
    return true;
}

// A loop that is left before it begins: plain branches lead from its header to its end.
static bool gni_spv_no_loop(const gni_spv *s, uint32_t header, const uint32_t *merge) {
    if (s->flags[merge[2]] & GNI_SPV_REACHED) return false;
    for (uint32_t at = header, steps = 0; steps < 64; steps++) {
        uint32_t i = s->type[at];
        if (!gni_spv_straight(s, i)) return false;
        at = gni_spv_target(s, i, 0);
        if (at == merge[1]) return true;
    }
    return false;
}

// Whether the merge instruction at i, of a block that is reached, goes.
static bool gni_spv_no_merge(const gni_spv *s, uint32_t i, uint32_t label) {
    uint32_t next = i + gni_spv_count(s->w + i);
    if (gni_spv_op(s->w + i) == GNI_SPV_LOOP_MERGE) return gni_spv_no_loop(s, label, s->w + i);
    return gni_spv_op(s->w + next) == GNI_SPV_BRANCH_IF && gni_spv_straight(s, next);
}

// Blocks that a merge instruction names stay, if only as a label. False: this would be no loop.
static bool gni_spv_keep_ends(gni_spv *s, uint32_t i, uint32_t label) {
    const uint32_t *w = s->w + i;
    bool loop = gni_spv_op(w) == GNI_SPV_LOOP_MERGE;
    if (gni_spv_count(w) < (loop ? 4u : 3u) || w[1] >= s->bound || (loop && w[2] >= s->bound))
        return false;
    if (gni_spv_no_merge(s, i, label)) return true;
    if (!(s->flags[w[1]] & GNI_SPV_REACHED)) gni_spv_set(s, w[1], GNI_SPV_STUB);
    if (!loop) return true;
    if (s->flags[w[2]] & GNI_SPV_REACHED) return (s->flags[label] & GNI_SPV_LOOPS) != 0;
    gni_spv_set(s, w[2], GNI_SPV_LATCH);
    gni_spv_set(s, label, GNI_SPV_REWOUND);
    s->value[w[2]] = label;
    s->value[label] = w[2];
    return true;
}

// ---- what is used

// Notes what the instruction defines, or might: in a function any second word is an id, but for one.
static void gni_spv_list(gni_spv *s, const uint32_t *w, bool inside) {
    uint32_t op = gni_spv_op(w), k = op >= 19u && op <= 39u ? 1 : 2; // a type?
    bool second = gni_spv_pure(s, w) || (inside && op != GNI_SPV_SELECTION_MERGE);
    if ((k == 1 || second) && gni_spv_count(w) > k && w[k] < s->bound)
        gni_spv_set(s, w[k], GNI_SPV_LISTED);
}

// Lists the instructions that are to be kept if used. Returns how many, 0: this cannot be done.
static uint32_t gni_spv_gather(gni_spv *s) {
    uint32_t found = 0, label = 0;
    bool inside = false, reached = true;
    for (uint32_t i = 5; i < s->n; i += gni_spv_count(s->w + i)) {
        uint32_t op = gni_spv_op(s->w + i);
        if (op == GNI_SPV_FUNCTION) inside = true;
        if (op == GNI_SPV_FUNCTION) reached = (s->flags[s->w[i + 2]] & GNI_SPV_REACHED) != 0;
        if (op == GNI_SPV_LABEL) {
            label = s->w[i + 1];
            reached = (s->flags[label] & GNI_SPV_REACHED) != 0;
        }
        if (!reached) continue;
        gni_spv_list(s, s->w + i, inside);
        if (inside && (op == GNI_SPV_LOOP_MERGE || op == GNI_SPV_SELECTION_MERGE) &&
            !gni_spv_keep_ends(s, i, label))
            return 0;
        s->list[found++] = i;
    }
    return found;
}

static bool gni_spv_use(gni_spv *s, uint32_t id) {
    if (id >= s->bound || (s->flags[id] & GNI_SPV_USED)) return false;
    gni_spv_set(s, id, GNI_SPV_USED);
    return true;
}

// Flags what the instruction at i uses: any word that could be an id. Whether that was news.
static bool gni_spv_use_operands(gni_spv *s, uint32_t i) {
    const uint32_t *w = s->w + i;
    uint32_t op = gni_spv_op(w), count = gni_spv_count(w), same = 0;
    bool news = false;
    if (op == GNI_SPV_DECORATE) return false;
    if (op == GNI_SPV_ENTRY_POINT) return gni_spv_use(s, w[2]);
    if (op == 16u) return false; // OpExecutionMode
    if (gni_spv_of_type(w) && (op > 33u || !gni_spv_is(s, w[1], GNI_SPV_USED))) return false;
    if (op == GNI_SPV_BRANCH_IF && gni_spv_straight(s, i)) return false;
    if (gni_spv_pure(s, w)) {
        uint32_t m = s->flags[w[2]];
        if (!(m & (GNI_SPV_USED | GNI_SPV_BUILT_IN))) return false;
        if ((m & GNI_SPV_KNOWN) || op == GNI_SPV_CONSTANT || op == GNI_SPV_SPEC_CONSTANT) return gni_spv_use(s, w[1]);
        if (op > GNI_SPV_SPEC_OP) same = gni_spv_same(s, w);
    }
    if (same != 0) {
        news = gni_spv_use(s, same);
        return gni_spv_use(s, w[1]) || news;
    }
    for (uint32_t k = 1; k < count; k++)
        if (k != 2 || !gni_spv_pure(s, w)) news = gni_spv_use(s, w[k]) || news;
    return news;
}

// Backwards, since uses mostly follow what they use; again while loops bring more.
static void gni_spv_mark_used(gni_spv *s, uint32_t found) {
    for (bool news = true; news;) {
        news = false;
        for (uint32_t k = found; k-- > 0;)
            if (gni_spv_use_operands(s, s->list[k]) && gni_spv_op(s->w + s->list[k]) == GNI_SPV_PHI)
                news = true;
    }
}

// ---- writing

static bool gni_spv_fits(gni_spv *s, uint32_t words) {
    if (words > s->room - s->at) s->full = true;
    return !s->full;
}

static void gni_spv_put(gni_spv *s, uint32_t op, uint32_t count, uint32_t a, uint32_t b,
                        uint32_t c) {
    uint32_t in[3] = {a, b, c};
    if (!gni_spv_fits(s, count)) return;
    s->out[s->at++] = count << 16 | op;
    for (uint32_t k = 0; k + 1 < count; k++) s->out[s->at++] = in[k];
}

static void gni_spv_copy(gni_spv *s, const uint32_t *w) {
    if (!gni_spv_fits(s, gni_spv_count(w))) return;
    memcpy(s->out + s->at, w, gni_spv_count(w) * sizeof *w);
    s->at += gni_spv_count(w);
}

static void gni_spv_put_known(gni_spv *s, uint32_t type, uint32_t id) {
    if (s->flags[type] & GNI_SPV_IS_BOOL)
        gni_spv_put(s, s->value[id] ? GNI_SPV_TRUE : GNI_SPV_FALSE, 3, type, id, 0);
    else
        gni_spv_put(s, GNI_SPV_CONSTANT, 4, type, id, s->value[id]);
}

static void gni_spv_put_constant(gni_spv *s, const uint32_t *w) {
    uint32_t op = gni_spv_op(w), from = s->at;
    if ((s->flags[w[2]] & GNI_SPV_KNOWN) && op != GNI_SPV_NULL) {
        gni_spv_put_known(s, w[1], w[2]);
        return;
    }
    gni_spv_copy(s, w);
    if (s->full) return;
    if (op == GNI_SPV_SPEC_CONSTANT) {
        s->out[from] -= GNI_SPV_SPEC_CONSTANT - GNI_SPV_CONSTANT;
        if (gni_spv_count(w) == 4) s->out[from + 3] = s->value[w[2]];
    }
    if (op == GNI_SPV_SPEC_COMPOSITE) s->out[from] -= GNI_SPV_SPEC_COMPOSITE - GNI_SPV_COMPOSITE;
}

// The parents that are left, and for a loop without a way back the stub of one.
static void gni_spv_put_phi(gni_spv *s, const uint32_t *w, uint32_t label) {
    uint32_t from = s->at;
    if (!gni_spv_fits(s, gni_spv_count(w) + 2)) return;
    s->at += 3;
    for (uint32_t k = 3; k + 1 < gni_spv_count(w); k += 2) {
        uint32_t parent = w[k + 1];
        if (!gni_spv_is(s, parent, GNI_SPV_REACHED) ||
            !gni_spv_branches_to(s, s->type[parent], label))
            continue;
        s->out[s->at++] = w[k];
        s->out[s->at++] = parent;
    }
    if (s->flags[label] & GNI_SPV_REWOUND) {
        s->out[s->at++] = w[2];
        s->out[s->at++] = s->value[label];
    }
    s->out[from] = (s->at - from) << 16 | GNI_SPV_PHI;
    s->out[from + 1] = w[1];
    s->out[from + 2] = w[2];
}

static void gni_spv_put_entry_point(gni_spv *s, const uint32_t *w) {
    uint32_t count = gni_spv_count(w), from = s->at, k = 3;
    if (!gni_spv_fits(s, count)) return;
    while (k < count && (w[k] >> 24) != 0) k++; // the end of the name
    for (uint32_t j = 0; j <= k && j < count; j++) s->out[s->at++] = w[j];
    for (k++; k < count; k++)
        if (gni_spv_is(s, w[k], GNI_SPV_USED | GNI_SPV_BUILT_IN)) s->out[s->at++] = w[k];
    s->out[from] = (s->at - from) << 16 | GNI_SPV_ENTRY_POINT;
}

// Constants that were computed in functions, before the first of these.
static void gni_spv_put_moved(gni_spv *s, uint32_t found) {
    for (uint32_t k = 0; k < found; k++) {
        const uint32_t *w = s->w + s->list[k];
        if (gni_spv_pure(s, w) && (s->flags[w[2]] & GNI_SPV_MOVES) && (s->flags[w[2]] & GNI_SPV_USED))
            gni_spv_put_known(s, w[1], w[2]);
    }
}

static void gni_spv_put_branch(gni_spv *s, uint32_t i) {
    const uint32_t *w = s->w + i;
    if (gni_spv_straight(s, i))
        gni_spv_put(s, GNI_SPV_BRANCH, 2, gni_spv_target(s, i, 0), 0, 0);
    else if (gni_spv_op(w) == GNI_SPV_SWITCH && gni_spv_is(s, w[1], GNI_SPV_KNOWN))
        // Blocks within may break out of it: it stays, with a single way.
        gni_spv_put(s, GNI_SPV_SWITCH, 3, w[1], gni_spv_target(s, i, 0), 0);
    else
        gni_spv_copy(s, w);
}

// One instruction of a block that is reached, or from outside of functions.
static void gni_spv_put_one(gni_spv *s, uint32_t i, uint32_t label) {
    const uint32_t *w = s->w + i;
    uint32_t op = gni_spv_op(w), same = 0;
    if (gni_spv_ends_block(op)) {
        gni_spv_put_branch(s, i);
    } else if (op == GNI_SPV_LOOP_MERGE || op == GNI_SPV_SELECTION_MERGE) {
        if (!gni_spv_no_merge(s, i, label)) gni_spv_copy(s, w);
    } else if (op == GNI_SPV_ENTRY_POINT) {
        gni_spv_put_entry_point(s, w);
    } else if (op == GNI_SPV_DECORATE) {
        uint32_t m = s->flags[w[1]];
        bool used = (m & (GNI_SPV_USED | GNI_SPV_BUILT_IN)) && !(m & GNI_SPV_MOVES);
        if (used && (m & GNI_SPV_LISTED) && w[2] != 1u) gni_spv_copy(s, w); // SpecId
    } else if (!gni_spv_pure(s, w)) {
        if (!gni_spv_of_type(w) || gni_spv_is(s, w[1], GNI_SPV_USED)) gni_spv_copy(s, w);
    } else if ((s->flags[w[2]] & (GNI_SPV_USED | GNI_SPV_BUILT_IN)) &&
               !(s->flags[w[2]] & GNI_SPV_MOVES)) {
        if (op >= GNI_SPV_TRUE && op <= GNI_SPV_SPEC_OP)
            gni_spv_put_constant(s, w);
        else if (op == GNI_SPV_PHI)
            gni_spv_put_phi(s, w, label);
        else if ((same = gni_spv_same(s, w)) != 0)
            gni_spv_put(s, GNI_SPV_COPY, 4, w[1], w[2], same);
        else
            gni_spv_copy(s, w);
    }
}

static void gni_spv_put_stub(gni_spv *s, uint32_t label) {
    gni_spv_put(s, GNI_SPV_LABEL, 2, label, 0, 0);
    if (s->flags[label] & GNI_SPV_LATCH)
        gni_spv_put(s, GNI_SPV_BRANCH, 2, s->value[label], 0, 0);
    else
        gni_spv_put(s, GNI_SPV_UNREACHABLE, 1, 0, 0, 0);
}

static void gni_spv_write(gni_spv *s, uint32_t found) {
    bool live = false, reached = true, moved = false; // live: the function
    uint32_t label = 0;
    s->at = 5;
    memcpy(s->out, s->w, 5 * sizeof *s->w);
    for (uint32_t i = 5; i < s->n; i += gni_spv_count(s->w + i)) {
        uint32_t op = gni_spv_op(s->w + i);
        if (op == GNI_SPV_FUNCTION) {
            if (!moved) gni_spv_put_moved(s, found);
            moved = true;
            live = reached = (s->flags[s->w[i + 2]] & GNI_SPV_REACHED) != 0;
        } else if (op == GNI_SPV_FUNCTION_END) {
            reached = live;
        } else if (op == GNI_SPV_LABEL) {
            label = s->w[i + 1];
            reached = (s->flags[label] & GNI_SPV_REACHED) != 0;
            if (!reached && (s->flags[label] & (GNI_SPV_STUB | GNI_SPV_LATCH)))
                gni_spv_put_stub(s, label);
        }
        if (reached) gni_spv_put_one(s, i, label);
    }
}

static bool gni_spv_round(gni_spv *s) {
    if (!gni_spv_read(s) || !gni_spv_reach(s)) return false;
    uint32_t found = gni_spv_gather(s);
    if (found == 0) return false;
    gni_spv_mark_used(s, found);
    gni_spv_write(s, found);
    if (s->full) return false;
    if (s->at < s->n) s->more = true;
    return true;
}

// Cuts the module of n words down, in place, to what these values of constants 0 to n_spec - 1 leave of it.
// Returns the number of words, 0 if it is left as it was: no memory, or not understood.
static uint32_t gni_spv_specialise(gn_context *g, uint32_t *w, uint32_t n, const uint32_t *spec,
                                   uint32_t n_spec) {
    enum { ROUNDS = 10 }; // each is right, the last ones find little
    if (n < 6) return 0;
    size_t ids = w[3], words = (size_t)n * 2 + ids * 3;
    if (ids > (1u << 22)) return 0;
    uint32_t *memory = (uint32_t *)gni_calloc(g, words * sizeof *w + ids * sizeof(uint16_t));
    if (!memory) return 0;
    GNI_ZEROED(gni_spv, s);
    s.spec = spec;
    s.n_spec = n_spec;
    s.bound = (uint32_t)ids;
    s.list = memory + n;
    s.type = s.list + n;
    s.value = s.type + ids;
    s.place = s.value + ids;
    s.flags = (uint16_t *)(s.place + ids);
    s.w = w;
    s.n = s.room = n;
    s.out = memory;
    s.more = true;
    uint32_t done = 0;
    for (int round = 0; round < ROUNDS && s.more; round++) {
        s.more = false;
        if (!gni_spv_round(&s)) break;
        done = s.n = s.at;
        s.w = s.out;
        s.out = s.w == w ? memory : w;
    }
    if (done && s.w != w) memcpy(w, s.w, done * sizeof *w);
    gni_free(g, memory);
    return done;
}

#endif // GNI_VULKAN
