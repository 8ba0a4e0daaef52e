// Linear regression: the coefficients of a line through noisy points, how sure they are, and whether that is true.
// cc -O2 regression.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <math.h>
#include <stdio.h>

enum { POINTS = 200, COEFFICIENTS = 3, TRIALS = 500 };

static const double truth[COEFFICIENTS] = {1.5, -0.7, 0.25};

// Columns 1, x, x^2.
static gn_array *design(gn_array *x) {
    gn_array *columns[] = {gn_ones_like(x), x, gn_square(x)};
    return gn_stack(columns, COEFFICIENTS, 1);
}

int main(void) {
    gn_context *g = gn_open(NULL);
    int failed = 1;
    GN_SCOPE(g) {
        gn_array *x = gn_uniform(g, GN_F64, GN_SHAPE(POINTS), -3, 3), *a = design(x);
        gn_array *line = gn_matmul(a, gn_array_from(g, GN_F64, GN_SHAPE(COEFFICIENTS), truth));
        gn_array *y = gn_add(line, gn_normal(g, GN_F64, GN_SHAPE(POINTS), 0, 0.5));

        gn_array *squares = NULL, *b = gn_lstsq(a, y, -1, &squares, NULL);
        // Covariance of the coefficients: the noise's variance times (a^T a)^-1.
        gn_array *variance = gn_div_s(squares, POINTS - COEFFICIENTS), *inverse = gn_inv(gn_matmul(gn_transpose(a), a));
        gn_array *error = gn_sqrt(gn_diagonal(gn_mul(inverse, variance), 0));
        double value[COEFFICIENTS], sure[COEFFICIENTS];
        gn_read(b, value, sizeof value);
        gn_read(error, sure, sizeof sure);
        puts("coefficient   value   95 % between");
        for (int i = 0; i < COEFFICIENTS; i++)
            printf("x^%d         %7.4f   %7.4f and %7.4f   (truth %g)\n", i, value[i], value[i] - 1.97 * sure[i], value[i] + 1.97 * sure[i], truth[i]);
        printf("noise %.3f, x and y correlate by %.3f\n", sqrt(gn_item(variance)),
               gn_item(gn_index(gn_corrcoef(gn_stack((gn_array *[]){x, y}, 2, 0)), "0, 1")));

        // The same points with other noise, many times, all at once: the columns of y.
        gn_array *many = gn_add(gn_expand_dims(line, 1), gn_normal(g, GN_F64, GN_SHAPE(POINTS, TRIALS), 0, 0.5));
        gn_array *fits = gn_lstsq(a, many, -1, &squares, NULL); // (COEFFICIENTS, TRIALS)
        gn_array *errors = gn_sqrt(gn_mul(gn_expand_dims(gn_diagonal(inverse, 0), 1), gn_div_s(squares, POINTS - COEFFICIENTS)));
        gn_array *off = gn_abs(gn_sub(fits, gn_expand_dims(gn_array_from(g, GN_F64, GN_SHAPE(COEFFICIENTS), truth), 1)));
        gn_array *inside = gn_mean(gn_lt(off, gn_mul_s(errors, 1.97)), 1);
        puts("of that many trials the truth was between the bounds in:");
        gn_print(inside);
        failed = !(gn_item(gn_min(inside, GN_ALL)) > 0.91 && gn_item(gn_max(inside, GN_ALL)) < 0.985);
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
