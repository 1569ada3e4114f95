/* The clients of the bench, in one process and one epoll.
 *
 *   loadgen tunnels --target HOST:PORT  a new connection each: CONNECT, 200, 64 bytes there and back, close
 *   loadgen refuse  --target HOST:PORT  a new connection each: CONNECT, the whole refusal read, close
 *   loadgen get     --target HOST:PORT  absolute-form GET on kept connections, one at a time on each
 *   loadgen up      --target HOST:SINK --control HOST:PORT   bulk data away from the client, counted where it arrives
 *   loadgen down    --target HOST:SOURCE                     bulk data to the client
 *   loadgen idle    --target HOST:ECHO  opens --clients tunnels, says so, holds them until standard input ends
 *
 * --proxy ADDRESS:PORT, or http_proxy of the environment (with user:password, sent as Basic), or --direct (then the
 * target is an address and is dialled itself). --clients N, --seconds S, --warmup S, --payload BYTES (0: the tunnel is
 * closed at once, and where there is no proxy to say that it stands, its end is awaited), --hello NAME (the exchange is a TLS ClientHello for NAME, echoed, instead of plain bytes),
 * --sources N (connect from 127.0.0.1 to 127.0.0.N in turn).
 *
 * One line of JSON comes out. An operation that fails or takes longer than 10 s counts as an error and never as
 * a success; a client that failed waits for the next sweep, so that errors cannot look like speed. What is under
 * way when the time ends is not counted. Not an HTTP client: it finds the end of a head and Content-Length.
 */
#include "load.h"

#define HEAD_MAX 16384

enum mode { TUNNELS, REFUSE, GET, UP, DOWN, IDLE, MODES };
static const char *const modes[MODES] = {"tunnels", "refuse", "get", "up", "down", "idle"};

enum state { WAITING, CONNECTING, HEAD, BODY, ECHOED, STREAMING, HOLDING };

struct client {
    int fd;
    enum state state;
    int is_control;
    uint64_t began;
    size_t sent;   /* of the bytes to be sent in this state */
    size_t got;    /* bytes of the head, or of the echo */
    int64_t body;  /* bytes of the body still to come; -1: until the end */
    char head[HEAD_MAX];
};

static enum mode mode;
static const char *target, *control_target;
static int direct;
static struct sockaddr_in proxy, destination, control_address;
static size_t clients = 1, payload_length = 64;
static double seconds = 2, warmup = 0.3;
static char request[2048], control_request[2048], payload[4096], bulk[BIG];
static size_t request_length, control_request_length;
static unsigned sources = 1;
static int poller;
static uint64_t open_tunnels;
static uint64_t sunk_now;
static int sunk_known;

static void fail(struct client *client, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct client *client, const char *format, ...) {
    va_list args;
    va_start(args, format);
    note_error(format, args);
    va_end(args);
    if (client->fd >= 0) close(client->fd);
    client->fd = -1;
    client->state = WAITING;
}

/* Each connection comes from the next of --sources loopback addresses, so that ports in TIME_WAIT do not run out
 * and looking for a free one does not become what is measured. The port is chosen at connect (ip(7)). */
static void spread(int fd) {
    static unsigned next;
    int one = 1;
    if (sources < 2) return;
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + next++ % sources)};
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&source, sizeof source) < 0) die("bind");
}

static void begin(struct client *client) {
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0) die("socket");
    set_nodelay(client->fd);
    spread(client->fd);
    struct sockaddr_in *to = !direct ? &proxy : client->is_control ? &control_address : &destination;
    client->began = now_ns();
    client->sent = client->got = 0;
    if (connect(client->fd, (struct sockaddr *)to, sizeof *to) < 0 && errno != EINPROGRESS) {
        fail(client, "connect: %s", strerror(errno));
        return;
    }
    client->state = CONNECTING;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = client};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, client->fd, &event) < 0) die("epoll_ctl");
}

