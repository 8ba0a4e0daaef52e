// >>files
// Array files: NumPy's .npy and .npz, tables as CSV, MNIST's IDX. Each also from and to memory.
//
// A save over a file that is there leaves that as it is until the new one is whole, and then takes its name and its
// permissions.
// A save to memory returns the bytes of the whole, and 0 after an error. Of what does not fit into `capacity` nothing useful
// is written: ask with a capacity of 0 first.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

GPUNUM_API gn_array *gn_load_npy(gn_context *g, const char *path);
GPUNUM_API gn_array *gn_load_npy_memory(gn_context *g, const void *data, size_t bytes);
GPUNUM_API gn_status gn_save_npy(gn_array *a, const char *path); // version 1.0, C order; bfloat16 is refused
GPUNUM_API size_t gn_save_npy_memory(gn_array *a, void *out, size_t capacity);

// One array of an archive that np.savez or np.savez_compressed made; `name` as there, NULL: the only one.
GPUNUM_API gn_array *gn_load_npz(gn_context *g, const char *path, const char *name);
GPUNUM_API gn_array *gn_load_npz_memory(gn_context *g, const void *data, size_t bytes, const char *name);
GPUNUM_API char *gn_npz_names(gn_context *g, const char *path); // its names, one a line; gn_string_free takes them back
GPUNUM_API char *gn_npz_names_memory(gn_context *g, const void *data, size_t bytes);
// Stored, not compressed, with a name for each of the `count` arrays, of which there is one at least.
GPUNUM_API gn_status gn_save_npz(const char *path, gn_array *const *arrays, const char *const *names, int count);
GPUNUM_API size_t gn_save_npz_memory(gn_array *const *arrays, const char *const *names, int count, void *out,
                                     size_t capacity);

// A table of numbers, (lines, columns), behind `skip_lines` lines of names; delimiter 0: a comma. Blank lines do not count,
// nor blanks and quotes around a number. Strict: what is no number of the dtype (nan and inf are some, of floats; nothing is
// none), or a line with more or fewer columns, is GN_ERROR_FORMAT and says where.
GPUNUM_API gn_array *gn_load_csv(gn_context *g, const char *path, gn_dtype t, int skip_lines, char delimiter);
GPUNUM_API gn_array *gn_load_csv_memory(gn_context *g, const void *text, size_t bytes, gn_dtype t, int skip_lines,
                                        char delimiter);
// At most 2 dimensions, each number as short as reads back the same; `header` is the first line, NULL: none.
GPUNUM_API gn_status gn_save_csv(gn_array *a, const char *path, const char *header, char delimiter);
GPUNUM_API size_t gn_save_csv_memory(gn_array *a, const char *header, char delimiter, void *out, size_t capacity);

GPUNUM_API gn_array *gn_load_idx(gn_context *g, const char *path); // ubyte, byte, short, int, float, double
GPUNUM_API gn_array *gn_load_idx_memory(gn_context *g, const void *data, size_t bytes);
// CIFAR-10 in its binary form: data_batch_1.bin to data_batch_5.bin of the folder, or test_batch.bin. uint8 images
// (n, 3, 32, 32), and into *labels (unless NULL) uint8 (n), which is set to NULL on failure.
GPUNUM_API gn_array *gn_load_cifar10(gn_context *g, const char *folder, bool train, gn_array **labels);
