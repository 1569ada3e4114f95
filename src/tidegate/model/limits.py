"""The gate's bounds for one task (GAT-6). The operator's side sets them; nothing a task writes does."""

from __future__ import annotations

from tidegate.model.value import Value


class Limits(Value):
    """Bounds of a task's gate. Seconds are floats; 0 switches an idle clock off.

    The defaults are the SPEC's: 256 connections at once, 64 KiB of headers in 10 s, 10 s to connect to one
    address and 20 s in all. `header_fields` and `target_bytes` are what large servers use (100 fields in
    Apache, 8 KiB of request line in nginx and Apache).
    """

    connections: int = 256
    header_bytes: int = 65536
    header_fields: int = 100
    target_bytes: int = 8192
    header_seconds: float = 10.0
    connect_seconds: float = 10.0
    total_seconds: float = 20.0
    resolve_seconds: float = 5.0
    idle_seconds: float = 0.0


DEFAULT_LIMITS = Limits()
