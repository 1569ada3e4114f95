/* The servers behind every proxy of the bench, in one process and one epoll, so that the origin is never what is
 * measured. Each kind has its own port on the bind address:
 *
 *   echo    sends back what it reads                     (tunnels per second, idle tunnels)
 *   sink    reads and counts                             (throughput up)
 *   source  writes as fast as it is read                 (throughput down)
 *   http    answers each request with the same 200       (keep-alive requests per second)
 *   control answers each read with the bytes sunk so far (so that "sent" means "arrived")
 *
 * Prints one line of JSON with the ports, then serves until its standard input ends. Ports can be fixed on the
 * command line (`--echo 9001`), else the kernel chooses. Not an HTTP server: it finds the end of a head and looks
 * for HTTP/1.0 and `Connection: close`, and takes no bodies.
 */
#include "common.h"

enum kind { ECHO, SINK, SOURCE, HTTP, CONTROL, KINDS, INPUT };
static const char *const names[KINDS] = {"echo", "sink", "source", "http", "control"};

struct conn {
    int fd;
    enum kind kind;
    int listening;
    int closing;      /* close once `out` is empty */
    size_t in_length; /* HTTP: bytes of an unfinished head */
    size_t out_length, out_start;
    char *out; /* what could not be written yet; allocated only when that happens */
    char in[]; /* HTTP only */
};

#define HEAD_MAX 8192
static char bulk[BIG];
static uint64_t sunk;
static int poller;
static char http_response[1024];
static size_t http_response_length;

static void watch(int operation, struct conn *conn, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = conn};
    if (epoll_ctl(poller, operation, conn->fd, &event) < 0) die("epoll_ctl");
}

static struct conn *make_conn(int fd, enum kind kind) {
    struct conn *conn = calloc(1, sizeof *conn + (kind == HTTP ? HEAD_MAX : 0));
    if (!conn) die("calloc");
    conn->fd = fd;
    conn->kind = kind;
    return conn;
}

static void drop(struct conn *conn) {
    close(conn->fd);
    free(conn->out);
    free(conn);
}

/* Writes, keeps what does not fit. Returns 0 when the connection is gone. */
static int put(struct conn *conn, const char *data, size_t length) {
    ssize_t wrote = 0;
    if (conn->out_length == 0) {
        wrote = send(conn->fd, data, length, MSG_NOSIGNAL);
        if (wrote < 0 && errno != EAGAIN) return 0;
        if (wrote < 0) wrote = 0;
        if ((size_t)wrote == length) return 1;
        watch(EPOLL_CTL_MOD, conn, EPOLLOUT);
    }
    size_t left = length - (size_t)wrote;
    char *grown = realloc(conn->out, conn->out_start + conn->out_length + left);
    if (!grown) die("realloc");
    conn->out = grown;
    memcpy(grown + conn->out_start + conn->out_length, data + wrote, left);
    conn->out_length += left;
    return 1;
}

static int flush_out(struct conn *conn) {
    ssize_t wrote = send(conn->fd, conn->out + conn->out_start, conn->out_length, MSG_NOSIGNAL);
    if (wrote < 0) return errno == EAGAIN;
    conn->out_start += (size_t)wrote;
    conn->out_length -= (size_t)wrote;
    if (conn->out_length) return 1;
    conn->out_start = 0;
    if (conn->closing) return 0;
    watch(EPOLL_CTL_MOD, conn, EPOLLIN);
    return 1;
}

static int serve_http(struct conn *conn) {
    ssize_t got = read(conn->fd, conn->in + conn->in_length, HEAD_MAX - 1 - conn->in_length);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return 0;
    conn->in_length += (size_t)got;
    for (;;) {
        conn->in[conn->in_length] = 0;
        char *end = strstr(conn->in, "\r\n\r\n");
        if (!end) return conn->in_length < HEAD_MAX - 1;
        *end = 0;
        int closes = strstr(conn->in, " HTTP/1.0") != NULL || strcasestr(conn->in, "\nconnection: close") != NULL;
        size_t used = (size_t)(end + 4 - conn->in);
        if (!put(conn, http_response, http_response_length)) return 0;
        if (closes) {
            conn->closing = 1;
            return conn->out_length > 0;
        }
        conn->in_length -= used;
        memmove(conn->in, conn->in + used, conn->in_length);
        if (!conn->in_length) return 1;
    }
}

