// Loaded into clang: each of several files is compiled in a fork of the program that has loaded LLVM, instead of in one that
// loads it again. Emscripten's C library is a thousand small files, for which loading takes longer than compiling does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int main_function(int argc, char **argv, char **environment);
typedef int start_function(main_function *entry, int argc, char **argv, void (*begin)(void), void (*end)(void),
                           void (*loader_end)(void), void *stack_end);
typedef int spawn_function(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
                           const posix_spawnattr_t *how, char *const argv[], char *const environment[]);

static main_function *program;

int __libc_start_main(main_function *entry, int argc, char **argv, void (*begin)(void), void (*end)(void),
                      void (*loader_end)(void), void *stack_end) {
    start_function *next;
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    program = entry;
    return next(entry, argc, argv, begin, end, loader_end, stack_end);
}

// clang's driver has one thread, and tells of no files where it starts itself with -cc1 to compile.
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files, const posix_spawnattr_t *how,
                char *const argv[], char *const environment[]) {
    spawn_function *next;
    if (program && !files && argv[0] && argv[1] && strcmp(argv[1], "-cc1") == 0) {
        int argc = 2;
        while (argv[argc]) argc++;
        pid_t child = fork();
        if (child == 0) exit(program(argc, (char **)argv, (char **)environment));
        if (child > 0) return *pid = child, 0;
    }
    *(void **)&next = dlsym(RTLD_NEXT, "posix_spawn");
    return next(pid, path, files, how, argv, environment);
}
