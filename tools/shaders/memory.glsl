// Elements of any dtype in and out of registers. A group is 4 elements, or 2 of 64 bits (-DGN_X64,
// -DGN_RAW64); either way a register is a uvec4. Include gn.glsl first.
//
//   gn_read_raw(handle, j, dtype, one, group)   bits of elements, zero-extended
//   gn_widen(v, dtype), gn_narrow(v, dtype)     to and from a register's form: float, int or uint; double, int64
//   gn_write_group, gn_write_each, gn_write_one
//
// GN_INPUTS_CONST: what is read is not written by the same dispatch.
// GN_EXACT_HALVES: true where the device's own conversions of float16 keep subnormals, infinities and NaN and round to
// nearest; each module is told when it becomes a pipeline.

#ifndef GN_BINDINGS
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#endif

#define GN_T_F32 uint(GNI_T_F32)
#define GN_T_F16 uint(GNI_T_F16)
#define GN_T_BF16 uint(GNI_T_BF16)
#define GN_T_F64 uint(GNI_T_F64)
#define GN_T_I32 uint(GNI_T_I32)
#define GN_T_I64 uint(GNI_T_I64)
#define GN_T_U8 uint(GNI_T_U8)
#define GN_T_I8 uint(GNI_T_I8)
#define GN_T_U32 uint(GNI_T_U32)
#define GN_T_BOOL uint(GNI_T_BOOL)
#define GN_T_C64 uint(GNI_T_C64)
#define GN_T_I16 uint(GNI_T_I16)
#define GN_T_U16 uint(GNI_T_U16)
#define GN_T_U64 uint(GNI_T_U64)

#if defined(GN_X64) || defined(GN_RAW64)
#define GN_GROUP_SIZE 2u
#else
#define GN_GROUP_SIZE 4u
#define GN_FOUR
#endif

#ifdef GN_WGSL
#define GN_EXACT_HALVES false
#else
layout(constant_id = GNI_S_EXACT_HALVES) const bool GN_EXACT_HALVES = false;
#endif

// ---- float16 and bfloat16 by integer code: exact, whatever the device does with subnormals

uvec4 gn_unpack_f16(uvec4 h) {
    if (GN_EXACT_HALVES)
        return floatBitsToUint(vec4(unpackHalf2x16(h.x | h.y << 16), unpackHalf2x16(h.z | h.w << 16)));
    uvec4 em = (h & 0x7fffu) << 13;
    precise vec4 small = uintBitsToFloat(em + 0x38800000u) - 6.103515625e-05;
    uvec4 r = em + 0x38000000u;
    r = mix(r, em | 0x7f800000u, greaterThanEqual(em, uvec4(0x0f800000u)));
    r = mix(r, floatBitsToUint(small), lessThan(em, uvec4(0x00800000u)));
    return r | ((h & 0x8000u) << 16);
}

uvec4 gn_pack_f16(uvec4 u) {
    if (GN_EXACT_HALVES) {
        uvec2 p = uvec2(packHalf2x16(uintBitsToFloat(u.xy)), packHalf2x16(uintBitsToFloat(u.zw)));
        return uvec4(p.x & 0xffffu, p.x >> 16, p.y & 0xffffu, p.y >> 16);
    }
    uvec4 a = u & 0x7fffffffu;
    precise vec4 small = uintBitsToFloat(a) + 0.5;
    uvec4 r = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    r = mix(r, floatBitsToUint(small) - 0x3f000000u, lessThan(a, uvec4(0x38800000u)));
    r = mix(r, uvec4(0x7c00u), greaterThanEqual(a, uvec4(0x47800000u)));
    r = mix(r, ((a >> 13) & 0x3ffu) | 0x7e00u, greaterThan(a, uvec4(0x7f800000u)));
    return r | ((u >> 16) & 0x8000u);
}

// What float16 leaves of floats.
uvec4 gn_round_f16(uvec4 u) {
#ifndef GN_WGSL
    if (GN_EXACT_HALVES) { // drivers take the one conversion for the other's inverse where nothing is between them
        uvec2 p = uvec2(packHalf2x16(uintBitsToFloat(u.xy)), packHalf2x16(uintBitsToFloat(u.zw))) | GN_UNKNOWN_ZERO;
        return floatBitsToUint(vec4(unpackHalf2x16(p.x), unpackHalf2x16(p.y)));
    }
#endif
    return gn_unpack_f16(gn_pack_f16(u));
}

uvec4 gn_pack_bf16(uvec4 u) {
    uvec4 r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
#ifndef GN_WGSL
    if (GN_EXACT_HALVES && !any(isnan(uintBitsToFloat(u)))) return r; // two instructions of an element less
#endif
    return mix(r, (u >> 16) | 0x40u, greaterThan(u & 0x7fffffffu, uvec4(0x7f800000u)));
}

#ifdef GN_X64
#include "wide.glsl"
#endif

// ---- memory

