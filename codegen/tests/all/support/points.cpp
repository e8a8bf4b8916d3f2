#include "points.hpp"

namespace points = ppt::points;

int main() {
    points::received::write([](points::received &f) {
        f.id = ppt_hash("42", 2);
        ppt_hash128_to(f.body, "hello", 5);
        f.bytes = 5;
    });
    /* A fill that returns false abandons the point. */
    points::passed::write([](points::passed &f) {
        f.trace[0] = 1;
        return false;
    });
    /* Its time is the program's. */
    points::sent::write([](points::sent &f) {
        f.ticket = 7;
        f.when = points::now();
    });
    {
        points::sent::scope scope;
        scope->ticket = 8;
    }
    points::plain::write([](points::plain &f) { f.on_its_own = 1; });
    return points::on();
}
