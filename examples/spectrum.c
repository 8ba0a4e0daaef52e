// Draws the spectrogram of a sound: time to the right, frequency upwards, 90 dB from black to pale yellow.
//   spectrum [in.wav [out.png]]      without a file: a chirp with two steady tones
// WAV files of 8 to 32-bit or float samples; the mean of the channels is shown. cc -O2 spectrum.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 1024, HOP = 256, OVERLAP = WINDOW / HOP, MAX_FRAMES = 4000, RANGE = 90 }; // RANGE in dB
enum { LEVELS = 240, PAPER = LEVELS, INK };            // colours: those of the spectrogram, then these
enum { LEFT = 48, RIGHT = 72, TOP = 26, BOTTOM = 32 }; // of the picture, around the spectrogram

// ---- WAV

static uint32_t little(const unsigned char *p, int bytes) {
    uint32_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

// What a "fmt " chunk says.
typedef struct wav_format {
    bool is_float;
    uint32_t channels, bytes; // of one sample
    double rate;
} wav_format;

// False for anything but PCM of 8 to 32 bits and floats.
static bool read_format(FILE *f, uint32_t size, wav_format *format) {
    unsigned char b[40] = {0};
    if (size < 16 || fread(b, 1, size < 40 ? size : 40, f) < 16) return false;
    uint32_t kind = little(b, 2), bits = little(b + 14, 2);
    if (kind == 0xfffe && size >= 40) kind = little(b + 24, 2); // the extensible form keeps it there
    format->is_float = kind == 3;
    format->channels = little(b + 2, 2);
    format->rate = little(b + 4, 4);
    format->bytes = bits / 8;
    bool known = kind == 3 ? bits == 32 || bits == 64 : kind == 1 && bits % 8 == 0 && bits >= 8 && bits <= 32;
    return known && format->channels > 0 && format->rate > 0;
}

// One sample, -1 to 1. Those of 8 bits have no sign.
static float sample_of(const unsigned char *p, const wav_format *format) {
    if (format->is_float && format->bytes == 8) {
        uint64_t word = (uint64_t)little(p + 4, 4) << 32 | little(p, 4);
        double v;
        memcpy(&v, &word, 8);
        return (float)v;
    }
    uint32_t word = little(p, (int)format->bytes);
    if (format->is_float) {
        float v;
        memcpy(&v, &word, 4);
        return v;
    }
    if (format->bytes == 1) return ((float)word - 128.0f) / 128.0f;
    word <<= 32 - 8 * format->bytes; // the sign to the top
    return (float)((double)word - (word >> 31 ? 4294967296.0 : 0.0)) / 2147483648.0f;
}

// The mean of the channels of a "data" chunk, of which a broken file may hold less than it says.
static float *read_data(FILE *f, uint32_t size, const wav_format *format, int64_t *count) {
    const size_t frame = (size_t)format->channels * format->bytes;
    unsigned char *bytes = (unsigned char *)malloc(frame);
    size_t room = 0;
    float *samples = NULL;
    for (*count = 0; bytes != NULL && (uint64_t)(*count + 1) * frame <= size; (*count)++) {
        if (fread(bytes, 1, frame, f) != frame) break;
        if ((size_t)*count == room) {
            room = room * 2 + 65536;
            float *more = (float *)realloc(samples, room * sizeof(float));
            if (more == NULL) break;
            samples = more;
        }
        float sum = 0.0f;
        for (uint32_t c = 0; c < format->channels; c++) sum += sample_of(bytes + c * format->bytes, format);
        samples[*count] = sum / (float)format->channels;
    }
    free(bytes);
    return samples;
}

// All samples, -1 to 1; NULL after a message when the file is not such a WAV. The caller frees them.
static float *read_wav(const char *path, int64_t *count, double *rate) {
    FILE *f = fopen(path, "rb");
    unsigned char head[12], chunk[8];
    wav_format format = {false, 0, 0, 0.0};
    float *samples = NULL;
    if (f == NULL) {
        fprintf(stderr, "%s: cannot be opened: %s\n", path, strerror(errno));
        return NULL;
    }
    bool ok = fread(head, 1, 12, f) == 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WAVE", 4) == 0;
    while (ok && fread(chunk, 1, 8, f) == 8) {
        uint32_t size = little(chunk + 4, 4);
        long next = ftell(f) + (long)size + (long)(size & 1u); // chunks begin at even places
        if (memcmp(chunk, "data", 4) == 0) {
            if (format.channels > 0) samples = read_data(f, size, &format, count);
            break;
        }
        if (memcmp(chunk, "fmt ", 4) == 0) ok = read_format(f, size, &format);
        ok = ok && fseek(f, next, SEEK_SET) == 0;
    }
    fclose(f);
    *rate = format.rate;
    if (samples == NULL || *count < WINDOW) {
        fprintf(stderr, "%s: not a WAV file of 8 to 32-bit or float samples, or shorter than %d of them\n", path, WINDOW);
        free(samples);
        return NULL;
    }
    return samples;
}

// ---- PNG, its data stored rather than compressed

typedef struct png {
    FILE *file;
    uint32_t crc, a, b; // a and b: of the Adler-32 sum
} png;

static void put(png *p, const void *data, size_t size) {
    const unsigned char *c = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++) {
        p->crc ^= c[i];
        for (int k = 0; k < 8; k++) p->crc = p->crc >> 1 ^ (p->crc & 1u ? 0xedb88320u : 0u);
    }
    fwrite(data, 1, size, p->file);
}

