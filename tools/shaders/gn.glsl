// How a kernel reaches its buffers and parameters, the same source for 64-bit addresses and for
// bindings (-DGN_BINDINGS: drivers without addresses, and WGSL). A kernel says how many buffer
// arguments it has and includes this before anything else:
//
//   #version 450
//   #extension GL_GOOGLE_include_directive : require
//   #define GN_BUFFERS 3
//   #include "gn.glsl"
//
// GN_PARAM(i), GN_PARAM_F(i)   word i of the caller's parameters, as uint or float
// gn_load(k, i), gn_store(k, i, v)     32-bit word i of buffer argument k
// gn_load2, gn_store2          uvec2 number i (words 2i, 2i+1)
// gn_load4, gn_store4          uvec4 number i
// gn_fetch, gn_fetch2, gn_fetch4       loads from a buffer that this dispatch does not write
// gn_atomic_add, _and, _or, _xor, _min, _max, _exchange(k, i, v)   return the word's old value
// gn_load_coherent(k, i), gn_store_coherent(k, i, v)   see below
// GN_GROUP                     number of the workgroup over x, y and z of the grid
//
// k is a literal or a specialisation constant where speed matters; a k that is only uniform works
// too and costs a few selects. i is a uint below 2^31. Every buffer argument starts at a multiple
// of 16 bytes and may be read up to its size rounded up to 16.
//
// Last workgroup finishes: every workgroup writes its partial with gn_store_coherent, then
// memoryBarrierBuffer(); barrier(); and one invocation counts with gn_atomic_add. The one that sees
// the last number tells its workgroup through shared memory; after barrier(); memoryBarrierBuffer();
// the partials of all are read with gn_load_coherent. Plain loads may see stale lines.
//
// GN_WIDE (bit k set: bindings declare buffer k as uvec4[], which makes gn_load4 one load there).
// A wide buffer must not be used with atomics, coherent access, gn_store or gn_store2.
// GN_READONLY (bit k set: the kernel only loads from buffer k). Not needed, but checkers and WGSL
// count every other bound buffer as written.

#include "slots.glsl"

#ifndef GN_BUFFERS
#define GN_BUFFERS 4
#endif
#ifndef GN_WIDE
#define GN_WIDE 0
#endif
#ifndef GN_READONLY
#define GN_READONLY 0
#endif

#ifndef GN_BINDINGS
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#endif

#define GN_GROUP                                                                                   \
    (gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z))
#define GN_PARAM_F(i) uintBitsToFloat(GN_PARAM(i))

#ifndef GN_BINDINGS

// The block that the push constant points to: addresses of the buffer arguments, then parameters.
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer gn_block {
    uvec2 address[16];
    uint word[];
};
layout(push_constant) uniform gn_push_constants {
    uvec2 block;
    uvec2 each; // bytes from one block to the next, below 2^32
} gn_push;
#define GN_UNKNOWN_ZERO gn_push.each.y // which no compiler knows

