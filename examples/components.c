// Principal components: the few directions in which data varies, by the singular values of the centred table.
// cc -O2 components.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>

enum { SAMPLES = 500, VARIABLES = 30, HIDDEN = 3 };

int main(void) {
    gn_context *g = gn_open(NULL);
    int failed = 1;
    GN_SCOPE(g) {
        // Thirty measured variables that are mixtures of three hidden ones, and noise.
        gn_array *mix = gn_randn(g, GN_F32, GN_SHAPE(HIDDEN, VARIABLES)), *hidden = gn_randn(g, GN_F32, GN_SHAPE(SAMPLES, HIDDEN));
        gn_array *noise = gn_normal(g, GN_F32, GN_SHAPE(SAMPLES, VARIABLES), 0, 0.3);
        gn_array *x = gn_add_s(gn_add(gn_matmul(hidden, mix), noise), 7);

        gn_array *mean = gn_mean(x, 0), *centred = gn_sub(x, mean), *u = NULL, *vt = NULL;
        gn_array *s = gn_svd(centred, false, &u, &vt); // rows of vt are the directions
        gn_array *variance = gn_square(s), *part = gn_div(variance, gn_sum(variance, 0));
        puts("part of the variance in the first five directions, and summed up:");
        gn_print(gn_index(part, ":5"));
        gn_print(gn_index(gn_cumsum(part, 0), ":5"));

        // Three numbers for each sample instead of thirty, and what these know of it.
        gn_array *directions = gn_slice(vt, 0, 0, HIDDEN, 1), *scores = gn_matmul(centred, gn_transpose(directions));
        gn_array *back = gn_add(gn_matmul(scores, directions), mean);
        double error = gn_item(gn_std(gn_sub(back, x), GN_ALL, 0)), all = gn_item(gn_std(centred, GN_ALL, 0));
        printf("put together from %d numbers each sample is %.3f off, of a spread of %.3f\n", HIDDEN, error, all);

        // The scores are uncorrelated: their covariance is the squares of the singular values on the diagonal.
        gn_array *covariance = gn_cov(gn_transpose(scores), 1);
        gn_print(covariance);
        gn_array *expected = gn_div_s(gn_slice(variance, 0, 0, HIDDEN, 1), SAMPLES - 1);
        gn_array *off = gn_sub(covariance, gn_mul(gn_eye(g, GN_F32, HIDDEN, HIDDEN, 0), expected));
        failed = !(error < 0.35 && gn_item(gn_max(gn_abs(off), GN_ALL)) < 1e-3);
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
