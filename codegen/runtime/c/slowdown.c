/* ---- ppt, ABI 1: intervals that take longer (`ppt whatif --live`) ---------------------------
 *
 * The agent clears the bit of a frame in the mask page, and says there how long its thread waits at
 * the end of its interval. So `begin` comes here. It moves the end of the ring to the end of the
 * frame's slot, so that `end` comes here, too, where all fields are in the slot. Nothing else
 * executes an instruction more.
 *
 * While a thread waits, it writes no frame, and has a copy of its fields. So signal handlers may
 * write frames, jump out of the wait, end the thread, or fork.
 */

/* Words of the mask page from here on are about this. */
#define PPT1_SLOWDOWN 8

/* What the agent says. Only the claim `session` may say it. */
typedef struct ppt1_slowdown {
    uint64_t session;
    uint64_t beat;      /* the monotonic clock, when the agent last said that it lives */
    uint64_t round;     /* 0: nobody waits. It changes last, and becomes 0 before others do */
    uint64_t frame;     /* who waits */
    uint64_t start, end; /* words of the slot: the interval's stamps */
    uint64_t stamps;    /* bits of the slot's first 64 words: what is stamped by the same clock */
    uint64_t clock;     /* 0: `option time tsc`; else nanoseconds of this clock, plus 1 */
    uint64_t share;     /* of the interval's length, times 2^32, to wait */
    uint64_t sleeps;    /* 0: wait on the CPU */
} ppt1_slowdown;

#define PPT1_SLOWDOWN_WORDS 10
PPT1_ASSERT(sizeof(ppt1_slowdown) == 8 * PPT1_SLOWDOWN_WORDS, "ABI 1");

/* If the agent has not said for so long that it lives, nobody waits. */
#define PPT1_BEAT_NS 100000000
/* After so long, a thread that waits looks again whether it still should. */
#define PPT1_PIECE_NS 5000000
/* The kernel may let a thread sleep so much longer than it asked for. The thread waits for the rest
 * on the CPU. */
#define PPT1_SLACK_NS 100000

