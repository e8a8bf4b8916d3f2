/* ---- ppt: hashes ------------------------------------------------------------------------------
 *
 * XXH3 with seed 0, 64 and 128 bits, as its author Yann Collet specifies it (xxHash 0.8), written for
 * this header, which you may use under any licence. Short inputs mix all their bytes at once. Inputs of
 * more than 240 bytes go through eight sums, in stripes of 64 bytes. Every reader of captures computes
 * the same numbers.
 */
#ifndef PPT1_HASH
#define PPT1_HASH
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif

/* The 128 bits of a hash, as their 16 bytes: the most significant one first. */
typedef struct {
    uint8_t bytes[16];
} ppt_hash128_t;

typedef struct {
    uint64_t low, high;
} ppt1_wide;

#define PPT1_P32_1 UINT64_C(0x9e3779b1)
#define PPT1_P32_2 UINT64_C(0x85ebca77)
#define PPT1_P32_3 UINT64_C(0xc2b2ae3d)
#define PPT1_P64_1 UINT64_C(0x9e3779b185ebca87)
#define PPT1_P64_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define PPT1_P64_3 UINT64_C(0x165667b19e3779f9)
#define PPT1_P64_4 UINT64_C(0x85ebca77c2b2ae63)
#define PPT1_P64_5 UINT64_C(0x27d4eb2f165667c5)
#define PPT1_MIX_1 UINT64_C(0x165667919e3779f9)
#define PPT1_MIX_2 UINT64_C(0x9fb21c651e98df25)

#define PPT1_SECRET_LENGTH 192
#define PPT1_STRIPE 64
#define PPT1_STRIPES_OF_BLOCK 16

static const uint8_t ppt1_secret[PPT1_SECRET_LENGTH] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

