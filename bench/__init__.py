"""Tidegate beside its peers, measured in one run: start it with `scripts/bench`; `bench/README.md` says how."""
