/* The clients of the measure `inspection`, in one process and one epoll: HTTPS through a proxy, or without one.
 *
 *   tlsload requests     --target NAME:PORT  GET on kept connections; --streams N at once on each with --h2
 *   tlsload connections  --target NAME:PORT  a new connection each: CONNECT, a full handshake, one GET, close
 *   tlsload down         --target NAME:PORT  GETs of a big answer, its bytes counted as they arrive
 *   tlsload up           --target NAME:PORT  PUTs of 4 MiB, their bytes counted when they are answered
 *   tlsload idle         --target NAME:PORT  opens --clients connections, one GET each, holds them until stdin ends;
 *                                            with --begun as soon as the answer has begun, in HTTP/1.1
 *
 * --proxy ADDRESS:PORT, or --direct ADDRESS:PORT (the origin itself). --h2 offers HTTP/2 and takes nothing else;
 * else HTTP/1.1 is offered. --path PATH, --clients N, --seconds S, --warmup S.
 *
 * The certificate is not verified and no session is resumed: neither costs a proxy anything. Not an HTTP client: of
 * HTTP/1.1 it knows status and Content-Length, of HTTP/2 frames, windows and a status 200 by its index (RFC 7541
 * appendix A), which is how every server writes it. Errors are counted as in loadgen.c.
 */
#include "load.h"
#include <openssl/err.h>
#include <openssl/ssl.h>

#define IN_MAX 32768 /* a frame of 16 KiB with its header, and more */
#define OUT_MAX 4096
#define MOST_STREAMS 64
#define UPLOAD (4u << 20)
#define H2_WINDOW (8u << 20)
#define TURNS 8 /* reads or writes of bulk data before others get theirs */

enum mode { REQUESTS, CONNECTIONS, DOWN, UP, IDLE, MODES };
static const char *const modes[MODES] = {"requests", "connections", "down", "up", "idle"};
enum state { WAITING, CONNECTING, ASKING, SHAKING, TALKING, HOLDING };
enum frame { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION };

struct stream {
    uint32_t id;
    int good;
    uint64_t began;
};

struct client {
    int fd;
    SSL *ssl;
    enum state state;
    int used, number;
    uint64_t began, touched;
    char in[IN_MAX], out[OUT_MAX];
    size_t got, out_length, out_sent;
    size_t upload;  /* bytes of the body that are still to be sent */
    int64_t body;   /* HTTP/1.1: bytes of the answer still to come; -1: its head is */
    uint32_t next_id, unopened;
    struct stream streams[MOST_STREAMS];
};

static enum mode mode;
static const char *target, *path = "/";
static int direct, h2, begun;
static struct sockaddr_in server;
static size_t clients = 1, streams = 1;
static double seconds = 2, warmup = 0.3;
static char bulk[BIG], connect_request[1024], request[1024], name[256];
static size_t connect_length, request_length;
static int poller;
static uint64_t open_connections;
static SSL_CTX *context;

static void leave(struct client *client) {
    if (client->ssl) SSL_free(client->ssl);
    if (client->fd >= 0) close(client->fd);
    client->ssl = NULL;
    client->fd = -1;
    client->state = WAITING;
}

static void fail(struct client *client, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct client *client, const char *format, ...) {
    va_list args;
    va_start(args, format);
    note_error(format, args);
    va_end(args);
    leave(client);
}

static void watch(struct client *client, int operation) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = client};
    if (epoll_ctl(poller, operation, client->fd, &event) < 0) die("epoll_ctl");
}

static void begin(struct client *client) {
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0) die("socket");
    set_nodelay(client->fd);
    client->began = client->touched = now_ns();
    client->got = client->out_length = client->out_sent = client->upload = 0;
    client->used = 0;
    client->body = -1;
    client->next_id = 1;
    client->unopened = 0;
    memset(client->streams, 0, sizeof client->streams);
    if (connect(client->fd, (struct sockaddr *)&server, sizeof server) < 0 && errno != EINPROGRESS) {
        fail(client, "connect: %s", strerror(errno));
        return;
    }
    client->state = CONNECTING;
    watch(client, EPOLL_CTL_ADD);
}

static void again(struct client *client) {
    SSL_shutdown(client->ssl); /* says so, and waits for nobody */
    leave(client);
    begin(client);
}

