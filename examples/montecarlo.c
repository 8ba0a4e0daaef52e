// Monte Carlo: pi by darts, and the price of an option by paths of a random walk, whose slope by the starting price is found
// by autograd; against the formula of Black and Scholes.   cc -O2 montecarlo.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <math.h>
#include <stdio.h>

enum { PATHS = 200000, STEPS = 16 };

static double normal_cdf(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }

int main(void) {
    gn_context *g = gn_open(NULL);
    int failed = 1;
    GN_SCOPE(g) {
        const int64_t darts = 2000000;
        gn_array *xy = gn_rand(g, GN_F32, GN_SHAPE(2, darts));
        double part = gn_item(gn_mean(gn_le_s(gn_sum(gn_square(xy), 0), 1), GN_ALL));
        double pi = 4 * part, pi_error = 4 * sqrt(part * (1 - part) / (double)darts);
        printf("pi    %.4f +- %.4f\n", pi, pi_error);

        const double price = 100, strike = 105, rate = 0.03, volatility = 0.25, years = 1, dt = years / STEPS;
        gn_array *start = gn_requires_grad(gn_scalar(g, GN_F64, price), true);
        gn_array *moves = gn_normal(g, GN_F64, GN_SHAPE(PATHS, STEPS), (rate - 0.5 * volatility * volatility) * dt, volatility * sqrt(dt));
        gn_array *end = gn_mul(start, gn_exp(gn_sum(moves, 1)));
        gn_array *worth = gn_mul_s(gn_relu(gn_sub_s(end, strike)), exp(-rate * years)), *mean = gn_mean(worth, 0);
        gn_backward(mean);
        double value = gn_item(mean), value_error = gn_item(gn_std(worth, 0, 1)) / sqrt(PATHS), slope = gn_item(gn_grad(start));

        double d = (log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / (volatility * sqrt(years));
        double formula = price * normal_cdf(d) - strike * exp(-rate * years) * normal_cdf(d - volatility * sqrt(years));
        printf("call  %.3f +- %.3f, by the formula %.3f\n", value, value_error, formula);
        printf("slope %.4f, by the formula %.4f\n", slope, normal_cdf(d));

        // A walk itself: how far its highest point is from the start, in deviations of its end; on average 2 / sqrt(2 pi).
        gn_array *walk = gn_cumsum(gn_normal(g, GN_F32, GN_SHAPE(2000, 1000), 0, 1 / sqrt(1000.0)), 1);
        gn_array *top = gn_relu(gn_max(walk, 1));
        printf("walks %.3f above their start at most, %.0f %% of them over 2\n", gn_item(gn_mean(top, 0)), 100 * gn_item(gn_mean(gn_gt_s(top, 2), 0)));
        failed = !(fabs(pi - 3.14159265) < 5 * pi_error && fabs(value - formula) < 5 * value_error && fabs(slope - normal_cdf(d)) < 0.01 &&
                   fabs(gn_item(gn_mean(top, 0)) - 0.798) < 0.08);
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
