/* ppt, the block form. */
#include "../../commands.h"
#include "bare.h"
#include "stamped.h"

static NOINLINE void bare(uint64_t i) {
    PPT_WRITE_BARE(f) {
        f.a = (int32_t)i;
        f.b = (int32_t)(i >> 1);
        f.c = i;
        f.d = i;
        f.e = i;
    }
}

static NOINLINE void stamped(uint64_t i) {
    PPT_WRITE_STAMPED(f) {
        f.a = (int32_t)i;
        f.b = (int32_t)(i >> 1);
        f.c = i;
        f.d = i;
        f.e = i;
        f.at = ppt_stamped_now();
    }
}

LOOP_OVER(bare)
LOOP_OVER(stamped)

static void prepare_bare(void) { ppt_bare_prepare(); }
static void prepare_stamped(void) { ppt_stamped_prepare(); }

int main(void) {
    static const struct way ways[] = {
        {"bare", bare_calls, 1 << 20, prepare_bare},
        {"stamped", stamped_calls, 1 << 20, prepare_stamped},
        {0, 0, 0, 0},
    };
    return serve(ways, (struct collecting){0, 0});
}
