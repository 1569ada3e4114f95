"""Policy text to a layer, or all of its errors (policy/loader.py)."""

# ruff: noqa: E501 - the tables quote whole lines as a person sees them

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.model.address_class import Admission
from tidegate.model.destination import parse_authority
from tidegate.model.limits import Limits
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin, Rule, RuleLimits
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.decide import decide
from tidegate.policy.layers import PolicyLayer, join
from tidegate.policy.loader import LIMIT_BOUNDS, POLICY_KEYS, PolicyErrors, load_policy
from tidegate.policy.rows import rule_of


def load(text: str, layer: Layer = Layer.COMMAND_LINE, *, folder: bool = False) -> PolicyLayer:
    """Load a text under the name p.yaml."""
    return load_policy(text.encode(), "p.yaml", layer, folder=folder)


def refused(text: str | bytes, *, folder: bool = False) -> list[str]:
    """Return the lines of the refusal of a text."""
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(PolicyErrors) as caught:
        load_policy(data, "p.yaml", Layer.COMMAND_LINE, folder=folder)
    return str(caught.value).split("\n")


def rules(text: str) -> list[Rule]:
    """Return the rules of a text."""
    return [rule_of(row) for row in load(text).rows]


def listed(*entries: str) -> str:
    """Return a policy with these entries in the runtime allow list, from line 4 on."""
    return "network:\n  runtime:\n    allow:\n" + "".join(f"      - {entry}\n" for entry in entries)


WHOLE = """\
# Everything that has effect in this version.
profile: closed
default: ask
network:
  install:
    allow: ["@package-registries"]
  runtime:
    allow:
      - api.example.com
      - "*.example.org:443"
      - {host: "[2600:beef::1]:8443", limits: {bytes_up: 1000, connections_per_minute: 6}}
      - BÜCHER.example.
    ask: [github.com:443]
    deny: ["**.bad.example", 1.2.3.4]
presets:
  npm: [npm.example.com:443, "*.cdn.example.com"]
private: never
own: exact-host-port
protected_ports: [5432, 6379]
tls: strict
limits: {connections: 10, idle_seconds: 0.5}
upstream: {resolve: skip}
locked: true
registries: tunnel
"""


def test_a_whole_policy_becomes_a_layer() -> None:
    """POL-0: each key that has effect arrives in the layer, and each rule with its place."""
    layer = load(WHOLE)
    assert (layer.layer, layer.source, layer.replaces) == (Layer.COMMAND_LINE, "p.yaml", True)
    assert (layer.profile, layer.default, layer.default_source) == ("closed", Verdict.ASK, "p.yaml:3:10")
    assert layer.phases == frozenset(Phase)
    assert (layer.private, layer.own) == (Admission.NEVER, Admission.EXACT_HOST_PORT)
    assert (layer.tls, layer.upstream_resolve, layer.locked) == ("strict", "skip", True)
    assert layer.protected_ports == (5432, 6379)
    assert dict(layer.limits) == {"connections": 10, "idle_seconds": 0.5}
    assert layer.mirrors == (("npm", (("npm.example.com:443", "p.yaml:16:9"), ("*.cdn.example.com", "p.yaml:16:30"))),)
    assert [(use.name, use.verdict, use.phase, use.source) for use in layer.presets] == [
        ("package-registries", Verdict.ALLOW, Phase.INSTALL, "p.yaml:6:13")
    ]
    got = [(rule.text, rule.verdict, rule.phase, rule.source) for rule in map(rule_of, layer.rows)]
    assert got == [
        ("api.example.com", Verdict.ALLOW, Phase.RUNTIME, "p.yaml:9:9"),
        ("*.example.org:443", Verdict.ALLOW, Phase.RUNTIME, "p.yaml:10:9"),
        ("[2600:beef::1]:8443", Verdict.ALLOW, Phase.RUNTIME, "p.yaml:11:16"),
        ("xn--bcher-kva.example", Verdict.ALLOW, Phase.RUNTIME, "p.yaml:12:9"),
        ("github.com:443", Verdict.ASK, Phase.RUNTIME, "p.yaml:13:11"),
        ("**.bad.example", Verdict.DENY, Phase.RUNTIME, "p.yaml:14:12"),
        ("1.2.3.4", Verdict.DENY, Phase.RUNTIME, "p.yaml:14:30"),
    ]
    assert rule_of(layer.rows[2]).limits == RuleLimits(1000, 6)
    assert {rule_of(row).origin for row in layer.rows} == {Origin.WRITTEN}


