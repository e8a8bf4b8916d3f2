// The block form of block_form.c, in C++.
#include "writer.hpp"

extern "C" __attribute__((noinline)) void block_form_cpp(uint64_t i) {
    ppt::writer::writer::write([&](auto &f) {
        f.kind = static_cast<int>(i);
        f.who = static_cast<int>(i >> 1);
        f.start = static_cast<int64_t>(i);
        f.middle = static_cast<int64_t>(i);
        f.end = static_cast<int64_t>(i);
        f.a = i;
        f.b = i;
        f.c = i;
    });
}

extern "C" __attribute__((noinline)) void add_cpp(uint64_t i) { ppt::writer::seen::add(i); }

extern "C" __attribute__((noinline)) void observe_cpp(uint64_t i) {
    ppt::writer::waits::observe(static_cast<int64_t>(i));
}
