// users.c: the load: N simulated users of the server, each with a UDP socket of its own.
//
// Users log in at times spread over a ramp and from then on act ten times a second: read what has
// arrived, decide where to go, send an UPDATE. Most follow the crowd: they run to the hot spot of the
// moment, stay till the show is over and move on. The others wander, and leave sooner where it is
// packed. So the users are now gathered, now strung out on the way, and the server's simulation step
// costs more or less accordingly.
//
//     users [--server A] --port P [--users N] [--ramp S] [--seconds N] [--seed N]
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "protocol.h"
#ifdef POINTS
#include "points.h"
#else
#define UPDATE_SENT(u, number)
#define STATE_RECEIVED(u, step)
#define ENDED(passes, updates, states)
#endif

static const int64_t NS_PER_S = 1000000000;
static const int64_t PERIOD = 100000000;     // ns between the updates of a user: 10 Hz
static const int64_t JITTER = 8000000;       // ns: an update is sent up to this much late
static const int64_t SHOW = 12;              // seconds until another hot spot is the one to be at
static const int64_t PATIENCE = 3;           // seconds without a STATE before logging in again
static const int64_t GRACE = 2;              // seconds that the server may take to start
static const int64_t LOGOUT_PAUSE = 1000000; // ns between logouts: a burst would overrun the server

static const float hot_spots[][3] = {{104, 104, 8}, {168, 120, 8}, {120, 168, 24}}; // metres
enum { HOT_SPOTS = sizeof hot_spots / sizeof hot_spots[0] };

struct user {
    int fd;
    bool logged_in;
    uint32_t nonce;
    int id;               // from here on: as the server said
    uint32_t session;
    float at[3];          // metres
    int company;
    uint32_t updates;     // sent: the number of the last one
    float target[3];
    bool follows;         // goes where the show is
    int64_t stay_until;   // 0: still on the way
    int64_t heard;        // last STATE or WELCOME
    int64_t period_start; // the user's own clock: PERIOD by PERIOD from its login
    int64_t due;          // when it acts in this period
};

static const char *server_host = "127.0.0.1";
static int port, count = 70;
static struct user *users;
static long logins, present, updates, states, logouts;
static long written; // updates, sent or not
static uint64_t random_state;
static bool announced, server_gone;
static int64_t started;
static volatile sig_atomic_t stopping;

