// A transformer over bytes: trains on a text, and writes text of its own as it goes. The names of its parameters are GPT-2's, whose
// safetensors file it takes, too.
//
//   gpt [TEXT] [--seconds 120 | --steps N] [--layers 4] [--width 128] [--heads 4] [--context 128] [--batch 16]
//       [--lr 0.002] [--half] [--backend auto|cpu|vulkan] [--seed 1] [--save FILE] [--sample 200]
//   gpt --model FILE [--heads N] --ids 464,3290 [--sample 20]    prints the ids that follow, the likeliest ones
//   gpt --model FILE [TEXT] ...                                  goes on with such a file
//
// TEXT is a file, the GNU GPL where Debian has it if it is not given. --half computes products in bfloat16.
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200112L // clock_gettime
#endif
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct gpt {
    gn_context *g;
    gn_params *params;
    const char *prefix; // of names
    int layers, heads;
    int64_t vocab, width, context;
} gpt;

typedef struct settings {
    const char *text, *model, *save, *ids;
    gn_backend backend;
    double seconds, lr;
    int steps, layers, heads, width, context, batch, sample;
    unsigned long long seed;
    bool half;
} settings;

static double seconds(void) {
#ifdef CLOCK_MONOTONIC
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    return (double)clock() / CLOCKS_PER_SEC;
#endif
}

// ---- the model

// Parameter "h.LAYER.PART.NAME", or "PART.NAME" for layer -1.
static gn_array *get(const gpt *m, int layer, const char *part, const char *name) {
    char whole[96];
    if (layer < 0)
        snprintf(whole, sizeof whole, "%s%s.%s", m->prefix, part, name);
    else
        snprintf(whole, sizeof whole, "%sh.%d.%s.%s", m->prefix, layer, part, name);
    return gn_params_get(m->params, whole);
}

static gn_array *linear(const gpt *m, gn_array *x, int layer, const char *part) {
    return gn_linear(x, get(m, layer, part, "weight"), get(m, layer, part, "bias"));
}

static gn_array *norm(const gpt *m, gn_array *x, int layer, const char *part) {
    return gn_layer_norm(x, 1, get(m, layer, part, "weight"), get(m, layer, part, "bias"), 1e-5);
}

static gn_array *block(const gpt *m, gn_array *x, int layer) {
    const int64_t batch = gn_dim(x, 0), n = gn_dim(x, 1), heads = m->heads;
    const gn_attention_options causal = {0.0, true, 0, 0.0};
    gn_array *qkv[3] = {NULL, NULL, NULL}, *h = linear(m, norm(m, x, layer, "ln_1"), layer, "attn.c_attn");
    gn_unstack(gn_reshape(h, GN_SHAPE(batch, n, 3, heads, m->width / heads)), 2, qkv, 3);
    for (int i = 0; i < 3; i++) qkv[i] = gn_swap_axes(qkv[i], 1, 2);
    h = gn_swap_axes(gn_attention(qkv[0], qkv[1], qkv[2], NULL, &causal), 1, 2);
    x = gn_add(x, linear(m, gn_reshape(h, GN_SHAPE(batch, n, m->width)), layer, "attn.c_proj"));
    h = gn_gelu_tanh(linear(m, norm(m, x, layer, "ln_2"), layer, "mlp.c_fc"));
    return gn_add(x, linear(m, h, layer, "mlp.c_proj"));
}

// ids (batch, n): logits (batch, n, vocab) of what comes next.
static gn_array *forward(const gpt *m, gn_array *ids) {
    gn_array *bytes = get(m, -1, "wte", "weight"), *places = gn_slice(get(m, -1, "wpe", "weight"), 0, 0, gn_dim(ids, 1), 1);
    gn_array *x = gn_add(gn_embedding(ids, bytes, GN_NONE), places);
    for (int i = 0; i < m->layers; i++) x = block(m, x, i);
    return gn_matmul(norm(m, x, -1, "ln_f"), gn_transpose(bytes));
}

