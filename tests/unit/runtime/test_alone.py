"""tidegate.runtime.alone, and what runs without a server put into the action log, as a person starts them."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.person import Person
from tests.product import PATIENCE, Product
from tests.served import Served, until
from tests.unit.journal.events import refused
from tidegate.journal.file_lock import FileLock
from tidegate.journal.segments import LIVE_NAME, LOCK_NAME, read
from tidegate.journal.verify import verify
from tidegate.model.errors import StartError
from tidegate.runtime.alone import AloneBook

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.api import Lab

REFUSED = ["task.created", "exec.started", "net.blocked", "egress.refused", "exec.ended", "task.ended"]
ASKED = ["question.opened", "question.answered"]


@pytest.fixture(params=["root", "user"] if os.geteuid() == 0 else ["user"])
def product(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product on a machine of the lab."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    return Product(tmp_path, user=request.param == "user")


def lines(product: Product) -> list[dict[str, Any]]:
    """The lines of the log, which verifies; [] where there is none."""
    log = product.state / "log"
    if not log.exists():
        return []
    found = verify(str(log), str(product.state / "keys"))
    assert found.ok, found.findings
    return list(read(str(log)))


def kinds(product: Product) -> list[str]:
    """The types of its lines."""
    return [line["type"] for line in lines(product)]


def test_a_refusal_is_in_the_log_of_all_tasks(product: Product) -> None:
    """JRN-2 to JRN-5: with the task it belongs to, its beginning and end, and nothing of the command's arguments."""
    assert product.run("--quiet", "--", "curl", "-s", "-o", "/dev/null", "http://b.test/?key=secret").returncode == 0
    found = lines(product)
    assert [line["type"] for line in found] == REFUSED
    assert {line["task"] for line in found} == {path.name for path in (product.state / "tasks").iterdir()}
    assert (found[0]["command"], found[0]["folder"]) == (["curl", "-s", "-o", "…"], str(product.folder))
    assert (found[2]["host"], found[3]["host"], found[4]["connections"]) == ("b.test:80", "b.test", 1)
    assert "secret" not in json.dumps(found)
    shown = product.tidegate("events", "--type", "egress.refused", "--json")
    assert "b.test" in shown.stdout, shown.stderr


def test_a_run_that_refuses_nothing_loads_nothing_of_it(product: Product) -> None:
    """Start of `run`: no log is made where there is nothing to say."""
    done = product.run("--quiet", "--allow", "a.test", "--", "curl", "-s", "-o", "/dev/null", "http://a.test/")
    assert done.returncode == 0
    assert kinds(product) == []


def test_an_open_network_is_an_event(product: Product) -> None:
    """HLD-5: on record before the command begins, also where no server runs; offline has nothing to record."""
    assert product.run("--open-network", "--", "true").returncode == 0
    assert kinds(product) == ["task.created", "exec.started", "open.network", "exec.ended", "task.ended"]
    assert product.run("--no-network", "--", "true").returncode == 0
    assert len(kinds(product)) == 5


def test_answers_at_the_terminal_are_in_the_log(product: Product) -> None:
    """ASK-2, JRN-2: each answer, by whom, and the rule that was remembered, whether a server runs or not."""
    line = "for one in 1 2 3; do curl -s -o /dev/null http://h$one.test/; done"
    words = ("run", "--ask", "--quiet", "--profile", "closed", "--ask-for", "*.test", "--", "sh", "-c", line)
    with Person.at(product, *words) as person:
        for key in "adr":
            person.press(key)
            person.look(0.4)
        assert person.end() == 0
    found = lines(product)
    assert [one["type"] for one in found if one["type"].startswith(("question", "rule"))] == [
        *ASKED, *ASKED, *ASKED, "rule.remembered",
    ]  # fmt: skip
    answered = [one for one in found if one["type"] == "question.answered"]
    assert [(one["answer"], one["by"], one["host"]) for one in answered] == [
        ("allow", "terminal", "h1.test:80"), ("deny", "terminal", "h2.test:80"), ("remember", "terminal", "h3.test:80"),
    ]  # fmt: skip
    assert [one["type"] for one in found][-2:] == ["exec.ended", "task.ended"]


def test_a_server_and_runs_beside_it_write_one_chain(product: Product) -> None:
    """JRN-2: `--no-server` runs at once with a server's own; the chain holds, and the server goes on behind them."""
    with Served(product) as server:
        running = [
            product.start(*alone, "--quiet", "--", "sh", "-c", f"curl -s -o /dev/null http://h{number}.test/; exit 0")
            for number in range(3)
            for alone in ((), ("--no-server",))
        ]
        for one in running:
            one.communicate(timeout=PATIENCE)
            assert one.returncode == 0
        assert server.tidegate("log", "verify").returncode == 0
    found = kinds(product)
    assert (found[0], found[-1]) == ("server.started", "server.stopped")
    assert {kind: found.count(kind) for kind in REFUSED} == dict.fromkeys(REFUSED, 6)


def test_a_killed_gate_leaves_a_chain_that_goes_on(product: Product) -> None:
    """JRN-2, HLD-7: what was written stays; the next run goes on behind it."""
    line = "curl -s -o /dev/null http://b.test/; echo done; sleep 60"
    with product.start("--quiet", "--", "sh", "-c", line) as task:
        assert task.stdout is not None
        assert task.stdout.readline() == "done\n"
        log = product.state / "log" / LIVE_NAME
        until(lambda: log.exists() and b"net.blocked" in log.read_bytes(), "nothing was written")
        task.send_signal(signal.SIGKILL)
        task.communicate(timeout=PATIENCE)
    assert product.run("--quiet", "--", "curl", "-s", "-o", "/dev/null", "http://b.test/").returncode == 0
    assert kinds(product)[-6:] == REFUSED


def order(state: Path) -> dict[str, Any]:
    """What a gate is told."""
    return {
        "task": "t1", "state": str(state), "folder": "/f", "command": ("true",), "phase": "runtime", "hold": "netns",
    }  # fmt: skip


def test_a_log_that_cannot_be_written_stops_no_run(tmp_path: Path) -> None:
    """JRN-5: it is said once; who needs the log to keep an answer is refused."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "log").write_text("")
    said: list[str] = []
    book = AloneBook(order(state), clock=lambda: 0.0, warn=said.append)
    for number in range(3):
        book.take(refused(host=f"h{number}.test"))
        book.tick()
    book.close()
    assert len(said) == 1
    assert said[0].startswith("this run is not in the action log: ")
    with pytest.raises(StartError):
        book.open()


def test_many_refusals_do_not_pile_up(tmp_path: Path) -> None:
    """JRN-3, JRN-5: a flood is folded; a log that another holds loses lines by count and never the run."""
    state = tmp_path / "state"
    said: list[str] = []
    book = AloneBook(order(state), clock=lambda: 0.0, warn=said.append)
    for number in range(600):
        book.take(refused(host=f"h{number}.test"))
    book.tick()
    assert 200 < len(list(read(str(state / "log")))) < 300
    held = FileLock(str(state / "log" / LOCK_NAME))
    held.take(0)
    book.close()
    assert len(said) == 1
