// Prints tools/shaders/ops.glsl from gpunum.h's op tables.
//
//   cc -std=c99 -o build/ops_glsl tools/ops_glsl.c -I. -lm -lpthread && build/ops_glsl > tools/shaders/ops.glsl

#define GPUNUM_IMPLEMENTATION
#define GPUNUM_NO_VULKAN
#define GPUNUM_NO_THREADS
#include "gpunum.h"
#include <stdio.h>

static void row(const char *kind, gni_op op, gni_domain domain, const char *glsl) {
    bool narrow = (domain == GNI_U && !gni_wide_unsigned(op)) || op == GNI_OP_ROOT_SIZE,
         function = domain == GNI_F && gni_is_function64(op), // math64.glsl's, which interpreters do without
         few = gni_in_stores(op, domain);
    const char *unless[2] = {narrow ? "GN_X64" : function ? "GN_NO_MATH64" : NULL, few ? NULL : "GN_FEW"};
    if (unless[0] && unless[1]) printf("#if !defined(%s) && !defined(%s)\n", unless[0], unless[1]);
    else if (unless[0] || unless[1]) printf("#ifndef %s\n", unless[0] ? unless[0] : unless[1]);
    printf("    case %uu: GN_%s_%c(%s)\n", (unsigned)op * 3u + (unsigned)domain, kind, "FIU"[domain], glsl);
    if (unless[0] || unless[1]) puts("#endif");
}

static void comment(const char *name) { printf("    // %s\n", name); }

// A conversion means the same whatever domain it names.
static void bits(const char *name, gni_op op, const char *glsl) {
    comment(name);
    if (!gni_in_stores(op, GNI_F)) puts("#ifndef GN_FEW");
    printf("    case %uu: case %uu: case %uu: GN_BITS(%s)\n", (unsigned)op * 3u, (unsigned)op * 3u + 1u,
           (unsigned)op * 3u + 2u, glsl);
    if (!gni_in_stores(op, GNI_F)) puts("#endif");
}

