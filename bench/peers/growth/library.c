/* A library with a buffer of its own. */
#include "growth.h"

void growth_frame(unsigned long i);

void growth_frame(unsigned long i) {
    PPT_WRITE_GROWTH(f) {
        f.a = (int32_t)i;
        f.at = ppt_growth_now();
    }
}
