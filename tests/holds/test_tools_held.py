"""Tools that say `apply_task_hosts`: their programs run behind the task's own gate, with the task's hosts (SRV-6)."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.kit import ALLOWED, REFUSED
from tests.engines import of_one_worker
from tests.holds.inside_tls import PLACES, Inside
from tests.product import PATIENCE
from tests.served import Served, until
from tests.tools_kit import called, declare, post, tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.api import Lab

TEXT = {"type": "string", "maxLength": 300}
CURL = """
import subprocess
more = ['--noproxy', '*'] if data.get('direct') else []
argv = ['curl', '-sS', '-L', '-m', '30', '-w', '\\n%{http_code}', *more, url]
done = subprocess.run(argv, capture_output=True, text=True)
body, _, code = done.stdout.rpartition('\\n')
print(json.dumps({'status': done.returncode, 'code': code, 'body': body, 'said': done.stderr}))
"""
HELD = {"apply_task_hosts": True, "timeout_seconds": 60}


def fetch(**more: Any) -> dict[str, Any]:
    """A tool that fetches a URL, following redirects as it likes."""
    made = tool(CURL, url=TEXT, more=more)
    made["input_schema"]["properties"]["direct"] = {"type": "boolean"}
    return made


def got(inside: Inside, *inputs: dict[str, Any], name: str = "held", allow: str = "a.test") -> list[dict[str, Any]]:
    """What the tool says of these inputs, called by one task."""
    script = "; ".join(f"{post(name, one)}; echo" for one in inputs)
    done = inside.run("--allow", allow, "--tool", name, script=script)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line]
    assert len(lines) == len(inputs), done.stderr
    return lines


@pytest.fixture
def inside(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Inside]:
    """A person with the same tool twice: held, and as tools are."""
    with Inside(request.param, request, lab) as made:
        declare(made.product, held=fetch(**HELD), free=fetch())
        yield made


@pytest.mark.parametrize("inside", PLACES, indirect=True)
def test_a_held_tool_reaches_the_tasks_hosts_and_no_others(inside: Inside, lab: Lab) -> None:
    """SRV-6: by the proxy and by capture: the task's host, not another, not an address, not the tools themselves."""
    lab.origin("http", ALLOWED, 80)
    other = lab.origin("http", REFUSED, 80)
    urls = ("http://a.test/", "http://b.test/", f"http://{REFUSED}/", "http://tools.tidegate.internal/")
    found = got(inside, *({"url": url} for url in urls), {"url": "http://a.test/", "direct": True})
    found.append(got(inside, {"url": "http://b.test/", "direct": True})[0])
    assert [one["code"] for one in found[:5]] == ["200", "403", "403", "403", "200"], found
    assert (found[5]["status"] != 0 or found[5]["code"] == "403", other.requests) == (True, 0), found
    assert {one["result"] for one in called(inside.product)} == {"ok"}


@pytest.mark.parametrize("inside", ["netns"], indirect=True)
def test_another_tool_is_not_limited(inside: Inside, lab: Lab) -> None:
    """SRV-6: without apply_task_hosts the task's hosts do not apply: what the machine reaches, the tool reaches."""
    origin = lab.origin("http", "127.0.0.1", 0, machine=True)
    url = {"url": f"http://127.0.0.1:{origin.port}/"}
    assert [one["code"] for one in got(inside, url, name="free")] == ["200"]
    assert [one["code"] for one in got(inside, url, name="held")] == ["000"]  # its loopback is its own
    assert origin.requests == 1


@pytest.mark.parametrize("inside", ["netns"], indirect=True)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_a_held_tool_follows_no_redirect(inside: Inside, lab: Lab, status: str) -> None:
    """SRV-6: an answer that leads elsewhere, also to where the task may go, is 403; what leads nowhere passes."""
    lab.origin("http", ALLOWED, 80, status=status, headers=["Location: http://a.test:81/"])
    lab.origin("http", ALLOWED, 81, status="304 Not Modified")
    found = got(inside, {"url": "http://a.test/"}, {"url": "http://a.test:81/"})
    assert [one["code"] for one in found] == ["403", "304"]
    assert "follows no redirects" in found[0]["body"]
    done = inside.run("--allow", "a.test", script="curl -sS -o /dev/null -w '%{http_code}' http://a.test/")
    assert done.stdout == status[:3]  # the task itself is answered as ever


