#include "file.h"

#include <errno.h>

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