static inline uint32_t ppt1_read32(const uint8_t *from) {
    uint32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

static inline uint64_t ppt1_read64(const uint8_t *from) {
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

static inline uint64_t ppt1_rotated(uint64_t word, unsigned by) {
    return word << by | word >> (64 - by);
}

static inline ppt1_wide ppt1_product(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 ppt1_u128;
    ppt1_u128 const product = PPT1_TO(ppt1_u128, a) * b;
    ppt1_wide const halves = {PPT1_TO(uint64_t, product), PPT1_TO(uint64_t, product >> 64)};
    return halves;
}

static inline uint64_t ppt1_folded(uint64_t a, uint64_t b) {
    ppt1_wide const product = ppt1_product(a, b);
    return product.low ^ product.high;
}

/* The last step of short inputs, and of all others. */
static inline uint64_t ppt1_stirred(uint64_t word) {
    word = (word ^ word >> 33) * PPT1_P64_2;
    word = (word ^ word >> 29) * PPT1_P64_3;
    return word ^ word >> 32;
}

static inline uint64_t ppt1_finished(uint64_t word) {
    word = (word ^ word >> 37) * PPT1_MIX_1;
    return word ^ word >> 32;
}

/* Words of the secret, at a byte. */
static inline uint64_t ppt1_key(size_t at) { return ppt1_read64(ppt1_secret + at); }

static inline uint64_t ppt1_mixed(const uint8_t *in, size_t key) {
    return ppt1_folded(ppt1_read64(in) ^ ppt1_key(key), ppt1_read64(in + 8) ^ ppt1_key(key + 8));
}

/* All bytes of an input of one to three. */
static inline uint32_t ppt1_tiny(const uint8_t *in, size_t len) {
    return PPT1_TO(uint32_t, in[0]) << 16 | PPT1_TO(uint32_t, in[len >> 1]) << 24 | in[len - 1] |
           PPT1_TO(uint32_t, len) << 8;
}

static inline uint64_t ppt1_hash_short(const uint8_t *in, size_t len) {
    if (len > 8) {
        uint64_t const low = ppt1_read64(in) ^ ppt1_key(24) ^ ppt1_key(32);
        uint64_t const high = ppt1_read64(in + len - 8) ^ ppt1_key(40) ^ ppt1_key(48);
        return ppt1_finished(len + __builtin_bswap64(low) + high + ppt1_folded(low, high));
    }
    if (len > 3) {
        uint64_t word = ppt1_read32(in + len - 4) + (PPT1_TO(uint64_t, ppt1_read32(in)) << 32);
        word ^= ppt1_key(8) ^ ppt1_key(16);
        word ^= ppt1_rotated(word, 49) ^ ppt1_rotated(word, 24);
        word *= PPT1_MIX_2;
        word = (word ^ ((word >> 35) + len)) * PPT1_MIX_2;
        return word ^ word >> 28;
    }
    if (len > 0) {
        uint32_t const key = ppt1_read32(ppt1_secret) ^ ppt1_read32(ppt1_secret + 4);
        return ppt1_stirred(ppt1_tiny(in, len) ^ key);
    }
    return ppt1_stirred(ppt1_key(56) ^ ppt1_key(64));
}

/* 17 to 240 bytes. */
static inline uint64_t ppt1_hash_medium(const uint8_t *in, size_t len) {
    uint64_t sum = len * PPT1_P64_1;
    if (len <= 128) {
        /* From both ends to the middle. */
        for (size_t i = (len - 1) / 32 + 1; i-- > 0;)
            sum += ppt1_mixed(in + 16 * i, 32 * i) + ppt1_mixed(in + len - 16 * (i + 1), 32 * i + 16);
        return ppt1_finished(sum);
    }
    for (size_t i = 0; i < 8; i++)
        sum += ppt1_mixed(in + 16 * i, 16 * i);
    sum = ppt1_finished(sum);
    for (size_t i = 8; i < len / 16; i++)
        sum += ppt1_mixed(in + 16 * i, 16 * (i - 8) + 3);
    return ppt1_finished(sum + ppt1_mixed(in + len - 16, 136 - 17));
}

/* Adds a stripe to the sums. */
static inline void ppt1_add_stripe(uint64_t *sums, const uint8_t *in, size_t key) {
    for (size_t i = 0; i < 8; i++) {
        uint64_t const word = ppt1_read64(in + 8 * i), keyed = word ^ ppt1_key(key + 8 * i);
        sums[i ^ 1] += word;
        sums[i] += (keyed & UINT64_C(0xffffffff)) * (keyed >> 32);
    }
}

/* More than 240 bytes. */
static inline void ppt1_sum_up(uint64_t *sums, const uint8_t *in, size_t len) {
    size_t const stripes = (len - 1) / PPT1_STRIPE;
    for (size_t stripe = 0; stripe < stripes; stripe++) {
        size_t const of_block = stripe % PPT1_STRIPES_OF_BLOCK;
        ppt1_add_stripe(sums, in + PPT1_STRIPE * stripe, 8 * of_block);
        if (of_block == PPT1_STRIPES_OF_BLOCK - 1)
            for (size_t i = 0; i < 8; i++)
                sums[i] = (sums[i] ^ sums[i] >> 47 ^ ppt1_key(128 + 8 * i)) * PPT1_P32_1;
    }
    ppt1_add_stripe(sums, in + len - PPT1_STRIPE, PPT1_SECRET_LENGTH - PPT1_STRIPE - 7);
}

static inline uint64_t ppt1_merged(const uint64_t *sums, size_t key, uint64_t start) {
    for (size_t i = 0; i < 8; i += 2)
        start += ppt1_folded(sums[i] ^ ppt1_key(key + 8 * i), sums[i + 1] ^ ppt1_key(key + 8 * i + 8));
    return ppt1_finished(start);
}

#define PPT1_SUMS                                                                                  \
    {PPT1_P32_3, PPT1_P64_1, PPT1_P64_2, PPT1_P64_3, PPT1_P64_4, PPT1_P32_2, PPT1_P64_5, PPT1_P32_1}

static inline uint64_t ppt1_hash_long(const uint8_t *in, size_t len) {
    uint64_t sums[8] = PPT1_SUMS;
    ppt1_sum_up(sums, in, len);
    return ppt1_merged(sums, 11, len * PPT1_P64_1);
}

/* The hash of `len` bytes at `from`, for fields of type `hash`. */
static inline uint64_t ppt_hash(const void *from, size_t len) {
    const uint8_t *const in = PPT1_TO(const uint8_t *, from);
    if (len <= 16)
        return ppt1_hash_short(in, len);
    return len <= 240 ? ppt1_hash_medium(in, len) : ppt1_hash_long(in, len);
}

/* The hash of the 8 bytes of a number. */
static inline uint64_t ppt_hash_u64(uint64_t number) { return ppt_hash(&number, sizeof number); }

static inline ppt1_wide ppt1_wide_short(const uint8_t *in, size_t len) {
    ppt1_wide hash = {ppt1_key(64) ^ ppt1_key(72), ppt1_key(80) ^ ppt1_key(88)};
    if (len > 8) {
        uint64_t const first = ppt1_read64(in), last = ppt1_read64(in + len - 8);
        ppt1_wide sum = ppt1_product(first ^ last ^ ppt1_key(32) ^ ppt1_key(40), PPT1_P64_1);
        uint64_t const high = last ^ ppt1_key(48) ^ ppt1_key(56), before_last = len - 1;
        sum.low += before_last << 54;
        sum.high += high + (high & UINT64_C(0xffffffff)) * (PPT1_P32_2 - 1);
        hash = ppt1_product(sum.low ^ __builtin_bswap64(sum.high), PPT1_P64_2);
        hash.high += sum.high * PPT1_P64_2;
        hash.low = ppt1_finished(hash.low);
        hash.high = ppt1_finished(hash.high);
        return hash;
    }
    if (len > 3) {
        uint64_t const word = ppt1_read32(in) + (PPT1_TO(uint64_t, ppt1_read32(in + len - 4)) << 32);
        hash = ppt1_product(word ^ ppt1_key(16) ^ ppt1_key(24), PPT1_P64_1 + (len << 2));
        hash.high += hash.low << 1;
        hash.low ^= hash.high >> 3;
        hash.low = (hash.low ^ hash.low >> 35) * PPT1_MIX_2;
        hash.low ^= hash.low >> 28;
        hash.high = ppt1_finished(hash.high);
        return hash;
    }
    if (len > 0) {
        uint32_t const tiny = ppt1_tiny(in, len), turned = __builtin_bswap32(tiny);
        hash.low = tiny ^ (ppt1_read32(ppt1_secret) ^ ppt1_read32(ppt1_secret + 4));
        hash.high = (turned << 13 | turned >> 19) ^
                    (ppt1_read32(ppt1_secret + 8) ^ ppt1_read32(ppt1_secret + 12));
    }
    hash.low = ppt1_stirred(hash.low);
    hash.high = ppt1_stirred(hash.high);
    return hash;
}

static inline void ppt1_mix_two(ppt1_wide *sum, const uint8_t *a, const uint8_t *b, size_t key) {
    sum->low = (sum->low + ppt1_mixed(a, key)) ^ (ppt1_read64(b) + ppt1_read64(b + 8));
    sum->high = (sum->high + ppt1_mixed(b, key + 16)) ^ (ppt1_read64(a) + ppt1_read64(a + 8));
}

static inline ppt1_wide ppt1_wide_medium(const uint8_t *in, size_t len) {
    ppt1_wide sum = {len * PPT1_P64_1, 0}, hash;
    if (len <= 128) {
        for (size_t i = (len - 1) / 32 + 1; i-- > 0;)
            ppt1_mix_two(&sum, in + 16 * i, in + len - 16 * (i + 1), 32 * i);
    } else {
        for (size_t i = 0; i < 128; i += 32)
            ppt1_mix_two(&sum, in + i, in + i + 16, i);
        sum.low = ppt1_finished(sum.low);
        sum.high = ppt1_finished(sum.high);
        for (size_t i = 128; i + 32 <= len; i += 32)
            ppt1_mix_two(&sum, in + i, in + i + 16, 3 + i - 128);
        ppt1_mix_two(&sum, in + len - 16, in + len - 32, 136 - 17 - 16);
    }
    hash.low = ppt1_finished(sum.low + sum.high);
    hash.high = UINT64_C(0) - ppt1_finished(sum.low * PPT1_P64_1 + sum.high * PPT1_P64_4 + len * PPT1_P64_2);
    return hash;
}

static inline ppt1_wide ppt1_wide_long(const uint8_t *in, size_t len) {
    uint64_t sums[8] = PPT1_SUMS;
    ppt1_wide hash;
    ppt1_sum_up(sums, in, len);
    hash.low = ppt1_merged(sums, 11, len * PPT1_P64_1);
    hash.high = ppt1_merged(sums, PPT1_SECRET_LENGTH - PPT1_STRIPE - 11, ~(len * PPT1_P64_2));
    return hash;
}

/* The hash of `len` bytes at `from`, for fields of type `hash128`. */
static inline ppt_hash128_t ppt_hash128(const void *from, size_t len) {
    const uint8_t *const in = PPT1_TO(const uint8_t *, from);
    ppt1_wide const hash = len <= 16    ? ppt1_wide_short(in, len)
                           : len <= 240 ? ppt1_wide_medium(in, len)
                                        : ppt1_wide_long(in, len);
    uint64_t const low = __builtin_bswap64(hash.low), high = __builtin_bswap64(hash.high);
    ppt_hash128_t bytes;
    memcpy(bytes.bytes, &high, sizeof high);
    memcpy(bytes.bytes + 8, &low, sizeof low);
    return bytes;
}

/* The same into a field: `ppt_hash128_to(f.id, from, len)`. */
static inline void ppt_hash128_to(uint8_t *field, const void *from, size_t len) {
    ppt_hash128_t const hash = ppt_hash128(from, len);
    memcpy(field, hash.bytes, sizeof hash.bytes);
}

#ifdef __cplusplus
}
#endif
#endif
