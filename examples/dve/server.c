// server.c: a small distributed virtual environment whose primary loop is the paper's Figure 3.
//
// Users log in over UDP, send an UPDATE ten times a second and log out. The loop waits for one of
// these events for what is left of 32 ms, then simulates the world one step and sends every user
// its surroundings. Each pass writes one frame: who, what kind, when it slept, started and ended.
//
//     server [--address A] [--port P] [--seconds N]
#define _GNU_SOURCE // ppoll; in POSIX since 2024 only
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "example.h" // the generated header
#include "protocol.h"
#include "world.h"
#ifdef COSTS
#include "measure.h"
#else
#define INPUT_ENDS()
#define SIMULATION_ENDS()
#define OUTPUT_ENDS()
#endif
#ifdef POINTS
#include "points.h"
#else
#define UPDATE_TAKEN(client, user, number)
#define STATE_SENT(client, user, step)
#define ENDED(passes, updates, states)
#endif

enum {
    SILENT_STEPS = 5000 / 32, // a user not heard for 5 s of simulated time is logged out
    STEPS_BETWEEN_ROLL_CALLS = 31, // about a second
};
static const int64_t NS_PER_MS = 1000000;

struct Event {
    enum message_kind kind; // UPDATE, LOGIN, LOGOUT
    int remaining_time, user; // milliseconds; 1…MAX_USERS, 0 when a login was refused
    struct message message;
    struct sockaddr_in from;
};
typedef struct Event Event;

// What the server knows of a user beyond its avatar. A session tells the present holder of an id
// from earlier ones; that a packet is the user's own is known by the address it came from.
struct client {
    struct sockaddr_in address;
    uint32_t nonce, session, last_update;
    uint32_t heard_in_step;
};

static int server_socket;
static struct world world;
static struct client clients[MAX_USERS + 1]; // by user id, valid where the avatar is live
static uint32_t sessions;
static int roll_call = MAX_USERS + 1; // next user to check for silence
static long rejected, states_sent, states_dropped;
static long packets_in, bytes_in, packets_out, bytes_out; // UDP's payload
static volatile sig_atomic_t stopping;

