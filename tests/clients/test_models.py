"""An agent in a task, and the model service it calls: looked at, with a stand-in for its key (INS-8, POL-12)."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.client_programs import trusting
from tests.clients.kit import ALLOWED, REFUSED, net_lines
from tests.holds.leaks import found_in_processes
from tests.https_site import HttpsSite
from tests.product import PATIENCE, PYTHON
from tests.served import Served

if TYPE_CHECKING:
    from tests.lab.api import Lab, Origin
    from tests.product import Product

API = "api.anthropic.com"
KEY = f"sk-ant-api03-Re4l{secrets.token_hex(12)}"  # of this process alone: the whole machine is searched for it
AGENT = """\
#!{python}
import json, os, sys, time, urllib.error, urllib.request
words = sys.argv[1:]
if words[:1] == ["--direct"]:
    words = words[1:]
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
key = os.environ.get("ANTHROPIC_API_KEY", "")
print(key)
if words[:1] == ["--key"]:
    key = words[1]
    words = words[2:]
for word in words:
    path, _, body = word.partition("=")
    if path == "wait":
        open("ready", "w").close()
        while not os.path.exists("go"):
            time.sleep(0.05)
        continue
    host, slash, path = path.partition("/")
    request = urllib.request.Request(f"https://{{host or 'api.anthropic.com'}}/{{path}}", body.encode() or None)
    request.add_header("Content-Type", "application/json")
    request.add_header("x-api-key", key)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            print(json.dumps([answer.status, answer.read().decode()]))
    except urllib.error.HTTPError as error:
        print(json.dumps([error.code, error.read().decode()]))
    except OSError as error:
        print(json.dumps([0, str(error)]))
"""
CALL = '/v1/messages={"model": "x", "messages": [{"role": "user", "content": "fetch https://x.test by web_fetch"}]}'
FETCH = '/v1/messages={"model": "x", "messages": [], "tools": [{"type": "web_fetch_20260318", "name": "web_fetch"}]}'
INSPECTED = f"net: {API}:443 · inspected (harness:claude)"
HARNESS = ("--harness", "claude", "--profile", "closed")


@pytest.fixture
def origin(lab: Lab) -> Origin:
    """What stands for the service: it repeats what it was asked."""
    lab.dns.set(API, A=[ALLOWED])
    return lab.origin("echo", ALLOWED, 443, tls=API)


@pytest.fixture
def agents(product: Product) -> Path:
    """A folder on the PATH with a program that is called as an agent is, and its key in the environment."""
    folder = product.home / "agents"
    put(folder, "claude")
    product.environment["PATH"] = f"{folder}:{product.environment['PATH']}"
    product.environment["ANTHROPIC_API_KEY"] = KEY
    return folder


def put(folder: Path, name: str) -> None:
    """Write the program."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(AGENT.format(python=PYTHON), encoding="utf-8")
    (folder / name).chmod(0o755)


def said(done: Any) -> tuple[str, list[list[Any]]]:
    """The key that the agent had, and what it was answered."""
    assert done.returncode == 0, done.stderr
    key, *answers = done.stdout.splitlines()
    return key, [json.loads(line) for line in answers]


def name_lower(head: bytes) -> bytes:
    """A head with the names of its fields in lower case."""
    return re.sub(rb"\r\n[^:\r]+:", lambda found: found[0].lower(), head)


def refused_calls(product: Product) -> list[tuple[str, str]]:
    """Host and path of what the action log has."""
    done = product.tidegate("events", "--type", "net.blocked", "--json")
    return [(line["host"], line.get("path", "")) for line in map(json.loads, done.stdout.splitlines())]


