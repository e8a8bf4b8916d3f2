/* values THREADS ROUNDS: values_main.c in C++. */
#include "clocks.hpp"
#include "values.hpp"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

using ppt::clocks::tick;
using ppt::values::every;
using ppt::values::little;
using ppt::values::odd;
using ppt::values::Small;
using ppt::values::Wide;

static timeval tv(int64_t s, int64_t us) { return {s, us}; }

/* At most the array's bytes of a string. */
template <size_t size> static void text(char (&to)[size], const char *from) {
    std::memcpy(to, from, std::min(size, std::strlen(from)));
}

static void one(int thread, int i) {
    every::write([&](auto &f) {
        f.thread = thread;
        f.i = i;
        f.a = static_cast<int8_t>(i * 3);
        f.b = static_cast<uint8_t>(i * 5);
        f.c = static_cast<int16_t>(i * 257);
        f.d = static_cast<uint16_t>(i * 263);
        f.e = -i;
        f.f = 4000000000u + static_cast<uint32_t>(i);
        f.g = INT64_C(-5000000000) * i;
        f.h = UINT64_MAX - static_cast<uint64_t>(i);
        f.x = static_cast<float>(i) * 0.25f;
        f.y = i / 3.0;
        f.even = i % 2 == 0;
        f.took = INT64_C(1000000007) * i;
        f.when = tv(1000000000 + i, i % 1000000);
        f.small = i % 3 == 0 ? Small::NONE : i % 3 == 1 ? Small::SOME : Small{9};
        f.wide = i % 2 == 0 ? Wide::LOW : Wide::HIGH;
        text(f.name, ("t" + std::to_string(thread) + "-" + std::to_string(i)).c_str());
        f.raw[0] = static_cast<uint8_t>(i);
        f.raw[1] = 1;
        f.raw[2] = 2;
        f.raw[3] = 0xff;
        f.three[0] = static_cast<int16_t>(i);
        f.three[1] = static_cast<int16_t>(-i);
        f.three[2] = 7;
        f.pair[0] = i;
        f.pair[1] = -0.5;
        f.stamps[0] = tv(i, 5);
        text(f.text, i % 2 == 0 ? "tab\there, back\\slash, \x1b[31m" : "");
    });
    little::write([&](auto &f) {
        f.thread = thread;
        f.i = i;
        f.n = static_cast<uint16_t>(i * 7);
    });
    odd::write([&](auto &f) {
        using single = std::numeric_limits<float>;
        using twice = std::numeric_limits<double>;
        const float singles[] = {single::quiet_NaN(), single::infinity(), -single::infinity(),
                                 -0.0f, 1e-45f, single::max(), 0.1f, 16777216.0f};
        const double doubles[] = {twice::quiet_NaN(), twice::infinity(), -twice::infinity(),
                                  -0.0, 5e-324, twice::max(), 0.1, 9007199254740992.0};
        f.thread = thread;
        f.i = i;
        f.f = singles[i % 8];
        f.d = doubles[i % 8];
        text(f.cut, "é€");
        text(f.control, "a\tb\n\\\x01");
        f.list[0] = Small::NONE;
        f.list[1] = Small::MANY;
        f.list[2] = static_cast<Small>(i);
        for (int bit = 0; bit < 9; bit++)
            f.flags[bit] = (i >> bit & 1) != 0;
        f.most = UINT64_MAX - static_cast<uint64_t>(thread);
        f.least = INT64_MIN + i;
        f.spans[0] = -i;
        f.spans[1] = INT64_MAX;
        f.at_start = tv(i + 1, 1);
        f.at_end = tv(i + 2, 999999);
    });
    tick::write([&](auto &f) {
        f.thread = thread;
        f.i = i;
        f.real = timespec{i, i % 1000000000};
    });
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    int rounds = argc > 2 ? std::atoi(argv[2]) : 1000;
    std::puts("ready");
    std::fflush(stdout);
    if (std::getchar() == EOF)
        return 1;
    std::vector<std::thread> crew;
    for (int thread = 0; thread < threads; thread++)
        crew.emplace_back([=] {
            for (int i = 0; i < rounds; i++)
                one(thread, i);
        });
    for (auto &it : crew)
        it.join();
    std::printf("written %d\n", 4 * threads * rounds);
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
}
