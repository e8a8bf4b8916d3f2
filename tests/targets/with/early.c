/* A library whose constructor takes locks and works with files, and comes before that of a library that is
 * preloaded. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static int turns;
int early_library; /* so that programs need it */

static void *other(void *unused) {
    for (int i = 0; i < 1000; i++) {
        pthread_rwlock_wrlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        pthread_mutex_lock(&mutex);
        while (turns % 2 == 0)
            pthread_cond_wait(&condition, &mutex);
        turns++;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
        sem_post(&semaphore);
    }
    return unused;
}

static __attribute__((constructor)) void early(void) {
    struct timespec later;
    clock_gettime(CLOCK_REALTIME, &later);
    later.tv_sec += 1000;
    pthread_t thread;
    char text[4];
    sem_init(&semaphore, 0, 0);
    if (pthread_create(&thread, NULL, other, NULL) != 0)
        abort();
    for (int i = 0; i < 1000; i++) {
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        if (pthread_mutex_timedlock(&mutex, &later) != 0)
            abort();
        while (turns % 2 == 1)
            pthread_cond_timedwait(&condition, &mutex, &later);
        turns++;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
        if (sem_wait(&semaphore) != 0)
            abort();
    }
    pthread_join(thread, NULL);
    int fd = open("early.c", O_RDONLY);
    if (fd < 0 || pread(fd, text, 4, 0) != 4 || turns != 2000)
        abort();
    close(fd);
    printf("early %d\n", turns);
    fflush(stdout);
}
