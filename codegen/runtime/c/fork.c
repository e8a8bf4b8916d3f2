/* ---- ppt, ABI 1: processes that fork --------------------------------------------------------
 *
 * A forked child is off from its first instruction on, because a fork empties the control page. If
 * the kernel does not do that (before Linux 4.14, or in a sandbox), a fork handler does. A child
 * that runs no fork handlers (by clone(2) alone) finds out at its first frame. A child that shares
 * its parent's memory (by vfork(2)) leaves the page alone, because it is the parent's.
 *
 * If a ppt follows the parent's forks, a child says hello to it. If the child waits until ppt has
 * attached, it maps its segment at once.
 */
#ifdef __cplusplus
extern "C" {
#endif

/* Keys whose values need no allocation (glibc). */
#define PPT1_FIRST_KEYS 32

/* A fork empties the control page. */
static int ppt1_emptied;
/* If not: a page that a fork does not copy. A process that has it shares the parent's memory. */
static void *ppt1_witness;
/* Left to forked children: the socket of the ppt that follows this process, or 0. If it is odd,
 * the children wait until ppt has attached. */
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

/* Whether a fork has copied the control page from another process. */
static int ppt1_copied(void) {
    unsigned char there;
    return !__atomic_load_n(&ppt1_emptied, __ATOMIC_RELAXED) && ppt1_witness &&
           mincore(ppt1_witness, 1, &there) != 0 && errno == ENOMEM;
}

/* Empties a copied control page. It closes the gate first, after which no thread begins a frame. */
static void ppt1_empty(void) {
    ppt1_control *control = &PPT1_(control);
    __atomic_store_n(&control->gate, 0, __ATOMIC_RELAXED);
    memset(control, 0, __builtin_offsetof(ppt1_control, rest));
    ppt1_call_witness();
}

/* The socket of the ppt that follows this process. An agent writes its claim, the socket, and
 * follow_claim, each by one system call. If they are of an earlier agent, the claims differ. */
static uint64_t ppt1_followed_by(void) {
    ppt1_control *control = &PPT1_(control);
    uint64_t claim = __atomic_load_n(&control->follow_claim, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* after this claim, we read no older socket */
    uint64_t socket = __atomic_load_n(&control->follow_socket, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* after the next socket, we read the next claim */
    uint64_t holder = __atomic_load_n(&control->claim[3], __ATOMIC_RELAXED);
    return claim != 0 && claim == holder ? socket : 0;
}

static void ppt1_before_fork(void) {
    ppt1_control *control = &PPT1_(control);
    /* If ppt never attached, the socket that the parent left stays. It stays, too, while ppt attaches:
     * its claim is there, and its socket is not. */
    if (__atomic_load_n(&control->generation, __ATOMIC_RELAXED) == 0)
        return;
    uint64_t socket = ppt1_followed_by();
    if (socket != 0 || __atomic_load_n(&control->claim[3], __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&ppt1_follower, socket, __ATOMIC_RELAXED);
}

/* Maps a segment right after ppt has attached, before the program's own code can install a
 * filter: later, the filter might end the program at its first frame. In a program with one of
 * its first keys, this neither allocates nor locks, so the thread gets its ring, too. If it
 * fails, the first frame tries again, and reports the failure. Returns whether this process has
 * just made the segment itself. */
static int ppt1_map_early(void) {
    uint64_t gate = __atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED);
    ppt1_description description;
    if (gate == 0 || PPT1_TO(uint32_t, gate) == PPT1_MOVING || !ppt1_used() || !ppt1_described(gate, &description) ||
        description.target_pid != ppt1_u32(PPT1_TO(uint32_t, syscall(SYS_getpid))) ||
        ppt1_mapping(description.nonce) ||
        !ppt1_base(gate, &description))
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
    /* If the gate is open, we say hello, too: ppt may have found us before we ran, and would report
     * that we were late. */
    if (follower != 0 && !ppt1_greet(follower, follower & 1))
        __atomic_store_n(&ppt1_follower, 0, __ATOMIC_RELAXED);
    /* ppt fetches the new segment while we wait, because the program may close all descriptors
     * later. */
    if (follower & 1 && ppt1_map_early())
        ppt1_greet(follower, 1);
    errno = saved;
}

/* Runs when the code is loaded: registering a fork handler may allocate, which a frame must not. */
static void ppt1_protect(void) {
    if (!ppt1_empty_on_fork())
        ppt1_call_witness();
    pthread_atfork(ppt1_before_fork, PPT1_NULL, ppt1_in_child);
}

#ifdef __cplusplus
}
#endif
