#version 450
// Random numbers that take float64 or int64: uniform and normal float64 and integers of ranges above 2^32, of the same
// blocks of Philox as random.comp's, and distributions, whose elements have streams of their own. What is returned takes
// + - * / and the square root alone, none of them fused: the same bits as of room cpu_random of gpunum.h, which says what
// is done here. Numbers at even distances too.
//
//! no-bindings
//! variant draw
#extension GL_GOOGLE_include_directive : require
#extension GL_ARB_gpu_shader_int64 : require
#define GN_BUFFERS 1
#include "gn.glsl"
#include "math.glsl"
#include "random.glsl"

layout(local_size_x = 128) in;

double gn_number(int i) {
    return packDouble2x32(uvec2(GN_PARAM(GNI_P_DRAW_NUMBERS + 2 * i), GN_PARAM(GNI_P_DRAW_NUMBERS + 2 * i + 1)));
}

// ---- numbers out of words

// The first 53 bits of a pair, from 0 to 1.
double gn_fraction(uvec2 w) { return (double(w.y) * 2097152.0lf + double(w.x >> 11)) * 1.1102230246251565e-16lf; }

// -log(u) for 0 < u.
double gn_minus_log(double u) {
    const double odd[11] = double[11](
        0.043478260869565216lf, 0.047619047619047616lf, 0.05263157894736842lf, 0.058823529411764705lf,
        0.06666666666666667lf, 0.07692307692307693lf, 0.09090909090909091lf, 0.1111111111111111lf,
        0.14285714285714285lf, 0.2lf, 0.3333333333333333lf);
    uint64_t bits = packUint2x32(unpackDouble2x32(u)) - 0x3fe6a09e667f3bcdUL; // sqrt(1/2)
    int k = int(int64_t(bits) >> 52);
    precise double m = packDouble2x32(unpackUint2x32((bits & 0xfffffffffffffUL) + 0x3fe6a09e667f3bcdUL));
    precise double over = m - 1.0lf, under = m + 1.0lf, s = over / under, z = s * s, p = 0.0lf;
    for (int i = 0; i < 11; i++) {
        p = p + odd[i];
        p = p * z;
    }
    precise double y = -(double(k) * 0.69314718055994530942lf + (s + s) * (p + 1.0lf));
    return y;
}

double gn_exp64(double x) {
    const double part[14] = double[14](
        0.07142857142857142lf, 0.07692307692307693lf, 0.08333333333333333lf, 0.09090909090909091lf, 0.1lf,
        0.1111111111111111lf, 0.125lf, 0.14285714285714285lf, 0.16666666666666666lf, 0.2lf, 0.25lf,
        0.3333333333333333lf, 0.5lf, 1.0lf);
    precise double n = floor(x * 1.4426950408889634lf + 0.5lf);
    precise double r = (x - n * 0.69314718036912382lf) - n * 1.9082149292705877e-10lf, p = 1.0lf;
    for (int i = 0; i < 14; i++) p = 1.0lf + r * part[i] * p;
    precise double y = p * packDouble2x32(uvec2(0u, uint(int(n) + 1023) << 20));
    return y;
}

dvec2 gn_normals(uvec4 w) {
    const double sine[8] = double[8](
        0.003676470588235294lf, 0.004761904761904762lf, 0.00641025641025641lf, 0.00909090909090909lf,
        0.013888888888888888lf, 0.023809523809523808lf, 0.05lf, 0.16666666666666666lf);
    const double cosine[8] = double[8](
        0.004166666666666667lf, 0.005494505494505495lf, 0.007575757575757576lf, 0.011111111111111112lf,
        0.017857142857142856lf, 0.03333333333333333lf, 0.08333333333333333lf, 0.5lf);
    precise double u = 1.0lf - gn_fraction(w.xy), r = sqrt(2.0lf * gn_minus_log(u));
    // 50 bits of the second pair
    precise double x = ((double(w.w & 0x1fffffffu) * 2097152.0lf + double(w.z >> 11)) + 0.5lf) * 6.9757369960172635e-16lf;
    precise double z = x * x, p = 0.0lf, q = 0.0lf;
    for (int i = 0; i < 8; i++) {
        p = (1.0lf - p) * (z * sine[i]);
        q = (1.0lf - q) * (z * cosine[i]);
    }
    p = r * (x * (1.0lf - p));
    q = r * (1.0lf - q);
    dvec2 y = (w.w & 0x20000000u) != 0u ? dvec2(q, p) : dvec2(p, q);
    return dvec2((w.w & 0x80000000u) != 0u ? -y.x : y.x, (w.w & 0x40000000u) != 0u ? -y.y : y.y);
}

