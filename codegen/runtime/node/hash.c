/* Hashes of what the program has, for fields of types `hash` and `hash128`. */
PPT_NODE void *pptnode_bytes(napi_env env, napi_callback_info info, size_t *length, char **area) {
    napi_value data;
    size_t count = 1;
    void *memory = 0, *bytes = 0;
    *length = 0;
    if (napi_get_cb_info(env, info, &count, &data, 0, &memory) == napi_ok)
        (void)napi_get_typedarray_info(env, data, 0, length, &bytes, 0, 0);
    *area = (char *)memory;
    return bytes;
}

PPT_NODE napi_value pptnode_hash(napi_env env, napi_callback_info info) {
    size_t length;
    char *area;
    const void *bytes = pptnode_bytes(env, info, &length, &area);
    uint64_t const hash = ppt_hash(bytes, length);
    memcpy(area, &hash, sizeof hash);
    return 0;
}

PPT_NODE napi_value pptnode_hash_u64(napi_env env, napi_callback_info info) {
    char *area = pptnode_area(env, info);
    uint64_t const hash = ppt_hash_u64(pptnode_word(area, 0));
    memcpy(area, &hash, sizeof hash);
    return 0;
}

PPT_NODE napi_value pptnode_hash128(napi_env env, napi_callback_info info) {
    size_t length;
    char *area;
    const void *bytes = pptnode_bytes(env, info, &length, &area);
    ppt_hash128_t const hash = ppt_hash128(bytes, length);
    memcpy(area, hash.bytes, sizeof hash.bytes);
    return 0;
}
