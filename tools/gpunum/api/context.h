// >>context
// Opening and closing, errors, devices, synchronisation. Any thread may use a context; calls on one
// context are serialised inside.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// Opens a context. `options` may be NULL. GN_BACKEND_AUTO always gives a working context; the other
// backends return NULL when they cannot be had (gn_open_error says why).
// The macro passes the version and size of the options this file was compiled with. An implementation that is older
// than that, or of another major version (while that is 0, another minor one), opens nothing.
#define gn_open(...) gn_open_version((__VA_ARGS__), GPUNUM_VERSION, sizeof(gn_options)) // one argument, with its commas
GPUNUM_API gn_context *gn_open_version(const gn_options *options, uint32_t version, size_t options_size);
// The same without waiting, for a page whose program can be suspended by neither JSPI nor Asyncify and could not wait for
// the GPU: `done` is called once, there from the page's loop when the device is there, elsewhere before this returns. What
// `options` points to must stay until then.
#define gn_open_async(options, ...) gn_open_async_version((options), GPUNUM_VERSION, sizeof(gn_options), __VA_ARGS__)
GPUNUM_API void gn_open_async_version(const gn_options *options, uint32_t version, size_t options_size, gn_opened_fn done,
                                      void *user);
// Why the last gn_open on this thread returned NULL, and as a status; "" and GN_OK if it did not.
GPUNUM_API const char *gn_open_error(void);
GPUNUM_API gn_status gn_open_status(void);
// GPUNUM_VERSION and sizeof(gn_options) of the implementation, for programs without this header.
GPUNUM_API uint32_t gn_version(void);
GPUNUM_API size_t gn_options_size(void);
// Waits for the device, then frees everything, arrays still alive included. NULL is ignored. What belonged to `g` is not to
// be given to any function afterwards; while no context is open such calls do nothing, otherwise nobody notices.
GPUNUM_API void gn_close(gn_context *g);

// The first error since the last clear; later errors are dropped until gn_error_clear.
GPUNUM_API gn_status gn_status_get(const gn_context *g);
// Its message, such as "gn_matmul: (3,4) x (5,6): inner dimensions 4 and 5 differ"; "" if none.
// Valid until the next gn_error_clear or gn_close.
GPUNUM_API const char *gn_error(const gn_context *g);
GPUNUM_API void gn_error_clear(gn_context *g); // nothing in gn_options.log, which a call under way calls
GPUNUM_API const char *gn_status_string(gn_status status);
// A function for gn_options.log: writes one line to stderr, such as "gpunum error: gn_matmul: ...". `user` may be NULL.
GPUNUM_API void gn_log_stderr(void *user, gn_log_level level, const char *text);

// Writes up to `capacity` devices and returns how many there are. `out` may be NULL if capacity is 0.
// Entry i is device number i + 1 in gn_options.device. The CPU backend is not in the list.
GPUNUM_API int gn_device_list(gn_device_info *out, int capacity);
// The device that `g` computes on; `why` says why it is not a GPU when it is not.
GPUNUM_API void gn_device_get(const gn_context *g, gn_device_info *out);

GPUNUM_API gn_status gn_flush(gn_context *g); // submit recorded work, do not wait
GPUNUM_API gn_status gn_sync(gn_context *g);  // wait for everything; delivers gn_read_async callbacks
// Calls back for the reads of gn_read_async that have arrived, and waits for none: for a loop that may not wait, as the
// frames of a page. How many are still on their way; 0 where g is NULL.
GPUNUM_API int gn_poll(gn_context *g);

GPUNUM_API void gn_memory_get(gn_context *g, gn_memory_stats *out);
GPUNUM_API void gn_memory_trim(gn_context *g); // give unused memory back to the system and the driver