static void again(struct client *client) {
    close(client->fd);
    client->fd = -1;
    begin(client);
}

/* Sends the rest of `data`; 1 all sent, 0 not yet, -1 failed. */
static int push(struct client *client, const char *data, size_t length) {
    while (client->sent < length) {
        ssize_t wrote = send(client->fd, data + client->sent, length - client->sent, MSG_NOSIGNAL);
        if (wrote < 0 && errno == EAGAIN) return 0;
        if (wrote < 0) {
            fail(client, "send: %s", strerror(errno));
            return -1;
        }
        client->sent += (size_t)wrote;
    }
    return 1;
}

/* Edge-triggered: asks for the events of now again, whether or not they were taken before. */
static void rearm(struct client *client) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = client};
    epoll_ctl(poller, EPOLL_CTL_MOD, client->fd, &event);
}

static void start_exchange(struct client *client) {
    client->sent = client->got = 0;
    if (client->is_control) {
        client->state = HOLDING;
    } else if (mode == UP || mode == DOWN) {
        client->state = STREAMING;
        rearm(client);
    } else if (mode == IDLE) {
        client->state = HOLDING;
        open_tunnels++;
    } else if (payload_length == 0 && direct) {
        /* Nobody answers a connection without a proxy: the kernel's backlog accepts it before the other side knows.
         * It is through when its end has come back from the origin. */
        client->state = ECHOED;
        shutdown(client->fd, SHUT_WR);
    } else if (payload_length == 0) {
        count_operation(client->began);
        again(client);
    } else {
        client->state = ECHOED;
        push(client, payload, payload_length);
    }
}

/* The head is complete: `end` is the first byte behind it. */
static void got_head(struct client *client, size_t end) {
    int status = client->got > 12 && !memcmp(client->head, "HTTP/1.", 7) ? atoi(client->head + 9) : 0;
    size_t extra = client->got - end;
    if (mode == REFUSE || mode == GET) {
        int good = mode == GET ? status == 200 : status >= 400 && status < 500;
        if (!good) {
            fail(client, "status %d: %.80s", status, client->head);
            return;
        }
        client->head[end - 1] = 0;
        char *length = strcasestr(client->head, "\ncontent-length:");
        client->body = length ? atoll(length + 16) : -1;
        if (client->body >= 0) client->body -= (int64_t)extra;
        client->state = BODY;
        return;
    }
    if (status != 200) {
        fail(client, "status %d: %.80s", status, client->head);
        return;
    }
    start_exchange(client);
    if (mode == DOWN && counting) bytes += extra;
}

static void body_done(struct client *client) {
    count_operation(client->began);
    if (mode == REFUSE) {
        again(client);
        return;
    }
    client->head[HEAD_MAX - 1] = 0;
    if (strcasestr(client->head, "\nconnection: close")) {
        reconnects++;
        again(client);
        return;
    }
    client->state = HEAD;
    client->began = now_ns();
    client->sent = client->got = 0;
    push(client, request, request_length);
}

/* Reads what there is; edge-triggered, so until there is no more, and to the end where `ended` says that the other
 * side has closed: no further event would come for that. Returns when the client changed hands. */
