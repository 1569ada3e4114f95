"""Secrets of a person, used by real programs in a task that never has them (INS-5)."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.client_programs import program_version, trusting
from tests.clients.kit import ALLOWED, REFUSED, net_lines, shown
from tests.holds import held
from tests.holds.leaks import found_in_processes
from tests.product import LAUNCHER, PATIENCE, Product
from tests.served import Served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.api import Lab

VALUE = f"ghp_Re4l{secrets.token_hex(16)}"  # of this process alone: the whole machine is searched for it
CURL = 'curl -sS -m 30 -H "Authorization: Bearer $TOKEN" https://a.test/'
PYTHON = (
    "import os, urllib.request as u; r = u.Request('https://a.test/',"
    " headers={'Authorization': 'Bearer ' + os.environ['TOKEN']}); print(u.urlopen(r, timeout=30).read().decode())"
)


def keep(product: Product, *words: str, value: str = f"{VALUE}\n", name: str = "TOKEN", host: str = "a.test") -> None:
    """`tidegate secret set TOKEN …` with the value on standard input."""
    done = subprocess.run(
        product.argv("secret", "set", name, "--host", host, *words),
        input=value,
        cwd=product.folder,
        env=product.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert VALUE not in done.stdout + done.stderr


def bearer(head: bytes) -> bytes:
    """What an origin got."""
    return head.partition(b"uthorization: Bearer ")[2].partition(b"\r\n")[0]


@pytest.mark.parametrize("way", ["proxy", "capture"])
@pytest.mark.parametrize("program", ["curl", "python"])
def test_the_origin_sees_the_value_and_the_task_never(product: Product, lab: Lab, program: str, way: str) -> None:
    """INS-5, B118: an origin that repeats the whole request; the answer has the stand-in that the variable has."""
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    keep(product)
    command = ["sh", "-c", CURL] if program == "curl" else [sys.executable, "-c", PYTHON]
    if way == "capture":
        command = ["env", "-u", "HTTPS_PROXY", "-u", "https_proxy", "-u", "ALL_PROXY", "-u", "all_proxy", *command]
    shown = ["sh", "-c", 'echo "$TOKEN"; exec "$@"', "sh"]
    done = product.run("--allow", "a.test", "--secret", "TOKEN", "--", *shown, *command)
    assert done.returncode == 0, done.stderr
    stand_in, _, answer = done.stdout.partition("\n")
    assert (len(stand_in), stand_in[:4], stand_in != VALUE) == (len(VALUE), "ghp_", True)
    assert f"Bearer {stand_in}" in answer
    assert VALUE not in done.stdout + done.stderr
    assert [bearer(head) for head in origin.heads] == [VALUE.encode()]
    assert [line for line in net_lines(done) if "not connected" not in line] == [
        "net: a.test:443 · inspected (command-line)"
    ]


def test_no_range_of_bytes_gives_a_value_in_pieces(product: Product, lab: Lab) -> None:
    """INS-5, B118: curl asks for the halves of an answer that repeats the value, and gets the whole, clean."""
    body = f"key={VALUE}"
    origin = lab.origin("http", ALLOWED, 443, tls="a.test", body=body, headers=["Accept-Ranges: bytes"])
    keep(product)
    script = f'echo "$TOKEN"; {CURL} -r 0-20; echo; {CURL} -r 21-80'
    done = product.run("--allow", "a.test", "--secret", "TOKEN", "--", "sh", "-c", script)
    stand_in, *got = done.stdout.split()
    assert got[0] == f"key={stand_in}", done.stdout + done.stderr
    assert VALUE[:12] not in done.stdout
    assert VALUE[-12:] not in done.stdout
    assert [b"range" in head.lower() for head in origin.heads] == [False, False]


def test_a_stand_in_is_unique_and_worth_nothing_elsewhere(product: Product, lab: Lab) -> None:
    """INS-5, B121, B122, GAT-7: after a redirect and in clear text it is refused with a line, and nothing hears it."""
    away = lab.origin("echo", REFUSED, 443, tls="b.test")
    plain = lab.origin("echo", ALLOWED, 80)
    lab.origin("http", ALLOWED, 443, tls="a.test", status="302 Found", headers=["Location: https://b.test/x"])
    keep(product)
    (product.folder / "both.yaml").write_text(
        "network: {runtime: {allow: ['a.test:443', 'a.test:80', {host: b.test, paths: ['/**']}]}}\n"
    )
    follow = CURL.replace("-sS", "-sS -L --location-trusted")
    script = f'echo "$TOKEN"; {follow}; {CURL.replace("https:", "http:")}'
    words = ("--policy", "both.yaml", "--secret", "TOKEN", "--fail-on-refusal", "--", "sh", "-c", script)
    first, second = product.run(*words), product.run(*words)
    for done in (first, second):
        assert done.returncode == 77, done.stderr
        assert "the secret TOKEN does not belong to b.test:443" in done.stdout
        assert "the secret TOKEN does not belong to a.test:80" in done.stdout
        assert "net: b.test:443 · refused, the stand-in of a secret was met where it does not belong" in done.stderr
        assert VALUE not in done.stdout + done.stderr
    assert first.stdout.splitlines()[0] != second.stdout.splitlines()[0]
    assert away.requests == plain.requests == 0


@pytest.mark.parametrize("capture", ["on", "off"])
def test_where_a_redirect_leads(product: Product, lab: Lab, capture: str) -> None:
    """B125, B122: what another host gives needs its own allow and gets no key; clear text gets nothing."""
    lab.origin("http", ALLOWED, 443, tls="a.test", status="302 Found", headers=["Location: https://b.test/blob"])
    blob = lab.origin("http", REFUSED, 443, tls="b.test", body="blob")
    plain = lab.origin("echo", ALLOWED, 80)
    keep(product)
    follow, clear = CURL.replace("-sS", "-sS -L"), CURL.replace("https:", "http:")
    if capture == "on":
        clear = f"env -u http_proxy -u HTTP_PROXY -u ALL_PROXY -u all_proxy {clear}"
    run = ("--capture", capture, "--allow", "a.test:443", "--allow", "a.test:80", "--secret", "TOKEN")
    done = product.run(*run, "--allow", "b.test", "--", "sh", "-c", f"{follow}; echo; {clear}")
    assert done.stdout.startswith("blob\n"), done.stderr
    assert "secret-misdirected" in done.stdout
    assert (blob.requests, plain.requests) == (1, 0)
    refused = product.run(*run, "--", "sh", "-c", follow)
    assert refused.returncode != 0
    assert "net: b.test:443 · refused" in refused.stderr
    assert blob.requests == 1
    assert VALUE not in done.stdout + done.stderr + refused.stdout + refused.stderr


SOURCES = {
    "sealed": (),
    "env": ("--from-env", "MY_TOKEN"),
    "file": ("--from-file", "../token.txt"),
    "command": ("--from-command", "--", "sh", "-c", "cat ../token.txt"),
}


HELD = [
    *(("netns", source, "") for source in SOURCES),
    ("landlock", "env", ""),
    ("landlock", "file", ""),
    ("netns", "env", "ordinary"),
    ("netns", "file", "ordinary"),
    ("netns", "sealed", "ordinary"),
]


@pytest.mark.parametrize(("hold", "source", "user"), HELD)
def test_no_value_is_anywhere(product: Product, base: str, lab: Lab, hold: str, source: str, user: str) -> None:
    """INS-5, B119: during a run and after it: no process's environment or arguments, no file, no log, no output."""
    held.need(hold)
    if user:
        product = ordinary(base, lab)
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    token = product.home / "token.txt"
    token.write_text(VALUE)
    os.chmod(token, 0o644)
    if source == "env":
        product.environment["MY_TOKEN"] = VALUE
        product.environment["ALSO"] = f"x{VALUE}y"
    elif source != "command":
        product.environment.pop("MY_TOKEN", None)
    keep(product, *SOURCES[source])
    go, ready = product.folder / "go", product.folder / "ready"
    look = (
        "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; env; cat ../.local/state/tidegate/*/* 2>/dev/null"
    )
    if source == "file":
        look += "; cat ../token.txt"
    script = f"{CURL}; {look}; touch ready; while [ ! -e go ]; do sleep 0.1; done"
    process = product.start("--hold", hold, "--allow", "a.test", "--secret", "TOKEN", "--", "sh", "-c", script)
    try:
        end = time.monotonic() + PATIENCE
        while not ready.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        seen = found_in_processes(VALUE)
    finally:
        go.touch()
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert [bearer(head) for head in origin.heads] == [VALUE.encode()], err
    assert VALUE not in out + err
    if source == "env":  # the person's own shell has it, and what it started: tidegate's own processes
        assert all("tidegate" in line for line in seen), seen
    else:
        assert seen == []
    state = [path for path in product.state.rglob("*") if path.is_file()]
    assert any(path.name == "TOKEN.json" for path in state)
    assert any(path.name == "network.jsonl" for path in state)
    assert [path for path in state if VALUE.encode() in path.read_bytes()] == []
    assert all(path.stat().st_mode & 0o77 == 0 for path in state if path.name in {"TOKEN.json", "secrets"})
    for words in (("secret", "list"), ("secret", "test", "TOKEN"), ("events",)):
        done = product.tidegate(*words)
        assert done.returncode == 0, done.stderr
        assert VALUE not in done.stdout + done.stderr


