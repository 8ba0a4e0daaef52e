// >>webgpu_kernels
// Kernels that are written here at run time: elementwise programs and reductions by room webgpu_programs; softmax and
// products of float32, in one form for GPUs and one for devices that are CPUs. From outside: gni_wg_program, gni_wg_is_own,
// gni_wg_tiles.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../webgpu/webgpu_programs.h"
#endif

#if GNI_WEBGPU

// exp of softmax.comp's rows, for T. On GPUs, whose compilers make maxima of the choices in it, NaN is told by its bits.
static void gni_wg_exp_text(gni_wg_text *t, bool groups) {
    gni_wg_say(t,
               "fn pow2(n : I) -> T { return bitcast<T>((n + I(127)) << %s); }\n"
               "fn ex(x0 : T) -> T {\nlet x = select(select(x0, T(89.0), x0 > T(89.0)), T(-104.0), x0 < T(-104.0));\n"
               "let n = round(x * 1.44269502); var r = x - n * 0.693145752; r = r - n * 1.42860677e-06;\n"
               "var p = r * 0.00138219551 + 0.0083690444; p = p * r + 0.0416682586; p = p * r + 0.166665182; p = p * r + "
               "0.49999994;\n"
               "let i = I(n); let h = i >> %s; let y = (p * (r * r) + r + 1.0) * pow2(h) * pow2(i - h);\n",
               groups ? "vec4<u32>(23u)" : "23u", groups ? "vec4<u32>(1u)" : "1u");
    if (t->w->gpu.caps.alone > 0) gni_wg_say(t, "return y;\n}\n");
    else
        gni_wg_say(t, "let u = bitcast<vec4<u32>>(x0); return bitcast<T>(select(bitcast<vec4<u32>>(y), u, (u & "
                      "vec4<u32>(0x7fffffffu)) > "
                      "vec4<u32>(0x7f800000u)));\n}\n");
}

// ---- devices that are CPUs, whose compilers make little of barriers: each invocation works alone

// A row of each. T is what is read at once, a float where rows do not begin at groups; sums are of blocks of 32.
static void gni_wg_softmax_text(gni_wg_text *t, const uint32_t *spec) {
    const bool log = spec[GNI_S_SOFTMAX_KIND] == GNI_LOG_SOFTMAX;
    const bool groups = spec[GNI_S_SOFTMAX_ALIGNED] == (GNI_F_SOFTMAX_IN_GROUPS | GNI_F_SOFTMAX_OUT_GROUPS);
    const int shift = groups ? 2 : 0;
    gni_wg_say(
        t,
        groups
            ? "alias T = vec4<f32>; alias I = vec4<i32>;\n"
              "fn top4(x : T) -> f32 { return max(max(x.x, x.y), max(x.z, x.w)); }\n"
              "fn sum4(x : T) -> f32 { return (x.x + x.y) + (x.z + x.w); }\n"
            : "alias T = f32; alias I = i32;\nfn top4(x : T) -> f32 { return x; }\nfn sum4(x : T) -> f32 { return x; }\n");
    gni_wg_exp_text(t, groups);
    gni_wg_say(
        t,
        "@group(0) @binding(1) var<storage, read> a : array<T>;\n@group(0) @binding(2) var<storage, read_write> o : "
        "array<T>;\n"
        "@compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id : vec3<u32>, @builtin(num_workgroups) ng : "
        "vec3<u32>) {\ngn_zero = P(%uu);\nlet n = P(%uu) >> %du;\nfor (var row = id.x; row < P(%uu); row += ng.x * 16u) {\n"
        "let ia = (P(%uu) + row * P(%uu)) >> %du; let io = (P(%uu) + row * P(%uu)) >> %du;\n",
        (unsigned)GNI_WG_PARAM_BYTES / 4u - 1u, (unsigned)GNI_P_SOFTMAX_N, shift, (unsigned)GNI_P_SOFTMAX_ROWS,
        (unsigned)GNI_P_SOFTMAX_IN_BASE, (unsigned)GNI_P_SOFTMAX_ROW_STRIDE, shift, (unsigned)GNI_P_SOFTMAX_OUT_BASE,
        (unsigned)GNI_P_SOFTMAX_N, shift);
    gni_wg_say(t, "var m = a[ia];\nfor (var k = 1u; k < n; k++) { m = max(m, a[ia + k]); }\nvar top = top4(m);\n%s",
               log ? "if ((bitcast<u32>(top) & 0x7fffffffu) == 0x7f800000u) { top = 0.0; }\n" : "");
    gni_wg_say(t,
               "var s = T();\nfor (var k0 = 0u; k0 < n; k0 += 32u) {\nvar u = T();\nlet end = min(k0 + 32u, n);\n"
               "for (var k = k0; k < end; k++) { let e = ex(a[ia + k] - T(top)); u += e; %s}\ns += u;\n}\n",
               log ? "" : "o[io + k] = e; ");
    if (log)
        gni_wg_say(
            t,
            "var x = vec4<u32>(bitcast<u32>(sum4(s))); var y = x; var z = x; let f = bitcast<f32>(o%u(&x, &y, &z).x);\n"
            "for (var k = 0u; k < n; k++) { o[io + k] = a[ia + k] - T(top) - T(f); }\n}\n}\n",
            GNI_OP_LOG * 3u + GNI_F);
    else gni_wg_say(t, "let f = 1.0 / sum4(s);\nfor (var k = 0u; k < n; k++) { o[io + k] *= T(f); }\n}\n}\n");
}

