"""Transparent capture behind relays: `relay` and `vm`, with real engines and the toy internet (HLD-4, HLD-6, HLD-7)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.engines import IMAGE
from tests.holds.test_relays import NAMED, TRANSPORTS, World, world
from tests.product import Product
from tests.unit.gate.kit import wait
from tidegate.holds.container import relay_rules, relays
from tidegate.holds.container.relay_transport import RelayTransport
from tidegate.holds.inside import ON, PORTS
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.lab.api import Lab

__all__ = ["world"]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engines")]


class Captive:
    """`tidegate run` in one engine by one transport, with capture; Python is this machine's, shared."""

    def __init__(self, world: World, transport: str) -> None:
        self.world = world
        self.product = Product(world.folder / "person", user=False)
        self.product.environment |= {name: world.engine.environ[name] for name in NAMED if name in world.engine.environ}
        self.words = ["--hold", world.engine.name, "--image", IMAGE, "--transport", transport, "--share", "/usr:ro"]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run options and a command, with `--` between them."""
        return self.product.run(*self.words, *words, timeout=120)

    def sh(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script that no variable leads to the proxy."""
        script = "unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY; " + script
        return self.run(*options, "--", "sh", "-c", script)

    def python(self, *lines: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run lines of Python."""
        program = "\n".join(("import errno, socket, time", *lines))
        return self.run(*options, "--", "/usr/bin/python3", "-I", "-c", program)


@pytest.fixture(params=TRANSPORTS)
def captive(world: World, request: pytest.FixtureRequest) -> Iterator[Captive]:
    """Each transport in each engine; nothing of it is left."""
    yield Captive(world, request.param)
    assert world.left() == []


def test_what_knows_no_proxy_arrives_by_name(captive: Captive, lab: Lab) -> None:
    """HLD-6: by name and by an address that has a rule; another address and another name do not pass."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80, body="it is a.test\n")
    lab.origin("http", "1.2.3.6", 80, body="it is 1.2.3.6\n")
    other = lab.origin("http", "1.2.3.5", 80, body="it is another\n")
    script = (
        "ip link | grep -c mtu; wget -q -O- http://a.test/; wget -q -O- http://1.2.3.6/;"
        " wget -q -O- http://b.test/; wget -q -O- http://1.2.3.5/; echo end"
    )
    done = captive.sh(script, "--allow", "a.test:80", "--allow", "1.2.3.6:80")
    assert done.stdout == "1\nit is a.test\nit is 1.2.3.6\nend\n", done.stderr
    assert other.connections == 0
    assert "1.2.3.5:80" in done.stderr
    assert "--allow b.test:80" in done.stderr


def test_whoever_speaks_first_and_how_it_ends(captive: Captive, lab: Lab) -> None:
    """HLD-6, GAT-5, GAT-9: a banner comes, much comes whole, ssh that is refused is told so, and others are reset."""
    lab.dns.set("git.test", A=["1.2.3.4"])
    lab.dns.set("big.test", A=["1.2.3.7"])
    lab.origin("banner", "1.2.3.4", 22)
    lab.origin("download", "1.2.3.7", 80, size=8 << 20)
    done = captive.python(
        "def whole(host, port, said=b''):",
        "    found = b''",
        "    with socket.create_connection((host, port), 20) as wire:",
        "        wire.sendall(said)",
        "        while part := wire.recv(65536): found += part",
        "    return found",
        "with socket.create_connection(('git.test', 22), 20) as wire: print(wire.recv(4).decode())",
        "said = whole('big.test', 22)",
        "print(said[:4].decode(), b'--allow big.test:22' in said)",
        "get = b'GET / HTTP/1.0\\r\\nHost: big.test\\r\\n\\r\\n'",
        "print(len(whole('big.test', 80, get).partition(b'\\r\\n\\r\\n')[2]))",
        "try: print(whole('1.2.3.5', 8443, b'\\0\\1\\2'))",
        "except OSError as error: print(errno.errorcode[error.errno])",
        options=("--allow", "git.test:22", "--allow", "big.test:80"),
    )
    assert done.stdout.splitlines() == ["SSH-", "SSH- True", str(8 << 20), "ECONNRESET"], done.stderr


def test_ipv6_by_name_and_by_literal(captive: Captive, lab: Lab) -> None:
    """HLD-6: the same over IPv6, where the engine gives such a container any: docker does not."""
    if not lab.ipv6:
        pytest.skip("this kernel has no IPv6")
    lab.dns.set("six.test", AAAA=["2600:beef::5"])
    origin = lab.origin("http", "2600:beef::5", 80)
    done = captive.python(
        "for host in ('six.test', '2600:beef::5', '2600:beef::6'):",
        "    try:",
        "        with socket.create_connection((host, 80), 20) as wire:",
        "            named = f'[{host}]' if ':' in host else host",
        "            wire.sendall(b'GET / HTTP/1.0\\r\\nHost: %b\\r\\n\\r\\n' % named.encode())",
        "            print(wire.family.name, wire.recv(12)[9:].decode())",
        "    except OSError as error: print(errno.errorcode.get(error.errno, error))",
        options=("--allow", "six.test:80", "--allow", "[2600:beef::5]:80"),
    )
    said = done.stdout.splitlines()
    if captive.world.engine.name == "docker":
        assert said[1:] == ["ENETUNREACH", "ENETUNREACH"] or said[1:] == ["EADDRNOTAVAIL"] * 2, done
        return
    assert said == ["AF_INET6 200", "AF_INET6 200", "AF_INET6 403"], done
    assert origin.connections == 2


def test_a_datagram_fails_at_once_and_is_in_the_journal(captive: Captive, lab: Lab) -> None:
    """HLD-6, JRN-3, B83: QUIC to a name and to an address: an error at once, and where it was going is on record."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    origin = lab.origin("udp", "1.2.3.4", 443)
    done = captive.python(
        "for host in ('a.test', '1.2.3.5'):",
        "    to = socket.getaddrinfo(host, 443, socket.AF_INET, socket.SOCK_DGRAM)[0][4]",
        "    for _ in range(3):",
        "        try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'quic', to)",
        "        except OSError as error: print(errno.errorcode[error.errno])",
        "socket.getaddrinfo('a.test', 443)",
        options=("--allow", "a.test", "--log", "n.jsonl"),
    )
    assert done.stdout.split() == ["EPERM"] * 6, done.stderr
    assert origin.connections == 0
    counts: dict[tuple[str, int], int] = {}
    for text in (captive.product.folder / "n.jsonl").read_text().splitlines():
        line = json.loads(text)
        assert (line["how"], line["reason"]) == ("refused", "not-tcp")
        counts[line["host"], line["port"]] = counts.get((line["host"], line["port"]), 0) + line.get("count", 1)
    assert counts == {("a.test", 443): 3, ("1.2.3.5", 443): 3}


def test_every_resolver_is_the_gate(captive: Captive, lab: Lab) -> None:
    """HLD-6, B88: by datagrams and streams, at any address; each answer bears its own question's number; many at once.

    None of it asks anybody outside.
    """
    done = captive.python(
        "ask = lambda name: bytes((0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)) + b'\\1' + name + b'\\4test\\0\\0\\1\\0\\1'",
        "def by_stream(wire, message):",
        "    wire.sendall(len(message).to_bytes(2, 'big') + message)",
        "    said = b''",
        "    while len(said) < 2 or len(said) < 2 + (said[0] << 8 | said[1]): said += wire.recv(4096)",
        "    return said[2:]",
        "shown = lambda said: (said[:2] == bytes((0, 7)), said[3] & 15)",
        "with socket.create_connection(('9.9.9.9', 53), 20) as wire:",
        "    print(shown(by_stream(wire, ask(b'a'))), shown(by_stream(wire, ask(b'b'))))",
        "socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(200)]",
        "for number, one in enumerate(socks):",
        "    one.settimeout(20); one.connect(('8.8.8.8', 53))",
        "    one.send(number.to_bytes(2, 'big') + ask(b'ab'[number % 2:][:1])[2:])",
        "heard = [one.recv(4096) for one in socks]",
        "print(all(said[:2] == number.to_bytes(2, 'big') and said[3] & 15 == 3 * (number % 2)",
        "    for number, said in enumerate(heard)))",
        options=("--allow", "a.test:80", "--profile", "closed"),
    )
    assert done.stdout.splitlines() == ["(True, 0) (True, 3)", "True"], done.stderr
    assert lab.dns.queries == []


def test_who_makes_the_rules_is_gone_before_the_worker(captive: Captive, lab: Lab) -> None:
    """HLD-13: while the command runs there is no container with a right in its network, and it can change no rule."""
    assert lab
    engine = captive.world.engine
    process = captive.product.start(*captive.words, "--", "sh", "-c", "echo ready; sleep 1000")
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read() if process.stderr else ""
        ids = engine.run("ps", "--all", "--quiet", "--no-trunc").split()
        seen = [engine.inspect(one) for one in ids]
        ours = [one for one in seen if (one["Config"].get("Labels") or {}).get("tidegate.owner")]
        assert len(ours) == (3 if captive.words[5] == "vm" else 2)
        assert [one["Config"]["Labels"]["tidegate.part"] for one in ours].count(relay_rules.PART) == 0
        assert not [one for one in ours if one["HostConfig"].get("CapAdd") or one["HostConfig"].get("Privileged")]
    finally:
        process.terminate()
        process.communicate(timeout=60)
    wait(lambda: captive.world.left() == [], timeout=30)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_rules_that_cannot_be_made_stop_the_start(
    world: World, lab: Lab, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """HLD-7: an engine that gives no right: one line, what to write instead, never without capture; nothing is left."""
    assert lab
    monkeypatch.setattr(relay_rules, "RIGHTS", ())
    from tidegate.holds.container.vm_transport import VmTransport

    made = {"relay": RelayTransport, "vm": VmTransport}[transport]()
    with pytest.raises(StartError) as caught:
        made.open(world.engine, world.way(capture=ON), lambda _sockets: None)
    assert (caught.value.code, caught.value.exit_status) == ("capture", 78)
    assert "--capture off" in caught.value.fix
    assert "\n" not in str(caught.value)
    assert world.left() == []


def test_who_made_the_rules_and_stays_stops_the_start(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-7, HLD-13: where that container cannot be removed, nothing with a right in the network is left beside it."""
    remove = world.engine.remove
    asked: list[str] = []

    def says_no(*containers: str) -> None:
        asked.extend(containers)
        if len(asked) == 1:
            raise StartError("it cannot be removed", code="engine")
        remove(*containers)

    monkeypatch.setattr(world.engine, "remove", says_no)
    with pytest.raises(StartError):
        RelayTransport().open(world.engine, world.way(capture=ON), lambda _sockets: None)
    remove(asked[0])
    remove(*world.left())
    assert world.left() == []


def test_a_gate_that_captures_nothing_stops_the_start(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """HLD-11: what is tried from inside has to be refused by the gate, in words, before there is a worker."""
    monkeypatch.setattr(relays, "ask_gate", lambda *_: None)  # the look before it, which this would not pass either
    with pytest.raises(StartError) as caught:
        RelayTransport().open(world.engine, world.way(capture=ON), lambda _sockets: None)
    assert (caught.value.code, caught.value.exit_status) == ("self-test", 78)
    assert world.left() == []


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_capture_by_ports_is_refused_by_name(world: World, transport: str) -> None:
    """HLD-7: what a relay does not have is said, with what it has."""
    captive = Captive(world, transport)
    done = captive.run("--capture", PORTS, "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (78, 1), done.stderr
    assert "--capture on" in done.stderr
    assert world.left() == []
