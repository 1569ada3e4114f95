"""The grammar of a rule: what it takes, what it refuses, and that advice can be followed."""

from __future__ import annotations

import string
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.host import canonical_host
from tidegate.model.rule import Shape
from tidegate.policy.rules import ParsedRule, RuleError, parse_rule, read_rule

LABEL_63 = "a" * 63
NAME_253 = ".".join(["a" * 63, "a" * 63, "a" * 63, "a" * 61])

TAKEN = [
    ("api.example.com", "api.example.com", Shape.EXACT, "api.example.com", None),
    ("API.Example.COM", "api.example.com", Shape.EXACT, "api.example.com", None),
    ("example.com.", "example.com", Shape.EXACT, "example.com", None),
    ("example.com:443", "example.com:443", Shape.EXACT, "example.com", 443),
    ("example.com.:443", "example.com:443", Shape.EXACT, "example.com", 443),
    ("example.com:1", "example.com:1", Shape.EXACT, "example.com", 1),
    ("example.com:65535", "example.com:65535", Shape.EXACT, "example.com", 65535),
    ("localhost:5432", "localhost:5432", Shape.EXACT, "localhost", 5432),
    ("a_b.example.com", "a_b.example.com", Shape.EXACT, "a_b.example.com", None),
    ("*.example.com", "*.example.com", Shape.ONE_LABEL, "example.com", None),
    ("*.example.com:8443", "*.example.com:8443", Shape.ONE_LABEL, "example.com", 8443),
    ("**.example.com", "**.example.com", Shape.DEEP, "example.com", None),
    ("**.Example.com.:22", "**.example.com:22", Shape.DEEP, "example.com", 22),
    ("*.com", "*.com", Shape.ONE_LABEL, "com", None),
    ("*", "*", Shape.ANY, "", None),
    ("**", "*", Shape.ANY, "", None),
    ("**:443", "*:443", Shape.ANY, "", 443),
    ("1.2.3.4", "1.2.3.4", Shape.LITERAL, "1.2.3.4", None),
    ("1.2.3.4:22", "1.2.3.4:22", Shape.LITERAL, "1.2.3.4", 22),
    ("255.255.255.255", "255.255.255.255", Shape.LITERAL, "255.255.255.255", None),
    ("[2600:BEEF:0::1]", "[2600:beef::1]", Shape.LITERAL, "2600:beef::1", None),
    ("[::1]:8080", "[::1]:8080", Shape.LITERAL, "::1", 8080),
    ("[::ffff:1.2.3.4]:1", "[::ffff:1.2.3.4]:1", Shape.LITERAL, "::ffff:1.2.3.4", 1),
    ("bücher.example", "xn--bcher-kva.example", Shape.EXACT, "xn--bcher-kva.example", None),
    ("**.BÜCHER.example:443", "**.xn--bcher-kva.example:443", Shape.DEEP, "xn--bcher-kva.example", 443),
    ("straße.example", "xn--strae-oqa.example", Shape.EXACT, "xn--strae-oqa.example", None),
    ("xn--bcher-kva.example", "xn--bcher-kva.example", Shape.EXACT, "xn--bcher-kva.example", None),
    (f"{LABEL_63}.example", f"{LABEL_63}.example", Shape.EXACT, f"{LABEL_63}.example", None),
    (NAME_253, NAME_253, Shape.EXACT, NAME_253, None),
    ("1.2.3.4a", "1.2.3.4a", Shape.EXACT, "1.2.3.4a", None),
]

