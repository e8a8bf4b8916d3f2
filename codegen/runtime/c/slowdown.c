/* ---- ppt, ABI 1: intervals that take longer (`ppt whatif --live`) ---------------------------
 *
 * The agent clears the bit of a frame in the mask page, and says there how long its thread waits at
 * the end of its interval. So `begin` comes here. It moves the end of the ring to the end of the
 * frame's slot, so that `end` comes here, too, where all fields are in the slot. Nothing else
 * executes an instruction more.
 */

/* Words of the mask page from here on are about this. */
#define PPT1_SLOWDOWN 8

/* What the agent says. Only the claim `session` may say it. */
typedef struct ppt1_slowdown {
    uint64_t session;
    uint64_t frames[4]; /* those whose bit may be clear, and that are written all the same */
    uint64_t beat;      /* the monotonic clock, when the agent last said that it lives */
    uint64_t round;     /* 0: nobody waits. It changes last, and becomes 0 before others do */
    uint64_t frame;     /* who waits */
    uint64_t start, end; /* words of the slot: the interval's stamps */
    uint64_t stamps;    /* bits of the slot's first 64 words: what is stamped by the same clock */
    uint64_t clock;     /* 0: `option time tsc`; else nanoseconds of this clock, plus 1 */
    uint64_t share;     /* of the interval's length, times 2^32, to wait */
    uint64_t sleeps;    /* 0: wait on the CPU */
} ppt1_slowdown;

#define PPT1_SLOWDOWN_WORDS 14
PPT1_ASSERT(sizeof(ppt1_slowdown) == 8 * PPT1_SLOWDOWN_WORDS, "ABI 1");

/* If the agent has not said for so long that it lives, nobody waits. */
#define PPT1_BEAT_NS 100000000
/* After so long, a thread that waits looks again whether it still should. */
#define PPT1_PIECE_NS 5000000
/* The kernel may let a thread sleep so much longer than it asked for. The thread waits for the rest
 * on the CPU. */
#define PPT1_SLACK_NS 100000

static const ppt1_slowdown *ppt1_slowdown_of(const ppt1_thread *t) {
    return PPT1_AT(const ppt1_slowdown *, t->enable + PPT1_SLOWDOWN);
}

