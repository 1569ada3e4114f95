"""The grammar of one host rule (POL-1, POL-2): text in, its canonical parts out, or a RuleError with advice.

    rule = host [":" port]
    host = name | "*." name | "**." name | IPv4 | "[" IPv6 "]" | "*" | "**"

Rules of the file:

* There is one meaning for each spelling and no guess: what is not in the grammar is refused, with advice.
* The canonical text is ASCII lower case without the final dot, an IDN in A-labels (IDNA 2008, RFC 5891), IPv6 as
  RFC 5952 has it, and `*` for both spellings of "everything". Rules that mean the same have the same canonical text.
* The name of a rule is stricter than that of a request (model.host): no label begins or ends with '-' (RFC 1123
  section 2.1), nothing is accepted that Unicode's NFKC would turn into something else.

What it does not do: `@preset` names and `{host: …}` items belong to the file (document, layers); whether a rule makes
sense beside others is for explain.
"""

from __future__ import annotations

from _socket import AF_INET6, inet_aton, inet_ntoa, inet_ntop, inet_pton

from tidegate.model.destination import PortError, parse_port
from tidegate.model.host import MAX_LABEL, MAX_NAME, HostError, canonical_host, looks_numeric
from tidegate.model.rule import Shape
from tidegate.model.value import Value

_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
_RANGE_CHARS = frozenset("0123456789abcdefABCDEF.:[]")
_ANY = "*"
_ONE = "*."
_DEEP = "**."
_EXAMPLES = "a host such as api.example.com, *.example.com or **.example.com"


class RuleError(ValueError):
    """The text is no rule. `what` is one clause that says what is wrong, `advice` what to write instead."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.what}: {self.advice}"


class ParsedRule(Value):
    """The parts of a rule's text; the fields mean what they mean in model.rule.Rule."""

    text: str
    shape: Shape
    key: str
    port: int | None


def parse_rule(text: str) -> ParsedRule:
    """Return the parts of the rule that `text` writes.

    Raises:
        RuleError: when it is no rule.
    """
    canonical, shape, key, port = read_rule(text)
    return ParsedRule(canonical, shape, key, port)


def read_rule(text: str) -> tuple[str, Shape, str, int | None]:
    """Return (canonical text, shape, key, port): parse_rule for the many, without an object for each.

    Raises:
        RuleError: when it is no rule.
    """
    host, colon, port_text = text.partition(":")
    if not colon:
        port = None
        tail = ""
    elif port_text.isdigit() and len(port_text) < 6 and port_text.isascii() and port_text[0] != "0":
        port = int(port_text)
        if port > 65535:
            raise RuleError("the port is outside 1-65535", "a port from 1 to 65535, or none for any port")
        tail = f":{port}"
    else:
        return _unusual(text)
    if not host.isascii():
        return _unusual(text)  # before lower(), which turns the Kelvin sign into a k
    name = host.lower()
    if name[:1] == "*":
        if name in {"*", "**"}:
            return _ANY + tail, Shape.ANY, "", port
        if name[:2] == _ONE:
            shape, prefix, key = Shape.ONE_LABEL, _ONE, name[2:]
        elif name[:3] == _DEEP:
            shape, prefix, key = Shape.DEEP, _DEEP, name[3:]
        else:
            return _unusual(text)
    else:
        shape, prefix, key = Shape.EXACT, "", name
    if not _NAME_CHARS.issuperset(key):
        return _unusual(text)
    if key[-1:] == ".":
        key = key[:-1]
    if not key or len(prefix) + len(key) > MAX_NAME:
        return _unusual(text)
    labels = key.split(".")
    for label in labels:
        if not label or len(label) > MAX_LABEL or label[0] == "-" or label[-1] == "-":
            return _unusual(text)
    if looks_numeric(labels[-1]):
        if prefix:
            raise RuleError("a wildcard stands before an address", "the address alone; ranges cannot be named")
        return _ipv4(key, port, tail)
    return f"{prefix}{key}{tail}", shape, key, port


def _ipv4(name: str, port: int | None, tail: str) -> tuple[str, Shape, str, int | None]:
    try:
        canonical_host(name)
    except HostError:
        try:
            meant = inet_ntoa(inet_aton(name))
        except OSError:
            raise RuleError("it looks like a number but is no IPv4 address", "four numbers from 0 to 255") from None
        raise RuleError("this is not a canonical IPv4 address", f"{meant}{tail} if that is meant") from None
    return name + tail, Shape.LITERAL, name, port


