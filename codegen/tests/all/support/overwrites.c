/* Comes behind a header, of C or of C++, and the names that the linker knows it by. */
#include <stdio.h>

#ifdef PPT_BEGIN_CAR
typedef pptframe_car_t car;
typedef pptframe_toll_t toll;
typedef pptframe_leg_t leg;
typedef pptframe_gate_t gate;
#else
using namespace ppt::road;
#endif

static uint64_t slots[64];
static ppt1_thread thread = {slots};
static unsigned kind;
static unsigned readings;
ppt1_control CONTROL;

uint64_t STAMP(void) { return ++readings; }

/* At -O0 unused functions are there, and what they call. */
void PREPARE(void) {}
struct timespec CLOCK(int clock) {
    struct timespec t = {clock, 0};
    return t;
}

ppt1_thread *BEGIN(unsigned frame) {
    kind = frame;
    return &thread;
}

void END(ppt1_thread *t) {
    (void)t;
    if (kind == 0) {
        car f;
        memcpy(&f, slots, sizeof f);
        printf("car %d edge %d at %d\n", (int)f.id, (int)f.edge, (int)f.at);
    } else if (kind == 1) {
        toll f;
        memcpy(&f, slots, sizeof f);
        printf("toll %d edge %d when %d\n", (int)f.id, (int)f.edge, (int)f.when);
    } else if (kind == 3) {
        gate f;
        memcpy(&f, slots, sizeof f);
        printf("gate %d at %d\n", (int)f.id, (int)f.at);
    } else {
        leg f;
        memcpy(&f, slots, sizeof f);
        printf("leg %d step %d at %d\n", (int)f.id, (int)f.ppt_step, (int)f.at);
    }
}

int main(void) {
    car c;
    toll o;
    leg l;
    gate g;
    memset(&c, 0, sizeof c);
    memset(&o, 0, sizeof o);
    memset(&l, 0, sizeof l);
    memset(&g, 0, sizeof g);
    c.id = 1;
    o.id = 2;
    o.when = 70;
    l.id = 3;
    g.id = 5;
    CONTROL.gate = 1;
#ifdef PPT_BEGIN_CAR
    PPT_BEGIN_CAR(f) f = c;
    PPT_END_CAR(f) f = c;
    PPT_END_CAR(f) {
        readings += 10;
        memset(&f, 255, sizeof f);
        f.id = 4;
    }
    PPT_END_CAR(f) {
        f = c;
        break;
    }
    PPT_END_TOLL(f) f = o;
    PPT_STEP_LEG(DONE, f) f = l;
    PPT_WRITE_GATE(f) {
        readings += 10;
        f = g;
    }
#else
    car::begin([&](auto &f) { f = c; });
    car::end([&](auto &f) { f = c; });
    car::end([&](auto &f) {
        readings += 10;
        memset(&f, 255, sizeof f);
        f.id = 4;
    });
    car::end([&](auto &f) {
        f = c;
        return false;
    });
    toll::end([&](auto &f) { f = o; });
    leg::step(leg::Step::done, [&](auto &f) { f = l; });
    gate::write([&](auto &f) {
        readings += 10;
        f = g;
    });
#endif
    printf("%u readings\n", readings);
    return 0;
}
