"""YAML to a tree with places (policy/document.py)."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.policy import document
from tidegate.policy.document import parse_document
from tidegate.policy.nodes import Mapping, Node, Scalar, Sequence
from tidegate.policy.positions import Problems, TooManyProblemsError


def read(data: bytes | str) -> tuple[Node | None, list[str]]:
    """Parse and return the tree with the printed problems."""
    problems = Problems("f")
    root = parse_document(data.encode() if isinstance(data, str) else data, problems)
    return root, problems.error().lines()


def plain(node: Node | None) -> object:
    """Return the tree as Python values, for comparing."""
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    if isinstance(node, Mapping):
        return [(plain(key), plain(value)) for key, value in node.pairs]
    return node.meaning if isinstance(node, Scalar) else node


def test_json_is_yaml_with_tabs_between_its_tokens() -> None:
    """POL-0: a JSON policy loads, indented with tabs too."""
    root, problems = read('{\n\t"default":\t"deny",\n\t"limits": {"connections": 5}\n}\n')
    assert problems == []
    assert plain(root) == [("default", "deny"), ("limits", [("connections", 5)])]


def test_nodes_know_where_they_stand() -> None:
    """POL-2: marks count characters, and a key twice stays there twice for the caller to see."""
    root, _ = read("ü: [a, b]\nü: c\n")
    assert isinstance(root, Mapping)
    assert [(key.mark.line, value.mark.column) for key, value in root.pairs] == [(0, 3), (1, 3)]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"\xef\xbb\xbfa: 1", "f:1:1: the file begins with a byte order mark: save it as UTF-8 without one"),
        ("a: 1".encode("utf-16"), "f:1:1: the file is UTF-16 or UTF-32: save it as UTF-8"),
        ("a: 1".encode("utf-16-be"), "f:1:1: the file is UTF-16 or UTF-32: save it as UTF-8"),
        ("a: 1".encode("utf-32"), "f:1:1: the file is UTF-16 or UTF-32: save it as UTF-8"),
        (b"a: 1\nb: \xff", "f:2:4: the file is not UTF-8: 'ÿ': save it as UTF-8"),
        (b"a: b\0c", "f:1:5: a NUL byte, as binary files have: name a policy in YAML or JSON"),
        (b"a: \x1b[2J", "f:1:4: a character that cannot be seen: '\\x1b': remove it"),
        (b"a: 1 # x\rb: 2", "f:1:9: a carriage return without a newline: '\\r': end lines with a newline"),
        ("# x\u2028b: 2".encode(), "f:1:4: a line end that not every reader sees: '\\u2028': end lines with a newline"),
        ("# x\x85b: 2".encode(), "f:1:4: a line end that not every reader sees: '\\x85': end lines with a newline"),
        ("a: \u202eb".encode(), "f:1:4: a character that turns the direction of text: '\\u202e': remove it"),
        (b"\ta: 1", "f:1:1: a tab indents this line: '\\ta: 1': indent with spaces"),
        (b"a:\n  - b\n\t- c", "f:3:1: a tab indents this line: '\\t- c': indent with spaces"),
        (b"a: 1\n---\nb: 2", "f:2:1: a second document in the file: '---': keep one policy per file"),
        (b"%YAML 1.1\n---\na: 1", "f:1:1: a YAML directive: '%': remove the line that begins with '%'"),
        (
            b"- !!python/object/apply:os.system [x]",
            "f:1:3: a tag: 'tag:yaml.org,2002:python/object/apply:os.system': remove it; ",
        ),
        (b"- *x", "f:1:3: an unquoted '*' is a YAML alias, and nothing has this name: '*x': write \"*x\""),
        (b"- &a [*a]", "f:1:7: an alias inside of what it stands for: '*a': write it out"),
        (b"a: [1,\n2", "f:3:1: this is not YAML (while parsing a flow sequence, "),
        (b"a: b: c", "f:1:5: this is not YAML (mapping values are not allowed "),
        (b'a: "b', "f:1:6: this is not YAML (while scanning a quoted scalar, "),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(data: bytes, line: str) -> None:
    """POL-2, B14: one clear line with the place, and nothing raw of the file on the screen."""
    _, problems = read(data)
    assert len(problems) == 1
    assert problems[0].startswith(line)


@pytest.mark.parametrize(
    "data",
    [b"a: 1\r\nb: 2\r\n", "# שלום\na: 1".encode(), b"a:\tb", b"---\na: 1\n...\n", b"a: &x [b]\nc: *x\n", b"a: 1 # \t"],
)
def test_their_neighbours_are_read(data: bytes) -> None:
    """What is close to a refusal and harmless passes: CRLF, right-to-left letters, a document mark, an alias."""
    root, problems = read(data)
    assert problems == []
    assert isinstance(root, Mapping)


def test_each_missing_quote_is_reported_in_one_run() -> None:
    """POL-2: `*`, `@` and an IPv6 literal need quotes in YAML; all places are shown at once, with the quoted form."""
    text = (
        "a:\n  - *.a.com\n  - '*.b.com'\n  - @npm # note\n  - **:443\n  - [2600::1]:443\n  - *\nb: [*.c.com, @pypi]\n"
    )
    root, problems = read(text)
    assert problems == [
        "f:2:5: an entry that begins with '*' needs quotes: '*.a.com': write \"*.a.com\"",
        "f:4:5: an entry that begins with '@' needs quotes: '@npm': write \"@npm\"",
        "f:5:5: an entry that begins with '*' needs quotes: '**:443': write \"**:443\"",
        "f:6:5: an IPv6 literal needs quotes: '[2600::1]:443': write \"[2600::1]:443\"",
        "f:7:5: an entry that begins with '*' needs quotes: '*': write \"*\"",
        "f:8:5: an entry that begins with '*' needs quotes: '*.c.com': write \"*.c.com\"",
        "f:8:14: an entry that begins with '@' needs quotes: '@pypi': write \"@pypi\"",
    ]
    assert isinstance(root, Mapping)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a: [" + b":" * 1_000_000 + b" %\n", "f:1:5: this is not YAML"),
        (b'a: "x" ' + b"[:" * 500_000 + b"\n", "f:1:8: this is not YAML"),
        (b"".join(b"%%TAG !a%d! b\n" % number for number in range(100_000)) + b"---\na: b", "f:2:1: a YAML directive"),
        (b"a: 1\n...\n" + b"%TAG ! b\n" * 17, "f:3:1: a YAML directive"),
    ],
)
def test_no_text_takes_time_that_grows_with_its_square(data: bytes, line: str) -> None:
    """POL-2: these would take minutes (a backtracking pattern, libyaml's list of directives) and end at once."""
    _, problems = read(data)
    assert problems[0].startswith(line)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (BOMB, "aliases that repeat more than 20000 entries"),
        ("- " * 100_000 + "x", "nested deeper than 16 levels"),
        ("[" * 100_000, "nested deeper than 16 levels"),
        ("{a: " * 50_000, "nested deeper than 16 levels"),
        ("? " * 50_000, "nested deeper than 16 levels"),
        ("[" + "a," * 500_000 + "]", "more than 400000 entries"),
        ("#" * (8 * 1024 * 1024 + 1), "the policy is over 8 MiB"),
        ("- *x.y\n" * 400_000, "needs quotes"),
    ],
)
def test_size_depth_and_aliases_are_bounded(data: str, said: str) -> None:
    """POL-2: text that explodes is refused where a bound is met, before it costs memory."""
    root, problems = read(data)
    assert root is None
    assert said in problems[-1]


