/* ---- ppt, ABI 1: a segment that this process makes ------------------------------------------
 *
 * The program makes its segment itself if it cannot attach an agent's: in another IPC namespace,
 * or if a filter refuses shmat(2). The agent fetches it by its descriptor (pidfd_getfd(2)), which
 * stays open for the next agent.
 */
#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1U
#define MFD_ALLOW_SEALING 2U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#endif

/* A memfd with a high number. Programs close 0, 1 and 2 to open other files in their place, and
 * select(2) needs low numbers. */
static int ppt1_memfd(void) {
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = PPT1_TO(int, syscall(SYS_memfd_create, "ppt", flags | MFD_NOEXEC_SEAL));
    if (fd == -1 && errno == EINVAL) /* Linux before 6.3 */
        fd = PPT1_TO(int, syscall(SYS_memfd_create, "ppt", flags));
    if (fd == -1)
        return -1;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 256);
    if (high == -1)
        high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    syscall(SYS_close, fd); /* close(2) may cancel the thread */
    errno = error;
    return high;
}

/* Fills a segment of our own, as an agent fills those that it makes. */
static void ppt1_initialise(void *base, const ppt1_description *d) {
    const ppt1_geometry *geometry = &d->geometry;
    ppt1_header *header = PPT1_AT(ppt1_header *, base);
    struct timespec mono = {0, 0}, real = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &mono);
    clock_gettime(CLOCK_REALTIME, &real);
    header->magic = PPT1_SEGMENT_MAGIC;
    header->abi = PPT1_ABI;
    header->length = PPT1_HEADER_LENGTH;
    header->nonce = d->nonce;
    header->margin = PPT1_MARGIN;
    header->schema_hash = PPT1_SCHEMA_HASH;
    header->stride = geometry->stride;
    header->log2_slots = geometry->log2_slots;
    header->rings = geometry->rings;
    header->ring_pitch = geometry->ring_pitch;
    header->agent_pid = __atomic_load_n(&PPT1_(control).claim[0], __ATOMIC_RELAXED);
    header->created_mono_ns = ppt1_i64(mono.tv_sec) * 1000000000 + ppt1_i64(mono.tv_nsec);
    header->created_real_ns = ppt1_i64(real.tv_sec) * 1000000000 + ppt1_i64(real.tv_nsec);
    unsigned count = ppt1_sections(d, header->sections);
    const ppt1_control *control = &PPT1_(control);
    /* The agent will write masks: those that do not know of that keep away from this segment. */
    if (__atomic_load_n(&control->disabled.nonce, __ATOMIC_RELAXED) ==
        __atomic_load_n(&control->claim[PPT1_CLAIM_NONCE], __ATOMIC_RELAXED)) {
        const ppt1_section masked = {PPT1_MASKED, 0, geometry->masks, PPT1_PAGE, PPT1_PAGE};
        header->sections[count] = masked;
    }
    uint64_t *enable = PPT1_AT(uint64_t *, PPT1_AT(unsigned char *, base) + geometry->masks);
    for (unsigned i = 0; i < PPT1_MASK_WORDS; i++)
        enable[i] = UINT64_MAX;
}

/* Makes a segment that an agent fetches by its descriptor. It is sealed, so that it cannot
 * shrink while somebody has mapped it. */
static void *ppt1_make(int *fd, const ppt1_description *d) {
    const ppt1_geometry *geometry = &d->geometry;
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < geometry->size) {
        errno = EFBIG; /* ftruncate(2) would raise SIGXFSZ */
        return PPT1_NULL;
    }
    *fd = ppt1_memfd();
    if (*fd == -1)
        return PPT1_NULL;
    void *base = MAP_FAILED;
    /* By syscall(2): a preloaded library (ppt's) takes ftruncate(2) for the program's. */
    if (syscall(SYS_ftruncate, *fd, geometry->size) == 0 &&
        fcntl(*fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        base = mmap(PPT1_NULL, geometry->size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (base != MAP_FAILED) {
        /* If memory is short, this fails, instead of SIGBUS later. EINVAL: Linux before 5.14. */
        if (madvise(base, geometry->slots, MADV_POPULATE_WRITE) == 0 || errno == EINVAL) {
            madvise(base, geometry->size, MADV_DONTFORK);
            ppt1_initialise(base, d);
            return base;
        }
        munmap(base, geometry->size);
        errno = ENOMEM;
    }
    int error = errno;
    syscall(SYS_close, *fd);
    errno = error;
    return PPT1_NULL;
}
