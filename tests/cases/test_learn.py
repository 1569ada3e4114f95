"""A policy learned from a real run under audit: the same run passes again, a new host does not (JRN-7).

Everything is as a person does it: `tidegate run`, `policy learn`, `policy new-hosts`, and the script for CI of
docs/policy.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.product import LAUNCHER, PYTHON, REPOSITORY, Product
from tests.served import Served

if TYPE_CHECKING:
    from tests.lab.api import Lab

USERS = ["root", "user"] if os.geteuid() == 0 else ["user"]
GET = 'curl -sS -o /dev/null -w "%{http_code}\\n"'
RAW = """\
import socket, sys
wire = socket.create_connection(("raw.test", 8080), 20)
wire.sendall(b"GET / HTTP/1.1\\r\\nHost: raw.test\\r\\nConnection: close\\r\\n\\r\\n")
print(wire.recv(12).decode()[9:])
"""
WORK = f"""\
{GET} http://a.test/ && {GET} http://a.test/x && {GET} -k https://tls.test/ && {GET} http://1.2.3.6:8000/ &&
env -u http_proxy -u https_proxy {PYTHON} raw.py
"""
NEW = f"{WORK}{GET} http://new.test/\n"
AUDIT = f"profile: audit\nsetup: {GET} http://deps.test/\n"


@pytest.fixture(params=USERS)
def product(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product beside servers of four names, and of one address."""
    for name in ("a.test", "tls.test", "raw.test", "deps.test", "registry.npmjs.org"):
        lab.dns.set(name, A=["1.2.3.4"])
    lab.dns.set("new.test", A=["1.2.3.5"])
    for address, port in (("1.2.3.4", 80), ("1.2.3.4", 8080), ("1.2.3.5", 80), ("1.2.3.6", 8000)):
        lab.origin("http", address, port)
    lab.origin("http", "1.2.3.4", 443, tls=["tls.test", "registry.npmjs.org"])
    made = Product(tmp_path, user=request.param == "user")
    made.environment["SSL_CERT_FILE"] = shutil.copy(lab.ca_file, made.home)
    for name, text in (("raw.py", RAW), ("audit.yaml", AUDIT), ("work.sh", WORK), ("new.sh", NEW)):
        (made.folder / name).write_text(text)
    return made