// log Gamma(x) for x from 1 on, to compare with.
double gn_lgamma64(double x) {
    const double c[8] = double[8](
        -0.029550653594771242lf, 0.00641025641025641lf, -0.0019175269175269176lf, 0.0008417508417508417lf,
        -0.0005952380952380953lf, 0.0007936507936507937lf, -0.002777777777777778lf, 0.08333333333333333lf);
    precise double product = 1.0lf, p = 0.0lf;
    for (; x < 8.0lf; x += 1.0lf) product *= x;
    precise double u = 1.0lf / x, z = u * u;
    for (int i = 0; i < 8; i++) p = p * z + c[i];
    precise double y = gn_minus_log(product) - (x - 0.5lf) * gn_minus_log(x) - x + (0.91893853320467274178lf + p * u);
    return y;
}

// ---- an element's own stream

uvec2 gn_element;
uint gn_part, gn_at;
uvec4 gn_word;

void gn_more() {
    gn_part++;
    gn_word = gn_philox(uvec4(gn_element, gn_part, 0u), GN_KEY);
    gn_at = 0u;
}
double gn_uniform64() {
    if (gn_at > 2u) gn_more();
    uvec2 w = gn_at == 0u ? gn_word.xy : gn_word.zw;
    gn_at += 2u;
    return 1.0lf - gn_fraction(w);
}
double gn_normal64() {
    gn_more();
    gn_at = 4u;
    return gn_normals(gn_word).x;
}
double gn_exponential64() { return gn_minus_log(gn_uniform64()); }

// Loops that reject hand over what they found by a variable of their own: lavapipe gives invocations that have returned from
// one what the others compute after them.
double gn_gamma64(int first, out double boost) {
    precise double shape = gn_number(first + GNI_D_GAMMA_SHAPE), d = gn_number(first + GNI_D_GAMMA_D);
    precise double c = gn_number(first + GNI_D_GAMMA_C), found = 0.0lf;
    bool takes = false;
    while (!takes) {
        precise double x = gn_normal64(), u = 1.0lf + c * x, v = u * u * u;
        if (u <= 0.0lf) continue;
        precise double have = -gn_exponential64(), need = 0.5lf * x * x + d * (1.0lf - v - gn_minus_log(v));
        takes = have < need;
        if (takes) found = d * v;
    }
    precise double more = shape < 1.0lf ? -gn_exponential64() / shape : 0.0lf;
    boost = more;
    return found;
}

double gn_poisson64() {
    double found = 0.0lf, least = gn_number(GNI_D_LEAST);
    if (least > 0.0lf) {
        precise double product = gn_uniform64();
        for (; product > least; found += 1.0lf) product = product * gn_uniform64();
        return found;
    }
    precise double mean = gn_number(GNI_D_MEAN), a = gn_number(GNI_D_A), b = gn_number(GNI_D_B), factor = gn_number(GNI_D_FACTOR);
    double top = gn_number(GNI_D_TOP), log_mean = gn_number(GNI_D_LOG);
    bool takes = false;
    while (!takes) {
        precise double u = gn_uniform64() - 0.5lf, v = gn_uniform64(), near_end = 0.5lf - abs(u);
        if (near_end <= 0.0lf) continue;
        precise double at = (2.0lf * a / near_end + b) * u + mean + 0.43lf, k = floor(at);
        takes = near_end >= 0.07lf && v <= top;
        if (!takes && k >= 0.0lf && (near_end >= 0.013lf || v <= near_end)) {
            precise double have = -gn_minus_log(v * factor / (a / (near_end * near_end) + b));
            precise double most = k * log_mean - mean - gn_lgamma64(k + 1.0lf);
            takes = have <= most;
        }
        if (takes) found = k;
    }
    return found;
}

