"""The rows, one file a theme. Importing this package fills the table."""

from __future__ import annotations

from tidegate.doctor.escapes.rows import (
    calls,
    captured,
    families,
    kernel_files,
    late_sockets,
    needs,
    processes,
    protected_files,
    reach,
    unix_sockets,
)

__all__ = [
    "calls",
    "captured",
    "families",
    "kernel_files",
    "late_sockets",
    "needs",
    "processes",
    "protected_files",
    "reach",
    "unix_sockets",
]
