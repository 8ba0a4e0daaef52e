// >>unpack
// Kernels out of the text that shaders.h keeps them in and tools/pack_shaders.py writes. Modules that have much in
// common make a block. From the outside in:
//
//   base 85  Five characters stand for four bytes, in strings that are short enough for every compiler.
//   LZMA     The block's tokens, compressed, without a head (LZMA specification, Igor Pavlov, public domain).
//   tokens   An instruction's first word as its place in the block's table, which also says what its operands are: an
//            id as how many ids were used since it was, types counted apart; an id that is defined as its difference
//            from the last one. So code that does the same mostly reads the same, wherever it stands. Numbers have 7
//            bits a byte, the lowest first.
//
// All is checked while it is read: of a damaged text nothing else happens than that false is returned. From outside:
// gni_unpack_begin, gni_unpack_to, gni_unpack_words.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../vulkan/vulkan_loader.h"
#endif

#if GNI_GPU

enum {
    GNI_UNPACK_LC = 2, // bits of the byte before that choose the model of a literal
    // Where the models of each kind of bit are, in the specification's words.
    GNI_UNPACK_MATCH = 0,
    GNI_UNPACK_REP = 12,
    GNI_UNPACK_REP_0 = 24,
    GNI_UNPACK_REP_1 = 36,
    GNI_UNPACK_REP_2 = 48,
    GNI_UNPACK_REP_LONG = 60,
    GNI_UNPACK_SLOT = 72,
    GNI_UNPACK_SPECIAL = 328,
    GNI_UNPACK_ALIGN = 456,
    GNI_UNPACK_LENGTH = 472,
    GNI_UNPACK_REP_LENGTH = 746,
    GNI_UNPACK_LITERAL = 1020,
    GNI_UNPACK_MODELS = GNI_UNPACK_LITERAL + (0x300 << GNI_UNPACK_LC)
};

// A block, decoded as far as anybody needed it.
typedef struct gni_unpack {
    const char *text;
    uint32_t groups;        // of five characters that are left
    uint32_t bytes, count;  // of the last group, those that are left
    uint32_t range, code;   // of the range decoder
    uint32_t state, rep[4]; // of LZMA: what came last, the last distances less 1
    uint32_t at, size;      // bytes of `out` decoded, and in all
    uint8_t *out;
    bool damaged;
    uint16_t model[GNI_UNPACK_MODELS]; // of each bit: how likely is 0, of 2048
} gni_unpack;

// ---- base 85 and LZMA

static uint32_t gni_unpack_byte(gni_unpack *z) {
    if (z->count == 0) {
        if (z->groups == 0) {
            z->damaged = true;
            return 0;
        }
        if (*z->text == 0) z->text++; // the end of a line
        z->bytes = 0;
        for (int i = 4; i >= 0; i--) {
            char c = z->text[i]; // two characters have stand-ins, without a meaning to C
            z->bytes = z->bytes * 85 + (uint32_t)((c == '#' ? '\\' : c == '$' ? '\?' : c) - 40);
        }
        z->text += 5;
        z->groups--;
        z->count = 4;
    }
    uint32_t b = z->bytes & 255u;
    z->bytes >>= 8;
    z->count--;
    return b;
}

static void gni_unpack_refill(gni_unpack *z) {
    if (z->range >= 1u << 24) return;
    z->range <<= 8;
    z->code = z->code << 8 | gni_unpack_byte(z);
}

static uint32_t gni_unpack_bit(gni_unpack *z, uint32_t model) {
    uint16_t *p = &z->model[model];
    uint32_t bound = (z->range >> 11) * *p, bit = z->code >= bound;
    if (bit) {
        z->range -= bound;
        z->code -= bound;
        *p = (uint16_t)(*p - (*p >> 5));
    } else {
        z->range = bound;
        *p = (uint16_t)(*p + ((2048 - *p) >> 5));
    }
    gni_unpack_refill(z);
    return bit;
}

static uint32_t gni_unpack_tree(gni_unpack *z, uint32_t models, uint32_t bits) { // highest bit first
    uint32_t m = 1;
    for (uint32_t i = 0; i < bits; i++) m = m << 1 | gni_unpack_bit(z, models + m);
    return m - (1u << bits);
}

static uint32_t gni_unpack_tree_back(gni_unpack *z, uint32_t models, uint32_t bits) { // lowest bit first
    uint32_t m = 1, v = 0;
    for (uint32_t i = 0; i < bits; i++) {
        uint32_t bit = gni_unpack_bit(z, models + m);
        m = m << 1 | bit;
        v |= bit << i;
    }
    return v;
}