static void on_readable(struct client *client, int ended) {
    for (;;) {
        ssize_t got;
        size_t room = BIG;
        if (client->state == HEAD) {
            room = HEAD_MAX - 1 - client->got;
            got = recv(client->fd, client->head + client->got, room, 0);
        } else if (client->state == WAITING || client->state == CONNECTING) {
            return;
        } else {
            got = recv(client->fd, bulk, room, 0);
        }
        if (got < 0) {
            if (errno == EAGAIN) return;
            fail(client, "recv: %s", strerror(errno));
            return;
        }
        if (got == 0) {
            if (client->state == BODY && client->body < 0) {
                body_done(client);
                return;
            }
            if (client->state == ECHOED && payload_length == 0) {
                count_operation(client->began);
                again(client);
                return;
            }
            if (client->state == HEAD && mode == GET && client->got == 0) {
                reconnects++; /* the proxy closed a kept connection without saying so */
                again(client);
                return;
            }
            fail(client, "closed by the proxy in state %d", client->state);
            return;
        }
        switch (client->state) {
        case HEAD:
            client->got += (size_t)got;
            client->head[client->got] = 0;
            char *end = strstr(client->head, "\r\n\r\n");
            if (!end) {
                if (client->got >= HEAD_MAX - 1) fail(client, "a head without an end");
                break;
            }
            got_head(client, (size_t)(end + 4 - client->head));
            if (client->state == CONNECTING) return; /* done already, and begun again */
            if (client->state == BODY && client->body == 0) {
                body_done(client);
                return;
            }
            break;
        case BODY:
            if (client->body >= 0 && (client->body -= got) <= 0) {
                body_done(client);
                return;
            }
            break;
        case ECHOED:
            client->got += (size_t)got;
            if (client->got >= payload_length) {
                count_operation(client->began);
                again(client);
                return;
            }
            break;
        case STREAMING:
            if (counting) bytes += (uint64_t)got;
            break;
        case HOLDING:
            if (client->is_control) {
                bulk[got] = 0;
                sunk_now = strtoull(bulk, NULL, 10);
                sunk_known = 1;
            }
            break;
        default:
            break;
        }
        if (client->state == WAITING || (!ended && (size_t)got < room)) return;
    }
}

static void on_writable(struct client *client) {
    if (client->state == CONNECTING) {
        int error = 0;
        socklen_t length = sizeof error;
        getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &length);
        if (error) {
            fail(client, "connect: %s", strerror(error));
            return;
        }
        if (direct && mode != GET) {
            start_exchange(client);
        } else {
            client->state = HEAD;
        }
    }
    if (client->state == HEAD)
        push(client, client->is_control ? control_request : request,
             client->is_control ? control_request_length : request_length);
    else if (client->state == ECHOED)
        push(client, payload, payload_length);
    else if (client->state == STREAMING && mode == UP) {
        for (int turn = 0; turn < 4; turn++) { /* bounded, so that sixteen tunnels share the loop */
            ssize_t wrote = send(client->fd, bulk, BIG, MSG_NOSIGNAL);
            if (wrote < 0 && errno == EAGAIN) return;
            if (wrote < 0) {
                fail(client, "send: %s", strerror(errno));
                return;
            }
            if (wrote < BIG) return;
        }
        rearm(client);
    }
}

