"""Kraft's repos.yaml (POL-15)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.dialects.told import allowed, became, holds_to, is_below, names, policy_of, ports, refused, took
from tidegate.model.address_class import Admission
from tidegate.model.errors import StartError, UsageError
from tidegate.model.verdict import Phase
from tidegate.policy.dialects.imported import ASIDE, DROPPED, EXACTLY, NARROWER


def repo(network: str, more: str = "", kind: str = "docker") -> str:
    """Return a file with one repository."""
    return f"repos:\n  - path: /code/one\n    sandbox: {{kind: {kind}{more}, network: {network}}}\n"


def test_the_file_of_the_page() -> None:
    """POL-15: lists by phase, deny wins, what is not public by exact host, this machine never, and locked."""
    imported = took(
        repo("{install: {allow: [a.test, x.org]}, runtime: {allow: ['b.a.test:443', '*.x.org'], deny: [c.x.org]}}")
    )
    assert imported.dialect == "kraft"
    assert allowed(imported, phase=Phase.INSTALL) == {
        f"{name}:{port}" for name in ("a.test", "x.org") for port in (80, 443, 8080)
    }
    assert allowed(imported) == {"b.a.test:443", "b.x.org:80", "b.x.org:443", "b.x.org:8080"}
    assert not allowed(imported, ["c.x.org:443", "x.org:443", "y.b.x.org:443"])
    policy = policy_of(imported)
    assert (policy.private, policy.own, policy.locked, policy.profile) == (
        Admission.EXACT_HOST,
        Admission.NEVER,
        True,
        None,
    )


@pytest.mark.parametrize(
    ("text", "how", "rules"),
    [
        ("api.github.com", EXACTLY, ("allow api.github.com",)),
        ("api.github.com:443", EXACTLY, ("allow api.github.com:443",)),
        ("*.example.com", EXACTLY, ("allow *.example.com",)),
        ("*", EXACTLY, ("allow *",)),
        ("**", EXACTLY, ("allow *",)),
        ("*.example.com:443", DROPPED, ()),
        ("**.example.com", DROPPED, ()),
        ("*:443", DROPPED, ()),
    ],
)
def test_each_form_of_a_host(text: str, how: str, rules: tuple[str, ...]) -> None:
    """POL-15: `*.x` is one label; a wildcard that the page does not have lets nothing pass."""
    assert became(took(repo(f"{{runtime: {{allow: ['{text}']}}}}")))[text] == (how, rules)


@pytest.mark.parametrize(
    ("text", "how", "rules"),
    [
        ("*.example.com", EXACTLY, ("deny *.example.com",)),
        ("*.example.com:443", NARROWER, ("deny example.com", "deny **.example.com")),
        ("**.example.com", NARROWER, ("deny example.com", "deny **.example.com")),
        ("*:443", NARROWER, ("deny *",)),
    ],
)
def test_a_deny_that_has_no_form_denies_more(text: str, how: str, rules: tuple[str, ...]) -> None:
    """POL-15: never widened: what a deny could mean is denied."""
    assert became(took(repo(f"{{runtime: {{allow: [a.test], deny: ['{text}']}}}}")))[text] == (how, rules)


def test_phases_that_are_missing_or_empty_allow_nothing() -> None:
    """POL-15: `network: {runtime: {}}` denies everything, in both phases; the neighbour with one host does not."""
    closed = took(repo("{runtime: {}}"))
    assert closed.refusal == ("", "")
    assert not allowed(closed)
    assert not allowed(closed, phase=Phase.INSTALL)
    opened = took(repo("{runtime: {allow: [a.test]}}"))
    assert allowed(opened, ["a.test:443"])
    assert not allowed(opened, ["a.test:443"], Phase.INSTALL)


@pytest.mark.parametrize("sandbox", ["{kind: docker}", "{kind: kit, network: {}}", "{unrestricted_network: false}"])
def test_neither_network_nor_unrestricted_is_refused(sandbox: str) -> None:
    """POL-15: the launch is refused, and the message names the repository and both fixes."""
    imported = took(f"repos: [{{path: /code/one, sandbox: {sandbox}}}]")
    what, fix = imported.refusal
    assert "repository /code/one" in what
    assert "network: {runtime: {allow:" in fix
    assert "unrestricted_network: true" in fix
    assert [(row.name, row.state) for row in imported.egress] == [("/code/one", "fail")]
    (entry,) = took("repos: [{path: /code/one}]").egress
    assert entry.state == "fail"


def test_unrestricted_is_no_gate() -> None:
    """POL-15: it is no policy but none at all, and says where; beside `network: {}`, which is the same as none, too."""
    for more in ("", ", network: {}"):
        text = f"repos: [{{path: /code/one, sandbox: {{kind: docker, unrestricted_network: true{more}}}}}]"
        imported = took(text, folder="/code/one")
        assert imported.without_gate == "open"
        assert "/code/one" in imported.because
        assert imported.because.startswith("file:1:")
        assert [row.state for row in imported.egress] == ["warn"]
        assert imported.refusal == ("", "")


def test_unrestricted_beside_a_network_or_on_a_kit_is_refused() -> None:
    """POL-15: both name the repository; a kit with a network, and a container without one, are none of it."""
    (line,) = refused("repos: [{path: /code/one, sandbox: {unrestricted_network: true, network: {runtime: {}}}}]")
    assert "repository /code/one: 'unrestricted_network' together with 'network'" in line
    (line,) = refused("repos: [{path: /code/one, sandbox: {kind: kit, unrestricted_network: true}}]")
    assert "repository /code/one: 'unrestricted_network' on a kit" in line
    assert allowed(took(repo("{runtime: {allow: [a.test]}}", kind="kit")), ["a.test:80"])


def test_which_repository() -> None:
    """POL-15: the folder's own, or the one that is selected; nothing is guessed."""
    two = (
        "repos:\n  - {path: /code/one, sandbox: {network: {runtime: {allow: [a.test]}}}}\n"
        "  - {path: /code/two/, sandbox: {network: {runtime: {allow: [x.org]}}}}\n"
    )
    assert allowed(took(two, folder="/code/two"), ["a.test:80", "x.org:80"]) == {"x.org:80"}
    assert allowed(took(two, select="/code/one", folder="/code/two"), ["a.test:80", "x.org:80"]) == {"a.test:80"}
    assert allowed(took(two, select="/code/two"), ["a.test:80", "x.org:80"]) == {"x.org:80"}
    with pytest.raises(UsageError, match="has 2 repositories, and nothing says which") as caught:
        took(two)
    assert "--select NAME, one of: /code/one, /code/two/" in caught.value.fix
    with pytest.raises(UsageError, match="has no repository '/code/three'"):
        took(two, select="/code/three")
    (line,) = refused(two.replace("two/", "one"))
    assert "a repository twice" in line


