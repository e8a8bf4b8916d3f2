/* ---- ppt, ABI 1: counters and histograms ------------------------------------------------------
 *
 * A thread that owns a ring adds to a row of cells that nobody else writes to. It is busy meanwhile,
 * as with a frame. What a signal handler adds then, and what a thread without a row adds, goes to a
 * row that all share, atomically. So nothing is refused, unless the segment cannot be mapped.
 */
#ifdef __cplusplus
extern "C" {
#endif

/* No second cell. */
#define PPT1_NO_CELL UINT32_MAX

static inline void ppt1_add_own(uint64_t *cell, uint64_t value) {
    __atomic_store_n(cell, __atomic_load_n(cell, __ATOMIC_RELAXED) + value, __ATOMIC_RELAXED);
}

static void ppt1_add_to_all(uint64_t *row, unsigned cell, uint64_t value, unsigned other) {
    __atomic_fetch_add(row + cell, value, __ATOMIC_RELAXED);
    if (other != PPT1_NO_CELL)
        ppt1_count(row + other);
}

/* Adds to the shared row of the segment that the gate names, and maps that if need be. It may be
 * another one than that of the thread's ring. */
static void ppt1_add_shared(const ppt1_thread *t, unsigned cell, uint64_t value, unsigned other) {
    ppt1_control *control = &PPT1_(control);
    uint64_t gate = __atomic_load_n(&control->gate, __ATOMIC_RELAXED);
    for (int tries = 0; gate != 0 && tries < 4; tries++) {
        ppt1_description d;
        if (PPT1_TO(uint32_t, gate) == PPT1_MOVING && t->shared && ppt1_mapping(t->nonce)) {
            ppt1_add_to_all(t->shared, cell, value, other);
            return;
        }
        if (PPT1_TO(uint32_t, gate) == PPT1_MOVING || !ppt1_described(gate, &d)) {
            gate = __atomic_load_n(&control->gate, __ATOMIC_RELAXED);
            continue;
        }
        if (d.cells.rows == 0)
            return; /* an agent that does not know counters */
        unsigned char *base = PPT1_NULL;
        if (!ppt1_has_failed(gate, d.nonce)) {
            base = ppt1_mapping(d.nonce);
            if (base && (!ppt1_fits(&d) || !ppt1_holds(base, &d)))
                base = PPT1_NULL;
            else if (!base) {
                if (d.target_pid != ppt1_u32(PPT1_TO(uint32_t, syscall(SYS_getpid))))
                    return; /* a fork copied the control page */
                base = ppt1_reach(gate, &d);
            }
        }
        if (!base)
            break;
        ppt1_add_to_all(PPT1_AT(uint64_t *, base + d.cells.offset), cell, value, other);
        return;
    }
    if (gate != 0)
        ppt1_count(&control->adds_not_mapped);
}

/* The thread is busy, or has no row for this gate. */
static __attribute__((noinline, cold)) void ppt1_add_slow(ppt1_thread *t, int nested,
                                                          unsigned cell, uint64_t value,
                                                          unsigned other) {
    int saved = errno;
    uint64_t gate = __atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED);
    int found = nested ? PPT1_RINGLESS : gate == t->gate ? PPT1_JOINED : ppt1_find(t, gate);
    if (found == PPT1_JOINED && t->row) {
        ppt1_add_own(t->row + cell, value);
        if (other != PPT1_NO_CELL)
            ppt1_add_own(t->row + other, 1);
    } else if (found == PPT1_JOINED || found == PPT1_RINGLESS) {
        ppt1_add_shared(t, cell, value, other);
    } else if (found != PPT1_REFUSED) {
        ppt1_count(&PPT1_(control).adds_not_mapped);
    }
    errno = saved;
    if (!nested)
        ppt1_leave(t);
}

/* Whether the thread can add to its own row. If so, it is busy until it leaves. */
static inline int ppt1_add_begin(ppt1_thread *t) {
    ppt1_enter(t);
    uint64_t gate = __atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED);
    return __builtin_expect(gate == t->gate && t->row != PPT1_NULL, 1) != 0;
}

/* Adds to a counter. */
PPT1_WEAK void PPT1_(add)(unsigned cell, uint64_t value) {
    ppt1_thread *t = ppt1_self();
    if (__builtin_expect(__atomic_load_n(&t->busy, __ATOMIC_RELAXED) != 0, 0)) {
        ppt1_add_slow(t, 1, cell, value, PPT1_NO_CELL);
        return;
    }
    if (!ppt1_add_begin(t)) {
        ppt1_add_slow(t, 0, cell, value, PPT1_NO_CELL);
        return;
    }
    ppt1_add_own(t->row + cell, value);
    ppt1_leave(t);
}

/* Adds to the sum of a histogram, and counts the value. */
PPT1_WEAK void PPT1_(observe)(unsigned sum, unsigned bucket, uint64_t value) {
    ppt1_thread *t = ppt1_self();
    if (__builtin_expect(__atomic_load_n(&t->busy, __ATOMIC_RELAXED) != 0, 0)) {
        ppt1_add_slow(t, 1, sum, value, bucket);
        return;
    }
    if (!ppt1_add_begin(t)) {
        ppt1_add_slow(t, 0, sum, value, bucket);
        return;
    }
    ppt1_add_own(t->row + sum, value);
    ppt1_add_own(t->row + bucket, 1);
    ppt1_leave(t);
}

#ifdef __cplusplus
}
#endif
