/* Opens gates as an agent does, and says what becomes of a frame. The test appends the attempts. */
#include "job.c"
#include <stdio.h>

/* The lower half of the gate of a segment that this process makes. */
#define MADE (UINT64_C(1) << 31 | 1)

static void attempt(uint64_t id, uint64_t nonce, ppt1_geometry geometry) {
    static uint64_t generation;
    ppt1_control *control = &PPT1_(control);
    control->gate = 0;
    control->nonce = nonce;
    control->geometry = geometry;
    control->target_pid = (uint32_t)getpid();
    uint64_t refused = control->not_mapped;
    control->gate = ++generation << 32 | id;
    ppt1_thread *frame = PPT1_(begin)(0);
    if (frame) {
        PPT1_(end)(frame);
        puts("written");
    } else if (control->not_mapped != refused + 1) {
        puts("not counted");
    } else {
        int error = (int)(uint32_t)control->error;
        puts(error == EPROTO ? "EPROTO" : error == ESTALE ? "ESTALE" : strerror(error));
    }
}

/* Changes a bit of a segment's header, as everybody can who may attach it. */
static void spoil(uint64_t id, unsigned offset) {
    unsigned char *base = shmat((int)id, 0, 0);
    base[offset] ^= 1;
    shmdt(base);
}

int main(int count, char **arguments) {
    uint64_t id = count > 1 ? strtoull(arguments[1], 0, 10) : 0;