def test_json_is_a_policy_too() -> None:
    """POL-0: the same as JSON, tabs and all."""
    text = '{\n\t"network": {\n\t\t"runtime": {"allow": ["api.example.com:443"]}\n\t}\n}\n'
    assert [(rule.text, rule.source) for rule in rules(text)] == [("api.example.com:443", "p.yaml:3:25")]


@pytest.mark.parametrize(
    ("layer", "name", "replaces"),
    [
        (Layer.ADMINISTRATOR, "administrator", False),
        (Layer.USER, "user-config", False),
        (Layer.FOLDER, "policy", True),
        (Layer.COMMAND_LINE, "policy", True),
    ],
)
def test_rules_are_named_by_their_layer(layer: Layer, name: str, replaces: bool) -> None:
    """POL-6, POL-8: a rule says whose it is, and --policy and the folder's file replace what is below them."""
    loaded = load(listed("a.com"), layer)
    assert (rule_of(loaded.rows[0]).name, loaded.replaces) == (name, replaces)


@pytest.mark.parametrize(
    ("text", "phases"),
    [
        ("default: deny", None),
        ("network: {}", None),
        ("network: {runtime: {}}", frozenset()),
        ("network: {runtime: {allow: []}}", frozenset()),
        ("network: {runtime: {allow: [a.com]}}", frozenset({Phase.RUNTIME})),
        ("network: {install: {deny: [a.com]}}", frozenset({Phase.INSTALL})),
        ("network: {install: {ask: ['@npm']}, runtime: {allow: []}}", frozenset({Phase.INSTALL})),
    ],
)
def test_phases_with_an_entry_are_open(text: str, phases: frozenset[Phase] | None) -> None:
    """POL-7: a phase without any entry stays closed; no network at all is something else."""
    assert load(text).phases == phases


def test_a_loaded_policy_decides() -> None:
    """POL-5, POL-10: text to verdict, with the place of the rule in the decision and only its own hosts reached."""
    policy = join(load(listed("api.example.com:443")))
    allowed = decide(policy, parse_authority("api.example.com:443"), Phase.RUNTIME)
    assert (allowed.verdict, allowed.name, allowed.source) == (Verdict.ALLOW, "policy", "p.yaml:4:9")
    other = decide(policy, parse_authority("pypi.org:443"), Phase.RUNTIME)
    assert (other.verdict, other.reason) == (Verdict.DENY, Reason.NO_RULE)
    closed = decide(policy, parse_authority("api.example.com:443"), Phase.INSTALL)
    assert closed.reason is Reason.PHASE_CLOSED


def test_a_mirror_replaces_the_hosts_of_a_preset() -> None:
    """POL-11: the company's mirror takes the place of a preset's hosts, as a rule that a person wrote."""
    policy = join(load("profile: balanced\npresets: {npm: [npm.corp.example:443]}\n"))
    mirror = decide(policy, parse_authority("npm.corp.example:443"), Phase.RUNTIME)
    assert (mirror.verdict, mirror.source) == (Verdict.ALLOW, "p.yaml:2:17")
    assert mirror.rule is not None
    assert mirror.rule.origin is Origin.WRITTEN
    assert decide(policy, parse_authority("registry.npmjs.org:443"), Phase.RUNTIME).verdict is Verdict.ASK
    assert decide(policy, parse_authority("pypi.org:443"), Phase.RUNTIME).verdict is Verdict.ALLOW


