"""Joining layers: what stays, what is replaced, what a lock keeps out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policy.written import say
from tidegate.model.address_class import Admission
from tidegate.model.destination import parse_authority
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin, only
from tidegate.model.verdict import Phase, Verdict
from tidegate.policy.alternatives import narrows, why_refused
from tidegate.policy.decide import decide
from tidegate.policy.layers import PolicyLayer, PresetUse, command_line, join, remembered_layer
from tidegate.policy.loader import load_policy
from tidegate.policy.rows import rule_of, rule_row
from tidegate.policy.rules import RuleError
from tidegate.policy.scope import scope_of

if TYPE_CHECKING:
    from tidegate.policy.policy import Policy
    from tidegate.policy.rows import Row

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
BOTH = frozenset(Phase)
RUNTIME = frozenset({Phase.RUNTIME})


def rows(layer: Layer, allow: str = "", ask: str = "", deny: str = "") -> tuple[Row, ...]:
    """Return runtime rules of a layer, each text split at spaces."""
    return tuple(
        rule_row(text, verdict, Phase.RUNTIME, "policy", f"{layer.name.lower()}: {text}", Origin.WRITTEN, layer)
        for verdict, texts in ((ALLOW, allow), (ASK, ask), (DENY, deny))
        for text in texts.split()
    )


def user(allow: str = "", ask: str = "", deny: str = "", **fields: Any) -> PolicyLayer:
    """Return the user's config."""
    return PolicyLayer(Layer.USER, "config.yaml", rows(Layer.USER, allow, ask, deny), **fields)


def file(
    allow: str = "", ask: str = "", deny: str = "", layer: Layer = Layer.COMMAND_LINE, **fields: Any
) -> PolicyLayer:
    """Return a --policy file (or the folder's): it replaces, and its one entry is in runtime."""
    fields.setdefault("phases", RUNTIME if allow or ask or deny else None)
    return PolicyLayer(layer, "p.yaml", rows(layer, allow, ask, deny), replaces=True, **fields)


def test_no_policy_at_all_is_balanced() -> None:
    """With nothing written the profile is balanced: registries pass, everything else is asked (POL-10)."""
    said = join()
    assert (said.profile, said.default, said.default_source) == ("balanced", ASK, "profile balanced")
    assert say(said, "files.pythonhosted.org").name == "package-registries"
    assert say(said, "files.pythonhosted.org").source == "preset pypi"
    assert say(said, "a.test").verdict is ASK


def test_a_policy_with_hosts_gets_exactly_its_own() -> None:
    """A policy that names hosts and no profile has no preset, and denies what it does not name (POL-8, POL-10)."""
    said = join(user("user.test", ask="asked.test"), file("a.test"))
    assert (said.profile, said.default, said.default_source) == (None, DENY, "p.yaml")
    assert say(said, "a.test").allowed
    for target in ("pypi.org", "user.test", "asked.test", "b.test"):
        assert say(said, target).reason is Reason.NO_RULE


def test_a_policy_with_phases_but_no_hosts() -> None:
    """Naming a phase without any entry closes everything (POL-7, POL-10)."""
    said = join(PolicyLayer(Layer.COMMAND_LINE, "p.yaml", replaces=True, phases=frozenset()))
    assert said.closed_phases == BOTH
    assert say(said, "pypi.org").reason is Reason.PHASE_CLOSED


def test_a_policy_with_a_profile_keeps_it() -> None:
    """A policy may name a profile, and gets its presets and default beside its own rules (POL-10)."""
    said = join(file("a.test", profile="balanced"))
    assert say(said, "a.test").allowed
    assert say(said, "pypi.org").allowed
    assert say(said, "b.test").verdict is ASK


def test_a_policy_of_settings_only_keeps_the_profile() -> None:
    """A file that names neither hosts nor phases nor a profile changes only what it names."""
    said = join(user("user.test"), file(own=Admission.NEVER))
    assert (said.profile, said.own) == ("balanced", Admission.NEVER)
    assert say(said, "pypi.org").allowed
    assert not say(said, "user.test").allowed


def test_the_users_config_adds_to_the_profile() -> None:
    """The user's config stands beside the profile in force; a --policy file replaces it (POL-8)."""
    said = join(user("user.test", phases=RUNTIME))
    assert say(said, "user.test").allowed
    assert say(said, "pypi.org").allowed
    assert said.closed_phases == frozenset()


