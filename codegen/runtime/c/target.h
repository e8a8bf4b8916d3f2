/* ---- ppt, ABI 1: the part that is the same in every header -------------------------------- */
#ifndef PPT1_TARGET_H
#define PPT1_TARGET_H

/* With -DPPT_DISABLE, and on systems without ppt, everything compiles to nothing. */
#if !defined(PPT_DISABLE) && defined(__linux__) && defined(__LP64__) && defined(__GNUC__) && \
    (defined(__x86_64__) || (defined(__aarch64__) && !defined(__AARCH64EB__)))
#define PPT1_ENABLED 1
#else
#define PPT1_ENABLED 0
#endif

/* Casts and null pointers that no C or C++ compiler warns about. */
#ifdef __cplusplus
#define PPT1_ZERO(type) type()
#define PPT1_ASSERT(condition, text) static_assert(condition, text)
#define PPT1_TO(type, number) static_cast<type>(number)
#define PPT1_AT(type, pointer) reinterpret_cast<type>(pointer)
#define PPT1_NULL nullptr
#else
#define PPT1_ZERO(type) {0}
#define PPT1_ASSERT(condition, text) _Static_assert(condition, text)
#define PPT1_TO(type, number) ((type)(number))
#define PPT1_AT(type, pointer) ((type)(pointer))
#define PPT1_NULL 0
#endif

/* PPT_ADDR(pointer) is the value of a field of type addr: the address of a function, of other code, or
 * an integer that is one. */
#define PPT_ADDR(pointer) ppt1_addr(pointer)
#ifdef __cplusplus
extern "C++" {
template <typename T> inline uint64_t ppt1_addr(T *pointer) {
    return reinterpret_cast<uintptr_t>(pointer);
}
inline uint64_t ppt1_addr(uint64_t address) {
    return address;
}
}
#else
#define ppt1_addr(pointer) ((uint64_t)(uintptr_t)(pointer))
#endif

/* A block of PPT_WRITE_…() { } is a loop of one round. So `continue` in it ends the block: the frame
 * is written, and the surrounding loop continues behind the block. C has no other form for this, and
 * no compiler warns about it. With -DPPT_CHECK_BLOCKS, compilers warn about each `continue` in a
 * block, also in loops inside the block. */
#ifdef PPT_CHECK_BLOCKS
enum { ppt1_continue };
#define PPT1_BLOCK                                                                                 \
    for (int ppt1_continue __attribute__((unused,                                                  \
             deprecated("`continue` ends the block and writes its frame: `break` abandons it")))   \
             = 0, ppt1_once = 1; ppt1_once; ppt1_once = 0)
#define continue switch (ppt1_continue) default: continue
#else
#define PPT1_BLOCK
#endif

#if PPT1_ENABLED

#ifdef __aarch64__
#define PPT1_PAGE 65536 /* the largest page that the architecture may use */
#else
#define PPT1_PAGE 4096
#endif

#ifdef PPT_TLS_MODEL
#define PPT1_THREAD __attribute__((tls_model(PPT_TLS_MODEL))) __thread
#else
#define PPT1_THREAD __thread
#endif

/* The offsets of the parts of a segment, in bytes from its start. */
typedef struct ppt1_geometry {
    uint64_t size;
    uint32_t stride, log2_slots, rings, ring_pitch;
    uint64_t masks, process, ring_headers, slots;
} ppt1_geometry;

/* Where the rows of cells of a segment are: of segment `nonce`, and of no other. */
typedef struct ppt1_cells {
    uint64_t nonce, offset;
    uint32_t pitch, rows;
} ppt1_cells;

/* What the session with this claim does not want: a bit for each frame, then one for each counter or
 * histogram. */
typedef struct ppt1_disabled {
    uint64_t nonce, bits[8];
} ppt1_disabled;

/* A segment that this process has mapped; never unmapped. */
typedef struct ppt1_mapped {
    uint64_t base, handle, nonce, size;
} ppt1_mapped;

