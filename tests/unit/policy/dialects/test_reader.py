"""Whose file it is, and the layer it makes (POL-15)."""

from __future__ import annotations

import json

import pytest

from tests.unit.policy.dialects.told import took
from tidegate.model.errors import UsageError
from tidegate.model.rule import Layer
from tidegate.policy.dialects.imported import Wanted
from tidegate.policy.dialects.reader import DIALECTS, NAMES, is_strange, layer_of, read_dialect, unknown
from tidegate.policy.layers import PresetUse
from tidegate.policy.positions import PolicyErrors

FILES = {
    "kraft": "repos: [{path: /a, sandbox: {network: {runtime: {}}}}]",
    "gurtos": '{"hosts": ["a.test"]}',
    "kule": "remembered: []",
    "sandbox-runtime": '{"network": {"allowedDomains": []}}',
    "claude": '{"sandbox": {"network": {"allowedDomains": []}}}',
    "codex": "default_permissions = 'w'\n[permissions.w.network]\nenabled = true\n",
    "smokescreen": "version: v1\nservices: []\n",
    "gh-aw": "network: {allowed: [defaults]}",
}


def found(text: str, name: str = "") -> object:
    """Return what a file is, without insisting that it is anything."""
    return read_dialect(text.encode(), "f", Wanted(), lambda _: False, name)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_recognised_by_what_it_holds(name: str) -> None:
    """POL-15: and by nothing else; a named dialect reads the same."""
    assert took(FILES[name]).dialect == name
    assert took(FILES[name], name) == took(FILES[name])
    for other in set(NAMES) - {name}:
        assert took(FILES[other]).dialect != name
    assert set(FILES) == set(DIALECTS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1",
        "[]",
        "text",
        "network: {runtime: {allow: [a.test]}}",
        "network: {allowed: [a.test]}",
        "hosts: [a.test]",
        '{"hosts": ["a.test"], "profile": "balanced"}',
        '{"profile": "balanced", "network": {"allowedDomains": []}}',
        "a\n---\nb",
        "x = 1\n",
        "\0",
        "{" * 5000,
        '{"hosts": [' + "[" * 5000,
    ],
)
def test_what_is_nobodys_is_not_guessed(text: str) -> None:
    """POL-15: a policy of ours with a slip stays one, and so does what cannot be read."""
    assert found(text) is None


def test_what_could_be_several_is_refused() -> None:
    """POL-15: one line with the names; named, it is read."""
    text = '{"hosts": ["a.test"], "sandbox": {"network": {"allowedDomains": []}}}'
    with pytest.raises(UsageError, match="could be of several products") as caught:
        found(text)
    assert caught.value.exit_status == 2
    assert "--dialect NAME says which: gurtos, claude" in caught.value.fix
    assert took(text, "claude").dialect == "claude"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"a: 1", "f is not recognised as a policy of another product"),
        (b"\x7fELF\0\0", "a NUL byte, as binary files have"),
        (b"\xff\xfe\xfd", "f is not recognised"),
        (b'{"hosts": [', "this is not YAML"),
        (b"- a.test\n- *.b.test\n", "needs quotes"),
        (b"a.test\nb.test\n", "f is not recognised"),
        (b"network: {runtime: {allow: [a.test]}}", "f is no policy of another product"),
        (b"x = [\n", "this is not TOML"),
    ],
)
def test_one_line_for_what_is_unknown(data: bytes, said: str) -> None:
    """POL-15: what it is not, why it cannot be read, and how to name it."""
    error = unknown(data, "f")
    assert said in str(error)
    assert "\n" not in str(error)
    assert "--dialect NAME" in error.fix or "policy check" in error.fix


