/* Other traffic: `blast HOST MEGABITS` sends UDP packets of 1,400 bytes to a port that nobody reads, so many
 * megabits a second, until it is ended. */
#include "net.h"

enum { BYTES = 1400, PER_SECOND = 500 };

int main(int argc, char **argv) {
    if (argc != 3) {
        fputs("usage: blast HOST MEGABITS\n", stderr);
        return 2;
    }
    struct addrinfo *to = address(argv[1], "9", SOCK_DGRAM);
    long burst = number(argv[2], 1, 10000) * 1000000 / 8 / BYTES / PER_SECOND;
    int fd = socket(to->ai_family, to->ai_socktype, 0);
    must(fd >= 0, "socket");
    static const char packet[BYTES];
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    for (;; next_at(&time, PER_SECOND))
        for (long i = 0; i < burst; i++)
            /* What does not fit into the queue is lost. */
            (void)!sendto(fd, packet, sizeof packet, MSG_DONTWAIT, to->ai_addr, to->ai_addrlen);
}
