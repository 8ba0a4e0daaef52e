// How long a fuzzer runs, and from which seed on: PROGRAM [seconds [seed [least]]]. Without an argument the environment's
// GPUNUM_FUZZ_SECONDS says the seconds, or it is half a minute, and GPUNUM_FUZZ_SEED the seed, or it comes from the clock;
// it is printed.
#ifndef GPUNUM_FUZZ_H
#define GPUNUM_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct fuzz_run {
    double seconds;
    uint64_t seed; // of the first case, the next ones follow
    long least;    // cases, whatever the seconds
    time_t start;
} fuzz_run;

static fuzz_run fuzz_begin(int argc, char **argv) {
    const char *seconds = argc > 1 ? argv[1] : getenv("GPUNUM_FUZZ_SECONDS");
    fuzz_run r;
    r.seconds = seconds != NULL ? strtod(seconds, NULL) : 30.0;
    r.start = time(NULL);
    const char *seed = argc > 2 ? argv[2] : getenv("GPUNUM_FUZZ_SEED");
    r.seed = seed != NULL ? strtoull(seed, NULL, 0) : (uint64_t)r.start * 1000003u;
    r.least = argc > 3 ? strtol(argv[3], NULL, 0) : 0;
    printf("seed %llu\n", (unsigned long long)r.seed);
    fflush(stdout);
    return r;
}

static bool fuzz_goes_on(const fuzz_run *r, long done) {
    return done < r->least || difftime(time(NULL), r->start) < r->seconds;
}

#endif
