/* A program with plugins, which obeys lines on stdin:
 *
 *   load PATH global|local    dlopen
 *   go N                      4 new threads write N frames into every plugin, and live on
 *   unload K                  dlclose of plugin K, in the order of loading
 *   reuse                     maps other memory where that plugin was, full of a pattern
 *   check                     whether the pattern is whole
 *   join                      all threads end
 *   map BYTES PATH            maps so much of a file privately
 *   shrink BYTES PATH         has it shrink to nothing and grow to BYTES bytes, again and again
 *   fork                      a child that ends at once, and says how
 *   again                     plugins are counted from 0 again
 *
 * FIRST and SECOND name functions that are linked rather than loaded. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void write_function(int thread, int i);

#ifdef FIRST
write_function FIRST;
#endif
#ifdef SECOND
write_function SECOND;
#endif

enum { CREW = 4, THREADS = 64, PLUGINS = 8, PATTERN = 0xa5 };

static write_function *functions[PLUGINS];
static void *handles[PLUGINS];
static int plugins, rounds, crew;
static pthread_t threads[THREADS];
static unsigned long written[THREADS];
static sem_t done, leave;
static unsigned char *start, *end;

static void say(const char *line) {
    puts(line);
    fflush(stdout);
}

static void *work(void *number) {
    int thread = (int)(intptr_t)number;
    for (int i = 0; i < rounds; i++) {
        for (int plugin = 0; plugin < plugins; plugin++) {
            if (functions[plugin] != 0) {
                functions[plugin](thread, i);
                written[thread]++;
            }
        }
    }
    sem_post(&done);
    while (sem_wait(&leave) != 0) {
    }
    return 0;
}

static void go(int count) {
    unsigned long before = 0, after = 0;
    rounds = count;
    for (int t = 0; t < crew; t++)
        before += written[t];
    for (int t = 0; t < CREW; t++, crew++) {
        written[crew] = 0;
        pthread_create(&threads[crew], 0, work, (void *)(intptr_t)crew);
    }
    for (int t = 0; t < CREW; t++)
        while (sem_wait(&done) != 0) {
        }
    for (int t = 0; t < crew; t++)
        after += written[t];
    printf("written %lu\n", after - before);
    fflush(stdout);
}

static void load(const char *path, int mode) {
    void *handle = dlopen(path, RTLD_NOW | mode);
    if (handle == 0) {
        say(dlerror());
        exit(1);
    }
    handles[plugins] = handle;
    *(void **)&functions[plugins] = dlsym(handle, "plugin_write");
    plugins++;
    say("loaded");
}

static int note_range(struct dl_phdr_info *info, size_t size, void *name) {
    (void)size;
    if (strcmp(info->dlpi_name, (const char *)name) != 0)
        return 0;
    start = (unsigned char *)UINTPTR_MAX;
    end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD)
            continue;
        unsigned char *from = (unsigned char *)((info->dlpi_addr + part->p_vaddr) & ~4095ul);
        unsigned char *to =
            (unsigned char *)((info->dlpi_addr + part->p_vaddr + part->p_memsz + 4095) & ~4095ul);
        start = from < start ? from : start;
        end = to > end ? to : end;
    }
    return 1;
}

static void unload(int plugin) {
    struct link_map *map = 0;
    dlinfo(handles[plugin], RTLD_DI_LINKMAP, &map);
    char *name = strdup(map->l_name);
    dl_iterate_phdr(note_range, name);
    functions[plugin] = 0;
    dlclose(handles[plugin]);
    void *still = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    free(name);
    say(still == 0 ? "unloaded" : "still loaded");
}

static void reuse(void) {
    void *at = mmap(start, (size_t)(end - start), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != (void *)start) {
        say("in use");
        return;
    }
    memset(start, PATTERN, (size_t)(end - start));
    say("reused");
}

static void check(void) {
    for (unsigned char *at = start; at < end; at++) {
        if (*at != PATTERN) {
            say("changed");
            return;
        }
    }
    say("intact");
}

static void join(void) {
    for (int t = 0; t < crew; t++)
        sem_post(&leave);
    for (int t = 0; t < crew; t++)
        pthread_join(threads[t], 0);
    crew = 0;
    say("joined");
}

static void map(size_t bytes, const char *path) {
    int fd = open(path, O_RDONLY);
    void *at = mmap(0, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    say(at == MAP_FAILED ? "refused" : "mapped");
}

static off_t full;

static void *shrink(void *path) {
    while (truncate(path, 0) == 0 && truncate(path, full) == 0) {
    }
    return 0;
}

static void shrinking(off_t bytes, const char *path) {
    pthread_t thread;
    full = bytes;
    pthread_create(&thread, 0, shrink, strdup(path));
    say("shrinking");
}

static void forks(void) {
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, &status, 0);
    printf("forked %d\n", status);
    fflush(stdout);
}

int main(void) {
    char line[4096], path[4000], mode[16];
    int number;
    size_t bytes;
    sem_init(&done, 0, 0);
    sem_init(&leave, 0, 0);
#ifdef FIRST
    functions[plugins++] = FIRST;
#endif
#ifdef SECOND
    functions[plugins++] = SECOND;
#endif
    say("ready");
    while (fgets(line, sizeof line, stdin) != 0) {
        if (sscanf(line, "load %3999s %15s", path, mode) == 2)
            load(path, strcmp(mode, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL);
        else if (sscanf(line, "go %d", &number) == 1)
            go(number);
        else if (sscanf(line, "unload %d", &number) == 1)
            unload(number);
        else if (sscanf(line, "map %zu %3999s", &bytes, path) == 2)
            map(bytes, path);
        else if (sscanf(line, "shrink %zu %3999s", &bytes, path) == 2)
            shrinking((off_t)bytes, path);
        else if (strcmp(line, "fork\n") == 0)
            forks();
        else if (strcmp(line, "again\n") == 0)
            plugins = 0;
        else if (strcmp(line, "reuse\n") == 0)
            reuse();
        else if (strcmp(line, "check\n") == 0)
            check();
        else if (strcmp(line, "join\n") == 0)
            join();
        else
            return 1;
    }
    return 0;
}
