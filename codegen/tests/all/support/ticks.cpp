#include "ticks.hpp"

namespace ticks = ppt::ticks;

int main() {
    ticks::ticks::write([](auto &f) { f.work_end = f.times[1] = ticks::now(); });
    ticks::ticks::scope scope;
    scope->real = ticks::now_realtime();
    return static_cast<int>(ticks::now());
}