/* What is to be sent, behind what waits; a client that says too much at once is a bug of ours. */
static void say(struct client *client, const void *data, size_t length) {
    if (client->out_sent == client->out_length) client->out_sent = client->out_length = 0;
    if (client->out_length + length > OUT_MAX) die("too much to say at once");
    memcpy(client->out + client->out_length, data, length);
    client->out_length += length;
}

static void say_frame(struct client *client, enum frame type, unsigned flags, uint32_t id, const void *data, size_t size) {
    unsigned char head[9] = {(unsigned char)(size >> 16), (unsigned char)(size >> 8), (unsigned char)size,
                             (unsigned char)type, (unsigned char)flags, (unsigned char)(id >> 24),
                             (unsigned char)(id >> 16), (unsigned char)(id >> 8), (unsigned char)id};
    say(client, head, sizeof head);
    say(client, data, size);
}

static void say_window(struct client *client, uint32_t id, uint32_t more) {
    uint32_t size = htonl(more);
    say_frame(client, WINDOW_UPDATE, 0, id, &size, 4);
}

static size_t put_text(unsigned char *into, const char *text) { /* RFC 7541 section 5.2, without Huffman's code */
    size_t length = strlen(text);
    if (length > 126) die("too long for one byte of length");
    into[0] = (unsigned char)length;
    memcpy(into + 1, text, length);
    return length + 1;
}

/* The first request of a connection fills the table, the others point into it, as every client's compressor does. */
static void say_headers(struct client *client, struct stream *stream) {
    unsigned char block[512];
    size_t at = 0;
    block[at++] = 0x82; /* :method GET */
    block[at++] = 0x87; /* :scheme https */
    block[at++] = 0x04; /* :path, not kept */
    at += put_text(block + at, path);
    if (client->used) {
        block[at++] = 0xc0; /* 64, 63, 62: the three below, the newest has the lowest number */
        block[at++] = 0xbf;
        block[at++] = 0xbe;
    } else {
        block[at++] = 0x41; /* :authority */
        at += put_text(block + at, target);
        block[at++] = 0x7a; /* user-agent */
        at += put_text(block + at, "bench");
        block[at++] = 0x53; /* accept */
        at += put_text(block + at, "*/*");
    }
    client->used = 1;
    stream->id = client->next_id;
    stream->good = 0;
    stream->began = now_ns();
    client->next_id += 2;
    say_frame(client, HEADERS, 5, stream->id, block, at); /* END_STREAM | END_HEADERS */
}

static void ask(struct client *client) {
    client->touched = client->began = now_ns();
    if (h2) {
        for (size_t i = 0; i < streams; i++) say_headers(client, &client->streams[i]);
        return;
    }
    client->got = 0;
    client->body = -1;
    if (mode == UP) {
        char head[1024];
        int length = snprintf(head, sizeof head,
                              "PUT %s/%d HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nContent-Length: %u\r\n\r\n", path,
                              client->number, target, UPLOAD);
        say(client, head, (size_t)length);
        client->upload = UPLOAD;
    } else {
        say(client, request, request_length);
    }
}

/* Sends what there is; 0 when the connection is gone. */
static int push(struct client *client) {
    for (int turn = 0; client->out_sent < client->out_length || client->upload; turn++) {
        int head = client->out_sent < client->out_length;
        size_t left = head ? client->out_length - client->out_sent : client->upload < BIG ? client->upload : BIG;
        if (turn > TURNS) {
            watch(client, EPOLL_CTL_MOD);
            return 1;
        }
        int wrote = SSL_write(client->ssl, head ? client->out + client->out_sent : bulk, (int)left);
        if (wrote <= 0) {
            int why = SSL_get_error(client->ssl, wrote);
            if (why == SSL_ERROR_WANT_WRITE || why == SSL_ERROR_WANT_READ) return 1;
            fail(client, "the other side takes no more (%d)", why);
            return 0;
        }
        client->touched = now_ns();
        if (head) client->out_sent += (size_t)wrote;
        else client->upload -= (size_t)wrote;
    }
    return 1;
}

/* One answer is complete. 0 when the connection is another now, or at rest. */
static int answered(struct client *client, uint64_t began, int closes) {
    if (mode == IDLE) {
        open_connections++;
        client->state = HOLDING;
        return 0;
    }
    if (mode == UP && counting) bytes += UPLOAD;
    count_operation(began);
    if (mode == CONNECTIONS || closes) {
        if (closes && mode != CONNECTIONS) reconnects++;
        again(client);
        return 0;
    }
    return 1;
}