static uint64_t ppt1_word(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

static uint64_t ppt1_monotonic(void) {
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ppt1_i64(now.tv_sec) * 1000000000 + ppt1_i64(now.tv_nsec);
}

/* The frame's bit is 0. Either nobody wants it, or its interval may have to take longer. */
static __attribute__((noinline, cold)) ppt1_thread *ppt1_begin_masked(ppt1_thread *t,
                                                                      unsigned frame) {
    const ppt1_slowdown *slowdown = ppt1_slowdown_of(t);
    if (ppt1_word(&slowdown->session) != ppt1_word(&PPT1_(control).claim[PPT1_CLAIM_NONCE]) ||
        (ppt1_word(&slowdown->frames[frame / 64 % 4]) >> frame % 64 & 1) == 0) {
        ppt1_leave(t);
        return PPT1_NULL;
    }
    t->edge = t->end;
    t->end = t->slot + PPT1_STRIDE / 8;
    /* A reader that sees a word of this frame also sees the cursor before it. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return t;
}

/* Copies what the agent says of `round`. Returns 0 if it says nothing, or something else by now. */
static int ppt1_slowdown_said(const ppt1_slowdown *from, ppt1_slowdown *to) {
    uint64_t *words = PPT1_AT(uint64_t *, to);
    to->round = __atomic_load_n(&from->round, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < PPT1_SLOWDOWN_WORDS; i++)
        if (words + i != &to->round)
            words[i] = ppt1_word(PPT1_AT(const uint64_t *, from) + i);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return to->round != 0 && ppt1_word(&from->round) == to->round;
}

/* Whether that round still goes on, at `now`, and its agent lives. */
static int ppt1_goes_on(const ppt1_thread *t, uint64_t round, uint64_t now) {
    const ppt1_slowdown *slowdown = ppt1_slowdown_of(t);
    if (ppt1_word(&PPT1_(control).gate) != t->gate) /* after a fork, nothing is mapped */
        return 0;
    return ppt1_word(&slowdown->round) == round &&
           now - ppt1_word(&slowdown->beat) + PPT1_BEAT_NS <= 2 * PPT1_BEAT_NS;
}

/* Waits until `until`, of the monotonic clock, or until the round ends. */
static void ppt1_wait(const ppt1_thread *t, const ppt1_slowdown *said, uint64_t until) {
    uint64_t now = ppt1_monotonic();
    while (now < until && ppt1_goes_on(t, said->round, now)) {
        uint64_t piece = until - now < PPT1_PIECE_NS ? until : now + PPT1_PIECE_NS;
        if (said->sleeps && piece - now > PPT1_SLACK_NS) {
            uint64_t wake = piece - PPT1_SLACK_NS;
            struct timespec at = {PPT1_TO(time_t, wake / 1000000000),
                                  PPT1_TO(long, wake % 1000000000)};
            /* Not by the C library, where a thread could be cancelled. */
            syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &at, PPT1_NULL);
        }
        while ((now = ppt1_monotonic()) < piece)
            ;
    }
}

/* The length of the interval in the thread's slot in nanoseconds, or -1. */
static int64_t ppt1_length(const ppt1_slowdown *said, uint64_t start, uint64_t end) {
    if (said->clock != 0)
        return start == 0 || end < start ? -1 : PPT1_TO(int64_t, end - start);
    return ppt1_ns_between(ppt1_word(&PPT1_(control).tick_scale), start, end);
}

/* What the interval's clock says. */
static uint64_t ppt1_clock_now(const ppt1_slowdown *said, uint64_t end) {
    if (said->clock == 0 && end >> 63 == 0)
        return ppt1_ticks();
    if (said->clock == 0)
        return PPT1_(stamp)();
    struct timespec now = PPT1_(clock)(PPT1_TO(int, said->clock - 1));
    return ppt1_i64(now.tv_sec) * 1000000000 + ppt1_i64(now.tv_nsec);
}

/* Has the thread wait at the end of the interval in its slot. The interval's end, and what the frame
 * has stamped since, come so much later. Returns 0 if the slot is gone: a signal handler may have
 * forked during the wait. */
static int ppt1_take_longer(ppt1_thread *t) {
    uint64_t *slot = t->slot;
    uint64_t now = ppt1_monotonic();
    ppt1_slowdown said;
    if (!ppt1_slowdown_said(ppt1_slowdown_of(t), &said) || said.start >= PPT1_STRIDE / 8 ||
        said.end >= PPT1_STRIDE / 8 || !ppt1_goes_on(t, said.round, now))
        return 1;
    /* Of several kinds of frames, each says which it is. */
    if (PPT1_FRAMES > 1 && (slot[1] & 0xffff) != said.frame)
        return 1;
    uint64_t end = slot[said.end];
    int64_t length = ppt1_length(&said, slot[said.start], end);
    if (length <= 0)
        return 1;
    __extension__ typedef unsigned __int128 wide;
    wide wait = (PPT1_TO(wide, length) * said.share) >> 32;
    if (wait >> 62 != 0)
        return 1;
    uint64_t before = ppt1_clock_now(&said, end);
    ppt1_wait(t, &said, now + PPT1_TO(uint64_t, wait));
    uint64_t longer = ppt1_clock_now(&said, end) - before;
    if (!ppt1_mapping(t->nonce))
        return 0;
    for (unsigned i = 1; i < PPT1_STRIDE / 8 && i < 64; i++)
        if ((said.stamps >> i & 1) && slot[i] >= end)
            __atomic_store_n(slot + i, slot[i] + longer, __ATOMIC_RELAXED);
    return 1;
}

/* The slot is the ring's last one, or has a frame whose interval may have to take longer. */
static __attribute__((noinline, cold)) void ppt1_end_at_edge(ppt1_thread *t) {
    if (t->edge) {
        int saved = errno;
        int is_there = ppt1_take_longer(t);
        errno = saved;
        t->end = t->edge;
        t->edge = PPT1_NULL;
        if (!is_there) {
            t->gate = PPT1_NO_GATE;
            t->tail = PPT1_NULL;
            t->row = PPT1_NULL;
            ppt1_leave(t);
            return;
        }
    }
    uint64_t *slot = t->slot + PPT1_STRIDE / 8;
    ppt1_publish(t, slot == t->end ? t->first : slot);
}
