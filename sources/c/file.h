/* Operations on files: which descriptors are files, and the frames of `files`. */
#ifndef PPT_FILE_H
#define PPT_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "files.h"

/* Whether a descriptor is a regular file. Asks the kernel once for each descriptor, and only while ppt is
 * attached. Leaves errno as it is. */
int ppt_is_file(int fd);

/* A descriptor is about to end, or has become another file. */
void ppt_forget_file(int fd);

/* So are all from `first` to `last`. */
void ppt_forget_files(unsigned first, unsigned last);

/* Writes the frame of an operation that began at `start`. `result` is the function's result: bytes, or a
 * status. Returns it, and leaves errno as it is. */
ssize_t ppt_did_io(uint64_t start, uint8_t call, int fd, ssize_t result);

#endif
