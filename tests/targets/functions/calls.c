/* Known calls of functions, each counted by itself, in ways that are hard to follow. Prints "NAME COUNT" of
 * those that returned, and for `deep`, `unwound` and the like how many have no frame. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))
#define APART __attribute__((noinline))

static int counts[8];
enum { LEAF, NEST, RECURSE, JUMP, LAND, HANDLE, ROOM, WORK };

PLAIN static void count(int which) { __atomic_fetch_add(&counts[which], 1, __ATOMIC_RELAXED); }

APART int leaf(int x) {
    count(LEAF);
    return x + 1;
}

APART int nest(int x) {
    count(NEST);
    return leaf(x) + leaf(x + 1);
}

APART int recurse(int left) {
    count(RECURSE);
    return left == 0 ? 0 : recurse(left - 1) + 1;
}

static jmp_buf back;

APART void jump(int left) {
    if (left == 0 && counts[LAND] > 0)
        longjmp(back, 1);
    if (left > -9)
        jump(left - 1);
    count(JUMP);
}

/* Each time, four calls of jump do not return. */
APART void land(void) {
    count(LAND);
    if (setjmp(back) == 0)
        jump(3);
    leaf(1);
}

/* The stack frame grows while the function runs. */
APART int room(int size) {
    count(ROOM);
    char *bytes = __builtin_alloca((size_t)size);
    memset(bytes, leaf(1), (size_t)size);
    return bytes[size / 2] + leaf(2);
}

APART void handle(int number) {
    count(HANDLE);
    leaf(number);
}

APART void *work(void *many) {
    count(WORK);
    for (long i = 0; i < (long)many; i++)
        nest((int)i);
    return NULL;
}

APART void *leave(void *nothing) {
    leaf(1);
    pthread_exit(nothing);
}

PLAIN static void children(void) {
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            nest(1);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

PLAIN int main(int argc, char **argv) {
    int many = argc > 1 ? atoi(argv[1]) : 100;
    static char alternative[65536];
    stack_t stack = {.ss_sp = alternative, .ss_size = sizeof alternative};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < many; i++) {
        nest(i);
        recurse(20);
        land();
        room(64 + i % 1000);
        raise(SIGUSR1);
    }
    recurse(299);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)(long)many);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pthread_create(&threads[0], NULL, leave, NULL);
    pthread_join(threads[0], NULL);
    printf("leaf %d\nnest %d\nrecurse %d\nland %d\nhandle %d\nroom %d\nwork %d\n", counts[LEAF],
           counts[NEST], counts[RECURSE] - 44, counts[LAND], counts[HANDLE], counts[ROOM], counts[WORK]);
    printf("deep 44\nunwound %d\nopen 1\njump %d\n", many * 4, counts[JUMP]);
    fflush(stdout);
    children();
    return 0;
}