REFUSED = [
    # CIDRs, schemes, paths, user names
    ("10.0.0.0/8", "CIDR", "each address"),
    ("[fd00::]/8", "CIDR", "each address"),
    ("10.0.0.0/255.0.0.0", "CIDR", "each address"),
    ("https://example.com/", "not a URL", "example.com:443"),
    ("http://example.com", "not a URL", "example.com:80"),
    ("https://example.com:8443/x?y", "not a URL", "example.com:8443"),
    ("ssh://git@example.com", "not a URL", "example.com"),
    ("example.com/a/b", "no path", "example.com; what is inside TLS"),
    ("user@example.com:22", "'@'", "example.com:22"),
    ("example.com?x", "'?'", "api.example.com"),
    ("example%2ecom", "'%'", "api.example.com"),
    ("@npm", "preset", "preset's own hosts"),
    ("!example.com", "'!'", "deny list"),
    # Dots and wildcards
    (".example.com", "begins with a dot", "**.example.com for what is below it, example.com for itself"),
    ("*example.com", "whole labels", "*.example.com or example.com"),
    ("**example.com", "whole labels", "*.example.com or example.com"),
    ("***.example.com", "'*.' or '**.'", "**.example.com"),
    ("a.*.com", "only in front", "each host on its own"),
    ("*.*.com", "only in front", "**.com"),
    ("a*.example.com", "only in front", "**.example.com"),
    ("example.*", "only in front", "api.example.com"),
    ("*.", "behind the wildcard", "*.example.com"),
    ("**.", "behind the wildcard", "*.example.com"),
    ("*..example.com", "empty label", "*.example.com"),
    ("*.1.2.3.4", "before an address", "ranges"),
    ("**.-a.com", "begins or ends with '-'", "**.a.com"),
    # Labels and names
    ("", "empty", "api.example.com"),
    (":443", "host is missing", "api.example.com"),
    (".", "begins with a dot", "api.example.com"),
    ("a..com", "empty label", "a.com"),
    ("a.com..", "empty label", "a.com"),
    (f"{LABEL_63}a.example", "label longer than 63", "can exist"),
    (f"{NAME_253}a", "longer than 253", "can exist"),
    (f"*.{NAME_253[2:]}a", "longer than 253", "can exist"),
    ("-a.com", "begins or ends with '-'", "a.com"),
    ("a-.com", "begins or ends with '-'", "a.com"),
    ("a.com-", "begins or ends with '-'", "a.com"),
    # Spaces and lists
    ("a.com b.com", "space inside", "one rule an item"),
    (" a.com", "space around", "one rule an item"),
    ("a.com\t", "space around", "one rule an item"),
    ("a.com\u00a0b.com", "space inside", "one rule an item"),
    ("a.com,b.com", "comma", "one rule an item"),
    ("a.com;b.com", "';'", "one rule an item"),
    ("a\x00.com", "invisible", "api.example.com"),
    ("a\u202e.com", "invisible", "api.example.com"),
    ("a\x7f.com", "invisible", "api.example.com"),
    # Ports
    ("a.com:", "port is missing", "1 to 65535"),
    ("a.com:0", "outside 1-65535", "1 to 65535"),
    ("a.com:65536", "outside 1-65535", "1 to 65535"),
    ("a.com:99999999999", "outside 1-65535", "1 to 65535"),
    ("a.com:0443", "leading zero", "1 to 65535"),
    ("a.com:+443", "not a plain number", "1 to 65535"),
    ("a.com:-1", "not a plain number", "1 to 65535"),
    ("a.com:https", "not a plain number", "1 to 65535"),
    ("a.com:\uff14\uff14\uff13", "not a plain number", "1 to 65535"),
    ("a.com:*", "any port", "a.com"),
    ("a.com:80:443", "more than one ':'", "host:port"),
    # IPv4 that a resolver reads otherwise
    ("0177.0.0.1", "not a canonical IPv4", "127.0.0.1"),
    ("0x7f.1", "not a canonical IPv4", "127.0.0.1"),
    ("0x7f000001:80", "not a canonical IPv4", "127.0.0.1:80"),
    ("127.1", "not a canonical IPv4", "127.0.0.1"),
    ("2130706433", "not a canonical IPv4", "127.0.0.1"),
    ("1.2.3.256", "no IPv4 address", "0 to 255"),
    ("1.2.3.4.5", "no IPv4 address", "0 to 255"),
    ("example.123", "no IPv4 address", "0 to 255"),
    # IPv6
    ("::1", "needs brackets", "[::1]"),
    ("2600:beef::1:443", "needs brackets", "[2600:beef::1]:443 or [2600:beef::1:443]"),
    ("fe80::1%lo", "'%'", "api.example.com"),
    ("[fe80::1%25lo]", "'%'", "api.example.com"),
    ("[::1", "exactly one pair", "[2001:db8::1]:443"),
    ("[[::1]]", "exactly one pair", "[2001:db8::1]:443"),
    ("::1]", "whole IPv6 address", "[2001:db8::1]:443"),
    ("[1.2.3.4]", "no IPv6 address", "1.2.3.4"),
    ("[::1]443", "comes ':' and a port", "[::1]:443"),
    ("[::1]:0", "outside 1-65535", "1 to 65535"),
    # Names that are something else to Unicode
    ("\uff45xample.com", "NFKC", "example.com"),
    ("\u212aelvin.com", "NFKC", "kelvin.com"),
    ("①②⑦.0.0.1", "NFKC", "127.0.0.1"),
    ("127\uff0e0\uff0e0\uff0e1", "NFKC", "127.0.0.1"),
    ("127。0。0。1", "IDNA 2008", "xn--"),
    ("☃.com", "IDNA 2008", "xn--"),
    ("a\u0301.com", "NFKC", "xn--1ca.com"),
]


