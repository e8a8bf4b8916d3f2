/* ---- ppt for Node: the part that is the same in every addon -------------------------------- */

#define PPT_NODE __attribute__((unused)) static

/* Where JavaScript reads the control page, in words of 32 bits; the gate's generation is never 0. */
PPT1_ASSERT(__builtin_offsetof(ppt1_control, gate) == 0, "the gate");
PPT1_ASSERT(__builtin_offsetof(ppt1_control, claim) + 8 * PPT1_CLAIM_NONCE == 4 * 26, "the claim");
PPT1_ASSERT(__builtin_offsetof(ppt1_control, disabled) == 4 * 40, "what a session does not want");
PPT1_ASSERT(__builtin_offsetof(ppt1_disabled, bits) == 8, "the bits of it");

/* What ppt sets, before the frame: its own stamp, or another result, its mark, and a bit for each field
 * that is stamped now. */
PPT_NODE char *pptnode_area(napi_env env, napi_callback_info info) {
    void *area = 0;
    (void)napi_get_cb_info(env, info, 0, 0, 0, &area);
    return (char *)area;
}

PPT_NODE uint64_t pptnode_word(const char *area, unsigned at) {
    uint64_t word;
    memcpy(&word, area + at, sizeof word);
    return word;
}

PPT_NODE int pptnode_stamps(const char *area, unsigned field) {
    uint32_t bits;
    memcpy(&bits, area + 24 + field / 32 * 4, sizeof bits);
    return (int)(bits >> field % 32 & 1);
}

typedef struct pptnode_function {
    const char *name;
    napi_callback call;
} pptnode_function;

/* A worker that ends may be the last one that has this addon, and the next one loads it again. The
 * buffer stays meanwhile, and with it the session. */
PPT_NODE void pptnode_stay(void) {
    Dl_info found;
    if (dladdr(__extension__(void *) pptnode_stay, &found) != 0 && found.dli_fname)
        (void)dlopen(found.dli_fname, RTLD_NOW | RTLD_NODELETE | RTLD_NOLOAD);
}

/* The exports of an environment: the control page, an area of its own, and the functions. */
PPT_NODE napi_value pptnode_start(napi_env env, napi_value exports, void *control, size_t bytes,
                                  const pptnode_function *functions, size_t count) {
    napi_value page, area, function;
    napi_ref kept;
    void *memory;
    if (napi_create_external_arraybuffer(env, control, PPT1_PAGE, 0, 0, &page) != napi_ok) {
        (void)napi_throw_error(env, 0, "this Node does not let addons share memory");
        return 0;
    }
    pptnode_stay();
    if (napi_create_arraybuffer(env, bytes, &memory, &area) != napi_ok ||
        napi_create_reference(env, area, 1, &kept) != napi_ok ||
        napi_set_named_property(env, exports, "page", page) != napi_ok ||
        napi_set_named_property(env, exports, "area", area) != napi_ok)
        return 0;
    memset(memory, 0, bytes);
    for (size_t i = 0; i < count; i++)
        if (napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].call, memory,
                                 &function) != napi_ok ||
            napi_set_named_property(env, exports, functions[i].name, function) != napi_ok)
            return 0;
    return exports;
}