def test_how_the_sandbox_is_made_is_said_as_options() -> None:
    """POL-15: kind, image, relay image and the set-up command; keys of no network are left out by name."""
    imported = took(
        "relay_image: relay:1\nrepos: [{path: /code/one, branch: main, setup_command: npm ci,"
        " sandbox: {kind: podman, image: 'img:2', user: me, network: {install: {allow: [a.test]}}}}]"
    )
    asides = {entry.where: entry.why for entry in imported.entries if entry.how == ASIDE}
    assert asides["sandbox.kind"] == "give it when a task starts: --hold podman"
    assert asides["sandbox.image"] == "give it when a task starts: --image img:2"
    assert asides["relay_image"] == "give it when a task starts: --relay-image relay:1"
    assert {"repos[0]", "sandbox"} <= set(asides)
    assert policy_of(imported).setup == ("/bin/sh", "-c", "npm ci")
    alone = took("relay_image: relay:1\n")
    assert "--relay-image relay:1" in alone.refusal[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (repo("{runtime: {allow: [10.0.0.0/8]}}"), "(CIDR) are not rules"),
        (repo("{runtime: {allow: ['https://a.test']}}"), "a rule names a host, not a URL"),
        (repo("{runtime: {allow: ['@npm']}}"), "a preset is named in a list of a policy"),
        (repo("{runtime: {allow: a.test}}"), "a text where a list belongs"),
        (repo("{runtime: {allow: [80]}}"), "a number where a text belongs"),
        (repo("{runtime: {alow: [a.test]}}"), "has no such key: 'alow': write 'allow'"),
        (repo("{runtme: {allow: [a.test]}}"), "has no such key: 'runtme': write 'runtime'"),
        (repo("{runtime: {ask: [a.test]}}"), "has no such key: 'ask'"),
        ("repos: [{path: /a, sandbox: {netwrok: {runtime: {}}}}]", "has no such key: 'netwrok': write 'network'"),
        ("repos: [{path: /a, sandbox: {unrestricted_netwrk: true}}]", "write 'unrestricted_network'"),
        ("repos: [{path: /a, sandbox: {unrestricted_network: 'yes'}}]", "a text where a truth value belongs"),
        ("repos: [{path: /a, sandbox: {kind: dokcer, network: {runtime: {}}}}]", "write 'docker'"),
        ("repos: [{sandbox: {network: {runtime: {}}}}]", "a repository without a path"),
        ("repos: [{path: /a, path: /b}]", "a key twice"),
    ],
)
def test_what_is_wrong_is_an_error_with_its_place(text: str, said: str) -> None:
    """POL-15, POL-2: nothing of a file with a mistake counts."""
    (line,) = refused(text)
    assert said in line
    assert line[0].isdigit()