def _unusual(text: str) -> tuple[str, Shape, str, int | None]:
    """Read what is not plain ASCII `host[:digits]`: IPv6 and IDN rules. All else is refused here, best reason first."""
    _refuse_strangers(text)
    if text[:1] == "[":
        return _ipv6(text)
    if "[" in text or "]" in text:
        raise RuleError("brackets stand only around a whole IPv6 address", "such as [2001:db8::1]:443")
    if text.count(":") > 1:
        raise _unbracketed(text)
    host, colon, port_text = text.partition(":")
    if colon:
        _port(port_text, host)
    if not host:
        raise RuleError("the host is missing", _EXAMPLES)
    if not host.isascii():
        return read_rule(_a_labels(host) + colon + port_text)
    raise _bad_name(host.lower(), colon + port_text)


def _refuse_strangers(text: str) -> None:
    """Refuse texts that are something else than a rule: lists, URLs, ranges, user names, control characters."""
    if not text:
        raise RuleError("the rule is empty", _EXAMPLES)
    if any(char.isspace() for char in text):
        parts = text.split()
        advice = "one rule an item, without spaces"
        raise RuleError("it has a space inside" if len(parts) > 1 else "it has a space around it", advice)
    if "," in text or ";" in text:
        raise RuleError("it has a comma inside" if "," in text else "it has a ';' inside", "one rule an item")
    if not text.isprintable():
        raise RuleError("it has an invisible character inside", _EXAMPLES)
    if text[0] == "@":
        raise RuleError("a preset is named in a list of a policy, not as a host", "a host, or the preset's own hosts")
    if text[0] == "!":
        raise RuleError("a rule has no '!'", "the host in a deny list")
    scheme, found, rest = text.partition("://")
    if found:
        host = rest.split("/", 1)[0].rsplit("@", 1)[-1].split("?", 1)[0]
        if ":" not in host and scheme.lower() in {"http", "https"}:
            host += ":443" if scheme.lower() == "https" else ":80"
        raise RuleError("a rule names a host, not a URL", _suggest(host))
    if "/" in text:
        host, _, rest = text.partition("/")
        if rest.replace(".", "").isdigit() and _RANGE_CHARS.issuperset(host):
            raise RuleError("ranges of addresses (CIDR) are not rules", "each address on its own, or the host's name")
        raise RuleError("a rule has no path", f"{_suggest(host)}; what is inside TLS is not told apart")
    if "@" in text:
        raise RuleError("a rule has no user name ('@')", _suggest(text.rsplit("@", 1)[1]))
    for odd in "?#%\\\"'`$&|<>(){}=^~":
        if odd in text:
            raise RuleError(f"a host has no {odd!r}", _EXAMPLES)


def _suggest(text: str) -> str:
    """Return `text` as advice when it is a rule itself, else an example."""
    try:
        return read_rule(text)[0]
    except RuleError:
        return _EXAMPLES


def _port(text: str, host: str) -> None:
    if text == "*":
        raise RuleError("any port is written without one", _suggest(host))
    try:
        parse_port(text)
    except PortError as error:
        raise RuleError(error.what, "a port from 1 to 65535 in plain digits, or none for any port") from None


def _ipv6(text: str) -> tuple[str, Shape, str, int | None]:
    inside, closed, rest = text[1:].partition("]")
    if not closed or "[" in inside or "]" in rest:
        raise RuleError("an IPv6 address stands in exactly one pair of brackets", "such as [2001:db8::1]:443")
    port = None
    if rest:
        if rest[0] != ":":
            raise RuleError("after an IPv6 address comes ':' and a port", f"[{inside}]:443 or [{inside}]")
        _port(rest[1:], f"[{inside}]")
        port = int(rest[1:])
    key = _as_ipv6(inside)
    if not key:
        advice = inside if "." in inside and ":" not in inside else "such as [2001:db8::1]"
        raise RuleError("what stands in the brackets is no IPv6 address", advice)
    return f"[{key}]{rest}", Shape.LITERAL, key, port


