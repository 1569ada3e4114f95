"""What leads out of a container around any gate (HLD-4, CASES B79): looked for in what its engine says of it.

For the worker that we asked for, since an engine's own defaults may add to it, and for one that somebody else made
(`attach`). Each weakness is a part of a sentence.
"""

from __future__ import annotations

import os
import re

from tidegate.holds.mountinfo import is_within
from tidegate.holds.sockets import listed_sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_SOCKETS = frozenset(("docker.sock", "podman.sock", "containerd.sock", "crio.sock", "buildkitd.sock"))
_ANONYMOUS = re.compile("[0-9a-f]{64}").fullmatch
_WHOLE = frozenset(("/", "/run", "/var", "/proc", "/sys", "/dev"))
_SHARED = (
    ("NetworkMode", "network"),
    ("PidMode", "processes"),
    ("IpcMode", "IPC"),
    ("UTSMode", "name"),
    ("UsernsMode", "users"),
)


def weaknesses(found: Mapping[str, Any]) -> list[str]:
    """What of it this container has."""
    host = found.get("HostConfig") or {}
    weak = ["it is privileged"] if host.get("Privileged") else []
    weak += [f"it shares this machine's {what}" for field, what in _SHARED if host.get(field) == "host"]
    if host.get("CapAdd"):
        weak.append(f"it has rights of its own ({', '.join(map(str, host['CapAdd']))})")
    devices = [str(one.get("PathOnHost")) for one in host.get("Devices") or () if isinstance(one, dict)]
    if devices:
        weak.append(f"it has devices of this machine ({', '.join(devices)})")
    for mount in found.get("Mounts") or ():
        source = str(mount.get("Source", ""))
        if is_engines_socket(source):
            weak.append(f"it holds an engine's socket ({source})")
        elif mount.get("Type", "bind") == "bind" and os.path.realpath(source) in _WHOLE:
            weak.append(f"it has {source} of this machine, with the sockets in it")
    return weak


def folders_with_sockets(found: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """The folders of this machine in it in which an engine listens."""
    mounts = [one for one in found.get("Mounts") or () if one.get("Type", "bind") == "bind"]
    weak = []
    for source in (str(one.get("Source", "")) for one in mounts):
        held = [path for path in sockets_below(source, environ) if path != os.path.realpath(source)]
        if held and os.path.realpath(source) not in _WHOLE:
            weak.append(f"it has {source} of this machine, with an engine's socket in it ({held[0]})")
    return weak


def added_mounts(found: Mapping[str, Any], asked: Sequence[str]) -> list[str]:
    """What it has of this machine that was not asked for with these options of `create`: an engine's own defaults.

    A volume without a name is the image's own and goes with the container.
    """
    wanted = set()
    for option in asked:
        parts = dict(part.partition("=")[::2] for part in option.split(","))
        if parts.get("type") == "bind":
            wanted.add((parts.get("src"), parts.get("dst")))
    weak = []
    for mount in found.get("Mounts") or ():
        kind, source, target = (str(mount.get(key, "")) for key in ("Type", "Source", "Destination"))
        name = str(mount.get("Name", ""))
        if kind == "tmpfs" or (kind == "volume" and _ANONYMOUS(name)) or (source, target) in wanted:
            continue
        weak.append(f"it has {name or source} at {target}, which was not asked for")
    return weak


def other_proxies(found: Mapping[str, Any], env: Mapping[str, str]) -> list[str]:
    """The variables of proxies in it that lead elsewhere than the task's, by name: a value may have a password."""
    texts = (found.get("Config") or {}).get("Env") or ()
    pairs = [text.partition("=")[::2] for text in texts]
    other = sorted({name for name, value in pairs if name.lower().endswith("_proxy") and value != env.get(name, "")})
    return [f"it has a proxy of its own ({', '.join(other)})"] if other else []


def is_engines_socket(path: str) -> bool:
    """Whether this is the socket of an engine, or was when somebody named it so."""
    return os.path.basename(os.path.realpath(path)) in _SOCKETS or os.path.basename(path) in _SOCKETS


def sockets_below(folder: str, environ: Mapping[str, str]) -> list[str]:
    """Where engines listen at or below this path: of this machine's network, or one that these variables name."""
    named = (environ.get(name, "").partition("unix://")[2] for name in ("DOCKER_HOST", "CONTAINER_HOST"))
    there = [*filter(is_engines_socket, listed_sockets()), *filter(os.path.isabs, named)]
    real = os.path.realpath(folder)
    return sorted({path for path in map(os.path.realpath, there) if is_within(path, real)})
