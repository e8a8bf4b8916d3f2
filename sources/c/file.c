#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "connection.h"

int ppt_fstat(int fd, struct stat *to);

/* session << 8 | type of file, by descriptor. An entry of another session counts as unknown. */
static uint64_t table[PPT_DESCRIPTORS];
enum { PPT_FILE = 1, PPT_NO_FILE = 2 };

static int is_in_table(int fd) { return (unsigned)fd < PPT_DESCRIPTORS; }

/* Names the session, and leaves a byte free. */
static uint64_t this_session(void) {
    return __atomic_load_n(&PPT_FILES_CONTROL.claim[PPT1_CLAIM_NONCE], __ATOMIC_RELAXED) << 8;
}

static void put(int fd, uint64_t entry) { __atomic_store_n(&table[fd], entry, __ATOMIC_RELAXED); }

/* Asks the kernel. A child of vfork(2) has its parent's memory, but other descriptors. */
static __attribute__((noinline, cold)) int ask(int fd, uint64_t session) {
    if (ppt_is_filtered()) {
        PPT_ADD_SKIPPED(1);
        return 0;
    }
    int saved = errno;
    struct stat found;
    int is_file = ppt_fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
    uint32_t target = __atomic_load_n(&PPT_FILES_CONTROL.target_pid, __ATOMIC_RELAXED);
    if ((uint32_t)syscall(SYS_getpid) == target)
        put(fd, session | (is_file ? PPT_FILE : PPT_NO_FILE));
    errno = saved;
    return is_file;
}

int ppt_is_file(int fd) {
    if (!is_in_table(fd)) {
        if (fd >= 0)
            PPT_ADD_SKIPPED(1);
        return 0;
    }
    uint64_t entry = __atomic_load_n(&table[fd], __ATOMIC_RELAXED), session = this_session();
    if ((entry & ~UINT64_C(0xff)) != session || (entry & 0xff) == 0)
        return ask(fd, session);
    return (entry & 0xff) == PPT_FILE;
}

void ppt_forget_file(int fd) {
    if (is_in_table(fd) && table[fd] != 0)
        put(fd, 0);
}

void ppt_forget_files(unsigned first, unsigned last) {
    for (unsigned fd = first; fd < PPT_DESCRIPTORS && fd <= last; fd++)
        ppt_forget_file((int)fd);
}

ssize_t ppt_did_io(uint64_t start, uint8_t call, int fd, ssize_t result) {
    int error = result < 0 ? errno : 0;
    uint64_t now = ppt_files_now();
    if (now != 0 && start != 0)
        PPT_WRITE_IO(f) {
            int counts = result > 0 && call >= FILES_CALL_READ && call <= FILES_CALL_PWRITE;
            f.took_start = start;
            f.took_end = now;
            f.call = call;
            f.fd = call == FILES_CALL_OPEN ? (int32_t)result : fd;
            f.bytes = counts ? (uint32_t)result : 0;
            f.error = error;
        }
    return result;
}
