// Networks trained for a while: each loss on the way, and what is left behind, are PyTorch's (torch_models.h), on each backend,
// and twice the same bits.
#include "test.h"
#include "torch_series.h"
#include "torch_models.h"

enum { MOST = 256 };
typedef struct curve {
    double value[MOST];
    int count;
} curve;

static void note(curve *c, gn_array *a) {
    assert_non_null(a);
    assert_true(c->count + gn_size(a) <= MOST);
    assert_int_equal(gn_read(gn_cast(a, GN_F64), c->value + c->count, sizeof(double) * (size_t)gn_size(a)), GN_OK);
    c->count += (int)gn_size(a);
}

// A parameter of torch_models.py, with numbers from `shift` on.
static gn_array *from(gn_context *g, gn_dtype t, gn_shape s, double scale, double shift) {
    return gn_requires_grad(series(g, t, s, scale, shift), true);
}
static gn_array *made(gn_context *g, gn_dtype t, gn_shape s) { return from(g, t, s, 1.0, -0.5); }

// ---- images

typedef struct images {
    gn_array *conv[2], *bias, *scale[2], *shift[2], *w, *b, *mean, *var;
} images;

static gn_array *see(const images *n, gn_array *x, bool training) {
    gn_conv_options first = {0}, second = {0};
    first.pad = second.pad = 1;
    second.stride = second.groups = 2;
    x = gn_batch_norm(gn_conv2d(x, n->conv[0], n->bias, &first), n->mean, n->var, n->scale[0], n->shift[0], training, 0.1, 1e-5);
    x = gn_conv2d(gn_max_pool2d(gn_relu(x), 2, NULL, NULL), n->conv[1], NULL, &second);
    x = gn_silu(gn_group_norm(x, 3, n->scale[1], n->shift[1], 1e-5));
    return gn_linear(gn_reshape(x, GN_SHAPE(8, 24)), n->w, n->b);
}

static void train_images(gn_context *g, gn_dtype t, curve *c) {
    images n;
    gn_array *x = series(g, t, GN_SHAPE(8, 2, 8, 8), 2.0, -1.0), *labels = gn_mod_s(gn_arange(g, GN_I32, 0, 8, 1), 3);
    n.conv[0] = made(g, t, GN_SHAPE(4, 2, 3, 3)), n.conv[1] = made(g, t, GN_SHAPE(6, 2, 3, 3));
    n.bias = made(g, t, GN_SHAPE(4));
    for (int i = 0; i < 2; i++) {
        n.scale[i] = from(g, t, GN_SHAPE(4 + 2 * i), 0.4, 0.8);
        n.shift[i] = from(g, t, GN_SHAPE(4 + 2 * i), 0.2, -0.1);
    }
    n.w = made(g, t, GN_SHAPE(24, 3)), n.b = made(g, t, GN_SHAPE(3));
    n.mean = gn_zeros(g, t, GN_SHAPE(4)), n.var = gn_ones(g, t, GN_SHAPE(4));
    gn_array *const params[] = {n.conv[0], n.bias, n.scale[0], n.shift[0], n.conv[1], n.scale[1], n.shift[1], n.w, n.b};
    const gn_sgd_options sgd = {0.1, 0.9, 0.0, 1e-3, true};
    const gn_cross_entropy_options smooth = {NULL, 0.1, false, 0, GN_REDUCE_MEAN};
    gn_optimizer *opt = gn_sgd(params, 9, &sgd);
    for (int step = 0; step < 20; step++)
        GN_SCOPE(g) {
            gn_array *loss = gn_cross_entropy_with(see(&n, x, true), labels, &smooth);
            gn_zero_grads(opt);
            gn_backward(loss);
            gn_clip_grad_norm(params, 9, 1.0);
            gn_lr_set(opt, gn_lr_one_cycle(step, 0.1, 20));
            gn_step(opt);
            note(c, loss);
        }
    note(c, n.mean), note(c, n.var), note(c, see(&n, x, false));
    gn_optimizer_free(opt);
}

// ---- text

