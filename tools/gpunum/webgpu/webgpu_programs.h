// >>webgpu_programs
// Elementwise programs and reductions as WGSL, written at run time from the words that Vulkan takes as specialisation
// constants (GNI_P_PROGRAM_COUNTS and so on). Functions of the ops come from the library in shaders_wgsl.h, only those that a
// program needs. From outside: gni_wg_program, gni_wg_text_get.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/slots.h"
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
    if (!f) {
        gni_fail_memory(w->gpu.g, "the library of kernels", (uint64_t)count * sizeof *f);
        return false;
    }
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

// Puts a function of the library and what it needs into the text, once.
static void gni_wg_want(gni_wg_text *t, const char *name, int length) {
    gni_wg *w = t->w;
    for (int i = 0; i < w->function_count; i++) {
        gni_wg_function *f = &w->functions[i];
        if (f->name_length != length || memcmp(f->name, name, (size_t)length) != 0) continue;
        if (f->mark == w->mark) return;
        f->mark = w->mark;
        for (int a = 0; a < f->needs_length;) {
            int b = ++a; // behind the space
            while (b < f->needs_length && f->needs[b] != ' ') b++;
            gni_wg_want(t, f->needs + a, b - a);
            a = b;
        }
        gni_wg_put(t, f->body, (size_t)f->body_length);
        return;
    }
    gni_log(w->gpu.g, GN_LOG_WARNING, "the library of kernels has no %.*s", length, name);
    t->failed = true;
}
static void gni_wg_want_name(gni_wg_text *t, const char *name) { gni_wg_want(t, name, (int)strlen(name)); }

// ---- operands

// A program as its words tell.
typedef struct gni_wg_words_of {
    const uint32_t *word;
    bool reduces, raw64; // copies of 8-byte elements
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

static uint32_t gni_wg_in_dtype(const gni_wg_program_words *p, int k) { return p->word[GNI_P_PROGRAM_IN_DTYPES] >> (4 * k) & 15u; }
static uint32_t gni_wg_in_kind(const gni_wg_program_words *p, int k) { return p->word[GNI_P_PROGRAM_IN_KINDS] >> (4 * k) & 15u; }
static uint32_t gni_wg_out_dtype(const gni_wg_program_words *p, int k) { return p->word[GNI_P_PROGRAM_OUTPUTS] >> (4 * k) & 15u; }
static uint32_t gni_wg_out_kind(const gni_wg_program_words *p, int k) { return p->word[GNI_P_PROGRAM_OUTPUTS] >> (16 + 4 * k) & 15u; }
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
        if (gni_wg_grouped(gni_wg_in_kind(p, k)) && gni_wg_packing(gni_wg_in_dtype(p, k)) == 0) p->wide |= 1u << place;
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
        if (gni_wg_grouped(gni_wg_out_kind(p, k))) p->wide |= bit;
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
        gni_wg_say(t, "fn v%d(j : u32) -> vec4<u32> { return vec4<u32>(l%d(j), l%d(j + 1u), l%d(j + 2u), l%d(j + 3u)); }\n", k,
                   k, k, k, k);
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
        gni_wg_say(t, "fn e%d(j : u32) -> u32 { return l%d(j); }\nfn g%d(j : u32) -> vec4<u32> { return v%d(j); }\n", k, b, k, b);
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
            gni_wg_say(t, "r%d = vec4<u32>(l%d(2u * j.x), l%d(2u * j.x + 1u), l%d(2u * j.%s), l%d(2u * j.%s + 1u));\n", k, b, b,
                       b, second, b, second);
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
    gni_wg_say(t, "r%d = v | vec4<u32>(gn_zero);\n}\n", k);
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
    gni_wg_say(t, "for (var e = 0u; e < count; e++) {\n");
    if (s == 0) gni_wg_say(t, "s%d(j[e], v[e]);\n", b);
    else
        gni_wg_say(t,
                   "let shift = (j[e] & %uu) * %uu;\natomicAnd(&b%d[j[e] >> %uu], ~(%uu << shift));\n"
                   "atomicOr(&b%d[j[e] >> %uu], v[e] << shift);\n",
                   s == 1 ? 1u : 3u, size, b, s, s == 1 ? 0xffffu : 0xffu, b, s);
    gni_wg_say(t, "}\n");
}