def test_all_denies_stay() -> None:
    """A deny counts whatever replaces its layer, presets denied included (POL-5, POL-8, B16)."""
    administrator = PolicyLayer(Layer.ADMINISTRATOR, "/etc", rows(Layer.ADMINISTRATOR, deny="evil.test"))
    said = join(
        administrator,
        user("user.test", deny="bad.test", presets=(PresetUse("npm", DENY), PresetUse("pypi"))),
        file("**.test", layer=Layer.FOLDER),
        file("evil.test bad.test a.test registry.npmjs.org pypi.org"),
    )
    for target in ("evil.test", "bad.test", "registry.npmjs.org"):
        assert say(said, target).reason is Reason.DENY_RULE
    assert say(said, "a.test").allowed
    assert say(said, "pypi.org").rule_text == "pypi.org"


def test_policy_file_replaces_the_folders() -> None:
    """The file named on the command line replaces what the folder's allows."""
    said = join(file("folder.test", layer=Layer.FOLDER, deny="d.test"), file("a.test d.test"))
    assert say(said, "a.test").allowed
    assert not say(said, "folder.test").allowed
    assert say(said, "d.test").reason is Reason.DENY_RULE


def test_the_command_line_adds() -> None:
    """--allow, --ask-for and --deny add to what is in force, in both phases (POL-8, POL-10)."""
    said = join(file("a.test"), command_line(allow=["b.test:443"], ask=["c.test"], deny=["a.test:80"]))
    assert say(said, "b.test").allowed
    assert (say(said, "b.test").name, say(said, "b.test").source) == ("command-line", "--allow")
    assert say(said, "c.test").verdict is ASK
    assert say(said, "a.test").allowed
    assert say(said, "a.test:80").reason is Reason.DENY_RULE
    assert say(said, "pypi.org").verdict is DENY
    both = join(command_line(allow=["b.test"]))
    assert say(both, "b.test", Phase.INSTALL).allowed
    assert say(both, "pypi.org").allowed


def test_the_command_line_in_a_closed_phase() -> None:
    """A closed phase lets through what the command line adds, and nothing else; presets named there too (POL-7)."""
    said = join(
        file(presets=(PresetUse("npm"),), phases=RUNTIME, profile="balanced"),
        command_line(allow=["b.test", "@crates"]),
    )
    assert said.closed_phases == {Phase.INSTALL}
    assert say(said, "b.test", Phase.INSTALL).allowed
    assert say(said, "static.crates.io", Phase.INSTALL).allowed
    for target in ("pypi.org", "registry.npmjs.org", "a.test"):
        assert say(said, target, Phase.INSTALL).reason is Reason.PHASE_CLOSED
    assert say(said, "registry.npmjs.org").allowed


def test_the_last_profile_and_default_count() -> None:
    """`profile` and `default` are the last layer's that names one; a profile brings its default along (POL-8)."""
    assert join(user(profile="closed"), command_line(profile="careful")).default is ASK
    assert join(user(default=DENY, default_source="config.yaml:1:10")).default_source == "config.yaml:1:10"
    assert join(user(default=ASK), file("a.test", default=DENY)).default is DENY
    assert join(file("a.test", default=ASK)).default is ASK
    assert join(user(default=ASK), file("a.test")).default is DENY
    assert join(file("a.test", profile="balanced", default=DENY)).default is DENY
    assert join(file("a.test", default=ASK), command_line(profile="closed")).default is DENY
    assert join(user(default=DENY), command_line(profile="audit")).default is ALLOW


def test_among_equal_rules_the_nearest_layer_wins() -> None:
    """The joined policy keeps which layer a rule is from (POL-5)."""
    said = join(user("a.test:443"), command_line(allow=["a.test:443"]))
    assert say(said, "a.test").source == "--allow"
    assert say(join(command_line(allow=["pypi.org:443"])), "pypi.org").name == "command-line"


def test_settings() -> None:
    """Every other setting is the last layer's that names it; protected ports add up."""
    said = join(
        user(tls="strict", private=Admission.NEVER, protected_ports=(1, 2), limits=(("connections", 5),), setup=("a",)),
        file(
            private=Admission.EXACT_HOST, upstream_resolve="skip", protected_ports=(3,), limits=(("idle_seconds", 9.0),)
        ),
    )
    assert (said.tls, said.private, said.upstream_resolve) == ("strict", Admission.EXACT_HOST, "skip")
    assert (said.own, said.setup, said.protected_ports) == (Admission.EXACT_HOST_PORT, ("a",), {1, 2, 3})
    assert (said.limits.connections, said.limits.idle_seconds, said.limits.header_bytes) == (5, 9.0, 65536)