double gn_binomial64() {
    double found = 0.0lf, least = gn_number(GNI_D_LEAST), n = gn_number(GNI_D_TRIALS);
    bool takes = false;
    if (least > 0.0lf) {
        precise double at = floor(gn_exponential64() / least) + 1.0lf;
        for (; at <= n; found += 1.0lf) at += floor(gn_exponential64() / least) + 1.0lf;
        takes = true;
    }
    precise double mean = gn_number(GNI_D_MEAN), a = gn_number(GNI_D_A), b = gn_number(GNI_D_B);
    double factor = gn_number(GNI_D_FACTOR), top = gn_number(GNI_D_TOP), odds = gn_number(GNI_D_LOG);
    double height = gn_number(GNI_D_HEIGHT), mode = gn_number(GNI_D_MODE);
    while (!takes) {
        precise double u = gn_uniform64() - 0.5lf, v = gn_uniform64(), near_end = 0.5lf - abs(u);
        if (near_end <= 0.0lf) continue;
        precise double at = (2.0lf * a / near_end + b) * u + mean + 0.5lf, k = floor(at);
        if (k < 0.0lf || k > n) continue;
        takes = near_end >= 0.07lf && v <= top;
        if (!takes) {
            precise double have = -gn_minus_log(v * factor / (a / (near_end * near_end) + b));
            precise double most = height - gn_lgamma64(k + 1.0lf) - gn_lgamma64(n - k + 1.0lf) + (k - mode) * odds;
            takes = have <= most;
        }
        if (takes) found = k;
    }
    return gn_number(GNI_D_SWAP) != 0.0lf ? n - found : found;
}

double gn_truncated64() {
    precise double low = gn_number(GNI_D_LOW), high = gn_number(GNI_D_HIGH);
    precise double rate = gn_number(GNI_D_RATE), peak = gn_number(GNI_D_PEAK), found = 0.0lf;
    int way = int(gn_number(GNI_D_WAY));
    bool takes = false;
    while (!takes) {
        precise double x, less = 0.0lf, e = 0.0lf;
        if (way == 0) {
            x = low + gn_uniform64() * (high - low);
            e = gn_exponential64();
            less = 0.5lf * (x - peak) * (x + peak);
        } else if (way == 1) {
            x = low + gn_exponential64() / rate;
            e = gn_exponential64();
            less = 0.5lf * (x - rate) * (x - rate);
        } else {
            x = gn_normal64();
        }
        takes = e >= less && x >= low && x <= high;
        if (takes) found = x;
    }
    return found;
}

double gn_draw() {
    double boost, more;
    precise double y = 0.0lf;
    if (GN_KIND == GN_EXPONENTIAL) {
        y = gn_number(GNI_D_SCALE) * gn_exponential64();
    } else if (GN_KIND == GN_GAMMA) {
        precise double x = gn_gamma64(0, boost), e = boost == 0.0lf ? 1.0lf : boost < -700.0lf ? 0.0lf : gn_exp64(boost);
        y = gn_number(GNI_D_SCALE) * (x * e);
    } else if (GN_KIND == GN_BETA) {
        precise double x = gn_gamma64(0, boost), z = gn_gamma64(GNI_D_GAMMA_OTHER, more), by = more - boost;
        if (by <= 700.0lf) {
            precise double e = by < -700.0lf ? 0.0lf : gn_exp64(by);
            y = 1.0lf / (1.0lf + z / x * e);
        }
    } else if (GN_KIND == GN_POISSON) {
        y = gn_poisson64();
    } else if (GN_KIND == GN_BINOMIAL) {
        y = gn_binomial64();
    } else {
        y = gn_number(GNI_D_CENTER) + gn_number(GNI_D_SPREAD) * gn_truncated64();
        y = max(gn_number(GNI_D_BOUND), min(y, gn_number(GNI_D_BOUND + 1)));
    }
    return y;
}

// ---- into memory

void gn_put(uint i, double y) {
    if (GN_OUT == uint(GNI_T_F32)) gn_words(gn_address(0u)).v[GN_OUT_BASE + i] = floatBitsToUint(float(y));
    else gn_words2(gn_address(0u)).v[GN_OUT_BASE + i] = unpackDouble2x32(y);
}

// Elements i and i + 1 of 8 bytes.
void gn_put_pair(uint i, uvec4 v) {
    uint at = GN_OUT_BASE + i;
    if ((at & 1u) == 0u && i + 2u <= GN_N) {
        gn_words4(gn_address(0u)).v[at / 2u] = v;
        return;
    }
    if (i < GN_N) gn_words2(gn_address(0u)).v[at] = v.xy;
    if (i + 1u < GN_N) gn_words2(gn_address(0u)).v[at + 1u] = v.zw;
}

