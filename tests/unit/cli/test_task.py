"""tidegate.cli.task: the commands as a person types them; what the server does about them is in tests/unit/server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.product import Product
from tests.served import Served


@pytest.fixture
def server(tmp_path: Path) -> Served:
    """A server of the product."""
    return Served(Product(tmp_path, user=os.geteuid() == 0))


def test_create_list_show_phase_end(server: Served) -> None:
    """HLD-5, POL-7: each says what is so, for people and as JSON."""
    with server:
        made = server.tidegate("task", "create", "--name", "my task", "--allow", "a.test")
        assert made.returncode == 0, made.stderr
        task = made.stdout.strip()
        (line,) = server.tidegate("task", "list").stdout.splitlines()
        assert line.split("  ") == [task, "living", "runtime", "idle", "my task", str(server.product.folder)]
        shown = server.tidegate("task", "show", task[:-2]).stdout
        assert f"id: {task}\n" in shown
        assert "wait seconds: 900" in shown
        assert "install" in server.tidegate("task", "phase", task, "install").stderr
        assert server.json("task", "show", "my task")["phase"] == "install"
        assert "questions wait for 2h from now on" in server.tidegate("task", "wait", "my task", "2h").stderr
        assert server.json("task", "show", "my task")["wait_seconds"] == 7200
        assert "has ended" in server.tidegate("task", "end", "my task").stderr
        none = server.tidegate("task", "list")
        assert (none.stdout, none.stderr) == ("", "tidegate: no task lives: --all shows those that ended\n")
        (line,) = server.tidegate("task", "list", "--all").stdout.splitlines()
        assert line.split("  ")[1:4] == ["ended", "install", "0 connections, 0 refused"]
        assert server.json("task", "show", task)["outcome"] == "ended by the command line"


def test_mistakes_are_one_line(server: Served) -> None:
    """HLD-16: exit 2 or 78, and what to write instead."""
    with server:
        for words, status in (
            (("task", "show", "nobody"), 2),
            (("task", "phase", "nobody", "sideways"), 2),
            (("task", "wait", "nobody", "2h"), 2),
            (("task", "wait", "nobody", "9h"), 2),
            (("task", "create", "--folder", "/no/such"), 2),
            (("task", "create", "--wait-for", "59s"), 2),
            (("task", "create", "--allow", "https://x/"), 2),
            (("task", "create", "--policy", "/no/such"), 2),
        ):
            done = server.tidegate(*words)
            assert (done.returncode, len(done.stderr.splitlines())) == (status, 1), done.stderr
        assert server.json("task", "list", "--all") == []
    done = server.tidegate("task", "list")
    assert done.returncode == 78
    assert "tidegate serve" in done.stderr


def test_an_untrusted_folder_file_stops_the_creation(server: Served) -> None:
    """POL-9: as for `run`."""
    (server.product.folder / "tidegate.yaml").write_text("hosts: [a.test]\n")
    with server:
        assert server.tidegate("task", "create").returncode == 78
        assert server.tidegate("task", "create", "--no-folder-policy").returncode == 0


def test_in_the_phase_install_the_set_up_is_left_to_the_person(server: Served) -> None:
    """POL-7: as with `run`, the policy's own does not run, and that is said."""
    policy = server.product.home / "p.yaml"
    policy.write_text("setup: [make]\nnetwork: {install: {allow: [a.test]}, runtime: {allow: [b.test]}}\n")
    with server:
        made = server.tidegate("task", "create", "--policy", str(policy), "--phase", "install")
        assert made.returncode == 0, made.stderr
        assert "the policy's own set-up command does not run; then: tidegate task phase TASK runtime" in made.stderr
        assert server.json("task", "show", made.stdout.strip())["phase"] == "install"
