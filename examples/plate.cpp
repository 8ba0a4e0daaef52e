// Heat in a square plate, with gn::array. One edge is kept at 1 and the others at 0; every step moves each inner point to
// the mean of its neighbours. Four such plates, turned, add up to 1 everywhere, so that the centre ends at 1/4. Then the
// temperature of the warm edge is found again from what was measured inside, by following the gradient of the error.
#include "gpunum.h"
#include <cmath>
#include <cstdio>

static const int n = 17, middle = n / 2;

static gn::array settle(gn_context *g) {
    gn::array u(gn_zeros(g, GN_F32, GN_SHAPE(n, n)));
    u[0] = 1;
    for (int step = 0; step < 600; step++)
        u["1:-1, 1:-1"] = (u[":-2, 1:-1"] + u["2:, 1:-1"] + u["1:-1, :-2"] + u["1:-1, 2:"]) / 4;
    return u;
}

int main() {
    gn::context g;
    gn::array u = settle(g), inside = u["1:-1, 1:-1"];
    const double centre = u[middle][middle].item();
    std::printf("centre %.4f, mean inside %.4f\n", centre, gn::mean(inside).item());
    u[middle].print();

    const gn::array measured = inside * 3.5 + 0.25; // a plate whose edges are at 3.75 and .25
    gn::array scale(g, {1.f}), offset(g, {0.f});
    scale.requires_grad();
    offset.requires_grad();
    for (int step = 0; step < 400; step++) {
        scale.zero_grad();
        offset.zero_grad();
        gn::mean(gn::square(inside * scale + offset - measured)).backward();
        gn::no_grad off(g);
        scale -= 2 * scale.grad();
        offset -= 0.5 * offset.grad();
    }
    std::printf("edges %.3f and %.3f\n", (scale + offset).item(), offset.item());

    if (gn_status_get(g) != GN_OK) std::fprintf(stderr, "%s\n", gn_error(g));
    const bool good = std::fabs(centre - 0.25) < 1e-3 && std::fabs(scale.item() - 3.5) < 1e-2 && std::fabs(offset.item() - 0.25) < 1e-2;
    return gn_status_get(g) != GN_OK || !good;
}
