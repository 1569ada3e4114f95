"""Transparent capture, whole: the product in the lab, with programs that know of no proxy (HLD-6)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.holds import held
from tests.lab.api import Lab
from tests.product import PYTHON, Product
from tests.stalls import Stopwatch

_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
NO_PROXY = ["env", *(word for name in _PROXIES for one in (name, name.upper()) for word in ("-u", one))]
CURL = [*NO_PROXY, "curl", "-sS", "--max-time", "10"]
STATUS = [*CURL, "-o", "/dev/null", "-w", "%{http_code}\n"]
BUSYBOX = shutil.which("busybox")


@pytest.fixture(params=["root", "user"] if os.geteuid() == 0 else ["user"])
def product(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product on a machine of the lab, as root and as an ordinary user."""
    assert lab
    return Product(tmp_path, user=request.param == "user")


def captured(product: Product, *words: str, mode: str = "on") -> subprocess.CompletedProcess[str]:
    """Run with the capture of this mode."""
    return product.run("--capture", mode, "--profile", "closed", *words)


def python(*lines: str) -> list[str]:
    """The command line of a program that knows no proxy."""
    return [PYTHON, "-I", "-c", "\n".join(("import errno, socket, sys, time", *lines))]


@pytest.mark.parametrize("mode", ["on", "ports"])
def test_curl_by_name_without_a_proxy(product: Product, lab: Lab, mode: str) -> None:
    """HLD-6: a name that a rule lets through is reached as anywhere; one look-up outside, after the verdict."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 80)
    done = captured(product, "--allow", "a.test:80", "--", *STATUS, "http://a.test/", mode=mode)
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr
    assert done.stderr == "net: a.test:80 · captured (command-line)\n"
    assert origin.connections == 1


@pytest.mark.parametrize("mode", ["on", "ports"])
def test_https_by_name_is_the_same_name_in_the_hello(product: Product, lab: Lab, mode: str) -> None:
    """GAT-9: a TLS client by capture, end to end, with the certificate of the name."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 443, tls="a.test")
    shutil.copy(lab.ca_file, product.folder / "ca.pem")
    (product.folder / "ca.pem").chmod(0o644)
    get = [*STATUS, "--cacert", "ca.pem", "https://a.test/"]
    done = captured(product, "--allow", "a.test:443", "--", *get, mode=mode)
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr


@pytest.mark.parametrize("mode", ["on", "ports"])
def test_a_refused_name_does_not_exist_and_is_recorded(product: Product, lab: Lab, mode: str) -> None:
    """HLD-6, JRN-1, B88: NXDOMAIN at once, no look-up outside, and a line that says what would let it through."""
    with Stopwatch() as watch:
        done = captured(product, "--allow", "a.test:80", "--", *CURL, "http://b.test/", mode=mode)
        took = watch.seconds
    assert done.returncode == 6, done.stderr  # CURLE_COULDNT_RESOLVE_HOST
    assert took < 5
    assert lab.dns.queries == []
    assert "net: to let it through: --allow b.test" in done.stderr


