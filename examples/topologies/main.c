/* Three nodes share a scene: `nodes mesh|local|remote MESSAGES`. Haptics and physics change it and tell the
 * others; graphics draws it. Each node is a process, with a thread for each connection, and a loop with a rate
 * of its own. Messages go from each node to each other one (mesh), or through a router (local), which may be
 * far away (remote): then a relay holds each message for 3 ms, there and back.
 *
 * Physics creates MESSAGES, and haptics twice as many. A node ends when it has all messages of the others. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nodes.h"

enum { HAPTICS, PHYSICS, GRAPHICS, NODES, ROUTER = NODES, RELAY, PROCESSES };

#define US 1000L
#define MS 1000000L
#define DELAY (3 * MS) /* of the relay, one way */
#define COPYING (100 * US)
#define PROCESSING (100 * US)

static const char *const names[] = {"haptics", "physics", "graphics", "router", "relay"};
/* No multiples of each other: their phases drift, so that none of them counts. */
static const long periods[NODES] = {4900 * US, 9700 * US, 1000 * MS / 60};

struct message { uint32_t origin, number; int64_t sent; };

/* What both ends of a connection know of a copy: the message, and who gets it. */
static uint64_t copy_of(struct message it, int to) {
    uint32_t words[] = {it.origin, it.number, (uint32_t)to};
    return ppt_hash(words, sizeof words);
}

/* links[i][j] is the socket that i has to j, or 0. */
static int links[PROCESSES][PROCESSES], far_links[PROCESSES][PROCESSES];
static int self;
static long counts[NODES];

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * (int64_t)(1000 * MS) + time.tv_nsec;
}