static void put_big(png *p, uint32_t v) {
    unsigned char c[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
                          (unsigned char)(v >> 8), (unsigned char)v};
    put(p, c, 4);
}

static void begin_chunk(png *p, const char *name, uint32_t size) {
    put_big(p, size);
    p->crc = 0xffffffffu;
    put(p, name, 4);
}

static void end_chunk(png *p) { put_big(p, ~p->crc); }

// Black over red to pale yellow, then white and black: 3 bytes a colour.
static void put_palette(png *p) {
    static const unsigned char stop[6][3] = {{0, 0, 4},     {66, 10, 104},  {147, 38, 103},
                                             {221, 81, 58}, {252, 165, 10}, {252, 255, 164}};
    unsigned char colour[INK + 1][3] = {{0}};
    for (int i = 0; i < LEVELS; i++) {
        const int at = 5 * i / LEVELS, part = 5 * i % LEVELS;
        for (int c = 0; c < 3; c++)
            colour[i][c] = (unsigned char)((stop[at][c] * (LEVELS - part) + stop[at + 1][c] * part) / LEVELS);
    }
    memset(colour[PAPER], 255, 3);
    begin_chunk(p, "PLTE", sizeof colour);
    put(p, colour, sizeof colour);
    end_chunk(p);
}

// Pixels are numbers of colours, a row from the top after another.
static bool write_png(const char *path, const unsigned char *pixels, uint32_t width,
                      uint32_t height) {
    png p = {fopen(path, "wb"), 0, 1, 0};
    if (p.file == NULL) return false;
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, p.file);
    begin_chunk(&p, "IHDR", 13);
    put_big(&p, width);
    put_big(&p, height);
    put(&p, "\x08\x03\0\0", 5); // 8 bits, from a palette
    end_chunk(&p);
    put_palette(&p);
    begin_chunk(&p, "IDAT", 2 + height * (5 + width + 1) + 4); // each row is a stored block
    put(&p, "\x78\x01", 2);
    for (uint32_t y = 0; y < height; y++) {
        const unsigned char *row = pixels + (size_t)y * width;
        uint32_t size = width + 1;
        unsigned char head[6] = {
            y + 1 == height,      (unsigned char)size,         (unsigned char)(size >> 8),
            (unsigned char)~size, (unsigned char)(~size >> 8), 0}; // 0: no filter
        put(&p, head, 6);
        put(&p, row, width);
        p.b = (p.b + p.a) % 65521u;
        for (uint32_t x = 0; x < width; x++) {
            p.a = (p.a + row[x]) % 65521u;
            p.b = (p.b + p.a) % 65521u;
        }
    }
    put_big(&p, p.b << 16 | p.a);
    end_chunk(&p);
    begin_chunk(&p, "IEND", 0);
    end_chunk(&p);
    return fclose(p.file) == 0;
}

// ---- axes

typedef struct picture {
    unsigned char *pixels;
    int width, height; // of all of it
} picture;

static void box(picture *p, int x, int y, int width, int height, int colour) {
    for (int j = y; j < y + height; j++)
        for (int i = x; i < x + width; i++)
            if (i >= 0 && i < p->width && j >= 0 && j < p->height) p->pixels[j * p->width + i] = (unsigned char)colour;
}

