#include "halves.hpp"

namespace db = ppt::halves;

int main() {
    db::stmt::begin([](auto &f) {
        f.id = 1;
        f.verb = db::Verb::SELECT;
        f.pages = 3;
    });
    db::stmt::end([](db::stmt::ppt_end &f) {
        f.id = 1;
        f.rows = 7;
        f.rc = -1;
        f.plan_end = db::now();
        return f.rows > 0;
    });
    db::connection::begin([](auto &f) { f.port = 5432; });
    db::connection::end([](auto &f) { f.port = 5432; });
    return static_cast<int>(db::now());
}