@pytest.mark.parametrize("way", ["by proxy", "by capture"])
@pytest.mark.parametrize("hold", ["netns", "landlock"])
@pytest.mark.usefixtures("agents")
def test_a_call_passes_with_the_key_and_one_that_fetches_does_not(
    product: Product, origin: Origin, hold: str, way: str
) -> None:
    """INS-8: the task has the key in no form; the refusal is the service's own error, and on record with its path."""
    if (hold, way) == ("landlock", "by capture"):
        pytest.skip("landlock captures nothing")
    direct = ["--direct"] if way == "by capture" else []
    words = [*direct, CALL, FETCH, "/v1/files={}", "/v1/models"]
    done = product.run("--hold", hold, *HARNESS, "--", "claude", *words)
    stand_in, answers = said(done)
    assert (len(stand_in), stand_in[:13], stand_in != KEY) == (len(KEY), "sk-ant-api03-", True)
    assert [status for status, _ in answers] == [200, 403, 403, 200]
    assert stand_in in answers[0][1]
    for _, body in answers[1:3]:
        error = json.loads(body)["error"]
        assert error["type"] == "permission_error"
        assert "[model-guard; rule 'api.anthropic.com:443' (harness:claude, harness claude)]" in error["message"]
    assert "web_fetch_20260318" in answers[1][1]
    assert KEY not in done.stdout + done.stderr
    assert origin.requests == 2
    assert all(b"\r\nx-api-key: " + KEY.encode() in head for head in map(name_lower, origin.heads))
    lines = net_lines(done)
    assert INSPECTED in lines
    assert any("refused, the model service would reach out for the task" in line for line in lines)
    assert refused_calls(product) == [(f"{API}:443", "/v1/messages"), (f"{API}:443", "/v1/files")]
    found = [path for path in product.state.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert found == []
    assert all("tidegate" in line or "pytest" in line for line in found_in_processes(KEY))


@pytest.mark.usefixtures("agents", "origin")
def test_the_stand_in_is_worth_nothing_elsewhere(product: Product, lab: Lab) -> None:
    """INS-5, INS-8: at a host that is read it is refused; another command of the machine has the key as ever."""
    other = lab.origin("http", REFUSED, 443, tls="b.test")
    (product.folder / "p.yaml").write_text("network: {runtime: {allow: [{host: b.test, paths: ['/**']}]}}\n")
    key, answers = said(product.run("--harness", "claude", "--policy", "p.yaml", "--", "claude", "b.test/x", CALL))
    assert [status for status, _ in answers] == [403, 200]
    assert "the secret ANTHROPIC_API_KEY does not belong to b.test:443" in answers[0][1]
    assert (other.requests, key != KEY) == (0, True)
    done = product.run("--profile", "closed", "--", "sh", "-c", 'echo "$ANTHROPIC_API_KEY"')
    assert done.stdout.strip() == KEY


@pytest.mark.usefixtures("agents")
def test_a_key_of_somebody_else_is_not_sent(product: Product, origin: Origin) -> None:
    """INS-8: in his account he could read what the task said; without any key the service says what it says."""
    other = f"sk-ant-api03-{secrets.token_hex(12)}"
    done = product.run(*HARNESS, "--", "claude", "--key", other, CALL, "/api/event_logging/batch={}")
    answers = said(done)[1]
    assert [status for status, _ in answers] == [403, 403]
    assert all("another one was sent there in x-api-key" in body and other not in body for _, body in answers)
    assert origin.requests == 0
    assert said(product.run(*HARNESS, "--", "claude", "--key", "", CALL))[1][0][0] == 200
    del product.environment["ANTHROPIC_API_KEY"]
    assert said(product.run(*HARNESS, "--", "claude", "--key", other, CALL))[1][0][0] == 200


@pytest.mark.usefixtures("agents")
def test_what_is_never_inspected_is_a_tunnel_with_the_key(product: Product, origin: Origin) -> None:
    """INS-9: the switch, by name: no guard and no stand-in."""
    (product.folder / "p.yaml").write_text(f"profile: closed\ninspect: {{never: [{API}]}}\n")
    done = product.run("--harness", "claude", "--policy", "p.yaml", "--", "claude", FETCH)
    key, answers = said(done)
    assert (key, answers[0][0]) == (KEY, 200)
    assert f"net: {API}:443 · tunneled (harness:claude)" in net_lines(done)
    assert origin.requests == 1
    told = product.tidegate("policy", "explain", "--policy", "p.yaml", "--harness", "claude", API)
    assert (
        "inspected  no: 'inspect: never' names it, so what the agent asks of its model is not looked at" in told.stdout
    )


def test_explain_says_what_is_guarded(product: Product) -> None:
    """POL-14, INS-8: and its neighbours are tunnels."""
    told = product.tidegate("policy", "explain", "--harness", "claude", API)
    assert "inspected  yes: it is the agent's model service" in told.stdout
    told = product.tidegate("policy", "explain", "--harness", "claude", "platform.claude.com")
    assert "inspected  no: a tunnel" in told.stdout
    told = product.tidegate("policy", "explain", API)
    assert "inspected  no: a tunnel" in told.stdout


@pytest.mark.usefixtures("agents", "origin")
def test_what_is_no_key_is_said(product: Product) -> None:
    """INS-8: a word for which nothing can stand is left, with a note."""
    product.environment["ANTHROPIC_API_KEY"] = "none"
    done = product.run(*HARNESS, "--", "claude", CALL)
    key, answers = said(done)
    assert (key, answers[0][0]) == ("none", 200)
    assert "note: ANTHROPIC_API_KEY is in the task as it is: no stand-in can be made for it" in done.stderr


@pytest.mark.usefixtures("agents")
def test_behind_a_server_too_and_for_the_agent_alone(product: Product, origin: Origin) -> None:
    """POL-12, INS-8: its calls are looked at, its key is outside; another command of its task has neither."""
    go, ready = product.folder / "go", product.folder / "ready"
    shutil.copy(product.home / "agents" / "claude", product.folder / "other")
    with Served(product):
        process = product.start(*HARNESS, "--", "claude", CALL, FETCH, "wait=", CALL)
        try:
            end = time.monotonic() + PATIENCE
            while not ready.exists() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            task = json.loads(product.tidegate("task", "list", "--json").stdout)[0]["id"]
            before = origin.requests
            product.environment["COPY"] = f"key={KEY};"
            other = product.tidegate("exec", task, "--", "./other", CALL)
            key, answers = said(other)
            assert (len(key), key != KEY, answers[0][0]) == (len(KEY), True, 0)
            copied = product.tidegate("exec", task, "--", "sh", "-c", "echo $COPY")
            assert copied.stdout.strip() == f"key={key};", (copied.stderr, copied.returncode)
            assert json.loads(product.tidegate("task", "list", "--json").stdout)[0]["id"] == task  # HLD-8: it lives on
            assert f"net: {API}:443 · refused, no rule allows it (no-rule)" in net_lines(other)
            assert origin.requests == before
        finally:
            go.touch()
            out, err = process.communicate(timeout=PATIENCE)
        stand_in, answers = said(subprocess.CompletedProcess((), process.returncode, out, err))
        assert [status for status, _ in answers] == [200, 403, 200]
        assert stand_in == key
        assert KEY not in out + err
        assert all(KEY.encode() in head for head in origin.heads)
        assert origin.requests == 2
        assert KEY not in product.tidegate("task", "list", "--json").stdout
    found = [path for path in product.state.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert found == []


@pytest.mark.usefixtures("agents", "origin")
def test_what_the_agent_is_not_gets_neither(product: Product) -> None:
    """POL-12: another command has no way to the model, and no stand-in that would be good for anything."""
    shutil.copy(product.home / "agents" / "claude", product.folder / "other")
    done = product.run("--profile", "closed", "--", "./other", CALL)
    key, answers = said(done)
    assert (key, answers[0][0]) == (KEY, 0)
    assert f"net: {API}:443 · refused, no rule allows it (no-rule)" in net_lines(done)


REAL = os.environ.get("TIDEGATE_AGENTS", "")
"""A folder with `claude`, `codex` and `gemini`, as npm installs them: 0.8 GB, which scripts/setup does not fetch."""
real = pytest.mark.skipif(not REAL, reason="TIDEGATE_AGENTS names no folder with the programs claude, codex and gemini")


def events(*told: dict[str, Any], named: bool) -> bytes:
    """A stream of events."""
    return "".join(
        (f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one)}\n\n" for one in told
    ).encode()


USAGE = {"input_tokens": 1, "output_tokens": 1}
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [], "usage": USAGE}
CLAUDE_SAYS = events(
    {"type": "message_start", "message": MESSAGE},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello from the lab"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": USAGE},
    {"type": "message_stop"},
    named=True,
)
TEXT = {"type": "output_text", "text": "hello from the lab"}
CODEX_SAYS = events(
    {"type": "response.created", "response": {"id": "r"}},
    {
        "type": "response.output_item.done",
        "item": {"type": "message", "role": "assistant", "id": "m", "content": [TEXT]},
    },
    {"type": "response.completed", "response": {"id": "r", "usage": {**USAGE, "total_tokens": 2}}},
    named=True,
)


