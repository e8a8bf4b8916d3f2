/* A hand moves, a screen follows, and a camera films the screen: `scene PASSES`. The hand is a process of its
 * own. The screen draws 60 passes a second, always the latest message, with its code; the display shows
 * it two passes later. The camera takes 1,000 samples a second by a clock that is 150 us off. It cannot
 * read a code while the display switches.
 *
 * samples.csv is what the camera read. truth.csv says when each message that was drawn was created (between
 * two times), when the camera first read its code, and in how many samples. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scene.h"

#define MS 1000000
#define PASS (1000 * MS / 60)
#define CODES 1000
#define DISPLAY (2 * PASS)  /* from drawn to shown */
#define SWITCHING (6 * MS)  /* while it cannot be read */
#define CAMERA_OFF 150000   /* of the camera's clock */
#define MOST_PASSES 100000

struct message { uint64_t id; int64_t before, after; };
struct drawn { struct message message; int64_t at; };

static int from_hand;
static atomic_bool over;
static struct message latest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t received;
static struct drawn drawn[MOST_PASSES];

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * (int64_t)(1000 * MS) + time.tv_nsec;
}

static void pause_for(long ns) {
    struct timespec time = {0, ns};
    nanosleep(&time, NULL);
}

/* Until nobody reads any more. */
static void hand(int to_screen) {
    for (struct message it = {1, 0, 0};; it.id++) {
        it.before = now();
        PPT_WRITE_CREATED(f) { f.message = it.id; }
        it.after = now();
        if (write(to_screen, &it, sizeof it) != sizeof it)
            return;
        pause_for(5 * MS);
    }
}

static void *network(void *unused) {
    struct message it;
    while (!atomic_load(&over) && read(from_hand, &it, sizeof it) == sizeof it) {
        PPT_WRITE_RECEIVED(f) { f.message = it.id; }
        pthread_mutex_lock(&lock);
        latest = it;
        received++;
        pthread_mutex_unlock(&lock);
    }
    close(from_hand);
    return unused;
}

/* What the camera sees of `count` drawings, the last of which is shown for one pass. */
static uint64_t film(size_t count) {
    FILE *samples = fopen("samples.csv", "w"), *truth = fopen("truth.csv", "w");
    if (samples == NULL || truth == NULL)
        return 0;
    fputs("Time,Sample,Code\n", samples);
    fputs("code,created_before,created_after,first,samples\n", truth);
    uint64_t all = 0, sample = 0;
    int64_t time = drawn[0].at;
    for (size_t i = 0; i < count; i++) {
        int64_t from = drawn[i].at + DISPLAY + SWITCHING, first = 0, seen = 0;
        int64_t until = (i + 1 < count ? drawn[i + 1].at : drawn[i].at + PASS) + DISPLAY;
        const struct message *it = &drawn[i].message;
        for (; time < until; time += MS, sample++) {
            if (time < from)
                continue;
            int64_t stamp = time + CAMERA_OFF;
            fprintf(samples, "%" PRId64 ".%09" PRId64 ",%" PRIu64 ",%" PRIu64 "\n", stamp / (1000 * MS),
                    stamp % (1000 * MS), sample, it->id % CODES);
            first = seen++ == 0 ? stamp : first;
        }
        if (seen > 0)
            fprintf(truth, "%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", it->id % CODES,
                    it->before, it->after, first, seen);
        all += seen;
    }
    return fclose(samples) == 0 && fclose(truth) == 0 ? all : 0;
}

int main(int argc, char **argv) {
    long passes = argc == 2 ? atol(argv[1]) : 0;
    int ends[2];
    if (passes < 1 || passes > MOST_PASSES || pipe(ends) != 0) {
        fputs("usage: scene PASSES\n", stderr);
        return 2;
    }
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        signal(SIGPIPE, SIG_IGN);
        hand(ends[1]);
        return 0;
    }
    close(ends[1]);
    from_hand = ends[0];
    pthread_t thread;
    if (child < 0 || pthread_create(&thread, NULL, network, NULL) != 0)
        return 1;
    size_t count = 0;
    uint64_t last = 0;
    while (passes > 0) {
        pthread_mutex_lock(&lock);
        struct message it = latest;
        pthread_mutex_unlock(&lock);
        if (it.id != last) {
            passes--;
            PPT_WRITE_PROCESSED(f) { f.message = it.id; f.code = it.id % CODES; }
            drawn[count++] = (struct drawn){it, now()};
            last = it.id;
        }
        pause_for(PASS);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    waitpid(child, NULL, 0);
    printf("received %" PRIu64 "\nprocessed %zu\nsamples %" PRIu64 "\n", received, count, film(count));
    return 0;
}
