/* ---- functions: a frame for each call -------------------------------------------------------
 *
 * Compilers call the two functions at the end at the beginning and at the end of each function, if they
 * are asked to by -finstrument-functions. A thread's open calls are on a stack of its own. A call is known
 * by its function and its stack frame, which is why the flags keep frame pointers: a call whose
 * stack frame is gone did not return.
 */
#ifndef PPT_FUNCTIONS_MIN_NS
#define PPT_FUNCTIONS_MIN_NS [ min ]
#endif

#define PPT1_HOOK __attribute__((no_instrument_function))
/* The compiler takes these calls out of line, so the hooks are short while nobody is attached. */
#define PPT1_HOOKED static __attribute__((no_instrument_function, noinline, cold))
#define PPT1_NOTED static inline __attribute__((no_instrument_function, always_inline))
#define PPT1_OPEN_CALLS 256U
/* Stack frames at least so far from each other, in words, may be on different stacks. */
#define PPT1_FAR (1U << 17)

typedef struct ppt1_open_call {
    uint64_t function, start;
    uint32_t frame; /* its stack frame, in words */
    uint32_t from;  /* where that returns to */
    uint32_t code;  /* where in the function the call began: a function may be inlined in itself */
    uint32_t reserved;
} ppt1_open_call;

typedef struct ppt1_open_calls {
    uint32_t busy; /* the stack frame whose call is being noted */
    uint32_t depth;
    uint64_t deeper; /* open calls that have no place */
    uint64_t session;
    ppt1_open_call open[PPT1_OPEN_CALLS];
} ppt1_open_calls;

#ifdef __cplusplus
extern "C" {
#endif

/* All objects of a program share it, as they share the buffer. */
PPT1_WEAK PPT1_THREAD ppt1_open_calls PPT1_(calls);

/* Whether a stack frame is older than another one on the same stack. */
PPT1_NOTED int ppt1_is_above(uint32_t frame, uint32_t other) {
    return frame != other && frame - other < PPT1_FAR;
}

/* Takes the stack for this thread's code; not for a signal handler that interrupted it. A hook that was left
 * by longjmp is busy no more. */
PPT1_NOTED int ppt1_take_calls(ppt1_open_calls *calls, uint32_t frame) {
    uint32_t busy = __atomic_load_n(&calls->busy, __ATOMIC_RELAXED);
    if (__builtin_expect(busy != 0, 0) && !ppt1_is_above(frame, busy))
        return 0;
    __atomic_store_n(&calls->busy, frame | 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t session = __atomic_load_n(&PPT1_(control).claim[PPT1_CLAIM_NONCE], __ATOMIC_RELAXED);
    if (__builtin_expect(calls->session != session, 0)) {
        /* Calls have returned that nobody has seen. */
        calls->session = session;
        calls->depth = 0;
        calls->deeper = 0;
    }
    return 1;
}

PPT1_NOTED void ppt1_leave_calls(ppt1_open_calls *calls) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&calls->busy, 0, __ATOMIC_RELAXED);
}

/* A call begins in a stack frame that is not below that of the last open call. Removes those that
 * cannot be open any more; a function that was inlined has the stack frame of its caller. */
PPT1_HOOKED void ppt1_remove_unwound(ppt1_open_calls *calls, uint32_t frame, uint32_t from,
                                     uint32_t code) {
    uint32_t depth = calls->depth;
    while (depth > 0) {
        const ppt1_open_call *last = &calls->open[depth - 1];
        if (!ppt1_is_above(frame, last->frame) && !(frame == last->frame && from != last->from))
            break;
        depth--;
    }
    for (uint32_t i = depth; i > 0 && calls->open[i - 1].frame == frame; i--)
        if (calls->open[i - 1].code == code)
            depth = i - 1;
    if (depth == calls->depth)
        return;
    PPT_ADD_UNWOUND(calls->depth - depth);
    calls->depth = depth;
    calls->deeper = 0;
}

/* The number of open calls up to the one that returns, if it is not the last one; 0 if it is not open. */
PPT1_HOOKED uint32_t ppt1_find_open(ppt1_open_calls *calls, uint64_t function, uint32_t frame) {
    uint32_t depth = calls->depth;
    if (calls->deeper > 0 && depth > 0 && ppt1_is_above(calls->open[depth - 1].frame, frame)) {
        calls->deeper--;
        return 0;
    }
    for (uint32_t i = depth; i > 0; i--)
        if (calls->open[i - 1].function == function && calls->open[i - 1].frame == frame) {
            if (i < depth)
                PPT_ADD_UNWOUND(depth - i);
            calls->deeper = 0;
            return i;
        }
    PPT_ADD_UNMATCHED(1);
    return 0;
}