static void stop(int signal) {
    (void)signal;
    stopping = 1;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void sleep_until(int64_t when) {
    struct timespec t = {when / NS_PER_S, when % NS_PER_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR && !stopping) {
    }
}

static uint32_t random32(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static float random_between(float low, float high) {
    return low + (high - low) * ((float)(random32() >> 8) / (float)(1 << 24));
}

// ---- one user -----------------------------------------------------------------------------------

// A connected socket reports a port that nobody listens on; other losses are UDP's daily bread.
static void notice_error(void) {
    if (errno == ECONNREFUSED && !server_gone && now_ns() - started > GRACE * NS_PER_S) {
        fprintf(stderr, "users: no server on %s:%d\n", server_host, port);
        server_gone = true;
        stopping = 1;
    }
}

static bool send_message(const struct user *u, struct message m) {
    uint8_t packet[MAX_MESSAGE_BYTES];
    m.nonce = u->nonce;
    m.user = u->id;
    m.session = u->session;
    if (send(u->fd, packet, write_message(packet, &m), 0) >= 0)
        return true;
    notice_error();
    return false;
}

static void welcome(struct user *u, const struct message *m, int64_t now) {
    u->logged_in = true;
    u->id = m->user;
    u->session = m->session;
    u->heard = now;
    u->stay_until = now; // choose a target at once
    logins++;
    if (++present == count && !announced) {
        announced = true;
        printf("%d users logged in\n", count);
        fflush(stdout);
    }
}

static void read_packets(struct user *u, int64_t now) {
    uint8_t packet[MAX_MESSAGE_BYTES + 1]; // one more: an overlong packet has a wrong length
    for (;;) {
        ssize_t length = recv(u->fd, packet, sizeof packet, 0);
        if (length < 0) {
            notice_error();
            return;
        }
        struct message m;
        struct state s;
        if (read_message(packet, (size_t)length, &m)) {
            if (m.kind == WELCOME && m.nonce == u->nonce && !u->logged_in)
                welcome(u, &m, now);
        } else if (read_state(packet, (size_t)length, &s) && s.avatars[0].user == u->id) {
            STATE_RECEIVED(u, s.step);
            states++;
            u->heard = now;
            u->company = s.company;
            for (int i = 0; i < 3; i++)
                u->at[i] = s.avatars[0].at[i] / 100.0f;
        }
    }
}

static void choose_target(struct user *u, int64_t now) {
    int show = (int)(now / NS_PER_S / SHOW % HOT_SPOTS);
    u->follows = random_between(0, 1) < 0.7f;
    int spot = u->follows ? show : (int)(random32() % (HOT_SPOTS + 1)); // the last one: nowhere
    for (int i = 0; i < 3; i++)
        u->target[i] = spot < HOT_SPOTS ? hot_spots[spot][i] + random_between(-6, 6)
                                        : random_between(0, i < 2 ? WORLD_SIZE : WORLD_HEIGHT);
    u->stay_until = 0;
}

static int64_t choose_stay(const struct user *u, int64_t now) {
    if (!u->follows)
        return now + (int64_t)(random_between(2, 8) / (1 + (float)u->company / 50) * 1e9f);
    int64_t show_ends = (now / NS_PER_S / SHOW + 1) * SHOW * NS_PER_S;
    return show_ends + (int64_t)(random_between(0, 4) * 1e9f); // they do not leave as one
}

static void steer(struct user *u, int64_t now, int16_t wanted[3]) {
    if (u->stay_until && now >= u->stay_until)
        choose_target(u, now);
    float way[3], distance = 0;
    for (int i = 0; i < 3; i++) {
        way[i] = u->target[i] - u->at[i];
        // Only the plane counts: the ground may keep an avatar above its target.
        if (i < 2)
            distance += way[i] * way[i];
    }
    distance = sqrtf(distance);
    if (distance < 2 && !u->stay_until)
        u->stay_until = choose_stay(u, now);
    float speed = u->stay_until ? 1 : MAX_SPEED; // those who stay shuffle about
    for (int i = 0; i < 3; i++) {
        float v = u->stay_until ? random_between(-1, 1) : way[i] / fmaxf(distance, 1);
        wanted[i] = (int16_t)(fmaxf(fminf(v, 1), -1) * speed * 100);
    }
}

static void act(struct user *u, int64_t now) {
    read_packets(u, now);
    if (u->logged_in && now - u->heard > PATIENCE * NS_PER_S) {
        u->logged_in = false; // the server forgot us: ask again
        present--;
    }
    if (!u->logged_in) {
        send_message(u, (struct message){.kind = LOGIN});
    } else {
        struct message update = {.kind = UPDATE, .number = u->updates + 1};
        steer(u, now, update.wanted);
        UPDATE_SENT(u, update.number);
        written++;
        if (send_message(u, update)) {
            u->updates++;
            updates++;
        }
    }
    // The clock of a user does not drift: jitter delays one update, not those after it. A user that
    // was held up skips what it missed, as a client would, and sends no burst.
    do
        u->period_start += PERIOD;
    while (u->period_start + PERIOD <= now);
    u->due = u->period_start + (int64_t)(random_between(0, 1) * random_between(0, 1) * (float)JITTER);
}

// ---- all users ----------------------------------------------------------------------------------

static struct user *next_user(void) {
    struct user *next = &users[0];
    for (int i = 1; i < count; i++)
        if (users[i].due < next->due)
            next = &users[i];
    return next;
}

static void log_out_all(void) {
    for (int i = 0; i < count && !server_gone; i++) {
        read_packets(&users[i], now_ns()); // perhaps its WELCOME
        if (!users[i].logged_in)
            continue;
        if (send_message(&users[i], (struct message){.kind = LOGOUT}))
            logouts++;
        nanosleep(&(struct timespec){0, LOGOUT_PAUSE}, NULL);
    }
}

static int open_socket(void) {
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, server_host, &server.sin_addr) != 1) {
        fprintf(stderr, "users: expected an address such as 127.0.0.1, not '%s'\n", server_host);
        exit(2);
    }
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
        connect(fd, (struct sockaddr *)&server, sizeof server) < 0) {
        perror("users: cannot open a socket");
        exit(1);
    }
    return fd;
}

