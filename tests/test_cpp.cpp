// gn::array and its kin, compiled as C++11 without exceptions and RTTI: values, who owns what, errors, gradients.
// Arrays that are alive are counted after each test.
#include "gpunum.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

static_assert(std::is_constructible<bool, gn::array>::value, "if (y) asks whether y is there");
static_assert(!std::is_constructible<bool, gn::comparison>::value, "if (a == b) does not compile");

static int failures = 0;
#define CHECK(what) ((what) ? (void)0 : (void)(failures++, std::printf("line %d: %s\n", __LINE__, #what)))

template <class T, size_t n> static bool is(const gn::array &a, const T (&want)[n]) {
    T got[n];
    if (a.size() != static_cast<int64_t>(n) || a.read(got, n) != GN_OK) return false;
    for (size_t i = 0; i < n; i++)
        if (!(std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[i])) <= 1e-6)) return false;
    return true;
}

static uint64_t alive(gn_context *g) {
    gn_memory_stats stats;
    gn_memory_get(g, &stats);
    return stats.arrays;
}

static bool failed(gn_context *g, gn_status status, const char *text) {
    const bool as_said = gn_status_get(g) == status && std::strstr(gn_error(g), text) != nullptr;
    if (!as_said) std::printf("%s\n", gn_error(g));
    gn_error_clear(g);
    return as_said;
}

static void test_make(gn_context *g) {
    gn::array a(g, {1.f, 2.f, 3.f}), b(g, {{1, 2, 3}, {4, 5, 6}}), c(g, {1.5, 2.5}), d(g, {true, false});
    CHECK(a.dtype() == GN_F32 && b.dtype() == GN_I32 && c.dtype() == GN_F64 && d.dtype() == GN_BOOL);
    CHECK(gn_rank(b) == 2 && b.dim(0) == 2 && b.dim(-1) == 3 && b.shape().dim[1] == 3 && b.size() == 6);
    CHECK(is(a, {1.f, 2.f, 3.f}) && is(b, {1, 2, 3, 4, 5, 6}) && is(d, {true, false}));
    CHECK(is(b, {1., 2., 3., 4., 5., 6.})); // converted
    CHECK(gn::array(g, {int64_t(1) << 60}).dtype() == GN_I64 && gn::array(g, {uint8_t(7)}).item() == 7);
    gn::array ragged(g, {{1, 2, 3}, {4}});
    CHECK(!ragged && failed(g, GN_ERROR_SHAPE, "array 0 has shape (3,), array 1 has (1,)"));
    const std::vector<double> numbers = {1.5, -2}, none;
    CHECK(is(gn::array(g, numbers), {1.5, -2.}) && gn::array(g, numbers).dtype() == GN_F64);
    CHECK(gn::array(g, none).size() == 0 && gn::array(g, none).to<std::vector<int>>().empty());
    CHECK(b.to<std::vector<float>>() == std::vector<float>({1, 2, 3, 4, 5, 6}) && gn::array().to<std::vector<int>>().empty());
    float two[2];
    CHECK(a.read(two, 2) != GN_OK && failed(g, GN_ERROR_ARGUMENT, "gn_read"));
}

