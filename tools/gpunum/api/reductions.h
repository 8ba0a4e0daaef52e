// >>reductions
// `axes` is a set: GN_ALL, or GN_AXIS(0) | GN_AXIS(-1), with GN_KEEP to keep reduced axes as size 1. A bare number is
// an error: GN_AXIS(1), not 1. An axis named twice counts once. Join sets with | only: they hold a mark beside the
// axes, so & and ~ do not tell or remove one. GN_AXIS evaluates its argument twice.

#define GN_ALL 0u
#define GN_AXIS(i) ((unsigned)(i) + 8u > 15u ? 0x40000000u : 0x80000000u | 1u << ((unsigned)(i) & 15u)) /* -8 to 7 */
#define GN_KEEP 0x10000u

// gn_sum, gn_prod, gn_min, gn_max, gn_any and gn_all, and gn_argmin and gn_argmax over one axis, are in room
// optable: integers and bool sum and multiply to int64, gn_any and gn_all give bool; NaN wins in gn_min and
// gn_max, which have no value for an empty axis.
GPUNUM_API gn_array *gn_mean(gn_array *a, uint32_t axes); // integers give float32
GPUNUM_API gn_array *gn_var(gn_array *a, uint32_t axes, int ddof); // over n - ddof
GPUNUM_API gn_array *gn_std(gn_array *a, uint32_t axes, int ddof);
GPUNUM_API gn_array *gn_count_nonzero(gn_array *a, uint32_t axes); // int64
GPUNUM_API gn_array *gn_norm(gn_array *a, uint32_t axes); // root of the sum of squares; gradient 0 at 0, as gn_std's
GPUNUM_API gn_array *gn_logsumexp(gn_array *a, uint32_t axes);
// gn_argmin and gn_argmax: index of the first smallest or largest element, NaN counts as such; int32.
// Axis GN_FLAT: of the raveled array.
#define GN_FLAT INT32_MIN
GPUNUM_API gn_array *gn_softmax(gn_array *a, int axis);
GPUNUM_API gn_array *gn_log_softmax(gn_array *a, int axis);