def test_the_nearest_set_up_command_wins_and_that_is_said() -> None:
    """POL-7, POL-8: two layers may each have one; the nearest runs, and a note says which."""
    both = join(user(setup=("a",)), file("x.test", setup=("b",)))
    assert both.setup == ("b",)
    assert both.notes == ("the set-up command is that of p.yaml; that of config.yaml does not run",)
    for layers, setup in (((user(setup=("a",)), file("x.test")), ("a",)), ((user(), file(setup=("b",))), ("b",))):
        said = join(*layers)
        assert (said.setup, said.notes) == (setup, ())
    locked = join(user(locked=True), file("x.test", setup=("b",)))
    assert locked.setup == ()


def test_a_lock_takes_only_denies_from_above() -> None:
    """Above a locked policy only denies and harness hosts count, and what was left out is said (POL-8)."""
    harness = PolicyLayer(Layer.HARNESS, "claude", rows(Layer.HARNESS, "api.test"))
    remembered = PolicyLayer(Layer.REMEMBERED, "remembered", rows(Layer.REMEMBERED, "r.test"))
    said = join(
        file("a.test b.test", locked=True, private=Admission.NEVER),
        command_line(allow=["c.test", "@npm"], deny=["b.test"], profile="audit"),
        remembered,
        harness,
    )
    assert said.locked
    assert (said.profile, said.default, said.private) == (None, DENY, Admission.NEVER)
    assert say(said, "a.test").allowed
    assert say(said, "api.test").allowed
    assert say(said, "b.test").reason is Reason.DENY_RULE
    for target in ("c.test", "r.test", "registry.npmjs.org"):
        assert say(said, target).reason is Reason.NO_RULE
        assert say(said, target).fix == ""
    assert said.notes == (
        "p.yaml is locked: of command line only what it denies counts",
        "p.yaml is locked: of remembered only what it denies counts",
    )


def test_a_locked_layer_below_cannot_be_replaced() -> None:
    """A file above a locked one replaces nothing; a deny alone needs no note."""
    said = join(file("a.test", layer=Layer.FOLDER, locked=True), file("b.test", protected_ports=(9,)))
    assert say(said, "a.test").allowed
    assert not say(said, "b.test").allowed
    assert said.protected_ports == {9}
    assert join(file("a.test", locked=True), command_line(deny=["b.test"])).notes == ()


@pytest.mark.parametrize(
    ("user", "option", "locked", "expected"),
    [
        (None, None, False, ""),
        ("strict", None, False, "strict"),
        ("strict", "normal", False, "normal"),
        ("strict", "normal", True, "strict"),
        ("normal", "strict", True, "strict"),
        (None, "normal", True, ""),
    ],
)
def test_files_are_the_last_layers_word(user: str | None, option: str | None, locked: bool, expected: str) -> None:
    """Under a lock only `strict` comes from above; where nobody says a word the user decides (HLD-15, POL-8)."""
    assert join(file("a.test", locked=locked, files=user), command_line(files=option)).files == expected


def test_presets_named_in_lists() -> None:
    """A list may name a preset or the group, in its own phase and with its own verdict (POL-11)."""
    said = join(
        file(
            "a.test",
            presets=(
                PresetUse("pypi", ALLOW, Phase.RUNTIME),
                PresetUse("package-registries", ASK, Phase.INSTALL),
                PresetUse("npm", DENY, Phase.RUNTIME),
            ),
            phases=BOTH,
        )
    )
    assert say(said, "pypi.org").allowed
    assert say(said, "pypi.org", Phase.INSTALL).verdict is ASK
    assert say(said, "crates.io").reason is Reason.NO_RULE
    assert say(said, "registry.npmjs.org").reason is Reason.DENY_RULE
    assert say(said, "pypi.org:80").reason is Reason.PORT_NOT_ALLOWED


def test_a_mirror_stands_in_for_a_preset() -> None:
    """A company mirror replaces a preset's hosts, as written rules, for every layer that names the preset (POL-11)."""
    said = join(user(mirrors=(("pypi", (("pypi.corp.test:8443", "config.yaml:4:7"),)),)))
    decision = say(said, "pypi.corp.test:8443")
    assert (decision.name, decision.source) == ("package-registries", "config.yaml:4:7")
    assert decision.rule is not None
    assert decision.rule.origin is Origin.WRITTEN
    assert not say(said, "pypi.org").allowed
    assert say(said, "crates.io").allowed