/* Bytes of HTTP/1.1 came: of a head into `in`, of a body into `bulk`. 0 when the client is not to be read on. */
static int took_h1(struct client *client, size_t got) {
    if (client->body < 0) {
        client->got += got;
        client->in[client->got] = 0;
        char *end = strstr(client->in, "\r\n\r\n");
        if (!end) {
            if (client->got >= IN_MAX - 1) fail(client, "a head without an end");
            return client->state == TALKING;
        }
        int status = client->got > 12 && !memcmp(client->in, "HTTP/1.1 ", 9) ? atoi(client->in + 9) : 0;
        if (status < 200 || status > 299) {
            fail(client, "status %d: %.80s", status, client->in);
            return 0;
        }
        end[2] = 0;
        char *length = strcasestr(client->in, "\ncontent-length:");
        if (!length && status != 204) {
            fail(client, "an answer without a length: %.120s", client->in);
            return 0;
        }
        got = client->got - (size_t)(end + 4 - client->in);
        client->body = length ? atoll(length + 16) : 0;
    }
    client->body -= (int64_t)got;
    if (mode == IDLE && begun) return answered(client, client->began, 0);
    if (mode == DOWN && counting) bytes += got;
    if (client->body > 0) return 1;
    if (client->upload) {
        fail(client, "answered before the upload had ended: %.80s", client->in);
        return 0;
    }
    if (!answered(client, client->began, strcasestr(client->in, "\nconnection: close") != NULL)) return 0;
    ask(client);
    return push(client);
}

static struct stream *find_stream(struct client *client, uint32_t id) {
    for (size_t i = 0; i < streams; i++)
        if (client->streams[i].id == id) return &client->streams[i];
    return NULL;
}

static int says_200(const unsigned char *block, size_t length, unsigned flags) {
    size_t at = (flags & 8 ? 1u : 0u) + (flags & 0x20 ? 5u : 0u);
    while (at < length && (block[at] & 0xe0) == 0x20) { /* a change of the table's size */
        if ((block[at++] & 0x1f) == 0x1f)
            while (at < length && block[at++] & 0x80) continue;
    }
    return at < length && block[at] == 0x88;
}

/* One whole frame. 0 when the client is not to be read on. */
static int took_frame(struct client *client, const unsigned char *frame, size_t size) {
    enum frame type = frame[3];
    unsigned flags = frame[4];
    uint32_t id = ((uint32_t)frame[5] << 24 | (uint32_t)frame[6] << 16 | (uint32_t)frame[7] << 8 | frame[8]) & 0x7fffffff;
    const unsigned char *payload = frame + 9;
    struct stream *stream = id ? find_stream(client, id) : NULL;
    if (type == SETTINGS && !(flags & 1)) say_frame(client, SETTINGS, 1, 0, "", 0);
    if (type == PING && !(flags & 1)) say_frame(client, PING, 1, 0, payload, size);
    if (type == GOAWAY || type == RST_STREAM) {
        fail(client, "%s, code %u", type == GOAWAY ? "GOAWAY" : "RST_STREAM",
             type == GOAWAY ? payload[7] : payload[3]);
        return 0;
    }
    if (type == HEADERS && stream && !stream->good) {
        if (!says_200(payload, size, flags)) {
            fail(client, "no 200 on a stream");
            return 0;
        }
        stream->good = 1;
    }
    if (type == DATA) {
        if (mode == DOWN && counting) bytes += size;
        client->unopened += (uint32_t)size;
        if (client->unopened > H2_WINDOW / 4) {
            say_window(client, 0, client->unopened);
            if (stream && !(flags & 1)) say_window(client, id, client->unopened);
            client->unopened = 0;
        }
    }
    if ((type == DATA || type == HEADERS) && flags & 1 && stream) {
        if (!stream->good) {
            fail(client, "a stream without a head");
            return 0;
        }
        if (!answered(client, stream->began, 0)) return 0;
        client->touched = now_ns();
        say_headers(client, stream);
    }
    return 1;
}

