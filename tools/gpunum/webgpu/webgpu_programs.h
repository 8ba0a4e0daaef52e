// >>webgpu_programs
// Elementwise programs and reductions as WGSL, written at run time from the words that Vulkan takes as specialisation
// constants (GNI_P_PROGRAM_COUNTS and so on). Functions of the ops come from the library in shaders_wgsl.h, only those that a
// program needs.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../vulkan/vulkan_pipelines.h"
#include "../webgpu/webgpu_device.h"
#endif

#if GNI_WEBGPU

#define GNI_WGSL_WANTED
#ifndef GPUNUM_SHADERS_WGSL
#define GPUNUM_SHADERS_WGSL "shaders_wgsl.h"
#endif
#include GPUNUM_SHADERS_WGSL
#undef GNI_WGSL_WANTED

typedef struct gni_wgsl_block {
    const char *text;
    uint32_t characters, bytes;
} gni_wgsl_block;

typedef enum gni_wgsl_block_id {
#define GNI_X(name, characters, bytes) GNI_WGSL_BLOCK_##name,
    GNI_WGSL_BLOCKS(GNI_X)
#undef GNI_X
    GNI_WGSL_BLOCK_COUNT
} gni_wgsl_block_id;

static const gni_wgsl_block gni_wgsl_blocks[GNI_WGSL_BLOCK_COUNT] = {
#define GNI_X(name, characters, bytes) {gni_wgsl_text_##name[0], characters, bytes},
    GNI_WGSL_BLOCKS(GNI_X)
#undef GNI_X
};

typedef struct gni_wgsl_kernel {
    int module, block;
    uint32_t start, bytes, specs, buffers, written;
} gni_wgsl_kernel;

