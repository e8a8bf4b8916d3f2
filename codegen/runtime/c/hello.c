/* ---- ppt, ABI 1: before the first frame ----------------------------------------------------
 *
 * `ppt run` leaves one end of a socketpair to its command, and says which in PPT_RUN=FD:INODE. What
 * holds a buffer says hello on it as soon as it is loaded, and goes on when it has been attached.
 */
#ifdef __cplusplus
extern "C" {
#endif

/* The number that `*text` begins with, or UINT64_MAX; `*text` is moved behind it. */
static uint64_t ppt1_number(const char **text) {
    const char *at = *text;
    uint64_t number = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (number > (UINT64_MAX - 9) / 10)
            return UINT64_MAX;
        number = number * 10 + PPT1_TO(uint64_t, *at - '0');
    }
    if (at == *text)
        return UINT64_MAX;
    *text = at;
    return number;
}

/* The socket of `ppt run`, or -1. By its inode: the descriptor may have been closed, or be another
 * file's by now. */
static int ppt1_run_socket(void) {
    /* Of a set-user-ID program nobody asks that: secure_getenv(3), which may not be declared. */
    const char *text = getauxval(AT_SECURE) == 0 ? getenv("PPT_RUN") : PPT1_NULL;
    if (text == PPT1_NULL)
        return -1;
    uint64_t descriptor = ppt1_number(&text);
    if (descriptor > INT32_MAX || *text++ != ':')
        return -1;
    uint64_t inode = ppt1_number(&text);
    struct stat found;
    if (*text != 0 || fstat(PPT1_TO(int, descriptor), &found) != 0 ||
        !S_ISSOCK(found.st_mode) || found.st_ino != inode)
        return -1;
    return PPT1_TO(int, descriptor);
}

/* Says hello by one byte and the end of a pipe, and waits for an answer on that pipe, or for the
 * end of whoever could give it. Who we are the kernel tells. */
static void ppt1_say_hello(int socket) {
    int answer[2];
    if (syscall(SYS_pipe2, answer, O_CLOEXEC) != 0) /* pipe2(2) may not be declared */
        return;
    char byte = 0;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } passed;
    memset(&passed, 0, sizeof passed);
    passed.head.cmsg_level = SOL_SOCKET;
    passed.head.cmsg_type = SCM_RIGHTS;
    passed.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&passed.head), &answer[1], sizeof(int));
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = passed.space;
    message.msg_controllen = sizeof passed.space;
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    close(answer[1]);
    struct pollfd ends[2] = {{answer[0], POLLIN, 0}, {socket, 0, 0}};
    while (sent == 1 && poll(ends, 2, -1) < 0 && errno == EINTR) {
    }
    close(answer[0]);
}

/* As early as a program may: other constructors may write frames. */
static __attribute__((constructor(101))) void ppt1_loaded(void) {
    int saved = errno;
    ppt1_protect();
    if (ppt1_used())
        ppt1_make_key();
    syscall(SYS_getpid); /* a first frame need not have it looked up by the dynamic linker */
    errno = saved;
    if (__atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED) != 0)
        return; /* attached together with another object */
    int socket = ppt1_run_socket();
    if (socket >= 0)
        ppt1_say_hello(socket);
    errno = saved;
}

#ifdef __cplusplus
}
#endif
