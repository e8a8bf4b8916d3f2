// errands_main THREADS ROUNDS: errands_main.c in C++.
#include "errands.hpp"
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

using namespace ppt::errands;

static int threads, rounds, begun;
static std::mutex mutex;
static std::condition_variable all_have_begun;

static uint64_t id(int thread, int i) {
    return static_cast<uint64_t>(thread) << 32 | static_cast<unsigned>(i);
}

static void name(visit &f, int thread, int i) {
    char text[32] = "";
    std::snprintf(text, sizeof text, "%d-%d", thread, i);
    std::memcpy(f.name, text, sizeof f.name);
}

static void take_in(int thread, int i) {
    errand::begin([&](auto &f) {
        f.id = id(thread, i);
        f.thread = thread;
        f.verb = i % 2 ? Verb::PUT : Verb::GET;
    });
    visit::begin([&](visit &f) {
        name(f, thread, i);
        f.thread = thread;
        f.when = 1000 + i;
    });
    leg::step(leg::Step::leave, [&](auto &f) {
        f.id = id(thread, i);
        f.thread = thread;
    });
    // Abandoned.
    errand::begin([&](auto &) { return false; });
}

static void done(int thread, int of, int i) {
    for (LegStep step : {LegStep::pass_, LegStep::arrive})
        leg::step(step, [&](leg &f) {
            f.id = id(of, i);
            f.thread = thread;
        });
    visit::end([&](visit &f) {
        name(f, of, i);
        f.thread = thread;
        f.when = 2000 + i;
    });
    errand::end([&](errand::ppt_end &f) {
        f.bytes = static_cast<unsigned>(i) * 7;
        f.thread = thread;
        f.id = id(of, i);
    });
}

static void work(int thread) {
    for (int i = 0; i < rounds; i++)
        take_in(thread, i);
    {
        std::unique_lock<std::mutex> lock(mutex);
        begun++;
        all_have_begun.notify_all();
        all_have_begun.wait(lock, [] { return begun == threads; });
    }
    for (int i = 0; i < rounds; i++)
        done(thread, (thread + threads - 1) % threads, i);
    idle::write([&](auto &f) { f.thread = thread; });
}

int main(int argc, char **argv) {
    threads = argc > 1 ? std::atoi(argv[1]) : 1;
    rounds = argc > 2 ? std::atoi(argv[2]) : 1000;
    std::puts("ready");
    std::fflush(stdout);
    if (std::getchar() == EOF)
        return 1;
    std::vector<std::thread> crew;
    for (int thread = 0; thread < threads; thread++)
        crew.emplace_back([=] { work(thread); });
    for (auto &it : crew)
        it.join();
    std::printf("written %d\n", threads * (7 * rounds + 1));
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
}