def ordinary(base: str, lab: Lab) -> Product:
    """The same for a person who is not root."""
    made = Product(Path(base), user=True)
    os.chmod(shown(made, lab.ca_file), 0o644)
    made.environment.update(trusting(shown(made, lab.ca_file)))
    return made


@pytest.fixture
def base() -> Iterator[str]:
    """A folder that a user can be at home in."""
    folder = held.new_base()
    os.chmod(folder, 0o755)
    yield folder
    shutil.rmtree(folder)


def test_what_keeps_a_run_from_starting(product: Product, lab: Lab) -> None:
    """INS-5, INS-9: no such secret, no value, a host that is never read: one line, and nothing has run."""
    del lab
    run = ("--allow", "a.test", "--secret", "TOKEN")
    done = product.run(*run, "--", "touch", "ran")
    assert (done.returncode, "there is no secret 'TOKEN'" in done.stderr) == (78, True), done.stderr
    keep(product, "--from-env", "NOT_THERE")
    done = product.run(*run, "--", "touch", "ran")
    assert (done.returncode, "the secret TOKEN has no value" in done.stderr) == (78, True), done.stderr
    keep(product)
    (product.folder / "never.yaml").write_text("inspect: {never: [a.test]}\nnetwork: {runtime: {allow: [a.test]}}\n")
    done = product.run("--policy", "never.yaml", "--secret", "TOKEN", "--", "touch", "ran")
    assert (done.returncode, "'inspect: never'" in done.stderr) == (78, True), done.stderr
    assert not (product.folder / "ran").exists()
    done = product.run(*run, "--", "touch", "ran")
    assert done.returncode == 0, done.stderr
    assert product.tidegate("secret", "forget", "TOKEN").returncode == 0
    assert product.tidegate("secret", "list").stdout == ""


