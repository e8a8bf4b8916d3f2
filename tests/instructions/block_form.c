/* The block form, an add and an observation in three languages, called as often as stdin says; `empty_call` is what a call
 * costs by itself. */
#include "writer.h"
#include <stdio.h>

#define NOINLINE __attribute__((noinline))

static NOINLINE void empty_call(uint64_t i) { __asm__ volatile("" : : "r"(i)); }

static NOINLINE void block_form(uint64_t i) {
    PPT_WRITE_WRITER(f) {
        f.kind = (int)i;
        f.who = (int)(i >> 1);
        f.start = (int64_t)i;
        f.middle = (int64_t)i;
        f.end = (int64_t)i;
        f.a = i;
        f.b = i;
        f.c = i;
    }
}

static NOINLINE void add(uint64_t i) { PPT_ADD_SEEN(i); }
static NOINLINE void observe(uint64_t i) { PPT_OBSERVE_WAITS((int64_t)i); }

void block_form_cpp(uint64_t i);
void block_form_rust(uint64_t i);
void add_cpp(uint64_t i);
void add_rust(uint64_t i);
void observe_cpp(uint64_t i);
void observe_rust(uint64_t i);
void prepare_rust(void);

int main(void) {
    unsigned long frames;
    if (scanf("%lu", &frames) != 1)
        return 1;
    /* What only a first frame needs is behind them. */
    ppt_writer_prepare();
    prepare_rust();
    for (uint64_t i = 0; i < frames; i++) {
        empty_call(i);
        block_form(i);
        block_form_cpp(i);
        block_form_rust(i);
        add(i);
        add_cpp(i);
        add_rust(i);
        observe(i);
        observe_cpp(i);
        observe_rust(i);
    }
    return 0;
}