def test_what_the_command_line_refuses() -> None:
    """A bad text says what to write instead; so do unknown presets and profiles (POL-2)."""
    for options, what, advice in (
        ({"allow": ["10.0.0.0/8"]}, "ranges", "each address"),
        ({"deny": ["a.test", ".b.test"]}, "it begins with a dot", "**.b.test"),
        ({"ask": ["@nothing"]}, "there is no preset 'nothing'", "package-registries"),
        ({"profile": "open"}, "there is no such profile", "balanced, careful, closed, audit"),
    ):
        with pytest.raises(RuleError) as caught:
            command_line(**options)  # type: ignore[arg-type]
        assert caught.value.what.startswith(what)
        assert advice in caught.value.advice


def test_unknown_names_in_layers() -> None:
    """A layer that was not checked when it was read is refused here."""
    for layer in (user(profile="nothing"), user(presets=(PresetUse("nothing"),))):
        with pytest.raises(RuleError):
            join(layer)


TEXTS = st.sampled_from(["a.test", "*.test", "**.test", "*", "a.test:80"])
SOME = st.lists(TEXTS, max_size=3).map(" ".join)


@given(SOME, SOME, SOME, st.lists(TEXTS, max_size=2), st.sampled_from([None, "balanced", "closed", "audit"]))
def test_a_deny_is_never_lifted(allow: str, ask: str, deny: str, more: list[str], profile: str | None) -> None:
    """No layer, option or profile lets through what any layer denies (POL-5, POL-8)."""
    below = user(deny=deny)
    said = join(below, file(allow, ask), command_line(allow=more, profile=profile))
    alone = join(below)
    for target in ("a.test:80", "b.test:443", "x.y.test:80", "other:80"):
        if say(alone, target).reason is Reason.DENY_RULE:
            assert say(said, target).reason is Reason.DENY_RULE


def test_a_remembered_host_is_exactly_one_host_and_port() -> None:
    """ASK-2, POL-8: the layer of remembered answers names hosts, ports and phases; IPv6 literals get brackets."""
    layer = remembered_layer([("a.test", 443, Phase.RUNTIME, "rule 1"), ("2600:beef::1", 22, Phase.INSTALL, "rule 2")])
    found = [(rule.text, rule.phase, rule.name, rule.source, rule.origin) for rule in map(rule_of, layer.rows)]
    assert found == [
        ("a.test:443", Phase.RUNTIME, "remembered", "rule 1", Origin.REMEMBERED),
        ("[2600:beef::1]:22", Phase.INSTALL, "remembered", "rule 2", Origin.REMEMBERED),
    ]


@pytest.mark.parametrize("text", ["*.a.test", "-a.test", "a b"])
def test_what_is_remembered_is_never_more_than_a_host(text: str) -> None:
    """ASK-7: no wildcard gets into that layer, and no name that a rule cannot have."""
    with pytest.raises(RuleError):
        remembered_layer([(text, 443, Phase.RUNTIME, "rule 1")])


def test_what_was_remembered_gives_way() -> None:
    """POL-5, POL-7, POL-8: to a deny, an exact ask, a closed phase and a lock; not to a default or a wider ask."""
    remembered = remembered_layer([("a.test", 443, phase, "rule 1") for phase in Phase])

    def verdict(*layers: PolicyLayer, phase: Phase = Phase.RUNTIME) -> Verdict:
        return decide(join(*layers, remembered), parse_authority("a.test:443"), phase).verdict

    assert verdict() is ALLOW
    assert verdict(user(ask="**.test")) is ALLOW
    assert verdict(user(ask="a.test")) is ALLOW
    assert verdict(user(ask="a.test:443")) is ASK
    assert verdict(user(deny="**.test")) is DENY
    assert verdict(file("b.test")) is ALLOW
    assert verdict(file("b.test"), phase=Phase.INSTALL) is DENY
    assert verdict(user(locked=True)) is ASK


def why(said: Policy, target: str, method: str = "GET", path: bytes = b"/x") -> Reason | None:
    """Return why a request does not pass."""
    return why_refused(say(said, target), method, path)


