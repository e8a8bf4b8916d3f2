/* Hashes of what the program has, for fields of types `hash` and `hash128`. */
PPT_GO uint64_t pptgo_hash(const char *data, size_t length) { return ppt_hash(data, length); }
PPT_GO uint64_t pptgo_hash_u64(uint64_t number) { return ppt_hash_u64(number); }
PPT_GO ppt_hash128_t pptgo_hash128(const char *data, size_t length) { return ppt_hash128(data, length); }