def test_tasks_of_a_server_have_secrets(product: Product, lab: Lab) -> None:
    """INS-5: `run` where a server runs, and commands of a created task: the stand-in is one for all of a task's."""
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    keep(product)
    script = f'echo "$TOKEN"; echo "$ALSO"; {CURL}'
    product.environment["ALSO"] = f"x{VALUE}y"  # of this person's shell, which is no server's
    with Served(product) as server:
        done = product.run("--allow", "a.test", "--secret", "TOKEN", "--", "sh", "-c", script)
        task = product.tidegate("task", "create", "--allow", "a.test", "--secret", "TOKEN").stdout.strip()
        ran = [done, *(product.tidegate("exec", task, "--", "sh", "-c", script) for _ in range(2))]
        stand_ins = []
        for one in ran:
            assert one.returncode == 0, one.stderr
            stand_in, also, answer = one.stdout.split("\n", 2)
            assert also == f"x{stand_in}y"
            assert f"Bearer {stand_in}" in answer
            assert VALUE not in one.stdout + one.stderr
            stand_ins.append(stand_in)
        assert len(set(stand_ins)) == 2
        assert stand_ins[1] == stand_ins[2]
        shown = product.tidegate("task", "show", task)
        assert "secrets: TOKEN for a.test:443" in shown.stdout
        given = [line for line in server.actions() if line["type"] == "secret.given"]
        assert [line["secrets"] for line in given] == [["TOKEN"]] * 3
    assert [bearer(head) for head in origin.heads] == [VALUE.encode()] * 3