def test_the_command_line_says_what_registries_are() -> None:
    """INS-7: `--registries` is the nearest word, the administrator's `read` stays, and a lock leaves it out."""
    tunnel = command_line(registries="tunnel")
    for said, holds in (
        (join(), "read"),
        (join(tunnel), "tunnel"),
        (join(user(registries="tunnel")), "tunnel"),
        (join(user(registries="tunnel"), command_line(registries="read")), "read"),
        (join(PolicyLayer(Layer.ADMINISTRATOR, "policy.yaml", registries="read"), tunnel), "read"),
        (join(user(locked=True), tunnel), "read"),
    ):
        assert said.registries == holds
        assert narrows(say(said, "registry.npmjs.org")) is (holds == "read")


def test_registries_are_read_only_where_that_is_said() -> None:
    """INS-7: of presets of the profile, of lists and of mirrors; `tunnel` and a rule of one's own lift it, `*` not."""
    read = user(registries="read")
    for said in (
        join(read),
        join(read, file(presets=(PresetUse("npm", ALLOW, Phase.RUNTIME),), phases=RUNTIME)),
        join(read, command_line(allow=["@npm", "*", "*.npmjs.org", "registry.npmjs.org:80"])),
        join(read, user(mirrors=(("npm", (("registry.npmjs.org:443", "c:1:1"),)),))),
    ):
        assert why(said, "registry.npmjs.org") is None
        assert why(said, "registry.npmjs.org", "PUT") is Reason.REGISTRY_READ_ONLY
        assert why(said, "registry.npmjs.org", "POST", b"/-/npm/v1/security/advisories/bulk") is None
        assert why(said, "registry.npmjs.org", "POST", b"/-/v1/login") is Reason.REGISTRY_READ_ONLY
    for said in (
        join(user(registries="tunnel")),
        join(read, command_line(allow=["registry.npmjs.org:443"])),
        join(read, user("registry.npmjs.org:443")),
        join(read, user(never_inspected=rows(Layer.USER, "registry.npmjs.org"))),
    ):
        assert not narrows(say(said, "registry.npmjs.org"))
    assert say(join(read, command_line(deny=["@npm"])), "registry.npmjs.org").reason is Reason.DENY_RULE


def test_a_mirror_is_read_only_below_its_path() -> None:
    """INS-7, POL-11: the mirror's own path stands before that of the registry; what only ends alike is no read."""
    mirrors = (("npm", (("npm.corp.test:8443", "c:1:1"), ("*.npm.test", "c:1:2"))),)
    said = join(user(registries="read", mirrors=mirrors))
    for host in ("npm.corp.test:8443", "a.npm.test"):
        assert why(said, host, "POST", b"/repository/npm/-/npm/v1/security/audits") is None
        assert why(said, host, "POST", b"/repository/npm/npm/v1/security/audits") is Reason.REGISTRY_READ_ONLY
        # Gitea keeps packages, and writes a file of that name.
        forge = b"/api/v1/repos/acme/app/contents/-/npm/v1/security/audits"
        assert why(said, host, "POST", forge) is Reason.REGISTRY_READ_ONLY
        assert why(said, host, "GET", forge) is None
        assert why(said, host, "PUT", b"/repository/npm/x") is Reason.REGISTRY_READ_ONLY


def test_what_the_administrator_narrows_stays_narrow() -> None:
    """POL-8, INS-6: whatever rule governs, nearer or more specific; its own rules add up, and denies stay denies."""
    held = tuple(
        (*row[:-1], (None, None, only(methods, paths)))
        for row, methods, paths in (
            (rows(Layer.ADMINISTRATOR, "**.git.test")[0], ("GET",), ()),
            (rows(Layer.ADMINISTRATOR, "api.git.test:443")[0], (), ("/a/**",)),
        )
    )
    administrator = PolicyLayer(Layer.ADMINISTRATOR, "/etc", held)
    for more in ((), (user("api.git.test:443"),), (file("*"), command_line(allow=["api.git.test:443"]))):
        said = join(administrator, *more)
        assert why(said, "api.git.test", "GET", b"/a/x") is None
        assert why(said, "api.git.test", "POST", b"/a/x") is Reason.METHOD_NOT_ALLOWED
        assert why(said, "api.git.test", "GET", b"/b") is Reason.METHOD_NOT_ALLOWED
    said = join(administrator, file("*"))
    assert why(said, "b.git.test", "GET", b"/b") is None
    assert why(said, "b.git.test", "POST", b"/b") is Reason.METHOD_NOT_ALLOWED
    assert why(said, "git.test", "POST", b"/b") is None
    assert scope_of(said).suffixes == ("git.test",)
    assert say(join(administrator, command_line(deny=["*"])), "b.git.test").reason is Reason.DENY_RULE
    assert say(join(administrator, command_line(ask=["b.git.test"])), "b.git.test").bounds == only(("GET",))