static void train_text(gn_context *g, gn_dtype t, curve *c) {
    int32_t ids[44];
    for (int i = 0; i < 44; i++) ids[i] = (i * 7 + i * i) % 11;
    gn_array *all = gn_array_from(g, GN_I32, GN_SHAPE(4, 11), ids), *labels = gn_copy(gn_index(all, ":, 1:"));
    all = gn_index(all, ":, :-1");
    gn_assign(gn_index(labels, "1, 3:5"), gn_full(g, GN_I32, GN_SHAPE(), -100));
    gn_array *table = made(g, t, GN_SHAPE(11, 16)), *scale[2], *shift = from(g, t, GN_SHAPE(16), 0.2, -0.1),
             *qkv = made(g, t, GN_SHAPE(16, 32)), *out = made(g, t, GN_SHAPE(16, 16)), *up = made(g, t, GN_SHAPE(16, 24)),
             *down = made(g, t, GN_SHAPE(24, 16)), *average = gn_detach(gn_copy(table));
    for (int i = 0; i < 2; i++) scale[i] = from(g, t, GN_SHAPE(16), 0.4, 0.8);
    gn_array *const params[] = {table, scale[0], qkv, out, scale[1], shift, up, down};
    const gn_adam_options adam = {0.02, 0.0, 0.0, 0.0, 0.1};
    const gn_attention_options causal = {0.0, true, 0, 0.0};
    gn_cross_entropy_options some = {NULL, 0.0, true, -100, GN_REDUCE_MEAN};
    gn_optimizer *opt = gn_adamw(params, 8, &adam);
    for (int step = 0; step < 15; step++)
        GN_SCOPE(g) {
            gn_array *x = gn_embedding(all, table, GN_NONE), *part[3], *h = gn_matmul(gn_rms_norm(x, 1, scale[0], 1e-5), qkv);
            for (int i = 0; i < 3; i++) {
                const int64_t begin = i == 0 ? 0 : 8 + 8 * i, heads = i == 0 ? 4 : 2;
                part[i] = gn_swap_axes(gn_reshape(gn_slice(h, 2, begin, begin + 4 * heads, 1), GN_SHAPE(4, 10, heads, 4)), 1, 2);
                if (i < 2) part[i] = gn_rope(part[i], NULL, NULL);
            }
            h = gn_swap_axes(gn_attention(part[0], part[1], part[2], NULL, &causal), 1, 2);
            x = gn_add(x, gn_matmul(gn_reshape(h, GN_SHAPE(4, 10, 16)), out));
            h = gn_layer_norm(x, 1, scale[1], shift, 1e-5);
            x = gn_matmul(gn_add(x, gn_matmul(gn_gelu_tanh(gn_matmul(h, up)), down)), gn_transpose(table));
            gn_array *loss = gn_cross_entropy_with(gn_reshape(x, GN_SHAPE(40, 11)), gn_reshape(labels, GN_SHAPE(40)), &some);
            gn_zero_grads(opt);
            gn_backward(loss);
            gn_lr_set(opt, gn_lr_linear(step, 1.0, 0.25, 1.0, 3) * gn_lr_cosine(step, 0.02, 15, 0.001));
            gn_step(opt);
            gn_ema_update(&average, &table, 1, 0.9);
            note(c, loss);
        }
    note(c, average);
    gn_optimizer_free(opt);
}

static void follow(gn_context *g, void (*train)(gn_context *, gn_dtype, curve *), const double *want, int count) {
    for (int i = test_on_vulkan() ? 1 : 0; i < 2; i++)
        GN_SCOPE(g) {
            const gn_dtype t = i == 0 ? GN_F64 : GN_F32;
            const double slack = i == 0 ? 1e-11 : 1e-4;
            curve c[2];
            memset(c, 0, sizeof c);
            for (int again = 0; again < 2; again++)
                GN_SCOPE(g) { train(g, t, &c[again]); }
            if (gn_status_get(g) != GN_OK) fail_msg("%s", gn_error(g));
            assert_int_equal(c[0].count, count);
            for (int k = 0; k < count; k++)
                if (!(fabs(c[0].value[k] - want[k]) <= slack * fmax(1.0, fabs(want[k]))))
                    fail_msg("%s: number %d is %.17g, not %.17g", gn_dtype_name(t), k, c[0].value[k], want[k]);
            assert_memory_equal(&c[0], &c[1], sizeof c[0]);
        }
}

static void test_images(void **state) {
    follow((gn_context *)*state, train_images, torch_images, (int)(sizeof torch_images / sizeof torch_images[0]));
}

static void test_text(void **state) {
    follow((gn_context *)*state, train_text, torch_text, (int)(sizeof torch_text / sizeof torch_text[0]));
}

int main(void) {
    const struct CMUnitTest tests[] = {GN_TEST(test_images), GN_TEST(test_text)};
    return test_run(tests);
}
