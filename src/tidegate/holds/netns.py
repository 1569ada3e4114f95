"""The hold `netns`: own user, mount, network, PID and IPC namespaces; the gate is the only way out (HLD-1).

The listening socket is made inside and handed out, so there is no relay and no socket file. All of the work is in
launch.py, which the neighbours `offline` and `open` share.
"""

from __future__ import annotations

from tidegate.holds.launch import EarlyHold
from tidegate.holds.seccomp import NETNS as KIND

NETNS = EarlyHold(KIND)