static int serve(struct conn *conn, uint32_t events) {
    if (conn->kind == SOURCE) {
        if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) return 0;
        if (events & EPOLLIN) { /* a source hears nothing but the end */
            ssize_t got = read(conn->fd, bulk, 4096);
            if (got == 0 || (got < 0 && errno != EAGAIN)) return 0;
        }
        ssize_t wrote = send(conn->fd, bulk, BIG, MSG_NOSIGNAL);
        return wrote >= 0 || errno == EAGAIN;
    }
    if (events & EPOLLOUT) return flush_out(conn);
    if (conn->kind == HTTP) return serve_http(conn);
    ssize_t got = read(conn->fd, bulk, BIG);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return 0;
    if (conn->kind == SINK) {
        sunk += (uint64_t)got;
        return 1;
    }
    if (conn->kind == ECHO) return put(conn, bulk, (size_t)got);
    char text[32];
    return put(conn, text, (size_t)snprintf(text, sizeof text, "%llu\n", (unsigned long long)sunk));
}

static void accept_all(struct conn *listener) {
    for (;;) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EAGAIN || errno == ECONNABORTED || errno == EMFILE) return;
            die("accept");
        }
        set_nodelay(fd);
        struct conn *conn = make_conn(fd, listener->kind);
        watch(EPOLL_CTL_ADD, conn, conn->kind == SOURCE ? EPOLLIN | EPOLLOUT | EPOLLRDHUP : EPOLLIN);
    }
}

static uint16_t listen_on(struct sockaddr_in address, enum kind kind, uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    socklen_t length = sizeof address;
    address.sin_port = htons(port);
    if (fd < 0) die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) die("bind port %u", port);
    if (listen(fd, 4096) < 0) die("listen");
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0) die("getsockname");
    struct conn *listener = make_conn(fd, kind);
    listener->listening = 1;
    watch(EPOLL_CTL_ADD, listener, EPOLLIN);
    return ntohs(address.sin_port);
}

int main(int argc, char **argv) {
    struct sockaddr_in address = parse_address("127.0.0.1:0");
    uint16_t ports[KINDS] = {0};
    size_t body = 128;
    end_with_parent();
    raise_descriptors();
    for (int i = 1; i + 1 < argc; i += 2) {
        errno = 0;
        if (!strcmp(argv[i], "--body")) {
            body = (size_t)atoi(argv[i + 1]);
            if (body > 512) die("--body is at most 512");
            continue;
        }
        if (!strcmp(argv[i], "--bind")) {
            char text[64];
            snprintf(text, sizeof text, "%s:0", argv[i + 1]);
            address = parse_address(text);
            continue;
        }
        int kind = 0;
        while (kind < KINDS && (strncmp(argv[i], "--", 2) || strcmp(argv[i] + 2, names[kind]))) kind++;
        if (kind == KINDS) die("unknown option %s", argv[i]);
        ports[kind] = (uint16_t)atoi(argv[i + 1]);
    }
    memset(bulk, 'x', sizeof bulk);
    http_response_length = (size_t)snprintf(http_response, sizeof http_response,
                                            "HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: text/plain\r\n"
                                            "Cache-Control: no-store\r\nContent-Length: %zu\r\n\r\n%.*s",
                                            body, (int)body, bulk);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) die("epoll_create1");
    printf("{");
    for (int kind = 0; kind < KINDS; kind++)
        printf("%s\"%s\": %u", kind ? ", " : "", names[kind], listen_on(address, (enum kind)kind, ports[kind]));
    printf("}\n");
    fflush(stdout);
    struct conn *input = make_conn(STDIN_FILENO, INPUT);
    struct epoll_event first = {.events = EPOLLIN, .data.ptr = input};
    epoll_ctl(poller, EPOLL_CTL_ADD, STDIN_FILENO, &first); /* fails for /dev/null, which never ends */
    for (;;) {
        struct epoll_event events[256];
        int ready = epoll_wait(poller, events, 256, -1);
        if (ready < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            struct conn *conn = events[i].data.ptr;
            if (conn->kind == INPUT) {
                if (read(STDIN_FILENO, bulk, 1) <= 0) return 0;
            } else if (conn->listening) {
                accept_all(conn);
            } else if (!serve(conn, events[i].events)) {
                drop(conn);
            }
        }
    }
}
