"""GurtOS' task JSON and settings (POL-15)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.dialects.told import (
    PLACES,
    allowed,
    allows,
    became,
    holds_to,
    is_below,
    names,
    policy_of,
    ports,
    refused,
    took,
)
from tidegate.addresses.admission import admit
from tidegate.addresses.surroundings import Surroundings
from tidegate.model.address_class import Admission
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.dialects.imported import DROPPED, EXACTLY

LOOPBACK = b"\x7f\x00\x00\x01"


def task(*hosts: str) -> str:
    """Return a task that names these hosts."""
    return json.dumps({"hosts": list(hosts)})


def test_the_table_of_the_page() -> None:
    """POL-15: exact on any port or one; `*.x` at any depth, never x itself."""
    imported = took(task("a.test", "x.org:8080", "*.example.com"))
    assert imported.dialect == "gurtos"
    policy = policy_of(imported)
    yes = ("a.test:1", "a.test:443", "x.org:8080", "api.example.com:443", "b.api.example.com:22")
    no = ("b.a.test:443", "x.org:443", "example.com:443", "notexample.com:443", "8.8.8.8:443")
    assert all(allows(policy, place) for place in yes)
    assert not any(allows(policy, place) for place in no)
    assert policy.profile is None
    assert policy.default is Verdict.DENY
    assert allowed(imported) == allowed(imported, phase=Phase.INSTALL)


def test_a_wildcard_with_a_port_matches_nothing_and_says_so() -> None:
    """POL-15: `*.x:443` is accepted, matches nothing, and the import says so; without the port it is kept."""
    imported = took(task("*.example.com:443", "*.example.org"))
    assert became(imported)["*.example.com:443"] == (DROPPED, ())
    assert became(imported)["*.example.org"] == (EXACTLY, ("allow **.example.org",))
    (why,) = [entry.why for entry in imported.entries if entry.how == DROPPED]
    assert "matches nothing" in why
    assert not allowed(imported, ["a.example.com:443", "example.com:443"])


@pytest.mark.parametrize(
    ("host", "beside"),
    [
        ("*", "a.test"),
        ("*.com", "*.example.com"),
        ("*.co.uk", "*.example.co.uk"),
        ("*.CO.UK.", "*.Example.CO.UK."),
        ("*.localhost", "shop.localhost:8081"),
        ("localhost", "shop.localhost"),
        ("localhost:8081", "localhost.example.com:8081"),
        ("127.0.0.1", "128.0.0.1"),
        ("127.0.0.1:8081", "12.7.0.1:8081"),
        ("0.0.0.0", "10.0.0.0"),
        ("169.254.169.254:80", "169.253.1.1:80"),
        ("**", "*.a.test"),
        ("**.a.test", "*.b.a.test"),
    ],
)
def test_what_is_refused_when_a_task_is_created(host: str, beside: str) -> None:
    """POL-15: with its place, and nothing of the file counts; the neighbour is taken."""
    (line,) = refused(task("a.test", host))
    assert line.startswith("1:")
    assert became(took(task("a.test", beside)))[beside][0] == EXACTLY


def test_private_and_own_addresses_by_exact_host_and_port() -> None:
    """POL-15: `shop.localhost` alone is not enough; ports of the box are never reached."""
    policy = policy_of(took(task("shop.localhost:8081", "port.localhost", "api.localhost:3000", "gate.localhost:8888")))
    assert (policy.private, policy.own) == (Admission.EXACT_HOST_PORT, Admission.EXACT_HOST_PORT)

    def reason(place: str) -> Reason:
        decision = decide(policy, parse_authority(place), Phase.RUNTIME)
        return admit(decision, (LOOPBACK,), Surroundings(own=frozenset({LOOPBACK})), policy.modes).reason

    assert reason("shop.localhost:8081") is Reason.ALLOWED
    assert reason("port.localhost:8081") is Reason.OWN_ADDRESS
    assert reason("api.localhost:3000") is Reason.PROTECTED_PORT
    assert reason("gate.localhost:8888") is Reason.PROTECTED_PORT


def test_settings_of_a_box() -> None:
    """POL-15, POL-13: `none` reaches nothing, `allowlist` the default hosts; a task's own hosts are exactly those."""
    given_hosts = '"defaultHosts": ["a.test", "*.x.org"]'
    assert not allowed(took(f"{{{given_hosts}}}"))
    assert not allowed(took(f'{{"networkDefault": "none", {given_hosts}}}'))
    defaults = took(f'{{"networkDefault": "allowlist", {given_hosts}}}')
    assert allowed(defaults, ["a.test:80", "b.x.org:80", "x.org:80"]) == {"a.test:80", "b.x.org:80"}
    own = took(f'{{"hosts": ["b.a.test"], "networkDefault": "allowlist", {given_hosts}}}')
    assert allowed(own, ["a.test:80", "b.a.test:80"]) == {"b.a.test:80"}
    none = took(f'{{"hosts": [], "networkDefault": "allowlist", {given_hosts}}}')
    assert allowed(none, ["a.test:80"]) == {"a.test:80"}
    assert not allowed(took('{"hosts": []}'))
    for one in (defaults, own, none):
        assert {"a.test", "*.x.org"} <= set(became(one))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"hosts": ["a b.test"]}', "it has a space inside"),
        ('{"hosts": ["10.0.0.0/8"]}', "(CIDR) are not rules"),
        ('{"hosts": ["a.test:99999"]}', "outside 1-65535"),
        ('{"hosts": ["*.a.test:99999"]}', "outside 1-65535"),
        ('{"hosts": ["@npm"]}', "a preset is named in a list of a policy"),
        ('{"hosts": "a.test"}', "a text where a list belongs"),
        ('{"hosts": [443]}', "a number where a text belongs"),
        ('{"hosts": ["a.test"], "hosts": ["x.org"]}', "a key twice"),
        ('{"hosts": ["a.test"], "defaultHost": ["x.org"]}', "write 'defaultHosts'"),
        ('{"networkDefault": "alowlist"}', "write 'allowlist'"),
    ],
)
def test_what_is_wrong_is_an_error(text: str, said: str) -> None:
    """POL-15, POL-2: with its place; a key like one of theirs is not left out."""
    (line,) = refused(text)
    assert said in line


def test_keys_of_no_network_are_left_out_by_name() -> None:
    """POL-15: a task says more than hosts."""
    imported = took('{"prompt": "do it", "hosts": ["a.test"]}')
    assert [entry.text for entry in imported.entries] == ["prompt", "a.test"]


@given(
    st.lists(
        st.one_of(
            st.builds(lambda name, port: name + port, names, ports),
            st.builds(lambda name, port: f"*.{name}{port}", names, st.sampled_from(("", "", ":443"))),
            st.sampled_from(("8.8.8.8", "9.9.9.9:443")),
        ),
        max_size=5,
    )
)
def test_it_allows_exactly_what_the_page_allows(hosts: list[str]) -> None:
    """POL-15: an oracle from the page's table; a wildcard with a port matches nothing there either."""

    def oracle(host: str, port: int) -> bool:
        for pattern in hosts:
            name, colon, wanted = pattern.partition(":")
            if name.startswith("*."):
                if not colon and is_below(host, name[2:]):
                    return True
            elif host == name and (not colon or int(wanted) == port):
                return True
        return False

    imported = took(task(*hosts))
    holds_to(imported, oracle)
    assert allowed(imported) == {
        place for place in PLACES if oracle(place[: place.rindex(":")], int(place.split(":")[1]))
    }