def test_another_port_of_an_allowed_name_is_refused_in_words(product: Product, lab: Lab) -> None:
    """HLD-6: the name has an address, the port has no rule: 403 with the rule that would do, nothing outside."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("http", "1.2.3.4", 8080)
    done = captured(product, "--allow", "a.test:80", "--", *CURL, "-i", "http://a.test:8080/")
    assert done.stdout.startswith("HTTP/1.1 403 "), done.stderr
    assert "--allow a.test:8080" in done.stdout
    assert origin.connections == 0
    assert lab.dns.queries == []


def test_a_literal_needs_a_rule_of_its_own(product: Product, lab: Lab) -> None:
    """ADR-6: 1.2.3.4 is refused unless it is named; named, it is reached; its neighbour is not."""
    origin = lab.origin("http", "1.2.3.4", 80)
    other = lab.origin("http", "1.2.3.5", 80)
    get = [*STATUS, "http://1.2.3.4/", "-o", "/dev/null", "http://1.2.3.5/"]
    assert captured(product, "--", *get).stdout == "403\n403\n"
    assert origin.connections == other.connections == 0
    done = captured(product, "--allow", "1.2.3.4:80", "--", *get)
    assert done.stdout == "200\n403\n"
    assert (origin.connections, other.connections) == (1, 0)


def test_ssh_and_whoever_speaks_second(product: Product, lab: Lab) -> None:
    """HLD-6: where the server speaks first its banner arrives, by name."""
    lab.dns.set("git.test", A=["1.2.3.4"])
    lab.origin("banner", "1.2.3.4", 22)
    code = python("with socket.create_connection(('git.test', 22), 10) as wire: print(wire.recv(4).decode())")
    assert captured(product, "--allow", "git.test:22", "--", *code).stdout == "SSH-\n"


def test_a_refused_ssh_is_told_in_its_own_protocol(product: Product, lab: Lab) -> None:
    """GAT-9: port 22 of a name that has a rule for another port: a disconnect with the reason."""
    lab.dns.set("git.test", A=["1.2.3.4"])
    code = python(
        "with socket.create_connection(('git.test', 22), 10) as wire:",
        "    said = b''",
        "    while part := wire.recv(4096): said += part",
        "print(said[:4], b'--allow git.test:22' in said)",
    )
    assert captured(product, "--allow", "git.test:443", "--", *code).stdout == "b'SSH-' True\n"


def test_ipv6_by_name_and_by_literal(product: Product, lab: Lab) -> None:
    """HLD-6: the same over IPv6, inside and outside."""
    if not lab.ipv6:
        pytest.skip("this kernel has no IPv6")
    lab.dns.set("six.test", AAAA=["2600:beef::5"])
    origin = lab.origin("http", "2600:beef::5", 80)
    name, literal = "http://six.test/", "http://[2600:beef::5]/"
    done = captured(product, "--allow", "six.test:80", "--", *STATUS, "-6", name, "-o", "/dev/null", literal)
    assert done.stdout == "200\n403\n", done.stderr
    done = captured(product, "--allow", "[2600:beef::5]:80", "--", *STATUS, "-6", literal)
    assert done.stdout == "200\n"
    assert origin.connections == 2


def test_a_datagram_fails_at_once_and_is_in_the_journal(product: Product, lab: Lab) -> None:
    """HLD-6, JRN-3, B83: QUIC to a name and to addresses: an error at once, and where it was going is on record."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("udp", "1.2.3.4", 443)
    code = python(
        "began = time.monotonic()",
        "for host in ('a.test', '1.2.3.4', '2600:beef::1'):",
        "    family, _, _, _, to = socket.getaddrinfo(host, 443, type=socket.SOCK_DGRAM)[0]",
        "    for _ in range(3):",
        "        try: socket.socket(family, socket.SOCK_DGRAM).sendto(b'quic', to)",
        "        except OSError as error: print(errno.errorcode[error.errno])",
        "print(time.monotonic() - began < 10)",
    )
    done = captured(product, "--allow", "a.test", "--log", "n.jsonl", "--", *code)
    assert done.stdout.split() == ["EPERM"] * 9 + ["True"], done.stderr
    assert origin.connections == 0
    counts: dict[tuple[str, int], int] = {}
    for text in (product.folder / "n.jsonl").read_text().splitlines():
        line = json.loads(text)
        assert (line["how"], line["reason"]) == ("refused", "not-tcp")
        counts[line["host"], line["port"]] = counts.get((line["host"], line["port"]), 0) + line.get("count", 1)
    assert counts == {("a.test", 443): 3, ("1.2.3.4", 443): 3, ("2600:beef::1", 443): 3}


def test_the_tasks_own_servers_are_its_own(product: Product, lab: Lab) -> None:
    """B80: localhost, its own address and its host name never leave and are never recorded, with the proxy set."""
    assert lab
    code = python(
        "import threading, http.server, subprocess",
        "server = http.server.ThreadingHTTPServer(('0.0.0.0', 8443), http.server.SimpleHTTPRequestHandler)",
        "threading.Thread(target=server.serve_forever, daemon=True).start()",
        "for host in ('localhost', '127.0.0.1', '198.18.0.1', socket.gethostname()):",
        "    get = ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', f'http://{host}:8443/']",
        "    print(subprocess.run(get, capture_output=True).stdout.decode())",
    )
    done = captured(product, "--", *code)
    assert done.stdout.split() == ["200"] * 4, done.stderr
    assert "net:" not in done.stderr


def test_who_asks_the_proxy_for_loopback_is_told_of_the_way_without_it(product: Product, lab: Lab) -> None:
    """HLD-10, GAT-10: the hint names a rule for this machine, so the line says first that this is this machine's."""
    assert lab
    for host in ("127.0.0.5", "[::1]", "0.0.0.0"):
        done = captured(product, "--", "curl", "-sS", "--noproxy", "", f"http://{host}:8443/")
        assert done.stdout.startswith(f"{host}:8443: ")
        assert "what the task itself serves is reached without it (NO_PROXY)" in done.stdout


