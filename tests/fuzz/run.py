"""Drives one target with atheris: python -m tests.fuzz.run TARGET SECONDS CORPUS-FOLDER.

The corpus begins with the seeds and grows with what reaches new code. Ends with 0 when time is up; when a target fails
it prints the bytes, leaves them in CORPUS-FOLDER/crash-…, and ends otherwise.
"""

from __future__ import annotations

import os
import sys

import atheris

with atheris.instrument_imports(include=["tidegate"]):
    from tests.fuzz.targets import LONGEST, SEEDS, TARGETS


def main(name: str, seconds: str, folder: str) -> None:
    """Fuzz until the time is up."""
    os.makedirs(folder, exist_ok=True)
    for number, seed in enumerate(SEEDS[name]):
        with open(os.path.join(folder, f"seed-{number}"), "wb") as file:
            file.write(seed)
    options = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", f"-artifact_prefix={folder}/", "-timeout=10"]
    atheris.Setup([sys.argv[0], *options, folder], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
