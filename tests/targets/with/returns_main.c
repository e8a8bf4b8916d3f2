/* What functions of locks return, for each kind of lock, in lines: returns_main. A time may run out, but no
 * line depends on how long anything takes. Nothing here knows of ppt. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct timespec past = {1, 0}, wrong = {1, 1000000000}, below = {1, -1};
static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, 99};

static struct timespec soon(clockid_t clock) {
    struct timespec t = {0, 0};
    clock_gettime(clock, &t);
    t.tv_nsec += 2000000;
    if (t.tv_nsec >= 1000000000)
        t.tv_nsec -= 1000000000, t.tv_sec++;
    return t;
}

#define SAY(call)                                                                                  \
    do {                                                                                           \
        errno = 7;                                                                                 \
        int said = call;                                                                           \
        printf("  %s: %d, errno %d\n", #call, said, errno);                                        \
    } while (0)

static pthread_mutex_t m;
static pthread_rwlock_t l;
static pthread_cond_t c;
static sem_t s;

static void *takes_and_ends(void *unused) {
    (void)unused;
    SAY(pthread_mutex_lock(&m));
    return NULL;
}

/* In another thread, so that the lock is somebody else's. */
static void *asks(void *unused) {
    (void)unused;
    struct timespec t = soon(CLOCK_REALTIME), u = soon(CLOCK_MONOTONIC);
    SAY(pthread_mutex_trylock(&m));
    SAY(pthread_mutex_unlock(&m));
    SAY(pthread_mutex_timedlock(&m, &t));
    SAY(pthread_mutex_timedlock(&m, &past));
    SAY(pthread_mutex_timedlock(&m, &wrong));
    SAY(pthread_mutex_timedlock(&m, &below));
    SAY(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &u));
    for (unsigned i = 0; i < 4; i++) {
        SAY(pthread_mutex_clocklock(&m, clocks[i], &past));
        SAY(pthread_mutex_clocklock(&m, clocks[i], &wrong));
    }
    return NULL;
}

static void in_a_thread(void *(*what)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, what, NULL) != 0 || pthread_join(thread, NULL) != 0)
        exit(1);
}

static void mutex(int type, int protocol, int robust, int shared) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutexattr_setpshared(&attributes, shared);
    printf("mutex: type %d, protocol %d, robust %d, shared %d\n", type, protocol, robust, shared);
    SAY(pthread_mutex_init(&m, &attributes));
    if (pthread_mutex_init(&m, &attributes) != 0)
        return;
    /* Free. */
    for (unsigned i = 0; i < 4; i++) {
        SAY(pthread_mutex_clocklock(&m, clocks[i], &past));
        SAY(pthread_mutex_unlock(&m));
        SAY(pthread_mutex_clocklock(&m, clocks[i], &wrong));
        SAY(pthread_mutex_unlock(&m));
    }
    SAY(pthread_mutex_timedlock(&m, &wrong));
    SAY(pthread_mutex_unlock(&m));
    SAY(pthread_mutex_timedlock(&m, &past));
    SAY(pthread_mutex_unlock(&m));
    int got = pthread_mutex_lock(&m);
    printf("  lock: %d\n", got);
    if (got != 0)
        return;
    in_a_thread(asks);
    /* Its own. */
    struct timespec t = soon(CLOCK_REALTIME), u = soon(CLOCK_MONOTONIC);
    if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK)
        SAY(pthread_mutex_lock(&m));
    SAY(pthread_mutex_trylock(&m));
    SAY(pthread_mutex_timedlock(&m, &t));
    SAY(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &u));
    for (int i = 0; i < 5; i++)
        SAY(pthread_mutex_unlock(&m));
    /* Its owner dies. Only a robust one can be had after that. */
    pthread_mutex_init(&m, &attributes);
    in_a_thread(takes_and_ends);
    if (robust == PTHREAD_MUTEX_ROBUST) {
        SAY(pthread_mutex_lock(&m));
        SAY(pthread_mutex_consistent(&m));
        SAY(pthread_mutex_unlock(&m));
        in_a_thread(takes_and_ends);
        SAY(pthread_mutex_timedlock(&m, &past));
        SAY(pthread_mutex_unlock(&m));
        SAY(pthread_mutex_lock(&m));
        SAY(pthread_mutex_timedlock(&m, &past));
        SAY(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &past));
    } else {
        SAY(pthread_mutex_trylock(&m));
        SAY(pthread_mutex_timedlock(&m, &past));
    }
    pthread_mutexattr_destroy(&attributes);
}

static void *asks_to_read_and_write(void *unused) {
    (void)unused;
    struct timespec t = soon(CLOCK_REALTIME), u = soon(CLOCK_MONOTONIC);
    SAY(pthread_rwlock_timedwrlock(&l, &t));
    SAY(pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &u));
    SAY(pthread_rwlock_timedrdlock(&l, &past));
    SAY(pthread_rwlock_unlock(&l));
    for (unsigned i = 0; i < 4; i++) {
        SAY(pthread_rwlock_clockwrlock(&l, clocks[i], &past));
        SAY(pthread_rwlock_clockrdlock(&l, clocks[i], &wrong));
    }
    return NULL;
}

