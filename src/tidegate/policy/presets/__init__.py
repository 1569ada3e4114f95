"""Presets: named host groups as data files, each host with its source."""