static void add(const gpt *m, int layer, const char *part, const char *name, gn_shape s, double mean, double deviation) {
    char whole[96];
    gn_array *a = deviation > 0.0 ? gn_normal(m->g, GN_F32, s, mean, deviation) : gn_full(m->g, GN_F32, s, mean);
    if (layer < 0)
        snprintf(whole, sizeof whole, "%s.%s", part, name);
    else
        snprintf(whole, sizeof whole, "h.%d.%s.%s", layer, part, name);
    gn_params_add(m->params, whole, a);
}

static void make(gpt *m) {
    const int64_t w = m->width;
    const double residual = 0.02 / sqrt(2.0 * m->layers);
    static const char *const parts[] = {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"};
    const int64_t in[] = {w, w, w, 4 * w}, out[] = {3 * w, w, 4 * w, w};
    m->params = gn_params_new(m->g);
    add(m, -1, "wte", "weight", GN_SHAPE(m->vocab, w), 0.0, 0.02);
    add(m, -1, "wpe", "weight", GN_SHAPE(m->context, w), 0.0, 0.01);
    for (int i = 0; i <= m->layers; i++)
        for (int k = 0; k < (i < m->layers ? 2 : 1); k++) {
            const char *name = i == m->layers ? "ln_f" : k == 0 ? "ln_1" : "ln_2";
            add(m, i < m->layers ? i : -1, name, "weight", GN_SHAPE(w), 1.0, 0.0);
            add(m, i < m->layers ? i : -1, name, "bias", GN_SHAPE(w), 0.0, 0.0);
        }
    for (int i = 0; i < m->layers; i++)
        for (int k = 0; k < 4; k++) {
            add(m, i, parts[k], "weight", GN_SHAPE(in[k], out[k]), 0.0, k % 2 ? residual : 0.02);
            add(m, i, parts[k], "bias", GN_SHAPE(out[k]), 0.0, 0.0);
        }
}

// What a file says of the model. GPT-2's heads are 64 wide; another number is noted by gn_params_note.
static bool load(gpt *m, const settings *s) {
    m->params = gn_load_safetensors(m->g, s->model);
    if (m->params == NULL) return false;
    m->prefix = gn_params_get(m->params, "wte.weight") != NULL ? "" : "transformer.";
    gn_array *bytes = get(m, -1, "wte", "weight"), *places = get(m, -1, "wpe", "weight");
    if (bytes == NULL || places == NULL || gn_rank(bytes) != 2 || gn_rank(places) != 2) return false;
    m->vocab = gn_dim(bytes, 0);
    m->width = gn_dim(bytes, 1);
    m->context = gn_dim(places, 0);
    for (m->layers = 0; get(m, m->layers, "ln_1", "weight") != NULL;) m->layers++;
    const char *heads = gn_params_noted(m->params, "heads");
    m->heads = s->heads > 0 ? s->heads : heads != NULL ? atoi(heads) : (int)(m->width / 64);
    return m->heads > 0 && m->width % m->heads == 0;
}

// ---- text

typedef struct text {
    unsigned char *bytes;
    long size, held; // held: the last ones, which are not trained on
    unsigned long long random;
} text;

static bool read_text(text *t, const char *path) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) return false;
    fseek(f, 0, SEEK_END);
    t->size = ftell(f);
    rewind(f);
    t->bytes = (unsigned char *)malloc((size_t)(t->size > 0 ? t->size : 1));
    const bool ok = t->bytes != NULL && fread(t->bytes, 1, (size_t)t->size, f) == (size_t)t->size;
    fclose(f);
    t->held = t->size / 10;
    return ok;
}

static double uniform(text *t) { // Knuth's linear congruential generator
    t->random = t->random * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(t->random >> 11) / 9007199254740992.0;
}

