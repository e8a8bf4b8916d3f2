/* A USDT probe: a nop until somebody puts a breakpoint there. */
#include "../../commands.h"
#include <sys/sdt.h>

static NOINLINE void stamped(uint64_t i) {
    DTRACE_PROBE5(ppt_bench, payload, (int32_t)i, (int32_t)(i >> 1), i, i, i);
}

LOOP_OVER(stamped)

int main(void) {
    static const struct way ways[] = {{"stamped", stamped_calls, 1 << 20, 0}, {0, 0, 0, 0}};
    return serve(ways, (struct collecting){0, 0});
}
