#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ppt_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./provider.h"

#if !defined(PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PROVIDER_H
#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    ppt_bench, payload,
    LTTNG_UST_TP_ARGS(int32_t, a, int32_t, b, uint64_t, c, uint64_t, d, uint64_t, e),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int32_t, a, a)
        lttng_ust_field_integer(int32_t, b, b)
        lttng_ust_field_integer(uint64_t, c, c)
        lttng_ust_field_integer(uint64_t, d, d)
        lttng_ust_field_integer(uint64_t, e, e)
    )
)

#endif
#include <lttng/tracepoint-event.h>
