/* ---- ppt, ABI 1: the part that is the same in every source file ---------------------------
 *
 * PPT1_(name) is the symbol of `name` for this buffer; PPT1_STRIDE, PPT1_FRAMES and
 * PPT1_LOG2_SLOTS describe it. Symbols are weak and carry the schema's hash: equal schemas share
 * one buffer, different ones never meet.
 */
#define PPT1_WEAK __attribute__((weak, visibility("default")))

/* A value that no gate has, not even in one half. */
#define PPT1_NO_GATE UINT64_C(0xffffffff)
/* In the lower half of a gate that is on its way to another segment. */
#define PPT1_MOVING UINT64_C(0x7fffffff)
#define PPT1_STAMP_IS_MONOTONIC (UINT64_C(1) << 63)
#define PPT1_SEGMENT_MAGIC UINT64_C(0x316d676573747070)
#define PPT1_FREE UINT64_C(0)
#define PPT1_ACTIVE UINT64_C(1)

#define PPT1_ABI 1
#define PPT1_HEADER_LENGTH 4096
#define PPT1_MARGIN 1

/* Limits of a geometry. */
#define PPT1_MIN_LOG2_SLOTS 1
#define PPT1_MAX_LOG2_SLOTS 26
#define PPT1_MAX_RINGS 65536

/* Words of a ring header, whose first is the cursor, and of an entry of its history. */
#define PPT1_RING_WORDS 64
#define PPT1_RING_OWNER 16
#define PPT1_RING_HISTORY 17
#define PPT1_OWNERS 4
#define PPT1_OWNER_WORDS 2
#define PPT1_OWNER_FIRST_SEQ 0
#define PPT1_OWNER_CLAIM 1 /* epoch << 32 | tid */

/* Words of the mask page, from its start. */
#define PPT1_MASK_WORDS 4

/* Words of the process page. */
#define PPT1_RELEASED 0
#define PPT1_NESTED 1
#define PPT1_NO_RING 2

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

typedef struct ppt1_descriptor {
    unsigned char magic[16];
    const void *self; /* the address at which it is loaded */
    uint32_t abi, length;
    uint64_t schema_hash;
    const char *schema;
    uint64_t schema_length;
    ppt1_control *control;
    uint32_t stride, log2_slots, frames, flags;
    uint64_t cells; /* of a row */
    uint64_t reserved[5];
} ppt1_descriptor;

/* The kind of the part behind all others: its masks may be written at any time. */
#define PPT1_MASKED 6

/* A part of a segment. */
typedef struct ppt1_section {
    uint32_t kind, flags;
    uint64_t offset, length, item;
} ppt1_section;

/* The index of each part in a header's table. Its kind is one more. */
enum { PPT1_MASKS, PPT1_PROCESS, PPT1_RING_HEADERS, PPT1_SLOTS, PPT1_CELL_ROWS, PPT1_SECTIONS };

/* The start of a segment. Its maker writes it once. */
typedef struct ppt1_header {
    uint64_t magic;
    uint32_t abi, length;
    uint64_t nonce;
    uint32_t margin, reserved;
    uint64_t schema_hash;
    uint32_t stride, log2_slots, rings, ring_pitch;
    uint64_t agent_pid, created_mono_ns, created_real_ns;
    ppt1_section sections[16];
} ppt1_header;

PPT1_ASSERT(sizeof(ppt1_descriptor) == 128, "ABI 1");
PPT1_ASSERT(sizeof(ppt1_header) == 592, "ABI 1");
PPT1_ASSERT(sizeof(ppt1_control) == PPT1_PAGE, "ABI 1");

