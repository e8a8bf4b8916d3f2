/* The functions that programs call instead of those of the C library to take a lock. While nobody is
 * attached, each is one load, one branch and a jump.
 *
 * While ppt is attached, they try first, so a lock that is free costs no frame. What a function returns,
 * and what it does to the lock, is the same with and without that:
 *
 * - A try with any result but "busy" has done what the function would have done.
 * - After "busy", the real function decides: for a lock that the thread already holds, it returns EDEADLK, or
 *   waits for ever.
 * - An invalid time or clock is an error, also where the lock is free. The real function returns it.
 * - Robust mutexes and those with a priority are not tried. In glibc, a try of one that cannot be recovered
 *   leaves it locked, and each try of one with a ceiling counts against the thread's priority. The word of
 *   the mutex shows whether a thread holds it.
 * - Functions that end a cancelled thread end it, also where they need not wait.
 *
 * They hold nothing while they wait in the real function, so a thread may be cancelled there. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>

#include "hidden.h"
#include "lock_real.h"
#include "locks.h"

#define PPT_EXPORT __attribute__((visibility("default")))
#define PPT_OFF (__builtin_expect(!ppt_locks_on(), 1))
/* Apart from the function that programs call, which then needs no stack. */
#define PPT_ON __attribute__((noinline))
#define PPT_CALLER __builtin_return_address(0)

/* A thread's wait, from before the real function to after it. */
typedef struct waiting {
    uint64_t session, start;
    const void *lock, *from;
    uint8_t kind;
} waiting;

/* The claim of the session, which no other session has. */
static uint64_t this_session(void) {
    return __atomic_load_n(&PPT_LOCKS_CONTROL.claim[PPT1_CLAIM_NONCE], __ATOMIC_RELAXED);
}

static waiting begin(const void *lock, const void *from, uint8_t kind) {
    PPT_ADD_WAITING(1);
    waiting wait = {this_session(), ppt_locks_now(), lock, from, kind};
    return wait;
}

/* Whether a function that returns `error` has waited. The other errors are refusals, which come at once. */
static int has_waited(int error) {
    return error != EDEADLK && error != EINVAL && error != EPERM && error != EAGAIN &&
           error != ENOSYS;
}

static int end(const waiting *wait, int error) {
    uint64_t now = ppt_locks_now();
    /* A session that began during the wait has not counted it. */
    if (now == 0 || wait->session != this_session())
        return error;
    PPT_ADD_WAITING(-1);
    if (wait->start != 0 && has_waited(error))
        PPT_WRITE_WAITED(f) {
            f.wait_start = wait->start;
            f.wait_end = now;
            f.lock = PPT_ADDR(wait->lock);
            f.from = PPT_ADDR(wait->from);
            f.kind = wait->kind;
            f.error = error;
        }
    return error;
}

/* The same for functions that return -1 and set errno. */
static int end_by_errno(const waiting *wait, int result) {
    int error = result == 0 ? 0 : errno;
    end(wait, error);
    if (result != 0)
        errno = error;
    return result;
}

static int is_time(const struct timespec *time) {
    return time && time->tv_nsec >= 0 && time->tv_nsec < 1000000000;
}