// Rows of n bytes, and of those one further on, from anywhere in `count` bytes from `first` on.
static void batch(text *t, gn_context *g, long first, long count, int rows, int64_t n, gn_array **x, gn_array **y) {
    int32_t *ids = (int32_t *)malloc(sizeof(int32_t) * (size_t)rows * (size_t)(n + 1));
    for (int r = 0; r < rows; r++) {
        const long from = first + (long)(uniform(t) * (double)(count - n));
        for (int64_t i = 0; i <= n; i++) ids[r * (n + 1) + i] = t->bytes[from + i];
    }
    gn_array *all = gn_array_from(g, GN_I32, GN_SHAPE(rows, n + 1), ids);
    free(ids);
    *x = gn_slice(all, 1, 0, n, 1);
    *y = gn_slice(all, 1, 1, n + 1, 1);
}

static gn_array *loss_of(const gpt *m, gn_array *x, gn_array *y) {
    return gn_cross_entropy(gn_reshape(forward(m, x), GN_SHAPE(-1, m->vocab)), gn_reshape(y, GN_SHAPE(-1)));
}

// Bits for each byte of the text that was held back.
static double held_back(const gpt *m, text *t) {
    double sum = 0.0;
    text same = *t;
    same.random = 1;
    gn_no_grad_begin(m->g);
    for (int i = 0; i < 8; i++) GN_SCOPE(m->g) {
            gn_array *x, *y;
            batch(&same, m->g, t->size - t->held, t->held, 8, m->context, &x, &y);
            sum += gn_item(loss_of(m, x, y));
        }
    gn_no_grad_end(m->g);
    return sum / 8.0 / log(2.0);
}

// The next id: the likeliest, or with a text one that is drawn from what is above a ninth of that.
static int next_id(const gpt *m, const int32_t *ids, int64_t count, text *t, float *row) {
    const int64_t n = count < m->context ? count : m->context;
    int best = 0;
    GN_SCOPE(m->g) {
        gn_array *logits = forward(m, gn_array_from(m->g, GN_I32, GN_SHAPE(1, n), ids + count - n));
        gn_read(gn_cast(gn_index(logits, "0, -1"), GN_F32), row, sizeof(float) * (size_t)m->vocab);
    }
    for (int i = 1; i < m->vocab; i++)
        if (row[i] > row[best]) best = i;
    if (t == NULL) return best;
    double sum = 0.0;
    const double most = row[best];
    for (int i = 0; i < m->vocab; i++) sum += row[i] > most - 3.0 ? exp((row[i] - most) / 0.8) : 0.0;
    double left = uniform(t) * sum;
    for (int i = 0; i < m->vocab; i++)
        if (row[i] > most - 3.0 && (left -= exp((row[i] - most) / 0.8)) < 0.0) return i;
    return best;
}

// Writes what follows `start`: as bytes, or without a text as ids.
static bool sample(const gpt *m, const int32_t *start, int given, int count, text *t) {
    int32_t *ids = (int32_t *)malloc(sizeof(int32_t) * (size_t)(given + count + 1));
    float *row = (float *)malloc(sizeof(float) * (size_t)m->vocab);
    bool ok = ids != NULL && row != NULL;
    if (ok) memcpy(ids, start, sizeof(int32_t) * (size_t)given);
    gn_no_grad_begin(m->g);
    for (int i = given; i < given + count && ok; i++) {
        ids[i] = next_id(m, ids, i, t, row);
        ok = gn_status_get(m->g) == GN_OK;
        if (t == NULL)
            printf("%s%d", i > given ? "," : "", (int)ids[i]);
        else
            putchar(ids[i] == '\n' || (ids[i] >= 32 && ids[i] < 127) ? ids[i] : '?');
    }
    gn_no_grad_end(m->g);
    printf("\n");
    free(ids);
    free(row);
    return ok;
}

// ---- training

