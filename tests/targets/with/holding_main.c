/* A server whose requests wait for a lock that another thread holds, and its client: holding_main NUMBER.
 * Nothing here knows of ppt. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            exit(1);                                                                               \
        }                                                                                          \
    while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int holds, ends;

static void *hold(void *unused) {
    struct timespec pause = {0, 20000000};
    while (!__atomic_load_n(&ends, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&mutex);
        __atomic_store_n(&holds, 1, __ATOMIC_SEQ_CST);
        nanosleep(&pause, NULL);
        __atomic_store_n(&holds, 0, __ATOMIC_SEQ_CST);
        pthread_mutex_unlock(&mutex);
        nanosleep(&pause, NULL);
    }
    return unused;
}

__attribute__((noinline)) void take_the_lock(void) {
    pthread_mutex_lock(&mutex);
    __asm__ volatile("");
    pthread_mutex_unlock(&mutex);
}

static void *serve(void *of) {
    int fd = accept(*(int *)of, NULL, NULL);
    char bytes[64];
    ssize_t size;
    while ((size = read(fd, bytes, sizeof bytes)) > 0) {
        take_the_lock();
        CHECK(write(fd, bytes, (size_t)size) == size);
    }
    close(fd);
    return NULL;
}

int main(int argc, char **argv) {
    long number = argc > 1 ? atol(argv[1]) : 5;
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    pthread_t server, holder;
    CHECK(pthread_create(&server, NULL, serve, &listener) == 0);
    CHECK(pthread_create(&holder, NULL, hold, NULL) == 0);
    CHECK(connect(client, (struct sockaddr *)&address, length) == 0);
    char bytes[64] = {0};
    for (long i = 0; i < number; i++) {
        while (!__atomic_load_n(&holds, __ATOMIC_SEQ_CST))
            sched_yield();
        CHECK(write(client, bytes, 10) == 10 && read(client, bytes, 64) == 10);
    }
    close(client);
    __atomic_store_n(&ends, 1, __ATOMIC_SEQ_CST);
    CHECK(pthread_join(server, NULL) == 0 && pthread_join(holder, NULL) == 0);
    printf("answered %ld\n", number);
    return 0;
}
