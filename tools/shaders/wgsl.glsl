// What a kernel that becomes WGSL is compiled with in front of it (-DGN_WGSL, tools/web/make_wgsl.py): parameters as a
// uniform buffer, so that all storage buffers are left to operands, and what WGSL does not have.

#define GN_WGSL_WORDS 256

layout(set = 0, binding = 0, std140) uniform gn_wgsl_block { uvec4 gn_wgsl_words[GN_WGSL_WORDS / 4]; };
#define GN_PARAM(i) gn_wgsl_words[uint(i) >> 2][uint(i) & 3u]

// 0, and no compiler knows: what is `precise` goes through an exclusive or with it, since WGSL has no word for that.
uint gn_zero = gn_wgsl_words[GN_WGSL_WORDS / 4 - 1].w;

uvec2 gn_umul(uint a, uint b) { // low, high
    uint al = a & 0xffffu, ah = a >> 16, bl = b & 0xffffu, bh = b >> 16;
    uint m = ah * bl + ((al * bl) >> 16), n = al * bh + (m & 0xffffu);
    return uvec2(a * b, ah * bh + (m >> 16) + (n >> 16));
}
void gn_umul_extended(uint a, uint b, out uint h, out uint l) {
    uvec2 r = gn_umul(a, b);
    h = r.y;
    l = r.x;
}
void gn_umul_extended(uvec2 a, uvec2 b, out uvec2 h, out uvec2 l) {
    uvec2 x = gn_umul(a.x, b.x), y = gn_umul(a.y, b.y);
    h = uvec2(x.y, y.y);
    l = uvec2(x.x, y.x);
}
void gn_umul_extended(uvec4 a, uvec4 b, out uvec4 h, out uvec4 l) {
    uvec2 x = gn_umul(a.x, b.x), y = gn_umul(a.y, b.y), z = gn_umul(a.z, b.z), w = gn_umul(a.w, b.w);
    h = uvec4(x.y, y.y, z.y, w.y);
    l = uvec4(x.x, y.x, z.x, w.x);
}
uint gn_add_carry(uint a, uint b, out uint c) {
    uint s = a + b;
    c = uint(s < a);
    return s;
}
uvec2 gn_add_carry(uvec2 a, uvec2 b, out uvec2 c) {
    uvec2 s = a + b;
    c = uvec2(lessThan(s, a));
    return s;
}
uvec4 gn_add_carry(uvec4 a, uvec4 b, out uvec4 c) {
    uvec4 s = a + b;
    c = uvec4(lessThan(s, a));
    return s;
}
#define umulExtended gn_umul_extended
#define uaddCarry gn_add_carry
#define gl_SubgroupID (gl_LocalInvocationIndex / gl_SubgroupSize)
#define isinf(x) ((floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u)
#define memoryBarrierBuffer()
#define barrier()                                                                                                      \
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared,        \
                   gl_SemanticsAcquireRelease)
#define subgroupElect() (gl_SubgroupInvocationID == 0u)