static void pause_until(int64_t ns) {
    struct timespec time = {ns / (1000 * MS), ns % (1000 * MS)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void works_for(long ns) { pause_until(now() + ns); }

static void must(int holds, const char *what) {
    if (!holds) {
        perror(what);
        exit(1);
    }
}

/* ---- a node ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct message *queue;
static long put, got;

static void *network(void *socket) {
    struct message it;
    while (recv(*(int *)socket, &it, sizeof it, 0) == sizeof it) {
        PPT_WRITE_RECEIVED(f) { f.copy = copy_of(it, self); f.node = self; }
        pthread_mutex_lock(&lock);
        queue[put++] = it;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void create(uint32_t number) {
    struct message it = {(uint32_t)self, number, 0};
    PPT_WRITE_CREATED(f) { f.message = copy_of(it, self); f.node = self; }
    for (int to = 0; to <= ROUTER; to++) {
        if (links[self][to] == 0)
            continue;
        works_for(COPYING);
        PPT_WRITE_SENT(f) { f.message = copy_of(it, self); f.copy = copy_of(it, to); f.node = self; }
        it.sent = now();
        must(send(links[self][to], &it, sizeof it, 0) == sizeof it, "send");
    }
}

static void node(void) {
    long expected = counts[HAPTICS] + counts[PHYSICS] - counts[self], created = 0;
    queue = calloc((size_t)expected + 1, sizeof *queue);
    must(queue != NULL, "calloc");
    for (int from = 0; from <= ROUTER; from++) {
        pthread_t thread;
        if (links[self][from] != 0)
            must(pthread_create(&thread, NULL, network, &links[self][from]) == 0, "pthread_create");
    }
    for (int64_t pass = now(); created < counts[self] || got < expected; pause_until(pass += periods[self])) {
        pthread_mutex_lock(&lock);
        long until = put;
        pthread_mutex_unlock(&lock);
        for (; got < until; got++) {
            uint64_t copy = copy_of(queue[got], self);
            PPT_WRITE_TAKEN(f) { f.copy = copy; f.node = self; }
            works_for(PROCESSING);
            PPT_WRITE_PROCESSED(f) { f.copy = copy; f.node = self; }
        }
        if (created < counts[self])
            create((uint32_t)++created);
    }
}

/* ---- the router, and the relay before it: a thread for each socket that they read ---- */

static void *route(void *link) {
    int from = (int)((int *)link - links[self]);
    struct message it;
    while (recv(links[self][from], &it, sizeof it, 0) == sizeof it) {
        for (int to = 0; to < NODES; to++) {
            if (to == from)
                continue;
            works_for(COPYING);
            PPT_WRITE_ROUTED(f) { f.copy = copy_of(it, ROUTER); f.next = copy_of(it, to); }
            it.sent = now();
            must(send(links[self][to], &it, sizeof it, 0) == sizeof it, "send");
        }
    }
    return NULL;
}

struct way { int from, to; };

static void *relay(void *way) {
    const struct way *its = way;
    struct message it;
    while (recv(its->from, &it, sizeof it, 0) == sizeof it) {
        pause_until(it.sent + DELAY);
        must(send(its->to, &it, sizeof it, 0) == sizeof it, "send");
    }
    shutdown(its->to, SHUT_WR);
    return NULL;
}

static void passes_on(void) {
    pthread_t threads[2 * NODES];
    struct way ways[2 * NODES];
    int count = 0;
    for (int of = 0; of < NODES; of++) {
        int near = links[self][of], far = far_links[self][of];
        ways[count] = (struct way){near, far};
        if (self == ROUTER) {
            must(pthread_create(&threads[count++], NULL, route, &links[self][of]) == 0, "pthread_create");
            continue;
        }
        must(pthread_create(&threads[count], NULL, relay, &ways[count]) == 0, "pthread_create");
        count++;
        ways[count] = (struct way){far, near};
        must(pthread_create(&threads[count], NULL, relay, &ways[count]) == 0, "pthread_create");
        count++;
    }
    while (count > 0)
        pthread_join(threads[--count], NULL);
}

/* ---- all of them ---- */

static void connects(int *one, int *other) {
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
    *one = ends[0];
    *other = ends[1];
}

int main(int argc, char **argv) {
    int is_mesh = argc == 3 && strcmp(argv[1], "mesh") == 0;
    int is_remote = argc == 3 && strcmp(argv[1], "remote") == 0;
    long messages = argc == 3 ? atol(argv[2]) : 0;
    if (messages < 1 || messages > 1000000 || !(is_mesh || is_remote || strcmp(argv[1], "local") == 0)) {
        fputs("usage: nodes mesh|local|remote MESSAGES\n", stderr);
        return 2;
    }
    counts[HAPTICS] = 2 * messages;
    counts[PHYSICS] = messages;
    for (int of = 0; of < NODES; of++) {
        for (int to = of + 1; is_mesh && to < NODES; to++)
            connects(&links[of][to], &links[to][of]);
        if (is_remote) {
            connects(&links[of][ROUTER], &links[RELAY][of]);
            connects(&far_links[RELAY][of], &links[ROUTER][of]);
        } else if (!is_mesh) {
            connects(&links[of][ROUTER], &links[ROUTER][of]);
        }
    }
    int processes = is_mesh ? NODES : is_remote ? PROCESSES : PROCESSES - 1;
    for (self = 0; self < processes; self++) {
        pid_t child = fork();
        must(child >= 0, "fork");
        if (child != 0)
            continue;
        prctl(PR_SET_NAME, names[self]);
        for (int of = 0; of < PROCESSES; of++)
            for (int to = 0; of != self && to < PROCESSES; to++) {
                close(links[of][to] > 0 ? links[of][to] : -1);
                close(far_links[of][to] > 0 ? far_links[of][to] : -1);
            }
        self < NODES ? node() : passes_on();
        return 0;
    }
    for (int of = 0; of < PROCESSES; of++)
        for (int to = 0; to < PROCESSES; to++) {
            close(links[of][to] > 0 ? links[of][to] : -1);
            close(far_links[of][to] > 0 ? far_links[of][to] : -1);
        }
    int failed = 0, status;
    while (wait(&status) > 0)
        failed |= status != 0;
    printf("created %ld\nprocessed %ld\n", 3 * messages, 6 * messages);
    return failed;
}
