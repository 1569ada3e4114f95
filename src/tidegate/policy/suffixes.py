"""Public suffixes: names below which anybody may register, such as `com`, `co.uk` and `github.io`.

The list is Mozilla's (https://publicsuffix.org/list/, both of its sections: what companies give out to their customers
counts as well), in its own text form; the algorithm is the one of that page. A name that no rule matches has its last
label as its suffix. Names are canonical, so the list's IDNs are read as A-labels.

Pure: the caller brings the text of the list.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Suffixes:
    """One list, ready to be asked."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules: set[str] = set()
        for line in lines:
            words = line.split()
            if words and not words[0].startswith("//"):
                self._rules.add(_canonical(words[0]))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def suffix_of(self, name: str) -> str:
        """Return the public suffix of a canonical name; the name itself where it is one."""
        labels = name.split(".")
        for at in range(len(labels)):
            rest = ".".join(labels[at:])
            if f"!{rest}" in self._rules:
                return ".".join(labels[at + 1 :])
            if rest in self._rules or ".".join(("*", *labels[at + 1 :])) in self._rules:
                return rest
        return labels[-1]

    def is_public(self, name: str) -> bool:
        """Whether anybody may register below this name."""
        return self.suffix_of(name) == name

    def domain_of(self, name: str) -> str:
        """Return the name that was registered, one label below its suffix; '' for a suffix itself."""
        suffix = self.suffix_of(name)
        if suffix == name:
            return ""
        return f"{name[: -len(suffix) - 1].rpartition('.')[2]}.{suffix}"

    def wildcard_domain(self, name: str) -> str:
        """Return the domain of a name below which all names are its owner's; '' where there is none.

        Where suffixes lie below the domain itself (`s3.amazonaws.com`), a wildcard for it would reach what is others'.
        """
        domain = self.domain_of(name)
        return domain if domain and not any(rule.endswith(f".{domain}") for rule in self._rules) else ""


def _canonical(rule: str) -> str:
    if rule.isascii():
        return rule.lower()
    import idna

    prefix = rule[: len(rule) - len(rule.lstrip("!*."))]
    try:
        return prefix + idna.encode(rule[len(prefix) :], uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return rule  # matches no canonical name
