"""Tools in every hold that has a gate, alone and behind a server (SRV-6)."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.engines import of_one_worker
from tests.holds.inside_tls import OWN, PLACES, Inside
from tests.product import PYTHON, Product
from tests.served import Served, until
from tests.tools_kit import URL, called, declare, post, tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.api import Lab

DOCKER = [pytest.param("docker", marks=of_one_worker("docker"))]
TEXT = {"type": "string", "maxLength": 100}
SHOUT = tool("print(json.dumps({'shout': text.upper(), 'uid': os.getuid()}))", text=TEXT)


@pytest.fixture
def inside(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Inside]:
    """A person with tools, in one hold."""
    with Inside(request.param, request, lab) as made:
        declare(made.product, shout=SHOUT, other=tool("print('never')"))
        yield made


@pytest.mark.parametrize("inside", PLACES, indirect=True)
def test_a_tool_runs_outside_for_the_task(inside: Inside) -> None:
    """SRV-6: the task reaches its tool at the gate's name; the program runs as the person; no other tool is there."""
    script = f"{post('shout', {'text': 'hey'})}; {post('other', {})}; curl -sS {URL}/"
    done = inside.run("--tool", "shout", script=script)
    assert done.returncode == 0, done.stderr
    answer, missing, listed = (json.loads(line) for line in done.stdout.splitlines())
    assert answer == {"shout": "HEY", "uid": os.getuid()}
    assert missing["error"]["message"].startswith("there is no such tool")
    assert [one["name"] for one in listed["tools"]] == ["shout"]
    assert "tool: shout · 1 call\n" in done.stderr
    calls = called(inside.product)
    assert [(one["tool"], one["result"], one["status"]) for one in calls] == [("shout", "ok", 0)]
    assert "hey" not in json.dumps(calls).lower()


@pytest.mark.parametrize("inside", PLACES, indirect=True)
def test_a_task_without_tools_finds_no_such_name(inside: Inside) -> None:
    """SRV-6, POL-5: without --tool nobody is there, by the proxy and for the resolver, and what is missing is named."""
    script = f"curl -sS -o /dev/null -w '%{{http_code}}\\n' {URL}/; curl -sS -m 20 --noproxy '*' {URL}/ || echo none"
    done = inside.run("--profile", "closed", script=script)
    assert done.stdout.splitlines() == ["403", "none"], done.stderr
    assert "net: tools.tidegate.internal:80 · refused, this command was given no tools" in done.stderr
    assert "--tool NAME\n" in done.stderr


@pytest.mark.parametrize("inside", ["netns", "uid", *DOCKER], indirect=True)
def test_connections_that_know_no_proxy_reach_tools_too(inside: Inside) -> None:
    """SRV-6, HLD-6: the name has an address inside; what connects there is at the tools; other ports are refused."""
    script = f"curl -sS -m 60 --noproxy '*' {URL}/shout; curl -sS -m 20 --noproxy '*' {URL}:81/ || true"
    done = inside.run("--tool", "shout", script=script)
    assert json.loads(done.stdout.splitlines()[0])["name"] == "shout", done.stderr
    assert "tools.tidegate.internal:80 · captured (tools)" in done.stderr
    assert "tools.tidegate.internal:81 · refused" in done.stderr


@pytest.mark.parametrize("inside", ["netns", *DOCKER], indirect=True)
def test_commands_of_a_server_have_tools_of_their_own(inside: Inside) -> None:
    """SRV-6: behind a server too; one command's tools are not those of another command of the same task."""
    product = inside.product
    with Served(product) as server:
        done = inside.run("--tool", "shout", script=post("shout", {"text": "hey"}))
        assert json.loads(done.stdout)["shout"] == "HEY", done.stderr
        task = server.tidegate("task", "create").stdout.strip()
        words = inside.words(script=f"{post('shout', {'text': 'hey'})}; curl -sS {URL}/")
        first = server.tidegate("exec", task, "--tool", "shout", *words)
        assert '"HEY"' in first.stdout, first.stderr
        second = server.tidegate("exec", task, *words)
        assert "HEY" not in second.stdout
        assert "refused" in second.stderr
    assert [one["result"] for one in called(product)] == ["ok", "ok"]


