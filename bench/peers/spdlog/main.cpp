/* spdlog, asynchronous: a queue to one thread that formats and writes. A full queue loses its oldest
 * message (`block`, the default, would make the program wait). It has no message without a time. */
#include "../../commands.h"
#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

static std::shared_ptr<spdlog::async_logger> logger;
static spdlog::async_logger *hot;

static NOINLINE void stamped(uint64_t i) {
    SPDLOG_LOGGER_INFO(hot, "{} {} {} {} {}", (int32_t)i, (int32_t)(i >> 1), i, i, i);
}

LOOP_OVER(stamped)

static void make(spdlog::sink_ptr sink) {
    logger = std::make_shared<spdlog::async_logger>("bench", std::move(sink), spdlog::thread_pool(),
                                                    spdlog::async_overflow_policy::overrun_oldest);
    hot = logger.get();
}

static void on(const char *, const char *file) {
    spdlog::init_thread_pool(spdlog::details::default_async_q_size, 1);
    make(std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
    logger->set_level(spdlog::level::info);
}

static void off() {
    auto pool = spdlog::thread_pool();
    while (pool->queue_size() > 0)
        usleep(1000);
    printf("lost %zu\n", pool->overrun_counter());
    logger->flush();
    pool.reset();
    logger.reset();
    spdlog::shutdown(); /* waits for the thread */
}

int main() {
    static const way ways[] = {{"stamped", stamped_calls, 1 << 20, nullptr}, {nullptr, nullptr, 0, nullptr}};
    spdlog::init_thread_pool(spdlog::details::default_async_q_size, 1);
    make(std::make_shared<spdlog::sinks::basic_file_sink_mt>("/dev/null"));
    logger->set_level(spdlog::level::off);
    return serve(ways, {on, off});
}