static void gni_unpack_literal(gni_unpack *z) {
    uint32_t before = z->at > 0 ? z->out[z->at - 1] : 0, m = 1;
    uint32_t models = GNI_UNPACK_LITERAL + 0x300u * (before >> (8 - GNI_UNPACK_LC));
    if (z->state >= 7) { // after a match: its next byte is a hint, as long as it is right
        uint32_t hint = z->out[z->at - z->rep[0] - 1], bit, guess;
        do {
            guess = hint >> 7 & 1u;
            hint <<= 1;
            bit = gni_unpack_bit(z, models + ((1 + guess) << 8) + m);
            m = m << 1 | bit;
        } while (guess == bit && m < 256);
    }
    while (m < 256) m = m << 1 | gni_unpack_bit(z, models + m);
    z->out[z->at++] = (uint8_t)m;
    z->state = z->state < 4 ? 0 : z->state < 10 ? z->state - 3 : z->state - 6;
}

static uint32_t gni_unpack_length(gni_unpack *z, uint32_t models) {
    if (!gni_unpack_bit(z, models)) return 2 + gni_unpack_tree(z, models + 2, 3);
    if (!gni_unpack_bit(z, models + 1)) return 10 + gni_unpack_tree(z, models + 10, 3);
    return 18 + gni_unpack_tree(z, models + 18, 8);
}

static uint32_t gni_unpack_distance(gni_unpack *z, uint32_t length) { // less 1
    uint32_t slot = gni_unpack_tree(z, GNI_UNPACK_SLOT + 64 * (length < 5 ? length - 2 : 3), 6);
    if (slot < 4) return slot;
    uint32_t bits = (slot >> 1) - 1, d = (2 | (slot & 1u)) << bits;
    if (slot < 14) return d + gni_unpack_tree_back(z, GNI_UNPACK_SPECIAL + d - slot, bits);
    for (uint32_t i = bits; i-- > 4;) { // without models
        z->range >>= 1;
        if (z->code >= z->range) {
            z->code -= z->range;
            d += 1u << i;
        }
        gni_unpack_refill(z);
    }
    return d + gni_unpack_tree_back(z, GNI_UNPACK_ALIGN, 4);
}

// One of the last four distances again, which becomes the last one. False: it is for a single byte.
static bool gni_unpack_again(gni_unpack *z) {
    uint32_t which = 0;
    if (!gni_unpack_bit(z, GNI_UNPACK_REP_0 + z->state)) {
        if (!gni_unpack_bit(z, GNI_UNPACK_REP_LONG + z->state)) return false;
    } else {
        which = 1;
        if (gni_unpack_bit(z, GNI_UNPACK_REP_1 + z->state)) which = 2 + gni_unpack_bit(z, GNI_UNPACK_REP_2 + z->state);
    }
    uint32_t d = z->rep[which];
    for (; which > 0; which--) z->rep[which] = z->rep[which - 1];
    z->rep[0] = d;
    return true;
}

static void gni_unpack_match(gni_unpack *z) {
    uint32_t length = 1, late = z->state < 7 ? 0 : 3; // late: after another match
    if (!gni_unpack_bit(z, GNI_UNPACK_REP + z->state)) {
        memmove(z->rep + 1, z->rep, 3 * sizeof *z->rep);
        length = gni_unpack_length(z, GNI_UNPACK_LENGTH);
        z->rep[0] = gni_unpack_distance(z, length);
        z->state = 7 + late;
    } else if (gni_unpack_again(z)) {
        length = gni_unpack_length(z, GNI_UNPACK_REP_LENGTH);
        z->state = 8 + late;
    } else {
        z->state = late ? 11 : 9;
    }
    if (z->rep[0] >= z->at || length > z->size - z->at) {
        z->damaged = true;
        return;
    }
    for (; length > 0; length--, z->at++) z->out[z->at] = z->out[z->at - z->rep[0] - 1]; // it may overlap
}

// Begins with a block that is `groups` times five characters, in lines of a multiple of five with a 0 after each.
// `out` takes its `size` bytes.
static void gni_unpack_begin(gni_unpack *z, const char *text, uint32_t groups, uint8_t *out, uint32_t size) {
    memset(z, 0, sizeof *z);
    z->text = text;
    z->groups = groups;
    z->out = out;
    z->size = size;
    z->range = 0xffffffffu;
    for (int i = 0; i < 5; i++) z->code = z->code << 8 | gni_unpack_byte(z);
    for (int i = 0; i < GNI_UNPACK_MODELS; i++) z->model[i] = 1024;
}

