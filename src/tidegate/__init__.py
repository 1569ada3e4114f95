"""Tidegate: the gate that coding agents, builds and scripts run behind."""

from __future__ import annotations

__version__ = "0.1.0"