layout(buffer_reference, std430, buffer_reference_align = 4) buffer gn_words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer gn_words2 { uvec2 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer gn_words4 { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly restrict buffer gn_const { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly restrict buffer gn_const2 { uvec2 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly restrict buffer gn_const4 { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer gn_shared_words { uint v[]; };

// GN_MANY: each y of the grid is a job with a block of its own.
#ifdef GN_MANY
uvec2 gn_own_block() {
    uint low = gn_push.block.x + gn_push.each.x * gl_WorkGroupID.y;
    return uvec2(low, gn_push.block.y + (low < gn_push.block.x ? 1u : 0u));
}
#define GN_OWN_BLOCK gn_block(gn_own_block())
#else
#define GN_OWN_BLOCK gn_block(gn_push.block)
#endif
#define GN_PARAM(i) GN_OWN_BLOCK.word[i]

// Read once at the start of main, so that no loop loads an address before it loads data.
#if GN_BUFFERS > 0
uvec2 gn_address0 = GN_OWN_BLOCK.address[0];
#define GN_CASE0 case 0u: return gn_address0;
#else
#define GN_CASE0
#endif
#if GN_BUFFERS > 1
uvec2 gn_address1 = GN_OWN_BLOCK.address[1];
#define GN_CASE1 case 1u: return gn_address1;
#else
#define GN_CASE1
#endif
#if GN_BUFFERS > 2
uvec2 gn_address2 = GN_OWN_BLOCK.address[2];
#define GN_CASE2 case 2u: return gn_address2;
#else
#define GN_CASE2
#endif
#if GN_BUFFERS > 3
uvec2 gn_address3 = GN_OWN_BLOCK.address[3];
#define GN_CASE3 case 3u: return gn_address3;
#else
#define GN_CASE3
#endif
#if GN_BUFFERS > 4
uvec2 gn_address4 = GN_OWN_BLOCK.address[4];
#define GN_CASE4 case 4u: return gn_address4;
#else
#define GN_CASE4
#endif
#if GN_BUFFERS > 5
uvec2 gn_address5 = GN_OWN_BLOCK.address[5];
#define GN_CASE5 case 5u: return gn_address5;
#else
#define GN_CASE5
#endif
#if GN_BUFFERS > 6
uvec2 gn_address6 = GN_OWN_BLOCK.address[6];
#define GN_CASE6 case 6u: return gn_address6;
#else
#define GN_CASE6
#endif
#if GN_BUFFERS > 7
uvec2 gn_address7 = GN_OWN_BLOCK.address[7];
#define GN_CASE7 case 7u: return gn_address7;
#else
#define GN_CASE7
#endif
#if GN_BUFFERS > 8
uvec2 gn_address8 = GN_OWN_BLOCK.address[8];
#define GN_CASE8 case 8u: return gn_address8;
#else
#define GN_CASE8
#endif
#if GN_BUFFERS > 9
uvec2 gn_address9 = GN_OWN_BLOCK.address[9];
#define GN_CASE9 case 9u: return gn_address9;
#else
#define GN_CASE9
#endif
#if GN_BUFFERS > 10
uvec2 gn_address10 = GN_OWN_BLOCK.address[10];
#define GN_CASE10 case 10u: return gn_address10;
#else
#define GN_CASE10
#endif
#if GN_BUFFERS > 11
uvec2 gn_address11 = GN_OWN_BLOCK.address[11];
#define GN_CASE11 case 11u: return gn_address11;
#else
#define GN_CASE11
#endif
#if GN_BUFFERS > 12
uvec2 gn_address12 = GN_OWN_BLOCK.address[12];
#define GN_CASE12 case 12u: return gn_address12;
#else
#define GN_CASE12
#endif
#if GN_BUFFERS > 13
uvec2 gn_address13 = GN_OWN_BLOCK.address[13];
#define GN_CASE13 case 13u: return gn_address13;
#else
#define GN_CASE13
#endif
#if GN_BUFFERS > 14
uvec2 gn_address14 = GN_OWN_BLOCK.address[14];
#define GN_CASE14 case 14u: return gn_address14;
#else
#define GN_CASE14
#endif
#if GN_BUFFERS > 15
uvec2 gn_address15 = GN_OWN_BLOCK.address[15];
#define GN_CASE15 case 15u: return gn_address15;
#else
#define GN_CASE15
#endif

uvec2 gn_address(uint k) {
    switch (k) {
        GN_CASE0 GN_CASE1 GN_CASE2 GN_CASE3 GN_CASE4 GN_CASE5 GN_CASE6 GN_CASE7
        GN_CASE8 GN_CASE9 GN_CASE10 GN_CASE11 GN_CASE12 GN_CASE13 GN_CASE14 GN_CASE15
    default: return uvec2(0u);
    }
}

#define gn_load(k, i) gn_words(gn_address(k)).v[i]
#define gn_load2(k, i) gn_words2(gn_address(k)).v[i]
#define gn_load4(k, i) gn_words4(gn_address(k)).v[i]
#define gn_fetch(k, i) gn_const(gn_address(k)).v[i]
#define gn_fetch2(k, i) gn_const2(gn_address(k)).v[i]
#define gn_fetch4(k, i) gn_const4(gn_address(k)).v[i]
#define gn_store(k, i, x) gn_words(gn_address(k)).v[i] = (x)
#define gn_store2(k, i, x) gn_words2(gn_address(k)).v[i] = (x)
#define gn_store4(k, i, x) gn_words4(gn_address(k)).v[i] = (x)
#define gn_atomic_add(k, i, x) atomicAdd(gn_words(gn_address(k)).v[i], x)
#define gn_atomic_and(k, i, x) atomicAnd(gn_words(gn_address(k)).v[i], x)
#define gn_atomic_or(k, i, x) atomicOr(gn_words(gn_address(k)).v[i], x)
#define gn_atomic_xor(k, i, x) atomicXor(gn_words(gn_address(k)).v[i], x)
#define gn_atomic_min(k, i, x) atomicMin(gn_words(gn_address(k)).v[i], x)
#define gn_atomic_max(k, i, x) atomicMax(gn_words(gn_address(k)).v[i], x)
#define gn_atomic_exchange(k, i, x) atomicExchange(gn_words(gn_address(k)).v[i], x)
#define gn_load_coherent(k, i) gn_shared_words(gn_address(k)).v[i]
#define gn_store_coherent(k, i, x) gn_shared_words(gn_address(k)).v[i] = (x)


#else // GN_BINDINGS

// The same block, bound whole: 32 words of addresses that nobody reads, then the parameters.
#ifndef GN_WGSL // wgsl.glsl has its own
layout(set = 0, binding = 0, std430) readonly buffer gn_block { uint gn_words[]; };
#define GN_PARAM(i) gn_words[32u + uint(i)]
#define GN_UNKNOWN_ZERO gn_words[31] // of the 16th address
#endif

#if GN_BUFFERS > 0
#if (GN_READONLY & 1) != 0
#define GN_ACCESS0 readonly
#define GN_CHANGE0(NARROW, WIDE)
#else
#define GN_ACCESS0
#define GN_CHANGE0(NARROW, WIDE) GN_CASE0(NARROW, WIDE)
#endif
#if (GN_WIDE & 1) != 0
layout(set = 0, binding = 1, std430) GN_ACCESS0 buffer gn_buffer0 { uvec4 gn_b0[]; };
#define GN_CASE0(NARROW, WIDE) case 0u: { WIDE(gn_b0) }
#else
layout(set = 0, binding = 1, std430) GN_ACCESS0 buffer gn_buffer0 { uint gn_b0[]; };
#define GN_CASE0(NARROW, WIDE) case 0u: { NARROW(gn_b0) }
#endif
#else
#define GN_CASE0(NARROW, WIDE)
#define GN_CHANGE0(NARROW, WIDE)
#endif
#if GN_BUFFERS > 1
#if (GN_READONLY & 2) != 0
#define GN_ACCESS1 readonly
#define GN_CHANGE1(NARROW, WIDE)
#else
#define GN_ACCESS1
#define GN_CHANGE1(NARROW, WIDE) GN_CASE1(NARROW, WIDE)
#endif
#if (GN_WIDE & 2) != 0
layout(set = 0, binding = 2, std430) GN_ACCESS1 buffer gn_buffer1 { uvec4 gn_b1[]; };
#define GN_CASE1(NARROW, WIDE) case 1u: { WIDE(gn_b1) }
#else
layout(set = 0, binding = 2, std430) GN_ACCESS1 buffer gn_buffer1 { uint gn_b1[]; };
#define GN_CASE1(NARROW, WIDE) case 1u: { NARROW(gn_b1) }
#endif
#else
#define GN_CASE1(NARROW, WIDE)
#define GN_CHANGE1(NARROW, WIDE)
#endif
#if GN_BUFFERS > 2
#if (GN_READONLY & 4) != 0
#define GN_ACCESS2 readonly
#define GN_CHANGE2(NARROW, WIDE)
#else
#define GN_ACCESS2
#define GN_CHANGE2(NARROW, WIDE) GN_CASE2(NARROW, WIDE)
#endif
#if (GN_WIDE & 4) != 0
layout(set = 0, binding = 3, std430) GN_ACCESS2 buffer gn_buffer2 { uvec4 gn_b2[]; };
#define GN_CASE2(NARROW, WIDE) case 2u: { WIDE(gn_b2) }
#else
layout(set = 0, binding = 3, std430) GN_ACCESS2 buffer gn_buffer2 { uint gn_b2[]; };
#define GN_CASE2(NARROW, WIDE) case 2u: { NARROW(gn_b2) }
#endif
#else
#define GN_CASE2(NARROW, WIDE)
#define GN_CHANGE2(NARROW, WIDE)
#endif
#if GN_BUFFERS > 3
#if (GN_READONLY & 8) != 0
#define GN_ACCESS3 readonly
#define GN_CHANGE3(NARROW, WIDE)
#else
#define GN_ACCESS3
#define GN_CHANGE3(NARROW, WIDE) GN_CASE3(NARROW, WIDE)
#endif
#if (GN_WIDE & 8) != 0
layout(set = 0, binding = 4, std430) GN_ACCESS3 buffer gn_buffer3 { uvec4 gn_b3[]; };
#define GN_CASE3(NARROW, WIDE) case 3u: { WIDE(gn_b3) }
#else
layout(set = 0, binding = 4, std430) GN_ACCESS3 buffer gn_buffer3 { uint gn_b3[]; };
#define GN_CASE3(NARROW, WIDE) case 3u: { NARROW(gn_b3) }
#endif
#else
#define GN_CASE3(NARROW, WIDE)
#define GN_CHANGE3(NARROW, WIDE)
#endif
#if GN_BUFFERS > 4
#if (GN_READONLY & 16) != 0
#define GN_ACCESS4 readonly
#define GN_CHANGE4(NARROW, WIDE)
#else
#define GN_ACCESS4
#define GN_CHANGE4(NARROW, WIDE) GN_CASE4(NARROW, WIDE)
#endif
#if (GN_WIDE & 16) != 0
layout(set = 0, binding = 5, std430) GN_ACCESS4 buffer gn_buffer4 { uvec4 gn_b4[]; };
#define GN_CASE4(NARROW, WIDE) case 4u: { WIDE(gn_b4) }
#else
layout(set = 0, binding = 5, std430) GN_ACCESS4 buffer gn_buffer4 { uint gn_b4[]; };
#define GN_CASE4(NARROW, WIDE) case 4u: { NARROW(gn_b4) }
#endif
#else
#define GN_CASE4(NARROW, WIDE)
#define GN_CHANGE4(NARROW, WIDE)
#endif
#if GN_BUFFERS > 5
#if (GN_READONLY & 32) != 0
#define GN_ACCESS5 readonly
#define GN_CHANGE5(NARROW, WIDE)
#else
#define GN_ACCESS5
#define GN_CHANGE5(NARROW, WIDE) GN_CASE5(NARROW, WIDE)
#endif
#if (GN_WIDE & 32) != 0
layout(set = 0, binding = 6, std430) GN_ACCESS5 buffer gn_buffer5 { uvec4 gn_b5[]; };
#define GN_CASE5(NARROW, WIDE) case 5u: { WIDE(gn_b5) }
#else
layout(set = 0, binding = 6, std430) GN_ACCESS5 buffer gn_buffer5 { uint gn_b5[]; };
#define GN_CASE5(NARROW, WIDE) case 5u: { NARROW(gn_b5) }
#endif
#else
#define GN_CASE5(NARROW, WIDE)
#define GN_CHANGE5(NARROW, WIDE)
#endif
#if GN_BUFFERS > 6
#if (GN_READONLY & 64) != 0
#define GN_ACCESS6 readonly
#define GN_CHANGE6(NARROW, WIDE)
#else
#define GN_ACCESS6
#define GN_CHANGE6(NARROW, WIDE) GN_CASE6(NARROW, WIDE)
#endif
#if (GN_WIDE & 64) != 0
layout(set = 0, binding = 7, std430) GN_ACCESS6 buffer gn_buffer6 { uvec4 gn_b6[]; };
#define GN_CASE6(NARROW, WIDE) case 6u: { WIDE(gn_b6) }
#else
layout(set = 0, binding = 7, std430) GN_ACCESS6 buffer gn_buffer6 { uint gn_b6[]; };
#define GN_CASE6(NARROW, WIDE) case 6u: { NARROW(gn_b6) }
#endif
#else
#define GN_CASE6(NARROW, WIDE)
#define GN_CHANGE6(NARROW, WIDE)
#endif
#if GN_BUFFERS > 7
#if (GN_READONLY & 128) != 0
#define GN_ACCESS7 readonly
#define GN_CHANGE7(NARROW, WIDE)
#else
#define GN_ACCESS7
#define GN_CHANGE7(NARROW, WIDE) GN_CASE7(NARROW, WIDE)
#endif
#if (GN_WIDE & 128) != 0
layout(set = 0, binding = 8, std430) GN_ACCESS7 buffer gn_buffer7 { uvec4 gn_b7[]; };
#define GN_CASE7(NARROW, WIDE) case 7u: { WIDE(gn_b7) }
#else
layout(set = 0, binding = 8, std430) GN_ACCESS7 buffer gn_buffer7 { uint gn_b7[]; };
#define GN_CASE7(NARROW, WIDE) case 7u: { NARROW(gn_b7) }
#endif
#else
#define GN_CASE7(NARROW, WIDE)
#define GN_CHANGE7(NARROW, WIDE)
#endif
#if GN_BUFFERS > 8
#if (GN_READONLY & 256) != 0
#define GN_ACCESS8 readonly
#define GN_CHANGE8(NARROW, WIDE)
#else
#define GN_ACCESS8
#define GN_CHANGE8(NARROW, WIDE) GN_CASE8(NARROW, WIDE)
#endif
#if (GN_WIDE & 256) != 0
layout(set = 0, binding = 9, std430) GN_ACCESS8 buffer gn_buffer8 { uvec4 gn_b8[]; };
#define GN_CASE8(NARROW, WIDE) case 8u: { WIDE(gn_b8) }
#else
layout(set = 0, binding = 9, std430) GN_ACCESS8 buffer gn_buffer8 { uint gn_b8[]; };
#define GN_CASE8(NARROW, WIDE) case 8u: { NARROW(gn_b8) }
#endif
#else
#define GN_CASE8(NARROW, WIDE)
#define GN_CHANGE8(NARROW, WIDE)
#endif
#if GN_BUFFERS > 9
#if (GN_READONLY & 512) != 0
#define GN_ACCESS9 readonly
#define GN_CHANGE9(NARROW, WIDE)
#else
#define GN_ACCESS9
#define GN_CHANGE9(NARROW, WIDE) GN_CASE9(NARROW, WIDE)
#endif
#if (GN_WIDE & 512) != 0
layout(set = 0, binding = 10, std430) GN_ACCESS9 buffer gn_buffer9 { uvec4 gn_b9[]; };
#define GN_CASE9(NARROW, WIDE) case 9u: { WIDE(gn_b9) }
#else
layout(set = 0, binding = 10, std430) GN_ACCESS9 buffer gn_buffer9 { uint gn_b9[]; };
#define GN_CASE9(NARROW, WIDE) case 9u: { NARROW(gn_b9) }
#endif
#else
#define GN_CASE9(NARROW, WIDE)
#define GN_CHANGE9(NARROW, WIDE)
#endif
#if GN_BUFFERS > 10
#if (GN_READONLY & 1024) != 0
#define GN_ACCESS10 readonly
#define GN_CHANGE10(NARROW, WIDE)
#else
#define GN_ACCESS10
#define GN_CHANGE10(NARROW, WIDE) GN_CASE10(NARROW, WIDE)
#endif
#if (GN_WIDE & 1024) != 0
layout(set = 0, binding = 11, std430) GN_ACCESS10 buffer gn_buffer10 { uvec4 gn_b10[]; };
#define GN_CASE10(NARROW, WIDE) case 10u: { WIDE(gn_b10) }
#else
layout(set = 0, binding = 11, std430) GN_ACCESS10 buffer gn_buffer10 { uint gn_b10[]; };
#define GN_CASE10(NARROW, WIDE) case 10u: { NARROW(gn_b10) }
#endif
#else
#define GN_CASE10(NARROW, WIDE)
#define GN_CHANGE10(NARROW, WIDE)
#endif
#if GN_BUFFERS > 11
#if (GN_READONLY & 2048) != 0
#define GN_ACCESS11 readonly
#define GN_CHANGE11(NARROW, WIDE)
#else
#define GN_ACCESS11
#define GN_CHANGE11(NARROW, WIDE) GN_CASE11(NARROW, WIDE)
#endif
#if (GN_WIDE & 2048) != 0
layout(set = 0, binding = 12, std430) GN_ACCESS11 buffer gn_buffer11 { uvec4 gn_b11[]; };
#define GN_CASE11(NARROW, WIDE) case 11u: { WIDE(gn_b11) }
#else
layout(set = 0, binding = 12, std430) GN_ACCESS11 buffer gn_buffer11 { uint gn_b11[]; };
#define GN_CASE11(NARROW, WIDE) case 11u: { NARROW(gn_b11) }
#endif
#else
#define GN_CASE11(NARROW, WIDE)
#define GN_CHANGE11(NARROW, WIDE)
#endif
#if GN_BUFFERS > 12
#if (GN_READONLY & 4096) != 0
#define GN_ACCESS12 readonly
#define GN_CHANGE12(NARROW, WIDE)
#else
#define GN_ACCESS12
#define GN_CHANGE12(NARROW, WIDE) GN_CASE12(NARROW, WIDE)
#endif
#if (GN_WIDE & 4096) != 0
layout(set = 0, binding = 13, std430) GN_ACCESS12 buffer gn_buffer12 { uvec4 gn_b12[]; };
#define GN_CASE12(NARROW, WIDE) case 12u: { WIDE(gn_b12) }
#else
layout(set = 0, binding = 13, std430) GN_ACCESS12 buffer gn_buffer12 { uint gn_b12[]; };
#define GN_CASE12(NARROW, WIDE) case 12u: { NARROW(gn_b12) }
#endif
#else
#define GN_CASE12(NARROW, WIDE)
#define GN_CHANGE12(NARROW, WIDE)
#endif
#if GN_BUFFERS > 13
#if (GN_READONLY & 8192) != 0
#define GN_ACCESS13 readonly
#define GN_CHANGE13(NARROW, WIDE)
#else
#define GN_ACCESS13
#define GN_CHANGE13(NARROW, WIDE) GN_CASE13(NARROW, WIDE)
#endif
#if (GN_WIDE & 8192) != 0
layout(set = 0, binding = 14, std430) GN_ACCESS13 buffer gn_buffer13 { uvec4 gn_b13[]; };
#define GN_CASE13(NARROW, WIDE) case 13u: { WIDE(gn_b13) }
#else
layout(set = 0, binding = 14, std430) GN_ACCESS13 buffer gn_buffer13 { uint gn_b13[]; };
#define GN_CASE13(NARROW, WIDE) case 13u: { NARROW(gn_b13) }
#endif
#else
#define GN_CASE13(NARROW, WIDE)
#define GN_CHANGE13(NARROW, WIDE)
#endif
#if GN_BUFFERS > 14
#if (GN_READONLY & 16384) != 0
#define GN_ACCESS14 readonly
#define GN_CHANGE14(NARROW, WIDE)
#else
#define GN_ACCESS14
#define GN_CHANGE14(NARROW, WIDE) GN_CASE14(NARROW, WIDE)
#endif
#if (GN_WIDE & 16384) != 0
layout(set = 0, binding = 15, std430) GN_ACCESS14 buffer gn_buffer14 { uvec4 gn_b14[]; };
#define GN_CASE14(NARROW, WIDE) case 14u: { WIDE(gn_b14) }
#else
layout(set = 0, binding = 15, std430) GN_ACCESS14 buffer gn_buffer14 { uint gn_b14[]; };
#define GN_CASE14(NARROW, WIDE) case 14u: { NARROW(gn_b14) }
#endif
#else
#define GN_CASE14(NARROW, WIDE)
#define GN_CHANGE14(NARROW, WIDE)
#endif
#if GN_BUFFERS > 15
#if (GN_READONLY & 32768) != 0
#define GN_ACCESS15 readonly
#define GN_CHANGE15(NARROW, WIDE)
#else
#define GN_ACCESS15
#define GN_CHANGE15(NARROW, WIDE) GN_CASE15(NARROW, WIDE)
#endif
#if (GN_WIDE & 32768) != 0
layout(set = 0, binding = 16, std430) GN_ACCESS15 buffer gn_buffer15 { uvec4 gn_b15[]; };
#define GN_CASE15(NARROW, WIDE) case 15u: { WIDE(gn_b15) }
#else
layout(set = 0, binding = 16, std430) GN_ACCESS15 buffer gn_buffer15 { uint gn_b15[]; };
#define GN_CASE15(NARROW, WIDE) case 15u: { NARROW(gn_b15) }
#endif
#else
#define GN_CASE15(NARROW, WIDE)
#define GN_CHANGE15(NARROW, WIDE)
#endif

#define GN_CASES(N, W)                                                                             \
    GN_CASE0(N, W) GN_CASE1(N, W) GN_CASE2(N, W) GN_CASE3(N, W)                                    \
    GN_CASE4(N, W) GN_CASE5(N, W) GN_CASE6(N, W) GN_CASE7(N, W)                                    \
    GN_CASE8(N, W) GN_CASE9(N, W) GN_CASE10(N, W) GN_CASE11(N, W)                                  \
    GN_CASE12(N, W) GN_CASE13(N, W) GN_CASE14(N, W) GN_CASE15(N, W)

#define GN_CHANGES(N, W)                                                                           \
    GN_CHANGE0(N, W) GN_CHANGE1(N, W) GN_CHANGE2(N, W) GN_CHANGE3(N, W)                            \
    GN_CHANGE4(N, W) GN_CHANGE5(N, W) GN_CHANGE6(N, W) GN_CHANGE7(N, W)                            \
    GN_CHANGE8(N, W) GN_CHANGE9(N, W) GN_CHANGE10(N, W) GN_CHANGE11(N, W)                          \
    GN_CHANGE12(N, W) GN_CHANGE13(N, W) GN_CHANGE14(N, W) GN_CHANGE15(N, W)

#define GN_NOTHING(b) return 0u;
#define GN_SKIP(b) break;

#define GN_N(b) return b[i];
#define GN_W(b) return b[i >> 2][i & 3u];
uint gn_load(uint k, uint i) {
    switch (k) {
        GN_CASES(GN_N, GN_W)
    default: return 0u;
    }
}
#undef GN_N
#undef GN_W

#define GN_N(b) return uvec2(b[2u * i], b[2u * i + 1u]);
#define GN_W(b) uvec4 w = b[i >> 1]; return (i & 1u) == 0u ? w.xy : w.zw;
uvec2 gn_load2(uint k, uint i) {
    switch (k) {
        GN_CASES(GN_N, GN_W)
    default: return uvec2(0u);
    }
}
#undef GN_N
#undef GN_W

#define GN_N(b) return uvec4(b[4u * i], b[4u * i + 1u], b[4u * i + 2u], b[4u * i + 3u]);
#define GN_W(b) return b[i];
uvec4 gn_load4(uint k, uint i) {
    switch (k) {
        GN_CASES(GN_N, GN_W)
    default: return uvec4(0u);
    }
}
#undef GN_N
#undef GN_W

#define GN_N(b) b[i] = x; break;
void gn_store(uint k, uint i, uint x) {
    switch (k) {
        GN_CHANGES(GN_N, GN_SKIP)
    default: break;
    }
}
#undef GN_N

#define GN_N(b) b[2u * i] = x.x; b[2u * i + 1u] = x.y; break;
void gn_store2(uint k, uint i, uvec2 x) {
    switch (k) {
        GN_CHANGES(GN_N, GN_SKIP)
    default: break;
    }
}
#undef GN_N

#define GN_N(b) b[4u * i] = x.x; b[4u * i + 1u] = x.y; b[4u * i + 2u] = x.z; b[4u * i + 3u] = x.w; break;
#define GN_W(b) b[i] = x; break;
void gn_store4(uint k, uint i, uvec4 x) {
    switch (k) {
        GN_CHANGES(GN_N, GN_W)
    default: break;
    }
}
#undef GN_N
#undef GN_W

#define GN_N(b) return atomicAdd(b[i], x);
uint gn_atomic_add(uint k, uint i, uint x) {
    switch (k) {
        GN_CHANGES(GN_N, GN_NOTHING)
    default: return 0u;
    }
}
#undef GN_N

#define GN_N(b) return atomicAnd(b[i], x);
uint gn_atomic_and(uint k, uint i, uint x) {
    switch (k) {
        GN_CHANGES(GN_N, GN_NOTHING)
    default: return 0u;
    }
}
#undef GN_N

#define GN_N(b) return atomicOr(b[i], x);
uint gn_atomic_or(uint k, uint i, uint x) {
    switch (k) {
        GN_CHANGES(GN_N, GN_NOTHING)
    default: return 0u;
    }
}
#undef GN_N

#define GN_N(b) return atomicXor(b[i], x);
uint gn_atomic_xor(uint k, uint i, uint x) {
    switch (k) {
        GN_CHANGES(GN_N, GN_NOTHING)
    default: return 0u;
    }
}
#undef GN_N

#define GN_N(b) return atomicMin(b[i], x);
uint gn_atomic_min(uint k, uint i, uint x) {
    switch (k) {
        GN_CHANGES(GN_N, GN_NOTHING)
    default: return 0u;
    }
}
#undef GN_N

#define GN_N(b) return atomicMax(b[i], x);
uint gn_atomic_max(uint k, uint i, uint x) {
    switch (k) {
        GN_CHANGES(GN_N, GN_NOTHING)
    default: return 0u;
    }
}
#undef GN_N

#define GN_N(b) return atomicExchange(b[i], x);
uint gn_atomic_exchange(uint k, uint i, uint x) {
    switch (k) {
        GN_CHANGES(GN_N, GN_NOTHING)
    default: return 0u;
    }
}
#undef GN_N

#define gn_fetch(k, i) gn_load(k, i)
#define gn_fetch2(k, i) gn_load2(k, i)
#define gn_fetch4(k, i) gn_load4(k, i)
// An atomic that changes nothing is the coherent load that every dialect has.
#define gn_load_coherent(k, i) gn_atomic_or(k, i, 0u)
#define gn_store_coherent(k, i, x) gn_atomic_exchange(k, i, x)

#endif // GN_BINDINGS
