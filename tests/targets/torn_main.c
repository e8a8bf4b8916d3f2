/* flood, as it is (WRAP_END and all), and a count of its calls of shmat(2). Whoever tears the gate
 * reads the count from outside, too. */
#include "flood_main.c"
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t shmat_calls;

void *shmat(int id, const void *address, int flags) {
    __atomic_fetch_add(&shmat_calls, 1, __ATOMIC_RELAXED);
    return (void *)syscall(SYS_shmat, id, address, flags);
}
