/* first FRAMES [HOW]: first_main.c in C++. The first frame comes from a static's constructor; HOW is
 * `wait` or the exit status. */
#include "job.hpp"
#include <cstdio>
#include <cstdlib>
#include <cstring>

using ppt::job::job;
using ppt::job::login;

namespace {
struct Static {
    Static() {
        login::write([](auto &f) { f.who = 0; });
    }
};
const Static early;
} // namespace

int main(int argc, char **argv) {
    int frames = argc > 1 ? std::atoi(argv[1]) : 1;
    for (int who = 1; who < frames; who++) {
        if (who % 2 == 0)
            login::write([&](auto &f) { f.who = who; });
        else
            job::scope{}->who = who;
    }
    std::printf("written %d\n", frames);
    std::fflush(stdout);
    if (argc < 3)
        return 0;
    if (std::strcmp(argv[2], "wait") != 0)
        return std::atoi(argv[2]);
    while (std::getchar() != EOF) {
    }
}