static void usage(FILE *out) {
    fputs("usage: users [--server A] --port P [--users N] [--ramp S] [--seconds N] [--seed N]\n"
          "  --server A   the server's address (default 127.0.0.1)\n"
          "  --port P     its UDP port\n"
          "  --users N    simulated users (default 70)\n"
          "  --ramp S     log them in over S seconds (default 2)\n"
          "  --seconds N  log out after N seconds (default: on SIGINT or SIGTERM)\n"
          "  --seed N     choose other times and ways (default 1)\n",
          out);
}

static long number(const char *text, long low, long high) {
    char *end;
    errno = 0;
    long value = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || value < low || value > high) {
        fprintf(stderr, "users: expected a number from %ld to %ld, not '%s'\n", low, high,
                text ? text : "");
        usage(stderr);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    int64_t ramp = 2;
    unsigned seconds = 0;
    random_state = 1;
    for (int i = 1; i < argc; i += 2) {
        if (!strcmp(argv[i], "--server") && argv[i + 1])
            server_host = argv[i + 1];
        else if (!strcmp(argv[i], "--port"))
            port = (int)number(argv[i + 1], 1, 65535);
        else if (!strcmp(argv[i], "--users"))
            count = (int)number(argv[i + 1], 1, MAX_USERS);
        else if (!strcmp(argv[i], "--ramp"))
            ramp = number(argv[i + 1], 0, 3600);
        else if (!strcmp(argv[i], "--seconds"))
            seconds = (unsigned)number(argv[i + 1], 1, 86400);
        else if (!strcmp(argv[i], "--seed"))
            random_state = (uint64_t)number(argv[i + 1], 0, INT32_MAX);
        else {
            bool help = !strcmp(argv[i], "--help");
            usage(help ? stdout : stderr);
            return help ? 0 : 2;
        }
    }
    if (!port) {
        usage(stderr);
        return 2;
    }
    struct sigaction action = {.sa_handler = stop}; // no SA_RESTART: a signal must end the sleep
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGALRM, &action, NULL);

    // A descriptor a user: more than a lowered soft limit may allow.
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    users = calloc((size_t)count, sizeof *users);
    if (!users) {
        perror("users");
        return 1;
    }
    started = now_ns();
    for (int i = 0; i < count; i++) {
        struct user *u = &users[i];
        u->fd = open_socket();
        u->nonce = random32() ^ (uint32_t)started; // another run may get the same port
        float share = ((float)i + random_between(0, 1)) / (float)count;
        u->due = u->period_start = started + (int64_t)(share * (float)(ramp * NS_PER_S));
    }
    alarm(seconds); // 0: none

    while (!stopping) {
        struct user *u = next_user();
        sleep_until(u->due);
        if (!stopping)
            act(u, now_ns());
    }

    log_out_all();
    ENDED(0, written, states);
    printf("logins %ld updates %ld states %ld logouts %ld\n", logins, updates, states, logouts);
    for (int i = 0; i < count; i++)
        close(users[i].fd);
    free(users);
    return server_gone ? 1 : 0;
}
