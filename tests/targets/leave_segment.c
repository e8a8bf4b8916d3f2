/* leave_segment KEY: makes a segment and ends, as an agent that is killed before it can mark the
 * segment for removal. Says its id. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/shm.h>

int main(int argc, char **argv) {
    key_t key = (key_t)strtoul(argc > 1 ? argv[1] : "0", 0, 16);
    int id = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600);
    if (id < 0) {
        perror("shmget");
        return 1;
    }
    printf("%d\n", id);
    return 0;
}
