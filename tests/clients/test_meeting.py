"""pip, npm, git and curl meet a question, by proxy and by capture: each waits and succeeds, or its retry does (ASK-3).

The rows are in meeting.py. The server is `tidegate serve`, the person somebody with `tidegate questions` and `answer`.
"""

from __future__ import annotations

import json
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.client_programs import trusting
from tests.clients import registries
from tests.clients.kit import (
    ALLOWED,
    CAPTURE,
    PROXY,
    Place,
    assert_prints,
    need,
    net_lines,
    own_lines,
    shown,
    without_proxies,
)
from tests.clients.meeting import ENOUGH, MEETINGS, Meeting
from tests.clients.test_services import repository
from tests.https_site import HttpsSite
from tests.product import PYTHON
from tests.served import Served, until
from tidegate.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.product import Product

HOW = {PROXY: "tunneled", CAPTURE: "captured"}
CASES = [pytest.param(row, way, id=f"{row}-{way.replace(' ', '-')}") for row in MEETINGS for way in (PROXY, CAPTURE)]
over_all_clients = pytest.mark.parametrize(("row", "way"), CASES)


class Person:
    """Somebody who watches `tidegate questions --follow` and answers."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.seen: list[dict[str, Any]] = []
        self._watch = server.start("questions", "--follow", "--json")
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        until(lambda: server.json("task", "list") == [] and server.tidegate("questions").returncode == 0)

    def _read(self) -> None:
        assert self._watch.stdout is not None
        for line in self._watch.stdout:
            self.seen.append(json.loads(line))

    def sees(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a question in such a state, and return it."""
        found: dict[str, Any] = until(lambda: next((one for one in list(self.seen) if condition(one)), None))
        return found

    def answers(self, number: int, answer: str) -> None:
        """Answer a question."""
        done = self.server.tidegate("answer", str(number), answer)
        assert done.returncode == 0, done.stderr

    def numbers(self) -> set[int]:
        """Return all questions that were ever asked."""
        return {one["id"] for one in self.seen}

    def leave(self) -> None:
        """Go away."""
        self._watch.terminate()
        self._reader.join()
        self._watch.communicate()


@pytest.fixture
def site(product: Product, lab: Lab, tmp_path: Path) -> Iterator[HttpsSite]:
    """What all clients fetch, at https://a.test/."""
    with HttpsSite(lab.listener(ALLOWED, 443), ["a.test"], tmp_path) as made:
        product.environment.update(trusting(shown(product, made.ca_file)))
        registries.python_index(made)
        registries.npm_registry(made)
        made.pages["/"] = ("text/plain", b"it is a.test\n")
        (product.home / "there").write_text("it was there\n")
        repository(product.home)
        made.repositories = product.home
        yield made


@pytest.fixture
def server(product: Product, site: HttpsSite) -> Iterator[Served]:
    """A running server."""
    assert site
    with Served(product) as made:
        yield made


@pytest.fixture
def person(server: Served) -> Iterator[Person]:
    """Somebody is there."""
    made = Person(server)
    yield made
    made.leave()


def begin(server: Served, way: str, argv: Sequence[str], *options: str) -> subprocess.Popen[str]:
    """Start a client that can reach the gate in one way only."""
    if way == PROXY:
        return server.start("run", "--wait", "--capture", "off", *options, "--", *argv)
    return server.start("run", "--wait", *options, "--", *without_proxies(argv))


def place(product: Product, host: str = "a.test") -> Place:
    """Where a client runs, and whom it asks."""
    return Place("https", host, str(product.folder), str(product.home), product.environment["SSL_CERT_FILE"])


