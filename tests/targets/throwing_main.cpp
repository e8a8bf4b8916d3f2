// throwing: an exception passes `thrower` and `between` for each line that says so. Each line is answered.
#include <cstdio>
#include <cstring>

extern "C" __attribute__((noinline)) long thrower(long number) {
    if (number == 1)
        throw 7;
    return number;
}

extern "C" __attribute__((noinline)) long between(long number) {
    long got = thrower(number);
    asm volatile("" ::: "memory");
    return got + 1;
}

int main() {
    char line[64];
    std::puts("ready");
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin)) {
        try {
            std::printf("done %ld\n", between(std::strncmp(line, "throw", 5) == 0));
        } catch (int what) {
            std::printf("caught %d\n", what);
        }
        std::fflush(stdout);
    }
}
