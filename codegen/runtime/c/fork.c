/* ---- ppt, ABI 1: processes that fork --------------------------------------------------------
 *
 * A child is off from its first instruction on: a fork empties the control page. Where the kernel
 * does not do that (before Linux 4.14, or in a sandbox), a fork handler does, and what forks
 * without handlers, by clone(2) alone, finds out at its first frame. What shares our memory, as
 * a child of vfork(2) does, leaves the page alone: it is its parent's.
 *
 * Where a ppt follows its parent's forks, a child tells it that it is there. If it waits until it
 * has been attached to, it maps its segment at once.
 */
#ifdef __cplusplus
extern "C" {
#endif

/* Keys whose values need no allocation (glibc). */
#define PPT1_FIRST_KEYS 32

/* A fork empties the control page. */
static int ppt1_emptied;
/* Where it does not: a page that a fork leaves out. Who has it shares our memory. */
static void *ppt1_witness;
/* What a process leaves to its children: the socket of the ppt that follows it, or 0; odd, if they
 * are to wait until they have been attached to. */
static uint64_t ppt1_follower;

static int ppt1_empty_on_fork(void) {
    if (__atomic_load_n(&ppt1_emptied, __ATOMIC_RELAXED))
        return 1;
    if (madvise(&PPT1_(control), PPT1_PAGE, MADV_WIPEONFORK) != 0)
        return 0;
    __atomic_store_n(&ppt1_emptied, 1, __ATOMIC_RELAXED);
    return 1;
}

static void ppt1_call_witness(void) {
    void *page = mmap(PPT1_NULL, PPT1_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int marked = page != MAP_FAILED && madvise(page, PPT1_PAGE, MADV_DONTFORK) == 0;
    ppt1_witness = marked ? page : PPT1_NULL;
}

#if PPT1_UNLOADABLE
static void ppt1_dismiss_witness(void) {
    if (ppt1_witness)
        munmap(ppt1_witness, PPT1_PAGE);
}
#endif

/* Whether the control page is a copy of another process's, made by a fork. */
static int ppt1_copied(void) {
    unsigned char there;
    return !__atomic_load_n(&ppt1_emptied, __ATOMIC_RELAXED) && ppt1_witness &&
           mincore(ppt1_witness, 1, &there) != 0 && errno == ENOMEM;
}

/* Makes of a copy what a fork should have. The gate first: nobody begins a frame after that. */
static void ppt1_empty(void) {
    ppt1_control *control = &PPT1_(control);
    __atomic_store_n(&control->gate, 0, __ATOMIC_RELAXED);
    memset(control, 0, __builtin_offsetof(ppt1_control, rest));
    ppt1_call_witness();
}

/* Who follows this process. An agent writes its claim, the socket, and follow_claim, by a system call
 * each; what an earlier one left is of another claim. */
static uint64_t ppt1_followed_by(void) {
    ppt1_control *control = &PPT1_(control);
    uint64_t claim = __atomic_load_n(&control->follow_claim, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* who saw this claim sees the socket before it */
    uint64_t socket = __atomic_load_n(&control->follow_socket, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* who saw the next socket sees the next claim */
    uint64_t holder = __atomic_load_n(&control->claim[3], __ATOMIC_RELAXED);
    return claim != 0 && claim == holder ? socket : 0;
}

static void ppt1_before_fork(void) {
    /* Who was never attached to leaves what was left to it. */
    if (__atomic_load_n(&PPT1_(control).generation, __ATOMIC_RELAXED) != 0)
        __atomic_store_n(&ppt1_follower, ppt1_followed_by(), __ATOMIC_RELAXED);
}

/* Maps what has just been attached, before the program's own code has its system calls filtered:
 * after that, its first frame might end it. Where that neither allocates nor locks, in a program
 * with one of its first keys, this thread gets its ring, too. What fails here, the first frame
 * tries again, and tells. Whether this process has made the segment itself, just now. */
static int ppt1_map_early(void) {
    uint64_t gate = __atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED);
    ppt1_description description;
    if (gate == 0 || !ppt1_used() || !ppt1_described(gate, &description) ||
        description.target_pid != ppt1_u32(PPT1_TO(uint32_t, syscall(SYS_getpid))) ||
        ppt1_mapping(description.nonce) ||
        !ppt1_base(gate, description.nonce, &description.geometry))
        return 0;
    uint64_t key = __atomic_load_n(&ppt1_exit_key, __ATOMIC_ACQUIRE);
    if (!PPT1_UNLOADABLE && key >= 1 && key <= PPT1_FIRST_KEYS) {
        ppt1_thread *t = ppt1_self();
        if (__atomic_load_n(&t->busy, __ATOMIC_RELAXED) == 0) {
            ppt1_enter(t);
            if (gate != t->gate)
                ppt1_find(t, gate);
            ppt1_leave(t);
        }
    }
    return gate >> 31 & 1;
}

static int ppt1_greet(uint64_t name, int waits);

static void ppt1_in_child(void) {
    int saved = errno;
    if (!__atomic_load_n(&ppt1_emptied, __ATOMIC_RELAXED))
        ppt1_empty();
    uint64_t follower = __atomic_load_n(&ppt1_follower, __ATOMIC_RELAXED);
    /* Where the gate is open, another buffer's hello was enough. */
    if (follower != 0 && __atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED) == 0 &&
        !ppt1_greet(follower, follower & 1))
        __atomic_store_n(&ppt1_follower, 0, __ATOMIC_RELAXED);
    /* What we have made is fetched while we wait: the program may close every descriptor. */
    if (follower & 1 && ppt1_map_early())
        ppt1_greet(follower, 1);
    errno = saved;
}

/* When loaded: later, a fork handler could not be registered, for that may allocate. */
static void ppt1_protect(void) {
    if (!ppt1_empty_on_fork())
        ppt1_call_witness();
    pthread_atfork(ppt1_before_fork, PPT1_NULL, ppt1_in_child);
}

#ifdef __cplusplus
}
#endif
