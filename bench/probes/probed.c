/* probed: for each line `FUNCTION NUMBER` of the input, so many calls of it; prints nanoseconds a call. */
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A USDT probe without a semaphore: one nop, and a note of where it is. Its argument is in a register. */
#define MARK(value)                                                                                \
    __asm__ volatile("1: nop\n"                                                                    \
                     ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                       \
                     ".4byte 3f-2f, 5f-4f, 3\n2: .asciz \"stapsdt\"\n3: .balign 4\n"               \
                     "4: .8byte 1b, _.stapsdt.base, 0\n"                                           \
                     ".asciz \"probed\"\n.asciz \"mark\"\n.asciz \"8@%0\"\n5: .balign 4\n"         \
                     ".popsection\n"                                                               \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"       \
                     ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"    \
                     ".size _.stapsdt.base, 1\n.popsection" ::"r"((long)(value)))

/* The kernel imitates the first instruction of this one, */
__asm__(".type pushes, @function\npushes: push %rbx\nlea (%rdi, %rdi), %rax\npop %rbx\nret\n.size pushes, .-pushes");
/* and has the CPU step over the first one of that. */
__asm__(".type steps, @function\nsteps: lea (%rdi, %rdi), %rax\nret\n.size steps, .-steps");
long pushes(long), steps(long);

static __attribute__((noinline)) long marks(long number) {
    MARK(number);
    return number + number;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void) {
    char name[16];
    long calls;
    while (scanf("%15s %ld", name, &calls) == 2) {
        long (*volatile call)(long) =
            strcmp(name, "pushes") == 0 ? pushes : strcmp(name, "steps") == 0 ? steps : marks;
        long sum = 0;
        double start = now();
        for (long i = 0; i < calls; i++)
            sum += call(i);
        printf("%.2f\n", (now() - start) / (double)calls);
        fflush(stdout);
        if (sum != calls * (calls - 1))
            return 1;
    }
    return 0;
}
