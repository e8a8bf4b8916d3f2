// server.c: a small key-value store that keeps a journal, and that has a mistake.
//
// One thread serves each connection. A GET reads the index under the shared lock; a PUT changes it
// under the exclusive one. Every 8th PUT writes the journal to the disk, and holds the lock all the
// while: all other requests wait for that disk.
//
//     server FOLDER      listens on FOLDER/socket, keeps its journal there, ends at SIGTERM
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "protocol.h"
#include "store.h" // the generated header

enum {
    RECORD = 4096,        // bytes
    COLLECTED = 8,        // PUTs between two flushes
    MOST_RECORDS = 256,   // of one flush
    SLOW_NS = 10 * 1000000, // what a flush takes at least
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static uint32_t values[KEYS];
static unsigned collected; // PUTs since the last flush; the lock guards both

static char record[RECORD];
static int journal;
static const char *folder;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

// Writes records until it has taken as long as a slow disk would, and returns their number. Where the
// file system waits for a disk, fdatasync(2) waits here; elsewhere, write(2) waits for a pipe.
static unsigned flush(void) {
    const int64_t start = now();
    unsigned records = 0;
    while (records < MOST_RECORDS && now() - start < SLOW_NS) {
        if (write(journal, record, RECORD) != RECORD)
            fail("journal");
        (void)fdatasync(journal); // fails for a pipe
        records++;
    }
    return records;
}

// Stands for a disk: takes a record from the pipe every 2 ms.
static void disk(int from) {
    char taken[RECORD];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(from, taken, RECORD) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    _exit(0);
}

// The journal is a file, or a pipe to `disk` if the file system waits for no disk, as tmpfs does.
static void open_journal(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/journal", folder);
    journal = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (journal < 0)
        fail(path);
    unlink(path);
    if (flush() < MOST_RECORDS)
        return;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0 || fcntl(ends[1], F_SETPIPE_SZ, RECORD) < 0)
        fail("pipe");
    const pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        close(ends[1]);
        disk(ends[0]);
    }
    close(ends[0]);
    close(journal);
    journal = ends[1];
}

// When this thread asked for the lock, and that it has it now. Without a start, ppt has attached in
// between.
static void lock_taken(uint64_t asked, uint32_t operation) {
    PPT_WRITE_INDEX(f) {
        if (asked == 0)
            break;
        f.lock_start = asked;
        f.lock_end = ppt_store_now();
        f.op = operation;
    }
}

static uint32_t get(uint32_t key) {
    const uint64_t asked = ppt_store_now();
    pthread_rwlock_rdlock(&lock);
    lock_taken(asked, GET);
    const uint32_t value = values[key];
    pthread_rwlock_unlock(&lock);
    return value;
}

static void put(uint32_t key, uint32_t value) {
    const uint64_t asked = ppt_store_now();
    pthread_rwlock_wrlock(&lock);
    lock_taken(asked, PUT);
    values[key] = value;
    if (++collected < COLLECTED) {
        pthread_rwlock_unlock(&lock);
        return;
    }
    collected = 0;
    const uint64_t start = ppt_store_now();
    const unsigned records = flush(); // the mistake: everybody waits for this lock
    pthread_rwlock_unlock(&lock);
    PPT_WRITE_JOURNAL(f) {
        if (start == 0)
            break;
        f.flush_start = start;
        f.flush_end = ppt_store_now();
        f.records = records;
    }
}

static void *serve(void *connection) {
    const int client = (int)(intptr_t)connection;
    struct message message;
    while (recv(client, &message, sizeof message, MSG_WAITALL) == sizeof message) {
        PPT_BEGIN_REQUEST(f) { f.id = message.id; f.op = message.operation; }
        const uint32_t key = message.key % KEYS;
        if (message.operation == PUT)
            put(key, message.value);
        else
            message.value = get(key);
        const ssize_t sent = send(client, &message, sizeof message, MSG_NOSIGNAL);
        PPT_END_REQUEST(f) { f.id = message.id; f.op = message.operation; }
        if (sent != sizeof message)
            break;
    }
    close(client);
    return NULL;
}

static void *serve_all(void *listener) {
    const int from = (int)(intptr_t)listener;
    for (int client; (client = accept4(from, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)client) != 0)
            fail("pthread_create");
        pthread_detach(thread);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: server FOLDER\n");
        return 2;
    }
    folder = arguments[1];
    open_journal();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int length =
        snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    if (length >= (int)sizeof address.sun_path) {
        fprintf(stderr, "%s: too long for the path of a socket\n", folder);
        return 1;
    }
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0
        || listen(listener, 64) != 0)
        fail("socket");
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigaddset(&end, SIGINT);
    pthread_sigmask(SIG_BLOCK, &end, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve_all, (void *)(intptr_t)listener) != 0)
        fail("pthread_create");
    printf("listening on %s\n", address.sun_path);
    fflush(stdout);
    int signal;
    sigwait(&end, &signal);
    unlink(address.sun_path);
    return 0;
}
