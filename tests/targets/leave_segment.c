/* leave_segment KEY [BYTES]: makes a segment, full of 0xa5, and ends, as an agent that is killed
 * before it can mark the segment for removal. Says its id.
 * leave_segment look ID: says "intact" or "changed" of it, and removes it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>

static int look(int id) {
    struct shmid_ds about;
    unsigned char *bytes = shmat(id, 0, SHM_RDONLY);
    if (bytes == (void *)-1 || shmctl(id, IPC_STAT, &about) != 0) {
        perror("shmat");
        return 1;
    }
    int changed = about.shm_nattch != 1;
    for (size_t i = 0; i < about.shm_segsz; i++)
        changed |= bytes[i] != 0xa5;
    puts(changed ? "changed" : "intact");
    return shmctl(id, IPC_RMID, 0) != 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "look") == 0)
        return look(atoi(argv[2]));
    key_t key = (key_t)strtoul(argc > 1 ? argv[1] : "0", 0, 16);
    size_t size = argc > 2 ? strtoul(argv[2], 0, 10) : 4096;
    int id = shmget(key, size, IPC_CREAT | IPC_EXCL | 0600);
    void *bytes = id < 0 ? (void *)-1 : shmat(id, 0, 0);
    if (bytes == (void *)-1) {
        perror("shmget");
        return 1;
    }
    memset(bytes, 0xa5, size);
    printf("%d\n", id);
    return 0;
}