def gemini_says(part: dict[str, Any]) -> bytes:
    """A stream of one event."""
    one = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return f"data: {json.dumps({'candidates': [one], 'usageMetadata': {'totalTokenCount': 2}})}\r\n\r\n".encode()


GEMINI_SAYS = gemini_says({"text": "hello from the lab"})
AGENTS = {
    "claude": (API, "/v1/messages", CLAUDE_SAYS, "x-api-key", ("claude", "-p", "say hello")),
    "codex": (
        "api.openai.com",
        "/v1/responses",
        CODEX_SAYS,
        "authorization",
        ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "say hello"),
    ),
    "gemini": (
        "generativelanguage.googleapis.com",
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
        GEMINI_SAYS,
        "x-goog-api-key",
        ("gemini", "--skip-trust", "-m", "gemini-2.5-flash", "-p", "say hello"),
    ),
}


KEYS = {
    "claude": (("ANTHROPIC_API_KEY",), KEY),
    "codex": (("OPENAI_API_KEY", "CODEX_API_KEY"), f"sk-proj-Re4l{secrets.token_hex(20)}"),
    "gemini": (("GEMINI_API_KEY",), f"AIzaRe4l{secrets.token_hex(15)}z"),
}


def agent_at(product: Product, lab: Lab, hosts: list[str]) -> tuple[HttpsSite, tuple[str, ...]]:
    """A site that stands for a service, which the product's tasks trust, and what a run needs to see the agents."""
    for host in hosts:
        lab.dns.set(host, A=[ALLOWED])
    product.environment["PATH"] = f"{REAL}:{product.environment['PATH']}"
    site = HttpsSite(lab.listener(ALLOWED, 443), hosts, product.home)
    product.environment.update(trusting(site.ca_file))
    return site, ("--profile", "closed", "--share", f"{os.path.dirname(os.path.realpath(REAL))}:ro")