@pytest.mark.parametrize(("text", "canonical", "shape", "key", "port"), TAKEN)
def test_taken(text: str, canonical: str, shape: Shape, key: str, port: int | None) -> None:
    """Each spelling of the grammar has one canonical meaning; IDNs become A-labels (POL-1, POL-3)."""
    assert parse_rule(text) == ParsedRule(canonical, shape, key, port)


@pytest.mark.parametrize(("text", "what", "advice"), REFUSED)
def test_refused(text: str, what: str, advice: str) -> None:
    """Every other spelling is refused, saying what is wrong and what to write instead (POL-2, B01, B11, B25)."""
    with pytest.raises(RuleError) as caught:
        parse_rule(text)
    assert what in caught.value.what
    assert advice in caught.value.advice


@pytest.mark.parametrize("text", [row[0] for row in TAKEN])
def test_canonical_text_is_a_fixed_point(text: str) -> None:
    """Reading a canonical text again gives the same rule: two rules that mean the same have the same text (POL-3)."""
    once = parse_rule(text)
    assert parse_rule(once.text) == once


@given(st.text(max_size=40))
def test_any_text_is_a_rule_or_a_rule_error(text: str) -> None:
    """The parser's invariant: a canonical rule, or RuleError with both halves filled in."""
    refusal = None
    try:
        canonical, _, _, port = read_rule(text)
    except RuleError as error:
        refusal = error
    if refusal is not None:
        assert refusal.what
        assert refusal.advice
        assert str(refusal) == f"{refusal.what}: {refusal.advice}"
        return
    assert read_rule(canonical)[0] == canonical
    assert canonical.isascii()
    assert port is None or 1 <= port <= 65535


@given(st.text(alphabet=string.ascii_letters + string.digits + ".-_*:[]", max_size=30))
def test_names_of_rules_are_hosts(text: str) -> None:
    """What a rule compares with is what the one normaliser makes of a request's host, so they can meet (POL-3, B02)."""
    try:
        _, shape, key, _ = read_rule(text)
    except RuleError:
        return
    if shape is Shape.LITERAL:
        bracketed = f"[{key}]" if ":" in key else key
        assert canonical_host(bracketed).text == key
    elif shape is not Shape.ANY:
        assert canonical_host(key).text == key


def test_plain_rules_import_no_unicode() -> None:
    """A rule in ASCII loads neither idna nor unicodedata, which cost the start of a run."""
    import subprocess

    code = (
        "import sys; from tidegate.policy.rules import parse_rule; parse_rule('*.example.com:443'); "
        "parse_rule('xn--bcher-kva.example'); print([m for m in ('idna', 'unicodedata', 're') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("prefix", ["", ".", "*.", "**", "a.*."])
@pytest.mark.parametrize("label", ["-{}", "{}-", "-{}-"])
def test_any_length_of_nonsense_is_a_rule_error(prefix: str, label: str) -> None:
    """POL-2: thousands of wrong labels are refused as one is; advice is not looked for label by label."""
    with pytest.raises(RuleError):
        parse_rule(prefix + ".".join(label.format(number) for number in range(3000)))