static void test_operators(gn_context *g) {
    gn::array a(g, {1.f, 2.f, 4.f}), b(g, {4.f, 2.f, 1.f});
    CHECK(is(a + b, {5.f, 4.f, 5.f}) && is(a - b, {-3.f, 0.f, 3.f}) && is(a * b, {4.f, 4.f, 4.f}) && is(a / b, {.25f, 1.f, 4.f}));
    CHECK(is(a + 1, {2.f, 3.f, 5.f}) && is(1 - a, {0.f, -1.f, -3.f}) && is(2.0 * a, {2.f, 4.f, 8.f}) && is(4.f / a, {4.f, 2.f, 1.f}));
    CHECK(is(a - 1L, {0.f, 1.f, 3.f}) && is(a / 2u, {.5f, 1.f, 2.f}) && is(-a, {-1.f, -2.f, -4.f}) && is(a + 0, {1.f, 2.f, 4.f}));
    CHECK(is(a == b, {false, true, false}) && is(a != b, {true, false, true}) && is(a < b, {true, false, false}));
    CHECK(is(a <= b, {true, true, false}) && is(a > b, {false, false, true}) && is(a >= b, {false, true, true}));
    CHECK(is(a == 2, {false, true, false}) && is(2 != a, {true, false, true}) && is(2 < a, {false, false, true}));
    CHECK(is(2 <= a, {false, true, true}) && is(2 > a, {true, false, false}) && is(2 >= a, {true, true, false}));
    CHECK(is((a > 1) & (a < 4), {false, true, false}) && is((a < 2) | (b < 2), {true, false, true}));
    CHECK(is(~(a == b), {true, false, true}) && is(~(a == 2), {true, false, true}));
    CHECK(is((a > 1) ^ (b > 1), {true, false, true}) && is(a % b, {1.f, 0.f, 0.f}) && is(a % 3, {1.f, 2.f, 1.f}));
    gn::array bits(g, {5, -1}), flags(g, {4, 12});
    CHECK(is(bits & flags, {4, 12}) && is(bits | 2, {7, -1}) && is(1 ^ bits, {4, -2}));
    CHECK(is(~bits, {-6, 0}) && is(bits % 3, {2, 2}));
    bits &= flags;
    bits |= 1;
    bits["0"] ^= 1;
    bits[1] %= 5;
    CHECK(is(bits, {4, 3}) && !(a & b) && failed(g, GN_ERROR_DTYPE, "gn_and"));
    CHECK(is(gn::maximum(a, b), {4.f, 2.f, 4.f}) && is(gn::minimum(a, 2), {1.f, 2.f, 2.f}));
    CHECK(is(gn::pow(a, b), {1.f, 4.f, 4.f}) && is(gn::pow(a, 2), {1.f, 4.f, 16.f}));
    CHECK(is(gn::where(a > 1, a, 0), {0.f, 2.f, 4.f}) && is(gn::where(a > 1, -1, bits["0"]), {4, -1, -1}));
    CHECK(gn::where(a > 1, bits["0"], 2.5).dtype() == GN_F32 && gn::where(a > 1, bits["0"], 2).dtype() == GN_I32);
    CHECK(!gn::where(a > 1, gn::array(), 1) && failed(g, GN_ERROR_ARGUMENT, "gn_where: array argument 2 is NULL"));
    CHECK((a * 2).dtype() == GN_F32 && (a == b).dtype() == GN_BOOL);
    gn::array x = a;
    x += b;
    x -= 1;
    x *= a;
    x /= 2;
    CHECK(is(x, {2.f, 3.f, 8.f}) && is(a, {1.f, 2.f, 4.f})); // a copy refers to what was
    CHECK(std::fabs(gn::sum(gn::exp(a)).item() - (std::exp(1.) + std::exp(2.) + std::exp(4.))) < 1e-4);
    CHECK(is(gn::where(a > b, a, b), {4.f, 2.f, 4.f}) && gn::mean(a * a).item() == 7 && gn::argmax(a).item() == 2);
    CHECK(is(gn::matmul(a.reshape({1, -1}), b.reshape({-1, 1})), {12.f}) && a.cast(GN_F64).dtype() == GN_F64);
}

static void test_views(gn_context *g) {
    gn::array a(g, {{1, 2, 3}, {4, 5, 6}});
    CHECK(is(a[0], {1, 2, 3}) && is(a[-1L], {4, 5, 6}) && a[1][size_t(2)].item() == 6);
    CHECK(is(a["::-1, 1:"], {5, 6, 2, 3}) && is(a.slice(1, 0, 2), {1, 2, 4, 5}) && is(a.t(), {1, 4, 2, 5, 3, 6}));
    CHECK(!a[2] && failed(g, GN_ERROR_ARGUMENT, "gn_at"));
    CHECK(!a[INT64_MIN] && failed(g, GN_ERROR_ARGUMENT, "gn_at"));
    gn::array same = a, row = a[0];
    a[0][0] = a[0][1] = 40; // from the right
    CHECK(is(a[0], {40, 40, 3}));
    a[0] = gn::array(g, {7, 8, 9});
    a["1, :2"] = 0;
    a["1, 2"] += 10;
    a[0] *= a[0];
    CHECK(is(a, {49, 64, 81, 0, 0, 16}) && is(same, {49, 64, 81, 0, 0, 16}) && is(row, {49, 64, 81}));
    row = a[1]; // the variable, not the elements
    CHECK(is(a, {49, 64, 81, 0, 0, 16}) && is(row, {0, 0, 16}));
    a["1"] = gn::array(g, {1, 2});
    CHECK(failed(g, GN_ERROR_SHAPE, "gn_assign"));
    const long long odd = (1LL << 53) + 1; // which no double holds
    const unsigned long long most = ~0ull;
    gn::array whole(g, {0LL, 0LL}), natural(g, {0ull});
    whole[0] = odd;
    natural[0] = most;
    CHECK(gn_item_int(whole[0]) == odd && gn_item_int(natural) == -1 && gn_status_get(g) == GN_OK);
    whole[1] = 2.5; // other types of numbers are doubles
    natural[0] = -1;
    CHECK(failed(g, GN_ERROR_ARGUMENT, "gn_scalar") && gn_item_int(whole[1]) == 2);
}

