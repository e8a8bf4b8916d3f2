/* What the number of a descriptor means: nothing, or which open file.
 *
 * A number means the same until it is closed and made again. The functions of the C library that close or
 * replace descriptors, syscall(2) among them, make an entry unknown, and so do open and accept. Other functions
 * that make descriptors need not be known: the kernel is asked at the first use. Some programs call
 * the kernel themselves, or have io_uring close and open: an entry that is older than 10 ms is asked again
 * at its next use. If it means something else then, or at its end, its calls since the last answer count as
 * undecided. Of a connection, the time is looked at after the call, when it is known anyway.
 *
 * All of this is only called while ppt is attached. An entry is valid for one session: the next session starts
 * over, and so does a forked child. A child of vfork(2) has its parent's memory, but other descriptors, so it
 * writes nothing here. The table is 2 MiB of zeros, whose pages exist once they are used. */
#ifndef PPT_DESCRIPTOR_H
#define PPT_DESCRIPTOR_H

#include <stdint.h>

#include "files.h"
#include "write.h"

#ifndef PPT_DESCRIPTORS
#define PPT_DESCRIPTORS 65536
#endif

/* Whether nobody wants to know what descriptors are. */
#define PPT_BOTH_OFF (__builtin_expect(!(ppt_is_on() | ppt_files_on()), 1))

enum ppt_kind { PPT_UNKNOWN, PPT_FILE, PPT_SOCKET, PPT_OTHER };

typedef struct ppt_descriptor {
    uint64_t epoch;   /* the sessions for which the others are valid; 0: none */
    uint64_t meaning; /* the kind in the lowest two bits; differs for each open file, and session of `net` */
    uint64_t due;     /* the stamp from which on the kernel is asked again */
    uint32_t inode;
    uint32_t uses; /* calls since the kernel was asked */
} ppt_descriptor;

extern ppt_descriptor ppt_descriptors[PPT_DESCRIPTORS] __attribute__((visibility("hidden")));
/* One more than the highest number that was asked about. */
extern uint32_t ppt_descriptors_used __attribute__((visibility("hidden")));

static inline int ppt_is_in_table(int fd) { return (unsigned)fd < PPT_DESCRIPTORS; }

static inline enum ppt_kind ppt_kind_of(uint64_t meaning) { return (enum ppt_kind)(meaning & 3); }

/* Names the sessions of both buffers; never 0. */
static inline uint64_t ppt_epoch(void) {
    uint64_t files = __atomic_load_n(&PPT_FILES_CONTROL.claim[PPT1_CLAIM_NONCE], __ATOMIC_RELAXED);
    return (ppt_session() + 3 * files) | 1;
}

/* What a number meant when the kernel was last asked; 0: unknown. */
static inline uint64_t ppt_last_meaning(int fd) {
    if (__builtin_expect(!ppt_is_in_table(fd), 0))
        return 0;
    const ppt_descriptor *d = &ppt_descriptors[fd];
    return __builtin_expect(__atomic_load_n(&d->epoch, __ATOMIC_ACQUIRE) == ppt_epoch(), 1)
               ? __atomic_load_n(&d->meaning, __ATOMIC_RELAXED)
               : 0;
}

/* Counts a call on an entry of the table. Threads that do so at once may count one call. */
static inline void ppt_use(int fd) {
    ppt_descriptor *d = &ppt_descriptors[fd];
    uint32_t uses = __atomic_load_n(&d->uses, __ATOMIC_RELAXED);
    __atomic_store_n(&d->uses, uses + 1, __ATOMIC_RELAXED);
}

/* Asks the kernel what a number means at `now`, if it can. */
uint64_t ppt_ask_meaning(int fd, uint64_t now);

/* What a number means at `now`. 0: that cannot be known. Leaves errno as it is. */
static inline uint64_t ppt_meaning(int fd, uint64_t now) {
    uint64_t last = ppt_last_meaning(fd);
    if (__builtin_expect(last == 0, 0) ||
        __builtin_expect(now >= __atomic_load_n(&ppt_descriptors[fd].due, __ATOMIC_RELAXED), 0))
        return ppt_ask_meaning(fd, now);
    ppt_use(fd);
    return last;
}

/* A number is about to end, or has become another file, in whatever session it was asked about. Returns 0 if
 * it was not known, or is not this process's. Leaves errno as it is. */
int ppt_forget(int fd);

/* Whether the number is that of an open descriptor, as far as the kernel may be asked. Leaves errno as it is. */
int ppt_is_open(int fd);

/* Whether this process is the one that ppt is attached to. Leaves errno as it is. */
int ppt_is_ours(void);

/* The program may filter its system calls from now on. One that the filter does not expect would end it, so
 * the kernel is asked nothing more. */
void ppt_may_be_filtered(void);
int ppt_is_filtered(void);

#endif
