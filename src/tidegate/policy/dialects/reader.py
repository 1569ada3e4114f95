"""A file of another product -> what it became, and the layer that `--policy` has under it (POL-15).

Which product it is, is seen by what it holds: keys that no other has, beside none that only a policy of ours has. JSON
is asked of those whose files are JSON, TOML of Codex, so that a policy of ours with a mistake stays one. A caller can
name the dialect instead.

The layer is what our own loader makes of the text that emit.py wrote; only where a rule is from is the source's place.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tidegate.model.errors import UsageError
from tidegate.model.value import Value
from tidegate.policy.dialects import claude, codex, gh_aw, gurtos, kraft, kule, sandbox_runtime, smokescreen
from tidegate.policy.dialects.draft import Draft, keys_of
from tidegate.policy.dialects.emit import policy_text
from tidegate.policy.dialects.imported import Wanted
from tidegate.policy.dialects.toml_tree import Place, parse_toml
from tidegate.policy.document import MAX_BYTES, parse_document
from tidegate.policy.loader import POLICY_KEYS, TOP_HINTS, load_policy
from tidegate.policy.nodes import Mapping, Node, Scalar, Sequence
from tidegate.policy.positions import Problems, TooManyProblemsError, on_screen
from tidegate.policy.reading import Reader
from tidegate.policy.rows import SOURCE
from tidegate.policy.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.model.rule import Layer
    from tidegate.policy.dialects.imported import Imported
    from tidegate.policy.layers import PolicyLayer

YAML, JSON, TOML, TEXT = "YAML", "JSON", "TOML", "text"


class Dialect(Value):
    """One product: its name for `--dialect`, the module that reads it, and the form of its files."""

    name: str
    module: Any
    form: str


DIALECTS: Final = {
    one.name: one
    for one in (
        Dialect("kraft", kraft, YAML),
        Dialect("gurtos", gurtos, JSON),
        Dialect("kule", kule, YAML),
        Dialect("sandbox-runtime", sandbox_runtime, JSON),
        Dialect("claude", claude, JSON),
        Dialect("codex", codex, TOML),
        Dialect("smokescreen", smokescreen, YAML),
        Dialect("gh-aw", gh_aw, YAML),
    )
}
NAMES: Final = tuple(DIALECTS)

_FRONT: Final = re.compile(rb"---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|$)", re.DOTALL)
_LIKE_TOML: Final = re.compile(rb"^[ \t]*(?:\[+[^\]\n]+\]+[ \t\r]*(?:#.*)?$|[A-Za-z0-9_\".-]+[ \t]*=)", re.MULTILINE)
_OF_CODEX: Final = re.compile(rb"^[ \t]*\[[ \t]*(?:permissions|network_proxy)[ \t]*[.\]]", re.MULTILINE)
_DOMAIN: Final = re.compile(r"[^\s,#]+")


def read_dialect(
    data: bytes, filename: str, wanted: Wanted, is_public_suffix: Callable[[str], bool], name: str = ""
) -> Imported | None:
    """Return what a file became; None where it is of no product that is known here, or cannot be read at all.

    Raises:
        PolicyErrors: for what its product refuses, and for what cannot be kept.
        UsageError: where it could be of several products, or holds several policies and nothing says which.
    """
    dialect, root, problems = _named(data, filename, name) if name else _recognised(data, filename)
    if dialect is None or root is None:
        return None
    draft = Draft(Reader(problems), wanted, is_public_suffix)
    with problems:
        if not isinstance(root, Mapping | Sequence):
            draft.read.mismatch(root, "the file", "a mapping")
        else:
            dialect.module.read(draft, root)
    return draft.imported(dialect.name, dialect.module.TITLE)


def unknown(data: bytes, filename: str) -> UsageError:
    """Return the error for a file of no known product: what is wrong with its text, or that nothing is known."""
    shown = on_screen(filename, 200)
    problems = Problems(filename)
    root = None
    if data.strip():
        with suppress(TooManyProblemsError):
            root = (parse_toml if _like_toml(data) else parse_document)(_front(data), problems)
    if not problems and any(key in POLICY_KEYS for key in keys_of(root)):
        return UsageError(f"{shown} is no policy of another product", fix=f"tidegate policy check {shown}")
    why = f" ({problems.error().errors[0]})" if problems else "" if data.strip() else " (the file is empty)"
    return UsageError(
        f"{shown} is not recognised as a policy of another product{why}",
        fix=f"tidegate policy import {shown} --dialect NAME says whose it is: {', '.join(NAMES)}",
    )


def is_strange(data: bytes) -> bool:
    """Whether a text that nobody knows is no policy of ours with a mistake either: TOML, Markdown, no key like ours."""
    problems = Problems("")
    front = _front(data)
    with suppress(TooManyProblemsError):
        root = (parse_toml if _like_toml(data) else parse_document)(front, problems)
        keys = keys_of(root)
        ours = any(nearest(key, (*POLICY_KEYS, *TOP_HINTS)) for key in keys)
        return bool(keys) and not problems and (front is not data or not ours)
    return False


def layer_of(imported: Imported, layer: Layer) -> PolicyLayer:
    """Return the layer that a file makes: that of the text which `import` prints, with the source's places.

    Raises:
        UsageError: where that text is larger than a policy may be.
    """
    text, places = policy_text(imported)
    data = text.encode()
    if len(data) > MAX_BYTES:
        what = f"{on_screen(imported.filename, 200)}: the policy that it becomes is over {MAX_BYTES >> 20} MiB"
        raise UsageError(what, fix="write wildcards, or fewer hosts")
    loaded = load_policy(data, imported.filename, layer)
    prefix = on_screen(imported.filename, 200) + ":"

    def place(source: str) -> str:
        line = places.get(int(source.removeprefix(prefix).partition(":")[0]))
        return source if line is None else f"{prefix}{line.line}:{line.column}"

    rows = tuple((*row[:SOURCE], place(row[SOURCE]), *row[SOURCE + 1 :]) for row in loaded.rows)
    presets = tuple(use.replace(source=place(use.source)) for use in loaded.presets)
    source = prefix[:-1] if loaded.default_source else ""
    return loaded.replace(rows=rows, presets=presets, default_source=source)


def _named(data: bytes, filename: str, name: str) -> tuple[Dialect, Node | None, Problems]:
    dialect = DIALECTS[name]
    problems = Problems(filename)
    if not data.strip():
        problems.add(0, 0, "the file is empty", "", "name a policy")
    elif dialect.form == TOML:
        return dialect, parse_toml(data, problems), problems
    else:
        root = parse_document(_front(data), problems)
        listed = dialect.module is gh_aw and not isinstance(root, Mapping) and _domains(data)
        if listed:
            return dialect, listed, Problems(filename)
        if not problems:
            return dialect, root, problems
    raise problems.error()


def _recognised(data: bytes, filename: str) -> tuple[Dialect | None, Node | None, Problems]:
    problems = Problems(filename)
    root, form = None, ""
    if _like_toml(data):
        root, form = parse_toml(data, problems), TOML
        if root is None and _OF_CODEX.search(data):
            raise problems.error()  # what YAML makes of it helps nobody
    if root is None:
        problems = Problems(filename)
        try:
            root = parse_document(_front(data), problems)
        except TooManyProblemsError:
            return None, None, problems
        form = JSON if _is_json(data) else YAML
    if not isinstance(root, Mapping):
        return None, None, problems
    native = {key for key in keys_of(root) if key in POLICY_KEYS}
    found = [
        dialect
        for dialect in DIALECTS.values()
        if (dialect.form == form or (dialect.form == YAML and form == JSON))
        and not native - set(dialect.module.KEYS)
        and dialect.module.recognises(root)
    ]
    if not found and data.lstrip()[:2] in (b'{"', b"{'") and form == YAML:
        _refuse_nearly_json(data, root, native, problems)
    if len(found) > 1:
        names = ", ".join(dialect.name for dialect in found)
        shown = on_screen(filename, 200)
        fix = f"tidegate policy import {shown} --dialect NAME says which: {names}"
        raise UsageError(f"{shown} could be of several products", fix=fix)
    return (found[0] if found else None), root, problems


def _refuse_nearly_json(data: bytes, root: Mapping, native: set[str], problems: Problems) -> None:
    """Refuse what would be of a product if only it were JSON: our reader takes more for JSON than theirs do."""
    theirs = [dialect.module for dialect in DIALECTS.values() if dialect.form == JSON]
    if not any(module.recognises(root) and not native - set(module.KEYS) for module in theirs):
        return
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        problems.add(error.lineno, error.colno, f"this is not JSON ({error.msg})", "", "mend it, as its product would")
        raise problems.error() from None
    except (ValueError, RecursionError):
        return


def _like_toml(data: bytes) -> bool:
    return data.lstrip()[:1] not in (b"{", b"") and _LIKE_TOML.search(data) is not None


def _front(data: bytes) -> bytes:
    """Return the frontmatter of a Markdown file at its own lines; another text as it is."""
    match = _FRONT.match(data)
    if match is None or not data[match.end() :].strip():
        return data
    return b"\n" + match[1]


def _is_json(data: bytes) -> bool:
    if data.lstrip()[:1] != b"{":
        return False
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _domains(data: bytes) -> Sequence | None:
    """Return the tree of a list of domains as the firewall reads it; None where it is no text."""
    problems = Problems("")
    from tidegate.policy.document import decode_text

    text = decode_text(data, problems)
    if text is None:
        return None
    found = Sequence(Place(0, 0))
    for number, line in enumerate(text.split("\n")):
        for match in _DOMAIN.finditer(line.partition("#")[0]):
            found.items.append(Scalar(match.group(), plain=False, mark=Place(number, match.start())))
    return found