// A buffer argument as the accessors take it. Addresses are looked up once per operand: a driver gets to
// see a lookup as often as it is written.
#ifdef GN_BINDINGS
#define GN_HANDLE uint
#define GN_OPEN(k) (k)
#define GN_AT(h, i) gn_load(h, i)
#define GN_AT2(h, i) gn_load2(h, i)
#define GN_AT4(h, i) gn_load4(h, i)
#define GN_PUT(h, i, x) gn_store(h, i, x)
#define GN_PUT2(h, i, x) gn_store2(h, i, x)
#define GN_PUT4(h, i, x) gn_store4(h, i, x)
#define GN_KEEP_BITS(h, i, x) gn_atomic_and(h, i, x)
#define GN_SET_BITS(h, i, x) gn_atomic_or(h, i, x)
#else
#define GN_HANDLE uvec2
#define GN_OPEN(k) gn_address(k)
#ifdef GN_INPUTS_CONST
#define GN_AT(h, i) gn_const(h).v[i]
#define GN_AT2(h, i) gn_const2(h).v[i]
#define GN_AT4(h, i) gn_const4(h).v[i]
#else
#define GN_AT(h, i) gn_words(h).v[i]
#define GN_AT2(h, i) gn_words2(h).v[i]
#define GN_AT4(h, i) gn_words4(h).v[i]
#endif
#define GN_PUT(h, i, x) gn_words(h).v[i] = (x)
#define GN_PUT2(h, i, x) gn_words2(h).v[i] = (x)
#define GN_PUT4(h, i, x) gn_words4(h).v[i] = (x)
#define GN_KEEP_BITS(h, i, x) atomicAnd(gn_words(h).v[i], x)
#define GN_SET_BITS(h, i, x) atomicOr(gn_words(h).v[i], x)
#endif

#define GN_PACKINGS (1u << (2 * GNI_T_F16) | 1u << (2 * GNI_T_BF16) | 1u << (2 * GNI_T_I16) | 1u << (2 * GNI_T_U16) | \
                     2u << (2 * GNI_T_U8) | 2u << (2 * GNI_T_I8) | 2u << (2 * GNI_T_BOOL))
#define GN_LONG_DTYPES (1u << GNI_T_F64 | 1u << GNI_T_I64 | 1u << GNI_T_C64 | 1u << GNI_T_U64)
// log2 of the elements in a word, by dtype; 8-byte elements count as words.
uint gn_packing(uint t) {
    return (GN_PACKINGS >> (2u * t)) & 3u;
}
bool gn_is_long(uint t) { return ((GN_LONG_DTYPES >> t) & 1u) != 0u; }

// The element in its word's low bits, from the word that holds it.
uvec4 gn_extract(uvec4 w, uvec4 j, uint packing) {
    if (packing == 0u) return w;
    return packing == 1u ? (w >> ((j & 1u) * 16u)) & 0xffffu : (w >> ((j & 3u) * 8u)) & 0xffu;
}

#ifdef GN_FOUR
uvec4 gn_widen(uvec4 v, uint t) {
    if (t == GN_T_F16) return gn_unpack_f16(v);
    if (t == GN_T_BF16) return v << 16;
    if (t == GN_T_I8) return uvec4(ivec4(v << 24) >> 24);
    if (t == GN_T_I16) return uvec4(ivec4(v << 16) >> 16);
    return v;
}
uvec4 gn_narrow(uvec4 v, uint t) {
    if (t == GN_T_F16) return gn_pack_f16(v);
    if (t == GN_T_BF16) return gn_pack_bf16(v);
    if (t == GN_T_BOOL) return min(v, uvec4(1u));
    if (t == GN_T_U8 || t == GN_T_I8) return v & 0xffu;
    if (t == GN_T_U16 || t == GN_T_I16) return v & 0xffffu;
    return v;
}
// Elements j of a buffer, or only j.x four times, or the group at j.x.
uvec4 gn_read_raw(GN_HANDLE h, uvec4 j, uint t, bool one, bool group) {
    uint s = gn_packing(t);
    uvec4 w;
    if (group) {
        if (s == 0u) return GN_AT4(h, j.x >> 2);
        if (s == 1u) {
            uvec2 u = GN_AT2(h, j.x >> 2);
            return uvec4(u.x & 0xffffu, u.x >> 16, u.y & 0xffffu, u.y >> 16);
        }
        return (uvec4(GN_AT(h, j.x >> 2)) >> uvec4(0u, 8u, 16u, 24u)) & 0xffu;
    }
    w = uvec4(GN_AT(h, j.x >> s));
    if (!one) w.yzw = uvec3(GN_AT(h, j.y >> s), GN_AT(h, j.z >> s), GN_AT(h, j.w >> s));
    else j = j.xxxx;
    return gn_extract(w, j, s);
}
void gn_write_group(GN_HANDLE h, uint j, uint t, uvec4 v) { // j is a multiple of 4
    uint s = gn_packing(t);
    if (s == 0u) {
        GN_PUT4(h, j >> 2, v);
    } else if (s == 1u) {
        uvec2 w = uvec2(v.x | (v.y << 16), v.z | (v.w << 16));
        GN_PUT2(h, j >> 2, w);
    } else {
        uint w = v.x | (v.y << 8) | (v.z << 16) | (v.w << 24);
        GN_PUT(h, j >> 2, w);
    }
}
#else
#ifdef GN_RAW64
uvec4 gn_widen(uvec4 v, uint t) { return v; }
uvec4 gn_narrow(uvec4 v, uint t) { return v; }
#endif
uvec4 gn_read_raw(GN_HANDLE h, uvec4 j, uint t, bool one, bool group) {
    if (gn_is_long(t)) {
        if (group) return GN_AT4(h, j.x >> 1);
        uvec4 v = GN_AT2(h, j.x).xyxy;
        if (!one) v.zw = GN_AT2(h, j.y);
        return v;
    }
    uint s = gn_packing(t);
    if (group) j.y = j.x + 1u;
    uvec4 w = uvec4(GN_AT(h, j.x >> s));
    if (!one) w.y = GN_AT(h, j.y >> s);
    else j = j.xxxx;
    w = gn_extract(w, j, s);
    return uvec4(w.x, 0u, w.y, 0u);
}
void gn_write_group(GN_HANDLE h, uint j, uint t, uvec4 v) { // j is even; elements of 4 or 8 bytes
    if (gn_is_long(t)) GN_PUT4(h, j >> 1, v);
    else GN_PUT2(h, j >> 1, v.xz);
}
#endif