HOSTS = st.one_of(
    st.builds(lambda name, port: name + port, names, ports),
    st.builds(lambda name, port: f"*.{name}{port}", names, st.sampled_from(("", "", ":443"))),
    st.sampled_from(("*", "**", "8.8.8.8", "**.a.test", "*:443")),
)


def covers(pattern: str, host: str, port: int) -> bool | None:
    """Say what the page does of a pattern; None where it has no such form."""
    if pattern in {"*", "**"}:
        return True
    name, colon, wanted = pattern.partition(":")
    if name.startswith("*."):
        return None if colon else is_below(host, name[2:], 1)
    if name.startswith("*"):
        return None
    return host == name and (not colon or int(wanted) == port)


@given(allow=st.lists(HOSTS, max_size=4), deny=st.lists(HOSTS, max_size=3))
def test_it_never_allows_what_the_page_denies(allow: list[str], deny: list[str]) -> None:
    """POL-15: an oracle from the page; a form it does not have allows nothing and may deny anything."""
    imported = took(repo(json.dumps({"runtime": {"allow": allow, "deny": deny}})))

    def oracle(host: str, port: int) -> bool:
        if any(covers(one, host, port) for one in deny):
            return False
        return any(covers(one, host, port) for one in allow)

    holds_to(imported, oracle)
    assert not allowed(imported, phase=Phase.INSTALL)


def test_one_repository_written_in_two_ways() -> None:
    """POL-15: a final slash makes no other repository, of which the first or the last would count."""
    one = "{path: PATH, sandbox: {network: {runtime: {allow: [HOST]}}}}"
    entries = [one.replace("PATH", path).replace("HOST", host) for path, host in (("/a", "a.test"), ("/a/", "b.test"))]
    (line,) = refused(f"repos: [{', '.join(entries)}]\n")
    assert "a repository twice" in line


@pytest.mark.parametrize("folder", ["/", "/code", "/code/one-more", "/code/two"])
def test_another_repositorys_word_opens_nothing(folder: str) -> None:
    """POL-15: `unrestricted_network` of the only repository counts in it and below; elsewhere nothing is launched."""
    text = "repos: [{path: /code/one/, sandbox: {unrestricted_network: true}}]"
    with pytest.raises(StartError, match="this folder is not in it"):
        took(text, folder=folder)
    assert took(text, folder="/code/one/src").without_gate == "open"
    assert took(text, folder=folder, select="/code/one").without_gate == "open"