uvec2 gn_from_low(uint64_t x) {
    return unpackUint2x32(packUint2x32(uvec2(GN_PARAM(GNI_P_DRAW_LOW), GN_PARAM(GNI_P_DRAW_LOW + 1))) + x);
}

// The high word of a b.
uint64_t gn_high64(uvec2 a, uvec2 b) {
    uint64_t a0 = a.x, a1 = a.y, b0 = b.x, b1 = b.y, mid = a1 * b0 + ((a0 * b0) >> 32), low = a0 * b1 + (mid & 0xffffffffUL);
    return a1 * b1 + (mid >> 32) + (low >> 32);
}

// Number x of a permutation of `range` numbers.
uint64_t gn_place(uint64_t x) {
    uint64_t range = packUint2x32(uvec2(GN_PARAM(GNI_P_DRAW_RANGE), GN_PARAM(GNI_P_DRAW_RANGE + 1)));
    uint low = GN_PARAM(GNI_P_DRAW_LOW), low_mask = (1u << low) - 1u;
    uint high_mask = uint((range - 1UL) >> (2u * low)) == 0u ? low_mask : 2u * low_mask + 1u;
    do {
        uint a = uint(x) & low_mask, b = uint(x >> low);
        for (int i = 0; i < GNI_D_ROUNDS; i++) {
            uint h = ((i & 1) == 0 ? a : b) ^ GN_PARAM(GNI_P_DRAW_NUMBERS + i);
            h = (h ^ h >> 16) * 0x85ebca6bu;
            h = (h ^ h >> 13) * 0xc2b2ae35u;
            h ^= h >> 16;
            if ((i & 1) == 0) b ^= h & high_mask;
            else a ^= h & low_mask;
        }
        x = uint64_t(b) << low | a;
    } while (x >= range);
    return x;
}

const bool GN_WHOLE = GN_OUT == uint(GNI_T_I32) || GN_OUT == uint(GNI_T_I64);

void main() {
    uint n = GN_N, all = gl_NumWorkGroups.x * 128u, each = GN_KIND >= GN_EXPONENTIAL ? 1u : 2u;
    for (uint b = gl_GlobalInvocationID.x; b < (n + each - 1u) / each; b += all) {
        gn_element = gn_counter(b);
        gn_part = 0u;
        gn_at = 4u;
        double at = 0.0lf;
        if (GN_KIND == GN_STEPS) {
            uint64_t i = packUint2x32(gn_element);
            uint64_t count = packUint2x32(uvec2(GN_PARAM(GNI_P_DRAW_RANGE), GN_PARAM(GNI_P_DRAW_RANGE + 1)));
            precise double x = gn_number(GNI_D_FIRST) + double(i) * gn_number(GNI_D_STEP);
            at = i + 1UL == count ? gn_number(GNI_D_LAST) : x;
        }
        if (GN_KIND == GN_PERMUTATION || (GN_KIND == GN_STEPS && GN_WHOLE)) {
            uvec2 x = unpackUint2x32(GN_KIND == GN_STEPS ? uint64_t(int64_t(at)) : gn_place(packUint2x32(gn_element)));
            if (GN_OUT == uint(GNI_T_I32) || GN_OUT == uint(GNI_T_U32)) gn_words(gn_address(0u)).v[GN_OUT_BASE + b] = x.x;
            else gn_words2(gn_address(0u)).v[GN_OUT_BASE + b] = x;
            continue;
        }
        if (GN_KIND >= GN_EXPONENTIAL) {
            gn_put(b, GN_KIND == GN_STEPS ? at : gn_draw());
            continue;
        }
        uvec4 w = gn_philox(uvec4(gn_element, 0u, 0u), GN_KEY);
        if (GN_KIND == GN_RANGE) {
            uvec2 range = uvec2(GN_PARAM(GNI_P_DRAW_RANGE), GN_PARAM(GNI_P_DRAW_RANGE + 1));
            gn_put_pair(2u * b, uvec4(gn_from_low(gn_high64(w.xy, range)), gn_from_low(gn_high64(w.zw, range))));
        } else {
            dvec2 y = GN_KIND == GN_UNIFORM ? dvec2(gn_fraction(w.xy), gn_fraction(w.zw)) : gn_normals(w);
            gn_put_pair(2u * b, uvec4(unpackDouble2x32(y.x), unpackDouble2x32(y.y)));
        }
    }
}