#ifdef __cplusplus
extern "C" {
#endif

extern PPT1_WEAK const ppt1_descriptor PPT1_(descriptor);

PPT1_WEAK __attribute__((aligned(PPT1_PAGE))) ppt1_control PPT1_(control);

/* Shared-library code may be unloaded; that of an executable may not. */
#if defined(__PIC__) && !defined(__PIE__)
#define PPT1_UNLOADABLE 1
#else
#define PPT1_UNLOADABLE 0
#endif

/* This code can slow an interval down: slowdown.c. */
#define PPT1_SLOWS_DOWN 2

const ppt1_descriptor PPT1_(descriptor) __attribute__((used)) = {
    {0xb7, 'p', 'p', 't', 0xd1, 0x9e, 0x04, 0xc3, 0x5a, 0xf8, 0x21, 0x6d, 0x93, 0x0f, 0xe2, 0x7c},
    &PPT1_(descriptor),
    PPT1_ABI,
    sizeof(ppt1_descriptor),
    PPT1_SCHEMA_HASH,
    ppt1_schema,
    sizeof(ppt1_schema) - 1,
    &PPT1_(control),
    PPT1_STRIDE,
    PPT1_LOG2_SLOTS,
    PPT1_FRAMES,
    PPT1_UNLOADABLE | PPT1_SLOWS_DOWN,
    PPT1_CELLS,
    {0, 0, 0, 0, 0}};

static PPT1_THREAD ppt1_thread ppt1_this_thread = {
    PPT1_NULL, 0, PPT1_NO_GATE, PPT1_NULL, PPT1_NULL, PPT1_NULL, PPT1_NULL, PPT1_NULL,
    0,         0, 0,            0,         0,         0,         PPT1_NULL, PPT1_NULL,
    PPT1_NULL};

/* The key whose destructor gives a thread's ring back, plus 1; 0 while there is none. */
static uint64_t ppt1_exit_key;

static inline ppt1_thread *ppt1_self(void) {
    ppt1_thread *t = &ppt1_this_thread;
    __asm__("" : "+r"(t)); /* so that the compiler looks up the thread-local once */
    return t;
}

/* A signal handler sees no store of a frame before this one. */
static inline void ppt1_enter(ppt1_thread *t) {
    __atomic_store_n(&t->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void ppt1_leave(ppt1_thread *t) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&t->busy, 0, __ATOMIC_RELAXED);
}

static void ppt1_count(uint64_t *counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

/* The mapping of segment `nonce`, or 0. A forked child finds none, because a fork empties the
 * table. */
static unsigned char *ppt1_mapping(uint64_t nonce) {
    for (unsigned i = 0; i < 8; i++) {
        ppt1_mapped *entry = &PPT1_(control).segments[i];
        uint64_t base = __atomic_load_n(&entry->base, __ATOMIC_ACQUIRE);
        if (base == 0)
            break;
        uint64_t name = __atomic_load_n(&entry->nonce, __ATOMIC_ACQUIRE);
        if (name == 0) /* just mapped by another thread: ask the segment itself */
            name = PPT1_AT(const ppt1_header *, base)->nonce;
        if (name == nonce)
            return PPT1_AT(unsigned char *, base);
    }
    return PPT1_NULL;
}

/* Counts a refused frame. If it can, it counts in the segment, which outlives this process. */
static void ppt1_refuse(const ppt1_thread *t, unsigned word, uint64_t *unmapped) {
    uint64_t *process = t->process;
    if (process && ppt1_mapping(t->nonce))
        ppt1_count(process + word);
    else
        ppt1_count(unmapped);
}

/* Gives the thread's ring back. The thread forgets the ring first, so that a signal handler does
 * not write into it. */
static void ppt1_give_back(ppt1_thread *t) {
    uint64_t *ring = t->tail;
    t->gate = PPT1_NO_GATE;
    t->tail = PPT1_NULL;
    t->row = PPT1_NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (!ring || !ppt1_mapping(t->nonce))
        return;
    uint64_t active = ppt1_u32(t->epoch) << 32 | PPT1_ACTIVE;
    uint64_t unowned = ppt1_u32(t->epoch) << 32 | PPT1_FREE;
    if (__atomic_compare_exchange_n(ring + PPT1_RING_OWNER, &active, unowned, 0, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED))
        __atomic_fetch_add(t->process + PPT1_RELEASED, 1, __ATOMIC_RELEASE);
}

static int ppt1_copied(void);
static int ppt1_empty_on_fork(void);
static void ppt1_empty(void);

static void ppt1_thread_exit(void *thread) {
    ppt1_thread *t = PPT1_AT(ppt1_thread *, thread);
    if (ppt1_copied())
        return; /* a forked child has none of the mappings in the table */
    ppt1_enter(t);
    ppt1_give_back(t);
    ppt1_leave(t);
}

/* Makes the key once. Returns it plus 1, or 0 if there is none left. */
static uint64_t ppt1_make_key(void) {
    uint64_t word = __atomic_load_n(&ppt1_exit_key, __ATOMIC_ACQUIRE);
    pthread_key_t key;
    if (word != 0 || pthread_key_create(&key, ppt1_thread_exit) != 0)
        return word;
    if (__atomic_compare_exchange_n(&ppt1_exit_key, &word, ppt1_u32(key) + 1, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return ppt1_u32(key) + 1;
    pthread_key_delete(key);
    return word;
}

/* Lets ppt1_thread_exit run when this thread ends. If no key is left (a process may have 1,024),
 * the listener finds out that the thread has ended. */
static void ppt1_at_thread_exit(ppt1_thread *t) {
    uint64_t word = ppt1_make_key();
    if (word != 0)
        pthread_setspecific(PPT1_TO(pthread_key_t, word - 1), t);
}

/* The control page's description of the segment that a gate names. */
typedef struct ppt1_description {
    uint64_t nonce;
    uint32_t target_pid;
    ppt1_geometry geometry;
    ppt1_cells cells; /* all zero: the segment has no rows of cells */
} ppt1_description;

/* Whether `count` items of `bytes` each, from `start` on, lie in the segment, behind its header. */
static int ppt1_lies(const ppt1_geometry *g, uint64_t start, uint64_t count, uint64_t bytes) {
    return start % 8 == 0 && start >= PPT1_HEADER_LENGTH && start <= g->size &&
           count <= (g->size - start) / bytes;
}

/* Whether a segment with slots of our stride can be as described: all parts that we use lie inside,
 * and nothing comes after the slots, or the rows of cells, if there are any. */
static int ppt1_fits(const ppt1_description *d) {
    const ppt1_geometry *g = &d->geometry;
    const ppt1_cells *cells = &d->cells;
    uint64_t rings = g->rings, bytes = ppt1_u32(PPT1_STRIDE) << (g->log2_slots & 63);
    return g->stride == PPT1_STRIDE && g->log2_slots >= PPT1_MIN_LOG2_SLOTS &&
           g->log2_slots <= PPT1_MAX_LOG2_SLOTS && rings >= 1 && rings <= PPT1_MAX_RINGS &&
           g->ring_pitch >= PPT1_RING_WORDS * 8 && g->ring_pitch % 8 == 0 &&
           ppt1_lies(g, g->masks, 1, PPT1_PAGE) && ppt1_lies(g, g->process, 1, PPT1_PAGE) &&
           ppt1_lies(g, g->ring_headers, rings, g->ring_pitch) &&
           ppt1_lies(g, g->slots, rings, bytes) && g->size % PPT1_PAGE == 0 &&
           (cells->rows == 0
                ? g->size - (g->slots + rings * bytes) < PPT1_PAGE
                : cells->rows <= rings + 1 && cells->pitch / 8 + 1 > PPT1_CELLS &&
                      cells->pitch % 8 == 0 && cells->offset >= g->slots + rings * bytes &&
                      ppt1_lies(g, cells->offset, cells->rows, cells->pitch) &&
                      g->size - (cells->offset + ppt1_u32(cells->rows) * cells->pitch) <
                          PPT1_PAGE);
}

/* The entries of the header's table for the parts that we use. Returns their number. */
static unsigned ppt1_sections(const ppt1_description *d, ppt1_section *to) {
    const ppt1_geometry *g = &d->geometry;
    const ppt1_cells *cells = &d->cells;
    uint64_t rings = g->rings, pitch = g->ring_pitch, stride = g->stride;
    uint64_t rows = cells->rows, row = cells->pitch;
    const ppt1_section sections[PPT1_SECTIONS] = {
        {PPT1_MASKS + 1, 0, g->masks, PPT1_PAGE, PPT1_PAGE},
        {PPT1_PROCESS + 1, 0, g->process, PPT1_PAGE, PPT1_PAGE},
        {PPT1_RING_HEADERS + 1, 0, g->ring_headers, rings * pitch, pitch},
        {PPT1_SLOTS + 1, 0, g->slots, rings * (stride << g->log2_slots), stride},
        {PPT1_CELL_ROWS + 1, 0, cells->offset, rows * row, row}};
    unsigned count = rows ? PPT1_SECTIONS : PPT1_CELL_ROWS;
    memcpy(to, sections, count * sizeof(ppt1_section));
    return count;
}

/* Whether a header is that of the segment described, and agrees about its parts. */
static int ppt1_is(const ppt1_header *header, const ppt1_description *d) {
    const ppt1_geometry *g = &d->geometry;
    ppt1_section sections[PPT1_SECTIONS];
    unsigned count = ppt1_sections(d, sections);
    return header->magic == PPT1_SEGMENT_MAGIC && header->abi == PPT1_ABI &&
           header->nonce == d->nonce && header->schema_hash == PPT1_SCHEMA_HASH &&
           header->stride == g->stride && header->log2_slots == g->log2_slots &&
           header->rings == g->rings && header->ring_pitch == g->ring_pitch &&
           memcmp(header->sections, sections, count * sizeof(ppt1_section)) == 0;
}

/* Whether the mapping of that segment at `base` has the size that the control page states. */
static int ppt1_holds(unsigned char *base, const ppt1_description *d) {
    for (unsigned i = 0; i < 8; i++) {
        const ppt1_mapped *entry = &PPT1_(control).segments[i];
        if (__atomic_load_n(&entry->base, __ATOMIC_ACQUIRE) == PPT1_AT(uint64_t, base) &&
            __atomic_load_n(&entry->nonce, __ATOMIC_ACQUIRE) != 0)
            return __atomic_load_n(&entry->size, __ATOMIC_RELAXED) == d->geometry.size;
    }
    /* just mapped by another thread: ask the segment itself */
    return ppt1_is(PPT1_AT(const ppt1_header *, base), d);
}

/* Maps System V segment `id`. */
static void *ppt1_attach(int id, const ppt1_description *d) {
    void *base = PPT1_AT(void *, syscall(SYS_shmat, id, PPT1_NULL, 0));
    if (base == MAP_FAILED)
        return PPT1_NULL;
    if (!ppt1_is(PPT1_AT(const ppt1_header *, base), d)) {
        shmdt(base);
        errno = ESTALE; /* by now, the id names another segment */
        return PPT1_NULL;
    }
    madvise(base, d->geometry.size, MADV_DONTFORK);
    return base;
}

static void *ppt1_make(int *fd, const ppt1_description *d);

/* Maps the segment that `gate` names, or makes it, if `gate` says so. Every thread may try; the
 * first one to enter it in the table wins. On failure, returns 0 and sets errno. */
static unsigned char *ppt1_map(uint64_t gate, const ppt1_description *d) {
    const ppt1_geometry *geometry = &d->geometry;
    uint64_t nonce = d->nonce;
    int fd = -1;
    void *base = gate >> 31 & 1 ? ppt1_make(&fd, d)
                                : ppt1_attach(PPT1_TO(int, gate & 0x7fffffff), d);
    if (!base)
        return PPT1_NULL;
    unsigned char *other = PPT1_NULL;
    for (unsigned i = 0; i < 8 && !other; i++) {
        ppt1_mapped *entry = &PPT1_(control).segments[i];
        uint64_t taken = 0;
        if (__atomic_compare_exchange_n(&entry->base, &taken, PPT1_AT(uint64_t, base), 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            __atomic_store_n(&PPT1_(control).memfd[i], ppt1_i64(fd + 1), __ATOMIC_RELAXED);
            __atomic_store_n(&entry->size, geometry->size, __ATOMIC_RELAXED);
            __atomic_store_n(&entry->handle, gate, __ATOMIC_RELAXED);
            __atomic_store_n(&entry->nonce, nonce, __ATOMIC_RELEASE);
            return PPT1_AT(unsigned char *, base);
        }
        if (PPT1_AT(const ppt1_header *, taken)->nonce == nonce)
            other = PPT1_AT(unsigned char *, taken);
    }
    munmap(base, geometry->size); /* this also detaches System V memory */
    if (fd != -1)
        syscall(SYS_close, fd);
    errno = ENOSPC; /* the table is full, unless another thread has mapped it */
    return other;
}

/* The mapping of the segment that `gate` names, made now or before. Returns 0 and sets errno if
 * it cannot be mapped, or differs from what the control page states. */
static unsigned char *ppt1_base(uint64_t gate, const ppt1_description *d) {
    if (!ppt1_fits(d)) {
        errno = EPROTO; /* no system call here returns this */
        return PPT1_NULL;
    }
    unsigned char *base = ppt1_mapping(d->nonce);
    if (!base)
        base = ppt1_map(gate, d);
    if (!base) {
        int error = errno;
        base = ppt1_mapping(d->nonce); /* another thread may have mapped it meanwhile */
        errno = error;
    }
    if (!base || ppt1_holds(base, d))
        return base;
    errno = EPROTO;
    return PPT1_NULL;
}

/* Claims the lowest free ring. */
static int ppt1_claim(ppt1_thread *t, unsigned char *base, const ppt1_description *d) {
    const ppt1_geometry *geometry = &d->geometry;
    const ppt1_cells *cells = &d->cells;
    uint64_t tid = ppt1_i64(syscall(SYS_gettid));
    for (uint32_t r = 0; r < geometry->rings; r++) {
        uint64_t offset = geometry->ring_headers + ppt1_u32(r) * geometry->ring_pitch;
        uint64_t *ring = PPT1_AT(uint64_t *, base + offset);
        uint64_t owner = __atomic_load_n(ring + PPT1_RING_OWNER, __ATOMIC_RELAXED);
        uint32_t epoch = PPT1_TO(uint32_t, owner >> 32) + 1;
        if (PPT1_TO(uint32_t, owner) != PPT1_FREE ||
            !__atomic_compare_exchange_n(ring + PPT1_RING_OWNER, &owner,
                                         ppt1_u32(epoch) << 32 | PPT1_ACTIVE, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        uint64_t bytes = ppt1_u32(PPT1_STRIDE) << geometry->log2_slots;
        uint64_t next = __atomic_load_n(ring, __ATOMIC_RELAXED);
        uint64_t *history = ring + PPT1_RING_HISTORY + epoch % PPT1_OWNERS * PPT1_OWNER_WORDS;
        /* a reader of the entry also reads this epoch or a later one */
        __atomic_thread_fence(__ATOMIC_RELEASE);
        __atomic_store_n(history + PPT1_OWNER_FIRST_SEQ, next + 1, __ATOMIC_RELAXED);
        __atomic_store_n(history + PPT1_OWNER_CLAIM,
                         ppt1_u32(epoch) << 32 | (tid & 0xffffffff), __ATOMIC_RELEASE);
        t->first = PPT1_AT(uint64_t *, base + geometry->slots + r * bytes);
        t->end = t->first + bytes / 8;
        t->slot = t->first + (next & ((UINT64_C(1) << geometry->log2_slots) - 1)) * (PPT1_STRIDE / 8);
        t->next = next;
        /* Row 0 is shared. Rows may be fewer than rings. */
        uint64_t row = cells->offset + (ppt1_u32(r) + 1) * cells->pitch;
        t->row = ppt1_u32(r) + 1 < cells->rows ? PPT1_AT(uint64_t *, base + row) : PPT1_NULL;
        t->epoch = epoch;
        t->tail = ring;
        return 1;
    }
    return 0;
}

/* Copies the description of `gate`, which was read relaxed. Returns 0 if the gate has changed
 * since. An agent sets the gate to 0, then writes the description and the gate, each by one
 * system call. */
static int ppt1_described(uint64_t gate, ppt1_description *to) {
    ppt1_control *control = &PPT1_(control);
    ppt1_geometry *geometry = &to->geometry;
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* after this gate, no older description */
    to->nonce = __atomic_load_n(&control->nonce, __ATOMIC_RELAXED);
    to->target_pid = __atomic_load_n(&control->target_pid, __ATOMIC_RELAXED);
    geometry->size = __atomic_load_n(&control->geometry.size, __ATOMIC_RELAXED);
    geometry->stride = __atomic_load_n(&control->geometry.stride, __ATOMIC_RELAXED);
    geometry->log2_slots = __atomic_load_n(&control->geometry.log2_slots, __ATOMIC_RELAXED);
    geometry->rings = __atomic_load_n(&control->geometry.rings, __ATOMIC_RELAXED);
    geometry->ring_pitch = __atomic_load_n(&control->geometry.ring_pitch, __ATOMIC_RELAXED);
    geometry->masks = __atomic_load_n(&control->geometry.masks, __ATOMIC_RELAXED);
    geometry->process = __atomic_load_n(&control->geometry.process, __ATOMIC_RELAXED);
    geometry->ring_headers = __atomic_load_n(&control->geometry.ring_headers, __ATOMIC_RELAXED);
    geometry->slots = __atomic_load_n(&control->geometry.slots, __ATOMIC_RELAXED);
    /* Of an earlier agent, these words are of another segment. */
    ppt1_cells none = {0, 0, 0, 0};
    to->cells = none;
    if (__atomic_load_n(&control->cells.nonce, __ATOMIC_RELAXED) == to->nonce) {
        to->cells.offset = __atomic_load_n(&control->cells.offset, __ATOMIC_RELAXED);
        to->cells.pitch = __atomic_load_n(&control->cells.pitch, __ATOMIC_RELAXED);
        to->cells.rows = __atomic_load_n(&control->cells.rows, __ATOMIC_RELAXED);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* after the next one, another gate */
    return __atomic_load_n(&control->gate, __ATOMIC_RELAXED) == gate;
}

/* The result of ppt1_join. */
enum { PPT1_REFUSED, PPT1_UNMAPPED, PPT1_RINGLESS, PPT1_JOINED, PPT1_GATE_CHANGED };

/* Whether the thread's ring is still its own, and mapped. */
static int ppt1_still_owns(const ppt1_thread *t) {
    uint64_t owner = ppt1_u32(t->epoch) << 32 | PPT1_ACTIVE;
    return t->tail && ppt1_mapping(t->nonce) &&
           __atomic_load_n(t->tail + PPT1_RING_OWNER, __ATOMIC_RELAXED) == owner;
}

/* Whether that segment could not be mapped by that gate. */
static int ppt1_has_failed(uint64_t gate, uint64_t nonce) {
    ppt1_control *control = &PPT1_(control);
    return gate == __atomic_load_n(&control->failed_gate, __ATOMIC_ACQUIRE) &&
           nonce == __atomic_load_n(&control->failed_nonce, __ATOMIC_RELAXED);
}

/* The mapping of the segment that is described. If it cannot be mapped, says so, and returns 0. */
static unsigned char *ppt1_reach(uint64_t gate, const ppt1_description *d) {
    ppt1_control *control = &PPT1_(control);
    unsigned char *base = ppt1_base(gate, d);
    if (base)
        return base;
    __atomic_store_n(&control->error, gate >> 32 << 32 | PPT1_TO(uint32_t, errno),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&control->failed_nonce, d->nonce, __ATOMIC_RELAXED);
    __atomic_store_n(&control->failed_gate, gate, __ATOMIC_RELEASE);
    return PPT1_NULL;
}

/* The gate has another value than the thread knows. Finds a ring for the thread, once for each
 * value of the gate. The order of the checks matters: those that may run for every frame make no
 * system call. */
static int ppt1_join(ppt1_thread *t, uint64_t gate) {
    ppt1_control *control = &PPT1_(control);
    __asm__ volatile("" : : "r"(&PPT1_(descriptor))); /* so that linkers keep it */
    if (gate == 0)
        return PPT1_REFUSED;
    if (PPT1_TO(uint32_t, gate) == PPT1_MOVING) /* for a moment: until then, where we were */
        return ppt1_still_owns(t) ? PPT1_JOINED : PPT1_GATE_CHANGED;
    ppt1_description description;
    if (!ppt1_described(gate, &description))
        return PPT1_GATE_CHANGED;
    uint64_t nonce = description.nonce;
    if (ppt1_has_failed(gate, nonce))
        return PPT1_UNMAPPED;
    if (gate == t->refused_gate && nonce == t->refused_nonce &&
        t->refused_released == __atomic_load_n(t->process + PPT1_RELEASED, __ATOMIC_ACQUIRE))
        return PPT1_RINGLESS;
    if (description.target_pid != ppt1_u32(PPT1_TO(uint32_t, syscall(SYS_getpid)))) {
        /* This remembers nothing, because a child of vfork(2) uses its parent's thread-locals. */
        if (ppt1_copied())
            ppt1_empty();
        return PPT1_REFUSED;
    }
    ppt1_empty_on_fork(); /* this frame may come from an earlier constructor */

    unsigned char *base = ppt1_reach(gate, &description);
    if (!base)
        return PPT1_UNMAPPED;

    if (t->nonce == nonce && ppt1_still_owns(t)) {
        t->gate = gate; /* the same segment again, and the thread still owns its ring */
        return PPT1_JOINED;
    }
    ppt1_give_back(t);
    uint64_t *process = PPT1_AT(uint64_t *, base + description.geometry.process);
    t->process = process;
    t->shared = description.cells.rows ? PPT1_AT(uint64_t *, base + description.cells.offset)
                                       : PPT1_NULL;
    t->nonce = nonce;
    int claimed = ppt1_claim(t, base, &description);
    uint64_t released = 0;
    if (!claimed) { /* a ring that is released after the second try changes this number */
        released = __atomic_load_n(process + PPT1_RELEASED, __ATOMIC_ACQUIRE);
        claimed = ppt1_claim(t, base, &description);
    }
    if (!claimed) {
        t->refused_released = released;
        t->refused_nonce = nonce;
        t->refused_gate = gate;
        return PPT1_RINGLESS;
    }
    ppt1_at_thread_exit(t);
    if (__atomic_load_n(&control->gate, __ATOMIC_RELAXED) != gate) {
        ppt1_give_back(t);
        return PPT1_GATE_CHANGED;
    }
    t->enable = PPT1_AT(const uint64_t *, base + description.geometry.masks);
    t->gate = gate;
    return PPT1_JOINED;
}

static int ppt1_find(ppt1_thread *t, uint64_t gate) {
    int saved = errno;
    int found = ppt1_join(t, gate);
    for (int tries = 0; found == PPT1_GATE_CHANGED && tries < 4; tries++) {
        gate = __atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED);
        found = ppt1_join(t, gate);
    }
    errno = saved;
    return found;
}

/* Whether a frame can be written. If not, counts it. */
static int ppt1_slow(ppt1_thread *t, uint64_t gate) {
    int found = ppt1_find(t, gate);
    if (found == PPT1_RINGLESS)
        ppt1_refuse(t, PPT1_NO_RING, &PPT1_(control).no_ring);
    else if (found == PPT1_UNMAPPED || found == PPT1_GATE_CHANGED)
        ppt1_count(&PPT1_(control).not_mapped);
    return found == PPT1_JOINED;
}

static ppt1_thread *ppt1_begin_masked(ppt1_thread *t, unsigned frame);
static void ppt1_end_at_edge(ppt1_thread *t);

static inline ppt1_thread *ppt1_if_enabled(ppt1_thread *t, unsigned frame) {
    if (PPT1_FRAMES == 1)
        frame = 0; /* known to the compiler */
    unsigned word = PPT1_FRAMES > 64 ? frame / 64 : 0;
    uint64_t enabled = __atomic_load_n(t->enable + word, __ATOMIC_RELAXED);
    if (__builtin_expect((enabled >> frame % 64 & 1) == 0, 0))
        return ppt1_begin_masked(t, frame);
    /* A reader that sees a word of this frame also sees the cursor before it. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return t;
}

static __attribute__((noinline, cold)) ppt1_thread *ppt1_begin_slow(ppt1_thread *t, uint64_t gate,
                                                                    unsigned frame) {
    if (ppt1_slow(t, gate))
        return ppt1_if_enabled(t, frame);
    ppt1_leave(t);
    return PPT1_NULL;
}

static __attribute__((noinline, cold)) ppt1_thread *ppt1_begin_nested(const ppt1_thread *t) {
    ppt1_refuse(t, PPT1_NESTED, &PPT1_(control).nested);
    ppt1_thread *none = PPT1_NULL;
    /* If clang knew its value, it would make no tail call, and begin would need a stack frame. */
    __asm__("" : "+r"(none));
    return none;
}

PPT1_WEAK ppt1_thread *PPT1_(begin)(unsigned frame) {
    ppt1_thread *t = ppt1_self();
    if (__builtin_expect(__atomic_load_n(&t->busy, __ATOMIC_RELAXED) != 0, 0))
        return ppt1_begin_nested(t);
    ppt1_enter(t);
    uint64_t gate = __atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED);
    if (__builtin_expect(gate != t->gate, 0))
        return ppt1_begin_slow(t, gate, frame);
    return ppt1_if_enabled(t, frame);
}

/* Publishes the frame in the thread's slot; the next one goes to `slot`. */
static inline void ppt1_publish(ppt1_thread *t, uint64_t *slot) {
    uint64_t seq = t->next + 1;
    __atomic_store_n(t->slot, seq, __ATOMIC_RELAXED);
    __atomic_store_n(t->tail, seq, __ATOMIC_RELEASE);
    t->next = seq;
    t->slot = slot;
    ppt1_leave(t);
}

PPT1_WEAK void PPT1_(end)(ppt1_thread *t) {
    uint64_t *slot = t->slot + PPT1_STRIDE / 8;
    if (__builtin_expect(slot == t->end, 0))
        ppt1_end_at_edge(t);
    else
        ppt1_publish(t, slot);
}

/* This is the same for every schema. Kernels without Yama refuse it and do not need it. */
PPT1_WEAK void ppt1_allow_attach(void) {
    int saved = errno;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    errno = saved;
}

PPT1_WEAK void PPT1_(prepare)(void) {
    ppt1_thread *t = ppt1_self();
    if (__atomic_load_n(&t->busy, __ATOMIC_RELAXED) != 0)
        return;
    ppt1_enter(t);
    uint64_t gate = __atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED);
    if (gate != 0 && (gate == t->gate || ppt1_find(t, gate) == PPT1_JOINED)) {
        int saved = errno;
        uint64_t start = PPT1_AT(uint64_t, t->first) / PPT1_PAGE * PPT1_PAGE;
        /* The kernel rounds the end up to its own pages. Rounding up to ours could reach other
         * memory. */
        madvise(PPT1_AT(void *, start), PPT1_AT(uint64_t, t->end) - start, MADV_POPULATE_WRITE);
        errno = saved;
    }
    ppt1_leave(t);
}

/* The clock that a time field names, by its number in clock_gettime(2). */
PPT1_WEAK struct timespec PPT1_(clock)(int clock) {
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return now;
}

/* The stamp if ticks cannot be trusted: the monotonic clock, with a bit that tells it from ticks
 * and makes it other than 0. */
PPT1_WEAK __attribute__((cold)) uint64_t PPT1_(stamp)(void) {
    struct timespec now = PPT1_(clock)(CLOCK_MONOTONIC);
    uint64_t seconds = ppt1_i64(now.tv_sec);
    return PPT1_STAMP_IS_MONOTONIC | (seconds * 1000000000 + ppt1_i64(now.tv_nsec));
}

#if PPT1_UNLOADABLE
#define PPT1_QUOTED(name) #name
#define PPT1_TEXT(name) PPT1_QUOTED(name)

/* This object's own descriptor, whether or not the program uses another object's. */
extern const ppt1_descriptor PPT1_(own)
    __attribute__((weak, alias(PPT1_TEXT(PPT1_(descriptor))), visibility("hidden")));

/* Whether the program uses this object's functions, not those of the same names in another
 * object. */
static int ppt1_used(void) {
    const ppt1_descriptor *own = &PPT1_(own), *used = &PPT1_(descriptor);
    __asm__("" : "+r"(own), "+r"(used)); /* the linker may resolve them differently */
    return own == used;
}

static void ppt1_dismiss_witness(void);

/* Runs before the code is unloaded: closes the gate, and removes the destructor of threads. The
 * mappings stay. */
static __attribute__((destructor)) void ppt1_unload(void) {
    if (!ppt1_used())
        return;
    __atomic_store_n(&PPT1_(control).gate, 0, __ATOMIC_RELAXED);
    ppt1_dismiss_witness();
    uint64_t word = __atomic_exchange_n(&ppt1_exit_key, 0, __ATOMIC_ACQ_REL);
    if (word != 0)
        pthread_key_delete(PPT1_TO(pthread_key_t, word - 1));
}
#else
static int ppt1_used(void) { return 1; }
#endif

#ifdef __cplusplus
}
#endif