static void turn(struct client *all, size_t count, int milliseconds) {
    static uint64_t swept;
    struct epoll_event events[256];
    int ready = epoll_wait(poller, events, 256, milliseconds);
    if (ready < 0 && errno != EINTR) die("epoll_wait");
    for (int i = 0; i < ready; i++) {
        struct client *client = events[i].data.ptr;
        int before = client->fd;
        if (events[i].events & (EPOLLOUT | EPOLLERR)) on_writable(client);
        if (client->fd == before && events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))
            on_readable(client, (events[i].events & (EPOLLRDHUP | EPOLLHUP)) != 0);
    }
    uint64_t now = now_ns();
    if (now - swept < SWEEP_NS) return;
    swept = now;
    for (size_t i = 0; i < count; i++) {
        struct client *client = &all[i];
        if (client->state != WAITING && client->state != STREAMING && client->state != HOLDING &&
            now - client->began > STUCK_NS)
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

/* Asks the origin how much has arrived; -1 when no answer comes within a second. */
static int64_t ask_sunk(struct client *all, size_t count) {
    static const char question[16] = "how much so far\n"; /* long enough for proxies that guess at the protocol */
    struct client *client = &all[count - 1];
    sunk_known = 0;
    if (client->state != HOLDING || send(client->fd, question, sizeof question, MSG_NOSIGNAL) < 0)
        return -1;
    for (uint64_t end = now_ns() + 5000000000ull; !sunk_known && now_ns() < end;) turn(all, count, 10);
    return sunk_known ? (int64_t)sunk_now : -1;
}

static char *base64(const char *text) {
    static char out[1024];
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = strlen(text), at = 0;
    for (size_t i = 0; i < length && at + 5 < sizeof out; i += 3) {
        uint32_t block = (uint32_t)(unsigned char)text[i] << 16;
        if (i + 1 < length) block |= (uint32_t)(unsigned char)text[i + 1] << 8;
        if (i + 2 < length) block |= (uint32_t)(unsigned char)text[i + 2];
        out[at++] = letters[block >> 18];
        out[at++] = letters[block >> 12 & 63];
        out[at++] = i + 1 < length ? letters[block >> 6 & 63] : '=';
        out[at++] = i + 2 < length ? letters[block & 63] : '=';
    }
    out[at] = 0;
    return out;
}

/* A ClientHello of TLS 1.3 for `name`, 517 bytes as browsers pad it (RFC 8446, RFC 6066, RFC 7685). */
static void make_hello(const char *name) {
    size_t name_length = strlen(name), at = 0, total = 517;
    unsigned char *out = (unsigned char *)payload;
    if (name_length > 200) die("--hello: the name is too long");
#define PUT8(value) (out[at++] = (unsigned char)(value))
#define PUT16(value) (PUT8((value) >> 8), PUT8(value))
    PUT8(22), PUT16(0x0301), PUT16(total - 5);
    PUT8(1), PUT8(0), PUT16(total - 9);
    PUT16(0x0303);
    for (int i = 0; i < 32; i++) PUT8(i * 7);
    PUT8(32);
    for (int i = 0; i < 32; i++) PUT8(i * 5);
    PUT16(6), PUT16(0x1301), PUT16(0x1302), PUT16(0x1303);
    PUT8(1), PUT8(0);
    size_t left = total - at - 2;
    PUT16(left);
    PUT16(0), PUT16(name_length + 5), PUT16(name_length + 3), PUT8(0), PUT16(name_length);
    memcpy(out + at, name, name_length);
    at += name_length;
    PUT16(43), PUT16(3), PUT8(2), PUT16(0x0304);
    PUT16(10), PUT16(4), PUT16(2), PUT16(29);
    PUT16(13), PUT16(4), PUT16(2), PUT16(0x0403);
    PUT16(51), PUT16(38), PUT16(36), PUT16(29), PUT16(32);
    for (int i = 0; i < 32; i++) PUT8(i * 3 + 1);
    left = total - at - 4;
    PUT16(21), PUT16(left);
    memset(out + at, 0, total - at);
    payload_length = total;
}

static void from_environment(char *authorization, size_t room) {
    static char text[512];
    const char *url = getenv("http_proxy");
    if (!url || !*url) url = getenv("HTTP_PROXY");
    if (!url || strncmp(url, "http://", 7)) die("no --proxy, no --direct, and no http:// proxy in the environment");
    snprintf(text, sizeof text, "%s", url + 7);
    text[strcspn(text, "/")] = 0;
    char *at = strrchr(text, '@');
    if (at) {
        *at = 0;
        snprintf(authorization, room, "Proxy-Authorization: Basic %s\r\n", base64(text));
    }
    proxy = parse_address(at ? at + 1 : text);
}

int main(int argc, char **argv) {
    char authorization[1200] = "";
    const char *proxy_text = NULL, *hello = NULL;
    end_with_parent();
    raise_descriptors();
    errno = 0;
    mode = MODES;
    for (int i = 0; argc > 1 && i < MODES; i++)
        if (!strcmp(argv[1], modes[i])) mode = (enum mode)i;
    if (mode == MODES) die("usage: loadgen tunnels|refuse|get|up|down|idle --target HOST:PORT [options]");
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--direct")) {
            direct = 1;
            continue;
        }
        if (i + 1 >= argc) die("%s needs a value", argv[i]);
        const char *name = argv[i], *value = argv[++i];
        if (!strcmp(name, "--target")) target = value;
        else if (!strcmp(name, "--control")) control_target = value;
        else if (!strcmp(name, "--proxy")) proxy_text = value;
        else if (!strcmp(name, "--clients")) clients = (size_t)atoi(value);
        else if (!strcmp(name, "--seconds")) seconds = atof(value);
        else if (!strcmp(name, "--warmup")) warmup = atof(value);
        else if (!strcmp(name, "--payload")) payload_length = (size_t)atoi(value);
        else if (!strcmp(name, "--sources")) sources = (unsigned)atoi(value);
        else if (!strcmp(name, "--hello")) hello = value;
        else die("unknown option %s", name);
    }
    if (!target) die("--target is missing");
    if (clients < 1 || clients > 20000 || sources > 200 || payload_length > sizeof payload || seconds > 600)
        die("a number is out of bounds");
    /* Zeros: neither HTTP nor TLS, as the first bytes of database protocols are. */
    if (hello) make_hello(hello);
    if (direct) {
        destination = parse_address(target);
        if (control_target) control_address = parse_address(control_target);
    } else if (proxy_text) {
        proxy = parse_address(proxy_text);
    } else {
        from_environment(authorization, sizeof authorization);
    }
    if (mode == GET && direct)
        request_length = (size_t)snprintf(request, sizeof request,
                                          "GET / HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n", target);
    else if (mode == GET)
        request_length = (size_t)snprintf(
            request, sizeof request,
            "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n%sUser-Agent: bench\r\nAccept: */*\r\n\r\n", target, target,
            authorization);
    else
        request_length = make_connect(request, sizeof request, target, authorization);
    if (control_target)
        control_request_length = make_connect(control_request, sizeof control_request, control_target, authorization);
    if (mode == UP && !control_target) die("up needs --control");

    poller = epoll_create1(EPOLL_CLOEXEC);
    samples = malloc(MAX_SAMPLES * sizeof *samples);
    size_t count = clients + (mode == UP);
    struct client *all = calloc(count, sizeof *all);
    if (!all || !samples || poller < 0) die("setting up");
    for (size_t i = 0; i < count; i++) all[i].fd = -1;
    if (mode == UP) all[count - 1].is_control = 1;

    if (mode == IDLE) {
        /* in steps of 64, so that no proxy's backlog is the limit */
        uint64_t end = now_ns() + 60000000000ull;
        for (size_t started = 0; started < count;) {
            size_t step = count - started < 64 ? count - started : 64;
            for (size_t i = 0; i < step; i++) begin(&all[started + i]);
            started += step;
            while (open_tunnels + errors < started && now_ns() < end) turn(all, 0, 10);
        }
        print_open(open_tunnels);
        while (read(STDIN_FILENO, bulk, 1) > 0) continue;
        return 0;
    }

    uint64_t start = now_ns();
    for (size_t i = 0; i < count; i++) begin(&all[i]);
    run_until(all, count, start + (uint64_t)(warmup * 1e9));
    int64_t sunk_before = mode == UP ? ask_sunk(all, count) : 0;
    uint64_t from = now_ns(), errors_before = errors;
    counting = 1;
    run_until(all, count, from + (uint64_t)(seconds * 1e9));
    int64_t sunk_after = mode == UP ? ask_sunk(all, count) : 0;
    double took = (double)(now_ns() - from) / 1e9;
    if (mode == UP) {
        if (sunk_before < 0 || sunk_after < 0) {
            errors++;
            if (!first_error[0]) snprintf(first_error, sizeof first_error, "the origin's count did not come");
        } else {
            bytes = (uint64_t)(sunk_after - sunk_before);
        }
    }
    print_result(modes[mode], clients, took, errors_before);
    return 0;
}