enum { GNI_WG_ROWS = 8, GNI_WG_COLUMNS = 4 }; // of float32, of vectors of it: what an invocation makes of a product

// Where operands begin: those of a at rows from r on, of b at columns from c on. Where they are read along k, each row is
// four steps of k; else a vector of rows for each step. Inside of the loop (`loads`) what is there, as x0, x1, ... or as
// x0_0, x0_1, ...
static void gni_wg_operand_text(gni_wg_text *t, char name, int count, bool along_k, bool loads) {
    const char first = name == 'x' ? 'r' : 'c';
    for (int q = 0; q < (along_k ? 1 : 4) && loads; q++) gni_wg_say(t, "let %ck%d = (k + %du) * %ck;\n", name, q, q, name);
    for (int i = 0; i < (along_k ? 4 * count : count); i++)
        if (!loads) gni_wg_say(t, "let %co%d = %cs + (%c + %du) * %cr;\n", name, i, name, first, along_k ? i : 4 * i, name);
        else if (along_k) gni_wg_say(t, "let %c%d = r%c(%co%d + %ck0);\n", name, i, name, name, i, name);
        else
            for (int q = 0; q < 4; q++)
                gni_wg_say(t, "let %c%d_%d = r%c(%co%d + %ck%d);\n", name, i, q, name, name, i, name, q);
}

