/* Threads that wait for locks, and count how often: waiting_main CASE [NUMBER].
 *
 * `waits`: each function, NUMBER times where it has to wait and NUMBER times where it need not. It prints
 * how often it waited, in lines `NAME VALUE`. `crowd`: four threads at one lock. `fork`: children that wait,
 * too. Nothing here knows of ppt. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));           \
            exit(1);                                                                               \
        }                                                                                          \
    while (0)

enum { MUTEX, READ, WRITE, CONDITION, SEMAPHORE, KINDS };
static const char *const kinds[] = {"MUTEX", "READ", "WRITE", "CONDITION", "SEMAPHORE"};
static unsigned long waits[KINDS], gave_up;

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;

static struct timespec in(clockid_t clock, long ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

#define LATER(clock) &(struct timespec[1]){in(clock, 100000)}[0]
#define SOON(clock) &(struct timespec[1]){in(clock, 1)}[0]
#define REAL CLOCK_REALTIME
#define MONO CLOCK_MONOTONIC

/* The ways to ask for a lock. glibc alone has those with a clock. */
#ifdef __GLIBC__
#define CLOCKED(X)                                                                                 \
    X(MUTEX, pthread_mutex_clocklock(&mutex, MONO, LATER(MONO)), pthread_mutex_unlock(&mutex))     \
    X(READ, pthread_rwlock_clockrdlock(&rwlock, MONO, LATER(MONO)), pthread_rwlock_unlock(&rwlock))\
    X(WRITE, pthread_rwlock_clockwrlock(&rwlock, MONO, LATER(MONO)),                               \
      pthread_rwlock_unlock(&rwlock))                                                              \
    X(SEMAPHORE, sem_clockwait(&semaphore, MONO, LATER(MONO)), sem_post(&semaphore))
#else
#define CLOCKED(X)
#endif
#define WAYS(X)                                                                                    \
    X(MUTEX, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))                             \
    X(MUTEX, pthread_mutex_timedlock(&mutex, LATER(REAL)), pthread_mutex_unlock(&mutex))           \
    X(READ, pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock))                        \
    X(READ, pthread_rwlock_timedrdlock(&rwlock, LATER(REAL)), pthread_rwlock_unlock(&rwlock))      \
    X(WRITE, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))                       \
    X(WRITE, pthread_rwlock_timedwrlock(&rwlock, LATER(REAL)), pthread_rwlock_unlock(&rwlock))     \
    X(SEMAPHORE, sem_wait(&semaphore), sem_post(&semaphore))                                       \
    X(SEMAPHORE, sem_timedwait(&semaphore, LATER(REAL)), sem_post(&semaphore))                     \
    CLOCKED(X)

#define KIND(kind, take, give) kind,
static const int kind_of[] = {WAYS(KIND)};
enum { NUMBER_OF_WAYS = sizeof kind_of / sizeof *kind_of };

__attribute__((noinline)) int take_the_lock(int way) {
    int at = 0;
#define TAKE(kind, take, give)                                                                     \
    if (at++ == way)                                                                               \
        return take;
    WAYS(TAKE)
    return -1;
}

static int give(int way) {
    int at = 0;
#define GIVE(kind, take, give)                                                                     \
    if (at++ == way)                                                                               \
        return give;
    WAYS(GIVE)
    return -1;
}

/* Somebody holds the lock so that this way has to wait. */
static int hold(int way) {
    switch (kind_of[way]) {
    case MUTEX: return pthread_mutex_trylock(&mutex);
    case READ: return pthread_rwlock_trywrlock(&rwlock);
    case WRITE: return pthread_rwlock_tryrdlock(&rwlock);
    default: return sem_trywait(&semaphore);
    }
}

typedef struct asking {
    int way, tid;
    int asks; /* from here on, it sleeps in the lock, and nowhere else */
    long rounds;
    pthread_barrier_t begin, end;
} asking;

