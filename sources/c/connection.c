#define _GNU_SOURCE
#include "connection.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "write.h"

ppt_connection ppt_connections[PPT_DESCRIPTORS];

/* How often a thread checks whether another one, which only changes counts, has released a connection. */
#define PPT_TRIES 200

/* Names the session; never 0. */
static uint32_t this_session(void) { return (uint32_t)ppt_session() | 1; }

/* The number of this thread; 0: the kernel cannot be asked. It is asked once in a session: a forked child
 * has no session of its parent's, and a child of vfork(2) writes nothing into its parent's memory. */
static uint32_t this_thread(uint32_t session) {
    static __thread uint32_t known, known_in;
    if (__builtin_expect(known_in == session, 1))
        return known;
    if (ppt_is_filtered() || !ppt_is_ours())
        return 0;
    known = (uint32_t)syscall(SYS_gettid);
    known_in = session;
    return known;
}

static uint32_t session_of(const ppt_connection *c) {
    return __atomic_load_n(&c->session, __ATOMIC_RELAXED);
}

static void wait_a_moment(void) {
#ifdef __x86_64__
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

/* Locks a connection. A thread that is stopped while it holds the lock delays nobody: after a moment,
 * the others go on, and their calls are counted as not examined. A signal handler that interrupts the holder
 * does the same. A lock of an earlier session, or of the process that forked this one, is free. */
static int lock(ppt_connection *c, uint32_t session) {
    static __thread char here;
    uint64_t mine = (uint64_t)session << 32 | (uint32_t)((uintptr_t)&here >> 4) | 1;
    uint64_t holder = 0;
    for (int tries = 0; tries < PPT_TRIES; tries++) {
        holder = 0;
        if (__atomic_compare_exchange_n(&c->lock, &holder, mine, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return 1;
        if (holder == mine)
            break;
        wait_a_moment();
    }
    if (holder >> 32 != session && __atomic_compare_exchange_n(&c->lock, &holder, mine, 0,
                                                               __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return 1;
    ppt_count_contended();
    return 0;
}

static void unlock(ppt_connection *c) { __atomic_store_n(&c->lock, 0, __ATOMIC_RELEASE); }

/* Locks a descriptor that this session knows as a connection. */
static int lock_known(ppt_connection *c, uint32_t session) {
    if (!lock(c, session))
        return 0;
    if (c->session == session && ppt_is_connection(c))
        return 1;
    unlock(c);
    return 0;
}

/* A finished request, which is written once the lock is free. The struct is large, and most calls finish no
 * request, so only its first two fields are set at the beginning. */
typedef struct finished {
    enum ppt_role role; /* PPT_UNCONNECTED: nothing */
    int unanswered;
    ppt_request request;
    ppt_address address;
} finished;

static void clear(finished *f) {
    f->role = PPT_UNCONNECTED;
    f->unanswered = 0;
}

/* Ends the request of a locked connection, if there is one that can end. */
static void finish(ppt_connection *c, int closes, finished *to) {
    clear(to);
    if (c->phase == PPT_ANSWERED) {
        to->role = (enum ppt_role)c->role;
        to->request = c->request;
        to->address = c->address;
    } else if (c->phase == PPT_ASKED && closes) {
        to->unanswered = 1;
    } else {
        return;
    }
    c->phase = PPT_IDLE;
}

static void write_finished(const ppt_connection *c, const finished *from) {
    if (from->unanswered)
        ppt_count_unanswered();
    if (from->role != PPT_UNCONNECTED)
        ppt_write_request((uint32_t)(c - ppt_connections), from->role == PPT_CALLED, &from->request,
                          &from->address);
}

/* Begins a request on a locked connection: `at` byte `place`. */
static void begin(ppt_connection *c, uint64_t at, uint64_t place) {
    memset(&c->request, 0, sizeof c->request);
    c->request.start = at;
    c->request.thread = this_thread(c->session);
    c->asked = place;
    c->phase = PPT_ASKED;
}

/* The points that a call has reached. They are written once the lock is free. */
typedef struct reached {
    int begun, answered, unasked;
    uint64_t hash, asked, answer;
} reached;

static void locate(const ppt_connection *c, uint64_t answer, reached *to) {
    to->hash = c->located ? c->address.hash : 0;
    to->asked = c->asked;
    to->answer = answer;
}

/* ---- which descriptor is what -------------------------------------------------------------- */

void ppt_made(int fd) {
    ppt_ending(fd);
    if (!ppt_is_in_table(fd) || !ppt_is_ours())
        return;
    ppt_connection *c = &ppt_connections[fd];
    uint32_t session = this_session();
    if (!lock(c, session))
        return;
    c->role = PPT_UNCONNECTED;
    c->phase = PPT_IDLE;
    c->seen = 1;
    c->session = session;
    unlock(c);
}

/* A descriptor of this process ends, or has become another file. */
static void end_one(int fd, uint32_t session) {
    ppt_connection *c = &ppt_connections[fd];
    if (session_of(c) != session || ppt_role_of(c) == PPT_UNCONNECTED || !lock(c, session))
        return;
    finished f;
    clear(&f);
    if (ppt_is_connection(c))
        finish(c, 1, &f);
    c->role = PPT_UNCONNECTED;
    c->seen = 0;
    unlock(c);
    write_finished(c, &f);
}

/* Asks the kernel what a socket is, before or after a call. */
static __attribute__((noinline, cold)) ppt_connection *ask(int fd, uint64_t meaning, int sends,
                                                           int before) {
    ppt_connection *c = &ppt_connections[fd];
    uint32_t session = this_session();
    if (ppt_is_filtered()) {
        ppt_count_filtered();
        return NULL;
    }
    int seen = session_of(c) == session && c->seen;
    ppt_address address;
    uint64_t came, went;
    ppt_ask_address(fd, sends, seen, &address, &came, &went);
    if (!lock(c, session))
        return NULL;
    finished f;
    clear(&f);
    if (!ppt_is_asked(c, meaning)) {
        if (c->session == session && ppt_is_connection(c))
            finish(c, 1, &f);
        c->address = address;
        c->came = came;
        c->went = went;
        c->located = (uint8_t)(seen || (before && address.located && address.hash != 0));
        c->seen = (uint8_t)(seen && !address.connected);
        c->phase = PPT_IDLE;
        c->role = (uint8_t)(!address.connected ? PPT_UNCONNECTED
                            : !address.stream  ? PPT_NO_STREAM
                            : address.called   ? PPT_CALLED
                                               : PPT_SERVED);
        __atomic_store_n(&c->meaning, meaning, __ATOMIC_RELAXED);
        __atomic_store_n(&c->session, session, __ATOMIC_RELEASE);
    }
    unlock(c);
    write_finished(c, &f);
    return ppt_role_of(c) == PPT_NO_STREAM ? NULL : c;
}

ppt_connection *ppt_connection_of(int fd, uint64_t meaning, int sends) {
    ppt_connection *c = &ppt_connections[fd];
    if (!ppt_is_asked(c, meaning))
        return ask(fd, meaning, sends, 1);
    return ppt_is_connection(c) ? c : NULL;
}

/* The number of a connection is due, or means something else now: looks whether this is a connection. */
static __attribute__((noinline, cold)) int becomes_current(ppt_connection *c, uint64_t now, int sends) {
    int fd = (int)(c - ppt_connections);
    uint64_t meaning = ppt_ask_meaning(fd, now);
    if (ppt_is_asked(c, meaning))
        return 1;
    if (ppt_kind_of(meaning) != PPT_SOCKET) {
        PPT_ADD_UNDECIDED_IO(ppt_kind_of(meaning) == PPT_FILE);
        end_one(fd, this_session());
        return 0;
    }
    c = ask(fd, meaning, sends, 0);
    if (c && !ppt_is_connection(c))
        ppt_count_undecided(1); /* its first bytes are under way before it is connected */
    return c && ppt_is_connection(c);
}

/* Locks a connection after a call, if it is still what its number means. */
static inline int lock_current(ppt_connection *c, uint64_t now, uint32_t session, int sends) {
    int fd = (int)(c - ppt_connections);
    if (__builtin_expect(now >= __atomic_load_n(&ppt_descriptors[fd].due, __ATOMIC_RELAXED) ||
                             ppt_role_of(c) == PPT_UNCONNECTED, 0)) {
        if (!becomes_current(c, now, sends))
            return 0;
    } else {
        ppt_use(fd);
    }
    return lock_known(c, session);
}

/* ---- answers that nothing ends ------------------------------------------------------------- */

/* The stamp at which the next step is due; UINT64_MAX while a thread makes one. */
static uint64_t due;
/* The session of `due`, and the first descriptor of the step. */
static uint32_t due_session, next_step;

/* Descriptors that one step looks at. */
#define PPT_STEP 256

/* Ends the answers that have been silent for a second. */
static __attribute__((noinline, cold)) void step(uint64_t now, uint32_t session) {
    uint64_t was = __atomic_load_n(&due, __ATOMIC_RELAXED);
    int same = __atomic_load_n(&due_session, __ATOMIC_RELAXED) == session;
    if ((same && was > now) ||
        !__atomic_compare_exchange_n(&due, &was, UINT64_MAX, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&due_session, session, __ATOMIC_RELAXED);
    uint64_t second = ppt_second(now);
    uint32_t from = __atomic_load_n(&next_step, __ATOMIC_RELAXED);
    uint32_t end = __atomic_load_n(&ppt_descriptors_used, __ATOMIC_RELAXED);
    uint32_t to = end - from > PPT_STEP && from < end ? from + PPT_STEP : end;
    for (uint32_t i = from; i < to && second != 0; i++) {
        ppt_connection *c = &ppt_connections[i];
        if (session_of(c) != session || __atomic_load_n(&c->phase, __ATOMIC_RELAXED) != PPT_ANSWERED ||
            now - __atomic_load_n(&c->request.end, __ATOMIC_RELAXED) < second ||
            !lock_known(c, session))
            continue;
        finished f;
        clear(&f);
        if (c->phase == PPT_ANSWERED && now > c->request.end && now - c->request.end >= second)
            finish(c, 0, &f);
        unlock(c);
        write_finished(c, &f);
    }
    __atomic_store_n(&next_step, to < end ? to : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&due, to < end ? now : now + second / 4, __ATOMIC_RELEASE);
}

static void look_for_silence(uint64_t now, uint32_t session) {
    if (__builtin_expect(now >= __atomic_load_n(&due, __ATOMIC_RELAXED) ||
                             session != __atomic_load_n(&due_session, __ATOMIC_RELAXED),
                         0))
        step(now, session);
}

/* At its end, a program writes what it has answered. */
static __attribute__((destructor)) void at_exit(void) {
    if (!PPT_BOTH_OFF)
        ppt_ending_all(0, PPT_DESCRIPTORS - 1);
}

/* ---- what calls did ------------------------------------------------------------------------ */

static void came_to_served(ppt_connection *c, uint64_t now, finished *f, reached *r) {
    finish(c, 0, f);
    if (c->phase == PPT_IDLE) {
        begin(c, now, c->came);
        r->begun = 1;
        locate(c, 0, r);
    }
}

static void came_to_called(ppt_connection *c, uint64_t now, reached *r) {
    if (c->phase == PPT_IDLE) {
        r->unasked = 1;
        return;
    }
    if (c->phase == PPT_ASKED) {
        c->phase = PPT_ANSWERED;
        c->request.first = now;
        r->answered = 1;
        locate(c, c->came, r);
    }
    c->request.end = now;
}

void ppt_came(ppt_connection *c, uint64_t count, int looked) {
    uint32_t session = this_session();
    uint64_t now = ppt_stamp();
    if (now == 0 || !lock_current(c, now, session, 0))
        return;
    finished f;
    clear(&f);
    reached r = {0};
    int called = c->role == PPT_CALLED;
    if (count == 0) {
        /* The other end sends no more. That ends an answer, but not a request. */
        if (called)
            finish(c, 0, &f);
    } else {
        if (called)
            came_to_called(c, now, &r);
        else
            came_to_served(c, now, &f, &r);
        if (!looked) {
            c->came += count;
            c->request.bytes_in += count;
            c->request.reads++;
        }
    }
    unlock(c);
    write_finished(c, &f);
    if (r.begun)
        ppt_reach_taken(now, r.hash, r.asked);
    if (r.answered)
        ppt_reach_got(now, r.hash, r.asked, r.answer);
    if (r.unasked)
        ppt_count_unasked();
    look_for_silence(now, session);
}

static void went_to_served(ppt_connection *c, uint64_t before, uint64_t now, reached *r) {
    if (c->phase == PPT_IDLE) {
        r->unasked = 1;
        return;
    }
    if (c->phase == PPT_ASKED) {
        c->phase = PPT_ANSWERED;
        c->request.first = before;
        r->answered = 1;
        locate(c, c->went, r);
    }
    c->request.end = now;
}

static void went_to_called(ppt_connection *c, uint64_t before, finished *f, reached *r) {
    finish(c, 0, f);
    if (c->phase == PPT_IDLE) {
        begin(c, before, c->went);
        r->begun = 1;
        locate(c, 0, r);
    }
}

void ppt_went(ppt_connection *c, uint64_t before, uint64_t count) {
    uint32_t session = this_session();
    uint64_t now = ppt_stamp();
    if (now == 0 || before == 0 || count == 0 || !lock_current(c, now, session, 1))
        return;
    finished f;
    clear(&f);
    reached r = {0};
    if (c->role == PPT_CALLED)
        went_to_called(c, before, &f, &r);
    else
        went_to_served(c, before, now, &r);
    c->went += count;
    c->request.bytes_out += count;
    c->request.writes++;
    unlock(c);
    write_finished(c, &f);
    if (r.begun)
        ppt_reach_asked(before, r.hash, r.asked);
    if (r.answered)
        ppt_reach_answered(before, r.hash, r.asked, r.answer);
    if (r.unasked)
        ppt_count_unasked();
    look_for_silence(now, session);
}

void ppt_done_sending(ppt_connection *c) {
    finished f;
    clear(&f);
    if (!lock_known(c, this_session()))
        return;
    if (c->role == PPT_SERVED)
        finish(c, 0, &f);
    unlock(c);
    write_finished(c, &f);
}

/* ---- the end of descriptors ---------------------------------------------------------------- */

void ppt_ending(int fd) {
    int saved = errno;
    if (ppt_forget(fd))
        end_one(fd, this_session());
    errno = saved;
}

void ppt_ending_all(unsigned first, unsigned last) {
    uint32_t end = __atomic_load_n(&ppt_descriptors_used, __ATOMIC_RELAXED);
    if (ppt_is_ours())
        for (unsigned fd = first; fd < end && fd <= last; fd++)
            ppt_ending((int)fd);
}
