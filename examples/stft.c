// Cuts a sound into short overlapping pieces, looks at their spectra, puts it together again: the short-time Fourier
// transform and its inverse, which gives the sound back to the last bits. In between the spectra can be changed: here
// all above a frequency is taken out.   cc -O2 stft.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>

enum { WINDOW = 1024, HOP = 256, OVERLAP = WINDOW / HOP, RATE = 48000 };

// Periodic Hann window: shifted by HOP its squares sum up to 1.5 everywhere.
static gn_array *hann(gn_context *g) {
    gn_array *angle = gn_mul_s(gn_arange(g, GN_F32, 0, WINDOW, 1), 6.283185307179586 / WINDOW);
    return gn_add_s(gn_mul_s(gn_cos(angle), -0.5), 0.5);
}

static gn_array *zeros(gn_context *g, int64_t rows, int64_t columns) { return gn_zeros(g, GN_F32, GN_SHAPE(rows, columns)); }

// Samples (n) to spectra (frames, WINDOW / 2 + 1), frames HOP apart. Zeros before and behind the sound, so that each of
// its samples is in OVERLAP frames.
static gn_array *stft(gn_array *x) {
    gn_context *g = gn_context_of(x);
    const int64_t blocks = (gn_size(x) + HOP - 1) / HOP, frames = blocks + OVERLAP - 1;
    gn_array *rest = gn_zeros(g, GN_F32, GN_SHAPE(blocks * HOP - gn_size(x)));
    gn_array *whole[] = {x, rest}, *padded[] = {zeros(g, OVERLAP - 1, HOP), NULL, zeros(g, OVERLAP - 1, HOP)};
    padded[1] = gn_reshape(gn_concat(whole, 2, 0), GN_SHAPE(blocks, HOP));
    gn_array *rows = gn_concat(padded, 3, 0), *part[OVERLAP];
    for (int i = 0; i < OVERLAP; i++) part[i] = gn_slice(rows, 0, i, i + frames, 1); // views, one block later each
    return gn_rfft(gn_mul(gn_concat(part, OVERLAP, 1), hann(g)), 0, -1, GN_FFT_BACKWARD);
}

// Spectra to n samples: each frame is weighted once more and added where it came from.
static gn_array *istft(gn_array *z, int64_t n) {
    gn_context *g = gn_context_of(z);
    const int64_t frames = gn_dim(z, 0);
    gn_array *pieces = gn_mul(gn_irfft(z, WINDOW, -1, GN_FFT_BACKWARD), hann(g)), *sum = NULL;
    for (int i = 0; i < OVERLAP; i++) {
        gn_array *part[] = {zeros(g, i, HOP), gn_slice(pieces, 1, i * HOP, (i + 1) * HOP, 1), zeros(g, OVERLAP - 1 - i, HOP)};
        gn_array *moved = gn_concat(part, 3, 0);
        sum = sum == NULL ? moved : gn_add(sum, moved);
    }
    sum = gn_slice(sum, 0, OVERLAP - 1, frames, 1); // without the zeros in front
    return gn_slice(gn_ravel(gn_mul_s(sum, 1 / 1.5)), 0, 0, n, 1);
}

int main(void) {
    gn_context *g = gn_open(NULL);
    if (g == NULL) {
        fprintf(stderr, "%s\n", gn_open_error());
        return 1;
    }
    int failed = 1;
    GN_SCOPE(g) {
        const int64_t n = 2 * RATE + 123;
        gn_array *t = gn_mul_s(gn_arange(g, GN_F64, 0, (double)n, 1), 6.283185307179586 / RATE);
        gn_array *low = gn_cast(gn_sin(gn_mul_s(t, 440)), GN_F32), *high = gn_cast(gn_sin(gn_mul_s(t, 9000)), GN_F32);
        gn_array *x = gn_add(low, gn_add(high, gn_mul_s(gn_randn(g, GN_F32, GN_SHAPE(n)), 0.1)));

        gn_array *z = stft(x);
        double error = gn_item(gn_max(gn_abs(gn_sub(istft(z, n), x)), GN_ALL));
        printf("%lld samples, %lld spectra of %lld frequencies; back again: largest error %.1e\n", (long long)n,
               (long long)gn_dim(z, 0), (long long)gn_dim(z, 1), error);

        // Only what is below 4 kHz: the upper sine and most of the noise go.
        gn_array *keep = gn_cast(gn_lt(gn_rfftfreq(g, GN_F32, WINDOW, 1.0 / RATE), gn_scalar(g, GN_F32, 4000)), GN_F32);
        gn_array *y = istft(gn_mul(z, keep), n);
        double before = gn_item(gn_std(gn_sub(x, low), GN_ALL, 0)), after = gn_item(gn_std(gn_sub(y, low), GN_ALL, 0));
        printf("a sine of 440 Hz under one of 9 kHz and noise: %.3f off before the filter, %.3f after\n", before, after);
        failed = !(error < 3e-6 && after < 0.1 * before);
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
