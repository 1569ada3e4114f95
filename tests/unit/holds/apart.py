"""Runs a piece of Python in a process of its own, for tests that change what a process is."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PRELUDE = """
import errno, os, sys
sys.path.insert(0, {source!r})
from tidegate.holds import linux, mounts, userns

def status(name):
    with open('/proc/self/status') as file:
        return dict(line.rstrip('\\n').split(':\\t', 1) for line in file if ':\\t' in line)[name]

def inside(flags=linux.CLONE_NEWNS, attributes=mounts.SAFE, root=False):
    uid, gid = os.getuid(), os.getgid()
    as_uid, as_gid = (0, 0) if root else (uid, gid)
    linux.unshare(linux.CLONE_NEWUSER | flags)
    maps = (('uid_map', f'{{as_uid}} {{uid}} 1'), ('gid_map', f'{{as_gid}} {{gid}} 1'))
    for name, text in (('setgroups', 'deny'), *maps):
        with open('/proc/self/' + name, 'w') as file:
            file.write(text)
    if flags & linux.CLONE_NEWNS:
        mounts.set_attributes('/', attributes, recursive=True, propagation=linux.MS_PRIVATE)

def attempt(what, *arguments):
    try:
        what(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return 'done'
"""


def apart(code: str, *arguments: str, patience: int = 180) -> str:
    """What the code prints, run with `inside()`, `attempt()` and `status()` at hand; it must end with 0."""
    text = PRELUDE.format(source=os.path.join(ROOT, "src")) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-I", "-c", text, *arguments], capture_output=True, text=True, check=False, timeout=patience
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