// Decodes on until there are `end` bytes. False: the text is damaged.
static bool gni_unpack_to(gni_unpack *z, uint32_t end) {
    if (end > z->size) return false;
    while (z->at < end && !z->damaged) {
        if (gni_unpack_bit(z, GNI_UNPACK_MATCH + z->state)) gni_unpack_match(z);
        else gni_unpack_literal(z);
    }
    return !z->damaged;
}

// ---- tokens

enum { GNI_TOKENS = 512 }; // of a block, at most
enum { GNI_TOKEN_NUMBER, GNI_TOKEN_ID, GNI_TOKEN_TYPE, GNI_TOKEN_NEW_ID, GNI_TOKEN_NEW_TYPE };

typedef struct gni_tokens {
    const uint8_t *at, *end;
    bool damaged;
    uint32_t last;                    // the id defined last
    uint32_t *recent[2], count[2];    // ids and types, those used last at the end
    uint32_t room;                    // for either
    uint32_t head[GNI_TOKENS];        // the first word
    const uint8_t *kinds[GNI_TOKENS]; // of the operands
} gni_tokens;

static uint32_t gni_tokens_number(gni_tokens *t) {
    uint32_t v = 0;
    for (uint32_t shift = 0; shift < 32 && t->at < t->end; shift += 7) {
        uint32_t b = *t->at++;
        v |= (b & 127u) << shift;
        if (b < 128) return v;
    }
    t->damaged = true;
    return 0;
}

static uint32_t gni_tokens_difference(gni_tokens *t) { // 0, -1, 1, -2, 2 are 0 to 4
    uint32_t v = gni_tokens_number(t);
    return v >> 1 ^ (0u - (v & 1u));
}

static uint32_t gni_tokens_operand(gni_tokens *t, uint32_t kind) {
    if (kind == GNI_TOKEN_NUMBER) return gni_tokens_number(t);
    uint32_t which = kind == GNI_TOKEN_TYPE || kind == GNI_TOKEN_NEW_TYPE;
    uint32_t *end = t->recent[which] + t->count[which], v;
    if (kind >= GNI_TOKEN_NEW_ID) {
        t->last += 1 + gni_tokens_difference(t);
        if (t->count[which] == t->room) {
            t->damaged = true;
            return 0;
        }
        t->count[which]++;
        return *end = t->last;
    }
    uint32_t rank = gni_tokens_number(t);
    if (rank == 0) return t->last + gni_tokens_difference(t); // not defined yet
    if (rank > t->count[which]) {
        t->damaged = true;
        return 0;
    }
    v = *(end - rank);
    memmove(end - rank, end - rank + 1, (rank - 1) * sizeof *end);
    return end[-1] = v;
}

static bool gni_tokens_table(gni_tokens *t) {
    uint32_t n = gni_tokens_number(t);
    if (n > GNI_TOKENS) return false;
    memset(t->head, 0, sizeof t->head);
    for (uint32_t i = 0; i < n && !t->damaged; i++) {
        uint32_t op = gni_tokens_number(t), count = gni_tokens_number(t);
        if (count == 0 || count > 0xffffu || count - 1 > (size_t)(t->end - t->at)) return false;
        t->head[i] = count << 16 | (op & 0xffffu);
        t->kinds[i] = t->at;
        t->at += count - 1;
    }
    return !t->damaged;
}

// The module whose tokens are the bytes `start` to `end` of a decoded block, n words. `spare` has room for n more.
GNI_MAYBE_UNUSED static bool gni_unpack_words(const uint8_t *block, uint32_t start, uint32_t end, uint32_t *w, uint32_t n,
                             uint32_t *spare) {
    gni_tokens t;
    uint32_t at = 0;
    memset(&t, 0, offsetof(gni_tokens, head));
    t.at = block;
    t.end = block + start;
    if (start > end || !gni_tokens_table(&t)) return false;
    t.at = block + start;
    t.end = block + end;
    t.room = n / 2; // what defines an id is at least two words
    t.recent[0] = spare;
    t.recent[1] = spare + t.room;
    while (at < 5 && at < n) w[at++] = gni_tokens_number(&t);
    while (at < n && !t.damaged) {
        uint32_t token = gni_tokens_number(&t), head = token < GNI_TOKENS ? t.head[token] : 0, count = head >> 16;
        if (count == 0 || count > n - at) return false;
        w[at++] = head;
        for (uint32_t i = 0; i + 1 < count; i++) w[at++] = gni_tokens_operand(&t, t.kinds[token][i]);
    }
    return at == n && t.at == t.end && !t.damaged;
}

#endif // GNI_GPU