static void gni_wg_store(gni_wg_text *t, const gni_wg_program_words *p, int k) {
    uint32_t kind = gni_wg_out_kind(p, k), dtype = gni_wg_out_dtype(p, k), s = gni_wg_packing(dtype);
    int b = GNI_MAX_INPUTS + k;
    gni_wg_say(t, "{\nvar v = r%u;\n", p->word[GNI_P_PROGRAM_OUT_REGS] >> (8 * k) & 255u);
    gni_wg_places(t, p, b, kind, true);
    if (p->raw64) {
        if (kind == GNI_K_VEC)
            gni_wg_say(t, "if (count < 2u) { let old = v%d(2u * j.x); v.z = old.z; v.w = old.w; }\n", b);
        if (gni_wg_grouped(kind)) gni_wg_say(t, "w%d(2u * j.x, v);\n", b);
        else
            gni_wg_say(t, "s%d(2u * j.x, v.x); s%d(2u * j.x + 1u, v.y);\nif (count > 1u) { s%d(2u * j.y, v.z); s%d(2u * j.y + 1u, v.w); }\n",
                       b, b, b, b);
        gni_wg_say(t, "}\n");
        return;
    }
    gni_wg_narrow(t, dtype);
    if (gni_wg_grouped(kind) && s == 0) {
        if (kind == GNI_K_VEC) // what follows the last elements stays
            gni_wg_say(t, "if (count < 4u) { v = select(v%d(j.x), v, vec4<bool>(true, count > 1u, count > 2u, false)); }\n", b);
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

// ---- the parts of a text

static void gni_wg_head(gni_wg_text *t, gni_wg_program_words *p) {
    gni_wg_say(t,
               "@group(0) @binding(0) var<uniform> gn_p : array<vec4<u32>, %d>;\nvar<private> gn_zero : u32;\n"
               "fn P(i : u32) -> u32 { return gn_p[i >> 2u][i & 3u]; }\n",
               GNI_WG_PARAM_BYTES / 16);
    for (int k = 0; k < GNI_GPU_MAX_USES; k++)
        if (p->buffers >> k & 1u) gni_wg_accessors(t, p, k);
    for (int k = 0; k < p->n_in; k++) gni_wg_input_functions(t, p, k);
    for (int k = 0; k < p->n_in; k++)
        if (gni_wg_in_dtype(p, k) == GNI_T_F16) gni_wg_want_name(t, "load_f16");
    for (int k = 0; k < p->n_out && !p->reduces; k++) {
        if (gni_wg_out_dtype(p, k) == GNI_T_F16) gni_wg_want_name(t, "store_f16");
        if (gni_wg_out_dtype(p, k) == GNI_T_BF16) gni_wg_want_name(t, "store_bf16");
    }
    for (int k = 0; k < p->n_insn; k++) {
        char name[16];
        snprintf(name, sizeof name, "o%u", p->word[GNI_P_PROGRAM_STEPS + k] & 2047u);
        gni_wg_want_name(t, name);
    }
}

// Coordinates of the group's elements, or of the scalar index; `from` is how the first coordinate's rest begins.
static void gni_wg_coordinates(gni_wg_text *t, int first, int count, bool vector) {
    const char *type = vector ? "vec4<u32>" : "u32", *name = vector ? "v" : "s";
    for (int d = count - 1; d > 0; d--)
        gni_wg_say(t, "let %sd%d = %s(P(%uu));\nlet %sq%d = %sq%d / %sd%d;\nlet %sc%d = %sq%d - %sq%d * %sd%d;\n", name, d, type,
                   GNI_P_PROGRAM_DIM + 3u * (uint32_t)(first + d), name, d, name, d + 1, name, d, name, d, name, d + 1, name, d,
                   name, d);
    gni_wg_say(t, "let %sc0 = %sq1;\n", name, name);
}

// Registers, and what instructions make of them: the function `run` of the group at i of n.
static void gni_wg_body(gni_wg_text *t, const gni_wg_program_words *p) {
    if (p->word[GNI_P_PROGRAM_COUNTS] >> 24 & 1u) {
        gni_wg_say(t, "let vq%d = min(vec4<u32>(i) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(n - 1u));\n", p->vectors);
        gni_wg_coordinates(t, 0, p->vectors, true);
    }
    for (int k = 0; k < p->n_in; k++) gni_wg_load(t, p, k);
    for (int k = 0; k < p->n_insn; k++) {
        uint32_t insn = p->word[GNI_P_PROGRAM_STEPS + k];
        // Compilers see one instruction at a time, so that a chain gives the bits that its steps give. A second exclusive or
        // with the same zero would undo that of the op; an or does not.
        gni_wg_say(t, "{ var a = r%u; var b = r%u; var c = r%u; r%d = o%u(&a, &b, &c) | vec4<u32>(gn_zero); }\n",
                   insn >> 11 & 127u, insn >> 18 & 127u, insn >> 25, 16 + k, insn & 2047u);
    }
}

static void gni_wg_registers(gni_wg_text *t, const gni_wg_program_words *p) {
    gni_wg_say(t, "gn_zero = P(%uu);\n", (unsigned)GNI_WG_PARAM_BYTES / 4u - 1u);
    for (int k = 0; k < GNI_MAX_INPUTS; k++) gni_wg_say(t, "var r%d = vec4<u32>();\n", k);
    for (uint32_t k = 0; k < GNI_MAX_CONSTS; k++) {
        uint32_t at = GNI_P_PROGRAM_CONST + 2u * k;
        if (p->raw64)
            gni_wg_say(t, "let r%u = vec4<u32>(P(%uu), P(%uu), P(%uu), P(%uu));\n", 8u + k, at, at + 1u, at, at + 1u);
        else gni_wg_say(t, "let r%u = vec4<u32>(P(%uu) | gn_zero);\n", 8u + k, at);
    }
    for (int k = 0; k < p->n_insn; k++) gni_wg_say(t, "var r%d = vec4<u32>();\n", 16 + k);
}

static void gni_wg_map_text(gni_wg_text *t, const gni_wg_program_words *p) {
    unsigned group = p->raw64 ? 2u : 4u;
    gni_wg_say(t,
               "@compute @workgroup_size(256) fn main(@builtin(workgroup_id) wg : vec3<u32>, @builtin(num_workgroups) ng : "
               "vec3<u32>, @builtin(local_invocation_index) me : u32) {\n");
    gni_wg_registers(t, p);
    gni_wg_say(t,
               "let n = P(%uu);\nlet groups = (n + %uu) / %uu;\n"
               "for (var q = wg.x * 256u + me; q < groups; q += ng.x * 256u) {\nlet i = q * %uu;\nlet count = min(n - i, %uu);\n",
               (unsigned)GNI_P_MAP_N, group - 1, group, group, group);
    gni_wg_body(t, p);
    for (int k = 0; k < p->n_out; k++) gni_wg_store(t, p, k);
    gni_wg_say(t, "}\n}\n");
}

// ---- reductions: see reduce.glsl, whose lanes, teams and units these are

static void gni_wg_join_team(gni_wg_text *t, const gni_wg_program_words *p) {
    unsigned step = p->columns ? 256u >> p->log_lanes : 1u;
    gni_wg_say(t,
               "workgroupBarrier();\nfor (var h = %uu; h > 0u; h = h >> 1u) {\n"
               "if (lane >= h && lane < 2u * h) { ts[me] = s; tc[me] = c; }\nworkgroupBarrier();\n"
               "if (lane < h) { var s3 = ts[me + h * %uu]; var c3 = tc[me + h * %uu]; join(&s, &c, &s3, &c3); }\n}\n",
               (1u << p->log_lanes) >> 1, step, step);
}

// Element e of (s, c) as element j of the result.
static void gni_wg_write_result(gni_wg_text *t, const gni_wg_program_words *p) {
    bool wide = p->result == GNI_T_I64 || p->result == GNI_T_F64 || p->result == GNI_T_U64;
    gni_wg_say(t, "fn put(place : u32, s0 : vec4<u32>, c0 : vec4<u32>, e0 : u32) {\nvar s = s0; var c = c0; var element = e0;\n"
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

static void gni_wg_take_steps(gni_wg_text *t, const gni_wg_program_words *p) {
    unsigned lanes = 1u << p->log_lanes;
    gni_wg_say(t,
               "let steps = %s;\nlet first = wg.y * P(%uu);\nvar end = min(first + P(%uu), steps);\n"
               "if (unit >= units) { end = 0u; }\nlet n = %s;\n",
               p->columns ? "reduced" : "(reduced + 3u) / 4u", (unsigned)GNI_P_REDUCE_CHUNK, (unsigned)GNI_P_REDUCE_CHUNK,
               p->columns ? "kept" : "reduced");
    if (!p->columns && p->scalars > 0) {
        gni_wg_say(t, "let sq%d = unit;\n", p->scalars);
        gni_wg_coordinates(t, p->vectors, p->scalars, false);
    }
    gni_wg_say(t, "for (var t = first + lane; t < end; t += %uu) {\nlet i = %s * 4u;\n", lanes, p->columns ? "unit" : "t");
    if (p->columns && p->scalars > 0) {
        gni_wg_say(t, "let sq%d = t;\n", p->scalars);
        gni_wg_coordinates(t, p->vectors, p->scalars, false);
    }
    gni_wg_body(t, p);
    gni_wg_say(t, "var v = r%u; var s2 = vec4<u32>(); var c2 = vec4<u32>();\n", p->word[GNI_P_PROGRAM_OUT_REGS] & 255u);
    if (p->columns) gni_wg_say(t, "var index = vec4<u32>(P(%uu) + t);\n", (unsigned)GNI_P_REDUCE_INDEX0);
    else gni_wg_say(t, "var index = vec4<u32>(P(%uu) + i) + vec4<u32>(0u, 1u, 2u, 3u);\n", (unsigned)GNI_P_REDUCE_INDEX0);
    gni_wg_say(t, "enter(&v, &index, &s2, &c2);\n");
    if (!p->columns)
        gni_wg_say(t, "if (i + 4u > reduced) {\nlet outside = (vec4<u32>(i) + vec4<u32>(0u, 1u, 2u, 3u)) >= vec4<u32>(reduced);\n"
                      "s2 = select(s2, neutral(), outside); c2 = select(c2, neutral_c(), outside);\n}\n");
    gni_wg_say(t, "if (t == first + lane) { s = s2; c = c2; } else { join_next(&s, &c, &s2, &c2); }\n}\n");
    if (!p->columns)
        gni_wg_say(t, "{ var s3 = s.yxwz; var c3 = c.yxwz; join(&s, &c, &s3, &c3); }\n"
                      "{ var s3 = s.zwxy; var c3 = c.zwxy; join(&s, &c, &s3, &c3); }\n");
}

static void gni_wg_reduce_text(gni_wg_text *t, const gni_wg_program_words *p) {
    unsigned lanes = 1u << p->log_lanes, teams = 256u >> p->log_lanes;
    static const char *const wanted[] = {"neutral", "neutral_c", "enter", "join", "join_next", "leave"};
    gni_wg_say(t, "const GN_CODE : u32 = %uu;\nconst GN_RESULT_DTYPE : u32 = %uu;\n", p->code, p->result);
    for (int i = 0; i < 6; i++) gni_wg_want_name(t, wanted[i]);
    if (!p->partial) gni_wg_write_result(t, p);
    gni_wg_say(t,
               "var<workgroup> ts : array<vec4<u32>, 256>;\nvar<workgroup> tc : array<vec4<u32>, 256>;\n"
               "@compute @workgroup_size(256) fn main(@builtin(workgroup_id) wg : vec3<u32>, @builtin(num_workgroups) ng : "
               "vec3<u32>, @builtin(local_invocation_index) me : u32) {\n");
    gni_wg_registers(t, p);
    gni_wg_say(t, "let kept = P(%uu); let reduced = P(%uu); let units = P(%uu); let splits = P(%uu);\n",
               (unsigned)GNI_P_REDUCE_KEPT, (unsigned)GNI_P_REDUCE_REDUCED, (unsigned)GNI_P_REDUCE_UNITS,
               (unsigned)GNI_P_REDUCE_SPLITS);
    if (p->columns) gni_wg_say(t, "let lane = me / %uu; let team = me %% %uu;\n", teams, teams);
    else gni_wg_say(t, "let lane = me %% %uu; let team = me / %uu;\n", lanes, lanes);
    gni_wg_say(t,
               "let blocks = (units + %uu) / %uu;\nfor (var block = wg.x; block < blocks; block += ng.x) {\n"
               "let unit = block * %uu + team;\nvar s = neutral(); var c = neutral_c();\n",
               teams - 1, teams, teams);
    if (p->joins)
        gni_wg_say(t,
                   "if (unit < units) {\nfor (var q = lane; q < splits; q += %uu) {\nlet at = 8u * (unit * splits + q);\n"
                   "var s2 = v9(at); var c2 = v9(at + 4u); join(&s, &c, &s2, &c2);\n}\n}\n",
                   lanes);
    else gni_wg_take_steps(t, p);
    gni_wg_join_team(t, p);
    gni_wg_say(t, "if (lane == 0u && unit < units) {\n");
    if (p->partial)
        gni_wg_say(t, "let at = 8u * (unit * splits + P(%uu) + wg.y);\nw9(at, s); w9(at + 4u, c);\n",
                   (unsigned)GNI_P_REDUCE_SPLIT0);
    else if (p->columns)
        gni_wg_say(t, "for (var e = 0u; e < 4u; e++) { if (unit * 4u + e < kept) { put(unit * 4u + e, s, c, e); } }\n");
    else gni_wg_say(t, "put(unit, s, c, 0u);\n");
    gni_wg_say(t, "}\n}\n}\n");
}

// The text of a program's kernel, which the caller frees, or NULL after gni_fail.
static char *gni_wg_program(gni_wg *w, const gni_gpu_kernel *k, uint32_t *buffers, uint32_t *written) {
    gni_wg_program_words p;
    gni_wg_text t;
    memset(&p, 0, sizeof p);
    memset(&t, 0, sizeof t);
    t.w = w;
    if (!gni_wg_library(w)) return NULL;
    uint32_t counts = k->spec[GNI_P_PROGRAM_COUNTS];
    p.word = k->spec;
    p.raw64 = k->module == GNI_MODULE_map_copy64;
    p.n_in = (int)(counts & 15u);
    p.n_out = (int)(counts >> 4 & 15u);
    p.n_insn = (int)(counts >> 8 & 255u);
    p.vectors = (int)(counts >> 16 & 15u);
    p.scalars = (int)(counts >> 20 & 15u);
    uint32_t how = k->spec[GNI_P_PROGRAM_HOW];
    p.reduces = k->module == GNI_MODULE_reduce_24;
    if (p.reduces) {
        p.code = how & 255u;
        p.columns = how >> 8 & 1u;
        p.log_lanes = how >> 9 & 15u;
        p.result = how >> 16 & 15u;
        p.partial = (how & GNI_F_REDUCE_PARTIAL) != 0;
        p.joins = (how & GNI_F_REDUCE_JOIN) != 0;
    } else {
        p.alias = how >> 8;
    }
    gni_wg_choose_types(&p);
    w->mark++;
    gni_wg_head(&t, &p);
    if (p.reduces) gni_wg_reduce_text(&t, &p);
    else gni_wg_map_text(&t, &p);
    *buffers = p.buffers;
    *written = p.written;
    if (!t.failed) return t.s;
    gni_free(w->gpu.g, t.s);
    gni_fail(w->gpu.g, GN_ERROR_OUT_OF_MEMORY, "a program's kernel could not be written");
    return NULL;
}

#endif // GNI_WEBGPU