/* The mailbox between this process and `ppt attach`: zero at start, alone in its page. */
typedef struct ppt1_control {
    /* written by the agent */
    uint64_t gate; /* generation << 32 | kind << 31 | segment id; 0 is off */
    uint64_t nonce;
    ppt1_geometry geometry;
    uint32_t clock_kind, target_pid;
    uint64_t claim[4], generation;
    uint64_t follow_socket, follow_claim; /* where forked children report, and its claim */
    ppt1_cells cells;
    ppt1_disabled disabled;
    uint64_t detach; /* the claim whose session is to end: for the agent alone */
    uint64_t tick_scale; /* nanoseconds in a tick, times 2^32; 0: no agent has said it */
    uint64_t agent_reserved[1];
    /* written by the target, never on the hot path */
    uint64_t error, failed_gate, failed_nonce;
    uint64_t no_ring, nested, not_mapped;
    uint64_t adds_not_mapped;
    uint64_t target_reserved[25];
    ppt1_mapped segments[8];
    uint64_t memfd[8]; /* the descriptor of each that this process made, plus 1 */
    unsigned char rest[PPT1_PAGE - 832];
} ppt1_control;

/* A thread's place in its ring. */
typedef struct ppt1_thread {
    uint64_t *slot;         /* where the next frame goes */
    uint64_t next;          /* its index: one less than its sequence number */
    uint64_t gate;          /* the gate's value when the ring was claimed */
    const uint64_t *enable; /* one bit per kind of frame */
    uint64_t *tail;         /* the ring's cursor, the first word of its header; 0: no ring */
    uint64_t *first, *end;  /* the ring's slots */
    uint64_t *process;      /* the segment's counters of refused frames */
    uint64_t nonce;         /* the segment; what it maps is ours only while the table lists it */
    uint64_t refused_gate, refused_nonce, refused_released;
    uint32_t epoch; /* the claim, by its number in the ring */
    uint32_t busy;  /* a frame is being written, or a cell: a signal handler's frame is refused, and
                     * what it adds goes to the shared row */
    uint64_t *row;  /* the cells that only this thread adds to; 0: there are none */
    uint64_t *shared; /* those that all add to, of the segment `nonce`; 0: there are none */
    uint64_t *edge;   /* the end of the ring's slots, while `end` is that of a slowed frame; else 0 */
} ppt1_thread;

/* The word of a claim that names the session. */
#define PPT1_CLAIM_NONCE 3

/* Whether somebody is attached who wants the frame, counter or histogram with this bit: where nobody
 * is, one load and one branch. */
static inline __attribute__((always_inline)) int ppt1_on(const ppt1_control *control, unsigned bit) {
    if (__builtin_expect(__atomic_load_n(&control->gate, __ATOMIC_RELAXED) == 0, 1))
        return 0;
    uint64_t disabled = __atomic_load_n(&control->disabled.bits[bit / 64], __ATOMIC_RELAXED);
    return __builtin_expect((disabled >> bit % 64 & 1) == 0, 1) ||
           __atomic_load_n(&control->disabled.nonce, __ATOMIC_RELAXED) !=
               __atomic_load_n(&control->claim[PPT1_CLAIM_NONCE], __ATOMIC_RELAXED);
}

/* Cells of a histogram: values below its buckets, and the first bucket. Cell 0 is the sum. */
#define PPT1_BELOW 1U
#define PPT1_BUCKETS 2U

/* The value of `clock_kind` if stamps of `option time tsc` are ticks. */
#define PPT1_CLOCK_TICKS 1

/* Reads the CPU's counter without a fence; nothing else reads it. For tests, -DPPT_TICKS=f uses f()
 * instead. */
static inline uint64_t ppt1_ticks(void) {
#ifdef PPT_TICKS
    return PPT_TICKS();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return __builtin_ia32_rdtsc();
#endif
}

/* Nanoseconds from stamp to stamp of `option time tsc`; see ppt_…_ns_between. */
static inline int64_t ppt1_ns_between(uint64_t tick_scale, uint64_t start, uint64_t end) {
    if (start == 0 || end == 0 || (start ^ end) >> 63 != 0)
        return -1;
    int64_t length = PPT1_TO(int64_t, end - start);
    if (end >> 63 != 0)
        return length; /* of the monotonic clock */
    if (tick_scale == 0)
        return -1;
    __extension__ typedef __int128 wide;
    return PPT1_TO(int64_t, (PPT1_TO(wide, length) * PPT1_TO(wide, tick_scale)) >> 32);
}

