/* The same in C, in the same process, and a call that does nothing. */
#include "cost.h"
#include <jni.h>

static const char *const names[4] = {"main", "worker-3", "acceptor", "0123456789abcdef"};

JNIEXPORT void JNICALL Java_Cost_empty(JNIEnv *env, jclass class, jlong id, jint kind, jint who,
                                       jlong a, jlong b) {
    (void)env, (void)class, (void)id, (void)kind, (void)who, (void)a, (void)b;
}

JNIEXPORT void JNICALL Java_Cost_cRequest(JNIEnv *env, jclass class, jint calls) {
    (void)env, (void)class;
    for (int i = 0; i < calls; i++) {
        PPT_BEGIN_REQUEST(f) {
            f.id = (uint64_t)i;
            f.kind = i;
            f.who = i >> 1;
            f.a = (uint64_t)i;
            f.b = (uint64_t)i;
        }
        __asm__ volatile("" : : : "memory");
    }
}

JNIEXPORT void JNICALL Java_Cost_cNamed(JNIEnv *env, jclass class, jint calls) {
    (void)env, (void)class;
    for (int i = 0; i < calls; i++) {
        PPT_WRITE_NAMED(f) {
            f.kind = i;
            f.who = i >> 1;
            f.a = (uint64_t)i;
            f.b = (uint64_t)i;
            PPT_TEXT(f.name, names[i & 3]);
        }
        __asm__ volatile("" : : : "memory");
    }
}

JNIEXPORT void JNICALL Java_Cost_cHandled(JNIEnv *env, jclass class, jint calls) {
    (void)env, (void)class;
    for (int i = 0; i < calls; i++) {
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
}

JNIEXPORT void JNICALL Java_Cost_cCounter(JNIEnv *env, jclass class, jint calls) {
    (void)env, (void)class;
    for (int i = 0; i < calls; i++) {
        PPT_ADD_BYTES_IN((uint64_t)i);
        __asm__ volatile("" : : : "memory");
    }
}
