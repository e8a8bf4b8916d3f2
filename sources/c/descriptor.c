#define _GNU_SOURCE
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int ppt_fstat(int fd, struct stat *to);

ppt_descriptor ppt_descriptors[PPT_DESCRIPTORS];
uint32_t ppt_descriptors_used;
static int filtered;

void ppt_may_be_filtered(void) { __atomic_store_n(&filtered, 1, __ATOMIC_RELAXED); }

int ppt_is_filtered(void) { return __atomic_load_n(&filtered, __ATOMIC_RELAXED); }

int ppt_is_ours(void) {
    if (ppt_is_filtered())
        return 1;
    int saved = errno;
    uint32_t pid = (uint32_t)syscall(SYS_getpid);
    errno = saved;
    return pid == (ppt_is_on() ? ppt_target()
                               : __atomic_load_n(&PPT_FILES_CONTROL.target_pid, __ATOMIC_RELAXED));
}

int ppt_is_open(int fd) {
    int saved = errno, open = ppt_is_filtered() || syscall(SYS_fcntl, fd, F_GETFD) != -1;
    errno = saved;
    return open;
}

static void raise_used(uint32_t to) {
    uint32_t now = __atomic_load_n(&ppt_descriptors_used, __ATOMIC_RELAXED);
    while (now < to && !__atomic_compare_exchange_n(&ppt_descriptors_used, &now, to, 1,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static enum ppt_kind kind_of(const struct stat *found) {
    return S_ISREG(found->st_mode) ? PPT_FILE : S_ISSOCK(found->st_mode) ? PPT_SOCKET : PPT_OTHER;
}

/* Calls on a number of which one kind or the other was the meaning. */
static void count_undecided(enum ppt_kind was, enum ppt_kind is, uint32_t calls) {
    if (was == PPT_SOCKET || is == PPT_SOCKET)
        ppt_count_undecided(calls);
    if ((was == PPT_FILE) != (is == PPT_FILE))
        PPT_ADD_UNDECIDED_IO(calls);
}

/* Asks the kernel. The meaning stays as long as it is the same file, in one session of `net`. */
static __attribute__((noinline, cold)) uint64_t ask(int fd, uint64_t now) {
    static uint32_t meanings;
    ppt_descriptor *d = &ppt_descriptors[fd];
    int saved = errno, known = ppt_last_meaning(fd) != 0;
    struct stat found = {0};
    enum ppt_kind kind = ppt_fstat(fd, &found) == 0 ? kind_of(&found) : PPT_UNKNOWN;
    ppt_count_apart(0);
    errno = saved;
    uint64_t before = __atomic_load_n(&d->meaning, __ATOMIC_RELAXED);
    uint64_t session = ppt_session() << 32, meaning = (before & ~UINT64_C(3)) | kind;
    int same = (uint32_t)found.st_ino == d->inode && session >> 32 == before >> 32;
    if (!same || (known && meaning != before)) {
        if (known)
            count_undecided(ppt_kind_of(before), kind, __atomic_load_n(&d->uses, __ATOMIC_RELAXED));
        meaning = session | __atomic_add_fetch(&meanings, 4, __ATOMIC_RELAXED) | kind;
    }
    /* The length of a tick is unknown for a moment after an attach. */
    uint64_t second = ppt_second(now), wait = second ? second / 100 : 100000;
    d->inode = (uint32_t)found.st_ino;
    __atomic_store_n(&d->uses, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&d->due, now + wait, __ATOMIC_RELAXED);
    __atomic_store_n(&d->meaning, meaning, __ATOMIC_RELAXED);
    __atomic_store_n(&d->epoch, kind == PPT_UNKNOWN ? 0 : ppt_epoch(), __ATOMIC_RELEASE);
    raise_used((uint32_t)fd + 1);
    return kind == PPT_UNKNOWN ? 0 : meaning;
}

__attribute__((noinline, cold)) uint64_t ppt_ask_meaning(int fd, uint64_t now) {
    if (!ppt_is_in_table(fd) || ppt_is_filtered())
        return ppt_last_meaning(fd);
    return ppt_is_ours() ? ask(fd, now) : PPT_UNKNOWN;
}

int ppt_forget(int fd) {
    ppt_descriptor *d = &ppt_descriptors[fd];
    if (!ppt_is_in_table(fd) || (__atomic_load_n(&d->meaning, __ATOMIC_RELAXED) & 3) == 0 || !ppt_is_ours())
        return 0;
    if (__atomic_load_n(&d->uses, __ATOMIC_RELAXED) != 0 && !ppt_is_filtered())
        ask(fd, 0);
    __atomic_store_n(&d->epoch, 0, __ATOMIC_RELAXED);
    uint64_t meaning = __atomic_load_n(&d->meaning, __ATOMIC_RELAXED);
    __atomic_store_n(&d->meaning, meaning & ~UINT64_C(3), __ATOMIC_RELAXED);
    return 1;
}
