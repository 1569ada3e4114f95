"""How a host looks to people: always its A-labels, and its Unicode form only where that cannot deceive (ASK-6).

Rules of the file:

* `host` is canonical already, so it has no control, space or direction character. What is decoded from it has none
  either: IDNA 2008 (RFC 5892) allows none, and what fails IDNA is not shown.
* The Unicode form is shown only where each label is in one script (or in those that Japanese, Korean and Chinese
  mix, UTS 39 section 5.1) and is not made of letters that all look like Latin ones (UTS 39 section 4).
* A warning is a short clause; nothing here decides anything.

What it does not do: find look-alikes of a certain brand.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidegate.model.question import Question

GROUP_FROM = 4  # names under one domain that look generated
LONG_LABEL = 40  # longer than names that people choose; data in disguise is (B29)
_ACE = "xn--"

# Scripts that one writing system mixes (UTS 39 section 5.1, "augmented script sets").
_TOGETHER = (
    frozenset(("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC")),
    frozenset(("CJK", "HANGUL")),
    frozenset(("CJK", "BOPOMOFO")),
)
_COMMON = frozenset(("DIGIT", "HYPHEN-MINUS", "COMBINING", "MIDDLE", "ZERO"))

# Letters of other scripts that look like Latin ones (Unicode's confusables.txt, lower case only).
_LIKE_LATIN = frozenset(
    "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u0475\u0443\u051d\u0445"  # Cyrillic
    "\u03b1\u03b9\u03bd\u03bf\u03c1\u03c5\u03c7\u03ba"  # Greek
    "\u0570\u0578\u057d\u0585\u0581\u0566\u056c"  # Armenian
    "0123456789-"
)


def look(host: str) -> tuple[str, tuple[str, ...]]:
    """Return the label of a canonical host ('' where there is none to show) and the warnings about it."""
    warnings: list[str] = []
    labels = host.split(".")
    shown: list[str] = []
    safe = True
    for label in labels:
        if len(label) >= LONG_LABEL:
            warnings.append(f"a label of {len(label)} characters, which may be data in disguise")
        if not label.startswith(_ACE):
            shown.append(label)
            continue
        text = _decoded(label)
        if text is None:
            warnings.append(f"{label} is no valid internationalised label")
            safe = False
            continue
        shown.append(text)
        scripts = _scripts(text)
        if not _one_system(scripts):
            warnings.append(f"{label} mixes scripts: {', '.join(sorted(name.capitalize() for name in scripts))}")
            safe = False
        elif scripts != {"LATIN"} and _LIKE_LATIN.issuperset(text):
            warnings.append(f"{label} is made of letters that look like Latin ones")
            safe = False
    unicode = ".".join(shown)
    label = unicode if safe and unicode != host and unicode.isprintable() else ""
    return label, tuple(dict.fromkeys(warnings))


def _decoded(label: str) -> str | None:
    import idna

    try:
        text = idna.ulabel(label)
        return text if idna.alabel(text).decode() == label else None
    except (idna.IDNAError, UnicodeError):
        return None


def _scripts(text: str) -> set[str]:
    # The standard library has no script property; the first word of a character's name is one for letters.
    import unicodedata

    found = {unicodedata.name(char, "UNKNOWN").split()[0] for char in text}
    return found - _COMMON


def _one_system(scripts: Iterable[str]) -> bool:
    found = frozenset(scripts)
    return len(found) <= 1 or any(found <= system for system in _TOGETHER)


# Second-level labels under which countries register names: example.co.uk is a domain, co.uk is not.
_UNDER_COUNTRIES = frozenset(("ac", "co", "com", "edu", "gob", "gov", "go", "ne", "net", "nom", "or", "org"))
_COUNTRY = 2  # letters


def domain_of(host: str) -> str:
    """Return the domain that names are grouped under: the last two labels, or three below `co.uk` and its like.

    It is for showing cards together and decides nothing, so the rule may be simple: it knows no list of public
    suffixes. A host with too few labels is its own domain.
    """
    labels = host.split(".")
    keep = 2
    if len(labels) > 2 and len(labels[-1]) == _COUNTRY and labels[-2] in _UNDER_COUNTRIES:
        keep = 3
    return ".".join(labels[-keep:])


def ungrouped(opened: Question, questions: Sequence[Question]) -> list[int]:
    """Return the numbers of those questions that belong to the group of `opened`, one of them, and are in none yet.

    There are none as long as the task asks for few names under its domain.
    """
    domain = domain_of(opened.host)
    alike = [one for one in questions if not _is_literal(one) and domain_of(one.host) == domain]
    if _is_literal(opened) or len({one.host for one in alike}) < GROUP_FROM:
        return []
    return [one.id for one in alike if not one.group]


def _is_literal(question: Question) -> bool:
    return question.decision.destination.host.is_literal
