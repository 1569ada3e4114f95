"""tidegate.holds.uid_account: what a task is told of the user that it runs as."""

from __future__ import annotations

from tidegate.holds.uid_account import HOME, account_files, environment


def test_nothing_leads_to_the_callers_home() -> None:
    """HLD-3: a home, a name and a runtime folder of its own; other variables are kept, those of a like name too."""
    env = {"HOME": "/root", "USER": "root", "XDG_CACHE_HOME": "/c", "A": "/root/.a", "B": "/rootless", "PATH": "/bin"}
    assert environment(env, 30007) == {
        "HOME": HOME, "USER": "task-30007", "LOGNAME": "task-30007", "XDG_RUNTIME_DIR": "/run/user/30007",
        "B": "/rootless", "PATH": "/bin",
    }  # fmt: skip
    assert environment({"A": "/x"}, 30007)["A"] == "/x"


def test_its_account_is_the_last_line_and_the_machines_are_before() -> None:
    """Programs ask for their own name and home (passwd(5)); everybody else keeps theirs."""
    found = {one.path: one.text for one in account_files(30007)}
    assert found["/etc/passwd"].endswith(f"\ntask-30007:x:30007:30007:a task of tidegate:{HOME}:/bin/sh\n")
    assert "root:" in found["/etc/passwd"].splitlines()[0]
    assert found["/etc/group"].endswith("\ntask-30007:x:30007:\n")