def test_a_secret_that_is_led_to_another_host_needs_another_task(product: Product, lab: Lab) -> None:
    """INS-5, INS-1: the task's authority is for the hosts that it began with; elsewhere nothing would be swapped."""
    lab.origin("echo", ALLOWED, 443, tls="a.test")
    keep(product)
    with Served(product):
        task = product.tidegate("task", "create", "--allow", "a.test", "--secret", "TOKEN").stdout.strip()
        for host, status in (("a.test", 0), ("b.test", 78), ("a.test", 0)):
            kept = product.tidegate("secret", "set", "TOKEN", "--host", host, input=VALUE, stdin=None)
            assert kept.returncode == 0, kept.stderr
            done = product.tidegate("exec", task, "--", "sh", "-c", CURL)
            assert done.returncode == status, done.stderr
            assert ("TOKEN is for b.test:443 by now" in done.stderr) is bool(status)
            assert VALUE not in done.stdout + done.stderr


def test_an_ordinary_users_server_keeps_its_memory_to_itself(base: str, lab: Lab) -> None:
    """INS-5: once it has a value, that user's other programs can look into neither its memory nor its environment."""
    product = ordinary(base, lab)
    lab.dns.set("a.test", A=[ALLOWED])
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    keep(product)
    with Served(product) as server:
        task = product.tidegate("task", "create", "--allow", "a.test", "--secret", "TOKEN").stdout.strip()
        done = product.tidegate("exec", task, "--", "sh", "-c", CURL)
        assert done.returncode == 0, done.stderr
        look = f"head -c 1 /proc/{server.pid}/environ; head -c 1 /proc/{server.pid}/mem; ls /proc/{server.pid}/fd"
        argv = product.argv("no-such-command")
        argv = [*argv[: argv.index(LAUNCHER)], "sh", "-c", look]
        found = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=product.environment)
        assert found.stderr.count("Permission denied") == 3, found
        again = product.tidegate("exec", task, "--", "sh", "-c", CURL)
        assert again.returncode == 0, again.stderr
    assert [bearer(head) for head in origin.heads] == [VALUE.encode()] * 2


def test_commands_of_a_task_do_not_see_the_file_of_its_secret(product: Product, lab: Lab) -> None:
    """INS-5: `exec` hides it as `run` does; the server reads it."""
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    (product.folder / "token.txt").write_text(VALUE)
    keep(product, "--from-file", "token.txt")
    with Served(product):
        task = product.tidegate("task", "create", "--allow", "a.test", "--secret", "TOKEN").stdout.strip()
        done = product.tidegate("exec", task, "--", "sh", "-c", f"cat token.txt; {CURL}")
    assert done.returncode == 0, done.stderr
    assert VALUE not in done.stdout + done.stderr
    assert [bearer(head) for head in origin.heads] == [VALUE.encode()]


def test_a_variable_is_that_of_whoever_begins_a_command(product: Product, lab: Lab) -> None:
    """INS-5, JRN-5: the server has it not; set, given and used are in the log by name, alone too."""
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    keep(product, "--from-env", "MINE")
    run = ("--allow", "a.test", "--secret", "TOKEN", "--", "sh", "-c", f"echo $MINE; {CURL}; {CURL}")
    with Served(product) as server:
        product.environment["MINE"] = VALUE
        done = product.run(*run)
        assert done.returncode == 0, done.stderr
        alone = product.run("--no-server", *run)
        assert alone.returncode == 0, alone.stderr
        lines = [line for line in server.actions() if line["type"].startswith("secret.")]
    assert [line["type"] for line in lines] == ["secret.set", *["secret.given", "secret.used"] * 2]
    assert {line["host"] for line in lines if line["type"] == "secret.used"} == {"a.test:443"}
    assert [bearer(head) for head in origin.heads] == [VALUE.encode()] * 4
    assert VALUE not in done.stdout + done.stderr + alone.stdout + alone.stderr + str(lines)