// What kernels of products begin with: operands x and y (rx(j): 4 elements from j on, along k or along the other dimension;
// ex(j): one), put(row, column, batch, 4 elements of a row) with bias and relu, and what main begins with: the tile's first
// row r0 and column c0, strides, bases of this batch. Parameters are those of matmul.comp, places of tiles and batches those
// of matrix.glsl.
static void gni_wg_product_head(gni_wg_text *t, uint32_t layout, int bm, int bn, const char *before_main, const char *size) {
    const bool a_k = !(layout & GNI_F_MATMUL_A_ALONG_M), b_k = (layout & GNI_F_MATMUL_B_ALONG_K) != 0;
    const bool groups[3] = {(layout & GNI_F_MATMUL_A_GROUPS) != 0, (layout & GNI_F_MATMUL_B_GROUPS) != 0,
                            (layout & GNI_F_MATMUL_C_GROUPS) != 0};
    const int step[2] = {a_k ? GNI_P_MATMUL_A_COLUMN : GNI_P_MATMUL_A_ROW, b_k ? GNI_P_MATMUL_B_ROW : GNI_P_MATMUL_B_COLUMN};
    for (int i = 0; i < 3; i++)
        gni_wg_say(t, "@group(0) @binding(%d) var<storage, %s> %c : array<%s>;\n", i + 1, i == 2 ? "read_write" : "read",
                   "xyz"[i], groups[i] ? "vec4<f32>" : "f32");
    for (int i = 0; i < 2; i++) {
        const char c = "xy"[i];
        if (groups[i])
            gni_wg_say(t,
                       "fn r%c(j : u32) -> vec4<f32> { return %c[j >> 2u]; }\nfn e%c(j : u32) -> f32 { return %c[j >> 2u][j "
                       "& 3u]; }\n",
                       c, c, c, c);
        else
            gni_wg_say(t,
                       "fn e%c(j : u32) -> f32 { return %c[j]; }\nfn r%c(j : u32) -> vec4<f32> { let s = P(%du); "
                       "return vec4<f32>(%c[j], %c[j + s], %c[j + 2u * s], %c[j + 3u * s]); }\n",
                       c, c, c, step[i], c, c, c, c);
    }
    if (layout & GNI_F_MATMUL_BIAS) gni_wg_say(t, "@group(0) @binding(4) var<storage, read> bias : array<f32>;\n");
    gni_wg_say(t,
               "fn put(row : u32, column : u32, batch : u32, v0 : vec4<f32>) {\nlet n = P(%uu);\n"
               "if (row >= P(%uu) || column >= n) { return; }\nvar v = v0;\nlet j = P(%uu) + (batch * P(%uu) + row) * "
               "P(%uu) + column;\n",
               (unsigned)GNI_P_MATMUL_N, (unsigned)GNI_P_MATMUL_M, (unsigned)GNI_P_MATMUL_C_BASE, (unsigned)GNI_P_MATMUL_M,
               (unsigned)GNI_P_MATMUL_C_ROW);
    if (layout & GNI_F_MATMUL_BIAS)
        gni_wg_say(t, "let b = P(%uu) + column;\nv += vec4<f32>(bias[b], bias[b + 1u], bias[b + 2u], bias[b + 3u]);\n",
                   (unsigned)GNI_P_MATMUL_BIAS_BASE);
    // By its bits what is below 0 is no NaN, which compilers of WGSL may suppose that there are none of.
    if (layout & GNI_F_MATMUL_RELU)
        gni_wg_say(
            t, "v = select(v, vec4<f32>(), (bitcast<vec4<u32>>(v) ^ vec4<u32>(0x80000000u)) <= vec4<u32>(0x7f800000u));\n");
    if (groups[2]) gni_wg_say(t, "if (column + 4u <= n) { z[j >> 2u] = v; return; }\n");
    gni_wg_say(t, "for (var e = 0u; e < min(n - column, 4u); e++) { %s = v[e]; }\n}\n",
               groups[2] ? "z[j >> 2u][e]" : "z[j + e]");
    gni_wg_say(
        t,
        "%s@compute @workgroup_size(%s) fn main(@builtin(workgroup_id) wg : vec3<u32>, @builtin(local_invocation_id) me : "
        "vec3<u32>) {\nlet area = P(%uu) * P(%uu); let first = wg.x / area * P(%uu); let i = wg.x %% area;\n"
        "let high = min(P(%uu) - first, P(%uu));\n"
        "let r0 = (first + i %% high) * %du; let c0 = i / high * %du;\n",
        before_main, size, (unsigned)GNI_P_MATMUL_STRIPE, (unsigned)GNI_P_MATMUL_TILES_N, (unsigned)GNI_P_MATMUL_STRIPE,
        (unsigned)GNI_P_MATMUL_TILES_M, (unsigned)GNI_P_MATMUL_STRIPE, bm, bn);
    gni_wg_say(t,
               "let xr = P(%uu); let xk = P(%uu); let yr = P(%uu); let yk = P(%uu);\n"
               "var xs = P(%uu); var ys = P(%uu); var b = wg.z;\nfor (var d = P(%uu); d > 0u; d--) {\nlet at = %uu + 3u * "
               "(d - 1u); "
               "let q = b / P(at); let w = b - q * P(at);\nxs += w * P(at + 1u); ys += w * P(at + 2u); b = q;\n}\n",
               (unsigned)GNI_P_MATMUL_A_ROW, (unsigned)GNI_P_MATMUL_A_COLUMN, (unsigned)GNI_P_MATMUL_B_COLUMN,
               (unsigned)GNI_P_MATMUL_B_ROW, (unsigned)GNI_P_MATMUL_A_BASE, (unsigned)GNI_P_MATMUL_B_BASE,
               (unsigned)GNI_P_MATMUL_BATCH_RANK, (unsigned)GNI_P_MATMUL_BATCH);
}

