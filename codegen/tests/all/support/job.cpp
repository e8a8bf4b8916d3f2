#include "job.hpp"

using ppt::job::Kind;

static int scopes(int who) {
    ppt::job::job::scope s([&](auto &f) { f.who = who; });
    s->kind = Kind::UPDATE;
    if (who > 1)
        return 0;
    ppt::job::job::scope none;
    none->bytes = sizeof(ppt::job::job);
    none.abandon();
    return 0;
}

int main() {
    for (Kind kind : {Kind::TIMEOUT, Kind::UPDATE, Kind::LOGIN})
        ppt::job::job::write([&](ppt::job::job &f) {
            f.kind = kind;
            f.who = -1;
            f.handle_start = f.handle_end = ppt::job::now();
            f.bytes = 3;
            f.pos[2] = 0.5f;
            f.name[15] = 'x';
        });
    ppt::job::login::write([](auto &f) {
        f.in_ = true;
        f.when = ppt::job::now();
        return f.who == 0;
    });
    ppt::job::prepare();
    return scopes(1) + scopes(2) + ppt::job::on();
}