static __attribute__((no_instrument_function, noinline)) void
ppt1_note_call(void *function, void *from, void *base, void *at) {
    ppt1_open_calls *calls = &PPT1_(calls);
    __asm__("" : "+r"(calls)); /* so that the compiler looks up the thread-local once */
    uint32_t frame = PPT1_TO(uint32_t, PPT1_AT(uint64_t, base) >> 3);
    uint32_t returns = PPT1_TO(uint32_t, PPT1_AT(uint64_t, from));
    if (!ppt1_take_calls(calls, frame)) {
        PPT_ADD_NESTED(1);
        return;
    }
    PPT_ADD_BEGUN(1);
    uint64_t id = PPT1_AT(uint64_t, function);
    uint32_t code = PPT1_TO(uint32_t, PPT1_AT(uint64_t, at));
    if (calls->depth > 0 && frame - calls->open[calls->depth - 1].frame < PPT1_FAR)
        ppt1_remove_unwound(calls, frame, returns, code);
    if (__builtin_expect(calls->depth < PPT1_OPEN_CALLS, 1)) {
        ppt1_open_call *call = &calls->open[calls->depth++];
        call->function = id;
        call->frame = frame;
        call->from = returns;
        call->code = code;
        call->start = ppt_functions_now();
    } else {
        calls->deeper++;
        PPT_ADD_DEEP(1);
    }
    ppt1_leave_calls(calls);
}

static __attribute__((no_instrument_function, noinline)) void ppt1_note_return(void *function,
                                                                               void *base) {
    uint64_t now = ppt_functions_now();
    ppt1_open_calls *calls = &PPT1_(calls);
    __asm__("" : "+r"(calls));
    uint32_t frame = PPT1_TO(uint32_t, PPT1_AT(uint64_t, base) >> 3);
    uint64_t id = PPT1_AT(uint64_t, function);
    if (!ppt1_take_calls(calls, frame))
        return;
    uint32_t depth = calls->depth;
    const ppt1_open_call *last = &calls->open[depth > 0 ? depth - 1 : 0];
    if (__builtin_expect(depth == 0 || last->function != id || last->frame != frame || calls->deeper, 0))
        depth = ppt1_find_open(calls, id, frame);
    if (depth > 0) {
        const ppt1_open_call *call = &calls->open[--depth];
        calls->depth = depth;
        if (PPT_FUNCTIONS_MIN_NS == 0 ||
            ppt_functions_ns_between(call->start, now) >= PPT_FUNCTIONS_MIN_NS)
            PPT_WRITE_CALL(f) {
                f.run_start = call->start;
                f.run_end = now;
                f.function = call->function;
                f.depth = depth;
            }
        else
            PPT_WRITE_BRIEF(f) {
                f.run_start = call->start;
                f.run_end = now;
                f.function = call->function;
                f.depth = depth;
            }
    }
    ppt1_leave_calls(calls);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wframe-address"
/* Each object has its own, so that it does not get those of the C library, which do nothing. g++ has
 * declared them, and then takes no attribute of visibility. */
#if defined __cplusplus && !defined __clang__
#define PPT1_OWN
__asm__(".hidden __cyg_profile_func_enter\n.hidden __cyg_profile_func_exit");
#else
#define PPT1_OWN __attribute__((visibility("hidden")))
#endif
PPT1_OWN PPT1_HOOK void __cyg_profile_func_enter(void *function, void *from);
PPT1_OWN PPT1_HOOK void __cyg_profile_func_exit(void *function, void *from);

void __cyg_profile_func_enter(void *function, void *from) {
    if (__builtin_expect(__atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED) != 0, 0))
        ppt1_note_call(function, from, __builtin_frame_address(1), __builtin_return_address(0));
}

void __cyg_profile_func_exit(void *function, void *from) {
    (void)from;
    if (__builtin_expect(__atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED) != 0, 0))
        ppt1_note_return(function, __builtin_frame_address(1));
}
#pragma GCC diagnostic pop

#ifdef __cplusplus
}
#endif