// A tile of 32 x 32 by 8 invocations, straight from memory: dispatched as matmul_32x32s is.
static void gni_wg_product_text(gni_wg_text *t, uint32_t layout) {
    const bool a_k = !(layout & GNI_F_MATMUL_A_ALONG_M), b_k = (layout & GNI_F_MATMUL_B_ALONG_K) != 0;
    gni_wg_product_head(t, layout, 32, 32, "", "2, 4");
    gni_wg_say(t, "let r = r0 + me.y * 8u; let c = c0 + me.x * 16u;\n");
    gni_wg_operand_text(t, 'x', GNI_WG_ROWS / 4, a_k, false);
    gni_wg_operand_text(t, 'y', GNI_WG_COLUMNS, b_k, false);
    for (int i = 0; i < GNI_WG_ROWS; i++)
        for (int j = 0; j < GNI_WG_COLUMNS; j++) gni_wg_say(t, "var s%d_%d = vec4<f32>();\n", i, j);
    gni_wg_say(t, "let whole = P(%uu) & 0xfffffffcu;\nfor (var k = 0u; k < whole; k += 4u) {\n", (unsigned)GNI_P_MATMUL_K);
    gni_wg_operand_text(t, 'x', GNI_WG_ROWS / 4, a_k, true);
    gni_wg_operand_text(t, 'y', GNI_WG_COLUMNS, b_k, true);
    for (int q = 0; q < 4; q++) {
        const char e = "xyzw"[q];
        for (int j = 0; j < GNI_WG_COLUMNS; j++)
            if (b_k)
                gni_wg_say(t, "let y%d_%d = vec4<f32>(y%d.%c, y%d.%c, y%d.%c, y%d.%c);\n", j, q, 4 * j, e, 4 * j + 1, e,
                           4 * j + 2, e, 4 * j + 3, e);
        for (int i = 0; i < GNI_WG_ROWS; i++)
            for (int j = 0; j < GNI_WG_COLUMNS; j++) {
                if (a_k) gni_wg_say(t, "s%d_%d += x%d.%c * y%d_%d;\n", i, j, i, e, j, q);
                else gni_wg_say(t, "s%d_%d += x%d_%d.%c * y%d_%d;\n", i, j, i / 4, q, "xyzw"[i & 3], j, q);
            }
    }
    gni_wg_say(t, "}\n");
    if (!(layout & GNI_F_MATMUL_WHOLE)) {
        gni_wg_say(t, "for (var k = whole; k < P(%uu); k++) {\n", (unsigned)GNI_P_MATMUL_K);
        for (int j = 0; j < GNI_WG_COLUMNS; j++) {
            gni_wg_say(t, "let y%d = vec4<f32>(", j);
            for (int e = 0; e < 4; e++)
                gni_wg_say(t, "ey(ys + (c + %du) * yr + k * yk)%s", 4 * j + e, e < 3 ? ", " : ");\n");
        }
        for (int i = 0; i < GNI_WG_ROWS; i++) {
            gni_wg_say(t, "let x%d = ex(xs + (r + %du) * xr + k * xk);\n", i, i);
            for (int j = 0; j < GNI_WG_COLUMNS; j++) gni_wg_say(t, "s%d_%d += x%d * y%d;\n", i, j, i, j);
        }
        gni_wg_say(t, "}\n");
    }
    for (int i = 0; i < GNI_WG_ROWS; i++)
        for (int j = 0; j < GNI_WG_COLUMNS; j++) gni_wg_say(t, "put(r + %du, c + %du, wg.z, s%d_%d);\n", i, 4 * j, i, j);
    gni_wg_say(t, "}\n");
}

// ---- softmax of aligned rows of float32, and products, on GPUs

