/* LTTng-UST. It has no event without a time. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "../../commands.h"
#include "provider.h"

static NOINLINE void stamped(uint64_t i) {
    lttng_ust_tracepoint(ppt_bench, payload, (int32_t)i, (int32_t)(i >> 1), i, i, i);
}

LOOP_OVER(stamped)

int main(void) {
    static const struct way ways[] = {{"stamped", stamped_calls, 1 << 20, 0}, {0, 0, 0, 0}};
    return serve(ways, (struct collecting){0, 0});
}
