// clients.c: the load of the server: each client sends a request, waits for the answer, and pauses
// for up to 16 ms. One request in ten is a PUT.
//
//     clients SOCKET CLIENTS      ends at SIGTERM
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "protocol.h"

static struct sockaddr_un address = {.sun_family = AF_UNIX};

// xorshift: every run sends the same requests.
static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void *client(void *number) {
    const uint64_t own = (uint64_t)(uintptr_t)number;
    uint64_t state = own * UINT64_C(0x9e3779b97f4a7c15);
    const int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (server < 0 || connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
        perror(address.sun_path);
        exit(1);
    }
    for (uint64_t count = 1;; count++) {
        struct message message = {
            .id = own << 32 | count,
            .operation = next(&state) % 10 == 0 ? PUT : GET,
            .key = next(&state) % KEYS,
            .value = (uint32_t)count,
        };
        if (send(server, &message, sizeof message, MSG_NOSIGNAL) != sizeof message
            || recv(server, &message, sizeof message, MSG_WAITALL) != sizeof message)
            return NULL; // the server has ended
        nanosleep(&(struct timespec){.tv_nsec = (long)(next(&state) % 16000000)}, NULL);
    }
}

int main(int count, char **arguments) {
    if (count != 3 || strlen(arguments[1]) >= sizeof address.sun_path) {
        fprintf(stderr, "usage: clients SOCKET CLIENTS\n");
        return 2;
    }
    strcpy(address.sun_path, arguments[1]);
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigaddset(&end, SIGINT);
    pthread_sigmask(SIG_BLOCK, &end, NULL);
    const long clients = strtol(arguments[2], NULL, 10);
    for (long number = 1; number <= clients; number++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, client, (void *)number) != 0) {
            perror("pthread_create");
            return 1;
        }
    }
    printf("started %ld\n", clients);
    fflush(stdout);
    int signal;
    sigwait(&end, &signal);
    return 0;
}