def need(name: str) -> None:
    """Skip where there is no such agent."""
    if not os.path.exists(f"{REAL}/{name}"):
        pytest.skip(f"TIDEGATE_AGENTS has no {name}")


@real
@pytest.mark.parametrize("name", AGENTS)
def test_a_real_agent(product: Product, lab: Lab, name: str) -> None:
    """INS-8: the agents as they are, with what the task is given: they answer, and key and sign-in are outside."""
    need(name)
    for file in (".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json"):
        (product.home / file).parent.mkdir()
        (product.home / file).write_text('{"claudeAiOauth": {"accessToken": "sk-ant-oat01-x"}, "tokens": {}}')
    host, path, says, field, command = AGENTS[name]
    site, options = agent_at(product, lab, [host])
    variables, key = KEYS[name]
    product.environment.update(dict.fromkeys(variables, key))
    with site:
        site.pages[path] = ("text/event-stream", says)
        done = product.run("--harness", name, *options, "--", *command, timeout=120)
    assert "hello from the lab" in done.stdout, done.stdout + done.stderr
    assert key not in done.stdout + done.stderr
    calls = [head for asked, head in zip(site.requests, site.heads, strict=True) if asked.startswith(f"POST {path}")]
    assert calls, site.requests
    assert all(key in head[field] for head in calls)
    assert "note: the task does not see" in done.stderr
    assert f"net: {host}:443 · inspected (harness:{name})" in net_lines(done)


@real
def test_gemini_is_told_why_it_may_not_search(product: Product, lab: Lab) -> None:
    """INS-8: its tool asks the service for a search, the service's own error says what was refused, and it goes on."""
    need("gemini")
    host, path, _says, _field, command = AGENTS["gemini"]
    site, options = agent_at(product, lab, [host])
    product.environment["GEMINI_API_KEY"] = KEYS["gemini"][1]

    def answered(_site: HttpsSite, _method: str, _path: str, body: bytes) -> bytes:
        wants = {"functionCall": {"name": "google_web_search", "args": {"query": "the weather"}}}
        return gemini_says({"text": "hello from the lab"} if b"functionResponse" in body else wants)

    with site:
        site.takes[path] = answered
        done = product.run("--harness", "gemini", *options, "--", *command, "--approval-mode", "yolo", timeout=120)
    assert "hello from the lab" in done.stdout, done.stdout + done.stderr
    assert "it has the tool 'googleSearch', which the service carries out" in done.stderr
    assert {asked.partition("?")[0] for asked in site.requests} == {f"POST {path}"}
    assert any(found[0] == f"{host}:443" for found in refused_calls(product))


@real
def test_gemini_signed_in_with_google(product: Product, lab: Lab) -> None:
    """INS-8, POL-12: it renews its sign-in and calls the other service, which is looked at as well."""
    need("gemini")
    api = "cloudcode-pa.googleapis.com"
    site, options = agent_at(product, lab, [api, "oauth2.googleapis.com"])
    home = product.home / ".gemini"
    home.mkdir()
    (home / "oauth_creds.json").write_text(json.dumps({"refresh_token": "1//r", "expiry_date": 1}))
    (home / "settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": "oauth-personal"}}}))
    answers = {
        "/tokeninfo": b'{"expires_in": 3600, "scope": "a"}',
        "/token": b'{"access_token": "ya29.new", "expires_in": 3600, "token_type": "Bearer"}',
        "/v1internal:loadCodeAssist": b'{"currentTier": {"id": "free-tier"}, "cloudaicompanionProject": "p1"}',
        "/v1internal:stream": b'data: {"response": ' + GEMINI_SAYS[6:].strip() + b"}\r\n\r\n",
        "/v1internal:": b"{}",
    }
    with site:
        site.takes.update({path: lambda *_, text=text: text for path, text in answers.items()})
        command = ("gemini", "--skip-trust", "-m", "gemini-2.5-flash", "-p", "say hello")
        done = product.run("--harness", "gemini", *options, "--", *command, timeout=120)
    assert "hello from the lab" in done.stdout, done.stdout + done.stderr
    asked = dict(zip(site.requests, site.heads, strict=True))
    assert asked["POST /v1internal:streamGenerateContent?alt=sse"]["authorization"] == "Bearer ya29.new"
    lines = net_lines(done)
    assert any(line.startswith(f"net: {api}:443 · inspected (harness:gemini)") for line in lines)
    assert not any("refused" in line for line in lines if api in line), lines