static inline void ppt1_put(uint64_t *slot, uint64_t word) {
    __atomic_store_n(slot, word, __ATOMIC_RELAXED);
}

static inline uint64_t ppt1_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t ppt1_f64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Converts integers by the unsigned type of their width, so that no sign reaches other values in the
 * word. */
static inline uint64_t ppt1_i8(int8_t value) { return PPT1_TO(uint8_t, value); }
static inline uint64_t ppt1_i16(int16_t value) { return PPT1_TO(uint16_t, value); }
static inline uint64_t ppt1_i32(int32_t value) { return PPT1_TO(uint32_t, value); }
static inline uint64_t ppt1_i64(int64_t value) { return PPT1_TO(uint64_t, value); }
static inline uint64_t ppt1_u8(uint8_t value) { return value; }
static inline uint64_t ppt1_u16(uint16_t value) { return value; }
static inline uint64_t ppt1_u32(uint32_t value) { return value; }

/* The cell of a histogram, from its first one on, that counts a value: by powers of two, each in 16
 * buckets, or by buckets that divide a range. */
static inline unsigned ppt1_exponential(int64_t value) {
    if (value < 0)
        return PPT1_BELOW;
    uint64_t magnitude = PPT1_TO(uint64_t, value);
    unsigned shift = PPT1_TO(unsigned, 59 - __builtin_clzll(magnitude | 16));
    return PPT1_BUCKETS + (shift << 4) + PPT1_TO(unsigned, magnitude >> shift);
}
static inline unsigned ppt1_linear(uint32_t value, uint64_t from, uint64_t to, unsigned buckets) {
    if (value < from)
        return PPT1_BELOW;
    if (value >= to)
        return PPT1_BUCKETS + buckets;
    return PPT1_BUCKETS + PPT1_TO(unsigned, (value - from) * buckets / (to - from));
}

/* Up to 8 bytes of an array, from byte `at` on. */
static inline uint64_t ppt1_bytes(const void *from, unsigned at, unsigned count) {
    uint64_t word = 0;
    memcpy(&word, PPT1_AT(const char *, from) + at, count);
    return word;
}

/* At most `size` bytes of a string, padded with zeros. */
static inline void ppt1_text(char *to, const char *from, unsigned size) {
    unsigned i = 0;
    for (; i < size && from[i] != 0; i++)
        to[i] = from[i];
    for (; i < size; i++)
        to[i] = 0;
}

#ifdef __cplusplus
extern "C"
#endif
    void ppt1_allow_attach(void);

/* Allows every process of this user to attach, and to debug, until this process ends, even if Yama
 * (kernel.yama.ptrace_scope = 1) allows only ancestors. Without Yama it changes nothing. */
static inline void ppt_allow_attach(void) {
    ppt1_allow_attach();
}

#else

static inline void ppt_allow_attach(void) {
}

#endif /* PPT1_ENABLED */
#endif /* PPT1_TARGET_H */

/* PPT_TEXT(f.name, string) sets a field of type char[N]: cut to N bytes, or padded with zeros. */
#ifndef PPT_TEXT
#ifdef __cplusplus
#define PPT1_IS_TEXT(to) 0
#else
/* A pointer has no size of its own to cut to: its declaration as an array fails. */
#define PPT1_IS_TEXT(to)                                                                           \
    (0 * sizeof(char[__builtin_types_compatible_p(__typeof__(to), char *) ? -1 : 1]))
#endif
#define PPT_TEXT(to, from) ppt1_set_text(to, sizeof(to) + PPT1_IS_TEXT(to), from)
static inline void ppt1_set_text(char *to, uint64_t size, const char *from) {
    uint64_t i = 0;
    for (; from && i < size && from[i] != 0; i++)
        to[i] = from[i];
    for (; i < size; i++)
        to[i] = 0;
}
#endif