static int took_h2(struct client *client, size_t got) {
    size_t at = 0;
    client->got += got;
    while (client->got - at >= 9) {
        const unsigned char *frame = (unsigned char *)client->in + at;
        size_t size = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];
        if (size > 16384) {
            fail(client, "a frame of %zu bytes", size);
            return 0;
        }
        if (client->got - at < size + 9) break;
        if (!took_frame(client, frame, size)) return 0;
        at += size + 9;
    }
    client->got -= at;
    memmove(client->in, client->in + at, client->got);
    return push(client);
}

static void talk(struct client *client) {
    if (!push(client)) return;
    for (int turn = 0; turn < TURNS; turn++) {
        int whole = !h2 && client->body > 0; /* nothing is behind the body: one request at a time */
        char *into = whole ? bulk : client->in + client->got;
        int room = whole ? BIG : (int)(IN_MAX - 1 - client->got);
        int got = SSL_read(client->ssl, into, room);
        if (got <= 0) {
            int why = SSL_get_error(client->ssl, got);
            if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return;
            if (mode == REQUESTS && !h2 && client->used && client->body < 0 && !client->got) {
                reconnects++; /* the proxy closed a kept connection without saying so */
                again(client);
                return;
            }
            fail(client, "closed by the proxy (%d)", why);
            return;
        }
        client->touched = now_ns();
        client->used = 1;
        if (!(h2 ? took_h2(client, (size_t)got) : took_h1(client, (size_t)got))) return;
    }
    watch(client, EPOLL_CTL_MOD);
}

static void shake(struct client *client) {
    int done = SSL_do_handshake(client->ssl);
    if (done != 1) {
        int why = SSL_get_error(client->ssl, done);
        if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return;
        fail(client, "handshake: %s", ERR_reason_error_string(ERR_peek_last_error()) ?: "closed");
        ERR_clear_error();
        return;
    }
    const unsigned char *chosen;
    unsigned length;
    SSL_get0_alpn_selected(client->ssl, &chosen, &length);
    if (h2 && (length != 2 || memcmp(chosen, "h2", 2))) {
        fail(client, "HTTP/2 is not spoken");
        return;
    }
    client->state = TALKING;
    client->got = 0;
    if (h2) {
        /* ENABLE_PUSH 0, INITIAL_WINDOW_SIZE */
        unsigned char settings[12] = {0, 2, 0, 0, 0, 0, 0, 4, H2_WINDOW >> 24, (H2_WINDOW >> 16) & 255};
        say(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
        say_frame(client, SETTINGS, 0, 0, settings, sizeof settings);
        say_window(client, 0, H2_WINDOW - 65535);
    }
    uint64_t began = client->began;
    ask(client);
    if (mode == CONNECTIONS) client->began = began;
    talk(client);
}

static void start_tls(struct client *client) {
    client->ssl = SSL_new(context);
    if (!client->ssl || !SSL_set_fd(client->ssl, client->fd) || !SSL_set_tlsext_host_name(client->ssl, name))
        die("SSL_new");
    SSL_set_connect_state(client->ssl);
    client->state = SHAKING;
    client->got = 0;
    shake(client);
}

static void asked(struct client *client) {
    ssize_t got = recv(client->fd, client->in + client->got, IN_MAX - 1 - client->got, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        fail(client, "the proxy closed before it answered");
        return;
    }
    client->got += (size_t)got;
    client->in[client->got] = 0;
    if (!strstr(client->in, "\r\n\r\n")) return;
    if (strncmp(client->in, "HTTP/1.", 7) || atoi(client->in + 9) != 200) {
        fail(client, "CONNECT: %.80s", client->in);
        return;
    }
    start_tls(client);
}

static void connected(struct client *client) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error) {
        fail(client, "connect: %s", strerror(error));
    } else if (direct) {
        start_tls(client);
    } else if (send(client->fd, connect_request, connect_length, MSG_NOSIGNAL) < 0) {
        fail(client, "send: %s", strerror(errno));
    } else {
        client->state = ASKING;
    }
}

