/* Calls chains of functions, most of which are static, and prints "done" after as many seconds of CPU time
 * as a line of stdin says. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ALL(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#define DECLARE(n) static unsigned link_##n(unsigned x, int depth);
ALL(DECLARE)

static __attribute__((noinline)) unsigned leaf(unsigned x) {
    unsigned sum = 0;
    for (int step = 0; step < 2000; step++) sum ^= x = x * 1103515245 + 12345;
    return sum;
}

__attribute__((noinline)) unsigned global_leaf(unsigned x) {
    return leaf(x) + leaf(x + 1);
}

typedef unsigned link(unsigned, int);
static link *const links[] = {link_0, link_1, link_2, link_3, link_4, link_5, link_6, link_7};

#define DEFINE(n)                                                                   \
    static __attribute__((noinline)) unsigned link_##n(unsigned x, int depth) {     \
        x = x * 2654435761u + n;                                                    \
        return (depth ? links[x >> 29](x, depth - 1) : global_leaf(x)) + n;          \
    }
ALL(DEFINE)

static double cpu_seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

int main(void) {
    char line[32];
    unsigned sum = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        double end = cpu_seconds() + atof(line);
        while (cpu_seconds() < end)
            for (unsigned each = 0; each < 100; each++) sum += link_0(sum + each, 40);
        printf("done %u\n", sum);
    }
    return 0;
}
