/* Functions that the generated code calls and that not every C library has under that name, so that
 * one library is loaded by each: by glibc before 2.34, where threads are in a library of their own, and by
 * musl. The build gives the generated code these names. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hidden.h"

#pragma weak pthread_key_create
#pragma weak pthread_key_delete
#pragma weak pthread_setspecific
#pragma weak pthread_atfork
int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
#pragma weak __register_atfork

int ppt_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    return pthread_key_create ? pthread_key_create(key, destructor) : ENOSYS;
}

int ppt_key_delete(pthread_key_t key) { return pthread_key_delete ? pthread_key_delete(key) : 0; }

__thread int ppt_hidden;

/* It may allocate, and so take the program's locks. */
int ppt_setspecific(pthread_key_t key, const void *value) {
    ppt_hidden++;
    int failed = pthread_setspecific ? pthread_setspecific(key, value) : ENOSYS;
    ppt_hidden--;
    return failed;
}

int ppt_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    if (__register_atfork)
        return __register_atfork(prepare, parent, child, NULL);
    return pthread_atfork ? pthread_atfork(prepare, parent, child) : ENOSYS;
}

/* The beginning of the struct statx of statx(2), which older C libraries do not declare. */
struct ppt_statx {
    uint32_t mask, block;
    uint64_t attributes;
    uint32_t links, user, group;
    uint16_t mode, spare;
    uint64_t inode, rest[27];
};

/* Type and inode, as the kernel remembers them: a file system that does not answer must not stop the program
 * in a call that would not ask it. */
int ppt_fstat(int fd, struct stat *to) {
#ifdef SYS_statx
    struct ppt_statx found;
    const int empty_path = 0x1000, dont_sync = 0x4000, type_and_inode = 0x103;
    if (syscall(SYS_statx, fd, "", empty_path | dont_sync, type_and_inode, &found) == 0) {
        to->st_mode = found.mode;
        to->st_ino = found.inode;
        return 0;
    }
    if (errno == EBADF)
        return -1;
#endif
    return (int)syscall(SYS_fstat, fd, to);
}