RULE_TEXTS = [
    ("10.0.0.0/8", "ranges of addresses (CIDR) are not rules"),
    ("https://x.com/", "a rule names a host, not a URL"),
    ("x.com/path", "a rule has no path"),
    (".x.com", "it begins with a dot"),
    ("'*x.com'", "a wildcard stands for whole labels"),
    ("a.*.com", "a wildcard stands only in front, once"),
    ("'a.com b.com'", "it has a space inside"),
    ("'*.a.test b.test'", "it has a space inside"),
    ("'a.com,b.com'", "it has a comma inside"),
    ("a..com", "it has an empty label"),
    ("x" * 64 + ".com", "it has a label longer than 63 bytes"),
    (".".join(["x" * 60] * 5), "the name is longer than 253 bytes"),
    ("a.com:0", "the port 0 is outside 1-65535"),
    ("a.com:65536", "the port is outside 1-65535"),
    ("a.com:+443", "the port '+443' is not a plain number"),
    ("0177.0.0.1", "this is not a canonical IPv4 address"),
    ("0x7f.1", "this is not a canonical IPv4 address"),
    ("127.1", None),
    ("'2130706433'", "this is not a canonical IPv4 address"),
    ("2600:beef::1", "an IPv6 address needs brackets"),
    ("-a.com", "a label begins or ends with '-'"),
    ("a-.com", "a label begins or ends with '-'"),
    ("\uff41.com", "the name changes under Unicode's NFKC"),
    ("'a.com:443:444'", "it has more than one ':'"),
    ("''", "the rule is empty"),
    ("1:30", "this is not a canonical IPv4 address"),
]


@pytest.mark.parametrize(("entry", "what"), RULE_TEXTS)
def test_what_is_no_rule_is_refused_with_its_place(entry: str, what: str | None) -> None:
    """POL-2, B01, B11: each is refused at line and column with its text and what to write instead."""
    (line,) = refused(listed("good.example.com", entry))
    assert line.startswith("p.yaml:5:9: ")
    assert "write " in line
    assert what is None or line.startswith(f"p.yaml:5:9: {what}")