static void turn(struct client *all, size_t count, int milliseconds) {
    static uint64_t swept;
    struct epoll_event events[256];
    int ready = epoll_wait(poller, events, 256, milliseconds);
    if (ready < 0 && errno != EINTR) die("epoll_wait");
    for (int i = 0; i < ready; i++) {
        struct client *client = events[i].data.ptr;
        if (client->state == CONNECTING && events[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) connected(client);
        else if (client->state == ASKING && events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) asked(client);
        else if (client->state == SHAKING) shake(client);
        else if (client->state == TALKING) talk(client);
    }
    uint64_t now = now_ns();
    if (now - swept < SWEEP_NS) return;
    swept = now;
    for (size_t i = 0; i < count; i++) {
        struct client *client = &all[i];
        if (client->state != WAITING && client->state != HOLDING && now - client->touched > STUCK_NS)
            fail(client, "nothing for 10 s in state %d", client->state);
        if (client->state == WAITING) begin(client);
    }
}

static void run_until(struct client *all, size_t count, uint64_t end) {
    for (uint64_t now = now_ns(); now < end; now = now_ns()) {
        uint64_t left = (end - now) / 1000000;
        turn(all, count, left > 100 ? 100 : (int)left + (left == 0));
    }
}

static void set_up_tls(void) {
    static const unsigned char both[] = "\x02h2\x08http/1.1";
    context = SSL_CTX_new(TLS_client_method());
    if (!context) die("SSL_CTX_new");
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, 65536);
    if (SSL_CTX_set_alpn_protos(context, h2 ? both : both + 3, h2 ? 12 : 9)) die("SSL_CTX_set_alpn_protos");
}

int main(int argc, char **argv) {
    end_with_parent();
    raise_descriptors();
    errno = 0;
    mode = MODES;
    for (int i = 0; argc > 1 && i < MODES; i++)
        if (!strcmp(argv[1], modes[i])) mode = (enum mode)i;
    if (mode == MODES) die("usage: tlsload requests|connections|down|up|idle --target NAME:PORT [options]");
    const char *address = NULL;
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--h2")) {
            h2 = 1;
            continue;
        }
        if (!strcmp(argv[i], "--begun")) {
            begun = 1;
            continue;
        }
        if (i + 1 >= argc) die("%s needs a value", argv[i]);
        const char *option = argv[i], *value = argv[++i];
        if (!strcmp(option, "--target")) target = value;
        else if (!strcmp(option, "--proxy")) address = value;
        else if (!strcmp(option, "--direct")) address = value, direct = 1;
        else if (!strcmp(option, "--path")) path = value;
        else if (!strcmp(option, "--clients")) clients = (size_t)atoi(value);
        else if (!strcmp(option, "--streams")) streams = (size_t)atoi(value);
        else if (!strcmp(option, "--seconds")) seconds = atof(value);
        else if (!strcmp(option, "--warmup")) warmup = atof(value);
        else die("unknown option %s", option);
    }
    if (!target || !address) die("--target, and --proxy or --direct, are needed");
    if (clients < 1 || clients > 20000 || streams < 1 || streams > MOST_STREAMS || seconds > 600)
        die("a number is out of bounds");
    if (h2 && mode == UP) die("up is spoken in HTTP/1.1 only");
    if (!h2) streams = 1;
    server = parse_address(address);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(target, ":"), target);
    connect_length = make_connect(connect_request, sizeof connect_request, target, "");
    request_length = (size_t)snprintf(request, sizeof request,
                                      "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n", path,
                                      target);
    set_up_tls();
    poller = epoll_create1(EPOLL_CLOEXEC);
    samples = malloc(MAX_SAMPLES * sizeof *samples);
    struct client *all = calloc(clients, sizeof *all);
    if (!all || !samples || poller < 0) die("setting up");
    for (size_t i = 0; i < clients; i++) {
        all[i].fd = -1;
        all[i].number = (int)i;
    }
    if (mode == IDLE) {
        /* in steps of 16: handshakes are slow, and what is measured comes after them */
        uint64_t end = now_ns() + 60000000000ull;
        for (size_t started = 0; started < clients;) {
            size_t step = clients - started < 16 ? clients - started : 16;
            for (size_t i = 0; i < step; i++) begin(&all[started + i]);
            started += step;
            while (open_connections + errors < started && now_ns() < end) turn(all, 0, 10);
        }
        print_open(open_connections);
        while (read(STDIN_FILENO, bulk, 1) > 0) continue;
        return 0;
    }
    uint64_t start = now_ns();
    for (size_t i = 0; i < clients; i++) begin(&all[i]);
    run_until(all, clients, start + (uint64_t)(warmup * 1e9));
    uint64_t from = now_ns(), errors_before = errors;
    counting = 1;
    run_until(all, clients, from + (uint64_t)(seconds * 1e9));
    print_result(modes[mode], clients, (double)(now_ns() - from) / 1e9, errors_before);
    return 0;
}
