/* ---- ppt for Go: the part that is the same in every package -------------------------------- */

#define PPTGO_NOW INT64_MIN
#define PPT_GO __attribute__((unused)) static inline

#if PPT1_ENABLED
/* Where Go reads the control page, in words. */
PPT1_ASSERT(__builtin_offsetof(ppt1_control, gate) == 0, "the gate");
PPT1_ASSERT(__builtin_offsetof(ppt1_control, claim) + 8 * PPT1_CLAIM_NONCE == 8 * 13, "the claim");
PPT1_ASSERT(__builtin_offsetof(ppt1_control, disabled) == 8 * 20, "what a session does not want");
PPT1_ASSERT(__builtin_offsetof(ppt1_disabled, bits) == 8, "the bits of it");
#endif