static void test_owners(gn_context *g) {
    const uint64_t before = alive(g);
    gn::array outlives, taken;
    {
        gn::scope inside(g);
        gn::array a(g, {1.f, 2.f}), b = a, c = static_cast<gn::array &&>(b);
        gn_array *left = gn_exp(gn_neg(a)); // to the scope
        CHECK(left != nullptr && !b && c && a);
        outlives = a + c;
        taken = gn::array(gn_mul(a, gn_exp(a)));
    }
    CHECK(is(outlives, {2.f, 4.f}) && taken["1"].item() > 14);
    CHECK(alive(g) - before == 2); // operands of pending work are gone with it
    const gn::array &same = outlives;
    outlives = same;
    gn_array *mine = outlives.release();
    CHECK(!outlives && mine != nullptr);
    gn_release(mine);
    taken = gn::array();
    CHECK(alive(g) == before && gn_status_get(g) == GN_OK);
}

static void test_errors(gn_context *g) {
    gn::array a(g, {1.f, 2.f}), b(g, {1.f, 2.f, 3.f}), empty;
    gn::array c = gn::exp(a * b + 1) / 2;
    CHECK(!c && failed(g, GN_ERROR_SHAPE, "gn_mul: shapes (2,) and (3,)"));
    a += b;
    CHECK(failed(g, GN_ERROR_SHAPE, "gn_add") && is(a, {1.f, 2.f})); // as it was
    CHECK(!(empty + empty) && !(-empty) && !empty[0] && empty.size() == 0 && std::isnan(empty.item()));
    gn::array copy = empty;
    copy = empty;
    CHECK(!copy && gn_status_get(g) == GN_OK);
    empty["0"] = 1;
    empty["0"] = a;
    gn_error_clear(g);
}

static void test_gradients(gn_context *g) {
    gn::array w(g, {1.f, 2.f, 3.f}), x(g, {2.f, 0.f, -1.f});
    w.requires_grad();
    CHECK(!w.grad());
    gn::array loss = gn::sum(w * w * x);
    CHECK(loss.backward() == GN_OK && is(w.grad(), {4.f, 0.f, -6.f}));
    gn::array first = w.grad(), again = w.grad();
    {
        gn::no_grad off(g);
        w -= 0.5 * first;
    }
    CHECK(is(w, {-1.f, 2.f, 6.f}) && gn_needs_grad(w) && !gn_needs_grad(w.detach()) && is(first, {4.f, 0.f, -6.f}));
    gn::sum(w).backward();
    CHECK(is(w.grad(), {1.f, 1.f, 1.f}));
    w.zero_grad();
    CHECK(gn_status_get(g) == GN_OK);
    gn_adam_options options = {};
    options.lr = 0.5;
    gn_optimizer *adam = gn_adam(w.list(), 1, &options);
    for (int i = 0; i < 3; i++) {
        gn_zero_grads(adam);
        gn::sum(gn::square(w - 1)).backward();
        gn_step(adam);
    }
    gn_optimizer_free(adam);
    CHECK(w[0].item() > -0.5 && gn_status_get(g) == GN_OK);
}

int main() {
    const char *backend = std::getenv("GN_TEST_BACKEND");
    gn_options options = {};
    options.backend = backend != nullptr && std::strcmp(backend, "vulkan") == 0 ? GN_BACKEND_VULKAN : GN_BACKEND_CPU;
    if (options.backend == GN_BACKEND_VULKAN) options.placement = GN_PLACE_GPU;
    gn::context g(&options);
    if (!g) return std::printf("%s\n", gn_open_error()), 1;
    void (*const tests[])(gn_context *) = {test_make, test_operators, test_views, test_owners, test_errors, test_gradients};
    for (void (*test)(gn_context *) : tests) {
        test(g);
        CHECK(alive(g) == 0);
        CHECK(gn_status_get(g) == GN_OK);
    }
    std::printf("%d failures\n", failures);
    return failures != 0;
}