// A line of text whose middle (`align` 0) or right end (1) or left end (-1) is at x, and whose middle is at y.
static void text(picture *p, int x, int y, int align, const char *s) {
    static const char known[] = "0123456789.-kHzsdB";
    static const unsigned char rows[][7] = { // 5 pixels a row
        {14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14},    {14, 17, 1, 2, 4, 8, 31},
        {31, 2, 4, 2, 1, 17, 14},     {2, 6, 10, 18, 31, 2, 2},   {31, 16, 30, 1, 1, 17, 14},
        {6, 8, 16, 30, 17, 17, 14},   {31, 1, 2, 4, 8, 8, 8},     {14, 17, 17, 14, 17, 17, 14},
        {14, 17, 17, 15, 1, 2, 12},   {0, 0, 0, 0, 0, 12, 12},    {0, 0, 0, 31, 0, 0, 0},
        {16, 16, 18, 20, 24, 20, 18}, {17, 17, 17, 31, 17, 17, 17}, {0, 0, 31, 2, 4, 8, 31},
        {0, 0, 14, 16, 14, 1, 30},    {1, 1, 13, 19, 17, 19, 13}, {30, 17, 17, 30, 17, 17, 30}};
    x -= (int)strlen(s) * 6 * (align + 1) / 2;
    for (; *s != 0; s++, x += 6) {
        const char *at = strchr(known, *s);
        for (int k = 0; at != NULL && k < 35; k++)
            if (rows[at - known][k / 5] >> (4 - k % 5) & 1) box(p, x + k % 5, y - 3 + k / 5, 1, 1, INK);
    }
}

// 1, 2 or 5 times a power of ten, of which `range` has so many that they are at least `least` of its pixels apart.
static double tick(double range, int pixels, int least) {
    double step = 1e-7;
    for (int k = 0; step * pixels < range * least; k++) step *= k % 3 == 1 ? 2.5 : 2;
    return step;
}

// What is around the spectrogram of `frames` and of frequencies up to half of `rate`.
static void draw_axes(picture *p, int frames, double rate) {
    const int rows = WINDOW / 2 + 1, bottom = TOP + rows, bar = LEFT + frames + 16;
    const double seconds = (double)frames * HOP / rate, kilohertz = rate / 2000;
    const double dt = tick(seconds, frames, 60), df = tick(kilohertz, rows - 1, 40);
    char s[32];
    for (int k = 0; k * dt < seconds; k++) {
        int x = LEFT + (int)(k * dt / seconds * frames);
        snprintf(s, sizeof s, "%.10g", k * dt);
        box(p, x, bottom, 1, 5, INK);
        text(p, x, bottom + 12, 0, s);
    }
    text(p, LEFT + frames / 2, bottom + 25, 0, "s");
    for (int k = 0; k * df <= kilohertz; k++) {
        int y = bottom - 1 - (int)(k * df / kilohertz * (rows - 1));
        snprintf(s, sizeof s, "%.10g", k * df);
        box(p, LEFT - 5, y, 5, 1, INK);
        text(p, LEFT - 8, y, 1, s);
    }
    text(p, LEFT - 8, TOP - 14, 1, "kHz");
    for (int y = 0; y < rows; y++) box(p, bar, TOP + y, 12, 1, (rows - 1 - y) * (LEVELS - 1) / (rows - 1));
    for (int db = 0; db <= RANGE; db += 10) {
        int y = TOP + db * (rows - 1) / RANGE;
        snprintf(s, sizeof s, "%d", -db);
        box(p, bar + 12, y, 5, 1, INK);
        text(p, bar + 20, y, -1, s);
    }
    text(p, bar + 20, TOP - 14, -1, "dB");
}

// ---- the spectrogram

static gn_array *chirp(gn_context *g, double rate, double seconds) {
    gn_array *t =
        gn_arange(g, GN_F64, 0, seconds, 1 / rate); // phases need more digits than float32 has
    gn_array *phase = gn_mul_s(gn_square(t), 3.141592653589793 * 0.45 * rate / seconds);
    gn_array *y = gn_sin(phase);
    for (int k = 1; k <= 2; k++)
        y = gn_add(y, gn_mul_s(gn_sin(gn_mul_s(t, 6.283185307179586 * 3000 * k)), 0.1));
    return gn_cast(y, GN_F32);
}

