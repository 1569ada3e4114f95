"""tidegate policy import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidegate.runtime import suffix_list

if TYPE_CHECKING:
    from conftest import Command

TASK = '{"hosts": ["a.test", "*.b.test:443"]}'
REPOS = "repos: [{path: /code/one, sandbox: %s}]\n"


@pytest.fixture(autouse=True)
def _suffixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this machine a list of public suffixes, whatever it has."""
    path = tmp_path / "suffixes"
    path.write_text("com\ntest\n", encoding="utf-8")
    monkeypatch.setattr(suffix_list, "PLACES", (str(path),))


def write(text: str | bytes, name: str = "file") -> str:
    """Write a file in the current folder."""
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def test_the_policy_is_printed_and_each_entry_is_said(tidegate: Command) -> None:
    """POL-15: a policy that loads on standard output, a line for each entry beside it."""
    status, out, err = tidegate("policy", "import", write(TASK))
    assert status == 0
    why = "a wildcard of GurtOS takes no port: it is accepted and matches nothing; write each host with its port"
    note = "note: every address that is not public needs host:port here, reserved and documentation ranges too; "
    note += "GurtOS names fewer"
    assert err.splitlines() == [
        "file:1:12: hosts 'a.test' -> allow a.test (kept exactly)",
        f"file:1:22: hosts '*.b.test:443' -> dropped: {why}",
        note,
        "file is GurtOS's: 1 entry kept exactly, 0 narrower, 1 dropped",
    ]
    write(out, "policy.yaml")
    assert tidegate("policy", "check", "-q", "policy.yaml")[0] == 0
    assert tidegate("policy", "diff", "policy.yaml", "file")[0] == 0
    assert tidegate("policy", "diff", "file", "policy.yaml")[0] == 0
    assert tidegate("policy", "import", "-q", "file") == (0, out, "")


def test_for_machines(tidegate: Command) -> None:
    """POL-15: the same as JSON."""
    status, out, err = tidegate("policy", "import", "--json", write(TASK))
    assert (status, bool(err)) == (0, False)
    found = json.loads(out)
    assert found["dialect"] == "gurtos"
    assert [(entry["source"], entry["kept"]) for entry in found["entries"]] == [
        ("file:1:12", "exactly"),
        ("file:1:22", "dropped"),
    ]
    assert "a.test" in found["policy"]


@pytest.mark.parametrize(
    "argv", [("policy", "check", "-q"), ("policy", "show", "--policy"), ("policy", "explain", "a.test", "--policy")]
)
def test_the_file_itself_is_taken_where_a_policy_is(tidegate: Command, argv: tuple[str, ...]) -> None:
    """POL-15: as `--policy FILE`, with a note; its mistakes are errors there too."""
    status, _, err = tidegate(*argv, write(TASK))
    assert status == 0
    assert "note: file is GurtOS's" in err
    status, out, err = tidegate(*argv, write('{"hosts": ["a.test", "*.com"]}'))
    assert (status, out) == (2, "")
    assert "file:1:22: a wildcard over a public suffix" in err


def test_expectations_and_reasons_are_of_the_source(tidegate: Command) -> None:
    """POL-15, POL-6: `policy test` takes such a file, and a decision names its line in it."""
    write(TASK, "task.json")
    write("policy: task.json\nexpect: [{allow: a.test}, {deny: [b.test, x.b.test]}]\n", "expect.yaml")
    assert tidegate("policy", "test", "expect.yaml")[0] == 0
    assert "(policy, task.json:1:12)" in tidegate("policy", "explain", "--policy", "task.json", "a.test")[1]


def test_what_launches_nothing_says_both_fixes(tidegate: Command) -> None:
    """POL-15: no policy is printed; exit status 78."""
    status, out, err = tidegate("policy", "import", write(REPOS % "{kind: docker}"))
    assert (status, out) == (78, "")
    assert "repository /code/one" in err
    assert "unrestricted_network: true" in err
    assert "network: {runtime:" in err


def test_what_asks_for_no_gate_prints_no_policy(tidegate: Command) -> None:
    """POL-15: exit status 78, as where such a file is given for a policy, and the option that does that."""
    file = write(REPOS % "{unrestricted_network: true}")
    status, out, err = tidegate("policy", "import", "--select", "/code/one", file)
    assert (status, out) == (78, "")
    assert "tidegate: file:1:37 says unrestricted_network of /code/one: no gate and no policy" in err
    assert err.endswith("give --open-network when a task starts\n")
    status, out, _ = tidegate("policy", "import", "--json", "--select", "/code/one", file)
    assert (status, json.loads(out)["without_gate"]) == (78, "open")
    assert tidegate("policy", "check", "file")[0] == 78


@pytest.mark.parametrize("flag", ["--no-network", "--open-network"])
def test_flags_alone_are_one_line(tidegate: Command, flag: str) -> None:
    """POL-15: a command's flags are no policy, and one line says so; beside a profile its lines are there as ever."""
    why = "no gate and no policy, so there is none to print"
    said = f"tidegate: file:1:9 says {flag}: {why}: give {flag} when a task starts\n"
    assert tidegate("policy", "import", write(f"flags: [{flag}]\n")) == (78, "", said)
    status, out, err = tidegate("policy", "import", write(f"flags: [{flag}]\nprofile: careful\n"))
    assert (status, out, err.endswith(said)) == (78, "", True)
    assert "profile 'careful' -> profile: careful" in err
    status, out, _ = tidegate("policy", "import", write("flags: [--verbose]\n"))
    assert (status, "default: deny" in out) == (0, True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"\x7fELF\x00\x01", "a NUL byte"),
        (b"a: 1\n", "is not recognised as a policy of another product"),
        (b'{"hosts": ["a.test"}', "this is not YAML"),
        (b"x" * (8 * 1024 * 1024 + 1), "is larger than 8 MiB"),
        (b"network: {runtime: {allow: [a.test]}}\n", "is no policy of another product"),
    ],
)
def test_what_cannot_be_read_is_one_line(tidegate: Command, data: bytes, said: str) -> None:
    """POL-15, POL-0: exit status 2, and how to name it."""
    status, out, err = tidegate("policy", "import", write(data))
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_which_of_several_and_whose(tidegate: Command) -> None:
    """POL-15: `--select` and `--dialect`; a name that does not exist is refused with those that do."""
    text = "services: [{name: a, action: open}, {name: b, action: enforce, allowed_domains: [x.test]}]\n"
    status, _, err = tidegate("policy", "import", write(text))
    assert (status, "tidegate policy import file --select NAME, one of: a, b" in err) == (2, True)
    assert '"x.test"' in tidegate("policy", "import", "file", "--select", "b")[1]
    status, _, err = tidegate("policy", "import", "file", "--select", "c")
    assert status == 2
    assert "one of: a, b" in err
    status, _, err = tidegate("policy", "import", "file", "--dialect", "squid")
    assert status == 2
    assert "kraft, gurtos, kule" in err
    assert tidegate("policy", "import", write("a.test\n*.b.test\n"), "--dialect", "gh-aw")[0] == 0
