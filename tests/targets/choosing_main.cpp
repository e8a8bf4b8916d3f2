/* choosing_main.c in C++. */
#include "choosing.hpp"
#include <cstdio>
#include <cstdlib>

namespace choosing = ppt::choosing;

static uint64_t n, ran[7];
enum { PLAIN, STAMPED, JOB, LEG, SLOT, BYTES, WAITS };

static uint64_t counted(int what) {
    ran[what]++;
    return n;
}

static void one() {
    n++;
    choosing::plain::write([](auto &f) { f.n = counted(PLAIN); });
    choosing::stamped::write([](auto &f) {
        f.n = counted(STAMPED);
        f.when = choosing::now();
    });
    choosing::job::begin([](auto &f) { f.id = counted(JOB); });
    choosing::leg::step(choosing::leg::Step::leave, [](auto &f) { f.id = counted(LEG); });
    choosing::leg::step(choosing::leg::Step::arrive, [](auto &f) { f.id = counted(LEG); });
    choosing::job::end([](auto &f) { f.id = counted(JOB); });
    {
        choosing::slot::scope scope([](auto &) { counted(SLOT); });
    }
    /* The argument is evaluated, as of any function. */
    choosing::bytes::add(1);
    choosing::waits::observe(5);
}

int main() {
    char line[64];
    std::puts("ready");
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        for (int rounds = std::atoi(line); rounds > 0; rounds--)
            one();
        std::printf("ran");
        for (uint64_t &it : ran) {
            std::printf(" %lu", static_cast<unsigned long>(it));
            it = 0;
        }
        std::puts("");
        std::fflush(stdout);
    }
    return 0;
}