def test_the_bounds_leave_room_for_large_policies() -> None:
    """POL-4: a hundred thousand rules, eight levels and a thousand uses of an alias are no problem."""
    root, problems = read("a:\n" + "- host.example.com:443\n" * 100_000)
    assert problems == []
    assert isinstance(root, Mapping)
    assert read("[" * 16 + "]" * 16)[1] == []
    assert read("a: &a x\nb:\n" + "- *a\n" * 1000)[1] == []


def test_the_pure_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML has no C parser the pure one takes over: the same trees, and a smaller bound that says so."""
    texts = ["a: [b, 'c']\nd: 1\n", '{\n\t"a":\t["b"]\n}', "a:\n  - b\n", "a: &x b\nc: *x\n"]
    with_c = [plain(read(text)[0]) for text in texts]
    monkeypatch.delattr(yaml, "CBaseLoader", raising=False)
    assert [plain(read(text)[0]) for text in texts] == with_c
    assert "needs quotes: '*.a.com'" in read("- *.a.com\n")[1][0]
    assert "needs quotes: '@npm'" in read("- @npm\n")[1][0]
    assert "a tab indents this line" in read("a:\n\tb: 1")[1][0]
    assert "nested deeper" in read("[" * 5000)[1][0]
    assert read('- "\\U00110000"')[1] == ["f: this is not YAML: check the escapes in quoted texts"]
    too_big = b"#" * (document.MAX_BYTES_SLOW + 1)
    assert read(too_big)[1] == ["f: the policy is over 1 MiB: install a PyYAML with libyaml for this"]


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=300), st.text("[]{}:,-*&@!|>'\"#%? \\xU1\t\nab0~<", max_size=120).map(str.encode)))
def test_any_bytes_give_a_tree_or_problems(data: bytes) -> None:
    """POL-0: never another exception with either parser, and None only beside a problem or for an empty file."""
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(2):
            problems = Problems("f")
            try:
                root = parse_document(data, problems)
            except TooManyProblemsError:
                continue
            if root is None and not problems:
                assert plain_empty(data)
            patch.delattr(yaml, "CBaseLoader", raising=False)


def plain_empty(data: bytes) -> bool:
    """Whether a text holds nothing but comments, blank lines and document marks."""
    return all(line.strip() in {"", "...", "---"} or line.lstrip()[:1] == "#" for line in data.decode().splitlines())
