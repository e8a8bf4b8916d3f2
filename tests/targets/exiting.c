/* exiting COUNTS: threads write without end, into a buffer that the program or a library holds,
 * until main calls exit() in the midst of it. The file COUNTS outlives it: how many frames each
 * thread had begun. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { THREADS = 4, APART = 64 };

int plugin_begin(int thread, int i, uint64_t *begun);

static uint64_t *counts;

static void *work(void *number) {
    for (int i = 0;; i++)
        plugin_begin((int)(intptr_t)number, i, &counts[(intptr_t)number * APART]);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    int file = open(argv[1], O_RDWR);
    counts = (uint64_t *)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    for (intptr_t t = 0; t < THREADS; t++) {
        pthread_t id;
        pthread_create(&id, 0, work, (void *)t);
    }
    for (int t = 0; t < THREADS; t++) /* all of them are in the middle of it */
        while (__atomic_load_n(&counts[t * APART], __ATOMIC_RELAXED) < 100)
            sched_yield();
    exit(0);
}