def test_read_only_registries_of_the_administrator_stay() -> None:
    """INS-7, POL-8: neither `tunnel` nor a rule of one's own lifts them, and the first is said."""
    administrator = PolicyLayer(Layer.ADMINISTRATOR, "/etc", registries="read")
    said = join(administrator, user(registries="tunnel"), command_line(allow=["pypi.org:443", "a.test"]))
    assert said.notes == ("the administrator says 'registries: read'; 'registries: tunnel' counts for nothing",)
    assert why(said, "pypi.org", "POST") is Reason.REGISTRY_READ_ONLY
    assert why(said, "registry.npmjs.org", "PUT") is Reason.REGISTRY_READ_ONLY
    assert why(said, "pypi.org") is None
    assert not narrows(say(said, "a.test"))
    lifted = join(PolicyLayer(Layer.ADMINISTRATOR, "/etc", registries="tunnel"), user(registries="read"))
    assert why(lifted, "pypi.org", "POST") is Reason.REGISTRY_READ_ONLY


def test_a_mirror_takes_nothing_back_from_the_administrator() -> None:
    """INS-7, POL-8, POL-11: the registry stays read-only beside whoever's mirror of it, and so does each mirror."""
    corp, other = (("npm", ((f"{name}.test:443", f"{name}:1:1"),)) for name in ("corp", "other"))
    administrator = PolicyLayer(Layer.ADMINISTRATOR, "/etc", registries="read", mirrors=(corp,))
    allow = command_line(allow=["registry.npmjs.org:443", "corp.test:443", "other.test:443"])
    for more in ((), (user(mirrors=(other,)),), (user(mirrors=(other,)), file(mirrors=(corp,)))):
        said = join(administrator, *more, allow)
        for host in ("registry.npmjs.org", "corp.test"):
            assert why(said, host, "PUT") is Reason.REGISTRY_READ_ONLY
            assert why(said, host) is None
        assert why(said, "other.test", "PUT") is (Reason.REGISTRY_READ_ONLY if more else None)
    assert why(join(user(registries="read", mirrors=(other,)), allow), "registry.npmjs.org", "PUT") is None


def test_git_of_a_whole_policy_is_a_bound() -> None:
    """INS-7: it lets no host through, holds what is let through, and the administrator's stays."""

    def layer(text: str, layer: Layer = Layer.USER) -> PolicyLayer:
        return load_policy(text.encode(), "p.yaml", layer)

    push = b"/acme/app/git-receive-pack"
    said = join(layer("git: read"), command_line(allow=["github.com:443"]))
    assert why(said, "github.com", "POST", push) is Reason.GIT_READ_ONLY
    assert why(said, "github.com", "POST", b"/acme/app/git-upload-pack") is None
    assert say(said, "gitlab.com").verdict is ASK
    assert say(said, "gitlab.com").bounds
    for ssh in ("ssh.github.com:443", "altssh.gitlab.com:443", "ssh.dev.azure.com:22"):  # a tunnel there would push
        assert say(join(layer("git: read"), command_line(allow=[ssh])), ssh).bounds
    assert not narrows(say(said, "a.test"))
    named = layer("git: {read: ['git.test/acme/**'], write: [git.test/acme/app]}")
    said = join(named, command_line(allow=["git.test", "github.com"]))
    assert why(said, "git.test", "POST", push) is None
    assert why(said, "git.test", "POST", b"/acme/x/git-receive-pack") is Reason.GIT_READ_ONLY
    assert why(said, "git.test", "GET", b"/evil/x") is Reason.METHOD_NOT_ALLOWED
    assert not narrows(say(said, "github.com"))
    allow = command_line(allow=["github.com", "git.test"])
    assert not narrows(say(join(layer("git: read"), layer("git: write", Layer.SERVER), allow), "github.com"))
    both = join(layer("git: read", Layer.ADMINISTRATOR), named, allow)
    assert why(both, "github.com", "POST", push) is Reason.GIT_READ_ONLY
    assert why(both, "git.test", "POST", b"/acme/x/git-receive-pack") is Reason.GIT_READ_ONLY
