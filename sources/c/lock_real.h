/* The functions of locks that ours call. */
#ifndef PPT_LOCK_REAL_H
#define PPT_LOCK_REAL_H

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

/* X(result, name, parameters, version), for each of them. glibc has two functions for
 * conditions by each name; only programs from before 2003 use the older one. */
#define PPT_LOCK_FUNCTIONS(X)                                                                      \
    X(int, pthread_mutex_lock, (pthread_mutex_t *), 0)                                             \
    X(int, pthread_mutex_trylock, (pthread_mutex_t *), 0)                                          \
    X(int, pthread_mutex_timedlock, (pthread_mutex_t *, const struct timespec *), 0)               \
    X(int, pthread_mutex_clocklock, (pthread_mutex_t *, clockid_t, const struct timespec *), 0)    \
    X(int, pthread_rwlock_rdlock, (pthread_rwlock_t *), 0)                                         \
    X(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t *), 0)                                      \
    X(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t *, const struct timespec *), 0)           \
    X(int, pthread_rwlock_clockrdlock,                                                             \
      (pthread_rwlock_t *, clockid_t, const struct timespec *), 0)                                 \
    X(int, pthread_rwlock_wrlock, (pthread_rwlock_t *), 0)                                         \
    X(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *), 0)                                      \
    X(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t *, const struct timespec *), 0)           \
    X(int, pthread_rwlock_clockwrlock,                                                             \
      (pthread_rwlock_t *, clockid_t, const struct timespec *), 0)                                 \
    X(int, pthread_cond_wait, (pthread_cond_t *, pthread_mutex_t *), "GLIBC_2.3.2")                \
    X(int, pthread_cond_timedwait,                                                                 \
      (pthread_cond_t *, pthread_mutex_t *, const struct timespec *), "GLIBC_2.3.2")               \
    X(int, pthread_cond_clockwait,                                                                 \
      (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *), 0)                \
    X(int, sem_wait, (sem_t *), 0)                                                                 \
    X(int, sem_trywait, (sem_t *), 0)                                                              \
    X(int, sem_timedwait, (sem_t *, const struct timespec *), 0)                                   \
    X(int, sem_clockwait, (sem_t *, clockid_t, const struct timespec *), 0)                        \
    X(void, pthread_testcancel, (void), 0)

/* They can be called at any time. */
struct ppt_lock_real {
#define PPT_POINTER(result, name, parameters, version) result(*name) parameters;
    PPT_LOCK_FUNCTIONS(PPT_POINTER)
#undef PPT_POINTER
};
extern struct ppt_lock_real ppt_lock_real;

#endif