// A row by a team of lanes that hold it, as in softmax.comp, whose parameters and specialisation these are.
static void gni_wg_rows_text(gni_wg_text *t, const uint32_t *spec, int vectors) {
    const bool log = spec[GNI_S_SOFTMAX_KIND] == GNI_LOG_SOFTMAX;
    const unsigned lanes = 1u << spec[GNI_S_SOFTMAX_LOG_LANES], teams = 256u / lanes, few = GNI_MIN(lanes, 16u);
    gni_wg_say(t, "alias T = vec4<f32>; alias I = vec4<i32>;\n");
    gni_wg_exp_text(t, true);
    // Two steps instead of a tree: waiting for each other takes longer than a few sums.
    for (int add = 0; add < 2; add++) {
        const char *join = add ? "v += w;" : "v = max(v, w);";
        gni_wg_say(t,
                   "fn team%d(me : u32, v0 : f32) -> f32 {\nlet first = me / %uu * %uu; var v = "
                   "v0;\nworkgroupBarrier();\nta[me] = v;\n"
                   "workgroupBarrier();\n",
                   add, lanes, lanes);
        if (lanes > 16)
            gni_wg_say(
                t,
                "if (me - first < 16u) {\nfor (var k = 1u; k < %uu; k++) { let w = ta[me + 16u * k]; %s }\ntb[me] = v;\n}\n"
                "workgroupBarrier();\n",
                lanes / 16, join);
        gni_wg_say(t, "v = %s[first];\nfor (var k = 1u; k < %uu; k++) { let w = %s[first + k]; %s }\nreturn v;\n}\n",
                   lanes > 16 ? "tb" : "ta", few, lanes > 16 ? "tb" : "ta", join);
    }
    gni_wg_say(t,
               "var<workgroup> ta : array<f32, 256>;\nvar<workgroup> tb : array<f32, 256>;\n"
               "@group(0) @binding(1) var<storage, read> a : array<T>;\n@group(0) @binding(2) var<storage, read_write> o : "
               "array<T>;\n"
               "@compute @workgroup_size(256) fn main(@builtin(workgroup_id) wg : vec3<u32>, @builtin(num_workgroups) ng : "
               "vec3<u32>, "
               "@builtin(local_invocation_index) me : u32) {\ngn_zero = P(%uu);\nlet n = P(%uu) >> 2u; let rows = P(%uu);\n",
               (unsigned)GNI_WG_PARAM_BYTES / 4u - 1u, (unsigned)GNI_P_SOFTMAX_N, (unsigned)GNI_P_SOFTMAX_ROWS);
    // Lanes of rows that do not exist work on the last one and write nothing.
    gni_wg_say(t,
               "%slet first = (wg.x + z * ng.x) * %uu; if (first >= rows) { break; }\nlet row = first + me / %uu; let held = "
               "min(row, rows - 1u); "
               "let lane = me %% %uu;\nlet ia = ((P(%uu) + held * P(%uu)) >> 2u) + lane; let io = ((P(%uu) + row * P(%uu)) "
               ">> 2u) + lane;\n",
               gni_wg_rounds, teams, lanes, lanes, (unsigned)GNI_P_SOFTMAX_IN_BASE, (unsigned)GNI_P_SOFTMAX_ROW_STRIDE,
               (unsigned)GNI_P_SOFTMAX_OUT_BASE, (unsigned)GNI_P_SOFTMAX_N);
    gni_wg_say(
        t,
        "var x : array<T, %d>;\nvar m = T(bitcast<f32>(0xff800000u | gn_zero));\nfor (var k = 0u; k < %du; k++) {\nx[k] = "
        "m;\n}\n"
        "for (var k = 0u; k < %du; k++) {\nif (lane + k * %uu < n) { x[k] = a[ia + k * %uu]; }\n}\n"
        "for (var k = 0u; k < %du; k++) { m = max(m, x[k]); }\nvar top = team0(me, max(max(m.x, m.y), max(m.z, m.w)));\n%s",
        vectors, vectors, vectors, lanes, lanes, vectors,
        log ? "if ((bitcast<u32>(top) & 0x7fffffffu) == 0x7f800000u) { top = 0.0; }\n" : "");
    gni_wg_say(t,
               "var s = T();\nfor (var k = 0u; k < %du; k++) {\nlet y = x[k] - T(top); let e = ex(y); s += e; x[k] = %s;\n}\n"
               "let sum = team1(me, (s.x + s.y) + (s.z + s.w));\n",
               vectors, log ? "y" : "e");
    if (log)
        gni_wg_say(t,
                   "var u = vec4<u32>(bitcast<u32>(sum)); var v = u; var w = u; let f = bitcast<f32>(o%u(&u, &v, &w).x);\n",
                   GNI_OP_LOG * 3u + GNI_F);
    else gni_wg_say(t, "let f = 1.0 / sum;\n");
    gni_wg_say(t,
               "if (row < rows) {\nfor (var k = 0u; k < %du; k++) {\nif (lane + k * %uu < n) { o[io + k * %uu] = x[k] %c "
               "T(f); }\n}\n}\n}\n}\n",
               vectors, lanes, lanes, log ? '-' : '*');
}

static const struct {
    int module, bm, bn;
} gni_wg_tiles[] = {
    {GNI_MODULE_matmul_64x128, 64, 128}, {GNI_MODULE_matmul_64x64, 64, 64}, {GNI_MODULE_matmul_32x64, 32, 64}};

// An operand of such a kernel (x or y), of `rows` rows (columns of y). Shared memory holds `step` of k twice: of what is read
// along k its rows, vectors of 4 of k each, else vectors of rows for each k.
typedef struct gni_wg_side {
    char name;
    bool along_k;
    int rows, step, count; // count: vectors that an invocation moves
} gni_wg_side;