// Samples (n) to decibels (frames, WINDOW / 2 + 1), frames HOP apart.
static gn_array *spectrogram(gn_array *x) {
    gn_context *g = gn_context_of(x);
    int64_t blocks = gn_size(x) / HOP, frames = blocks - OVERLAP + 1;
    if (frames > MAX_FRAMES) frames = MAX_FRAMES;
    gn_array *rows = gn_reshape(gn_slice(x, 0, 0, blocks * HOP, 1), GN_SHAPE(blocks, HOP)),
             *part[OVERLAP];
    for (int i = 0; i < OVERLAP; i++)
        part[i] = gn_slice(rows, 0, i, i + frames, 1); // views, one block later each
    gn_array *angle = gn_mul_s(gn_arange(g, GN_F32, 0, WINDOW, 1), 6.283185307179586 / WINDOW);
    gn_array *hann = gn_add_s(gn_mul_s(gn_cos(angle), -0.5), 0.5);
    gn_array *z = gn_rfft(gn_mul(gn_concat(part, OVERLAP, 1), hann), 0, -1, GN_FFT_BACKWARD);
    gn_array *power = gn_add(gn_square(gn_real(z)), gn_square(gn_imag(z)));
    return gn_mul_s(gn_log10(gn_maximum_s(power, 1e-12)), 10);
}

// Writes the picture of (frames, frequencies) decibels; false when memory or the file cannot be had.
static bool draw(gn_array *db, double rate, const char *path) {
    gn_array *above = gn_add_s(db, RANGE - gn_item(gn_max(db, GN_ALL))); // the loudest is at the top of the range
    gn_array *level = gn_cast(gn_mul_s(gn_maximum_s(above, 0), (LEVELS - 1.0) / RANGE), GN_U8);
    gn_array *image = gn_flip(gn_transpose(level), 0); // low frequencies below
    const int frames = (int)gn_dim(image, 1), rows = (int)gn_dim(image, 0);
    picture p = {NULL, LEFT + frames + RIGHT, TOP + rows + BOTTOM};
    unsigned char *pixels = (unsigned char *)malloc(gn_bytes(image) + 1);
    p.pixels = (unsigned char *)malloc((size_t)p.width * (size_t)p.height);
    bool ok = pixels != NULL && p.pixels != NULL && gn_read(image, pixels, gn_bytes(image)) == GN_OK;
    if (ok) {
        memset(p.pixels, PAPER, (size_t)p.width * (size_t)p.height);
        for (int y = 0; y < rows; y++)
            memcpy(p.pixels + (size_t)(TOP + y) * (size_t)p.width + LEFT,
                   pixels + (size_t)y * (size_t)frames, (size_t)frames);
        draw_axes(&p, frames, rate);
        ok = write_png(path, p.pixels, (uint32_t)p.width, (uint32_t)p.height);
    }
    free(p.pixels);
    free(pixels);
    return ok;
}

int main(int argc, char **argv) {
    const char *path = argc > 2 ? argv[2] : "spectrum.png";
    int64_t count = 0;
    double rate = 44100;
    float *samples = argc > 1 ? read_wav(argv[1], &count, &rate) : NULL;
    if (argc > 1 && samples == NULL) return 1;
    gn_context *g = gn_open(NULL);
    if (g == NULL) {
        fprintf(stderr, "%s\n", gn_open_error());
        free(samples);
        return 1;
    }
    int failed = 1;
    GN_SCOPE(g) {
        gn_array *x = samples != NULL ? gn_array_from(g, GN_F32, GN_SHAPE(count), samples)
                                      : chirp(g, rate, 5);
        gn_array *db = spectrogram(x);
        if (draw(db, rate, path)) {
            printf("%s: %lld frames of %d samples, %d ms apart, 0 to %g Hz\n", path,
                   (long long)gn_dim(db, 0), WINDOW, (int)(1000 * HOP / rate), rate / 2);
            failed = 0;
        }
    }
    if (failed)
        fprintf(stderr, "%s: %s\n", path,
                gn_status_get(g) != GN_OK ? gn_error(g) : "cannot be written");
    gn_close(g);
    free(samples);
    return failed;
}
