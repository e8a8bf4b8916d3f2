/* The frames of operations on files. */
#ifndef PPT_FILE_H
#define PPT_FILE_H

#include <stdint.h>
#include <sys/types.h>

#include "files.h"

/* Writes the frame of an operation that began at `start`. `result` is the function's result: bytes, or a
 * status. Returns it, and leaves errno as it is. */
ssize_t ppt_did_io(uint64_t start, uint8_t call, int fd, ssize_t result);

#endif
