/* blocked CALL: the first thread, which is the one that `ppt attach` holds, is blocked in CALL all
 * the time, while another one writes frames. `queue` queues 100 signals; any other line ends it.
 * Then it says what became of the call. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static const char *call;
static int in, out, semaphores, over;
static int interrupted, failed, handled, disordered, queued, received;

static int is(const char *name) { return strcmp(call, name) == 0; }

static void on_signal(int number) {
    (void)number;
    handled++;
}

/* Removes the semaphore when this process is gone, however it went. */
static void make_semaphore(void) {
    int ends[2];
    char byte;
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    if (pipe(ends) != 0 || fork() != 0) {
        close(ends[0]);
        return;
    }
    close(ends[1]);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    while (read(ends[0], &byte, 1) > 0) {
    }
    semctl(semaphores, 0, IPC_RMID);
    _exit(0);
}

static void set_up(void) {
    int ends[2];
    sigset_t queue;
    sigemptyset(&queue);
    sigaddset(&queue, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &queue, 0);
    if (is("epoll_wait")) {
        struct epoll_event event = {EPOLLIN, {0}};
        out = eventfd(0, 0);
        in = epoll_create1(0);
        epoll_ctl(in, EPOLL_CTL_ADD, out, &event);
    } else if (is("semop")) {
        make_semaphore();
    } else if (is("recv")) {
        struct timeval limit = {60, 0};
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
            _exit(1);
        in = ends[0];
        out = ends[1];
        setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    } else if (is("poll")) {
        in = out = eventfd(0, 0);
    } else if (is("pause")) {
        struct sigaction action = {0};
        action.sa_handler = on_signal;
        sigaction(SIGUSR1, &action, 0);
    } else if (is("read")) {
        if (pipe(ends) != 0)
            _exit(1);
        in = ends[0];
        out = ends[1];
    } else if (is("inotify")) {
        in = inotify_init1(0);
        mkdir("watched", 0700);
        inotify_add_watch(in, "watched", IN_CREATE);
    }
}

static long enter(void) {
    char bytes[4096];
    if (is("epoll_wait")) {
        struct epoll_event event;
        return epoll_wait(in, &event, 1, -1);
    } else if (is("semop")) {
        struct sembuf take = {0, -1, 0};
        return semop(semaphores, &take, 1);
    } else if (is("recv")) {
        return recv(in, bytes, sizeof bytes, 0);
    } else if (is("sigtimedwait")) {
        struct timespec limit = {60, 0};
        siginfo_t info;
        sigset_t queue;
        sigemptyset(&queue);
        sigaddset(&queue, SIGRTMIN);
        int number = sigtimedwait(&queue, &info, &limit);
        if (number > 0)
            disordered += info.si_value.sival_int != received++;
        return number;
    } else if (is("poll")) {
        struct pollfd one = {in, POLLIN, 0};
        return poll(&one, 1, -1);
    } else if (is("nanosleep")) {
        struct timespec time = {0, 100000000};
        return nanosleep(&time, 0);
    } else if (is("pause")) {
        return pause();
    }
    return read(in, bytes, sizeof bytes); /* read, inotify */
}

static void queue_one(void) {
    union sigval value;
    value.sival_int = queued++;
    if (sigqueue(getpid(), SIGRTMIN, value) != 0)
        perror("sigqueue");
}

/* Lets the call return. */
static void release(pthread_t blocked) {
    struct sembuf give = {0, 1, 0};
    uint64_t one = 1;
    if (is("semop"))
        semop(semaphores, &give, 1);
    else if (is("sigtimedwait"))
        queue_one();
    else if (is("pause"))
        pthread_kill(blocked, SIGUSR1);
    else if (is("inotify"))
        mkdir("watched/new", 0700);
    else if (!is("nanosleep") && write(out, &one, sizeof one) != sizeof one)
        perror("write");
}

static void *control(void *arg) {
    char line[16];
    while (fgets(line, sizeof line, stdin) != 0 && strcmp(line, "queue\n") == 0) {
        for (int i = 0; i < 100; i++)
            queue_one();
        puts("queued");
        fflush(stdout);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    release(*(pthread_t *)arg);
    return 0;
}

static void *writer(void *arg) {
    struct timespec wait = {0, 50000};
    (void)arg;
    for (uint64_t n = 0; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); n++) {
        PPT_WRITE_BEAT(f) fill(&f, 0, n);
        nanosleep(&wait, 0);
    }
    return 0;
}

int main(int argc, char **argv) {
    pthread_t ids[2], self = pthread_self();
    call = argc > 1 ? argv[1] : "read";
    set_up();
    pthread_create(&ids[0], 0, control, &self);
    pthread_create(&ids[1], 0, writer, 0);
    puts("ready");
    fflush(stdout);
    do {
        long result = enter();
        interrupted += result < 0 && errno == EINTR;
        failed += result < 0 && errno != EINTR;
    } while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE) || received != queued);
    pthread_join(ids[0], 0);
    pthread_join(ids[1], 0);
    /* pause(2) returns by nothing but a handler of ours. */
    printf("%s: EINTR %d, failed %d, handled %d, received %d, disordered %d\n", call,
           interrupted - handled, failed, handled, received, disordered);
    fflush(stdout);
    return 0;
}