static int is_clock(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* ---- mutexes ------------------------------------------------------------------------------- */

/* The state of a mutex before the real function is called. */
enum { PPT_FREE, PPT_TAKEN, PPT_GOT };

#ifdef __GLIBC__
const char *gnu_get_libc_version(void);
#pragma weak gnu_get_libc_version

/* Bits that glibc writes into each mutex, and that are compiled into programs. */
#define PPT_ROBUST 16
#define PPT_CEILING 64
#define PPT_MUST_NOT_BE_TRIED (PPT_ROBUST | 32 | PPT_CEILING)
#define PPT_OWNER 0x3fffffffU
#define PPT_OWNER_DIED 0x40000000U
#define PPT_CEILINGS 0xfff80000U

static int kind_of(const pthread_mutex_t *m) {
    return gnu_get_libc_version ? __atomic_load_n(&m->__data.__kind, __ATOMIC_RELAXED) : 0;
}

/* Whether a thread, maybe this one, holds a mutex that must not be tried. */
static int is_taken(const pthread_mutex_t *m, int kind) {
    uint32_t word = (uint32_t)__atomic_load_n(&m->__data.__lock, __ATOMIC_RELAXED);
    if (kind & PPT_CEILING)
        return (word & ~PPT_CEILINGS) != 0;
    return (word & PPT_OWNER) != 0 && !(word & PPT_OWNER_DIED);
}

/* Whether this thread already held the mutex, which counts its locks. */
static int was_its_own(const pthread_mutex_t *m, int error) {
    return error == 0 && gnu_get_libc_version && (m->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE &&
           m->__data.__count > 1;
}
#else
#define PPT_MUST_NOT_BE_TRIED 0
static int kind_of(const pthread_mutex_t *m) { return (void)m, 0; }
static int is_taken(const pthread_mutex_t *m, int kind) { return (void)m, kind; }
static int was_its_own(const pthread_mutex_t *m, int error) { return (void)m, (void)error, 0; }
#endif

/* Takes a mutex that is free, if it can be tried. `got` receives the result of the try. */
static int look_at(pthread_mutex_t *m, int *got) {
    int kind = kind_of(m);
    if (__builtin_expect(kind & PPT_MUST_NOT_BE_TRIED, 0))
        return is_taken(m, kind) ? PPT_TAKEN : PPT_FREE;
    *got = ppt_lock_real.pthread_mutex_trylock(m);
    return *got == EBUSY ? PPT_TAKEN : PPT_GOT;
}

static int end_mutex(const waiting *wait, const pthread_mutex_t *m, int error) {
    return was_its_own(m, error) ? end(wait, EDEADLK), error : end(wait, error);
}

static PPT_ON int on_mutex_lock(pthread_mutex_t *m, const void *from) {
    int got, found = ppt_hidden ? PPT_FREE : look_at(m, &got);
    if (found == PPT_GOT)
        return got;
    if (found == PPT_FREE)
        return ppt_lock_real.pthread_mutex_lock(m);
    waiting wait = begin(m, from, LOCKS_LOCK_MUTEX);
    return end_mutex(&wait, m, ppt_lock_real.pthread_mutex_lock(m));
}

PPT_EXPORT int pthread_mutex_lock(pthread_mutex_t *m) {
    return PPT_OFF ? ppt_lock_real.pthread_mutex_lock(m) : on_mutex_lock(m, PPT_CALLER);
}

static PPT_ON int on_mutex_timedlock(pthread_mutex_t *m, const struct timespec *time,
                                     const void *from) {
    int got, found = ppt_hidden || !is_time(time) ? PPT_FREE : look_at(m, &got);
    if (found == PPT_GOT)
        return got;
    if (found == PPT_FREE)
        return ppt_lock_real.pthread_mutex_timedlock(m, time);
    waiting wait = begin(m, from, LOCKS_LOCK_MUTEX);
    return end_mutex(&wait, m, ppt_lock_real.pthread_mutex_timedlock(m, time));
}

PPT_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *time) {
    return PPT_OFF ? ppt_lock_real.pthread_mutex_timedlock(m, time)
                   : on_mutex_timedlock(m, time, PPT_CALLER);
}

static PPT_ON int on_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
                                     const struct timespec *time, const void *from) {
    int got, wrong = ppt_hidden || !is_clock(clock) || !is_time(time);
    int found = wrong ? PPT_FREE : look_at(m, &got);
    if (found == PPT_GOT)
        return got;
    if (found == PPT_FREE)
        return ppt_lock_real.pthread_mutex_clocklock(m, clock, time);
    waiting wait = begin(m, from, LOCKS_LOCK_MUTEX);
    return end_mutex(&wait, m, ppt_lock_real.pthread_mutex_clocklock(m, clock, time));
}

int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *time);

PPT_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
                                       const struct timespec *time) {
    return PPT_OFF ? ppt_lock_real.pthread_mutex_clocklock(m, clock, time)
                   : on_mutex_clocklock(m, clock, time, PPT_CALLER);
}

/* ---- locks for readers and writers --------------------------------------------------------- */

