/* ---- ppt, ABI 1: processes that fork --------------------------------------------------------
 *
 * A child is off from its first instruction on: a fork empties the control page. Where the kernel
 * does not do that (before Linux 4.14, or in a sandbox), a fork handler does, and what forks
 * without handlers, by clone(2) alone, finds out at its first frame. What shares our memory, as
 * a child of vfork(2) does, leaves the page alone: it is its parent's.
 */

/* A fork empties the control page. */
static int ppt1_emptied;
/* Where it does not: a page that a fork leaves out. Who has it shares our memory. */
static void *ppt1_witness;

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

/* When loaded. */
static void ppt1_protect(void) {
    if (ppt1_empty_on_fork())
        return;
    ppt1_call_witness();
    pthread_atfork(PPT1_NULL, PPT1_NULL, ppt1_empty);
}
