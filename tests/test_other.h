// A second context of a test, without a GPU.

static gn_context *other; // on the CPU

static int open_other(void **state) {
    gn_options o = test_options();
    o.backend = GN_BACKEND_CPU;
    o.placement = GN_PLACE_AUTO;
    memset(&o.allocator, 0, sizeof o.allocator);
    other = gn_open(&o);
    (void)state;
    return other == NULL;
}

static int close_other(void **state) {
    (void)state;
    gn_close(other);
    return 0;
}
