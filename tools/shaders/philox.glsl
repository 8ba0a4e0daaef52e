// Philox 4x32-10 (Salmon et al., SC 2011).
uvec4 gn_philox(uvec4 c, uvec2 key) {
    for (int i = 0; i < 10; i++) {
        uint h0, l0, h1, l1;
        umulExtended(0xd2511f53u, c.x, h0, l0);
        umulExtended(0xcd9e8d57u, c.z, h1, l1);
        c = uvec4(h1 ^ c.y ^ key.x, l1, h0 ^ c.w ^ key.y, l0);
        key += uvec2(0x9e3779b9u, 0xbb67ae85u);
    }
    return c;
}