static void stop(int signal) {
    (void)signal;
    stopping = 1;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// ---- events -------------------------------------------------------------------------------------

static bool same_address(const struct sockaddr_in *a, const struct sockaddr_in *b) {
    return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

// Takes one packet off the socket; false if it is not an event of this world.
static bool receive_event(Event *event) {
    uint8_t packet[MAX_MESSAGE_BYTES]; // longer than any event: an overlong packet has a wrong length
    socklen_t address_bytes = sizeof event->from;
    ssize_t length = recvfrom(server_socket, packet, sizeof packet, 0,
                              (struct sockaddr *)&event->from, &address_bytes);
    if (length < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            perror("server: recvfrom");
            stopping = 1; // a broken socket would make the loop spin
        }
        return false;
    }
    packets_in++;
    bytes_in += length;
    struct message *m = &event->message;
    bool valid = read_message(packet, (size_t)length, m) && m->kind <= LOGOUT;
    if (valid && m->kind != LOGIN)
        valid = world.avatars[m->user].live && clients[m->user].session == m->session &&
                same_address(&clients[m->user].address, &event->from);
    if (!valid) {
        rejected++;
        return false;
    }
    event->kind = m->kind;
    event->user = m->user; // a login gets its user when it is handled
    return true;
}

// A user who fell silent leaves by an event like everybody else, so that frames tell of it.
static bool find_silent_user(Event *event) {
    for (; roll_call <= MAX_USERS; roll_call++) {
        if (!world.avatars[roll_call].live ||
            world.steps - clients[roll_call].heard_in_step <= SILENT_STEPS)
            continue;
        event->kind = LOGOUT;
        event->user = roll_call;
        return true;
    }
    return false;
}

// Wait up to 'timeout' milliseconds for a new packet, returning it or NULL if timed out. Of what it
// waited, the event carries what is left; time spent outside this function does not count (that is
// the paper's simplification). A zero timeout is a time-out at once, even if packets are queued:
// otherwise a steady stream of them would hold up the simulation. Asked to stop, it times out.
static Event *next_event(int timeout) {
    static Event event;
    // Whole milliseconds go back to the caller; the rest is kept here. Were it forgotten, packets
    // less than a millisecond apart would never use up the 32.
    static int64_t uncounted;

    if (timeout <= 0)
        return NULL;
    if (find_silent_user(&event)) {
        event.remaining_time = timeout;
        return &event;
    }
    int64_t began = now_ns() - uncounted, limit = timeout * NS_PER_MS;
    for (int64_t waited = uncounted; waited < limit && !stopping; waited = now_ns() - began) {
        struct pollfd wait = {.fd = server_socket, .events = POLLIN};
        struct timespec left = {0, limit - waited}; // 32 ms at most: tv_nsec suffices
        if (ppoll(&wait, 1, &left, NULL) <= 0 || !receive_event(&event))
            continue; // timed out, interrupted, or not for us: wait for what is left
        waited = now_ns() - began;
        if (waited > limit)
            waited = limit;
        uncounted = waited % NS_PER_MS;
        event.remaining_time = timeout - (int)(waited / NS_PER_MS);
        return &event;
    }
    uncounted = 0;
    return NULL;
}

static bool send_packet(int user, const uint8_t *packet, size_t length) {
    const struct sockaddr_in *to = &clients[user].address;
    if (sendto(server_socket, packet, length, 0, (const struct sockaddr *)to, sizeof *to) < 0)
        return false;
    packets_out++;
    bytes_out += (long)length;
    return true;
}

// A LOGIN is repeated until its WELCOME arrives, so the same one may come more than once.
static int log_in(const Event *ev) {
    int free_id = 0, user = 0;
    for (int id = MAX_USERS; id >= 1; id--) {
        if (!world.avatars[id].live)
            free_id = id;
        else if (same_address(&clients[id].address, &ev->from))
            user = id;
    }
    bool again = user && clients[user].nonce == ev->message.nonce;
    if (!user)
        user = free_id;
    if (!user)
        return 0; // the world is full
    if (!again) {
        world_enter(&world, user);
        clients[user] = (struct client){
            .address = ev->from, .nonce = ev->message.nonce, .session = ++sessions};
    }
    clients[user].heard_in_step = world.steps;

    uint8_t packet[MAX_MESSAGE_BYTES];
    struct message welcome = {.kind = WELCOME, .nonce = ev->message.nonce, .user = user,
                              .session = clients[user].session};
    send_packet(user, packet, write_message(packet, &welcome)); // if lost, LOGIN comes again
    return user;
}

static void handle_event(Event *ev) {
    struct client *client = &clients[ev->user];
    switch (ev->kind) {
    case LOGIN:
        ev->user = log_in(ev);
        break;
    case LOGOUT:
        world_leave(&world, ev->user);
        break;
    default: // UPDATE
        UPDATE_TAKEN(client, ev->user, ev->message.number);
        client->heard_in_step = world.steps;
        if ((int32_t)(ev->message.number - client->last_update) <= 0)
            break; // overtaken by a newer one
        client->last_update = ev->message.number;
        world_steer(&world, ev->user,
                    (struct vec3){ev->message.wanted[0] / 100.0f, ev->message.wanted[1] / 100.0f,
                                  ev->message.wanted[2] / 100.0f});
    }
}

// ---- simulation ---------------------------------------------------------------------------------

static void simulate_upto(int steps) {
    while (steps-- > 0) {
        world_step(&world, 0.032f);
        if (world.steps % STEPS_BETWEEN_ROLL_CALLS == 0)
            roll_call = 1;
    }
}

static struct avatar_state state_of(int user) {
    struct vec3 at = world.avatars[user].at;
    return (struct avatar_state){
        user, {(uint16_t)(at.x * 100), (uint16_t)(at.y * 100), (uint16_t)(at.z * 100)}};
}

// One packet a user and step: itself, then its nearest neighbours as far as they fit.
static void send_new_states(void) {
    for (int user = 1; user <= MAX_USERS; user++) {
        if (!world.avatars[user].live)
            continue;
        int nearest[STATE_AVATARS - 1];
        int count = world_nearest(&world, user, nearest, STATE_AVATARS - 1);
        struct state state = {.step = world.steps, .company = world.avatars[user].company};
        state.avatars[state.count++] = state_of(user);
        for (int i = 0; i < count; i++)
            state.avatars[state.count++] = state_of(nearest[i]);
        uint8_t packet[MAX_MESSAGE_BYTES];
        STATE_SENT(&clients[user], user, state.step);
        if (send_packet(user, packet, write_state(packet, &state)))
            states_sent++;
        else
            states_dropped++; // no room in the socket: the next step brings newer ones
    }
}

// ---- the paper's Figure 3 -----------------------------------------------------------------------

static long timeouts, events_of_kind[LOGOUT + 1];
static long written; // passes of the loop: an account of frames that owes nothing to ppt

static void primary_loop(void) {
    int remaining_time = 32;
    while (!stopping) {
        struct timeval my_sleep;
        gettimeofday(&my_sleep, NULL);

        // manually save the time
        WRITE_EXAMPLE_SLEEP(my_sleep);
        Event *ev = next_event(remaining_time);

        // or use the provided macro
        WRITE_EXAMPLE_START_TIMESTAMP();
        // handle the event
        if (ev) {
            handle_event(ev);
            remaining_time = ev->remaining_time;
            WRITE_EXAMPLE_WHO(ev->user);
            WRITE_EXAMPLE_KIND(ev->kind);
            events_of_kind[ev->kind]++;
        } else {
            // it was a timeout. Run the simulation
            WRITE_EXAMPLE_KIND(-1); // -1=timeout
            WRITE_EXAMPLE_WHO(-1);  // no user.
            INPUT_ENDS();
            simulate_upto(1);
            SIMULATION_ENDS();
            remaining_time = 32;
            send_new_states();
            OUTPUT_ENDS();
            timeouts++;
        }
        WRITE_EXAMPLE_END_TIMESTAMP();
        ppt_write_example_frame();
        written++;
    }
}

// ---- start and end ------------------------------------------------------------------------------

// Loopback only, unless told otherwise: this server is an example, not a service.
static int open_socket(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fprintf(stderr, "server: expected an address such as 127.0.0.1, not '%s'\n", host);
        exit(2);
    }
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    // Room for the packets that arrive during a long simulation step; the kernel may grant less.
    int room = 1 << 20;
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    socklen_t address_bytes = sizeof address;
    if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &address_bytes) < 0) {
        fprintf(stderr, "server: cannot listen on %s: %s\n", host, strerror(errno));
        exit(1);
    }
    printf("listening on %s:%d\n", host, ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void usage(FILE *out) {
    fputs("usage: server [--address A] [--port P] [--seconds N]\n"
          "  --address A  this host's address (default 127.0.0.1)\n"
          "  --port P     UDP port there (default 0: any free one, printed at start)\n"
          "  --seconds N  end after N seconds (default: on SIGINT or SIGTERM)\n",
          out);
}

static long number(const char *text, long low, long high) {
    char *end;
    errno = 0;
    long value = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || value < low || value > high) {
        fprintf(stderr, "server: expected a number from %ld to %ld, not '%s'\n", low, high,
                text ? text : "");
        usage(stderr);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    const char *host = "127.0.0.1";
    int port = 0;
    unsigned seconds = 0;
    for (int i = 1; i < argc; i += 2) {
        if (!strcmp(argv[i], "--address") && argv[i + 1])
            host = argv[i + 1];
        else if (!strcmp(argv[i], "--port"))
            port = (int)number(argv[i + 1], 0, 65535);
        else if (!strcmp(argv[i], "--seconds"))
            seconds = (unsigned)number(argv[i + 1], 1, 86400);
        else {
            bool help = !strcmp(argv[i], "--help");
            usage(help ? stdout : stderr);
            return help ? 0 : 2;
        }
    }
    // No SA_RESTART: a signal must end the wait.
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    server_socket = open_socket(host, port);
    alarm(seconds); // 0: none

    primary_loop();

    close(server_socket);
    ENDED(written, events_of_kind[UPDATE], states_sent + states_dropped);
    printf("timeouts %ld updates %ld logins %ld logouts %ld states %ld dropped %ld rejected %ld\n",
           timeouts, events_of_kind[UPDATE], events_of_kind[LOGIN], events_of_kind[LOGOUT],
           states_sent, states_dropped, rejected);
    printf("written %ld\n", written);
    return 0;
}