def outcome(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Wait for a client's end."""
    out, err = process.communicate(timeout=90)
    return subprocess.CompletedProcess((), process.returncode, out, err)


@over_all_clients
def test_it_waits_and_succeeds(
    product: Product, lab: Lab, person: Person, record_property: Callable[[str, object], None], row: Meeting, way: str
) -> None:
    """ASK-1, ASK-3, B140: held without a look-up, one question for all its connections, and let through in the end."""
    need(row.client, record_property)
    process = begin(person.server, way, row.command(place(product)))
    question = person.sees(lambda one: one["waiting"] > 0)
    assert (question["host"], question["port"], question["rule_name"]) == ("a.test", 443, "no-rule")
    assert lab.dns.count("a.test", "A") == 0
    assert process.poll() is None
    person.answers(question["id"], "task")
    done = outcome(process)
    assert done.returncode == 0, done.stderr
    assert (product.folder / row.got).exists()
    assert person.numbers() == {question["id"]}
    lines = [line for line in net_lines(done) if "· not connected, " not in line]  # from a race of its addresses
    # One of its connections may come when the answer is there already, and then nobody was asked for that one.
    assert {line.replace(", a person allowed it", "") for line in lines} == {f"net: a.test:443 · {HOW[way]} (answered)"}
    if row.meanwhile:
        assert own_lines(done)[0] == row.meanwhile


@over_all_clients
def test_the_retry_of_one_that_gave_up_succeeds(
    product: Product, person: Person, record_property: Callable[[str, object], None], row: Meeting, way: str
) -> None:
    """ASK-3, B140: the question outlives it; the answer that comes after it gave up is there for its next try."""
    need(row.client, record_property)
    process = begin(person.server, way, row.hurried(place(product)))
    number = person.sees(lambda one: one["waiting"] > 0)["id"]
    (product.folder / ENOUGH).touch()
    person.sees(lambda one: one["id"] == number and one["waiting"] == 0)
    person.answers(number, "task")
    done = outcome(process)
    assert done.returncode == 0, done.stderr
    assert (product.folder / row.got).exists()
    assert person.numbers() == {number}
    lines = net_lines(done)
    passed = f"net: a.test:443 · {HOW[way]} (answered)"
    assert passed in [line.replace(", a person allowed it", "") for line in lines]
    assert "net: a.test:443 · not connected, the client went away while a person was asked (no-rule)" in lines
    assert not [line for line in lines if "to let it through" in line]
    if row.gives_up[way]:
        first, _, last = row.gives_up[way].partition("…")
        last = last.rpartition("…")[2]
        assert any(line.startswith(first) and line.endswith(last) for line in own_lines(done)), done.stderr


@over_all_clients
def test_what_it_says_when_a_person_refuses(
    product: Product, person: Person, record_property: Callable[[str, object], None], row: Meeting, way: str
) -> None:
    """ASK-2, B143: as with any refusal; tidegate's line says that it was a person; its own retries ask nobody again."""
    need(row.client, record_property)
    process = begin(person.server, way, row.client.command(place(product)))
    number = person.sees(lambda one: one["waiting"] > 0)["id"]
    person.answers(number, "deny")
    done = outcome(process)
    assert net_lines(done) == [f"net: a.test:443 · refused, {Reason.DENIED_BY_PERSON.sentence} (answered)"]
    assert person.numbers() == {number}
    assert_prints(done, row.client, row.client.refused[way, row.scheme], "a.test", 443)


@pytest.mark.slow
def test_what_they_say_when_nobody_answers(
    product: Product, person: Person, record_property: Callable[[str, object], None]
) -> None:
    """ASK-2, B140: refused at the end of the wait as by a rule; the number is named, and an answer serves the retry."""
    for row in MEETINGS:
        need(row.client, record_property)
    task = person.server.tidegate("task", "create", "--wait-for", "1m").stdout.strip()
    asks = ("exec", task, "--wait", "--", "curl", "-sS", "http://a.test/")
    one = person.server.start(*asks)
    running = []
    for row, way in [(row, way) for row in MEETINGS for way in (PROXY, CAPTURE)]:
        argv = list(row.client.command(place(product)))
        if row.client.name == "pip":
            argv += ["--timeout", "100", "--retries", "0"]  # else its own time-out comes first
        apart = ["sh", "-c", 'mkdir "$1" && cd "$1" && shift && exec "$@"', "sh", f"{row.client.name} {way}", *argv]
        running.append((row, way, begin(person.server, way, apart, "--wait-for", "1m")))
    said, _ = one.communicate(timeout=120)
    question = person.sees(lambda one: one["task"] == task and one["state"] == "expired")
    assert f"[not-answered; no-rule, profile balanced, question {question['id']}]" in said
    for row, way, process in running:
        done = outcome(process)
        assert net_lines(done) == [
            f"net: a.test:443 · refused, {Reason.NOT_ANSWERED.sentence} (no-rule)",
            "net: to let it through: --allow a.test:443",
        ]
        if row.client.name != "pip":
            assert_prints(done, row.client, row.client.refused[way, row.scheme], "a.test", 443)
    person.answers(question["id"], "allow")
    retry = person.server.tidegate(*asks)
    # It was let through, and nothing listens there.
    assert retry.stderr.splitlines()[-1] == f"net: a.test:80 · refused, {Reason.UPSTREAM_REFUSED.sentence} (answered)"
    assert len([one for one in person.numbers() if one != question["id"]]) == 2 * len(MEETINGS)


def test_with_nobody_there_the_refusal_is_immediate(product: Product, server: Served) -> None:
    """B142, ASK-4: nobody watches, so no question is opened; without --wait nobody is asked either, and it is said."""
    curl = ("--", "curl", "-sS", "http://a.test/")
    done = server.tidegate("run", "--wait", *curl)
    assert f"a.test:80: {Reason.NOBODY_THERE.sentence} [nobody-there; " in done.stdout
    assert f"net: a.test:80 · refused, {Reason.NOBODY_THERE.sentence} (no-rule)" in done.stderr
    done = server.tidegate("run", *curl)
    assert f"a.test:80: {Reason.NO_APPROVER.sentence} [no-approver; " in done.stdout
    assert server.tidegate("questions", "--all").stdout == ""
    assert product.folder.exists()


FLOOD = """
import socket
def connect(host):
    sock = socket.create_connection(("127.0.0.1", 3128))
    sock.sendall(f"CONNECT {host}:443 HTTP/1.1\\r\\nHost: {host}:443\\r\\n\\r\\n".encode())
    return sock
same = [connect("a.test") for _ in range(100)]
others = [connect(f"x{number}.gen.test") for number in range(59)]
print({one.recv(4096).split()[1] for one in same})
"""


def test_a_flood_is_few_questions(person: Person) -> None:
    """B143, ASK-7: 100 connections to one host are one question; 60 hosts are no more than 20, in one group."""
    process = person.server.start("run", "--wait", "--", PYTHON, "-c", FLOOD)
    first = person.sees(lambda one: one["host"] == "a.test" and one["waiting"] == 100)["id"]
    until(lambda: len(person.numbers()) == 20)
    person.answers(first, "deny")
    out, err = process.communicate(timeout=60)
    assert out == "{b'403'}\n", err
    assert len(person.numbers()) == 20
    assert {one["group"] for one in person.seen if one["group"]} == {"gen.test"}
    assert err.count(f"refused, {Reason.TOO_MANY_QUESTIONS.sentence}") == 40
    assert err.count("the client went away while a person was asked") == 19


def test_an_answer_that_cannot_help_says_so(lab: Lab, person: Person) -> None:
    """B146, ADR-2, ADR-4: no look-up before the answer; where it leads to a private address the person is told."""
    lab.dns.set("p.test", A=["10.0.0.1"])
    process = person.server.start("run", "--wait", "--", "curl", "-sS", "http://p.test/")
    question = person.sees(lambda one: one["host"] == "p.test")
    assert lab.dns.count("p.test", "A") == 0
    person.answers(question["id"], "allow")
    out, _ = process.communicate(timeout=60)
    assert "private address, which needs a written rule for exactly this host" in out
    told = person.sees(lambda one: bool(one["problem"]))
    assert told["id"] == question["id"]
    assert "it leads to 10.0.0.1" in told["problem"]


def test_the_answer_for_a_task_outlives_the_server(product: Product, lab: Lab, site: HttpsSite) -> None:
    """B145: it was on the disk before the connection moved; a server that comes after a kill asks nobody again."""
    assert site
    lab.origin("http", ALLOWED, 80, body="it is a.test\n")
    asks = ("--wait", "--", "curl", "-sSf", "http://a.test/")
    server = Served(product)
    person = Person(server)
    task = server.tidegate("task", "create").stdout.strip()
    process = server.start("exec", task, *asks)
    person.answers(person.sees(lambda one: one["waiting"] > 0)["id"], "task")
    assert process.communicate(timeout=60)[0] == "it is a.test\n"
    server.kill()
    person.leave()
    with Served(product) as server:
        done = server.tidegate("exec", task, *asks)
        assert done.stdout == "it is a.test\n", done.stderr
        assert server.tidegate("questions", "--all").stdout == ""
