"""`tidegate run --hold landlock` as a person has it: the gate and nothing else, without capture (HLD-2)."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.holds import held
from tests.product import Product
from tidegate.holds import landlock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(landlock.abi() < landlock.SCOPE_ABI, reason="this kernel's Landlock scopes no signals")
HOLD = ("--hold", "landlock")


@pytest.fixture(params=held.USERS)
def product(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Product]:
    """The product, as each user."""
    base = held.new_base()
    yield Product(type(tmp_path)(base), user=request.param == "ordinary" and os.geteuid() == 0)
    import shutil

    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def service() -> Iterator[int]:
    """A web server on this machine's loopback; its port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


def test_what_knows_the_proxy_works_and_what_does_not_is_told(product: Product, service: int) -> None:
    """A rule opens the proxy's way and no other; who went past it is named at the end (GAT-10, JRN-3, B101)."""
    fetch = f"curl -sS -o /dev/null -w '%{{http_code}}\\n' http://localhost:{service}/"
    script = f'{fetch}; {fetch} --noproxy "*"; echo "[$NO_PROXY]"; exit 7'
    done = product.run(*HOLD, "--allow", f"localhost:{service}", "--", "sh", "-c", script)
    assert done.returncode == 7, done.stderr
    assert done.stdout.split() == ["200", "000", "[]"], done.stdout
    assert f"net: localhost:{service} \u00b7 forwarded" in done.stderr
    assert f"127.0.0.1:{service} \u00b7 refused, only what goes through the gate gets out" in done.stderr


def test_others_of_this_machine_do_not_get_through_its_gate(product: Product, service: int) -> None:
    """Another process that finds the port is turned away unread, while the task is served (GAT-2)."""
    script = 'echo "$HTTP_PROXY"; read -r _'
    running = product.start(*HOLD, "--allow", f"localhost:{service}", "--", "sh", "-c", script, stdin=subprocess.PIPE)
    try:
        assert running.stdout is not None
        port = int(running.stdout.readline().rpartition(":")[2])
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), 10) as wire:
                try:
                    wire.sendall(
                        f"GET http://localhost:{service}/ HTTP/1.1\r\nHost: localhost:{service}\r\n\r\n".encode()
                    )
                    assert wire.recv(100) == b""
                except ConnectionError:
                    continue
        _out, err = running.communicate("\n", timeout=60)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0, err
    assert "to this task's gate was refused" in err, err


def test_two_tasks_have_a_gate_each_and_not_the_others(product: Product, service: int) -> None:
    """The port of another task's gate is as far as any other (GAT-2, ADR-1)."""
    first = product.start(
        *HOLD,
        "--allow",
        f"localhost:{service}",
        "--",
        "sh",
        "-c",
        'echo "$HTTP_PROXY"; read -r _',
        stdin=subprocess.PIPE,
    )
    try:
        assert first.stdout is not None
        proxy = first.stdout.readline().strip()
        port = proxy.rpartition(":")[2]
        rules = ("--allow", f"localhost:{port}")
        fetch = f"curl -sS -o /dev/null -w '%{{http_code}}\\n' http://localhost:{port}/"
        done = product.run(*HOLD, *rules, "--", "sh", "-c", f"{fetch}; {fetch} --proxy {proxy}")
        assert done.stdout.split() == ["403", "000"], done.stdout
        assert "protected" in done.stderr
    finally:
        first.communicate("\n", timeout=60)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--capture", "on"), "--capture on"),
        (("--publish", "8080"), "--publish"),
        (("--capture", "ports"), "--capture"),
    ],
)
def test_what_it_has_not_is_refused_by_name(product: Product, options: tuple[str, ...], says: str) -> None:
    """Before anything starts (HLD-7)."""
    done = product.run(*HOLD, *options, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_harness_that_knows_no_proxy_is_refused(product: Product) -> None:
    """By name, with the holds in which it would work (POL-12)."""
    harness = product.folder / "agent.yaml"
    harness.write_text(
        json.dumps({"name": "mine", "command": "true", "proxy_aware": False, "network": {"requires": []}})
    )
    done = product.run(*HOLD, "--harness", "./agent.yaml", "--", "true")
    assert done.returncode == 78, done.stderr
    assert "'mine' is not proxy aware" in done.stderr


def test_a_repository_can_be_worked_in(product: Product) -> None:
    """Commits, builds and new folders beside hooks and configuration that stay as they were (HLD-15)."""
    git = "git -c user.name=a -c user.email=b@c"
    product.run("--", "git", "init", "-q", ".")
    script = (
        f"mkdir -p build/deep && echo x > build/deep/y && echo a > new && {git} add -A && {git} commit -qm one"
        " && git log --oneline | wc -l && rm -r build && ! echo evil > .git/hooks/pre-commit"
        " && ! git config core.pager evil && ! mv .git other && echo held"
    )
    done = product.run(*HOLD, "--", "sh", "-c", script)
    assert done.stdout.split() == ["1", "held"], done.stdout + done.stderr


def test_it_starts_within_a_second_and_leaves_nothing(product: Product) -> None:
    """Its folder in /tmp is gone, and so are its processes."""
    started = time.monotonic()
    done = product.run(*HOLD, "--", "sh", "-c", 'echo "$TMPDIR"; (setsid sleep 300 &)')
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(os.path.dirname(done.stdout.strip()))
    assert time.monotonic() - started < 60
