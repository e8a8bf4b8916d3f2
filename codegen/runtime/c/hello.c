/* ---- ppt, ABI 1: hello ----------------------------------------------------------------------
 *
 * `ppt run` leaves one end of a socketpair to its command, and names it in PPT_RUN=FD:INODE. A
 * program or library with a buffer says hello on it as soon as it is loaded, continues when ppt has
 * attached, and maps its segment at once. If the descriptor has been closed or shut down,
 * PPT_HELLO=SOCKET:SECRET names a socket to connect to. Forked children connect to a socket that
 * their parent's control page named.
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

/* A variable of the environment, except in set-user-ID programs. (secure_getenv(3) does the
 * same, but it may not be declared.) */
static const char *ppt1_asked(const char *name) {
    return getauxval(AT_SECURE) == 0 ? getenv(name) : PPT1_NULL;
}

/* The socket of `ppt run`, or -1. It is compared by its inode, because the descriptor may have
 * been closed, or may be another file by now. */
static int ppt1_run_socket(void) {
    const char *text = ppt1_asked("PPT_RUN");
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

/* Says hello by one byte and the end of a pipe. Then it waits for an answer on that pipe, or
 * until ppt has ended. The kernel tells ppt who the sender is. Returns 0 without an answer: whoever
 * inherits the socket may have shut it down. */
static int ppt1_say_hello(int socket) {
    int answer[2];
    if (syscall(SYS_pipe2, answer, O_CLOEXEC) != 0) /* pipe2(2) may not be declared */
        return 0;
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
        sent = syscall(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    syscall(SYS_close, answer[1]);
    struct pollfd ends[2] = {{answer[0], POLLIN, 0}, {socket, 0, 0}};
    while (sent == 1 && poll(ends, 2, -1) < 0 && errno == EINTR) {
    }
    syscall(SYS_close, answer[0]);
    return ends[0].revents != 0;
}

/* Whether the other end of a connection belongs to the superuser or to our own user. We wait for
 * no other user. */
static int ppt1_trusts(int fd) {
    struct {
        int pid;
        unsigned user, group;
    } peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.user == 0 || peer.user == geteuid());
}

/* Says hello by connecting to an abstract socket. If `waits`, it waits until the connection
 * ends, because ppt has attached or has ended. The kernel tells ppt who the sender is. Returns 0
 * if nobody listens. This runs in forked children, so it neither locks nor allocates. Where a C
 * function might cancel the thread, it uses syscall(2). */
static int ppt1_greet(uint64_t name, int waits) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, "ppt-", 4);
    for (unsigned i = 0; i < 16; i++)
        address.sun_path[5 + i] = "0123456789abcdef"[name >> (60 - 4 * i) & 15];
    size_t length = __builtin_offsetof(struct sockaddr_un, sun_path) + 21;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return 1;
    /* A full queue is waited for, but not long: once ppt has ended, anybody may take the name. */
    unsigned tries = waits ? 100 : 0;
    long connected;
    while ((connected = syscall(SYS_connect, fd, &address, length)) != 0 &&
           (errno == EINTR || (errno == EAGAIN && tries-- != 0))) {
        struct timespec pause = {0, 10000000};
        syscall(SYS_ppoll, 0L, 0L, &pause, 0L, 0L);
    }
    int nobody = connected != 0 && errno == ECONNREFUSED;
    struct pollfd end = {fd, POLLIN, 0};
    if (connected == 0 && waits && ppt1_trusts(fd))
        while (syscall(SYS_ppoll, &end, 1L, 0L, 0L, 0L) < 0 && errno == EINTR) {
        }
    syscall(SYS_close, fd);
    return !nobody;
}

/* Says hello if the environment names a socket for it. */
static void ppt1_report(void) {
    int socket = ppt1_run_socket();
    int answered = socket >= 0 && ppt1_say_hello(socket);
    const char *text = answered ? PPT1_NULL : ppt1_asked("PPT_HELLO");
    uint64_t name = text ? ppt1_number(&text) : UINT64_MAX;
    if (name != UINT64_MAX && *text == ':')
        ppt1_greet(name, 1);
}

/* Runs as early as a program allows, because other constructors may write frames. */
static __attribute__((constructor(101))) void ppt1_loaded(void) {
    int saved = errno;
    ppt1_protect();
    if (ppt1_used())
        ppt1_make_key();
    syscall(SYS_getpid); /* so that the dynamic linker need not look it up at the first frame */
    /* If the gate is open, ppt has attached to it together with another object. */
    if (__atomic_load_n(&PPT1_(control).gate, __ATOMIC_RELAXED) == 0)
        ppt1_report();
    if (ppt1_map_early())
        ppt1_report(); /* so that ppt fetches the segment that we have made */
    errno = saved;
}

#ifdef __cplusplus
}
#endif
