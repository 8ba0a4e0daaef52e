// An operand of a matrix product that is made while it is read (gni_matmul.load): elementwise work over groups of
// four elements, four along the operand's other dimension (`along`) or along k. Include after epilogue.glsl, whose
// words it has; such a product has no program at its store.
//
// Registers: 1 to 3 are the inputs, the others as there; the first input has the operand's own place among the buffer
// arguments, the others 6 and 7. The steps in the parameters are those along the other dimension, along k and along
// batches.

// Four neighbours of input k, as they lie in memory: along the operand's rows or columns of the product (`along`) from
// x on, at place y along k; else along k from y on. `most`: so many are there after the first.
uvec4 gn_prologue_read(uint k, GN_HANDLE h, uint x, uint y, uint batch, bool along, uint most) {
    uint step_x = GN_E_PARAM(4u * k + 1u), step_y = GN_E_PARAM(4u * k + 2u), dtype = GN_E_DTYPE(k);
    uint at = GN_E_PARAM(4u * k) + x * step_x + y * step_y + batch * GN_E_PARAM(4u * k + 3u);
    if (GN_E_ONE(k)) return gn_read_raw(h, uvec4(at), dtype, true, false);
    if (GN_E_GROUPS(k)) return gn_read_raw(h, uvec4(at), dtype, false, true);
    return gn_read_raw(h, at + (along ? step_x : step_y) * min(uvec4(0u, 1u, 2u, 3u), uvec4(most)), dtype, false, false);
}
// What the program makes of its inputs, as bits of float32.
uvec4 gn_prologue_make(uvec4 u, uvec4 v, uvec4 w) {
    gn_r[1] = gn_widen(u, GN_E_DTYPE(0u));
    if (GN_E_COUNT > 1u) gn_r[2] = gn_widen(v, GN_E_DTYPE(1u));
    if (GN_E_COUNT > 2u) gn_r[3] = gn_widen(w, GN_E_DTYPE(2u));
    GN_E_RUN
    return gn_r[GN_E_RESULT];
}

// The inputs of a made operand, the first to where the operand itself would go.
void gn_prologue_fetch(inout uvec4 u, inout uvec4 v, inout uvec4 w, uvec2 p, uint first, uint k0, uvec2 limit, bool along,
                    uint batch) {
    uint x = min(first + p.x, limit.x - 1u);
    uint y = GN_WHOLE ? min(k0, limit.y - GN_SLICE) + p.y : min(k0 + p.y, limit.y - 1u);
    uint most = along ? limit.x - 1u - x : limit.y - 1u - y;
    u = gn_prologue_read(0u, GN_OPEN(GN_PROLOGUE - 1u), x, y, batch, along, most);
    if (GN_E_COUNT > 1u) v = gn_prologue_read(1u, GN_OPEN(6u), x, y, batch, along, most);
    if (GN_E_COUNT > 2u) w = gn_prologue_read(2u, GN_OPEN(7u), x, y, batch, along, most);
}
