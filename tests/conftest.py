"""Loads the lab, so that every test runs in a network of its own (tests/lab/plugin.py)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.lab.plugin", "tests.client_programs", "tests.engines", "tests.holds.launcher"]

# A deadline would measure the machine: the suite runs in parallel, on whatever CI has.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A clone of somebody else may be tested too: then what was found is not kept.
settings.register_profile("house-unwritable", settings.get_profile("house"), database=None)
writable = os.access(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), os.W_OK)
settings.load_profile("house" if writable else "house-unwritable")
