#include "everything.hpp"

namespace all = ppt::everything;

/* Ends and steps may be in other functions than begins. */
static void end(uint64_t subject) {
    all::request::end([&](all::request &f) {
        f.subject = subject;
        f.status = 200;
        return f.subject != 0;
    });
}

static void pass(uint64_t n, all::EncodeStep step) {
    all::encode::step(step, [&](auto &f) { f.n = n; });
}

static void spans() {
    all::request::begin([](auto &f) { f.subject = ppt_hash("42", 2); });
    end(1);
    all::task::begin([](auto &f) {
        f.verb = all::Byte::MOST;
        f.due = all::now();
    });
    all::task::end([](auto &f) { f.queue[11] = 'x'; });
    all::stmt::begin([](auto &f) {
        f.id = 1;
        f.verb = all::Byte::NONE;
        f.pages = 3;
    });
    all::stmt::end([](all::stmt::ppt_end &f) {
        f.id = 1;
        f.rows = 7;
        f.rc = -1;
        f.plan_end = all::now();
        return f.rows > 0;
    });
}

static void chains() {
    all::encode::step(all::encode::Step::start, [](all::encode &f) {
        f.n = 1;
        return f.ppt_step == all::encode::Step::start;
    });
    for (auto step : {all::encode::Step::dsp, all::EncodeStep::recv})
        pass(1, step);
    all::piece::step(all::piece::Step::DONE, [](auto &f) { f.when = all::now(); });
}

static void points() {
    all::received::write([](all::received &f) {
        f.id = 7;
        ppt_hash128_to(f.body, "hello", 5);
        f.size = 5;
    });
    /* A fill that returns false abandons the point. Its time is the program's. */
    all::sent::write([](all::sent &f) {
        f.when = all::now();
        return false;
    });
    all::sent::scope scope;
    scope->body[0] = 1;
}

static int scopes(int32_t number) {
    all::scalars::scope s([&](auto &f) { f.i4 = number; });
    s->huge = all::Huge::BEYOND_LONG;
    if (number > 1)
        return 0;
    all::scalars::scope none;
    none->u1 = sizeof(all::scalars);
    none.abandon();
    return 0;
}

int main() {
    for (auto tiny : {all::Tiny::LEAST, all::Tiny::MOST})
        all::scalars::write([&](all::scalars &f) {
            f.tiny = tiny;
            f.work_start = f.work_end = all::now();
            f.place = PPT_ADDR(end);
            f.letter[0] = 'x';
        });
    all::arrays::write([](auto &f) {
        f.f4[2] = 0.5f;
        f.sides[1] = all::Plain::LEAST;
        return f.yes[0];
    });
    all::clocks::write([](auto &f) {
        f.tick = all::now_tsc();
        f.boot = all::now_boottime();
    });
    spans();
    chains();
    points();
    all::bytes_in::add(3);
    all::inflight::add(-1);
    all::queue::observe(9);
    all::prepare();
    return scopes(1) + scopes(2) + all::on();
}