static const gni_wgsl_kernel gni_wgsl_kernels[] = {
#define GNI_X(name, block, start, bytes, specs, buffers, written) \
    {GNI_MODULE_##name, GNI_WGSL_BLOCK_##block, start, bytes, specs, buffers, written},
    GNI_WGSL_KERNELS(GNI_X)
#undef GNI_X
    {-1, 0, 0, 0, 0, 0, 0}
};

// A block, decoded up to byte `end`. What is decoded stays.
static const char *gni_wg_text_get(gni_wg *w, int block, uint32_t end) {
    const gni_wgsl_block *b = &gni_wgsl_blocks[block];
    gni_unpack *u = w->unpacked[block];
    if (!u) {
        u = (gni_unpack *)gni_alloc(w->gpu.g, sizeof *u + b->bytes);
        if (!u) {
            gni_fail_memory(w->gpu.g, "kernels", sizeof *u + b->bytes);
            return NULL;
        }
        gni_unpack_begin(u, b->text, b->characters / 5, (uint8_t *)(u + 1), b->bytes);
        w->unpacked[block] = u;
    }
    if (gni_unpack_to(u, end)) return (const char *)u->out;
    gni_fail(w->gpu.g, GN_ERROR_UNSUPPORTED, "shaders_wgsl.h is damaged");
    return NULL;
}

// ---- text

// How a loop begins whose rounds are not known before: with a break where it ends. WGSL's compilers count the rounds of
// others in two words, so that none of them runs for ever.
static const char gni_wg_rounds[] = "for (var z = 0u; z < 4294967295u; z++) {\n";

typedef struct gni_wg_text {
    gni_wg *w;
    char *s;
    size_t n, room;
    bool failed;
} gni_wg_text;

static void gni_wg_put(gni_wg_text *t, const char *s, size_t n) {
    if (t->failed) return;
    if (t->n + n + 1 > t->room) {
        size_t room = (t->n + n + 1) * 2 + 4096;
        char *more = (char *)gni_alloc(t->w->gpu.g, room);
        if (!more) {
            t->failed = true;
            return;
        }
        if (t->s) memcpy(more, t->s, t->n);
        gni_free(t->w->gpu.g, t->s);
        t->s = more;
        t->room = room;
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

static void gni_wg_say(gni_wg_text *t, const char *format, ...) GNI_PRINTF(2, 3);
static void gni_wg_say(gni_wg_text *t, const char *format, ...) {
    char line[640];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof line) t->failed = true;
    else gni_wg_put(t, line, (size_t)n);
}

// ---- the library: chunks that begin with a line '@name needs needs ...'

static bool gni_wg_library(gni_wg *w) {
    if (w->functions) return true;
    uint32_t bytes = gni_wgsl_blocks[GNI_WGSL_BLOCK_library].bytes;
    const char *text = gni_wg_text_get(w, GNI_WGSL_BLOCK_library, bytes), *end = text ? text + bytes : NULL;
    if (!text) return false;
    int count = 0;
    for (const char *p = text; p < end; p++) count += *p == '@' && (p == text || p[-1] == '\n');
    gni_wg_function *f = (gni_wg_function *)gni_calloc(w->gpu.g, (size_t)(count + 1) * sizeof *f);
    if (!f) return gni_fail_memory(w->gpu.g, "the library of kernels", (uint64_t)count * sizeof *f);
    w->functions = f;
    w->function_count = count;
    for (const char *p = text; p < end; f++) {
        const char *line = p + 1, *stop = line, *body;
        while (*stop != '\n' && *stop != ' ') stop++;
        f->name = line;
        f->name_length = (int)(stop - line);
        body = stop;
        while (*body != '\n') body++;
        f->needs = stop;
        f->needs_length = (int)(body - stop);
        f->body = ++body;
        for (p = body; p < end && !(*p == '@' && p[-1] == '\n');) p++;
        f->body_length = (int)(p - body);
    }
    return true;
}

static gni_wg_function *gni_wg_find(gni_wg *w, const char *name, int length) {
    for (int i = 0; i < w->function_count; i++)
        if (w->functions[i].name_length == length && memcmp(w->functions[i].name, name, (size_t)length) == 0)
            return &w->functions[i];
    return NULL;
}
// Of an op, by its code: its function (kind 'o'), or a form without what it rarely needs ('f'), where it has one.
static gni_wg_function *gni_wg_find_op(gni_wg *w, char kind, uint32_t code) {
    char name[16];
    return gni_wg_find(w, name, snprintf(name, sizeof name, "%c%u", kind, code));
}

// Puts a function of the library and what it needs into the text, once.
static void gni_wg_want(gni_wg_text *t, const char *name, int length) {
    gni_wg *w = t->w;
    gni_wg_function *f = gni_wg_find(w, name, length);
    if (!f) {
        gni_log(w->gpu.g, GN_LOG_WARNING, "the library of kernels has no %.*s", length, name);
        t->failed = true;
        return;
    }
    if (f->mark == w->mark) return;
    f->mark = w->mark;
    for (int a = 0; a < f->needs_length;) {
        int b = ++a; // behind the space
        while (b < f->needs_length && f->needs[b] != ' ') b++;
        gni_wg_want(t, f->needs + a, b - a);
        a = b;
    }
    gni_wg_put(t, f->body, (size_t)f->body_length);
}
static void gni_wg_want_name(gni_wg_text *t, const char *name) { gni_wg_want(t, name, (int)strlen(name)); }

// ---- operands

// A program as its words tell.
typedef struct gni_wg_words_of {
    const uint32_t *word;
    bool reduces, raw64; // copies of 8-byte elements
    bool pairs;          // registers have a high word, h0, h1, ...
    int n_in, n_out, n_insn, vectors, scalars;
    uint32_t alias; // 4 bits for each input: 1 + the output whose buffer it is read from
    uint32_t wide, atomic; // bit k: buffer argument k is vectors of 4 words, is atomic
    uint32_t buffers, written;
    // Of reductions: the code, log2 of the lanes of a team, the dtype of the result.
    bool columns, partial, joins;
    uint32_t code, log_lanes, result;
} gni_wg_program_words;

static uint32_t gni_wg_packing(uint32_t t) {
    switch (t) {
    case GNI_T_F16:
    case GNI_T_BF16:
    case GNI_T_I16:
    case GNI_T_U16: return 1;
    case GNI_T_U8:
    case GNI_T_I8:
    case GNI_T_BOOL: return 2;
    default: return 0;
    }
}

static bool gni_wg_is_long(uint32_t t) { return t == GNI_T_I64 || t == GNI_T_U64; }

static uint32_t gni_wg_in_dtype(const gni_wg_program_words *p, int k) {
    return p->word[GNI_P_PROGRAM_IN_DTYPES] >> (4 * k) & 15u;
}
static uint32_t gni_wg_in_kind(const gni_wg_program_words *p, int k) {
    return p->word[GNI_P_PROGRAM_IN_KINDS] >> (4 * k) & 15u;
}
static uint32_t gni_wg_out_dtype(const gni_wg_program_words *p, int k) {
    return p->word[GNI_P_PROGRAM_OUTPUTS] >> (4 * k) & 15u;
}
static uint32_t gni_wg_out_kind(const gni_wg_program_words *p, int k) {
    return p->word[GNI_P_PROGRAM_OUTPUTS] >> (16 + 4 * k) & 15u;
}
static bool gni_wg_grouped(uint32_t kind) { return kind == GNI_K_VEC || kind == GNI_K_ROWVEC; }
// The buffer argument of input k.
static int gni_wg_in_place(const gni_wg_program_words *p, int k) {
    uint32_t alias = k < 6 ? p->alias >> (4 * k) & 15u : 0;
    return alias ? GNI_MAX_INPUTS + (int)alias - 1 : k;
}

static void gni_wg_choose_types(gni_wg_program_words *p) {
    for (int k = 0; k < p->n_in; k++) {
        int place = gni_wg_in_place(p, k);
        p->buffers |= 1u << place;
        const uint32_t t = gni_wg_in_dtype(p, k);
        const bool pair = p->pairs && gni_wg_is_long(t);
        const bool grouped = gni_wg_grouped(gni_wg_in_kind(p, k)) || gni_wg_in_kind(p, k) == GNI_K_COLVEC;
        if (grouped && gni_wg_packing(t) == 0 && !pair) p->wide |= 1u << place;
    }
    if (p->reduces) { // behind the output are partial results
        uint32_t out = 1u << GNI_MAX_INPUTS, partial = out << 1;
        if (p->partial || p->joins) p->buffers |= partial;
        p->wide |= partial;
        if (p->partial) p->written |= partial;
        if (p->partial) return;
        p->buffers |= out;
        p->written |= out;
        if (gni_wg_packing(p->result) > 0) p->atomic |= out;
        return;
    }
    for (int k = 0; k < p->n_out; k++) {
        uint32_t bit = 1u << (GNI_MAX_INPUTS + k);
        p->buffers |= bit;
        p->written |= bit;
        if (gni_wg_packing(gni_wg_out_dtype(p, k)) > 0) p->atomic |= bit;
        // Vectors are only written whole.
        if (gni_wg_grouped(gni_wg_out_kind(p, k)) && !(p->pairs && gni_wg_is_long(gni_wg_out_dtype(p, k)))) p->wide |= bit;
        else p->wide &= ~bit;
    }
    p->wide &= ~p->atomic;
}

// Words and vectors of buffer argument k: l to read, s to store, v and w the same with 4 words.
static void gni_wg_accessors(gni_wg_text *t, const gni_wg_program_words *p, int k) {
    bool wide = p->wide >> k & 1u, atomic = p->atomic >> k & 1u, writes = p->written >> k & 1u;
    gni_wg_say(t, "@group(0) @binding(%d) var<storage, %s> b%d : array<%s>;\n", k + 1, writes ? "read_write" : "read", k,
               wide ? "vec4<u32>" : atomic ? "atomic<u32>" : "u32");
    if (wide)
        gni_wg_say(t,
                   "fn l%d(j : u32) -> u32 { return b%d[j >> 2u][j & 3u]; }\n"
                   "fn v%d(j : u32) -> vec4<u32> { return b%d[j >> 2u]; }\n",
                   k, k, k, k);
    else if (atomic)
        gni_wg_say(t, "fn l%d(j : u32) -> u32 { return atomicLoad(&b%d[j]); }\n", k, k);
    else
        gni_wg_say(t, "fn l%d(j : u32) -> u32 { return b%d[j]; }\n", k, k);
    if (!wide)
        gni_wg_say(t, "fn v%d(j : u32) -> vec4<u32> { return vec4<u32>(l%d(j), l%d(j + 1u), l%d(j + 2u), l%d(j + 3u)); }\n",
                   k, k, k, k, k);
    if (!writes) return;
    if (wide)
        gni_wg_say(t, "fn w%d(j : u32, x : vec4<u32>) { b%d[j >> 2u] = x; }\n", k, k);
    else if (atomic)
        gni_wg_say(t, "fn s%d(j : u32, x : u32) { atomicStore(&b%d[j], x); }\n", k, k);
    else
        gni_wg_say(t, "fn s%d(j : u32, x : u32) { b%d[j] = x; }\n", k, k);
}

// Element j of input k, as bits; g the group at j.
static void gni_wg_input_functions(gni_wg_text *t, const gni_wg_program_words *p, int k) {
    int b = gni_wg_in_place(p, k);
    uint32_t s = gni_wg_packing(gni_wg_in_dtype(p, k));
    if (p->raw64) return;
    if (s == 0)
        gni_wg_say(t, "fn e%d(j : u32) -> u32 { return l%d(j); }\nfn g%d(j : u32) -> vec4<u32> { return v%d(j); }\n", k, b,
                   k, b);
    else if (s == 1)
        gni_wg_say(t,
                   "fn e%d(j : u32) -> u32 { return (l%d(j >> 1u) >> ((j & 1u) * 16u)) & 0xffffu; }\n"
                   "fn g%d(j : u32) -> vec4<u32> { let x = l%d(j >> 1u); let y = l%d((j >> 1u) + 1u);\n"
                   "return vec4<u32>(x & 0xffffu, x >> 16u, y & 0xffffu, y >> 16u); }\n",
                   k, b, k, b, b);
    else
        gni_wg_say(t,
                   "fn e%d(j : u32) -> u32 { return (l%d(j >> 2u) >> ((j & 3u) * 8u)) & 0xffu; }\n"
                   "fn g%d(j : u32) -> vec4<u32> { return (vec4<u32>(l%d(j >> 2u)) >> vec4<u32>(0u, 8u, 16u, 24u)) & "
                   "vec4<u32>(0xffu); }\n",
                   k, b, k, b);
}

// The places j of an operand's group at vector index i of n: P(base) is where it begins.
static void gni_wg_places(gni_wg_text *t, const gni_wg_program_words *p, int operand, uint32_t kind, bool output) {
    uint32_t base = GNI_P_PROGRAM_OP + 9u * (uint32_t)operand;
    gni_wg_say(t, "let at = P(%uu)", base);
    for (int d = 0; d < p->scalars; d++) gni_wg_say(t, " + sc%d * P(%uu)", d, base + 1u + (uint32_t)(p->vectors + d));
    gni_wg_say(t, ";\n");
    if (kind == GNI_K_SCALAR) gni_wg_say(t, "let j = vec4<u32>(at);\n");
    else if (kind == GNI_K_VEC || (kind == GNI_K_FLAT && output))
        gni_wg_say(t, "let j = vec4<u32>(at + i) + vec4<u32>(0u, 1u, 2u, 3u);\n");
    else if (kind == GNI_K_FLAT)
        gni_wg_say(t, "let j = vec4<u32>(at) + min(vec4<u32>(i) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(n - 1u));\n");
    else {
        gni_wg_say(t, "%s = vec4<u32>(at)", kind == GNI_K_ROWSTEP ? "let j0" : "let j");
        for (int d = 0; d < p->vectors; d++) gni_wg_say(t, " + vc%d * P(%uu)", d, base + 1u + (uint32_t)d);
        gni_wg_say(t, ";\n");
        if (kind == GNI_K_ROWSTEP)
            gni_wg_say(t, "let j = vec4<u32>(j0.x) + vec4<u32>(0u, 1u, 2u, 3u) * P(%uu);\n", base + (uint32_t)p->vectors);
    }
}

// Statements that give register k the input's group at i.
static void gni_wg_load(gni_wg_text *t, const gni_wg_program_words *p, int k) {
    uint32_t kind = gni_wg_in_kind(p, k), dtype = gni_wg_in_dtype(p, k);
    int b = gni_wg_in_place(p, k);
    bool one = kind == GNI_K_SCALAR || kind == GNI_K_ROWREP;
    gni_wg_say(t, "{\n");
    gni_wg_places(t, p, k, kind, false);
    if (p->raw64) {
        const char *second = one ? "x" : "y";
        if (gni_wg_grouped(kind)) gni_wg_say(t, "r%d = v%d(2u * j.x);\n", k, b);
        else
            gni_wg_say(t, "r%d = vec4<u32>(l%d(2u * j.x), l%d(2u * j.x + 1u), l%d(2u * j.%s), l%d(2u * j.%s + 1u));\n", k, b,
                       b, b, second, b, second);
        gni_wg_say(t, "}\n");
        return;
    }
    if (p->pairs && gni_wg_is_long(dtype)) {
        for (int i = 0; i < 2; i++)
            gni_wg_say(t, "{ let o = 2u * j + vec4<u32>(%du); %c%d = vec4<u32>(l%d(o.x), l%d(o.y), l%d(o.z), l%d(o.w)); }\n",
                       i, i ? 'h' : 'r', k, b, b, b, b);
        gni_wg_say(t, "}\n");
        return;
    }
    if (one) gni_wg_say(t, "var v = vec4<u32>(e%d(j.x));\n", k);
    else if (gni_wg_grouped(kind)) gni_wg_say(t, "var v = g%d(j.x);\n", k);
    else gni_wg_say(t, "var v = vec4<u32>(e%d(j.x), e%d(j.y), e%d(j.z), e%d(j.w));\n", k, k, k, k);
    if (dtype == GNI_T_F16) gni_wg_say(t, "v = load_f16(&v);\n");
    if (dtype == GNI_T_BF16) gni_wg_say(t, "v = v << vec4<u32>(16u);\n");
    if (dtype == GNI_T_I8 || dtype == GNI_T_I16) {
        int shift = dtype == GNI_T_I8 ? 24 : 16;
        gni_wg_say(t, "v = bitcast<vec4<u32>>(bitcast<vec4<i32>>(v << vec4<u32>(%du)) >> vec4<u32>(%du));\n", shift, shift);
    }
    gni_wg_say(t, "r%d = v;\n", k);
    if (p->pairs && (dtype == GNI_T_I32 || dtype == GNI_T_I8 || dtype == GNI_T_I16)) gni_wg_say(t, "h%d = sg(v);\n", k);
    gni_wg_say(t, "}\n");
}

// To memory's form, in v.
static void gni_wg_narrow(gni_wg_text *t, uint32_t dtype) {
    if (dtype == GNI_T_F16) gni_wg_say(t, "v = store_f16(&v);\n");
    if (dtype == GNI_T_BF16) gni_wg_say(t, "v = store_bf16(&v);\n");
    if (dtype == GNI_T_BOOL) gni_wg_say(t, "v = min(v, vec4<u32>(1u));\n");
    if (dtype == GNI_T_U8 || dtype == GNI_T_I8) gni_wg_say(t, "v = v & vec4<u32>(0xffu);\n");
    if (dtype == GNI_T_U16 || dtype == GNI_T_I16) gni_wg_say(t, "v = v & vec4<u32>(0xffffu);\n");
}

// Stores the first `count` elements of v to places j, one by one. Their neighbours in a word may be another lane's.
static void gni_wg_store_each(gni_wg_text *t, uint32_t dtype, int b) {
    uint32_t s = gni_wg_packing(dtype), size = s == 1 ? 16 : 8;
    gni_wg_say(t, "for (var e = 0u; e < 4u; e++) {\nif (e >= count) { break; }\n");
    if (s == 0) gni_wg_say(t, "s%d(j[e], v[e]);\n", b);
    else
        gni_wg_say(t,
                   "let shift = (j[e] & %uu) * %uu;\natomicAnd(&b%d[j[e] >> %uu], ~(%uu << shift));\n"
                   "atomicOr(&b%d[j[e] >> %uu], v[e] << shift);\n",
                   s == 1 ? 1u : 3u, size, b, s, s == 1 ? 0xffffu : 0xffu, b, s);
    gni_wg_say(t, "}\n");
}

// Stores output k of a group; with `rest` what is left to do of the last group, where it has fewer elements.
static void gni_wg_store(gni_wg_text *t, const gni_wg_program_words *p, int k, bool rest) {
    uint32_t kind = gni_wg_out_kind(p, k), dtype = gni_wg_out_dtype(p, k), s = gni_wg_packing(dtype);
    const bool pair = p->pairs && gni_wg_is_long(dtype);
    const bool whole = kind == GNI_K_VEC && !pair && (p->raw64 || s == 0); // what follows the last elements stays
    int b = GNI_MAX_INPUTS + k;
    if (rest && !whole) return;
    gni_wg_say(t, "{\nvar v = r%u;\n", p->word[GNI_P_PROGRAM_OUT_REGS] >> (8 * k) & 255u);
    gni_wg_places(t, p, b, kind, true);
    if (whole) {
        if (rest && p->raw64) gni_wg_say(t, "let old = v%d(2u * j.x); v.z = old.z; v.w = old.w;\n", b);
        else if (rest) gni_wg_say(t, "v = select(v%d(j.x), v, vec4<bool>(true, count > 1u, count > 2u, false));\n", b);
        else gni_wg_say(t, "if (count == %uu) ", p->raw64 ? 2u : 4u);
        gni_wg_say(t, "{ w%d(%sj.x, v); }\n}\n", b, p->raw64 ? "2u * " : "");
        return;
    }
    if (p->raw64) {
        if (gni_wg_grouped(kind)) gni_wg_say(t, "w%d(2u * j.x, v);\n", b);
        else
            gni_wg_say(t,
                       "s%d(2u * j.x, v.x); s%d(2u * j.x + 1u, v.y);\nif (count > 1u) { s%d(2u * j.y, v.z); s%d(2u * j.y + "
                       "1u, v.w); }\n",
                       b, b, b, b);
        gni_wg_say(t, "}\n");
        return;
    }
    if (pair) {
        gni_wg_say(t,
                   "for (var e = 0u; e < 4u; e++) { if (e >= count) { break; } s%d(2u * j[e], v[e]); s%d(2u * j[e] + 1u, "
                   "h%u[e]); }\n}\n",
                   b, b, p->word[GNI_P_PROGRAM_OUT_REGS] >> (8 * k) & 255u);
        return;
    }
    gni_wg_narrow(t, dtype);
    if (gni_wg_grouped(kind) && s == 0) {
        gni_wg_say(t, "w%d(j.x, v);\n", b);
    } else {
        if (gni_wg_grouped(kind)) {
            gni_wg_say(t, "if (count == 4u) {\n");
            if (s == 1)
                gni_wg_say(t, "s%d(j.x >> 1u, v.x | (v.y << 16u)); s%d((j.x >> 1u) + 1u, v.z | (v.w << 16u));\n", b, b);
            else gni_wg_say(t, "s%d(j.x >> 2u, v.x | (v.y << 8u) | (v.z << 16u) | (v.w << 24u));\n", b);
            gni_wg_say(t, "} else {\n");
        }
        gni_wg_store_each(t, dtype, b);
        if (gni_wg_grouped(kind)) gni_wg_say(t, "}\n");
    }
    gni_wg_say(t, "}\n");
}

// ---- int64 and uint64 as two words

// V(x) wherever a vector is meant. What has two words for a result leaves the high one in gh.
static const char gni_wg_words_text[] =
    "alias V = vec4<u32>; alias B = vec4<bool>;\nvar<private> gh : V; var<private> dr : V; var<private> dt : V;\n"
    "fn I(k : B) -> V { return select(V(), V(1u), k); }\n"
    "fn sg(x : V) -> V { return bitcast<V>(bitcast<vec4<i32>>(x) >> V(31u)); }\n"
    "fn lt(a : V, h : V, b : V, g : V) -> B { return (h < g) | ((h == g) & (a < b)); }\n"
    "fn neg(a : V, h : V) -> V { gh = ~h + I(a == V()); return ~a + V(1u); }\n"
    "fn mul(a : V, h : V, b : V, g : V) -> V {\nlet f = V(65535u); let s = V(16u);\n"
    "let x = a & f; let y = a >> s; let z = b & f; let w = b >> s;\n"
    "let m = y * z + ((x * z) >> s); let n = x * w + (m & f);\n"
    "gh = y * w + (m >> s) + (n >> s) + a * g + h * b; return a * b;\n}\n"
    "fn shl(a : V, h : V, n : V) -> V {\nlet m = n & V(31u); let w = n > V(31u); let x = a << m;\n"
    "gh = select((h << m) | ((a >> V(1u)) >> (V(31u) - m)), x, w); return select(x, V(), w);\n}\n"
    "fn shr(a : V, h : V, n : V, s : V) -> V {\nlet m = n & V(31u); let w = n > V(31u); let k = V(31u) - m;\n"
    "let x = (h >> m) | ((s << V(1u)) << k); gh = select(x, s, w);\n"
    "return select((a >> m) | ((h << V(1u)) << k), x, w);\n}\n"
    // Quotients without a sign, the rest in dr and dt.
    "fn dm(a : V, h : V, b : V, g : V) -> V {\nvar q = a; var k = h; var r = V(); var t = V();\n"
    "if (all((h | g) == V())) { gh = t; dt = t; dr = a % b; return a / b; }\n"
    "for (var i = 0u; i < 64u; i++) {\nlet c = t >> V(31u); t = (t << V(1u)) | (r >> V(31u));\n"
    "r = (r << V(1u)) | (k >> V(31u)); k = (k << V(1u)) | (q >> V(31u)); q = q << V(1u);\n"
    "let f = (c != V()) | !lt(r, t, b, g); let s = select(V(), b, f);\n"
    "t = t - select(V(), g, f) - I(r < s); r = r - s; q = q | I(f);\n}\ndr = r; dt = t; gh = k; return q;\n}\n"
    // Rounded down, or with m what is left then; s is the sign bit, 0 of uint64.
    "fn fd(a : V, h : V, b : V, g : V, s : V, m : bool) -> V {\n"
    "let i = (h & s) != V(); let j = (g & s) != V(); let n = neg(a, h); let x = select(a, n, i); let y = select(h, gh, i);\n"
    "let o = neg(b, g); let z = select(b, o, j); let w = select(g, gh, j);\nvar q = dm(x, y, z, w); var k = gh;\n"
    "let d = i != j; let e = d & ((dr | dt) != V());\n"
    "if (m) { q = select(dr, z - dr, e); k = select(dt, w - dt - I(z < dr), e); }\n"
    "else { q = q + I(e); k = k + I(e & (q == V())); }\n"
    "let f = select(d, j, m); let v = neg(q, k); let u = (b | g) == V();\n"
    "gh = select(select(k, gh, f), V(), u); return select(select(q, v, f), V(), u);\n}\n"
    "fn pw(p : V, h : V, b : V, g : V, s : V) -> V {\nvar a = p; var t = h; var e = b; var f = g; var r = V(1u);\n"
    "var k = V();\nloop {\nif (all((e | f) == V())) { break; }\nlet o = (e & V(1u)) != V(); let x = mul(r, k, a, t);\n"
    "k = select(k, gh, o); r = select(r, x, o); let y = mul(a, t, a, t); a = y; t = gh;\n"
    "e = (e >> V(1u)) | (f << V(31u)); f = f >> V(1u);\n}\n"
    "let z = ((g & s) != V()) & !(((p == V(1u)) & (h == V())) | ((p & h) == V(4294967295u)));\n"
    "gh = select(k, V(), z); return select(r, V(), z);\n}\n"
    // To float32, the nearest one, or with o that of the two around it whose last bit is odd; and from there.
    "fn tf(a : V, h : V, s : V, o : bool) -> V {\nlet n = (h & s) != V(); let m = neg(a, h); let x = select(a, m, n);\n"
    "let y = select(h, gh, n); let c = select(countLeadingZeros(y), V(32u) + countLeadingZeros(x), y == V());\n"
    "let l = shl(x, y, c & V(63u)); let t = gh >> V(8u); let e = (gh & V(127u)) | l; let f = (gh >> V(7u)) & V(1u);\n"
    "let r = select(t + (f & (I(e != V()) | (t & V(1u)))), t | I((e | f) != V()), o);\n"
    "return select((((V(189u) - c) << V(23u)) + r) | (I(n) << V(31u)), V(), (a | h) == V());\n}\n"
    "fn ff(f : V, s : V) -> V {\nlet e = (f >> V(23u)) & V(255u); let m = (f & V(8388607u)) | V(8388608u);\n"
    "let up = e >= V(150u); let l = shl(m, V(), (e - V(150u)) & V(63u));\n"
    "let x = select(m >> min(V(150u) - e, V(31u)), l, up); let y = select(V(), gh, up);\n"
    "let v = neg(x, y); let b = e >= V(191u) - (s >> V(31u)); let z = b | (s == V()); let n = (f >> V(31u)) != V();\n"
    "let q = (f & V(2147483647u)) > V(2139095040u);\n"
    "gh = select(select(select(y, ~s, b), select(gh, s, z), n), V(), q);\n"
    "return select(select(select(x, V(4294967295u), b), select(v, V(), z), n), V(), q);\n}\n";

// What an instruction makes of operands (a, p), (b, q) and (c, o), low and high words, as (R, H), which is 0 before; S is the
// sign bit, 0 of uint64. NULL: it is one of floats.
static const char *gni_wg_words_form(uint32_t code) {
    const uint32_t op = code / 3u;
    if (op == GNI_OP_F_TO_I) return "R = ff(a, V(2147483648u)); H = gh;";
    if (op == GNI_OP_F_TO_U) return "R = ff(a, V()); H = gh;";
    if (op == GNI_OP_ROUND_F32) return "R = a;";
    if (code % 3u == GNI_F) return NULL;
    switch (op) {
    case GNI_OP_NEG: return "R = neg(a, p); H = gh;";
    case GNI_OP_ABS: return "let k = (p & S) != V(); let n = neg(a, p); R = select(a, n, k); H = select(p, gh, k);";
    case GNI_OP_SIGN: return "H = select(V(), ~V(), (p & S) != V()); R = I((a | p) != V()) | H;";
    case GNI_OP_SQUARE: return "R = mul(a, p, a, p); H = gh;";
    case GNI_OP_RELU: return "let k = (p & S) != V(); R = select(a, V(), k); H = select(p, V(), k);";
    case GNI_OP_ISNAN:
    case GNI_OP_ISINF: return "";
    case GNI_OP_ISFINITE: return "R = V(1u);";
    case GNI_OP_LOGICAL_NOT: return "R = I((a | p) == V());";
    case GNI_OP_ADD: return "R = a + b; H = p + q + I(R < a);";
    case GNI_OP_SUB: return "R = a - b; H = p - q - I(a < b);";
    case GNI_OP_MUL: return "R = mul(a, p, b, q); H = gh;";
    case GNI_OP_FLOOR_DIV: return "R = fd(a, p, b, q, S, false); H = gh;";
    case GNI_OP_MOD: return "R = fd(a, p, b, q, S, true); H = gh;";
    case GNI_OP_POW: return "R = pw(a, p, b, q, S); H = gh;";
    case GNI_OP_MIN: return "let k = lt(a, p ^ S, b, q ^ S); R = select(b, a, k); H = select(q, p, k);";
    case GNI_OP_MAX: return "let k = lt(a, p ^ S, b, q ^ S); R = select(a, b, k); H = select(p, q, k);";
    case GNI_OP_EQ: return "R = I((a == b) & (p == q));";
    case GNI_OP_NE: return "R = I((a != b) | (p != q));";
    case GNI_OP_LT: return "R = I(lt(a, p ^ S, b, q ^ S));";
    case GNI_OP_LE: return "R = I(!lt(b, q ^ S, a, p ^ S));";
    case GNI_OP_GT: return "R = I(lt(b, q ^ S, a, p ^ S));";
    case GNI_OP_GE: return "R = I(!lt(a, p ^ S, b, q ^ S));";
    case GNI_OP_LOGICAL_AND: return "R = I(((a | p) != V()) & ((b | q) != V()));";
    case GNI_OP_LOGICAL_OR: return "R = I((a | p | b | q) != V());";
    case GNI_OP_LOGICAL_XOR: return "R = I(((a | p) != V()) != ((b | q) != V()));";
    case GNI_OP_AND: return "R = a & b; H = p & q;";
    case GNI_OP_OR: return "R = a | b; H = p | q;";
    case GNI_OP_XOR: return "R = a ^ b; H = p ^ q;";
    case GNI_OP_SHL:
        return "let k = (q == V()) & (b < V(64u)); let x = shl(a, p, b); R = select(V(), x, k); H = select(V(), gh, k);";
    case GNI_OP_SHR:
        return "let k = (q == V()) & (b < V(64u)); let n = sg(p & S); let x = shr(a, p, b, n); R = select(n, x, k); "
               "H = select(n, gh, k);";
    case GNI_OP_WHERE: return "let k = (a | p) != V(); R = select(c, b, k); H = select(o, q, k);";
    case GNI_OP_FMA: return "let x = mul(a, p, b, q); R = x + c; H = gh + o + I(R < x);";
    case GNI_OP_I_TO_F: return "R = tf(a, p, V(2147483648u), false);";
    case GNI_OP_U_TO_F: return "R = tf(a, p, V(), false);";
    case GNI_OP_TO_ODD: return "R = tf(a, p, S, odd);";
    case GNI_OP_TO_BOOL: return "R = I((a | p) != V());";
    case GNI_OP_WRAP_U8: return "R = a & V(255u);";
    case GNI_OP_WRAP_U16: return "R = a & V(65535u);";
    case GNI_OP_WRAP_I8: return "H = sg(a << V(24u)); R = (a & V(255u)) | (H << V(8u));";
    case GNI_OP_WRAP_I16: return "H = sg(a << V(16u)); R = (a & V(65535u)) | (H << V(16u));";
    case GNI_OP_WRAP_U32: return "R = a;";
    case GNI_OP_WRAP_I32: return "R = a; H = sg(a);";
    default: return "R = a; H = p;"; // roundings
    }
}

// Instruction k. What becomes float16 or bfloat16 is rounded once: on the way there float32 is odd.
static void gni_wg_words_step(gni_wg_text *t, const gni_wg_program_words *p, int k) {
    const uint32_t *step = p->word + GNI_P_PROGRAM_STEPS, insn = step[k], code = insn & 2047u;
    bool odd = false;
    for (int i = k + 1; i < p->n_insn; i++) {
        const uint32_t op = (step[i] & 2047u) / 3u;
        odd = odd || ((step[i] >> 11 & 127u) == 16u + (uint32_t)k && (op == GNI_OP_ROUND_F16 || op == GNI_OP_ROUND_BF16));
    }
    for (int i = 0; i < p->n_out; i++) {
        const uint32_t to = gni_wg_out_dtype(p, i);
        const bool here = (p->word[GNI_P_PROGRAM_OUT_REGS] >> (8 * i) & 255u) == 16u + (uint32_t)k;
        odd = odd || (here && (to == GNI_T_F16 || to == GNI_T_BF16));
    }
    gni_wg_say(t,
               "{ let a = r%u; let p = h%u; let b = r%u; let q = h%u; let c = r%u; let o = h%u; var R = V(); var H = V(); "
               "let S = V(%uu); const odd = %s;\n",
               insn >> 11 & 127u, insn >> 11 & 127u, insn >> 18 & 127u, insn >> 18 & 127u, insn >> 25, insn >> 25,
               code % 3u == GNI_U ? 0u : 1u << 31, odd ? "true" : "false");
    gni_wg_say(t, "%s\nr%d = R | vec4<u32>(gn_zero); h%d = H; }\n", gni_wg_words_form(code), 16 + k, 16 + k);
}

// ---- the parts of a text

static void gni_wg_head(gni_wg_text *t, gni_wg_program_words *p) {
    gni_wg_say(t,
               "@group(0) @binding(0) var<uniform> gn_p : array<vec4<u32>, %d>;\nvar<private> gn_zero : u32;\n"
               "const GN_FUSED : bool = %s;\nfn P(i : u32) -> u32 { return gn_p[i >> 2u][i & 3u]; }\n",
               GNI_WG_PARAM_BYTES / 16, t->w->gpu.caps.fused ? "true" : "false");
    for (int k = 0; k < GNI_GPU_MAX_USES; k++)
        if (p->buffers >> k & 1u) gni_wg_accessors(t, p, k);
    for (int k = 0; k < p->n_in; k++) gni_wg_input_functions(t, p, k);
    for (int k = 0; k < p->n_in; k++)
        if (gni_wg_in_dtype(p, k) == GNI_T_F16) gni_wg_want_name(t, "load_f16");
    for (int k = 0; k < p->n_out && !p->reduces; k++) {
        if (gni_wg_out_dtype(p, k) == GNI_T_F16) gni_wg_want_name(t, "store_f16");
        if (gni_wg_out_dtype(p, k) == GNI_T_BF16) gni_wg_want_name(t, "store_bf16");
    }
    if (p->pairs) gni_wg_put(t, gni_wg_words_text, sizeof gni_wg_words_text - 1);
    for (int k = 0; k < p->n_insn; k++) {
        char name[16];
        const uint32_t code = p->word[GNI_P_PROGRAM_STEPS + k] & 2047u;
        snprintf(name, sizeof name, "o%u", code);
        if (!p->pairs || !gni_wg_words_form(code)) gni_wg_want_name(t, name);
    }
}

// Coordinates of the group's elements, or of the scalar index; `from` is how the first coordinate's rest begins.
static void gni_wg_coordinates(gni_wg_text *t, int first, int count, bool vector) {
    const char *type = vector ? "vec4<u32>" : "u32", *name = vector ? "v" : "s";
    for (int d = count - 1; d > 0; d--)
        gni_wg_say(t, "let %sd%d = %s(P(%uu));\nlet %sq%d = %sq%d / %sd%d;\nlet %sc%d = %sq%d - %sq%d * %sd%d;\n", name, d,
                   type, GNI_P_PROGRAM_DIM + 3u * (uint32_t)(first + d), name, d, name, d + 1, name, d, name, d, name, d + 1,
                   name, d, name, d);
    gni_wg_say(t, "let %sc0 = %sq1;\n", name, name);
}

// What instructions make of the registers. With `quick` by the functions of ops that have such, which set gn_rare where they
// cannot tell.
static void gni_wg_steps(gni_wg_text *t, const gni_wg_program_words *p, bool quick) {
    for (int k = 0; k < p->n_insn; k++) {
        uint32_t insn = p->word[GNI_P_PROGRAM_STEPS + k];
        // Compilers see one instruction at a time, so that a chain gives the bits that its steps give. A second exclusive or
        // with the same zero would undo that of the op; an or does not. Nor may they see that x - x has one operand, which is
        // 0 for them where x is infinite or NaN.
        const bool difference = (insn & 2047u) == GNI_OP_SUB * 3u + GNI_F;
        if (p->pairs && gni_wg_words_form(insn & 2047u)) {
            gni_wg_words_step(t, p, k);
            continue;
        }
        gni_wg_say(t, "{ var a = r%u; var b = r%u%s; var c = r%u; r%d = %c%u(&a, &b, &c) | vec4<u32>(gn_zero); }\n",
                   insn >> 11 & 127u, insn >> 18 & 127u, difference ? " & ~vec4<u32>(gn_zero)" : "", insn >> 25, 16 + k,
                   quick && gni_wg_find_op(t->w, 'f', insn & 2047u) ? 'f' : 'o', insn & 2047u);
    }
}

// Registers, and what instructions make of them: the group at i of n.
static void gni_wg_body(gni_wg_text *t, const gni_wg_program_words *p, bool quick) {
    if (p->word[GNI_P_PROGRAM_COUNTS] >> 24 & 1u) {
        gni_wg_say(t, "let vq%d = min(vec4<u32>(i) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(n - 1u));\n", p->vectors);
        gni_wg_coordinates(t, 0, p->vectors, true);
    }
    for (int k = 0; k < p->n_in; k++) gni_wg_load(t, p, k);
    gni_wg_steps(t, p, quick);
}

static void gni_wg_registers(gni_wg_text *t, const gni_wg_program_words *p) {
    uint32_t used = 1; // bit k: register k, of inputs and constants
    for (int k = 0; k < p->n_insn; k++)
        for (int q = 11; q < 32; q += 7) {
            uint32_t r = p->word[GNI_P_PROGRAM_STEPS + k] >> q & 127u;
            if (r < 16) used |= 1u << r;
        }
    for (int k = 0; k < 4; k++) {
        uint32_t r = p->word[GNI_P_PROGRAM_OUT_REGS] >> (8 * k) & 255u;
        if (r < 16) used |= 1u << r;
    }
    gni_wg_say(t, "gn_zero = P(%uu);\n", (unsigned)GNI_WG_PARAM_BYTES / 4u - 1u);
    for (int k = 0; k < GNI_MAX_INPUTS; k++)
        if (k < p->n_in || used >> k & 1u) gni_wg_say(t, "var r%d = vec4<u32>(); var h%d = r%d;\n", k, k, k);
    for (uint32_t k = 0; k < GNI_MAX_CONSTS; k++) {
        uint32_t at = GNI_P_PROGRAM_CONST + 2u * k;
        if (!(used >> (8 + k) & 1u)) continue;
        if (p->raw64)
            gni_wg_say(t, "let r%u = vec4<u32>(P(%uu), P(%uu), P(%uu), P(%uu));\n", 8u + k, at, at + 1u, at, at + 1u);
        else gni_wg_say(t, "let r%u = vec4<u32>(P(%uu) | gn_zero);\n", 8u + k, at);
        if (p->pairs) gni_wg_say(t, "let h%u = vec4<u32>(P(%uu));\n", 8u + k, at + 1u);
    }
    for (int k = 0; k < p->n_insn; k++) gni_wg_say(t, "var r%d = vec4<u32>(); var h%d = r%d;\n", 16 + k, 16 + k, 16 + k);
}

// How main begins, of `size` invocations.
static void gni_wg_main_text(gni_wg_text *t, const gni_wg_program_words *p, unsigned size) {
    gni_wg_say(t,
               "@compute @workgroup_size(%u) fn main(@builtin(workgroup_id) wg : vec3<u32>, @builtin(num_workgroups) ng : "
               "vec3<u32>, @builtin(local_invocation_index) me : u32) {\n",
               size);
    gni_wg_registers(t, p);
}

// What is done with the vector q. Quickly: up to the first that needs what ops rarely need.
static void gni_wg_map_step(gni_wg_text *t, const gni_wg_program_words *p, unsigned group, bool quick) {
    const bool alone = t->w->gpu.caps.alone > 0; // where a break in between takes more than the counting of rounds
    gni_wg_say(t, "%slet i = q * %uu;\nlet count = min(n - i, %uu);\n", alone ? "loop {\n" : gni_wg_rounds, group, group);
    gni_wg_body(t, p, quick);
    if (quick) gni_wg_say(t, "if (gn_rare != 0u) { break; }\n");
    for (int k = 0; k < p->n_out; k++) gni_wg_store(t, p, k, false);
    gni_wg_say(t, alone ? "continuing { q += step; break if (q >= end); }\n}\n" : "q += step; if (q >= end) { break; }\n}\n");
}

// Tiles of 64 x 64, see elementwise.glsl: an operand that runs along rows is read as vectors of four rows and turned in
// registers. Each invocation has 4 x 4 elements, of which 32 make 8 x 4 such squares: both sides of memory see stretches of
// 64 bytes and more.
static void gni_wg_tiles_text(gni_wg_text *t, const gni_wg_program_words *p) {
    const int last = p->vectors - 1, out = GNI_MAX_INPUTS;
    gni_wg_main_text(t, p, 256);
    gni_wg_say(
        t,
        "let rows = P(%uu); let columns = P(%uu); let between = P(%uu); let across = P(%uu); let tiles = across * P(%uu);\n"
        "%slet block = wg.x + z * ng.x; if (block >= P(%uu)) { break; }\nlet outer = block / tiles; let tile = block - outer "
        "* tiles;\n"
        "let r = tile / across * 64u + 4u * ((me & 7u) | ((me >> 2u) & 8u));\n"
        "let c = tile %% across * 64u + 4u * (((me >> 3u) & 3u) | ((me >> 4u) & 12u));\nif (r >= rows || c >= columns) { "
        "continue; }\n",
        (unsigned)GNI_P_MAP_ROWS, (unsigned)(GNI_P_PROGRAM_DIM + 3 * last), (unsigned)GNI_P_MAP_BETWEEN,
        (unsigned)GNI_P_MAP_ACROSS, (unsigned)GNI_P_MAP_DOWN, gni_wg_rounds, (unsigned)GNI_P_MAP_BLOCKS);
    gni_wg_say(
        t,
        "let high = outer / between;\nlet vq%d = vec4<u32>((high * rows * between + (outer - high * between)) * columns);\n",
        p->vectors);
    gni_wg_coordinates(t, 0, p->vectors, true);
    gni_wg_say(t, "let x = min(vec4<u32>(c) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(columns - 1u));\n");
    for (int k = 0; k <= p->n_in; k++) { // where the first element of each operand is, and its steps
        const int o = k < p->n_in ? k : out, b = k < p->n_in ? gni_wg_in_place(p, k) : out;
        const unsigned base = GNI_P_PROGRAM_OP + 9u * (unsigned)o;
        gni_wg_say(t, "let rs%d = P(%uu + P(%uu)); let cs%d = P(%uu);\nlet at%d = P(%uu)", o, base + 1u,
                   (unsigned)GNI_P_MAP_ROW_DIM, o, base + 1u + (unsigned)last, o, base);
        for (int d = 0; d < p->vectors; d++) gni_wg_say(t, " + vc%d.x * P(%uu)", d, base + 1u + (unsigned)d);
        gni_wg_say(t, " + r * rs%d;\n", o);
        for (int e = 0; k < p->n_in && e < 4 && gni_wg_in_kind(p, k) == GNI_K_COLVEC; e++)
            gni_wg_say(t, "let q%d_%d = v%d(at%d + x.%c * cs%d);\n", k, e, b, o, "xyzw"[e], o);
    }
    for (int u = 0; u < 4; u++) {
        gni_wg_say(t, "if (r + %du < rows) {\n", u);
        for (int k = 0; k < p->n_in; k++) {
            const int b = gni_wg_in_place(p, k);
            const char e = "xyzw"[u];
            gni_wg_say(t, "let a%d = at%d + %du * rs%d;\n", k, k, u, k);
            switch (gni_wg_in_kind(p, k)) {
            case GNI_K_COLVEC:
                gni_wg_say(t, "r%d = vec4<u32>(q%d_0.%c, q%d_1.%c, q%d_2.%c, q%d_3.%c);\n", k, k, e, k, e, k, e, k, e);
                break;
            case GNI_K_ROWVEC: gni_wg_say(t, "r%d = v%d(a%d + c * cs%d);\n", k, b, k, k); break;
            case GNI_K_SCALAR: gni_wg_say(t, "r%d = vec4<u32>(l%d(at%d - r * rs%d));\n", k, b, k, k); break;
            case GNI_K_ROWREP: gni_wg_say(t, "r%d = vec4<u32>(l%d(a%d));\n", k, b, k); break;
            default:
                gni_wg_say(
                    t, "{ let j = vec4<u32>(a%d) + x * cs%d; r%d = vec4<u32>(l%d(j.x), l%d(j.y), l%d(j.z), l%d(j.w)); }\n", k,
                    k, k, b, b, b, b);
            }
        }
        gni_wg_steps(t, p, false);
        gni_wg_say(t, "let v = r%u; let o = at%d + %du * rs%d + c * cs%d;\n", p->word[GNI_P_PROGRAM_OUT_REGS] & 255u, out, u,
                   out, out);
        if (gni_wg_out_kind(p, 0) == GNI_K_ROWVEC) gni_wg_say(t, "w%d(o, v);\n}\n", out);
        else
            gni_wg_say(t, "for (var e = 0u; e < 4u; e++) { if (c + e < columns) { s%d(o + e * cs%d, v[e]); } }\n}\n", out,
                       out);
    }
    gni_wg_say(t, "}\n}\n");
}

static void gni_wg_map_text(gni_wg_text *t, const gni_wg_program_words *p) {
    // On CPUs what an invocation begins with costs as much as its vector: a workgroup is a subgroup, so that each gets 32 of
    // them or more, and those of a workgroup lie together. SwiftShader runs both sides of every `if`, and a loop until no
    // lane is left in it, but once at least: so what is rarely needed is in a loop of its own there.
    const bool alone = t->w->gpu.caps.alone > 0;
    unsigned group = p->raw64 ? 2u : 4u, size = alone ? t->w->gpu.caps.alone : 256u;
    bool quick = false;
    for (int k = 0; alone && k < p->n_insn; k++) {
        gni_wg_function *f = gni_wg_find_op(t->w, 'f', p->word[GNI_P_PROGRAM_STEPS + k] & 2047u);
        if (!f) continue;
        gni_wg_want(t, f->name, f->name_length);
        quick = true;
    }
    gni_wg_main_text(t, p, size);
    gni_wg_say(t, "let n = P(%uu);\nlet groups = (n + %uu) / %uu;\n", (unsigned)GNI_P_MAP_N, group - 1, group);
    if (alone)
        gni_wg_say(t,
                   "let step = %uu;\nlet each = (groups + ng.x * step - 1u) / (ng.x * step) * step;\n"
                   "let end = min(groups, (wg.x + 1u) * each);\nvar q = wg.x * each + me;\n",
                   size);
    else gni_wg_say(t, "let step = ng.x * %uu;\nlet end = groups;\nvar q = wg.x * %uu + me;\n", size, size);
    gni_wg_say(t, "if (q >= end) { return; }\n");
    if (quick) {
        gni_wg_map_step(t, p, group, true);
        gni_wg_say(t, "if (q < end) {\n");
    }
    gni_wg_map_step(t, p, group, false);
    gni_wg_say(t, "%sq -= step;\nlet i = q * %uu;\nlet count = n - i;\nif (count < %uu) {\n", quick ? "}\n" : "", group,
               group);
    for (int k = 0; k < p->n_out; k++) gni_wg_store(t, p, k, true);
    gni_wg_say(t, "}\n}\n");
}

// ---- reductions: see reduce.glsl, whose lanes, teams and units these are

static void gni_wg_join_team(gni_wg_text *t, const gni_wg_program_words *p, unsigned teams) {
    unsigned step = p->columns ? teams : 1u;
    gni_wg_say(t,
               "workgroupBarrier();\nfor (var z = %uu; z > 0u; z--) {\nlet h = 1u << (z - 1u);\n"
               "if (lane >= h && lane < 2u * h) { ts[me] = s; tc[me] = c; }\nworkgroupBarrier();\n"
               "if (lane < h) { var s3 = ts[me + h * %uu]; var c3 = tc[me + h * %uu]; join(&s, &c, &s3, &c3); }\n}\n",
               (unsigned)p->log_lanes, step, step);
}

// Element e of (s, c) as element j of the result.
static void gni_wg_write_result(gni_wg_text *t, const gni_wg_program_words *p) {
    bool wide = p->result == GNI_T_I64 || p->result == GNI_T_F64 || p->result == GNI_T_U64;
    gni_wg_say(t,
               "fn put(place : u32, s0 : vec4<u32>, c0 : vec4<u32>, e0 : u32) {\nvar s = s0; var c = c0; var element = e0;\n"
               "let x = leave(&s, &c, &element);\n");
    if (wide) {
        gni_wg_say(t, "let at = 2u * (place + P(%uu));\ns8(at, x.x); s8(at + 1u, x.y);\n}\n",
                   (unsigned)GNI_P_PROGRAM_OP + 9u * GNI_MAX_INPUTS);
        return;
    }
    gni_wg_say(t, "let j = vec4<u32>(place + P(%uu)); let v = vec4<u32>(x.x); let count = 1u;\n",
               (unsigned)GNI_P_PROGRAM_OP + 9u * GNI_MAX_INPUTS);
    gni_wg_store_each(t, p->result, GNI_MAX_INPUTS);
    gni_wg_say(t, "}\n");
}

// Step t as (s2, c2).
static void gni_wg_take_step(gni_wg_text *t, const gni_wg_program_words *p) {
    gni_wg_say(t, "let i = %s * 4u;\n", p->columns ? "unit" : "t");
    if (p->columns && p->scalars > 0) {
        gni_wg_say(t, "let sq%d = t;\n", p->scalars);
        gni_wg_coordinates(t, p->vectors, p->scalars, false);
    }
    gni_wg_body(t, p, false);
    gni_wg_say(t, "var v = r%u;\n", p->word[GNI_P_PROGRAM_OUT_REGS] & 255u);
    if (p->columns) gni_wg_say(t, "var index = vec4<u32>(P(%uu) + t);\n", (unsigned)GNI_P_REDUCE_INDEX0);
    else gni_wg_say(t, "var index = vec4<u32>(P(%uu) + i) + vec4<u32>(0u, 1u, 2u, 3u);\n", (unsigned)GNI_P_REDUCE_INDEX0);
    // Sums and products of words are of the same form as those of 32-bit integers.
    const uint32_t out = p->word[GNI_P_PROGRAM_OUT_REGS] & 255u, op = p->code / 3u;
    const bool truth = op == GNI_RED_ANY || op == GNI_RED_ALL;
    if (p->pairs && p->code % 3u != GNI_F && !truth) {
        gni_wg_say(t, "s2 = v; c2 = h%u;\n", out);
    } else {
        if (p->pairs && p->code % 3u != GNI_F) gni_wg_say(t, "v = v | h%u;\n", out);
        gni_wg_say(t, "enter(&v, &index, &s2, &c2);\n");
    }
    if (!p->columns)
        gni_wg_say(
            t, "if (i + 4u > reduced) {\nlet outside = (vec4<u32>(i) + vec4<u32>(0u, 1u, 2u, 3u)) >= vec4<u32>(reduced);\n"
               "s2 = select(s2, neutral(), outside); c2 = select(c2, neutral_c(), outside);\n}\n");
}

// Four steps at a time where that is little text, so that their loads are under way together; then one.
static void gni_wg_take_steps(gni_wg_text *t, const gni_wg_program_words *p) {
    const uint32_t op = p->code / 3u;
    const bool brief = (op == GNI_RED_SUM || op == GNI_RED_MIN || op == GNI_RED_MAX) && p->n_insn <= 2 && !p->pairs;
    const unsigned lanes = 1u << p->log_lanes, most = brief && t->w->gpu.caps.alone == 0 ? 4 : 1;
    gni_wg_say(t,
               "let steps = %s;\nlet first = wg.y * P(%uu);\nvar end = min(first + P(%uu), steps);\n"
               "if (unit >= units) { end = 0u; }\nlet n = %s;\nvar next = first + lane;\n",
               p->columns ? "reduced" : "(reduced + 3u) / 4u", (unsigned)GNI_P_REDUCE_CHUNK, (unsigned)GNI_P_REDUCE_CHUNK,
               p->columns ? "kept" : "reduced");
    if (!p->columns && p->scalars > 0) {
        gni_wg_say(t, "let sq%d = unit;\n", p->scalars);
        gni_wg_coordinates(t, p->vectors, p->scalars, false);
    }
    for (unsigned at_once = most; at_once > 0; at_once = at_once > 1) {
        gni_wg_say(t, "%sif (next + %uu >= end) { break; }\nvar s2 = vec4<u32>(); var c2 = s2;\n", gni_wg_rounds,
                   (at_once - 1) * lanes);
        for (unsigned k = 0; k < at_once; k++) {
            gni_wg_say(t, "var s2_%u = s2; var c2_%u = s2; {\nlet t = next + %uu;\n", k, k, k * lanes);
            gni_wg_take_step(t, p);
            gni_wg_say(t, "s2_%u = s2; c2_%u = c2;\n}\n", k, k);
        }
        for (unsigned k = 0; k < at_once; k++)
            gni_wg_say(t, "%s{ join_next(&s, &c, &s2_%u, &c2_%u); }\n",
                       k == 0 ? "if (next == first + lane) { s = s2_0; c = c2_0; } else " : "", k, k);
        gni_wg_say(t, "next += %uu;\n}\n", at_once * lanes);
    }
    if (!p->columns)
        gni_wg_say(t, "{ var s3 = s.yxwz; var c3 = c.yxwz; join(&s, &c, &s3, &c3); }\n"
                      "{ var s3 = s.zwxy; var c3 = c.zwxy; join(&s, &c, &s3, &c3); }\n");
}

static void gni_wg_reduce_text(gni_wg_text *t, const gni_wg_program_words *p) {
    const bool alone = t->w->gpu.caps.alone > 0 && p->log_lanes == 0; // no barrier
    unsigned size = alone ? 16u : t->w->gpu.caps.alone > 0 ? t->w->gpu.caps.alone : 256u;
    unsigned lanes = 1u << p->log_lanes, teams = size >> p->log_lanes;
    static const char *const wanted[] = {"neutral", "neutral_c", "enter", "join", "join_next", "leave"};
    gni_wg_say(t, "const GN_CODE : u32 = %uu;\nconst GN_RESULT_DTYPE : u32 = %uu;\n", p->code, p->result);
    const uint32_t op = p->code / 3u, sign = p->code % 3u == GNI_I ? 1u << 31 : 0;
    if (p->pairs && p->code % 3u != GNI_F && (op == GNI_RED_MIN || op == GNI_RED_MAX))
        gni_wg_say(t,
                   "fn neutral() -> V { return V(%uu); }\nfn neutral_c() -> V { return V(%uu); }\n"
                   "fn join(s : ptr<function, V>, c : ptr<function, V>, s2 : ptr<function, V>, c2 : ptr<function, V>) {\n"
                   "let x = V(%uu); let k = lt(%s);\n*s = select(*s, *s2, k); *c = select(*c, *c2, k);\n}\n"
                   "fn join_next(s : ptr<function, V>, c : ptr<function, V>, s2 : ptr<function, V>, c2 : ptr<function, V>) "
                   "{ join(s, c, s2, c2); }\n"
                   "fn leave(s : ptr<function, V>, c : ptr<function, V>, e : ptr<function, u32>) -> vec2<u32> { return "
                   "vec2<u32>((*s)[*e]%s, (*c)[*e]); }\n",
                   op == GNI_RED_MIN ? ~0u : 0u, op == GNI_RED_MIN ? ~sign : sign, sign,
                   op == GNI_RED_MIN ? "*s2, *c2 ^ x, *s, *c ^ x" : "*s, *c ^ x, *s2, *c2 ^ x",
                   gni_wg_packing(p->result) == 2 ? " & 255u" : gni_wg_packing(p->result) == 1 ? " & 65535u" : "");
    else
        for (int i = 0; i < 6; i++) gni_wg_want_name(t, wanted[i]);
    if (!p->partial) gni_wg_write_result(t, p);
    if (!alone) gni_wg_say(t, "var<workgroup> ts : array<vec4<u32>, 256>;\nvar<workgroup> tc : array<vec4<u32>, 256>;\n");
    gni_wg_main_text(t, p, size);
    gni_wg_say(t, "let kept = P(%uu); let reduced = P(%uu); let units = P(%uu); let splits = P(%uu);\n",
               (unsigned)GNI_P_REDUCE_KEPT, (unsigned)GNI_P_REDUCE_REDUCED, (unsigned)GNI_P_REDUCE_UNITS,
               (unsigned)GNI_P_REDUCE_SPLITS);
    if (p->columns) gni_wg_say(t, "let lane = me / %uu; let team = me %% %uu;\n", teams, teams);
    else gni_wg_say(t, "let lane = me %% %uu; let team = me / %uu;\n", lanes, lanes);
    gni_wg_say(t,
               "let blocks = (units + %uu) / %uu;\n%slet block = wg.x + z * ng.x; if (block >= blocks) { break; }\n"
               "let unit = block * %uu + team;\nvar s = neutral(); var c = neutral_c();\n",
               teams - 1, teams, gni_wg_rounds, teams);
    if (p->joins)
        gni_wg_say(
            t,
            "if (unit < units) {\n%slet q = lane + z * %uu; if (q >= splits) { break; }\nlet at = 8u * (unit * splits + q);\n"
            "var s2 = v9(at); var c2 = v9(at + 4u); join(&s, &c, &s2, &c2);\n}\n}\n",
            gni_wg_rounds, lanes);
    else gni_wg_take_steps(t, p);
    if (!alone) gni_wg_join_team(t, p, teams);
    gni_wg_say(t, "if (lane == 0u && unit < units) {\n");
    if (p->partial)
        gni_wg_say(t, "let at = 8u * (unit * splits + P(%uu) + wg.y);\nw9(at, s); w9(at + 4u, c);\n",
                   (unsigned)GNI_P_REDUCE_SPLIT0);
    else if (p->columns)
        gni_wg_say(t, "for (var e = 0u; e < 4u; e++) { if (unit * 4u + e < kept) { put(unit * 4u + e, s, c, e); } }\n");
    else gni_wg_say(t, "put(unit, s, c, 0u);\n");
    gni_wg_say(t, "}\n}\n}\n");
}

static void gni_wg_read_words(const gni_gpu_kernel *k, gni_wg_program_words *p) {
    uint32_t counts = k->spec[GNI_P_PROGRAM_COUNTS];
    p->word = k->spec;
    p->raw64 = k->module == GNI_MODULE_map_copy64;
    p->pairs = k->module == GNI_MODULE_map_wide_24 || k->module == GNI_MODULE_reduce_wide_24;
    p->n_in = (int)(counts & 15u);
    p->n_out = (int)(counts >> 4 & 15u);
    p->n_insn = (int)(counts >> 8 & 255u);
    p->vectors = (int)(counts >> 16 & 15u);
    p->scalars = (int)(counts >> 20 & 15u);
    uint32_t how = k->spec[GNI_P_PROGRAM_HOW];
    p->reduces = k->module == GNI_MODULE_reduce_24 || k->module == GNI_MODULE_reduce_wide_24;
    if (p->reduces) {
        p->code = how & 255u;
        p->columns = how >> 8 & 1u;
        p->log_lanes = how >> 9 & 15u;
        p->result = how >> 16 & 15u;
        p->partial = (how & GNI_F_REDUCE_PARTIAL) != 0;
        p->joins = (how & GNI_F_REDUCE_JOIN) != 0;
    } else {
        p->alias = how >> 8;
    }
}

#endif // GNI_WEBGPU