static PPT_ON int on_rdlock(pthread_rwlock_t *l, const void *from) {
    if (ppt_hidden)
        return ppt_lock_real.pthread_rwlock_rdlock(l);
    int got = ppt_lock_real.pthread_rwlock_tryrdlock(l);
    if (got != EBUSY)
        return got;
    waiting wait = begin(l, from, LOCKS_LOCK_READ);
    return end(&wait, ppt_lock_real.pthread_rwlock_rdlock(l));
}

PPT_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l) {
    return PPT_OFF ? ppt_lock_real.pthread_rwlock_rdlock(l) : on_rdlock(l, PPT_CALLER);
}

static PPT_ON int on_wrlock(pthread_rwlock_t *l, const void *from) {
    if (ppt_hidden)
        return ppt_lock_real.pthread_rwlock_wrlock(l);
    int got = ppt_lock_real.pthread_rwlock_trywrlock(l);
    if (got != EBUSY)
        return got;
    waiting wait = begin(l, from, LOCKS_LOCK_WRITE);
    return end(&wait, ppt_lock_real.pthread_rwlock_wrlock(l));
}

PPT_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l) {
    return PPT_OFF ? ppt_lock_real.pthread_rwlock_wrlock(l) : on_wrlock(l, PPT_CALLER);
}

static PPT_ON int on_timedrdlock(pthread_rwlock_t *l, const struct timespec *time,
                                 const void *from) {
    if (ppt_hidden || !is_time(time))
        return ppt_lock_real.pthread_rwlock_timedrdlock(l, time);
    int got = ppt_lock_real.pthread_rwlock_tryrdlock(l);
    if (got != EBUSY)
        return got;
    waiting wait = begin(l, from, LOCKS_LOCK_READ);
    return end(&wait, ppt_lock_real.pthread_rwlock_timedrdlock(l, time));
}

PPT_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *time) {
    return PPT_OFF ? ppt_lock_real.pthread_rwlock_timedrdlock(l, time)
                   : on_timedrdlock(l, time, PPT_CALLER);
}

static PPT_ON int on_timedwrlock(pthread_rwlock_t *l, const struct timespec *time,
                                 const void *from) {
    if (ppt_hidden || !is_time(time))
        return ppt_lock_real.pthread_rwlock_timedwrlock(l, time);
    int got = ppt_lock_real.pthread_rwlock_trywrlock(l);
    if (got != EBUSY)
        return got;
    waiting wait = begin(l, from, LOCKS_LOCK_WRITE);
    return end(&wait, ppt_lock_real.pthread_rwlock_timedwrlock(l, time));
}

PPT_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *time) {
    return PPT_OFF ? ppt_lock_real.pthread_rwlock_timedwrlock(l, time)
                   : on_timedwrlock(l, time, PPT_CALLER);
}

static PPT_ON int on_clockrdlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *time,
                                 const void *from) {
    if (ppt_hidden || !is_clock(clock) || !is_time(time))
        return ppt_lock_real.pthread_rwlock_clockrdlock(l, clock, time);
    int got = ppt_lock_real.pthread_rwlock_tryrdlock(l);
    if (got != EBUSY)
        return got;
    waiting wait = begin(l, from, LOCKS_LOCK_READ);
    return end(&wait, ppt_lock_real.pthread_rwlock_clockrdlock(l, clock, time));
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *time);

PPT_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock,
                                          const struct timespec *time) {
    return PPT_OFF ? ppt_lock_real.pthread_rwlock_clockrdlock(l, clock, time)
                   : on_clockrdlock(l, clock, time, PPT_CALLER);
}

static PPT_ON int on_clockwrlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *time,
                                 const void *from) {
    if (ppt_hidden || !is_clock(clock) || !is_time(time))
        return ppt_lock_real.pthread_rwlock_clockwrlock(l, clock, time);
    int got = ppt_lock_real.pthread_rwlock_trywrlock(l);
    if (got != EBUSY)
        return got;
    waiting wait = begin(l, from, LOCKS_LOCK_WRITE);
    return end(&wait, ppt_lock_real.pthread_rwlock_clockwrlock(l, clock, time));
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *time);

