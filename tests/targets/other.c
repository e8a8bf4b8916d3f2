/* A program without ppt whose data lies where that of another may have been: says "covers FROM TO",
 * and "intact" or "changed" at every line of stdin. */
#include <stdio.h>
#include <string.h>

#define BYTES (1 << 20)
static unsigned char data[BYTES] = {1};

int main(void) {
    char line[64];
    memset(data, 0xa5, sizeof data);
    printf("covers %p %p\n", (void *)data, (void *)(data + BYTES));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        int changed = 0;
        for (int i = 0; i < BYTES; i++)
            changed |= data[i] != 0xa5;
        puts(changed ? "changed" : "intact");
        fflush(stdout);
    }
    return 0;
}