def test_a_server_on_every_address_is_not_everybody(product: Product, lab: Lab) -> None:
    """HLD-6: the task's listener on 0.0.0.0 does not hear what goes to a name or an address outside."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("echo", "1.2.3.4", 8443)
    code = python(
        "server = socket.create_server(('0.0.0.0', 8443))",
        "server.setblocking(False)",
        "with socket.create_connection(('a.test', 8443), 10) as wire:",
        "    wire.sendall(b'GET / HTTP/1.0\\r\\nHost: a.test\\r\\n\\r\\n'); print(wire.recv(3).decode())",
        "try: socket.create_connection(('1.2.3.5', 8443), 30).recv(1)",
        "except ConnectionResetError: print('refused')",
        "try: server.accept(); print('REACHED')",
        "except BlockingIOError: print('silent')",
    )
    done = captured(product, "--allow", "a.test:8443", "--", *code)
    assert done.stdout.split() == ["HTT", "refused", "silent"], done.stderr
    assert origin.connections == 1


def test_names_of_the_machines_hosts_file_go_through_the_gate(product: Product, lab: Lab) -> None:
    """ADR-4: in-hosts.test is in the machine's /etc/hosts: refused without a rule, reached with one, by the gate."""
    origin = lab.origin("http", "1.2.3.200", 80)
    get = [*STATUS, "http://in-hosts.test/"]
    assert captured(product, "--", *get).returncode == 6
    assert captured(product, "--allow", "in-hosts.test:80", "--", *get).stdout == "200\n"
    assert origin.connections == 1


def test_look_ups_as_programs_make_them(product: Product, lab: Lab) -> None:
    """HLD-6: AI_ADDRCONFIG finds both families, an address is stable, PTR leads back; nothing is looked up outside."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    code = python(
        "def look(flags=0): return sorted({one[4][0] for one in socket.getaddrinfo('a.test', 80, flags=flags)})",
        "print(look(socket.AI_ADDRCONFIG) == look(), len(look()), socket.gethostbyaddr(look()[0])[0])",
        "print(open('/etc/resolv.conf').read().count('nameserver'))",
        "print(socket.getaddrinfo('localhost', 80)[0][4][0] in ('::1', '127.0.0.1'))",
    )
    done = captured(product, "--allow", "a.test", "--", *code)
    assert done.stdout.splitlines() == ["True 2 a.test", "1", "True"], done.stderr
    assert lab.dns.queries == []


@pytest.mark.skipif(BUSYBOX is None, reason="there is no busybox here")
def test_a_static_program(product: Product, lab: Lab) -> None:
    """HLD-6: a static program reads the same resolv.conf and asks the same gate."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    for name, found in (("a.test", True), ("b.test", False)):
        done = captured(product, "--allow", "a.test:80", "--", "busybox", "nslookup", name)
        assert ("198.18.1.1" in done.stdout) == found, done.stdout
        assert (done.returncode == 0) == found


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give the machine another /etc")
@pytest.mark.parametrize("place", ["/etc/elsewhere.conf", "/etc/no/such/file", "/run/resolve/stub.conf", ""])
def test_resolv_conf_wherever_it_leads(product: Product, tmp_path: Path, lab: Lab, place: str) -> None:
    """HLD-6, B88: a resolv.conf that is a symlink, that dangles, or is not there: the gate's resolver answers all.

    What answers outside is /etc/hosts alone. The machine's own files stay what they were.
    """
    lab.origin("http", "1.2.3.4", 80)
    before = Path("/etc/resolv.conf").read_bytes()
    etc = tmp_path / "etc"
    # A /etc of this test's own, in a mount namespace of its own.
    script = (
        f"mount --make-rprivate / && cp -a /etc {etc} && rm -f {etc}/resolv.conf && mount --bind {etc} /etc"
        f" && echo 1.2.3.4 listed.test > {etc}/hosts && (test -z '{place}' || ln -s '{place}' {etc}/resolv.conf)"
        ' && (test "$0" != /etc/elsewhere.conf || echo nameserver 10.77.0.1 > "$0") && exec "$@"'
    )
    get = [*STATUS, "http://listed.test/"]
    argv = product.argv("run", "--capture", "on", "--profile", "closed", "--allow", "listed.test:80", "--", *get)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, place or "none", *argv],
        cwd=product.folder,
        env=product.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "200\n", done.stderr
    assert Path("/etc/resolv.conf").read_bytes() == before
    if place.startswith("/etc"):
        file = etc / place.removeprefix("/etc/")
        assert (file.read_text() if file.exists() else "") in ("", "nameserver 10.77.0.1\n")


