#include "tsc.hpp"

static int scopes(uint32_t who) {
    ppt::tsc::tsc::scope s([&](auto &f) { f.who = who; });
    s->real = ppt::tsc::now_realtime();
    return 0;
}

int main() {
    ppt::tsc::tsc::write([](auto &f) {
        f.work_start = f.work_end = f.times[1] = ppt::tsc::now();
        f.mono = ppt::tsc::now_monotonic();
    });
    ppt::tsc::mark::write([](auto &f) { f.when = ppt::tsc::now(); });
    return scopes(1) + static_cast<int>(ppt::tsc::now());
}
