"""The hold `open` (`--open-network`): the machine's network, no gate, no policy (HLD-5).

Everything else is as in `netns`: own processes, own /tmp and /run, no capabilities, the filter but for families.
"""

from __future__ import annotations

from tidegate.holds.launch import NamespaceHold
from tidegate.holds.seccomp import OPEN as KIND

OPEN = NamespaceHold(KIND)