@pytest.mark.parametrize("entry", ["no", "on", "yes", "1.2.3.4", "a_b.com", "x" * 63 + ".com", "a.com:65535", "'null'"])
def test_neighbours_of_the_refused_are_rules(entry: str) -> None:
    """POL-0, POL-2: what is just inside the grammar loads; `no` and `on` are texts in YAML 1.2."""
    assert rules(listed(entry))[0].text == entry.strip("'")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("network: {allow: [a.com]}", "p.yaml:1:11: 'network' has no such key: 'allow': write it below a phase: 'runtime: {allow: […]}'"),
        ("network: {hosts: [a.com]}", "p.yaml:1:11: 'network' has no such key: 'hosts': write it below a phase: 'runtime: {allow: […]}'"),
        ("network: {runtime: []}", "p.yaml:1:20: a list where a mapping belongs ('network.runtime'): write '{allow: [api.example.com:443]}'"),
        ("[]", "p.yaml:1:1: a list where a mapping belongs (the policy): write 'network: {runtime: {allow: [api.example.com:443]}}'"),
        ("allow: [a.com]", "p.yaml:1:1: the policy has no such key: 'allow': write it below a phase: 'network: {runtime: {allow: […]}}'"),
        ("hosts: [a.com]", "p.yaml:1:1: the policy has no such key: 'hosts': write it below a phase: 'network: {runtime: {allow: […]}}'"),
        ("secrets: [A]", "p.yaml:1:1: the policy has no such key: 'secrets': name them where a task starts: tidegate run --secret NAME"),
        ("harness: claude", "p.yaml:1:1: the policy has no such key: 'harness': name the agent where it starts: tidegate run --harness NAME"),
        ("netwrok: {}", "p.yaml:1:1: the policy has no such key: 'netwrok': write 'network'"),
        ("network: {runtim: {}}", "p.yaml:1:11: 'network' has no such key: 'runtim': write 'runtime'"),
        ("network: {runtime: {allowed: []}}", "p.yaml:1:21: 'network.runtime' has no such key: 'allowed': write 'allow'"),
        ("network: {runtime: {allow: a.com}}", "p.yaml:1:28: a text where a list belongs ('network.runtime.allow'): 'a.com': write '[api.example.com:443]', or [] for none"),
        ("network: {runtime: {allow: }}", "p.yaml:1:28: nothing where a list belongs ('network.runtime.allow'): write '[api.example.com:443]', or [] for none"),
        ("network: {runtime: [a.com]}", "p.yaml:1:20: a list where a mapping belongs ('network.runtime'): write '{allow: [api.example.com:443]}'"),
        ("network: [a.com]", "p.yaml:1:10: a list where a mapping belongs ('network'): write 'runtime: {allow: [api.example.com:443]}' below it"),
        ("network:", "p.yaml:1:9: nothing where a mapping belongs ('network'): write 'runtime: {allow: [api.example.com:443]}' below it"),
        ("network: {runtime: {allow: [443]}}", "p.yaml:1:29: a number where a text belongs (an entry of 'network.runtime.allow'): '443': write a host such as api.example.com:443"),
        ("network: {runtime: {allow: [1.5]}}", "p.yaml:1:29: a number where a text belongs (an entry of 'network.runtime.allow'): '1.5': write a host such as api.example.com:443"),
        ("network: {runtime: {allow: [true]}}", "p.yaml:1:29: a truth value where a text belongs (an entry of 'network.runtime.allow'): 'true': write a host such as api.example.com:443"),
        ("network: {runtime: {allow: [[a.com]]}}", "p.yaml:1:29: a list where a text belongs (an entry of 'network.runtime.allow'): write a host; an IPv6 literal stands in quotes, \"[2600::1]:443\""),
        ("network: {runtime: {allow: ['@nmp']}}", "p.yaml:1:29: no preset has this name: '@nmp': write \"@npm\""),
        ("network: {runtime: {allow: [{hots: a.com, limits: {}}]}}", "p.yaml:1:30: an entry of 'network.runtime.allow' has no such key: 'hots': write 'host'"),
        ("presets: {npm: a.com}", "p.yaml:1:16: a text where a list belongs ('presets.npm'): 'a.com': write '[npm.example.com:443]'"),
        ("presets: {package-registries: [a.com]}", "p.yaml:1:11: 'presets' has no such key: 'package-registries': it is a group; write its presets: "),
        ("presets: {npm: ['@yarn']}", "p.yaml:1:17: a preset is named in a list of a policy, not as a host: '@yarn': "),
        ("profile: balance", "p.yaml:1:10: 'profile' knows no such value: 'balance': write 'balanced'"),
        ("profile: 5", "p.yaml:1:10: a number where a text belongs ('profile'): '5': write one of balanced, careful, closed, audit"),
        ("default: allow", "p.yaml:1:10: 'default' knows no such value: 'allow': write 'profile: audit' to let everything pass and record it"),
        ("private: exact", "p.yaml:1:10: 'private' knows no such value: 'exact': write "),
        ("own: exact-host", "p.yaml:1:6: 'own' knows no such value: 'exact-host': write 'exact-host-port'; a service of this machine is admitted by port only"),
        ("tls: Strict", "p.yaml:1:6: 'tls' knows no such value: 'Strict': write 'strict'"),
        ("tls: no", "p.yaml:1:6: 'tls' knows no such value: 'no': write one of any, strict"),
        ("locked: yes", "p.yaml:1:9: a text where a truth value belongs ('locked'): 'yes': write true or false"),
        ("protected_ports: 5432", "p.yaml:1:18: a number where a list belongs ('protected_ports'): '5432': write '[5432]'"),
        ("protected_ports: [0]", "p.yaml:1:19: an entry of 'protected_ports' is outside its bounds: '0': write a number from 1 to 65535"),
        ("protected_ports: ['80']", "p.yaml:1:19: a text where a number belongs (an entry of 'protected_ports'): '80': write a number from 1 to 65535"),
        ("limits: {connections: 0}", "p.yaml:1:23: 'limits.connections' is outside its bounds: '0': write a number from 1 to 65536"),
        ("limits: {conections: 1}", "p.yaml:1:10: 'limits' has no such key: 'conections': write 'connections'"),
        ("upstream: {resolve: maybe}", "p.yaml:1:21: 'upstream.resolve' knows no such value: 'maybe': write one of check, skip"),
        ("upstream: {proxy: http://x}", "p.yaml:1:12: 'upstream' has no such key: 'proxy': set HTTPS_PROXY in tidegate's own environment"),
        ("registries: open", "p.yaml:1:13: 'registries' knows no such value: 'open': write one of read, tunnel"),
        ("git: pull", "p.yaml:1:6: 'git' knows no such value: 'pull': write one of read, write"),
        ("git: {}", "p.yaml:1:6: 'git' names no repository: write 'read', 'write' or"),
        ("git: {read: [acme]}", "p.yaml:1:14: a repository here is its host and path: 'acme': write 'github.com/acme/app'"),
        ("git: {read: ['https://git.test/acme']}", "p.yaml:1:14: a repository here is its host and path: "),
        ("git: {read: [git.test/]}", "p.yaml:1:14: a repository here is its host and path: 'git.test/': write 'git.test/**' "),
        ("git: {write: ['.git.test/acme']}", "p.yaml:1:15: it begins with a dot: '.git.test/acme': write "),
        ("git: {read: ['git.test/a//b']}", "p.yaml:1:14: no path in normal form matches this"),
        ("inspect: never", "p.yaml:1:10: a text where a mapping belongs ('inspect'): 'never': write 'inspect: {never: [pinned.example.com]}'"),
        ("inspect: {never: [a..com]}", "p.yaml:1:19: "),
        ("setup: 5", "p.yaml:1:8: a number where a text belongs ('setup'): '5': write a command, 'npm ci', or its arguments"),
        ("files: loose", "p.yaml:1:8: 'files' knows no such value: 'loose': write one of strict, normal"),
        ("default: deny\ndefault: ask", "p.yaml:2:1: a key twice: 'default': keep one of them; the first is in line 1"),
        ("- a.com", "p.yaml:1:1: a list where a mapping belongs (the policy): write 'network: {runtime: {allow: [api.example.com:443]}}'"),
        ("a.com", "p.yaml:1:1: a text where a mapping belongs (the policy): 'a.com': write "),
        ("", "p.yaml: the policy is empty: write at least 'default: deny'"),
        ("# only a comment\n", "p.yaml: the policy is empty: write at least 'default: deny'"),
        ("---\n", "p.yaml:2:1: the policy is empty: write at least 'default: deny'"),
        ("{}", "p.yaml:1:1: the policy is empty: write at least 'default: deny'"),
        ("<<: {default: deny}", "p.yaml:1:1: a merge key: '<<': write the entries out"),
    ],
)  # fmt: skip
def test_wrong_keys_types_and_values_are_named(text: str, line: str) -> None:
    """POL-2, B14: unknown keys with the nearest, wrong types, a key twice; one line each, never accepted and ignored."""
    lines = refused(text)
    assert lines[0].startswith(line)


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ("{limits: {bytes_up: 1}}", "an entry of 'network.runtime.allow' names no host"),
        ("{}", "an entry of 'network.runtime.allow' names no host"),
        ("a.com: 443", "a ':' at the end of a word makes this a mapping: 'a.com: 443': write 'a.com:443' without the space"),
        ("'a.com':", "a ':' at the end of a word makes this a mapping: 'a.com: ': write 'a.com'"),
        ("{host: 5}", "a number where a text belongs ('host'): '5'"),
        ("{host: '@npm', limits: {bytes_up: 1}}", "a preset takes no limits: '@npm'"),
        ("{host: a.com, limits: {bytes_up: 0}}", "'bytes_up' is outside its bounds: '0'"),
        ("{host: a.com, limits: {bytes: 5}}", "a rule's 'limits' has no such key: 'bytes': write 'bytes_up'"),
        ("", "an empty entry in 'network.runtime.allow': remove it, or write a host"),
    ],
)  # fmt: skip
def test_entries_that_say_more_than_a_host(entry: str, line: str) -> None:
    """An entry that is no host is said to be none, never taken for a wider allow."""
    (got,) = refused(listed(entry))
    assert got.split(": ", 1)[1].startswith(line)