PPT_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock,
                                          const struct timespec *time) {
    return PPT_OFF ? ppt_lock_real.pthread_rwlock_clockwrlock(l, clock, time)
                   : on_clockwrlock(l, clock, time, PPT_CALLER);
}

/* ---- conditions, which always wait --------------------------------------------------------- */

static PPT_ON int on_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, const void *from) {
    if (ppt_hidden)
        return ppt_lock_real.pthread_cond_wait(c, m);
    waiting wait = begin(c, from, LOCKS_LOCK_CONDITION);
    return end(&wait, ppt_lock_real.pthread_cond_wait(c, m));
}

PPT_EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) {
    return PPT_OFF ? ppt_lock_real.pthread_cond_wait(c, m) : on_cond_wait(c, m, PPT_CALLER);
}

static PPT_ON int on_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                    const struct timespec *time, const void *from) {
    if (ppt_hidden)
        return ppt_lock_real.pthread_cond_timedwait(c, m, time);
    waiting wait = begin(c, from, LOCKS_LOCK_CONDITION);
    return end(&wait, ppt_lock_real.pthread_cond_timedwait(c, m, time));
}

PPT_EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                      const struct timespec *time) {
    return PPT_OFF ? ppt_lock_real.pthread_cond_timedwait(c, m, time)
                   : on_cond_timedwait(c, m, time, PPT_CALLER);
}

static PPT_ON int on_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                                    const struct timespec *time, const void *from) {
    if (ppt_hidden)
        return ppt_lock_real.pthread_cond_clockwait(c, m, clock, time);
    waiting wait = begin(c, from, LOCKS_LOCK_CONDITION);
    return end(&wait, ppt_lock_real.pthread_cond_clockwait(c, m, clock, time));
}

int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                           const struct timespec *time);

PPT_EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                                      const struct timespec *time) {
    return PPT_OFF ? ppt_lock_real.pthread_cond_clockwait(c, m, clock, time)
                   : on_cond_clockwait(c, m, clock, time, PPT_CALLER);
}

/* ---- semaphores ---------------------------------------------------------------------------- */

/* Whether a semaphore could be taken at once. The program's errno stays as it was. */
static int took(sem_t *s) {
    ppt_lock_real.pthread_testcancel();
    int saved = errno;
    int got = ppt_lock_real.sem_trywait(s);
    errno = saved;
    return got == 0;
}

static PPT_ON int on_sem_wait(sem_t *s, const void *from) {
    if (ppt_hidden)
        return ppt_lock_real.sem_wait(s);
    if (took(s))
        return 0;
    waiting wait = begin(s, from, LOCKS_LOCK_SEMAPHORE);
    return end_by_errno(&wait, ppt_lock_real.sem_wait(s));
}

PPT_EXPORT int sem_wait(sem_t *s) {
    return PPT_OFF ? ppt_lock_real.sem_wait(s) : on_sem_wait(s, PPT_CALLER);
}

static PPT_ON int on_sem_timedwait(sem_t *s, const struct timespec *time, const void *from) {
    if (ppt_hidden || !is_time(time))
        return ppt_lock_real.sem_timedwait(s, time);
    if (took(s))
        return 0;
    waiting wait = begin(s, from, LOCKS_LOCK_SEMAPHORE);
    return end_by_errno(&wait, ppt_lock_real.sem_timedwait(s, time));
}

PPT_EXPORT int sem_timedwait(sem_t *s, const struct timespec *time) {
    return PPT_OFF ? ppt_lock_real.sem_timedwait(s, time) : on_sem_timedwait(s, time, PPT_CALLER);
}

static PPT_ON int on_sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *time,
                                   const void *from) {
    if (ppt_hidden || !is_clock(clock) || !is_time(time))
        return ppt_lock_real.sem_clockwait(s, clock, time);
    if (took(s))
        return 0;
    waiting wait = begin(s, from, LOCKS_LOCK_SEMAPHORE);
    return end_by_errno(&wait, ppt_lock_real.sem_clockwait(s, clock, time));
}

int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *time);

PPT_EXPORT int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *time) {
    return PPT_OFF ? ppt_lock_real.sem_clockwait(s, clock, time)
                   : on_sem_clockwait(s, clock, time, PPT_CALLER);
}
