"""The text of a harness file to a Harness, or all of its errors."""

# ruff: noqa: E501 - the tables quote whole lines as a person sees them

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.policy.harnesses import Harness, HarnessHost, harness_layer
from tidegate.policy.harnesses.harness_file import HARNESS_KEYS, HOST_KEYS, load_harness
from tidegate.policy.positions import PolicyErrors

WHOLE = b"""\
name: my-agent
command: agent.py
about: An agent
proxy_aware: false
model_api: API.example.com.:443
network:
  requires:
    - "*.cdn.example.com"
    - {host: api.example.com:443, verified: true, why: the model, source: "https://example.com"}
"""


def refused(text: str | bytes) -> list[str]:
    """Return the lines of the refusal of a text."""
    with pytest.raises(PolicyErrors) as caught:
        load_harness(text if isinstance(text, bytes) else text.encode(), "h.yaml")
    return str(caught.value).split("\n")


def with_hosts(hosts: str) -> str:
    """Return a harness file with these hosts, on line 3."""
    return f"name: a\ncommand: a\nnetwork: {{requires: {hosts}}}\n"


def test_a_whole_file() -> None:
    """Every key of POL-12 is read; hosts are canonical, and know their place."""
    assert load_harness(WHOLE, "h.yaml") == Harness(
        "my-agent",
        "agent.py",
        "An agent",
        proxy_aware=False,
        hosts=(
            HarnessHost("*.cdn.example.com", verified=False, source="h.yaml:8:7"),
            HarnessHost("api.example.com:443", verified=True, source="h.yaml:9:14", why="the model", reference="https://example.com"),
        ),
        model_api=("api.example.com:443",),
    )  # fmt: skip