// Where a vector lies there, `k` and `row` being expressions. Of y's rows neighbours are read by neighbours, so that they are
// turned into other banks. Compilers see that what is `%` or comes of it is inside.
static void gni_wg_side_place(gni_wg_text *t, const gni_wg_side *s, const char *k, const char *row) {
    if (!s->along_k) gni_wg_say(t, "(%s) * %du + %s", k, s->rows / 4, row);
    else if (s->name == 'x') gni_wg_say(t, "(%s) * %du + %s", row, s->step / 4, k);
    else
        gni_wg_say(t, "(((%s) ^ (((%s) >> %du) & %du)) %% %du) * %du + ((%s) ^ ((%s) >> %du)) %% %du", row, row,
                   s->step == 16 ? 4 : 2, s->step == 16 ? 1 : 3, s->rows, s->step / 4, k, row, s->step == 16 ? 2 : 4,
                   s->step / 4);
}

// Where an invocation's part of it lies in memory (g), in shared memory (t) and along k (k).
static void gni_wg_side_begin(gni_wg_text *t, const gni_wg_side *s, int lanes) {
    const char c = s->name;
    const int across = s->along_k ? s->step / 4 : s->rows / 4;
    for (int i = 0; i < s->count; i++) {
        char k[32], row[32];
        gni_wg_say(t, "let %ce%d = (me.x + %du) %% %du; let %cf%d = (me.x + %du) / %du;\n", c, i, lanes * i, across, c, i,
                   lanes * i, across);
        snprintf(k, sizeof k, "%c%c%d", c, s->along_k ? 'e' : 'f', i);
        snprintf(row, sizeof row, "%c%c%d", c, s->along_k ? 'f' : 'e', i);
        gni_wg_say(
            t,
            "let %ck%d = %s%s; let %cg%d = %cs + (%s + %s%s) * %cr + %ck%d * %ck; var %cn%d = vec4<f32>();\nlet %ct%d = ", c,
            i, k, s->along_k ? " * 4u" : "", c, i, c, c == 'x' ? "r0" : "c0", row, s->along_k ? "" : " * 4u", c, c, i, c, c,
            i, c, i);
        gni_wg_side_place(t, s, k, row);
        gni_wg_say(t, ";\n");
    }
}

// The step of k at kt, into variables.
static void gni_wg_side_load(gni_wg_text *t, const gni_wg_side *s, bool whole) {
    const char c = s->name;
    for (int i = 0; i < s->count; i++) {
        gni_wg_say(t, "%cn%d = r%c(%cg%d + kt * %ck);\n", c, i, c, c, i, c);
        if (whole) continue;
        if (s->along_k)
            gni_wg_say(
                t,
                "%cn%d = select(%cn%d, vec4<f32>(), (vec4<u32>(kt + %ck%d) + vec4<u32>(0u, 1u, 2u, 3u)) >= vec4<u32>(kn));\n",
                c, i, c, i, c, i);
        else gni_wg_say(t, "if (kt + %ck%d >= kn) { %cn%d = vec4<f32>(); }\n", c, i, c, i);
    }
}

static void gni_wg_side_store(gni_wg_text *t, const gni_wg_side *s, const char *half) {
    for (int i = 0; i < s->count; i++)
        gni_wg_say(t, "%cm[%s * %du + %ct%d] = %cn%d;\n", s->name, half, s->rows * s->step / 4, s->name, i, s->name, i);
}

// Reads vector `row` (rows, where it is read along k) at k from the half of round z.
static void gni_wg_side_read(gni_wg_text *t, const gni_wg_side *s, const char *k, const char *row) {
    gni_wg_say(t, "%cm[(z %% 2u) * %du + ", s->name, s->rows * s->step / 4);
    gni_wg_side_place(t, s, k, row);
    gni_wg_say(t, "];\n");
}

