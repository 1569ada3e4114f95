"""The known harnesses, made by scripts/compile-harnesses of the YAML files here; change those.

For each name: what it is called, its command, whether it knows proxies, its hosts and whether each is verified, and
which of them are its model API.
"""

from __future__ import annotations

HARNESSES: dict[str, tuple[str, str, bool, tuple[tuple[str, bool], ...], tuple[str, ...]]] = {
    "claude": (
        "Claude Code",
        "claude",
        True,
        (
            ("api.anthropic.com:443", True),
            ("platform.claude.com:443", True),
            ("claude.ai:443", False),
        ),
        ("api.anthropic.com:443",),
    ),
    "codex": (
        "Codex",
        "codex",
        True,
        (
            ("api.openai.com:443", True),
            ("chatgpt.com:443", True),
            ("auth.openai.com:443", True),
        ),
        ("api.openai.com:443", "chatgpt.com:443"),
    ),
}
