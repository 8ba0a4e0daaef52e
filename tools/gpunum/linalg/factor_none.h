// >>factor_none
// The public decompositions of a program that was compiled with GPUNUM_NO_LINALG.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/linalg.h"
#include "../core/array.h"
#endif

static gn_array *gni_no_linalg(const char *fn, gn_array **in, int count) {
    gn_context *g = gni_begin(fn, in, count);
    if (g == NULL) return NULL;
    gni_fail(g, GN_ERROR_UNSUPPORTED, "%s: GPUNUM_NO_LINALG leaves it out", fn);
    return gni_end(g, NULL);
}

static gn_array *gni_complex_det(gn_context *g, const char *fn, gn_array *a, gn_array **log) {
    GNI_UNUSED(log);
    gn_release(gni_no_linalg(fn, &a, 1));
    GNI_UNUSED(g);
    return NULL;
}

static gn_array *gni_log_det(gn_context *g, gn_array *a) { return gni_complex_det(g, g->call, a, NULL); }

GPUNUM_API gn_array *gn_inv(gn_array *a) { return gni_no_linalg("gn_inv", &a, 1); }
GPUNUM_API gn_array *gn_det(gn_array *a) { return gni_no_linalg("gn_det", &a, 1); }
GPUNUM_API gn_array *gn_cholesky(gn_array *a) { return gni_no_linalg("gn_cholesky", &a, 1); }

GPUNUM_API gn_array *gn_solve(gn_array *a, gn_array *b) {
    gn_array *in[2] = {a, b};
    return gni_no_linalg("gn_solve", in, 2);
}

GPUNUM_API gn_array *gn_solve_triangular(gn_array *a, gn_array *b, bool lower, bool transposed, bool unit) {
    gn_array *in[2] = {a, b};
    (void)(lower + transposed + unit);
    return gni_no_linalg("gn_solve_triangular", in, 2);
}

GPUNUM_API gn_array *gn_qr(gn_array *a, gn_array **r) {
    if (r != NULL) *r = NULL;
    return gni_no_linalg("gn_qr", &a, 1);
}

GPUNUM_API gn_array *gn_eigh(gn_array *a, gn_array **v) {
    if (v != NULL) *v = NULL;
    return gni_no_linalg("gn_eigh", &a, 1);
}

GPUNUM_API gn_array *gn_eig(gn_array *a, gn_array **v) {
    if (v != NULL) *v = NULL;
    return gni_no_linalg("gn_eig", &a, 1);
}

GPUNUM_API gn_array *gn_svd(gn_array *a, bool full, gn_array **u, gn_array **vt) {
    (void)full;
    if (u != NULL) *u = NULL;
    if (vt != NULL) *vt = NULL;
    return gni_no_linalg("gn_svd", &a, 1);
}
