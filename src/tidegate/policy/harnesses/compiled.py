"""The known harnesses, made by scripts/compile-harnesses of the YAML files here; change those.

For each name: what it is called, its command, whether it knows proxies, its hosts with whether each is verified and
the key with which alone it joins, and which of them are its model API.
"""

from __future__ import annotations

HARNESSES: dict[str, tuple[str, str, bool, tuple[tuple[str, bool, str], ...], tuple[str, ...]]] = {
    "claude": (
        "Claude Code",
        "claude",
        True,
        (
            ("api.anthropic.com:443", True, ""),
            ("platform.claude.com:443", True, ""),
            ("claude.ai:443", False, ""),
        ),
        ("api.anthropic.com:443",),
    ),
    "codex": (
        "Codex",
        "codex",
        True,
        (
            ("api.openai.com:443", True, ""),
            ("chatgpt.com:443", True, ""),
            ("auth.openai.com:443", True, ""),
        ),
        ("api.openai.com:443", "chatgpt.com:443"),
    ),
    "droid": (
        "Factory Droid",
        "droid",
        True,
        (
            ("api.factory.ai:443", False, ""),
            ("app.factory.ai:443", False, ""),
            ("api.anthropic.com:443", False, "ANTHROPIC_API_KEY"),
        ),
        ("api.factory.ai:443", "app.factory.ai:443", "api.anthropic.com:443"),
    ),
    "gemini": (
        "Gemini CLI",
        "gemini",
        True,
        (("generativelanguage.googleapis.com:443", False, ""),),
        ("generativelanguage.googleapis.com:443",),
    ),
}
