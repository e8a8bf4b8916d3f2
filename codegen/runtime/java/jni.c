/* ---- ppt for Java: the part that is the same in every library ----------------------------- */

#define PPT_JNI __attribute__((unused)) static

/* Seconds of a time in nanoseconds, and the nanoseconds after them. */
PPT_JNI int64_t pptjni_seconds(int64_t ns) { return ns / 1000000000 - (ns % 1000000000 < 0); }
PPT_JNI int64_t pptjni_rest(int64_t ns) {
    return ns % 1000000000 + (ns % 1000000000 < 0 ? 1000000000 : 0);
}

PPT_JNI struct timeval pptjni_timeval(int64_t ns) {
    struct timeval time = {(time_t)pptjni_seconds(ns), (suseconds_t)(pptjni_rest(ns) / 1000)};
    return time;
}

PPT_JNI struct timespec pptjni_timespec(int64_t ns) {
    struct timespec time = {(time_t)pptjni_seconds(ns), (long)pptjni_rest(ns)};
    return time;
}

PPT_JNI float pptjni_float(jlong word) {
    uint32_t bits = (uint32_t)word;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

PPT_JNI double pptjni_double(jlong word) {
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* A part of the control page, as memory of Java. */
PPT_JNI jobject pptjni_page(JNIEnv *env, ppt1_control *control, jint part) {
    void *parts[] = {&control->gate, control->disabled.bits, &control->disabled.nonce,
                     &control->claim[PPT1_CLAIM_NONCE]};
    jlong bytes[] = {8, sizeof control->disabled.bits, 8, 8};
    if (part < 0 || part > 3)
        return 0;
    return (*env)->NewDirectByteBuffer(env, parts[part], bytes[part]);
}
