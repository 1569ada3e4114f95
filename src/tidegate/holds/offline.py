"""The hold `offline` (`--no-network`): no gate and no socket family but AF_UNIX, localhost included (HLD-5).

Everything else is as in `netns`.
"""

from __future__ import annotations

from tidegate.holds.launch import NamespaceHold
from tidegate.holds.seccomp import OFFLINE as KIND

OFFLINE = NamespaceHold(KIND)
