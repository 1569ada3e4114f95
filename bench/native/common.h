/* What origin.c and loadgen.c share: clocks, sockets, and a way to stop with one clear line.
 *
 * Rules: Linux only, no threads, no signals but the parent's death. Descriptors are non-blocking and registered
 * with one epoll each. Nothing here is part of the product; it only has to be faster than what it measures.
 */
#ifndef TIDEGATE_BENCH_COMMON_H
#define TIDEGATE_BENCH_COMMON_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BIG (256 * 1024) /* one read or write of bulk data; what curl and most TLS stacks stay under */

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, ": %s\n", errno ? strerror(errno) : "stopped");
    exit(1);
}

static inline uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000ull + (uint64_t)at.tv_nsec;
}

/* "127.0.0.1:8080" or "localhost:8080" as a socket address; no look-up is ever made. */
static struct sockaddr_in parse_address(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    char host[64];
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof host) die("not ADDRESS:PORT: %s", text);
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = 0;
    if (!strcmp(host, "localhost")) strcpy(host, "127.0.0.1");
    address.sin_port = htons((uint16_t)atoi(colon + 1));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) die("not an IPv4 address: %s", host);
    return address;
}

static inline void set_nodelay(int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* As many descriptors as the machine lets us have: thousands of idle tunnels need them. */
static void raise_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* A bench that is killed leaves nothing behind: we end with the process that started us. */
static void end_with_parent(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
}

#endif