def test_the_file_of_a_secret_is_not_seen_where_the_task_works(product: Product, lab: Lab) -> None:
    """INS-5: also in the workspace itself; the file beside it is."""
    lab.origin("echo", ALLOWED, 443, tls="a.test")
    (product.folder / "token.txt").write_text(VALUE)
    (product.folder / "beside.txt").write_text("beside")
    keep(product, "--from-file", "token.txt")
    script = f"cat token.txt; cat beside.txt; {CURL}"
    done = product.run("--allow", "a.test", "--secret", "TOKEN", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("beside")
    assert VALUE not in done.stdout + done.stderr
    assert (product.folder / "token.txt").read_text() == VALUE


def test_a_compressed_echo_and_a_field_of_a_body(product: Product, lab: Lab) -> None:
    """INS-5, B118: curl asks for compressed answers and reads them; a form's field is swapped, and echoed clean."""
    origin = lab.origin("coded", ALLOWED, 443, tls="a.test", codings=["gzip"])
    keep(product, "--body-field", "client_secret")
    ask = 'curl -sS -m 30 --compressed -d "grant=x&client_secret=$TOKEN" https://a.test/token'
    done = product.run("--allow", "a.test", "--secret", "TOKEN", "--", "sh", "-c", f'echo "$TOKEN"; {ask}')
    assert done.returncode == 0, done.stderr
    stand_in, _, answer = done.stdout.partition("\n")
    assert f"grant=x&client_secret={stand_in}" in answer
    assert "gzip" in answer.lower()  # it was asked for, and came
    assert VALUE not in done.stdout + done.stderr
    assert f"grant=x&client_secret={VALUE}".encode() in origin.received
    wrong = ask.replace("client_secret=", "other=")
    refused = product.run("--allow", "a.test", "--secret", "TOKEN", "--", "sh", "-c", wrong)
    assert "the secret TOKEN belongs in body-field client_secret, and was sent in the field" in refused.stdout
    assert origin.requests == 1


def test_a_credential_of_systemd_is_not_seen_where_the_task_works(product: Product, lab: Lab) -> None:
    """INS-5: the gate reads it below $CREDENTIALS_DIRECTORY; the task, which has that variable too, does not."""
    origin = lab.origin("echo", ALLOWED, 443, tls="a.test")
    folder = product.folder / "credentials"
    folder.mkdir()
    (folder / "token").write_text(VALUE)
    (folder / "beside").write_text("beside")
    keep(product, "--from-credential", "token")
    product.environment["CREDENTIALS_DIRECTORY"] = str(folder)
    script = f'cat "$CREDENTIALS_DIRECTORY"/token; cat "$CREDENTIALS_DIRECTORY"/beside; {CURL}'
    done = product.run("--allow", "a.test", "--secret", "TOKEN", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("beside")
    assert VALUE not in done.stdout + done.stderr
    assert [bearer(head) for head in origin.heads] == [VALUE.encode()]


@pytest.mark.parametrize("service", ["sts get-caller-identity", "dynamodb list-tables"])
def test_aws_is_told_why_its_signature_cannot_be(product: Product, lab: Lab, service: str) -> None:
    """B124: AWS's own program shows the whole of it, where it expects XML and where JSON; nothing is sent."""
    if program_version(("aws", "--version"), product.environment) is None:
        pytest.skip("there is no aws here (awscli)")
    host = f"{service.partition(' ')[0]}.us-east-1.amazonaws.com"
    lab.dns.set(host, A=[ALLOWED])
    origin = lab.origin("echo", ALLOWED, 443, tls=host)
    product.environment.update(trusting(shown(product, lab.ca_file)))
    product.environment |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1"}
    keep(product, name="AWS_ACCESS_KEY_ID", host=host, value="AKIA2222333344445555")
    keep(product, name="AWS_SECRET_ACCESS_KEY", host=host)
    names = ("--secret", "AWS_ACCESS_KEY_ID", "--secret", "AWS_SECRET_ACCESS_KEY")
    done = product.run("--allow", host, *names, "--", "aws", *service.split(), timeout=100)
    assert "is used to sign a request, and a signature cannot be swapped: give the task" in done.stderr
    assert "(aws sts assume-role), or let a program outside of it speak to AWS" in done.stderr
    assert (origin.requests, VALUE in done.stdout + done.stderr) == (0, False)
