/* The same frames in C, in the same process, and a call that does nothing. */
#define NAPI_VERSION 3
#include "cost.h"
#include <node_api.h>

static const char *const names[4] = {"main", "worker-3", "acceptor", "0123456789abcdef"};

static int calls_of(napi_env env, napi_callback_info info) {
    napi_value given;
    size_t count = 1;
    int32_t calls = 0;
    (void)napi_get_cb_info(env, info, &count, &given, 0, 0);
    (void)napi_get_value_int32(env, given, &calls);
    return calls;
}

static napi_value empty(napi_env env, napi_callback_info info) {
    (void)env, (void)info;
    return 0;
}

static napi_value request(napi_env env, napi_callback_info info) {
    for (int i = 0, calls = calls_of(env, info); i < calls; i++) {
        PPT_BEGIN_REQUEST(f) {
            f.id = (uint64_t)i;
            f.kind = i;
            f.who = i >> 1;
            f.a = (uint64_t)i;
            f.b = (uint64_t)i;
        }
        __asm__ volatile("" : : : "memory");
    }
    return 0;
}

static napi_value named(napi_env env, napi_callback_info info) {
    for (int i = 0, calls = calls_of(env, info); i < calls; i++) {
        PPT_WRITE_NAMED(f) {
            f.kind = i;
            f.who = i >> 1;
            f.a = (uint64_t)i;
            f.b = (uint64_t)i;
            PPT_TEXT(f.name, names[i & 3]);
        }
        __asm__ volatile("" : : : "memory");
    }
    return 0;
}

static napi_value handled(napi_env env, napi_callback_info info) {
    for (int i = 0, calls = calls_of(env, info); i < calls; i++) {
        uint64_t start = ppt_cost_now();
        __asm__ volatile("" : : : "memory");
        PPT_WRITE_HANDLED(f) {
            f.kind = i;
            f.who = i >> 1;
            f.a = (uint64_t)i;
            f.b = (uint64_t)i;
            f.handle_start = start;
            f.handle_end = ppt_cost_now();
        }
        __asm__ volatile("" : : : "memory");
    }
    return 0;
}

static napi_value counter(napi_env env, napi_callback_info info) {
    for (int i = 0, calls = calls_of(env, info); i < calls; i++) {
        PPT_ADD_BYTES_IN((uint64_t)i);
        __asm__ volatile("" : : : "memory");
    }
    return 0;
}

NAPI_MODULE_INIT() {
    static const struct {
        const char *name;
        napi_callback call;
    } functions[] = {{"empty", empty},     {"request", request}, {"named", named},
                     {"handled", handled}, {"counter", counter}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        napi_value made;
        if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].call, 0, &made) != napi_ok ||
            napi_set_named_property(env, exports, functions[i].name, made) != napi_ok)
            return 0;
    }
    return exports;
}