def _run(product: Product, *words: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run a task to its end; return it and its id. Ids of one second sort by chance, so it is the one that is new."""
    before = set(product.tidegate("events", "--list").stdout.split())
    done = product.run(*words)
    (task,) = set(product.tidegate("events", "--list").stdout.split()) - before
    return done, task


def test_what_was_learned_passes_again_and_nothing_else(product: Product) -> None:
    """JRN-7: run under audit, learn, run under what was learned: all passes; a new host is refused, and fails in CI."""
    done, task = _run(product, "--policy", "audit.yaml", "--", "sh", "work.sh")
    assert (done.returncode, done.stdout.split()) == (0, ["200"] * 5), done.stderr

    done = product.tidegate("policy", "learn", task, "--write", "learned.yaml")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    text = (product.folder / "learned.yaml").read_text()
    entries = re.sub(r"  # x(\d+), last [0-9-]+ [0-9:]+Z", r" x\1", text.split("network:\n")[1])
    assert entries.splitlines() == [
        "  install:",
        "    allow:",
        "      - deps.test:80 x1",
        "  runtime:",
        "    allow:",
        "      - a.test:80 x2",
        "      - raw.test:8080 x1",
        "      - tls.test:443 x1",
        '      - "1.2.3.6:8000" x1; an address, not a name',
    ]
    assert product.tidegate("policy", "new-hosts", "--against", "learned.yaml", task).returncode == 0

    again, under = _run(product, "--policy", "learned.yaml", "--fail-on-refusal", "--", "sh", "work.sh")
    assert (again.returncode, again.stdout.split()) == (0, ["200"] * 5), again.stderr
    refused, tried = _run(product, "--policy", "learned.yaml", "--fail-on-refusal", "--", "sh", "new.sh")
    assert (refused.returncode, refused.stdout.split()) == (77, [*["200"] * 5, "403"]), refused.stderr

    check = ("policy", "new-hosts", "--against", "learned.yaml")
    assert product.tidegate(*check, under, tried).returncode == 0  # it was refused, so it was not reached
    done = product.tidegate(*check, "--tried", under, tried)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("new: new.test:80: refused (no-rule) x1 in runtime, first at ")

    done = product.tidegate("policy", "learn", "--against", "learned.yaml", under)
    assert done.returncode == 0, done.stderr
    marked = [f"+{line}; not used by these tasks" for line in text.splitlines() if "deps.test" in line]
    assert [line for line in done.stdout.splitlines() if line[:2] == "+ "] == marked


def test_what_was_read_inside_tls_stays_as_narrow(product: Product) -> None:
    """JRN-7, INS-6, INS-7: an inspected host keeps its methods, a registry what reads, and no more passes."""
    (product.folder / "read.yaml").write_text(
        "network: {runtime: {allow: [{host: tls.test, methods: [GET, POST]}, '@npm']}}\n"
    )
    get = f"{GET} https://tls.test/ && {GET} https://registry.npmjs.org/x"
    done, task = _run(product, "--policy", "read.yaml", "--", "sh", "-c", get)
    assert (done.returncode, done.stdout.split()) == (0, ["200", "200"]), done.stderr
    done = product.tidegate("policy", "learn", task, "--write", "learned.yaml")
    assert done.returncode == 0, done.stderr
    text = (product.folder / "learned.yaml").read_text()
    assert '- {host: "tls.test:443", methods: [GET]}  # x1' in text
    assert '- {host: "registry.npmjs.org:443", methods: [GET, HEAD]}  # x1' in text

    put = f"{GET} -X POST -d x https://tls.test/ && {GET} -X PUT -d x https://registry.npmjs.org/x"
    again = product.run("--policy", "learned.yaml", "--", "sh", "-c", f"{get} && {put}")
    assert (again.returncode, again.stdout.split()) == (0, ["200", "200", "403", "403"]), again.stderr


def test_a_task_of_a_server_is_learned_from_as_well(product: Product) -> None:
    """JRN-7: behind `tidegate serve` a task's record is where it is for one that runs alone."""
    with Served(product):
        done, task = _run(product, "--profile", "audit", "--", "sh", "-c", f"{GET} http://a.test/")
        assert (done.returncode, done.stdout.split()) == (0, ["200"]), done.stderr
        done = product.tidegate("policy", "learn", "--json", task)
        assert done.returncode == 0, done.stderr
        assert '"rule": "a.test:80"' in done.stdout


def test_a_record_that_may_not_be_read_is_no_pass(product: Product) -> None:
    """JRN-7: another user's record is exit status 2, as is a link to one's own."""
    record = product.folder / "theirs.jsonl"
    record.write_text("")
    record.chmod(0o600)
    (product.folder / "link.jsonl").symlink_to("network.jsonl")
    (product.folder / "p.yaml").write_text("default: deny\n")
    check = ("policy", "new-hosts", "--against", "p.yaml")
    done = product.tidegate(*check, "link.jsonl")
    assert done.returncode == 2
    assert "a symbolic link stands in the place of a file" in done.stderr
    if product.user:
        os.chown(record, 0, 0)
        done = product.tidegate(*check, "theirs.jsonl")
        assert done.returncode == 2
        assert "'theirs.jsonl' cannot be read: Permission denied" in done.stderr


def test_a_log_that_does_not_verify_is_no_pass(product: Product) -> None:
    """JRN-7, JRN-2: where somebody was at the action log, the record beside it proves nothing, if named by id."""
    done, task = _run(
        product, "--allow", "a.test:80", "--", "sh", "-c", f"{GET} http://a.test/; {GET} http://new.test/"
    )
    assert done.stdout.split() == ["200", "403"], done.stderr
    (product.folder / "p.yaml").write_text("network: {runtime: {allow: ['a.test:80']}}\n")
    check = ("policy", "new-hosts", "--against", "p.yaml")
    done = product.tidegate(*check, task)
    assert (done.returncode, done.stderr) == (0, "")
    actions = product.state / "log" / "actions.jsonl"
    actions.write_bytes(actions.read_bytes().replace(b"new.test", b"old.test"))
    done = product.tidegate(*check, task)
    assert done.returncode == 1
    assert "the action log beside these records does not verify: see tidegate log verify" in done.stderr
    assert product.tidegate(*check, str(product.state / "tasks" / task / "network.jsonl")).returncode == 0


def test_the_script_for_ci_fails_on_a_new_host(product: Product) -> None:
    """JRN-7: the script that docs/policy.md shows, as it stands there: exit 0 as long as all is named, then 1."""
    page = (REPOSITORY / "docs" / "policy.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```sh\n(#!/bin/sh\n# new hosts: .*?)```", page, re.DOTALL)
    (product.home / "bin").mkdir()
    (product.home / "bin" / "tidegate").symlink_to(LAUNCHER)
    product.environment["PATH"] = f"{product.home}/bin:{product.environment['PATH']}"
    (product.folder / "check.sh").write_text(script)
    (product.folder / "policy.yaml").write_text("network: {runtime: {allow: ['a.test:80']}}\n")

    def checked(build: str) -> tuple[int, str]:
        (product.folder / "build").write_text(f"#!/bin/sh\n{build}\n")
        (product.folder / "build").chmod(0o755)
        (product.folder / "network.jsonl").unlink(missing_ok=True)
        words = ["sh", "check.sh"]
        argv = product.argv()[:-1] + words if product.user else words
        done = subprocess.run(
            argv, cwd=product.folder, env=product.environment, capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, done.stdout

    assert checked(f"{GET} http://a.test/") == (0, "200\nthe one place reached in 1 connection is named\n")
    status, out = checked(f"{GET} http://a.test/; {GET} http://new.test/")
    assert status == 1
    assert "new: new.test:80: forwarded x1 in runtime, first at " in out
    assert "1 new, 1 named, in 2 connections" in out
    assert checked("exit 3") == (3, "")
