// >>macros
// Lists of arguments as macros and templates over the functions that take pointers.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/arrays.h"
#include "../api/views.h"
#include "../api/linalg.h"
#endif

// GN_SHAPE(2, 3): a gn_shape by value. GN_SHAPE() is 0-d.
#ifdef __cplusplus
template <class... Dim> static inline gn_shape gni_shape_pack(Dim... dims) {
    const int64_t list[] = {0, static_cast<int64_t>(dims)...};
    return gn_shape_from(static_cast<int>(sizeof...(dims)), list + 1);
}
#define GN_SHAPE(...) gni_shape_pack(__VA_ARGS__)
// GN_AXES(0, 2): a set of axes. GN_AXES() is empty.
template <class... Axis> static inline gn_axes gni_axes_pack(Axis... axes) {
    const int list[] = {0, static_cast<int>(axes)...};
    return gn_axes_from(static_cast<int>(sizeof...(axes)), list + 1);
}
#define GN_AXES(...) gni_axes_pack(__VA_ARGS__)
template <class... Axis> inline gn_array *gn_permute(gn_array *a, Axis... axes) {
    const int list[] = {0, static_cast<int>(axes)...};
    return gn_permute_axes(a, list + 1, static_cast<int>(sizeof...(axes)));
}
template <class... Array> inline gn_array *gn_einsum(gn_context *g, const char *subscripts, Array... arrays) {
    gn_array *const list[] = {nullptr, arrays...};
    return gn_einsum_list(g, subscripts, list + 1, static_cast<int>(sizeof...(arrays)));
}
#else
#define GN_SHAPE(...)                                                                              \
    gn_shape_from((int)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t)) - 1,                \
                  (int64_t[]){0, __VA_ARGS__} + 1)
// GN_AXES(0, 2): a set of axes. GN_AXES() is empty.
#define GN_AXES(...)                                                                               \
    gn_axes_from((int)(sizeof((int[]){0, __VA_ARGS__}) / sizeof(int)) - 1, (int[]){0, __VA_ARGS__} + 1)
// gn_permute(a, 2, 0, 1): axis i of the result is axis axes[i] of `a`.
#define gn_permute(a, ...)                                                                         \
    gn_permute_axes((a), (int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))
#define gn_einsum(g, subscripts, ...)                                                              \
    gn_einsum_list((g), (subscripts), (gn_array *[]){__VA_ARGS__},                                 \
                   (int)(sizeof((gn_array *[]){__VA_ARGS__}) / sizeof(gn_array *)))
#endif
