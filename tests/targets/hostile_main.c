/* Calls itself what no terminal should be shown, and writes the same into its frames. */
#define _GNU_SOURCE
#include "hostile.h"
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static const char *const texts[] = {
    "esc \033[31m bell \007",  "line\nfeed\r",      "tab\there",
    "bad \377\300\200 utf",    "c1 \302\233 del \177", "bidi \342\200\256 \342\201\246",
    "quote \" comma , back \\", "cut \342\200",
};

int main(void) {
    unsigned count = sizeof texts / sizeof *texts;
    prctl(PR_SET_NAME, "\033[1m\n\t\377\302\233\342\200\256", 0, 0, 0);
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    for (unsigned n = 0; n < count; n++)
        PPT_WRITE_WORD(f) {
            f.n = n;
            memcpy(f.text, texts[n], strlen(texts[n]));
            memcpy(f.raw, "\033\n\t\377\302\233\0\"", 8);
        }
    printf("written %u\n", count);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