def test_a_preset_named_twice_is_named_once() -> None:
    """Repeating a preset in a list multiplies nothing; in another list it is another use."""
    layer = load("network: {runtime: {allow: ['@npm', '@npm', {host: '@npm'}], deny: ['@npm']}}")
    assert [(use.verdict, use.source) for use in layer.presets] == [
        (Verdict.ALLOW, "p.yaml:1:29"),
        (Verdict.DENY, "p.yaml:1:69"),
    ]


@pytest.mark.parametrize("where", ["network: {runtime: {allow: ['%s']}}", "network: {runtime: {allow: [{host: '%s'}]}}", "presets: {npm: ['%s']}"])  # fmt: skip
def test_a_huge_text_is_refused_before_it_is_parsed(where: str) -> None:
    """POL-2: megabytes where a host belongs cost no time in the grammar, in any place that takes a rule."""
    (line,) = refused(where % ("ü." * 200_000 + "example"))
    assert "longer than any name can be: 'ü.ü." in line


def test_limits_stand_on_no_deny_rule() -> None:
    """A denied host moves no bytes, so limits there are a mistake."""
    (line,) = refused("network: {runtime: {deny: [{host: a.com, limits: {bytes_up: 5}}]}}")
    assert "limits on a deny rule" in line


def test_all_errors_come_at_once() -> None:
    """POL-2: syntax that is a missing quote, rules, keys and values of one file in one refusal, in its order."""
    lines = refused(
        "profil: closed\nnetwork:\n  runtime:\n    allow:\n      - *.a.com\n      - b com\n      - 7\ntls: maybe\n"
    )
    assert [line.split(": ")[0] for line in lines] == [
        "p.yaml:1:1",
        "p.yaml:5:9",
        "p.yaml:6:9",
        "p.yaml:7:9",
        "p.yaml:8:6",
    ]


