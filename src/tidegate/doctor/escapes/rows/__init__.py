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
    shared_files,
    shared_network,
    shared_processes,
    tool_calls,
    unix_sockets,
    users,
)
from tidegate.doctor.escapes.without_namespaces import fill

fill()

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
    "shared_files",
    "shared_network",
    "shared_processes",
    "tool_calls",
    "unix_sockets",
    "users",
]
