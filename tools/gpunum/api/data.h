// >>data
// Batches of samples for training.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// Deals samples out in batches, which a thread makes ahead of time in memory of its own: it does not use the context, and next
// to a running training step nothing waits. The order depends on the seed and the epoch alone, on every backend.
typedef struct gn_loader gn_loader;

// One array of a batch. Its samples are the rows of `array`, which are copied to the CPU once; or they stand in `data` one after
// the other, dtype t and shape s each, and stay there; or, both NULL, `fill` writes them.
typedef struct gn_loader_field {
    gn_array *array;
    const void *data;
    gn_dtype t;
    gn_shape s; // of one sample
} gn_loader_field;

// Called for each batch, on the loader's thread if it has one: out[i] has `count` samples of field i, those of `indices`, to be
// written or changed. NULL where all went well, or else what went wrong in words, which are copied.
typedef const char *(*gn_loader_fill)(void *user, const int64_t *indices, int64_t count, void *const *out);

typedef struct gn_loader_options {
    int64_t batch;       // samples; 0 = 1
    bool shuffle;        // anew in every epoch
    bool drop_last;      // a batch of fewer samples at the end of an epoch
    uint64_t seed;       // of the order
    int prefetch;        // batches ahead; 0 = 2, -1 = none, and no thread
    gn_loader_fill fill; // may be NULL
    void *user;
} gn_loader_options;

// `options` may be NULL.
GPUNUM_API gn_loader *gn_loader_new(gn_context *g, const gn_loader_field *fields, int count, int64_t samples,
                                    const gn_loader_options *options);
// The next batch into batch[i], a new array (samples, ...) for each field. False where the epoch has ended, and the next call
// begins another one; and where `fill` failed, which gn_status_get tells (GN_ERROR_IO): the call behind it goes on with the
// batch that follows. Any thread may call it.
GPUNUM_API bool gn_loader_next(gn_loader *l, gn_array **batch);
GPUNUM_API int64_t gn_loader_batches(const gn_loader *l); // of one epoch
// Goes on with that batch of that epoch, both from 0 on: to resume, or to repeat.
GPUNUM_API gn_status gn_loader_seek(gn_loader *l, int64_t epoch, int64_t batch);
GPUNUM_API void gn_loader_free(gn_loader *l); // gn_close frees those still alive