@pytest.mark.parametrize(
    ("data", "strange"),
    [
        (b"repo: [{path: /x}]", True),
        (b'{"sandbx": {}}', True),
        (b"[permission.w.network]\nenabled = true\n", True),
        (b"---\non: push\n---\ntext\n", True),
        (b"defalt: deny", False),
        (b"allow: [a.test]", False),
        (b"netwrok: {}\nother: 1", False),
        (b"", False),
        (b"[]", False),
        (b"\0", False),
        (b"a: [", False),
    ],
)
def test_what_is_no_policy_of_ours_with_a_mistake_either(data: bytes, strange: bool) -> None:
    """POL-15: then one line says how to name it, in place of our own errors."""
    assert is_strange(data) is strange


@pytest.mark.parametrize(
    "text", ['{"hosts": ["a.test",]}', "{'hosts': ['a.test']}", '{"network": {"allowedDomains": [],}}']
)
def test_what_would_be_theirs_if_it_were_json(text: str) -> None:
    """POL-15: the place where JSON ends; a policy of ours in that style stays ours."""
    with pytest.raises(PolicyErrors, match=r"f:1:\d+: this is not JSON"):
        found(text)
    assert found('{"network": {"runtime": {},}}') is None
    assert found("{hosts: [a.test]}") is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["", "{", "[]", "5", "a: b\n", "\0", "= = =\n"])
def test_a_named_dialect_refuses_what_is_none(name: str, text: str) -> None:
    """POL-2: an error with its place, or a policy that reaches nothing; never anything else."""
    try:
        imported = found(text, name)
    except PolicyErrors:
        return
    assert imported is None or not imported.lines  # type: ignore[attr-defined]


def test_frontmatter_has_the_lines_of_its_file() -> None:
    """POL-15: what stands behind it is no part of it."""
    imported = took("---\non: push\nnetwork:\n  allowed:\n    - a.test\n---\n\n- [x](y): `z`\n")
    assert [(entry.text, entry.line, entry.column) for entry in imported.entries if entry.text == "a.test"] == [
        ("a.test", 5, 7)
    ]


def test_the_layer_names_the_source() -> None:
    """POL-6: rules, presets and the default are from the file, not from the text between."""
    layer = layer_of(took("network: {allowed: [node, a.test], blocked: [b.test]}"), Layer.COMMAND_LINE)
    assert {row[7] for row in layer.rows} == {"file:1:27", "file:1:46"}
    assert [use.source for use in layer.presets] == ["file:1:21"] * 4
    assert all(isinstance(use, PresetUse) for use in layer.presets)
    assert layer.default_source == "file"
    assert layer.replaces


def test_many_entries_are_read_in_reasonable_work() -> None:
    """POL-0: a list of thousands becomes a policy."""
    hosts = ", ".join(f'"h{n}.test"' for n in range(3000))
    assert len(layer_of(took(f'{{"hosts": [{hosts}]}}'), Layer.COMMAND_LINE).rows) == 6000
    table = "\n".join(f'"h{n}.test" = "allow"' for n in range(20_000))
    assert len(took(f"[network_proxy]\nenabled = true\n[network_proxy.domains]\n{table}").lines) == 40_000
    domains, denies = (json.dumps([f"{letter}{n}.x.test" for n in range(10_000)]) for letter in "ab")
    service = f'{{"name": "s", "action": "open", "allowed_domains": {domains}}}'
    acl = f'{{"services": [{service}], "global_deny_list": {denies}}}'
    assert len(took(acl).lines) == 40_002


def test_a_policy_that_is_too_large_is_one_line() -> None:
    """POL-0: the text between has the bound of every policy, and the error says that it is not the file."""
    hosts = ", ".join(f'"{n:06d}{"h" * 50}.{"t" * 60}.test"' for n in range(35_000))
    with pytest.raises(UsageError, match="file: the policy that it becomes is over 8 MiB"):
        layer_of(took(f'{{"hosts": [{hosts}]}}'), Layer.COMMAND_LINE)


def test_a_file_full_of_mistakes_says_when_it_stops_counting() -> None:
    """POL-0: fifty are printed."""
    with pytest.raises(PolicyErrors) as caught:
        found('{"hosts": [' + ", ".join(["1"] * 2000) + "]}")
    lines = caught.value.lines()
    assert len(lines) == 51
    assert lines[-1].startswith("at least ")
