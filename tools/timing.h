// What the tools that measure share: a clock, in seconds, and qsort's order of doubles for medians.
#ifndef TIMING_H
#define TIMING_H

#include <time.h>

#if defined(__unix__)
#include <sys/time.h>
#endif

static double now(void) {
#if defined(__unix__)
    struct timeval t;
    gettimeofday(&t, NULL);
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
#else
    return (double)clock() / CLOCKS_PER_SEC;
#endif
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
