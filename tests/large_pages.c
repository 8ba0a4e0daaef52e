// Loaded into compilers: gcc takes its memory in pieces of its own size, which get small pages; here they come out of rooms
// of large ones. A tenth less time, where a new page takes the kernel longer than it takes gcc to fill it.
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LARGE = 2 << 20, ROOM = 64 << 20 };
static __thread char *at, *end;

void *mmap(void *where, size_t size, int protection, int flags, int file, off_t offset) {
    if (where == NULL && protection == (PROT_READ | PROT_WRITE) && flags == (MAP_PRIVATE | MAP_ANONYMOUS) && size >= 65536 &&
        size <= ROOM / 4 && size % 4096 == 0) {
        if ((size_t)(end - at) < size) {
            char *room = (char *)syscall(SYS_mmap, NULL, (size_t)ROOM + LARGE, protection, flags | MAP_NORESERVE, -1, 0);
            if (room == MAP_FAILED) return room;
            at = (char *)(((uintptr_t)room + LARGE - 1) / LARGE * LARGE);
            end = at + ROOM;
            madvise(at, ROOM, MADV_HUGEPAGE);
        }
        at += size;
        return at - size;
    }
    return (void *)syscall(SYS_mmap, where, size, protection, flags, file, offset);
}
