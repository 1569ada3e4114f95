"""The known harnesses, made by scripts/compile-harnesses of the YAML files here; change those.

For each name: what it is called, its command, whether it knows proxies, its hosts with whether each is verified and
the key with which alone it joins, and which of them are its model API.
"""

from __future__ import annotations

HARNESSES: dict[str, tuple[str, str, bool, tuple[tuple[str, bool, str], ...], tuple[str, ...]]] = {
    "aider": (
        "Aider",
        "aider",
        True,
        (
            ("api.anthropic.com:443", False, "ANTHROPIC_API_KEY"),
            ("api.openai.com:443", False, "OPENAI_API_KEY"),
            ("generativelanguage.googleapis.com:443", False, "GEMINI_API_KEY"),
        ),
        ("api.anthropic.com:443", "api.openai.com:443", "generativelanguage.googleapis.com:443"),
    ),
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
    "cursor": (
        "Cursor",
        "cursor-agent",
        False,
        (("api2.cursor.sh:443", False, ""),),
        ("api2.cursor.sh:443",),
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
        (
            ("generativelanguage.googleapis.com:443", True, ""),
            ("cloudcode-pa.googleapis.com:443", True, ""),
            ("oauth2.googleapis.com:443", True, ""),
        ),
        ("generativelanguage.googleapis.com:443", "cloudcode-pa.googleapis.com:443"),
    ),
    "opencode": (
        "OpenCode",
        "opencode",
        True,
        (),
        (),
    ),
}
