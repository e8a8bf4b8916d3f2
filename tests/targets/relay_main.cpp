// relay_main ROUNDS: relay_main.c in C++.
#include "relay.hpp"
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace ppt::relay;

int main(int argc, char **argv) {
    int rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
    std::puts("ready");
    std::fflush(stdout);
    if (std::getchar() == EOF)
        return 1;
    for (int i = 0; i < rounds; i++) {
        auto number = static_cast<unsigned>(i);
        auto text = "message " + std::to_string(i);
        sent::write([&](sent &f) {
            f.id = ppt_hash_u64(number);
            f.when = 1000 + i;
        });
        received::write([&](auto &f) {
            f.id = ppt_hash_u64(number);
            ppt_hash128_to(f.body, text.data(), text.size());
            f.number = number;
        });
        // Abandoned.
        received::write([&](auto &) { return false; });
        passed::write([&](passed &f) {
            f.ticket = number;
            ppt_hash128_to(f.body, text.data(), text.size());
        });
    }
    std::printf("written %d\n", 3 * rounds);
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
}