def test_the_one_in_the_docs() -> None:
    """What a reader copies from docs/policy.md is a harness file."""
    page = Path(__file__).parents[4] / "docs" / "policy.md"
    (text,) = re.findall(r"```yaml\n(name: .*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    harness = load_harness(text.encode(), "my-agent.yaml")
    assert (harness.name, harness.command, len(harness.hosts)) == ("my-agent", "my-agent", 2)


def test_the_least() -> None:
    """Name and command suffice: an agent may declare no hosts; what is not said of proxies is that it knows them."""
    assert load_harness(b"name: a\ncommand: b\n", "h.yaml") == Harness("a", "b")
    assert load_harness(with_hosts("[]").encode(), "h.yaml").hosts == ()
    assert load_harness(b'{"name": "a", "command": "a", "model_api": []}', "h.yaml").model_api == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "h.yaml: the harness file is empty: write at least 'name' and 'command'"),
        ("[a]", "h.yaml:1:1: a list where a mapping belongs (a harness file): write 'name: my-agent'"),
        ("name: a\n", "h.yaml:1:1: a harness file needs 'command': write 'command: my-agent'"),
        ("command: a\n", "h.yaml:1:1: a harness file needs 'name': write 'name: my-agent'"),
        ("name: A\ncommand: a\n", "h.yaml:1:7: 'name' has another form: 'A': write lower-case letters, digits and '-', beginning with a letter"),
        (f"name: {'a' * 33}\ncommand: a\n", f"h.yaml:1:7: 'name' has another form: '{'a' * 33}': write lower-case letters, digits and '-', beginning with a letter"),
        ("name: a\ncommand: ./a\n", "h.yaml:2:10: 'command' has another form: './a': write the program's file name alone"),
        ("name: a\ncommand: ..\n", "h.yaml:2:10: 'command' has another form: '..': write the program's file name alone"),
        ("name: a\ncommand: 'a b'\n", "h.yaml:2:10: 'command' has another form: 'a b': write the program's file name alone"),
        ("name: a\ncommand: 7\n", "h.yaml:2:10: a number where a text belongs ('command'): '7': write it in quotes if a text is meant"),
        ("name: a\ncommand: a\nproxy_aware: 'no'\n", "h.yaml:3:14: a text where a truth value belongs ('proxy_aware'): 'no': write true or false"),
        ("name: a\ncommand: a\nproxyaware: true\n", "h.yaml:3:1: a harness file has no such key: 'proxyaware': write 'proxy_aware'"),
        ("name: a\ncommand: a\nhosts: [a.test]\n", "h.yaml:3:1: a harness file has no such key: 'hosts': write 'network: {requires: [api.example.com:443]}'"),
        ("name: a\ncommand: a\nnetwork: {allow: [a.test]}\n", "h.yaml:3:11: 'network' has no such key: 'allow': write 'requires: [api.example.com:443]'"),
        ("name: a\ncommand: a\nname: b\n", "h.yaml:3:1: a key twice: 'name': keep one of them; the first is in line 1"),
        ("name: a\ncommand: a\nmodel_api: b.test\n", "h.yaml:3:12: the model API is not among the hosts: 'b.test': add it to 'network: {requires: […]}', spelt the same"),
        ("name: a\ncommand: a\nmodel_api: b.test\nnetwork: {requires: ['b.test:443']}\n", "h.yaml:3:12: the model API is not among the hosts: 'b.test': add it to 'network: {requires: […]}', spelt the same"),
        (with_hosts("a.test"), "h.yaml:3:21: a text where a list belongs ('network.requires'): 'a.test': write '[api.example.com:443]', or [] for none"),
        (with_hosts("['@npm']"), "h.yaml:3:22: a harness names hosts, no presets: '@npm': write the hosts out"),
        (with_hosts("['10.0.0.0/8']"), "h.yaml:3:22: ranges of addresses (CIDR) are not rules: '10.0.0.0/8': write each address on its own, or the host's name"),
        (with_hosts("['*x.test']"), "h.yaml:3:22: a wildcard stands for whole labels: '*x.test': write *.x.test or x.test"),
        (with_hosts("['A.test', a.test.]"), "h.yaml:3:32: a host twice: 'a.test': keep one of them"),
        (with_hosts("[{verified: true}]"), "h.yaml:3:22: an entry of 'network.requires' names no host: write '{host: api.example.com:443, verified: false}'"),
        (with_hosts("[{host: a.test, verified: maybe}]"), "h.yaml:3:47: a text where a truth value belongs ('verified'): 'maybe': write true or false"),
        (with_hosts("[{host: a.test, methods: [GET]}]"), "h.yaml:3:37: an entry of 'network.requires' has no such key: 'methods': write one of host, verified, why, source, only_key"),
        (with_hosts("[443]"), "h.yaml:3:22: a number where a text belongs (an entry of 'network.requires'): '443': write a host such as api.example.com:443"),
        (with_hosts('[{host: a.test, why: "a\\nb"}]'), "h.yaml:3:42: 'why' is no short line: 'a\\nb': write one line of at most 300 characters"),
        (with_hosts(f"[{'a' * 601}]"), f"h.yaml:3:22: longer than any name can be: '{'a' * 59}…': write a host such as api.example.com:443"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_place(text: str, line: str) -> None:
    """File, line and column, the text at fault, and what to write instead, as for policies (POL-2)."""
    assert refused(text) == [line]


def test_all_mistakes_at_once() -> None:
    """Every error of a file is shown in one go, and one is enough to refuse it (POL-2)."""
    lines = refused(
        "name: A\ncommand: /a\nnetwork: {requires: [https://a.test/, b..test, c.test]}\nmodel_api: [d.test, 5]\n"
    )
    assert [line.split(": ")[0] for line in lines] == ["h.yaml:1:7", "h.yaml:2:10", "h.yaml:3:22", "h.yaml:3:39", "h.yaml:4:21"]  # fmt: skip


def test_the_keys() -> None:
    """The keys of POL-12 are all known."""
    assert {"name", "command", "network", "proxy_aware", "model_api"} < set(HARNESS_KEYS)
    assert {"host", "verified", "source"} < set(HOST_KEYS)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_harness_or_refused(data: bytes) -> None:
    """Whatever stands in the file, the result is a harness that makes rules, or PolicyErrors."""
    try:
        harness = load_harness(data, "h.yaml")
    except PolicyErrors:
        return
    assert harness.name
    assert harness.command
    harness_layer(harness)
