"""Loads the lab, so that every test runs in a network of its own (tests/lab/plugin.py)."""

from __future__ import annotations

pytest_plugins = ["tests.lab.plugin"]