static uint64_t ppt1_word(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

static uint64_t ppt1_monotonic(void) {
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ppt1_i64(now.tv_sec) * 1000000000 + ppt1_i64(now.tv_nsec);
}

/* Whether a frame whose bit is 0 is wanted: the control page names those that are not. */
static int ppt1_is_wanted(unsigned frame) {
    const ppt1_control *control = &PPT1_(control);
    uint64_t disabled = ppt1_word(&control->disabled.bits[frame / 64 % PPT1_MASK_WORDS]);
    return (disabled >> frame % 64 & 1) == 0 ||
           ppt1_word(&control->disabled.nonce) != ppt1_word(&control->claim[PPT1_CLAIM_NONCE]);
}

/* The frame's bit is 0. Either nobody wants it, or its interval may have to take longer. */
static __attribute__((noinline, cold)) ppt1_thread *ppt1_begin_masked(ppt1_thread *t,
                                                                      unsigned frame) {
    if (!ppt1_is_wanted(frame)) {
        ppt1_leave(t);
        return PPT1_NULL;
    }
    t->edge = t->end;
    t->end = t->slot + PPT1_STRIDE / 8;
    /* A reader that sees a word of this frame also sees the cursor before it. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return t;
}

/* A round, as a thread has found it at the end of an interval. */
typedef struct ppt1_round {
    const ppt1_slowdown *from;
    uint64_t gate;
    ppt1_slowdown said;
} ppt1_round;

/* Copies what the agent says. Returns 0 if it says nothing, or something else by now. */
static int ppt1_round_of(const ppt1_thread *t, ppt1_round *to) {
    const ppt1_slowdown *from = PPT1_AT(const ppt1_slowdown *, t->enable + PPT1_SLOWDOWN);
    ppt1_slowdown *said = &to->said;
    to->from = from;
    to->gate = t->gate;
    uint64_t *words = PPT1_AT(uint64_t *, said);
    said->round = __atomic_load_n(&from->round, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < PPT1_SLOWDOWN_WORDS; i++)
        if (words + i != &said->round)
            words[i] = ppt1_word(PPT1_AT(const uint64_t *, from) + i);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return said->round != 0 && ppt1_word(&from->round) == said->round &&
           said->session == ppt1_word(&PPT1_(control).claim[PPT1_CLAIM_NONCE]);
}

/* Whether a round still goes on, at `now`, and its agent lives. */
static int ppt1_goes_on(const ppt1_round *round, uint64_t now) {
    if (ppt1_word(&PPT1_(control).gate) != round->gate) /* after a fork, nothing is mapped */
        return 0;
    return ppt1_word(&round->from->round) == round->said.round &&
           now - ppt1_word(&round->from->beat) + PPT1_BEAT_NS <= 2 * PPT1_BEAT_NS;
}

/* Waits until `until`, of the monotonic clock, or until the round ends. */
static void ppt1_wait(const ppt1_round *round, uint64_t until) {
    uint64_t now = ppt1_monotonic();
    while (now < until && ppt1_goes_on(round, now)) {
        uint64_t piece = until - now < PPT1_PIECE_NS ? until : now + PPT1_PIECE_NS;
        if (round->said.sleeps && piece - now > PPT1_SLACK_NS) {
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

/* How long the thread has to wait for the interval in its slot, in nanoseconds; 0: not at all. */
static uint64_t ppt1_pause(const ppt1_thread *t, const ppt1_slowdown *said) {
    const uint64_t *slot = t->slot;
    if (said->start >= PPT1_STRIDE / 8 || said->end >= PPT1_STRIDE / 8)
        return 0;
    /* Of several kinds of frames, each says which it is. */
    if (PPT1_FRAMES > 1 && (slot[1] & 0xffff) != said->frame)
        return 0;
    int64_t length = ppt1_length(said, slot[said->start], slot[said->end]);
    if (length <= 0)
        return 0;
    __extension__ typedef unsigned __int128 wide;
    wide pause = (PPT1_TO(wide, length) * said->share) >> 32;
    return pause >> 62 != 0 ? 0 : PPT1_TO(uint64_t, pause);
}

/* The thread begins its frame again, with these words, after a wait. Returns 0 if nobody wants it
 * any more, or it cannot be written. */
static int ppt1_begin_again(ppt1_thread *t, unsigned frame, const uint64_t *words) {
    ppt1_enter(t);
    uint64_t gate = __atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED);
    if ((gate != t->gate && !ppt1_slow(t, gate)) || !ppt1_is_wanted(frame)) {
        ppt1_leave(t);
        return 0;
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (unsigned i = 1; i < PPT1_STRIDE / 8; i++)
        __atomic_store_n(t->slot + i, words[i], __ATOMIC_RELAXED);
    return 1;
}

/* Has the thread wait at the end of the interval in its slot. The interval's end, and what the frame
 * has stamped since, come so much later. Returns 0 if the frame is not to be published. */
static __attribute__((noinline)) int ppt1_take_longer(ppt1_thread *t) {
    uint64_t now = ppt1_monotonic();
    ppt1_round round;
    if (!ppt1_round_of(t, &round) || !ppt1_goes_on(&round, now))
        return 1;
    const ppt1_slowdown *said = &round.said;
    uint64_t pause = ppt1_pause(t, said);
    if (pause == 0)
        return 1;
    uint64_t words[PPT1_STRIDE / 8];
    memcpy(words, t->slot, PPT1_STRIDE);
    uint64_t end = words[said->end];
    ppt1_leave(t);
    uint64_t before = ppt1_clock_now(said, end);
    ppt1_wait(&round, now + pause);
    uint64_t longer = ppt1_clock_now(said, end) - before;
    for (unsigned i = 1; i < PPT1_STRIDE / 8 && i < 64; i++)
        if ((said->stamps >> i & 1) && words[i] >= end)
            words[i] += longer;
    return ppt1_begin_again(t, PPT1_TO(unsigned, said->frame), words);
}

/* The slot is the ring's last one, or has a frame whose interval may have to take longer. */
static __attribute__((noinline, cold)) void ppt1_end_at_edge(ppt1_thread *t) {
    if (t->edge) {
        t->end = t->edge;
        t->edge = PPT1_NULL;
        int saved = errno;
        int is_there = ppt1_take_longer(t);
        errno = saved;
        if (!is_there)
            return;
    }
    uint64_t *slot = t->slot + PPT1_STRIDE / 8;
    ppt1_publish(t, slot == t->end ? t->first : slot);
}