static double rate(const settings *s, int step, double part) { // warm-up, and down along a cosine
    return s->lr * fmin(1.0, (step + 1) / 50.0) * (0.05 + 0.95 * 0.5 * (1.0 + cos(3.14159265358979 * fmin(part, 1.0))));
}

static bool train(gpt *m, const settings *s, text *t) {
    gn_context *g = m->g;
    gn_array *params[1024], *x, *y;
    int count = 0;
    for (int i = 0; i < gn_params_count(m->params) && count < 1024; i++)
        if (strstr(gn_params_name(m->params, i), "attn.bias") == NULL) // GPT-2 keeps its mask by that name
            params[count++] = gn_requires_grad(gn_params_at(m->params, i), true);
    gn_adam_options adam = {0.0, 0.9, 0.99, 0.0, 0.1};
    gn_optimizer *opt = gn_adamw(params, count, &adam);
    const double begin = seconds();
    double part = 0.0, shown = -1.0;
    printf("before: %.3f bits a byte of text that is held back\n", held_back(m, t));
    for (int step = 0; part < 1.0 && gn_status_get(g) == GN_OK; step++) GN_SCOPE(g) {
            batch(t, g, 0, t->size - t->held, s->batch, m->context, &x, &y);
            if (s->half) gn_autocast_begin(g, GN_BF16);
            gn_array *loss = loss_of(m, x, y);
            if (s->half) gn_autocast_end(g);
            gn_zero_grads(opt);
            gn_backward(loss);
            gn_clip_grad_norm(params, count, 1.0);
            gn_lr_set(opt, rate(s, step, part));
            gn_step(opt);
            part = s->steps > 0 ? (step + 1.0) / s->steps : (seconds() - begin) / s->seconds;
            if (part < 1.0 && part - shown < 0.125) continue;
            shown = part;
            printf("step %d, %.1f s: loss %.4f, %.3f bits a byte\n", step + 1, seconds() - begin, gn_item(loss), gn_item(loss) / log(2.0));
            const int32_t newline = '\n';
            if (s->sample > 0) sample(m, &newline, 1, s->sample, t);
            fflush(stdout);
        }
    printf("after: %.3f bits a byte of text that is held back\n", held_back(m, t));
    gn_optimizer_free(opt);
    return gn_status_get(g) == GN_OK;
}

static int usage(const char *wrong) {
    const bool help = strcmp(wrong, "--help") == 0;
    if (!help) fprintf(stderr, "gpt: not understood: %s\n", wrong);
    fprintf(help ? stdout : stderr,
            "usage: gpt [TEXT] [--seconds S | --steps N] [--layers N] [--width N] [--heads N] [--context N] [--batch N] [--lr X]\n"
            "           [--half] [--backend auto|cpu|vulkan] [--seed N] [--save FILE] [--sample N] [--model FILE] [--ids N,N,...]\n");
    return help ? 0 : 2;
}

// NULL, or what is wrong.
static const char *parse(int argc, char **argv, settings *s) {
    static const char *const names[] = {"--steps", "--layers", "--heads", "--width", "--context", "--batch", "--sample"};
    int *const numbers[] = {&s->steps, &s->layers, &s->heads, &s->width, &s->context, &s->batch, &s->sample};
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (flag[0] != '-') {
            s->text = flag;
            continue;
        }
        if (strcmp(flag, "--half") == 0) {
            s->half = true;
            continue;
        }
        if (value == NULL) return flag;
        i++;
        int found = -1;
        for (int k = 0; k < 7; k++)
            if (strcmp(flag, names[k]) == 0) found = k;
        if (found >= 0) {
            *numbers[found] = atoi(value);
            if (*numbers[found] < (found == 6 ? 0 : 1) || *numbers[found] > 1000000) return value;
        } else if (strcmp(flag, "--seconds") == 0) {
            s->seconds = atof(value);
        } else if (strcmp(flag, "--lr") == 0) {
            s->lr = atof(value);
        } else if (strcmp(flag, "--seed") == 0) {
            s->seed = strtoull(value, NULL, 0);
        } else if (strcmp(flag, "--save") == 0) {
            s->save = value;
        } else if (strcmp(flag, "--model") == 0) {
            s->model = value;
        } else if (strcmp(flag, "--ids") == 0) {
            s->ids = value;
        } else if (strcmp(flag, "--backend") == 0) {
            if (strcmp(value, "cpu") != 0 && strcmp(value, "vulkan") != 0 && strcmp(value, "auto") != 0) return value;
            s->backend = value[0] == 'c' ? GN_BACKEND_CPU : value[0] == 'v' ? GN_BACKEND_VULKAN : GN_BACKEND_AUTO;
        } else {
            return flag;
        }
    }
    if (s->model == NULL && s->width % (s->heads > 0 ? s->heads : 4) != 0) return "--heads has to divide --width";
    return s->lr > 0 ? NULL : "--lr is more than 0";
}

