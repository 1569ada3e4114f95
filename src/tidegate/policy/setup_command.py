"""`setup` of a policy file -> the words of the command that runs before a task's first (POL-7).

A text is a shell's, as people write set-up commands: `npm ci && npm run build`. A list is the program and its
arguments, and no shell reads it. What no execve(2) could take is refused here, with its place.

It does not look whether there is such a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tidegate.policy.nodes import Broken, Node, Scalar, Sequence

if TYPE_CHECKING:
    from tidegate.policy.reading import Reader

SHELL: Final = ("/bin/sh", "-c")
MAX_BYTES: Final = 65536  # execve(2) takes twice as many in one argument (MAX_ARG_STRLEN)

_EXAMPLE: Final = "write a command, 'npm ci', or its arguments, '[npm, ci]'"


def setup_command(read: Reader, node: Node) -> tuple[str, ...]:
    """Return the words of the command; () where they are wrong, which is noted."""
    if isinstance(node, Scalar):
        text = read.text(node, "'setup'", _EXAMPLE)
        if text is None:
            return ()
        words: tuple[str, ...] = (*SHELL, text)
        empty = not text.strip()
    elif isinstance(node, Sequence):
        found = [read.text(item, "an argument of 'setup'") for item in node.items]
        if None in found:
            return ()
        words = tuple(word for word in found if word is not None)
        empty = not words or not words[0]
    else:
        if not isinstance(node, Broken):
            read.mismatch(node, "'setup'", "a text or a list", _EXAMPLE)
        return ()
    if empty:
        read.wrong(node, "the set-up command is empty", "", f"{_EXAMPLE}; or leave the key out")
        return ()
    try:
        size = len("\0".join(words).encode())
    except UnicodeEncodeError:
        size = -1
    if size < 0 or any("\0" in word for word in words):
        read.wrong(node, "the set-up command holds what no command line can", "", "remove \\0 and half characters")
        return ()
    if size > MAX_BYTES:
        read.wrong(
            node, f"the set-up command is over {MAX_BYTES} bytes", "", "put it into a script, and write its name"
        )
        return ()
    return words
