"""What an ordinary user may lack here: an account (sshd, ssh and PostgreSQL want one), the sight of who owns what."""

from __future__ import annotations

import os
import pwd

import pytest


def account() -> str:
    """Return the name of this user's account, '' where there is none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def need_account() -> None:
    """Skip the test where this user has none."""
    if not account():
        pytest.skip(f"uid {os.geteuid()} has no account in /etc/passwd, which this program wants")


def need_roots_files() -> None:
    """Skip the test in a namespace with one user, where root's files are nobody's: no agent is trusted there."""
    if os.stat("/").st_uid not in {0, os.geteuid()}:
        pytest.skip("whose / is cannot be seen from a namespace with one user, so that no program is trusted here")
