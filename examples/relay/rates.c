/* rates PORT: the tax of an item, in thousandths. A question is a line, `TRACE ITEM`; so is the answer. */
#include "relay.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { QUESTIONS = 100, READ_NS = 30000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned questions, rates[7];

/* The mistake: the lock that every question needs is held while the rates are read. */
static void read_rates(void) {
    uint64_t start = ppt_relay_now();
    struct timespec reading = {0, READ_NS}; /* stands for a file on a slow disk */
    nanosleep(&reading, 0);
    for (unsigned i = 0; i < 7; i++)
        rates[i] = 50 + 10 * i;
    PPT_WRITE_RATES_READ(f) {
        f.read_start = start;
        f.read_end = ppt_relay_now();
        f.questions = questions;
    }
}

static unsigned rate(const char *item) {
    pthread_mutex_lock(&lock);
    if (++questions % QUESTIONS == 0 || rates[0] == 0)
        read_rates();
    unsigned found = rates[strlen(item) % 7];
    pthread_mutex_unlock(&lock);
    return found;
}

/* The bytes of 32 hexadecimal digits. */
static void bytes_of(uint8_t *id, const char *digits) {
    for (unsigned i = 0; i < 16; i++) {
        char two[3] = {digits[2 * i], digits[2 * i + 1], 0};
        id[i] = (uint8_t)strtoul(two, 0, 16);
    }
}

static void *serve(void *given) {
    FILE *connection = given;
    char line[256];
    while (fgets(line, sizeof line, connection) != 0) {
        uint64_t start = ppt_relay_now();
        if (strlen(line) < 34)
            break;
        PPT_WRITE_RATES_TOOK(f) {
            bytes_of(f.trace, line);
        }
        unsigned found = rate(line + 33);
        /* A point comes before what it leads to: the frame before the answer. */
        PPT_WRITE_RATES_GAVE(f) {
            bytes_of(f.trace, line);
            f.handle_start = start;
            f.handle_end = ppt_relay_now();
        }
        dprintf(fileno(connection), "%u\n", found);
    }
    fclose(connection);
    return 0;
}

int main(int count, char **arguments) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof at;
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_port = htons((uint16_t)atoi(count > 1 ? arguments[1] : "0"));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &length) != 0) {
        perror("rates");
        return 1;
    }
    printf("port %d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        int socket = accept(listener, 0, 0);
        FILE *connection = socket < 0 ? 0 : fdopen(socket, "r");
        pthread_t thread;
        if (connection == 0)
            continue;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (pthread_create(&thread, 0, serve, connection) != 0)
            fclose(connection);
        else
            pthread_detach(thread);
    }
}