static void rwlock(int prefers) {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, prefers);
    printf("rwlock: prefers %d\n", prefers);
    pthread_rwlock_init(&l, &attributes);
    SAY(pthread_rwlock_timedrdlock(&l, &wrong));
    SAY(pthread_rwlock_timedwrlock(&l, &below));
    for (unsigned i = 0; i < 4; i++) {
        SAY(pthread_rwlock_clockrdlock(&l, clocks[i], &past));
        SAY(pthread_rwlock_unlock(&l));
        SAY(pthread_rwlock_clockwrlock(&l, clocks[i], &past));
        SAY(pthread_rwlock_unlock(&l));
    }
    pthread_rwlock_init(&l, &attributes);
    SAY(pthread_rwlock_rdlock(&l));
    SAY(pthread_rwlock_rdlock(&l));
    SAY(pthread_rwlock_timedwrlock(&l, &past));
    in_a_thread(asks_to_read_and_write);
    pthread_rwlock_init(&l, &attributes);
    SAY(pthread_rwlock_wrlock(&l));
    SAY(pthread_rwlock_wrlock(&l));
    SAY(pthread_rwlock_rdlock(&l));
    SAY(pthread_rwlock_timedrdlock(&l, &past));
    SAY(pthread_rwlock_timedwrlock(&l, &past));
    in_a_thread(asks_to_read_and_write);
    SAY(pthread_rwlock_unlock(&l));
}

static void condition(int type) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    printf("condition: mutex of type %d\n", type);
    pthread_mutex_init(&m, &attributes);
    pthread_cond_init(&c, NULL);
    if (type == PTHREAD_MUTEX_ERRORCHECK) {
        SAY(pthread_cond_wait(&c, &m));
        SAY(pthread_cond_timedwait(&c, &m, &past));
    }
    pthread_mutex_lock(&m);
    struct timespec t = soon(CLOCK_REALTIME), u = soon(CLOCK_MONOTONIC);
    SAY(pthread_cond_timedwait(&c, &m, &t));
    SAY(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &u));
    SAY(pthread_cond_timedwait(&c, &m, &past));
    SAY(pthread_cond_timedwait(&c, &m, &wrong));
    for (unsigned i = 0; i < 4; i++)
        SAY(pthread_cond_clockwait(&c, &m, clocks[i], &past));
    SAY(pthread_mutex_unlock(&m));
}

static void on_signal(int number) { (void)number; }

static void *waits_for_the_semaphore(void *to_signal) {
    pthread_t *thread = to_signal;
    *thread = pthread_self();
    SAY(sem_wait(&s));
    return NULL;
}

/* It is cancelled before it asks for a semaphore that is free, so it must end, and not take it. */
static void *is_cancelled(void *unused) {
    pthread_cancel(pthread_self());
    sem_wait(&s);
    printf("  went on\n");
    return unused;
}

static void *is_cancelled_in_time(void *unused) {
    pthread_cancel(pthread_self());
    sem_timedwait(&s, &past);
    printf("  went on\n");
    return unused;
}

static void *is_cancelled_at_a_condition(void *unused) {
    pthread_mutex_lock(&m);
    pthread_cancel(pthread_self());
    pthread_cond_wait(&c, &m);
    printf("  went on\n");
    return unused;
}

static void *is_not_cancelled(void *unused) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_cancel(pthread_self());
    pthread_mutex_lock(&own);
    printf("  went on\n");
    return unused;
}

static void semaphore(void) {
    int value;
    sem_init(&s, 0, 0);
    struct timespec t = soon(CLOCK_REALTIME), u = soon(CLOCK_MONOTONIC);
    printf("semaphore\n");
    SAY(sem_trywait(&s));
    SAY(sem_timedwait(&s, &t));
    SAY(sem_timedwait(&s, &past));
    SAY(sem_clockwait(&s, CLOCK_MONOTONIC, &u));
    for (int i = 0; i < 2; i++) {
        SAY(sem_timedwait(&s, &wrong));
        SAY(sem_timedwait(&s, &below));
        for (unsigned j = 0; j < 4; j++) {
            SAY(sem_clockwait(&s, clocks[j], &wrong));
            SAY(sem_clockwait(&s, clocks[j], &past));
        }
        SAY(sem_post(&s));
        SAY(sem_post(&s));
        SAY(sem_wait(&s));
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    sem_init(&s, 0, 0);
    pthread_t thread, there;
    pthread_create(&thread, NULL, waits_for_the_semaphore, &there);
    /* Until it has said that a signal ended its wait. */
    while (pthread_tryjoin_np(thread, NULL) == EBUSY) {
        pthread_kill(thread, SIGUSR1);
        usleep(1000);
    }
    sem_init(&s, 0, 1);
    in_a_thread(is_cancelled);
    in_a_thread(is_cancelled_in_time);
    sem_getvalue(&s, &value);
    printf("  value %d\n", value);
    pthread_mutex_init(&m, NULL);
    pthread_cond_init(&c, NULL);
    in_a_thread(is_cancelled_at_a_condition);
    SAY(pthread_mutex_trylock(&m)); /* it had no handler that gives it back */
    in_a_thread(is_not_cancelled);
}

int main(void) {
    const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                         PTHREAD_MUTEX_ADAPTIVE_NP};
    const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT};
    /* Nothing is written before the end: a thread might be cancelled there. */
    static char all[1 << 20];
    setvbuf(stdout, all, _IOFBF, sizeof all);
    for (int i = 0; i < 4 * 3 * 4; i++)
        mutex(types[i % 4], protocols[i / 4 % 3], i / 12 % 2, i / 24);
    for (int prefers = 0; prefers < 3; prefers++)
        rwlock(prefers);
    for (int i = 0; i < 4; i++)
        condition(types[i]);
    semaphore();
    return 0;
}
