/* What both load generators share: counting, the one line of JSON that comes out, and the request for a tunnel. */
#ifndef TIDEGATE_BENCH_LOAD_H
#define TIDEGATE_BENCH_LOAD_H

#include "common.h"

#define STUCK_NS 10000000000ull
#define SWEEP_NS 100000000ull
#define MAX_SAMPLES 2000000

static int counting;
static uint64_t operations, errors, bytes, reconnects;
static char first_error[256];
static uint32_t *samples;
static size_t sample_count;

static void note_error(const char *format, va_list args) {
    errors++;
    if (first_error[0]) return;
    vsnprintf(first_error, sizeof first_error, format, args);
    for (char *at = first_error; *at; at++)
        if (*at < ' ' || *at > '~' || *at == '"' || *at == '\\') *at = '.';
}

static void count_operation(uint64_t began) {
    uint64_t took = (now_ns() - began) / 1000;
    if (!counting) return;
    operations++;
    if (sample_count < MAX_SAMPLES) samples[sample_count++] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
}

static int by_size(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static uint32_t percentile(double part) {
    return sample_count ? samples[(size_t)(part * (double)(sample_count - 1))] : 0;
}

static size_t make_connect(char *into, size_t room, const char *to, const char *authorization) {
    return (size_t)snprintf(into, room, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%sUser-Agent: bench\r\n\r\n", to, to,
                            authorization);
}

static void print_open(uint64_t open) {
    printf("{\"mode\": \"idle\", \"open\": %llu, \"errors\": %llu, \"first_error\": \"%s\"}\n",
           (unsigned long long)open, (unsigned long long)errors, first_error);
    fflush(stdout);
}

static void print_result(const char *mode, size_t clients, double took, uint64_t errors_before) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    qsort(samples, sample_count, sizeof *samples, by_size);
    double cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("{\"mode\": \"%s\", \"clients\": %zu, \"seconds\": %.4f, \"operations\": %llu, \"per_second\": %.1f, "
           "\"bytes\": %llu, \"bytes_per_second\": %.0f, \"errors\": %llu, \"errors_warming\": %llu, "
           "\"reconnects\": %llu, \"p50_us\": %u, \"p99_us\": %u, \"max_us\": %u, \"cpu_seconds\": %.3f, "
           "\"first_error\": \"%s\"}\n",
           mode, clients, took, (unsigned long long)operations, (double)operations / took, (unsigned long long)bytes,
           (double)bytes / took, (unsigned long long)(errors - errors_before), (unsigned long long)errors_before,
           (unsigned long long)reconnects, percentile(0.5), percentile(0.99), percentile(1.0), cpu, first_error);
}

#endif
