"""Loads the lab, so that every test runs in a network of its own (tests/lab/plugin.py)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.lab.plugin", "tests.client_programs"]

# A deadline would measure the machine: the suite runs in parallel, on whatever CI has.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
