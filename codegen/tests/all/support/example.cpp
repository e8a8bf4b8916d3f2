#include "example.hpp"

using ppt::example::example;

int main() {
    example::write([](example &f) {
        f.kind = 1;
        f.who = 2;
        f.start = ppt::example::now();
        f.sleep = f.end = timeval{1, 2};
    });
    example::write([](auto &f) { return f.who == 0; });
    ppt::example::prepare();
    return ppt::example::on();
}