// A tile by invocations that make 8 x 8 each, four columns in either half. While a step of k is computed with, which is
// written out, the next one is on its way.
static void gni_wg_tile_text(gni_wg_text *t, uint32_t layout, int bm, int bn) {
    const bool a_k = !(layout & GNI_F_MATMUL_A_ALONG_M), b_k = (layout & GNI_F_MATMUL_B_ALONG_K) != 0;
    const bool whole = (layout & GNI_F_MATMUL_WHOLE) != 0;
    const int lanes = bm * bn / 64, step = (bm + bn) * 128 <= (int)t->w->gpu.caps.shared_bytes ? 16 : 8;
    const gni_wg_side x = {'x', a_k, bm, step, bm * step / 4 / lanes}, y = {'y', b_k, bn, step, bn * step / 4 / lanes};
    char shared[160], size[16], k[16], row[48];
    snprintf(shared, sizeof shared, "var<workgroup> xm : array<vec4<f32>, %d>;\nvar<workgroup> ym : array<vec4<f32>, %d>;\n",
             bm * step / 2, bn * step / 2);
    snprintf(size, sizeof size, "%d", lanes);
    gni_wg_product_head(t, layout, bm, bn, shared, size);
    gni_wg_say(t, "let kn = P(%uu); var kt = 0u; let tx = me.x %% %du; let ty = me.x / %du;\n", (unsigned)GNI_P_MATMUL_K,
               bn / 8, bn / 8);
    for (int i = 0; i < 8; i++) gni_wg_say(t, "var s%d_0 = vec4<f32>(); var s%d_1 = s%d_0;\n", i, i, i);
    gni_wg_side_begin(t, &x, lanes);
    gni_wg_side_begin(t, &y, lanes);
    gni_wg_side_load(t, &x, whole);
    gni_wg_side_load(t, &y, whole);
    gni_wg_side_store(t, &x, "0u");
    gni_wg_side_store(t, &y, "0u");
    gni_wg_say(t, "workgroupBarrier();\n%sif (kn == 0u) { break; }\nkt += %du;\nif (kt < kn) {\n", gni_wg_rounds, step);
    gni_wg_side_load(t, &x, whole);
    gni_wg_side_load(t, &y, whole);
    gni_wg_say(t, "}\n");
    for (int q = 0; q < step / 4; q++) {
        gni_wg_say(t, "{\n");
        for (int i = 0; i < 8; i++) {
            if (a_k) gni_wg_say(t, "let x%d = ", i);
            else gni_wg_say(t, "let x%d_%d = ", i / 2, i % 2);
            snprintf(k, sizeof k, "%du", a_k ? q : 4 * q + i / 2);
            snprintf(row, sizeof row, "ty + %du", bm / 8 * (a_k ? i : i % 2));
            gni_wg_side_read(t, &x, k, row);
        }
        for (int i = 0; i < 8; i++) { // of y's half i / 4
            gni_wg_say(t, "let %c%d_%d = ", b_k ? 'z' : 'y', i / 4, i % 4);
            snprintf(k, sizeof k, "%du", b_k ? q : 4 * q + i % 4);
            snprintf(row, sizeof row, b_k ? "tx * 4u + %du" : "tx + %du", b_k ? i / 4 * bn / 2 + i % 4 : i / 4 * bn / 8);
            gni_wg_side_read(t, &y, k, row);
        }
        for (int e = 0; e < 4; e++) {
            const char l = "xyzw"[e];
            for (int h = 0; b_k && h < 2; h++)
                gni_wg_say(t, "let y%d_%d = vec4<f32>(z%d_0.%c, z%d_1.%c, z%d_2.%c, z%d_3.%c);\n", h, e, h, l, h, l, h, l, h,
                           l);
            for (int i = 0; i < 16; i++) {
                const int r = i / 2, h = i % 2;
                if (a_k) gni_wg_say(t, "s%d_%d = fma(vec4<f32>(x%d.%c), y%d_%d, s%d_%d);\n", r, h, r, l, h, e, r, h);
                else
                    gni_wg_say(t, "s%d_%d = fma(vec4<f32>(x%d_%d.%c), y%d_%d, s%d_%d);\n", r, h, e, r / 4, "xyzw"[r & 3], h,
                               e, r, h);
            }
        }
        gni_wg_say(t, "}\n");
    }
    gni_wg_say(t, "if (kt >= kn) { break; }\n");
    gni_wg_side_store(t, &x, "((z + 1u) % 2u)");
    gni_wg_side_store(t, &y, "((z + 1u) % 2u)");
    gni_wg_say(t, "workgroupBarrier();\n}\n");
    for (int i = 0; i < 16; i++) {
        if (a_k) snprintf(row, sizeof row, "ty + %du", bm / 8 * (i / 2));
        else snprintf(row, sizeof row, "4u * (ty + %du) + %du", bm / 8 * (i / 8), i / 2 % 4);
        gni_wg_say(t, "put(r0 + %s, c0 + tx * 4u + %du, wg.z, s%d_%d);\n", row, i % 2 * bn / 2, i / 2, i % 2);
    }
    gni_wg_say(t, "}\n");
}

// ---- which kernels are written here

// Such a tile of float32 (its place among the tiles), or -1.
static int gni_wg_tile_of(const gni_gpu_kernel *k) {
    for (int i = 0; i < (int)GNI_COUNT(gni_wg_tiles); i++)
        if (gni_wg_tiles[i].module == k->module) return i;
    return -1;
}