static bool continue_ids(const gpt *m, const settings *s) {
    int32_t ids[256];
    int count = 0;
    for (const char *at = s->ids; count < 256 && *at != 0; at++) {
        char *end;
        ids[count++] = (int32_t)strtol(at, &end, 10);
        if (end == at || (*end != ',' && *end != 0) || ids[count - 1] < 0 || ids[count - 1] >= m->vocab) return false;
        at = end;
        if (*at == 0) break;
    }
    return count > 0 && sample(m, ids, count, s->sample, NULL);
}

int main(int argc, char **argv) {
    settings s = {"/usr/share/common-licenses/GPL-3", NULL, NULL, NULL, GN_BACKEND_AUTO, 120.0, 0.002, 0, 4, 0, 128, 128, 16, 200, 1, false};
    text t = {NULL, 0, 0, 1};
    gpt m = {NULL, NULL, "", 0, 4, 256, 0, 0};
    const char *wrong = parse(argc, argv, &s);
    if (wrong != NULL) return usage(wrong);
    gn_options options = {0};
    options.backend = s.backend;
    options.seed = s.seed;
    t.random = s.seed;
    m.g = gn_open(&options);
    if (m.g == NULL) {
        fprintf(stderr, "gpt: %s\n", gn_open_error());
        return 1;
    }
    gn_scope_begin(m.g);
    m.layers = s.layers;
    m.heads = s.heads > 0 ? s.heads : 4;
    m.width = s.width;
    m.context = s.context;
    bool ok = s.model != NULL ? load(&m, &s) : m.width % m.heads == 0;
    if (!ok) {
        fprintf(stderr, "gpt: no model of GPT-2's layout: %s\n", gn_error(m.g));
    } else if (s.ids != NULL) {
        ok = continue_ids(&m, &s);
    } else if (!read_text(&t, s.text) || t.held <= m.context || m.vocab < 256) {
        fprintf(stderr, "gpt: %s is not to be read, or shorter than %d bytes\n", s.text, (int)(10 * m.context + 10));
        ok = false;
    } else {
        char heads[16];
        if (s.model == NULL) make(&m);
        printf("%s, %ld bytes: %d layers, %d wide, %d heads, %d bytes at a time\n", s.text, t.size, m.layers, (int)m.width, m.heads, (int)m.context);
        ok = train(&m, &s, &t);
        snprintf(heads, sizeof heads, "%d", m.heads);
        gn_params_note(m.params, "heads", heads);
        if (ok && s.save != NULL) ok = gn_params_save(m.params, s.save) == GN_OK;
    }
    if (!ok && gn_status_get(m.g) != GN_OK) fprintf(stderr, "gpt: %s\n", gn_error(m.g));
    gn_params_free(m.params);
    free(t.bytes);
    gn_scope_end(m.g);
    gn_close(m.g);
    return ok ? 0 : 1;
}