def test_the_gates_death_ends_a_captured_task(product: Product, lab: Lab) -> None:
    """HLD-7, B95: kill -9 of the gate: 70, as without capture."""
    assert lab
    code = python("print('up', flush=True)", "time.sleep(100)")
    process = product.start("--capture", "on", "--status-file", "s.json", "--", *code)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    os.kill(_gate_of(process.pid), signal.SIGKILL)
    _, err = process.communicate(timeout=held.PATIENCE)
    assert process.returncode == 70, err
    assert json.loads((product.folder / "s.json").read_text())["source"] == "tidegate"


@pytest.mark.parametrize("user", held.USERS)
def test_without_its_gate_a_captured_connection_is_refused_at_once(user: str) -> None:
    """HLD-7: the sockets of a dead gate are closed: connections, look-ups and datagrams fail at once."""
    code = python(
        "began = time.monotonic()",
        "for address in (('1.2.3.4', 80), ('2600:beef::1', 443)):",
        "    try: socket.create_connection(address, 5); print('MADE')",
        "    except OSError as error: print(errno.errorcode[error.errno])",
        "try: socket.getaddrinfo('a.test', 80)",
        "except socket.gaierror: print('unknown')",
        "print(time.monotonic() - began < 5)",  # what waits for an answer takes that long by itself
    )
    answer = held.hold("netns", code, user=user, capture="on", gate="silent", selftest=False)
    assert answer["out"].split() == ["ECONNREFUSED", "ECONNREFUSED", "unknown", "True"], answer


@pytest.mark.parametrize(
    ("hole", "says"),
    [("redirect", "is not captured"), ("resolver", "never-allowed name")],
)
@pytest.mark.parametrize("user", held.USERS)
def test_a_hole_in_capture_stops_the_start(user: str, hole: str, says: str) -> None:
    """HLD-11: rules that were not made, a resolver that answers everything: no start, and why."""
    answer = held.hold("netns", ["echo", "ran"], user=user, capture="on", gate="real", hole=hole)
    assert answer.get("code") == "hold-selftest", answer
    assert says in answer["error"]
    assert "ran" not in answer.get("out", "")


@pytest.mark.parametrize("mode", ["on", "ports"])
@pytest.mark.parametrize("user", held.USERS)
def test_no_descriptor_of_capture_stays_inside(user: str, mode: str) -> None:
    """HLD-6: every socket made for the gate is the gate's alone: the command inherits none."""
    answer = held.hold("netns", ["ls", "-l", "/proc/self/fd"], user=user, capture=mode, gate="real")
    assert answer.get("status") == 0, answer
    assert "socket" not in answer["out"]


@pytest.mark.parametrize("user", held.USERS)
def test_a_kernel_without_netfilter_is_a_refusal_by_name(user: str) -> None:
    """HLD-7, HLD-12: the modules and the two weaker choices are named; neither is taken in its place."""
    answer = held.hold("netns", ["echo", "ran"], user=user, capture="on", gate="real", hole="netfilter")
    assert answer.get("code") == "hold-capture", answer
    for word in ("modprobe -a nf_tables", "--capture ports", "--capture off"):
        assert word in answer["error"]
    answer = held.hold("netns", ["echo", "ran"], user=user, capture="ports", gate="real", hole="netfilter")
    assert answer["out"] == "ran\n"


def test_capture_off_is_as_before(product: Product, lab: Lab) -> None:
    """HLD-7: chosen by name: no route, no resolver, the machine's files, and Java is told of the proxy."""
    lab.origin("http", "1.2.3.4", 80)
    code = python(
        "import os",
        "try: socket.create_connection(('1.2.3.4', 80), 5)",
        "except OSError as error: print(errno.errorcode[error.errno])",
        "else: print('captured')",
        "print('JAVA_TOOL_OPTIONS' in os.environ, 'nameserver 198.18' in open('/etc/resolv.conf').read())",
    )
    assert captured(product, "--", *code, mode="off").stdout.split() == ["ENETUNREACH", "True", "False"]
    assert captured(product, "--", *code).stdout.split() == ["captured", "False", "True"]


def _gate_of(pid: int) -> int:
    """The gate below what was started: it leads a session and is in our own PID namespace."""
    deadline = time.monotonic() + held.PATIENCE
    while time.monotonic() < deadline:
        for one in _below(pid):
            try:
                status = Path(f"/proc/{one}/status").read_text()
            except FileNotFoundError:
                continue  # it has ended since
            depth = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
            here = next(
                line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("NSpid:")
            )
            if os.getsid(one) == one and len(depth) == len(here.split()):
                return one
        time.sleep(0.01)
    raise AssertionError("there is no gate")


def _below(pid: int) -> list[int]:
    found = []
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []  # it has ended since
    for child in children:
        found += [int(child), *_below(int(child))]
    return found
