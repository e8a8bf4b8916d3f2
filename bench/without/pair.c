/* pair NUMBER: so many requests of one read and one write on a connection; the quickest of nine rounds, in
 * nanoseconds a pair. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    long number = argc > 1 ? atol(argv[1]) : 20000;
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        connect(client, (struct sockaddr *)&address, length) != 0)
        return 1;
    int server = accept(listener, NULL, NULL);
    char bytes[64] = {0};
    double best = 1e18;
    ssize_t sum = 0;
    for (int round = 0; round < 9; round++) {
        double start = now();
        for (long i = 0; i < number; i++) {
            sum += read(server, bytes, 32);
            sum += write(server, bytes, 32);
        }
        double took = (now() - start) / (double)number;
        best = took < best ? took : best;
        /* The rings are read meanwhile. */
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    }
    printf("%.2f\n", best);
    fflush(stdout);
    _exit(sum != number * 9 * 64);
}
