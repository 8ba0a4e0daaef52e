// The kernels in shaders.h: every module comes out of its block as the compiler wrote it, which CRCs tell that were
// taken before it was packed; and damaged blocks are refused, or become something else, but nothing is read or written
// that is not theirs (with a sanitizer).

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GNI_ROOMS // the room alone
#define GNI_GPU 1
#define GNI_MAYBE_UNUSED
#include "../tools/gpunum/gpu/unpack.h"
#define GNI_SHADERS_WANTED
#include "../shaders.h"

static const uint32_t crcs[] = {
#define GNI_X(name, block, start, bytes, words, crc, hash, compiler, file, options) crc,
    GNI_MODULES(GNI_X)
#undef GNI_X
};

static uint64_t random_state = 1;
static uint32_t random_below(uint64_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

// CRC-32 of zlib and PNG, of the words' bytes, the lowest first.
static uint32_t crc32_of(const uint32_t *w, uint32_t n) {
    uint32_t table[256], crc = 0xffffffffu;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++) table[i] = table[i] >> 1 ^ (table[i] & 1u ? 0xedb88320u : 0);
    }
    for (uint32_t i = 0; i < 4 * n; i++) crc = crc >> 8 ^ table[(crc ^ w[i / 4] >> i % 4 * 8) & 255u];
    return ~crc;
}

static void *need(size_t bytes) {
    void *p = malloc(bytes);
    assert_non_null(p);
    return p;
}

static gni_unpack *begin(const gni_module_block *b, const char *text, uint32_t groups) {
    gni_unpack *z = (gni_unpack *)need(sizeof *z);
    gni_unpack_begin(z, text, groups, (uint8_t *)need(b->bytes), b->bytes);
    return z;
}

static void end(gni_unpack *z) {
    free(z->out);
    free(z);
}

static bool module_words(const gni_module *m, const uint8_t *bytes, uint32_t size, uint32_t *w) {
    uint32_t *spare = (uint32_t *)need(m->words * sizeof *w);
    bool ok = m->start + m->bytes <= size && gni_unpack_words(bytes, m->start, m->start + m->bytes, w, m->words, spare);
    free(spare);
    return ok;
}

static void test_every_module(void **state) {
    (void)state;
    int found = 0;
    for (uint32_t b = 0; b < GNI_MODULE_BLOCK_COUNT; b++) {
        const gni_module_block *block = &gni_module_blocks[b];
        gni_unpack *z = begin(block, block->text, block->characters / 5);
        assert_true(gni_unpack_to(z, block->bytes));
        for (int i = 0; i < GNI_MODULE_COUNT; i++) {
            const gni_module *m = &gni_modules[i];
            if (m->block != b) continue;
            uint32_t *w = (uint32_t *)need(m->words * sizeof *w);
            if (!module_words(m, z->out, z->at, w)) fail_msg("%s cannot be read", m->name);
            if (w[0] != 0x07230203u || crc32_of(w, m->words) != crcs[i]) fail_msg("%s is another module", m->name);
            free(w);
            found++;
        }
        end(z);
    }
    assert_int_equal(found, GNI_MODULE_COUNT);
    assert_true(found > 150);
}

// In the order in which modules stand, never more than they need; asking for less again does nothing.
static void test_in_steps(void **state) {
    (void)state;
    const gni_module_block *block = &gni_module_blocks[GNI_MODULE_BLOCK_rows];
    gni_unpack *whole = begin(block, block->text, block->characters / 5);
    gni_unpack *z = begin(block, block->text, block->characters / 5);
    assert_true(gni_unpack_to(whole, block->bytes));
    for (uint32_t to = 0; to < block->bytes; to += 1 + random_below(2000)) {
        assert_true(gni_unpack_to(z, to));
        assert_true(z->at >= to && z->at < to + 273); // the longest match
        assert_true(gni_unpack_to(z, to / 2));
        assert_memory_equal(z->out, whole->out, z->at);
    }
    assert_false(gni_unpack_to(z, block->bytes + 1));
    end(z);
    end(whole);
}

// Lines of a block in memory of exactly their size, the first `groups` groups of it.
static char *copy_text(const gni_module_block *b, uint32_t groups) {
    size_t length = strlen(b->text), bytes = groups * 5u + (groups * 5u - 1) / length + 1;
    char *text = (char *)need(bytes);
    memcpy(text, b->text, bytes);
    text[bytes - 1] = 0;
    return text;
}

static void test_damaged_text(void **state) {
    (void)state;
    const uint32_t blocks[] = {GNI_MODULE_BLOCK_take, GNI_MODULE_BLOCK_rows, GNI_MODULE_BLOCK_selftest};
    int refused = 0;
    for (int k = 0; k < 300; k++) {
        const gni_module_block *b = &gni_module_blocks[blocks[k % 3]];
        uint32_t groups = b->characters / 5;
        bool cut = k % 4 == 0;
        if (cut) groups = 1 + random_below(groups - 8);
        char *text = copy_text(b, groups);
        if (!cut) {
            size_t at = random_below(groups * 5u - 40);
            if (text[at] != 0) text[at] = (char)(40 + random_below(85)); // two of them stand for nothing
        }
        gni_unpack *z = begin(b, text, groups);
        bool ok = gni_unpack_to(z, b->bytes);
        if (cut) assert_false(ok);
        refused += !ok;
        end(z);
        free(text);
    }
    assert_in_range(refused, 76, 300); // flips too
}

static void test_damaged_tokens(void **state) {
    (void)state;
    static const int modules[] = {GNI_MODULE_take, GNI_MODULE_selftest_map, GNI_MODULE_random_b};
    int refused = 0;
    for (int k = 0; k < 1500; k++) {
        const gni_module *m = &gni_modules[modules[k % 3]];
        const gni_module_block *b = &gni_module_blocks[m->block];
        gni_unpack *z = begin(b, b->text, b->characters / 5);
        assert_true(gni_unpack_to(z, b->bytes));
        uint32_t size = m->start + m->bytes, *w = (uint32_t *)need(m->words * sizeof *w);
        uint8_t *tokens = (uint8_t *)need(size);
        memcpy(tokens, z->out, size);
        bool table = random_below(2) != 0; // there, or in the module
        for (uint32_t flips = 1 + random_below(3); flips > 0; flips--)
            tokens[table ? random_below(m->start) : m->start + random_below(m->bytes)] ^= (uint8_t)(1u << random_below(8));
        gni_module part = *m;
        if (random_below(3) == 0) part.bytes = random_below(m->bytes);
        bool ok = module_words(&part, tokens, size, w);
        if (part.bytes < m->bytes) assert_false(ok && crc32_of(w, m->words) == crcs[modules[k % 3]]);
        refused += !ok;
        free(tokens);
        free(w);
        end(z);
    }
    assert_in_range(refused, 500, 1500);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_module), cmocka_unit_test(test_in_steps),
                                       cmocka_unit_test(test_damaged_text), cmocka_unit_test(test_damaged_tokens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
