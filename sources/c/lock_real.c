/* Looks up the functions of locks when the library is loaded. A lock that is taken before that looks up its
 * function without the dynamic linker's help. */
#define _GNU_SOURCE
#include "lock_real.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "next.h"

/* The address of the function of this number. It is kept, because a C library may have no dlsym. */
static void *early(unsigned number);

/* A process without these functions has no threads (glibc before 2.34, without libpthread), so nothing has to
 * wait. An unknown clock is an error. */
#define PPT_EARLY(name, missing, arguments, ...)                                                   \
    static int early_##name(__VA_ARGS__) {                                                         \
        void *there = early(offsetof(struct ppt_lock_real, name) / sizeof there);                  \
        __typeof__(ppt_lock_real.name) found;                                                      \
        memcpy(&found, &there, sizeof found);                                                      \
        return found ? found arguments : (missing);                                                \
    }

#define PPT_TIME const struct timespec *time

static int failed(int error) {
    errno = error;
    return -1;
}

PPT_EARLY(pthread_mutex_lock, 0, (m), pthread_mutex_t *m)
PPT_EARLY(pthread_mutex_trylock, 0, (m), pthread_mutex_t *m)
PPT_EARLY(pthread_mutex_timedlock, 0, (m, time), pthread_mutex_t *m, PPT_TIME)
PPT_EARLY(pthread_mutex_clocklock, EINVAL, (m, clock, time), pthread_mutex_t *m, clockid_t clock,
          PPT_TIME)
PPT_EARLY(pthread_rwlock_rdlock, 0, (l), pthread_rwlock_t *l)
PPT_EARLY(pthread_rwlock_tryrdlock, 0, (l), pthread_rwlock_t *l)
PPT_EARLY(pthread_rwlock_timedrdlock, 0, (l, time), pthread_rwlock_t *l, PPT_TIME)
PPT_EARLY(pthread_rwlock_clockrdlock, EINVAL, (l, clock, time), pthread_rwlock_t *l,
          clockid_t clock, PPT_TIME)
PPT_EARLY(pthread_rwlock_wrlock, 0, (l), pthread_rwlock_t *l)
PPT_EARLY(pthread_rwlock_trywrlock, 0, (l), pthread_rwlock_t *l)
PPT_EARLY(pthread_rwlock_timedwrlock, 0, (l, time), pthread_rwlock_t *l, PPT_TIME)
PPT_EARLY(pthread_rwlock_clockwrlock, EINVAL, (l, clock, time), pthread_rwlock_t *l,
          clockid_t clock, PPT_TIME)
PPT_EARLY(pthread_cond_wait, 0, (c, m), pthread_cond_t *c, pthread_mutex_t *m)
PPT_EARLY(pthread_cond_timedwait, 0, (c, m, time), pthread_cond_t *c, pthread_mutex_t *m, PPT_TIME)
PPT_EARLY(pthread_cond_clockwait, EINVAL, (c, m, clock, time), pthread_cond_t *c,
          pthread_mutex_t *m, clockid_t clock, PPT_TIME)
PPT_EARLY(sem_wait, failed(ENOSYS), (s), sem_t *s)
PPT_EARLY(sem_trywait, failed(ENOSYS), (s), sem_t *s)
PPT_EARLY(sem_timedwait, failed(ENOSYS), (s, time), sem_t *s, PPT_TIME)
PPT_EARLY(sem_clockwait, failed(EINVAL), (s, clock, time), sem_t *s, clockid_t clock, PPT_TIME)

static void early_pthread_testcancel(void) {}

struct ppt_lock_real ppt_lock_real = {
#define PPT_EARLY_POINTER(result, name, parameters, version) early_##name,
    PPT_LOCK_FUNCTIONS(PPT_EARLY_POINTER)
#undef PPT_EARLY_POINTER
};

static const char *const names[][2] = {
#define PPT_NAME(result, name, parameters, version) {#name, version},
    PPT_LOCK_FUNCTIONS(PPT_NAME)
#undef PPT_NAME
};

#define PPT_COUNT (sizeof names / sizeof *names)
_Static_assert(sizeof(struct ppt_lock_real) == PPT_COUNT * sizeof(void *), "a pointer for each");

static void put(unsigned number, void *found) {
    if (found)
        __atomic_store_n((void **)&ppt_lock_real + number, found, __ATOMIC_RELAXED);
}

static void *early(unsigned number) {
    void *found = ppt_next(names[number][0]);
    put(number, found);
    return found;
}

static __attribute__((constructor(102))) void look_up(void) {
    int saved = errno;
    for (unsigned i = 0; i < PPT_COUNT; i++)
        put(i, ppt_next_by_linker(names[i][0], names[i][1]));
    errno = saved;
}