#if defined(GN_SPREAD) && GN_INPUTS > 3 && !defined(GN_BINDINGS)
// One part of complex numbers whose real parts are elements j of a buffer.
uvec4 gn_read_parts(GN_HANDLE h, uvec4 j, bool im) {
#ifdef GN_FOUR
    uvec2 a = GN_AT2(h, j.x >> 1), b = GN_AT2(h, j.y >> 1), c = GN_AT2(h, j.z >> 1), d = GN_AT2(h, j.w >> 1);
    return im ? uvec4(a.y, b.y, c.y, d.y) : uvec4(a.x, b.x, c.x, d.x);
#else
    uvec4 a = GN_AT4(h, j.x >> 1), b = GN_AT4(h, j.y >> 1);
    return im ? uvec4(a.zw, b.zw) : uvec4(a.xy, b.xy);
#endif
}
void gn_write_parts(GN_HANDLE h, uvec4 j, uvec4 re, uvec4 im, uint count) {
#ifdef GN_FOUR
    GN_PUT2(h, j.x >> 1, uvec2(re.x, im.x));
    if (count > 1u) GN_PUT2(h, j.y >> 1, uvec2(re.y, im.y));
    if (count > 2u) GN_PUT2(h, j.z >> 1, uvec2(re.z, im.z));
    if (count > 3u) GN_PUT2(h, j.w >> 1, uvec2(re.w, im.w));
#else
    GN_PUT4(h, j.x >> 1, uvec4(re.xy, im.xy));
    if (count > 1u) GN_PUT4(h, j.y >> 1, uvec4(re.zw, im.zw));
#endif
}
#endif

// Elements below a word: their neighbours may be another thread's, so without stores of their own atomics put them into place.
#ifndef GN_BINDINGS
layout(constant_id = GNI_S_NARROW_STORES) const bool GN_NARROW_STORES = false;
layout(buffer_reference, std430, buffer_reference_align = 1) buffer gn_bytes { uint8_t v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer gn_shorts { uint16_t v[]; };
#endif
void gn_write_one(GN_HANDLE h, uint j, uint s, uint v) {
    if (s == 0u) {
        GN_PUT(h, j, v);
#ifndef GN_BINDINGS
    } else if (GN_NARROW_STORES) {
        if (s == 1u) gn_shorts(h).v[j] = uint16_t(v);
        else gn_bytes(h).v[j] = uint8_t(v);
#endif
    } else {
        uint shift = s == 1u ? (j & 1u) * 16u : (j & 3u) * 8u, mask = s == 1u ? 0xffffu : 0xffu;
        GN_KEEP_BITS(h, j >> s, ~(mask << shift));
        GN_SET_BITS(h, j >> s, v << shift);
    }
}

// The first `count` elements of a group, element e to place j[e].
void gn_write_each(GN_HANDLE h, uvec4 j, uint t, uvec4 v, uint count) {
    uint s = gn_packing(t);
#ifdef GN_FOUR
    for (uint e = 0u; e < count; e++) {
        gn_write_one(h, j.x, s, v.x);
        j = j.yzwx, v = v.yzwx;
    }
#else
    for (uint e = 0u; e < count; e++) {
        if (gn_is_long(t)) GN_PUT2(h, j.x, v.xy);
        else gn_write_one(h, j.x, s, v.x);
        j.x = j.y, v.xy = v.zw;
    }
#endif
}
