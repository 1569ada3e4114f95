"""tidegate.policy.setup_command: what `setup` may say, and where it is wrong."""

from __future__ import annotations

import json

import pytest

from tidegate.model.rule import Layer
from tidegate.policy.loader import PolicyErrors, load_policy
from tidegate.policy.setup_command import MAX_BYTES


def _words(text: str) -> tuple[str, ...]:
    return load_policy(f"setup: {text}\n".encode(), "p.yaml", Layer.COMMAND_LINE).setup


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("npm ci", ("/bin/sh", "-c", "npm ci")),
        ("'a && b; c # d'", ("/bin/sh", "-c", "a && b; c # d")),
        ("|\n  one\n  two\n", ("/bin/sh", "-c", "one\ntwo\n")),
        ("[npm, ci]", ("npm", "ci")),
        ("[./set up, '', ü]", ("./set up", "", "ü")),
        ("[x]", ("x",)),
        (f"[{'x' * MAX_BYTES}]", ("x" * MAX_BYTES,)),
    ],
)
def test_a_text_is_a_shells_and_a_list_is_itself(text: str, words: tuple[str, ...]) -> None:
    """POL-7: a text goes to /bin/sh -c whole, a list is a program and its arguments, which no shell reads."""
    assert _words(text) == words


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("''", "1:8", "the set-up command is empty"),
        ("'  '", "1:8", "the set-up command is empty"),
        ("[]", "1:8", "the set-up command is empty"),
        ("['', a]", "1:8", "the set-up command is empty"),
        ("5", "1:8", "a number where a text belongs ('setup')"),
        ("true", "1:8", "a truth value where a text belongs ('setup')"),
        ("", "1:7", "nothing where a text belongs ('setup')"),
        ("[a, 5]", "1:12", "a number where a text belongs (an argument of 'setup')"),
        ("[a, [b]]", "1:12", "a list where a text belongs (an argument of 'setup')"),
        ("{run: a}", "1:8", "a mapping where a text or a list belongs ('setup')"),
        ('"a\\0b"', "1:8", "the set-up command holds what no command line can"),
        ('["a", "b\\0"]', "1:8", "the set-up command holds what no command line can"),
        (f"[{'x' * (MAX_BYTES - 1)}, y]", "1:8", f"the set-up command is over {MAX_BYTES} bytes"),
    ],
)
def test_what_is_no_command_is_refused_with_its_place(text: str, place: str, what: str) -> None:
    """POL-2: one line each, with line and column, and what to write."""
    with pytest.raises(PolicyErrors) as caught:
        _words(text)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"p.yaml:{place}: {what}"), line


def test_a_folders_file_may_not_hold_one() -> None:
    """POL-7, POL-9: a command in a file that a task can write would run at the next start; `network` still may."""
    with pytest.raises(PolicyErrors) as caught:
        load_policy(b"network: {}\nsetup: npm ci\n", "tidegate.yaml", Layer.FOLDER, folder=True)
    assert str(caught.value).startswith("tidegate.yaml:2:1: a folder's policy may not hold this: 'setup'")
    assert load_policy(b"network: {}\n", "tidegate.yaml", Layer.FOLDER, folder=True).setup == ()


def test_the_administrators_file_has_none() -> None:
    """POL-7: it stands in a --policy file or the user's config."""
    with pytest.raises(PolicyErrors) as caught:
        load_policy(b"setup: npm ci\n", "/etc/tidegate/policy.yaml", Layer.ADMINISTRATOR)
    assert "1:1: set-up commands are the user's: 'setup': leave it out" in str(caught.value)


def test_json_is_read_the_same() -> None:
    """POL-0: a policy may be JSON."""
    text = json.dumps({"setup": ["sh", "-c", "a\nb"]})
    assert load_policy(text.encode(), "p.json", Layer.USER).setup == ("sh", "-c", "a\nb")
