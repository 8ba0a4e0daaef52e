// What sorts of rows have in common: an element of the result, and with GN_HOLDS so many slots of keys and places in shared
// memory, keys of one word without GN_LONG_KEYS. Include order.glsl first, and say where GN_OUT_BASE and the like are.

layout(constant_id = GNI_S_SORT_PLACES) const uint GN_PLACES = 0u; // places are asked for
layout(constant_id = GNI_S_SORT_VALUES) const uint GN_VALUES = 0u;

// The result's element o of a row is that at `place`, whose key is u.
void gn_finish(uint row, uint o, uint place, uvec2 u) {
    uint to = row * GN_TAKE + o;
    if (GN_PLACES != 0u) gn_store2(4u, GN_INDEX_BASE + to, uvec2(place, 0u));
    if (GN_VALUES == 0u) return;
    if (GN_PLACES != 0u) u = gn_bits(0u, GN_IN_BASE + row * GN_ROW_LENGTH + place);
    else u = gn_key_back(u);
    gn_put_bits(3u, GN_OUT_BASE + to, u);
}

#ifdef GN_HOLDS
shared uint gn_low[GN_HOLDS];
shared uint gn_from[GN_HOLDS];
#ifdef GN_LONG_KEYS
shared uint gn_high[GN_HOLDS];
#endif

// A slot's key and place.
uvec3 gn_held(uint i) {
#ifdef GN_LONG_KEYS
    return uvec3(gn_low[i], gn_high[i], gn_from[i]);
#else
    return uvec3(gn_low[i], 0u, gn_from[i]);
#endif
}
void gn_hold(uint i, uvec3 v) {
    gn_low[i] = v.x;
#ifdef GN_LONG_KEYS
    gn_high[i] = v.y;
#endif
    gn_from[i] = v.z;
}

// Whether slot a belongs behind slot b. Places are all different.
bool gn_slot_behind(uint a, uint b) {
#ifdef GN_LONG_KEYS
    if (gn_high[a] != gn_high[b]) return gn_high[a] > gn_high[b];
#endif
    return gn_low[a] > gn_low[b] || (gn_low[a] == gn_low[b] && gn_from[a] > gn_from[b]);
}

// Sorts each 2^log_size slots of the first 2 `pairs` by a bitonic network.
void gn_sort_held(uint log_size, uint pairs) {
    for (uint k = 1u; k <= log_size; k++)
        for (uint j = k; j-- > 0u;) {
            for (uint t = gl_LocalInvocationIndex; t < pairs; t += 256u) {
                uint a = ((t >> j) << (j + 1u)) | (t & ((1u << j) - 1u)), b = a | (1u << j);
                bool up = k == log_size || ((a >> k) & 1u) == 0u;
                if (gn_slot_behind(a, b) != up) continue;
                uvec3 v = gn_held(a);
                gn_hold(a, gn_held(b));
                gn_hold(b, v);
            }
            barrier();
        }
}
#endif
