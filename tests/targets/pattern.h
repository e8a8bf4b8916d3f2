/* What the words of a frame must be, given its thread and its number. */
static inline void fill(pptframe_beat_t *f, uint64_t thread, uint64_t n) {
    uint64_t word = (n * 256 + thread + 1) * UINT64_C(0x9e3779b97f4a7c15);
    f->thread = thread;
    f->n = n;
    f->a = word;
    f->b = ~word;
    f->c = word << 32 | word >> 32;
    f->d = word ^ n;
}
