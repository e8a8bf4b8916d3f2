#include "spans.hpp"

namespace net = ppt::spans;

static void begin(uint64_t id) {
    net::request::begin([&](auto &f) { f.id = id; });
}

static void end(uint64_t id) {
    net::request::end([&](net::request &f) {
        f.id = id;
        f.status = 200;
        return f.id != 0;
    });
}

int main() {
    begin(1);
    begin(2);
    end(1);
    end(2);
    net::job::begin([](auto &f) {
        f.verb = net::Verb::PUT;
        f.due = net::now();
    });
    net::job::end([](auto &f) { f.counts[2] = 1; });
    net::plain::write([](auto &f) { f.when = net::now(); });
    return static_cast<int>(net::now_tsc());
}
