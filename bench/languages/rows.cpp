// The same in C++.
#include "rows.h"
#include "cpp.hpp"

static const char *const names[4] = {"main", "worker-3", "acceptor", "0123456789abcdef"};

void cpp_span(int calls) {
    for (int i = 0; i < calls; i++) {
        ppt::cpp::request::begin([&](auto &f) {
            f.id = static_cast<uint64_t>(i);
            f.kind = i;
            f.who = i >> 1;
            f.a = f.b = static_cast<uint64_t>(i);
        });
        KEEP();
    }
}

void cpp_text(int calls) {
    for (int i = 0; i < calls; i++) {
        ppt::cpp::named::write([&](auto &f) {
            f.kind = i;
            f.who = i >> 1;
            f.a = f.b = static_cast<uint64_t>(i);
            PPT_TEXT(f.name, names[i & 3]);
        });
        KEEP();
    }
}

void cpp_interval(int calls) {
    for (int i = 0; i < calls; i++) {
        uint64_t start = ppt::cpp::now();
        KEEP();
        ppt::cpp::handled::write([&](auto &f) {
            f.kind = i;
            f.who = i >> 1;
            f.a = f.b = static_cast<uint64_t>(i);
            f.handle_start = start;
            f.handle_end = ppt::cpp::now();
        });
        KEEP();
    }
}

void cpp_counter(int calls) {
    for (int i = 0; i < calls; i++) {
        ppt::cpp::bytes_in::add(static_cast<uint64_t>(i));
        KEEP();
    }
}
