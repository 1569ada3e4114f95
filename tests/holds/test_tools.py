"""Tools in every hold that has a gate, alone and behind a server (SRV-6)."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.holds.inside_tls import PLACES, Inside
from tests.served import Served
from tests.tools_kit import URL, called, declare, post, tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.api import Lab

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
    """SRV-6, POL-5: without --tool the name is as any other that no rule names, by the proxy and for the resolver."""
    script = f"curl -sS -o /dev/null -w '%{{http_code}}\\n' {URL}/; curl -sS -m 20 --noproxy '*' {URL}/ || echo none"
    done = inside.run("--profile", "closed", script=script)
    assert done.stdout.splitlines() == ["403", "none"], done.stderr
    assert "tools.tidegate.internal" in done.stderr


@pytest.mark.parametrize("inside", ["netns", "uid", "docker"], indirect=True)
def test_connections_that_know_no_proxy_reach_tools_too(inside: Inside) -> None:
    """SRV-6, HLD-6: the name has an address inside; what connects there is at the tools; other ports are refused."""
    script = f"curl -sS -m 60 --noproxy '*' {URL}/shout; curl -sS -m 20 --noproxy '*' {URL}:81/ || true"
    done = inside.run("--tool", "shout", script=script)
    assert json.loads(done.stdout.splitlines()[0])["name"] == "shout", done.stderr
    assert "tools.tidegate.internal:80 · captured (tools)" in done.stderr
    assert "tools.tidegate.internal:81 · refused" in done.stderr


@pytest.mark.parametrize("inside", ["netns", "docker"], indirect=True)
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