int main(void) {
    puts("// Generated from the op tables of gpunum.h by tools/ops_glsl.c: do not edit.\n"
         "// The GN_ macros are narrow.glsl's or wide.glsl's. `code` is op * 3 + domain. -DGN_FEW: what matrix\n"
         "// products run at their stores.\n\n"
         "#ifdef GN_REDUCES");
#define GN_X(fn, NAME, loop, form, back)                                                           \
    printf("#define GN_%s %uu\n", #NAME, (unsigned)GNI_RED_##NAME * 3u);
    GNI_REDUCE_AXES(GN_X)
#undef GN_X
#define GN_X(fn, NAME, loop, form)                                                                 \
    printf("#define GN_%s %uu\n", #NAME, (unsigned)GNI_RED_##NAME * 3u);
    GNI_REDUCE_PLACE(GN_X)
#undef GN_X
    puts("#endif\n\n"
         "uvec4 gn_exec(uint code, uvec4 ra, uvec4 rb, uvec4 rc) {\n"
         "    uvec4 r = uvec4(0u);\n"
         "    switch (code) {");
#define GN_X(fn, NAME, F, D, gF, da)                                                               \
    comment(#NAME);                                                                                \
    row("VALUE", GNI_OP_##NAME, GNI_F, gF);
    GNI_UNARY_FLOAT(GN_X)
    GNI_UNARY_RARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da)                                                        \
    comment(#NAME);                                                                                \
    row("VALUE", GNI_OP_##NAME, GNI_F, gF);                                                        \
    row("VALUE", GNI_OP_##NAME, GNI_I, gI);                                                        \
    row("VALUE", GNI_OP_##NAME, GNI_U, gI);
    GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    comment(#NAME);                                                                                \
    row("TRUTH", GNI_OP_##NAME, GNI_F, gF);                                                        \
    row("TRUTH", GNI_OP_##NAME, GNI_I, gI);                                                        \
    row("TRUTH", GNI_OP_##NAME, GNI_U, gI);
    GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db)                                                           \
    comment(#NAME);                                                                                \
    row("VALUE", GNI_OP_##NAME, GNI_F, gF);
    GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(NAME, F, gF)                                                                          \
    comment(#NAME);                                                                                \
    row("VALUE", GNI_OP_##NAME, GNI_F, gF);
    GNI_BINARY_PARTS(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db)                                                    \
    comment(#NAME);                                                                                \
    row("VALUE", GNI_OP_##NAME, GNI_F, gF);                                                        \
    row("VALUE", GNI_OP_##NAME, GNI_I, gI);                                                        \
    row("VALUE", GNI_OP_##NAME, GNI_U, gI);
    GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI)                                                            \
    comment(#NAME);                                                                                \
    row("TRUTH", GNI_OP_##NAME, GNI_F, gF);                                                        \
    row("TRUTH", GNI_OP_##NAME, GNI_I, gI);                                                        \
    row("TRUTH", GNI_OP_##NAME, GNI_U, gI);
    GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI)                                                                      \
    comment(#NAME);                                                                                \
    row("VALUE", GNI_OP_##NAME, GNI_I, gI);                                                        \
    row("VALUE", GNI_OP_##NAME, GNI_U, gI);
    GNI_BINARY_INT(GN_X)
#undef GN_X
    bits("WHERE", GNI_OP_WHERE, "GN_WHERE");
    comment("FMA");
    row("VALUE", GNI_OP_FMA, GNI_F, "fma(a, b, c)");
    row("VALUE", GNI_OP_FMA, GNI_I, "a * b + c");
    row("VALUE", GNI_OP_FMA, GNI_U, "a * b + c");
    bits("I_TO_F", GNI_OP_I_TO_F, "GN_I_TO_F");
    bits("U_TO_F", GNI_OP_U_TO_F, "GN_U_TO_F");
    bits("F_TO_I", GNI_OP_F_TO_I, "GN_F_TO_I");
    bits("F_TO_U", GNI_OP_F_TO_U, "GN_F_TO_U");
    comment("TO_BOOL");
    printf("    case %uu: GN_BITS(GN_F_TO_BOOL)\n", (unsigned)GNI_OP_TO_BOOL * 3u);
    printf("    case %uu: case %uu: GN_BITS(GN_I_TO_BOOL)\n", (unsigned)GNI_OP_TO_BOOL * 3u + 1u,
           (unsigned)GNI_OP_TO_BOOL * 3u + 2u);
    bits("ROUND_F16", GNI_OP_ROUND_F16, "GN_ROUND_F16");
    bits("ROUND_BF16", GNI_OP_ROUND_BF16, "GN_ROUND_BF16");
    bits("ROUND_F32", GNI_OP_ROUND_F32, "GN_ROUND_F32");
    bits("WRAP_U8", GNI_OP_WRAP_U8, "GN_WRAP_U8");
    bits("WRAP_I8", GNI_OP_WRAP_I8, "GN_WRAP_I8");
    bits("WRAP_U32", GNI_OP_WRAP_U32, "GN_WRAP_U32");
    bits("WRAP_I32", GNI_OP_WRAP_I32, "GN_WRAP_I32");
    comment("TO_ODD");
    printf("#ifndef GN_FEW\n    case %uu: GN_BITS(GN_I_TO_ODD)\n    case %uu: GN_BITS(GN_U_TO_ODD)\n#endif\n",
           (unsigned)GNI_OP_TO_ODD * 3u + 1u, (unsigned)GNI_OP_TO_ODD * 3u + 2u);
    bits("WRAP_U16", GNI_OP_WRAP_U16, "GN_WRAP_U16");
    bits("WRAP_I16", GNI_OP_WRAP_I16, "GN_WRAP_I16");
    puts("#if defined(GN_X64) && !defined(GN_NO_MATH64) && !defined(GN_FEW)");
#define GN_X(fn, NAME, D, da)                                                                      \
    comment(#NAME);                                                                                \
    printf("    case %uu: GN_VALUE_F(gn%s(a))\n", (unsigned)GNI_OP_##NAME * 3u, strchr(#fn, '_'));
    GNI_UNARY_HIDDEN(GN_X)
#undef GN_X
    puts("#endif");
    puts("#if !defined(GN_X64) && !defined(GN_FEW) && !defined(GN_WGSL)");
#define GN_X(NAME, glsl)                                                                           \
    comment("coarse " #NAME);                                                                      \
    printf("    case %uu: GN_VALUE_F(%s)\n", GNI_INSN_COARSE + (unsigned)GNI_OP_##NAME * 3u, glsl);
    GNI_UNARY_COARSE(GN_X)
#undef GN_X
    puts("#endif");
    puts("    default: break;\n"
         "    }\n"
         "    return r;\n"
         "}");
    return 0;
}