def _unbracketed(text: str) -> RuleError:
    head, _, last = text.rpartition(":")
    meant = [f"[{address}]" for address in (_as_ipv6(text),) if address]
    if last.isdigit() and _as_ipv6(head):
        meant.insert(0, f"[{_as_ipv6(head)}]:{last}")
    if meant:
        return RuleError("an IPv6 address needs brackets", " or ".join(meant))
    return RuleError("it has more than one ':'", "host:port, or [address]:port for IPv6")


def _as_ipv6(text: str) -> str:
    """Return `text` as a canonical IPv6 address, '' when it is none."""
    try:
        return inet_ntop(AF_INET6, inet_pton(AF_INET6, text))
    except (OSError, ValueError):
        return ""


def _a_labels(host: str) -> str:
    """Return an IDN host part in A-labels; a wildcard in front stays."""
    import unicodedata

    import idna

    prefix = _DEEP if host.startswith(_DEEP) else _ONE if host.startswith(_ONE) else ""
    name = host[len(prefix) :]
    folded = unicodedata.normalize("NFKC", name)
    if folded != name:
        raise RuleError("the name changes under Unicode's NFKC", _suggest(prefix + folded.lower()))
    labels = []
    for label in name.lower().split("."):
        try:
            labels.append(label if label.isascii() else idna.alabel(label).decode("ascii"))
        except (idna.IDNAError, UnicodeError):
            raise RuleError("the name is no valid IDN (IDNA 2008)", "the name in its A-label form (xn--…)") from None
    return prefix + ".".join(labels)


def _bad_name(host: str, tail: str) -> RuleError:
    """Say what is wrong with an ASCII host part that read_rule did not take."""
    bare = host.lstrip("*").lstrip(".")
    if host[0] == ".":
        deep = _suggest(f"**.{bare}{tail}")
        return RuleError("it begins with a dot", f"{deep} for what is below it, {_suggest(bare + tail)} for itself")
    if "*" in host:
        return RuleError(*_bad_wildcard(host, bare, tail))
    labels = bare.removesuffix(".").split(".")
    if "" in labels:
        return RuleError("it has an empty label", _suggest(".".join(label for label in labels if label) + tail))
    for label in labels:
        if len(label) > MAX_LABEL:
            return RuleError(f"it has a label longer than {MAX_LABEL} bytes", "a name that can exist")
        if label[0] == "-" or label[-1] == "-":
            # All labels at once: one at a time would recurse as deep as there are labels.
            mended = ".".join(part.strip("-") for part in labels)
            return RuleError("a label begins or ends with '-'", _suggest(mended + tail))
    if not _NAME_CHARS.issuperset(bare):
        odd = next(char for char in bare if char not in _NAME_CHARS)
        return RuleError(f"a host has no {odd!a}", _EXAMPLES)
    return RuleError(f"the name is longer than {MAX_NAME} bytes", "a name that can exist")


def _bad_wildcard(host: str, bare: str, tail: str) -> tuple[str, str]:
    prefix = _DEEP if host.startswith(_DEEP) else _ONE if host.startswith(_ONE) else ""
    rest = host[len(prefix) :]
    if prefix and "*" not in rest:
        # The wildcard is right, the name behind it is not: say what is wrong with the name.
        if not rest or rest == ".":
            return "nothing stands behind the wildcard", "* for every name, or *.example.com"
        if rest[0] == ".":
            return "it has an empty label", _suggest(prefix + rest.lstrip(".") + tail)
        inner = _bad_name(rest, tail)
        advice = inner.advice if inner.advice == _EXAMPLES or " " in inner.advice else prefix + inner.advice
        return inner.what, advice
    if "*" not in bare and host.lstrip("*")[:1] != ".":
        return "a wildcard stands for whole labels", f"{_suggest(f'*.{bare}{tail}')} or {_suggest(bare + tail)}"
    if "*" not in bare:
        return "a wildcard is '*.' or '**.'", _suggest(f"**.{bare}{tail}")
    behind = host.rpartition("*")[2].lstrip(".")
    what = "a wildcard stands only in front, once"
    if not behind:
        return what, _EXAMPLES
    if "." not in behind and host.strip("*.") != behind:
        return what, "each host on its own"  # `**.com` is not what `a.*.com` was meant to be
    return what, _suggest(f"**.{behind}{tail}")