def test_fifty_errors_are_printed_and_the_rest_counted() -> None:
    """POL-0: at most 50 errors printed, then how many more."""
    lines = refused(listed(*["a b"] * 75))
    assert len(lines) == 51
    assert lines[-1] == "25 more errors are not shown"
    lines = refused(listed(*["a b"] * 3000))
    assert lines[-1] == "at least 950 more errors are not shown"


def test_one_error_loads_nothing() -> None:
    """POL-2: a policy with one error loads not at all."""
    with pytest.raises(PolicyErrors):
        load(WHOLE + "tsl: strict\n")


@pytest.mark.parametrize("key", [key for key in POLICY_KEYS if key not in {"network", "files"}])
def test_a_folders_policy_holds_hosts_only(key: str) -> None:
    """POL-9: any other key in the folder's tidegate.yaml is refused by name, whatever its value."""
    (line,) = refused(f"{key}: x\n", folder=True)
    assert line.startswith(f"p.yaml:1:1: a folder's policy may not hold this: '{key}': move it to")


@pytest.mark.parametrize("mode", ["strict", "normal"])
def test_files_is_read(mode: str) -> None:
    """HLD-15: a policy says which files a task may write."""
    assert load(f"files: {mode}").files == mode
    assert load("default: deny").files is None


def test_a_folders_policy_makes_files_stricter_only() -> None:
    """POL-9: it lies where a task can write, so `normal` is refused in it and `strict` is not."""
    assert load("files: strict", Layer.FOLDER, folder=True).files == "strict"
    (line,) = refused("files: normal\n", folder=True)
    assert "leave it out; a folder's policy cannot widen what a task may write" in line


