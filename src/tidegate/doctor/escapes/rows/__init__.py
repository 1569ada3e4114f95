"""The rows, one file a theme. Importing this package fills the table."""

from __future__ import annotations

from tidegate.doctor.escapes.rows import (
    asked,
    calls,
    captured,
    families,
    kernel_files,
    late_sockets,
    later,
    names,
    needs,
    outside,
    own_answers,
    ports,
    processes,
    protected_files,
    reach,
    rings,
    services,
    unix_sockets,
    users,
)

__all__ = [
    "asked",
    "calls",
    "captured",
    "families",
    "kernel_files",
    "late_sockets",
    "later",
    "names",
    "needs",
    "outside",
    "own_answers",
    "ports",
    "processes",
    "protected_files",
    "reach",
    "rings",
    "services",
    "unix_sockets",
    "users",
]
