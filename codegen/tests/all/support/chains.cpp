#include "chains.hpp"

namespace chains = ppt::chains;

static void pass(uint64_t n, chains::EncodeStep step) {
    chains::encode::step(step, [&](auto &f) { f.n = n; });
}

int main() {
    chains::encode::step(chains::encode::Step::start, [](chains::encode &f) {
        f.n = 1;
        f.size = 960;
        return f.ppt_step == chains::encode::Step::start;
    });
    for (auto step : {chains::encode::Step::dsp, chains::EncodeStep::recv})
        pass(1, step);
    chains::job::step(chains::job::Step::DONE, [](auto &f) { f.when = chains::now(); });
    return chains::on();
}