// Whether a kernel has such a form.
static bool gni_wg_is_own(const gni_wg *w, const gni_gpu_kernel *k) {
    const uint32_t *spec = k->spec;
    const bool alone = w->gpu.caps.alone > 0;
    if (gni_wg_tile_of(k) >= 0) return true;
    if (k->module == GNI_MODULE_softmax_1 || k->module == GNI_MODULE_softmax_4 || k->module == GNI_MODULE_softmax_8)
        return spec[GNI_S_SOFTMAX_DTYPE] == (GNI_T_F32 | GNI_T_F32 << 4) && spec[GNI_S_SOFTMAX_KIND] != GNI_LOGSUMEXP &&
               (alone || spec[GNI_S_SOFTMAX_ALIGNED] == (GNI_F_SOFTMAX_IN_GROUPS | GNI_F_SOFTMAX_OUT_GROUPS));
    if (!alone) return false;
    const uint32_t most = GNI_F_MATMUL_A_ALONG_M | GNI_F_MATMUL_A_GROUPS | GNI_F_MATMUL_B_ALONG_K | GNI_F_MATMUL_B_GROUPS |
                          GNI_F_MATMUL_C_GROUPS | GNI_F_MATMUL_BIAS | GNI_F_MATMUL_RELU | GNI_F_MATMUL_WHOLE;
    return k->module == GNI_MODULE_matmul_32x32s && k->n_spec == GNI_S_MATMUL_SPECS &&
           !(spec[GNI_S_MATMUL_LAYOUT] & ~most) && spec[GNI_S_MATMUL_A_DTYPE] == GNI_T_F32 &&
           spec[GNI_S_MATMUL_B_DTYPE] == GNI_T_F32 && spec[GNI_S_MATMUL_C_DTYPE] == GNI_T_F32;
}

static void gni_wg_own_text(gni_wg_text *t, const gni_gpu_kernel *k, gni_wg_program_words *p) {
    const int tile = gni_wg_tile_of(k);
    gni_wg_head(t, p);
    if (tile >= 0 || k->module == GNI_MODULE_matmul_32x32s) {
        const uint32_t layout = k->spec[GNI_S_MATMUL_LAYOUT];
        p->buffers = layout & GNI_F_MATMUL_BIAS ? 15u : 7u;
        p->written = 4u;
        if (tile >= 0) gni_wg_tile_text(t, layout, gni_wg_tiles[tile].bm, gni_wg_tiles[tile].bn);
        else gni_wg_product_text(t, layout);
        return;
    }
    char name[16];
    snprintf(name, sizeof name, "o%u", GNI_OP_LOG * 3u + GNI_F);
    if (k->spec[GNI_S_SOFTMAX_KIND] == GNI_LOG_SOFTMAX) gni_wg_want_name(t, name);
    p->buffers = 3u;
    p->written = 2u;
    if (t->w->gpu.caps.alone > 0) gni_wg_softmax_text(t, k->spec);
    else
        gni_wg_rows_text(t, k->spec, k->module == GNI_MODULE_softmax_1 ? 1 : k->module == GNI_MODULE_softmax_4 ? 4 : 8);
}

// The text of a program's kernel, which the caller frees, or NULL after gni_fail.
static char *gni_wg_program(gni_wg *w, const gni_gpu_kernel *k, uint32_t *buffers, uint32_t *written) {
    gni_wg_program_words p;
    gni_wg_text t;
    memset(&p, 0, sizeof p);
    memset(&t, 0, sizeof t);
    t.w = w;
    if (!gni_wg_library(w)) return NULL;
    w->mark++;
    if (gni_wg_is_own(w, k)) {
        gni_wg_own_text(&t, k, &p);
    } else {
        gni_wg_read_words(k, &p);
        gni_wg_choose_types(&p);
        gni_wg_head(&t, &p);
        if (p.reduces) gni_wg_reduce_text(&t, &p);
        else if (p.word[GNI_P_PROGRAM_HOW] >> 4 & 1u) gni_wg_tiles_text(&t, &p);
        else gni_wg_map_text(&t, &p);
    }
    *buffers = p.buffers;
    *written = p.written;
    if (!t.failed) return t.s;
    gni_free(w->gpu.g, t.s);
    gni_fail(w->gpu.g, GN_ERROR_OUT_OF_MEMORY, "a program's kernel could not be written");
    return NULL;
}

#endif // GNI_WEBGPU