static void *ask(void *of) {
    asking *a = of;
    __atomic_store_n(&a->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    for (long i = 0; i < a->rounds; i++) {
        pthread_barrier_wait(&a->begin);
        __atomic_store_n(&a->asks, 1, __ATOMIC_SEQ_CST);
        CHECK(take_the_lock(a->way) == 0);
        __atomic_store_n(&a->asks, 0, __ATOMIC_SEQ_CST);
        CHECK(give(a->way) == 0);
        pthread_barrier_wait(&a->end);
    }
    return NULL;
}

/* Waits until a thread sleeps in a lock. */
static void until_it_waits(const asking *a) {
    char path[64], text[64];
    while (!__atomic_load_n(&a->asks, __ATOMIC_SEQ_CST))
        sched_yield();
    for (;;) {
        snprintf(path, sizeof path, "/proc/self/task/%d/syscall",
                 __atomic_load_n(&a->tid, __ATOMIC_ACQUIRE));
        int fd = open(path, O_RDONLY);
        ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        close(fd);
        text[size < 0 ? 0 : size] = 0;
        if (atol(text) == SYS_futex && text[0] >= '0' && text[0] <= '9')
            return;
        sched_yield();
    }
}

/* One thread has to wait each time: the other one holds the lock until it does. */
static void wait_for_each(long rounds) {
    for (int way = 0; way < NUMBER_OF_WAYS; way++) {
        asking a = {.way = way, .rounds = rounds};
        pthread_t thread;
        pthread_barrier_init(&a.begin, NULL, 2);
        pthread_barrier_init(&a.end, NULL, 2);
        CHECK(pthread_create(&thread, NULL, ask, &a) == 0);
        for (long i = 0; i < rounds; i++) {
            CHECK(hold(way) == 0);
            pthread_barrier_wait(&a.begin);
            until_it_waits(&a);
            waits[kind_of[way]]++;
            CHECK(give(way) == 0);
            pthread_barrier_wait(&a.end);
        }
        CHECK(pthread_join(thread, NULL) == 0);
        for (long i = 0; i < 10 * rounds; i++) {
            CHECK(take_the_lock(way) == 0);
            CHECK(give(way) == 0);
        }
    }
}

/* Nobody gives it, so they give up. */
static void give_up(long rounds) {
    for (long i = 0; i < rounds; i++) {
        CHECK(pthread_mutex_trylock(&mutex) == 0 && pthread_rwlock_trywrlock(&rwlock) == 0);
        CHECK(sem_trywait(&semaphore) == 0);
        CHECK(pthread_mutex_timedlock(&mutex, SOON(REAL)) == ETIMEDOUT);
        CHECK(pthread_cond_timedwait(&condition, &mutex, SOON(REAL)) == ETIMEDOUT);
        errno = 0;
        CHECK(sem_timedwait(&semaphore, SOON(REAL)) == -1 && errno == ETIMEDOUT);
        waits[MUTEX]++, waits[CONDITION]++, waits[SEMAPHORE]++;
        gave_up += 3;
#ifdef __GLIBC__
        CHECK(pthread_mutex_clocklock(&mutex, MONO, SOON(MONO)) == ETIMEDOUT);
        CHECK(pthread_cond_clockwait(&condition, &mutex, MONO, SOON(MONO)) == ETIMEDOUT);
        waits[MUTEX]++, waits[CONDITION]++;
        gave_up += 2;
        /* It is this thread's own: the function says so at once, and has not waited. */
        CHECK(pthread_rwlock_wrlock(&rwlock) == EDEADLK);
#endif
        CHECK(pthread_mutex_unlock(&mutex) == 0 && pthread_rwlock_unlock(&rwlock) == 0);
        CHECK(sem_post(&semaphore) == 0);
    }
}

static int turn;

static void *other_turn(void *of) {
    long rounds = *(long *)of;
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != 1)
            pthread_cond_wait(&condition, &mutex), waits[CONDITION]++;
        turn = 0;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

/* Two threads by turns. Each counts its waits under the lock. Who asks for the lock may have to wait, too,
 * and nobody knows how often: so only conditions are counted here. */
static void take_turns(long rounds) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, other_turn, &rounds) == 0);
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != 0)
            pthread_cond_wait(&condition, &mutex), waits[CONDITION]++;
        turn = 1;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

static unsigned long sum;

static void *one_of_the_crowd(void *of) {
    for (long i = 0; i < *(long *)of; i++) {
        pthread_mutex_lock(&mutex);
        sum++;
        if (i % 64 == 0)
            sched_yield();
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void crowd(long rounds) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, one_of_the_crowd, &rounds) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(sum == 4 * (unsigned long)rounds);
}

static void children(long rounds) {
    for (volatile long i = 0; i < rounds; i++) {
        CHECK(sem_trywait(&semaphore) == 0);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            for (int fd = i % 2 ? 3 : 1000; fd < 1000; fd++)
                close(fd);
            _exit(sem_timedwait(&semaphore, SOON(REAL)) != -1 || errno != ETIMEDOUT);
        }
        waits[SEMAPHORE]++, gave_up++;
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        /* A child of vfork(2) uses this thread's memory. */
        child = vfork();
        if (child == 0)
            _exit(sem_trywait(&semaphore) != -1);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(sem_post(&semaphore) == 0);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    long number = argc > 2 ? atol(argv[2]) : 10;
    CHECK(sem_init(&semaphore, 0, 1) == 0);
    if (strcmp(what, "waits") == 0) {
        wait_for_each(number);
        give_up(number);
    } else if (strcmp(what, "turns") == 0) {
        take_turns(number);
    } else if (strcmp(what, "crowd") == 0) {
        crowd(number);
    } else if (strcmp(what, "fork") == 0) {
        children(number);
    } else {
        CHECK(!"no such case");
    }
    for (int kind = 0; kind < KINDS; kind++)
        printf("%s %lu\n", kinds[kind], waits[kind]);
    printf("ETIMEDOUT %lu\n", gave_up);
    return 0;
}