def test_a_folders_hosts_and_denies_load() -> None:
    """POL-9: network lists and denies of a folder are read."""
    layer = load("network: {runtime: {allow: [a.com, '@npm'], deny: ['**.b.com']}}", Layer.FOLDER, folder=True)
    assert [rule_of(row).text for row in layer.rows] == ["a.com", "**.b.com"]
    assert {rule_of(row).layer for row in layer.rows} == {Layer.FOLDER}
    assert layer.replaces


def test_what_is_shown_of_a_bad_file_is_safe_for_a_terminal() -> None:
    """ASK-6, B07: escapes and direction characters of the file never reach the screen raw, and texts are cut."""
    lines = refused(b'network: {runtime: {allow: ["a\\e[2Jb", "c\\u202ed", "' + b"x" * 500 + b'", "\\u2066@npm"]}}')
    text = "\n".join(lines)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "a\\x1b[2Jb" in text
    assert max(map(len, lines)) < 400


def test_every_limit_has_bounds_and_every_key_is_known() -> None:
    """GAT-6, POL-0: a limit of the model without bounds, or a key of the file format without a reader, is a bug."""
    assert set(LIMIT_BOUNDS) == set(Limits._fields)
    for name, (least, most, _) in LIMIT_BOUNDS.items():
        assert least <= getattr(Limits(), name) <= most
    spelled = (
        "profile default network setup private own presets registries git tls inspect files limits protected_ports"
    )
    assert set(POLICY_KEYS) == {*spelled.split(), "upstream", "locked"}


def test_loading_costs_a_bounded_number_of_calls_per_rule() -> None:
    """POL-4: what a rule costs does not grow with their number, counted in Python calls and not in time."""

    def calls(count: int) -> int:
        text = listed(*(f"h{number}.example.com:443" for number in range(count))).encode()
        seen = 0

        def count_calls(_frame: object, event: str, _argument: object) -> None:
            nonlocal seen
            seen += event == "call"

        previous = sys.getprofile()
        sys.setprofile(count_calls)
        try:
            load_policy(text, "p.yaml", Layer.COMMAND_LINE)
        finally:
            sys.setprofile(previous)
        return seen

    small, large = calls(100), calls(1100)
    assert (large - small) / 1000 <= 20


KEYWORDS = [*POLICY_KEYS, "install", "runtime", "allow", "ask", "deny", "host", "limits", "methods", "a.com", "@npm", "*.b.com", "443", "true"]  # fmt: skip
trees = st.recursive(
    st.sampled_from(KEYWORDS) | st.text(max_size=8) | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=20,
)


def outcome(data: bytes, *, folder: bool) -> PolicyLayer | list[str]:
    """Return the layer, or the lines of the refusal; any other exception fails the test."""
    try:
        return load_policy(data, "p.yaml", Layer.FOLDER if folder else Layer.USER, folder=folder)
    except PolicyErrors as error:
        return str(error).split("\n")


@settings(max_examples=200, deadline=None)
@given(trees, st.booleans())
def test_any_tree_is_a_layer_or_policy_errors(tree: object, folder: bool) -> None:
    """POL-2: no shape of a document brings another exception."""
    import yaml

    text = yaml.safe_dump(tree, allow_unicode=True).encode("utf-8", "surrogatepass")
    result = outcome(text, folder=folder)
    assert isinstance(result, PolicyLayer) or all(
        line.startswith(("p.yaml:", "at least ")) or "more error" in line for line in result
    )


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=400), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))))
def test_any_bytes_are_a_layer_or_policy_errors(data: bytes) -> None:
    """POL-2: no bytes bring another exception, and what is printed is printable."""
    result = outcome(data, folder=False)
    assert isinstance(result, PolicyLayer) or (result and all(line.isprintable() for line in result))