@pytest.mark.parametrize("inside", ["netns"], indirect=True)
def test_where_it_is_read_inside_tls_too(inside: Inside, lab: Lab) -> None:
    """SRV-6, INS-1: on a host that the gate reads, the program trusts its authority, and a redirect is refused."""
    lab.origin("http", ALLOWED, 443, tls="a.test", status="302 Found", headers=["Location: https://a.test/x"])
    inside.write("read.yaml", "network: {runtime: {allow: [{host: a.test, methods: [GET]}]}}\n")
    script = post("held", {"url": "https://a.test/"})
    done = inside.run("--policy", "read.yaml", "--tool", "held", script=script)
    found = json.loads(done.stdout)
    assert (found["code"], found["status"]) == ("403", 0), (found, done.stderr)


LOOP = """
import subprocess
def ask():
    argv = ['curl', '-s', '-m', '30', '-o', '/dev/null', '-w', '%{http_code}', url]
    return subprocess.run(argv, capture_output=True, text=True).stdout
first = last = ask()
until = time.time() + 120
while last != '403' and time.time() < until:
    time.sleep(0.05)
    last = ask()
print(json.dumps([first, last]))
"""


@pytest.mark.parametrize("inside", ["netns", pytest.param("docker", marks=of_one_worker("docker"))], indirect=True)
@pytest.mark.parametrize("words", [("deny", "a.test", "--task"), ("pause", "--task")], ids=["deny", "pause"])
def test_what_the_operator_changes_changes_it_too(inside: Inside, lab: Lab, words: tuple[str, ...]) -> None:
    """SRV-6, POL-8: behind a server a deny for the living task, and its pause, count for a tool that runs by then."""
    lab.origin("http", ALLOWED, 80)
    declare(inside.product, loop=tool(LOOP, url=TEXT, more=HELD | {"timeout_seconds": 150}))
    script = post("loop", {"url": "http://a.test/"}, "-m", "200")
    with Served(inside.product) as server:
        task = server.tidegate("task", "create", "--allow", "a.test").stdout.strip()
        with server.start("exec", task, *inside.words("--tool", "loop", script=script)) as process:
            until(lambda: _reached(server, task) or process.poll() is not None)
            changed = server.tidegate(*words, task)
            assert changed.returncode == 0, changed.stderr
            out, err = process.communicate()
    assert json.loads(out) == ["200", "403"], err


def _reached(server: Served, task: str) -> bool:
    path = server.state / "tasks" / task / "network.jsonl"
    return path.exists() and b'"a.test"' in path.read_bytes()


@pytest.mark.parametrize("inside", ["landlock"], indirect=True)
def test_where_no_hold_can_be_made_it_does_not_start(inside: Inside, lab: Lab) -> None:
    """SRV-6: no namespaces, no run: nothing falls back to every host in reach, and the person reads why."""
    origin = lab.origin("http", ALLOWED, 80)
    declare(inside.product, held=fetch(**HELD))
    words = inside.words("--allow", "a.test", "--tool", "held", script=post("held", {"url": "http://a.test/"}))
    command = shlex.join(inside.product.argv("run", *words))
    script = f"echo 0 > /proc/sys/user/max_net_namespaces; exec {command}"
    argv = ["unshare", "--user", "--map-root-user", "sh", "-c", script]
    done = subprocess.run(
        argv,
        cwd=inside.product.folder,
        env=inside.product.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    error = json.loads(done.stdout)["error"]
    assert (error["code"], "stderr" in error, origin.requests) == ("not-started", False, 0), done.stderr
    (log,) = (inside.product.state / "tasks").glob("*/tools.log")
    assert "max_net_namespaces" in log.read_text()
