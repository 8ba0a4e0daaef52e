// matmul_half.comp's main for what depends on the rows of a and the columns of b that split.comp could not pack:
// plain products of float32, four neighbours of a row by 32 invocations that share k.

shared vec4 gn_part[256];

void gn_patch(uint row, uint column, uint batch) {
    uint me = gl_LocalInvocationIndex, lane = me % 32u;
    uint count = row < GN_M ? gn_inside(column, GN_N) : 0u;
    uvec2 base = gn_batch(batch);
    vec4 sum = vec4(0.0);
    for (uint k = lane; k < GN_K && count > 0u; k += 32u) {
        float a = uintBitsToFloat(GN_AT(GN_OPEN(GN_A), base.x + row * GN_A_ROW + k * GN_A_COLUMN));
        vec4 b = gn_read_run(GN_OPEN(GN_B), base.y + k * GN_B_ROW + column * GN_B_COLUMN, GN_B_COLUMN, GN_T_F32, false, count);
        sum = fma(vec4(a), b, sum);
    }
    gn_part[me] = sum;
    for (uint step = 16u; step > 0u; step >>= 1) {
        barrier();
        if (lane < step) gn_part[me] += gn_part[me + step];
    }
    if (lane == 0u) gn_write_run(row, column, batch, gn_part[me]);
    barrier();
}

void main() {
    uint batch = gl_WorkGroupID.z, b = gl_WorkGroupID.y / GN_PATCHES, number = gl_WorkGroupID.y % GN_PATCHES;
    if (gn_known(GN_MODE) > 1u || number >= gn_known(GN_LISTED + b)) return;
    uint entry = gn_known(GN_LIST + gl_WorkGroupID.y), padded = b == 0u ? GN_PADDED_M : GN_PADDED_N;
    if ((b == 0u ? GN_A_PACKED : GN_B_PACKED) > 1u && entry / padded != batch) return;
    uint line = entry % padded, units = b == 0u ? (GN_N + 3u) / 4u : GN_M;
    for (uint first = gl_WorkGroupID.x * 8u; first < units; first += gl_NumWorkGroups.x * 8u) {
        uint unit = first + gl_LocalInvocationIndex / 32u;
        if (b == 0u) gn_patch(line, unit * 4u, batch);
        else gn_patch(unit, line & ~3u, batch);
    }
}