@pytest.mark.parametrize("inside", [*OWN, *DOCKER], indirect=True)
def test_a_created_task_has_the_tools_that_it_was_created_with(inside: Inside) -> None:
    """SRV-6, HLD-8: in each of its commands, also behind the next server; where that offers them not, none begins."""
    words = inside.words(script=f"{post('shout', {'text': 'hey'})}; {post('other', {})}")
    with Served(inside.product, "--tool", "shout", "--tool", "other") as server:
        done = server.tidegate("task", "create", "--tool", "third")
        assert (done.returncode, done.stdout) == (2, "")
        assert "no task with the tool 'third': one of shout, other" in done.stderr
        task = server.tidegate("task", "create", "--tool", "shout").stdout.strip()
        assert server.json("task", "show", task)["tools"] == ["shout"]
        assert "tools: shout\n" in server.tidegate("task", "show", task).stdout
        done = server.tidegate("exec", task, *words)
        shouted, other = (json.loads(line) for line in done.stdout.splitlines())
        assert shouted == {"shout": "HEY", "uid": os.getuid()}, done.stderr
        assert other["error"]["message"].startswith("there is no such tool")
        assert "tool: shout · 1 call\n" in done.stderr
        both = server.tidegate("exec", task, "--tool", "other", *words)
        assert [json.loads(line) for line in both.stdout.splitlines()[:1]] == [shouted], both.stderr
        assert "tool: other · 1 call\n" in both.stderr
    with Served(inside.product) as server:
        done = server.tidegate("exec", task, *words)
        assert (done.returncode, done.stdout) == (78, ""), done.stderr
        assert "'shout', which this server does not offer: start the server with --tool shout" in done.stderr
        assert server.tidegate("exec", task, "--no-network", "--", "true").returncode == 0
    with Served(inside.product, "--tool", "shout") as server:
        assert '"HEY"' in server.tidegate("exec", task, *words).stdout
        declare(inside.product, other=tool("print('never')"))
        done = server.tidegate("exec", task, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "there is no tool 'shout'" in done.stderr


def test_a_server_offers_no_tool_that_nobody_declared(tmp_path: Path) -> None:
    """SRV-6, HLD-16: it does not start, and says which there are."""
    product = Product(tmp_path, user=False)
    declare(product, shout=SHOUT)
    done = product.tidegate("serve", "--tool", "shuot")
    assert done.returncode == 2
    assert "there is no tool 'shuot' that tasks could be created with: one of shout" in done.stderr


TRY = """
import json, os, socket, sys, urllib.request
URL = sys.argv[1]
HEADERS = {"Content-Type": "application/json"}
opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": os.environ["http_proxy"]}))
def post(path, body, **more):
    try:
        with opener.open(urllib.request.Request(URL + path, body, HEADERS | more), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
tries = {
    "not enabled": post("/other", b"{}"),
    "a way around": post("/shout/../other", b"{}"),
    "another host": post("/shout", b'{"text": "x"}', Host="other.test"),
    "a page": post("/shout", b'{"text": "x"}', Origin="http://other.test"),
    "a key twice": post("/shout", b'{"text": "x", "text": "y"}'),
    "more than it takes": post("/shout", b'{"text": "x", "command": ["sh"]}'),
    "too much": post("/shout", b'{"text": "' + b"x" * (1 << 19) + b'"}'),
    "too long": post("/shout", json.dumps({"text": "x" * 101}).encode()),
    "an option": post("/argv", json.dumps({"text": "--help; touch /tmp/pwned $(id)"}).encode()),
}
print(json.dumps(tries))
"""
ARGV = tool("print(json.dumps([sys.argv[1:], os.getcwd(), sorted(os.listdir())]))", text=TEXT)


@pytest.mark.parametrize("inside", PLACES, indirect=True)
def test_what_a_task_tries_with_tools(inside: Inside) -> None:
    """SRV-6: a tool that it was not given, inputs that are none, more than may be, and words that mean something."""
    declare(inside.product, shout=SHOUT, argv=ARGV, other=tool("open('/tmp/other', 'w')"))
    inside.write("try.py", TRY)
    done = inside.run("--tool", "shout", "--tool", "argv", script=f"{PYTHON} -I try.py {URL}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: status for name, (status, _) in found.items()} == {
        "not enabled": 404,
        "a way around": 404,
        "another host": 400,
        "a page": 403,
        "a key twice": 400,
        "more than it takes": 422,
        "too much": 413,
        "too long": 422,
        "an option": 200,
    }
    argv, folder, names = json.loads(found["an option"][1])
    assert (argv, names) == ([], [])
    assert folder.startswith(str(inside.product.state))
    assert not os.path.exists(folder)
    assert [one["tool"] for one in called(inside.product)] == ["argv"]


@pytest.mark.parametrize("inside", ["netns", *DOCKER], indirect=True)
def test_the_set_up_command_and_the_next_have_them(inside: Inside) -> None:
    """SRV-6, POL-7: the sockets of the next phase lead to the same keeper."""
    inside.write(
        "set-up.yaml", f"network: {{runtime: {{allow: [c.test]}}}}\nsetup: {json.dumps(post('shout', {'text': 'a'}))}\n"
    )
    done = inside.run("--policy", "set-up.yaml", "--tool", "shout", script=post("shout", {"text": "b"}))
    assert json.loads(done.stdout)["shout"] == "B", done.stderr
    assert '"shout": "A"' in done.stderr  # what a set-up command prints goes there
    assert "tool: shout · 2 calls\n" in done.stderr


@pytest.mark.parametrize("inside", DOCKER, indirect=True)
def test_they_are_there_behind_the_next_server(inside: Inside) -> None:
    """SRV-6, HLD-8: a command in a container that goes on behind the next server has its tools there."""
    first, second = post("shout", {"text": "a"}), post("shout", {"text": "b"})
    script = f"{first}; touch ready; until [ -e go ]; do sleep 0.1; done; {second}"
    folder = inside.product.folder
    with Served(inside.product) as server:
        process = server.start("run", *inside.words("--tool", "shout", script=script))
        until(lambda: (folder / "ready").exists() or process.poll() is not None)
    with process, Served(inside.product):
        said = ""
        assert process.stderr is not None
        while "behind its gate again" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        (folder / "go").touch()
        out, err = process.communicate()
    answers = [json.loads(line)["shout"] for line in out.splitlines()]
    assert answers == ["A", "B"], said + err
