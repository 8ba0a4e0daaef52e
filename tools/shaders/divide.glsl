// i / d, i below 2^31, by the divider at p: d, and the multiplier and shift that the host worked out.
uint gn_over(uint i, uint p) {
    uint high, low;
    umulExtended(i, GN_PARAM(p + 1u), high, low);
    return (high + i) >> GN_PARAM(p + 2u);
}
