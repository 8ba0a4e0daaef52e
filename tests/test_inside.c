// The tests that see private names (gni_), in one program: the implementation is compiled once for all of them.
//
//   test_inside learn|split|vulkan

#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"

#include "test.h"

#define main test_learn
#include "test_learn.c"
#undef main
#define main test_split
#include "test_split.c"
#undef main
#define main test_vulkan
#include "test_vulkan.c"
#undef main

// With a sanitizer other programs link the implementation out of this file, and so its main is elsewhere (tests.cmake).
#ifdef GN_TEST_INSIDE
int GN_TEST_INSIDE(int argc, char **argv);
#else
#define GN_TEST_INSIDE main
#endif

int GN_TEST_INSIDE(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "learn") == 0) return test_learn();
    if (strcmp(name, "split") == 0) return test_split();
    if (strcmp(name, "vulkan") == 0) return test_vulkan();
    fprintf(stderr, "test_inside learn|split|vulkan\n");
    return 2;
}
