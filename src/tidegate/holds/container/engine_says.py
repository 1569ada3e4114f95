"""What docker and podman say, in our words: what each is, and why it failed (HLD-4, HLD-7).

Rules of the file: an engine's failure is mapped here, and only here, to a StartError whose fix can be typed.
"""

from __future__ import annotations

from tidegate.model.errors import StartError
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DOCKER, PODMAN = "docker", "podman"
_LONGEST_WHY = 400
_NOT_REACHED = (
    *("cannot connect to", "is the docker daemon running", "connection refused", "permission denied while"),
    *("error during connect", "unable to resolve docker endpoint", "unable to connect to podman"),
)
_VM_SYSTEMS = ("docker desktop", "orbstack", "rancher desktop", "colima", "lima")


class Facts(Value):
    """What an engine says of itself. `in_vm`: its containers run on another kernel than we do."""

    version: str
    rootless: bool
    in_vm: bool
    system: str


def facts_of(name: str, info: Any) -> Facts:
    """Read what an engine says of itself.

    Raises:
        StartError: where docker's program could not reach its daemon, and says so in an answer.
    """
    if not isinstance(info, dict):
        return Facts("", rootless=False, in_vm=False, system="")
    if name == DOCKER:
        if info.get("ServerErrors"):
            raise failure(DOCKER, "info", " ".join(map(str, info["ServerErrors"])))
        system = str(info.get("OperatingSystem", ""))
        rootless = any("rootless" in str(one) for one in info.get("SecurityOptions") or ())
        in_vm = any(one in system.lower() for one in _VM_SYSTEMS)
        return Facts(str(info.get("ServerVersion", "")), rootless=rootless, in_vm=in_vm, system=system)
    host = info.get("host") or {}
    remote = bool(host.get("serviceIsRemote"))
    rootless = bool((host.get("security") or {}).get("rootless"))
    version = str((info.get("version") or {}).get("Version", ""))
    system = str((host.get("distribution") or {}).get("distribution", ""))
    return Facts(version, rootless=rootless, in_vm=remote, system=system)


def without_image(name: str, image: str) -> StartError:
    """The error for an image that is not here."""
    return StartError(f"{name} does not have the image {image!r}", fix=f"{name} pull {image}", code="image-missing")


def failure(name: str, verb: str, said: str) -> StartError:
    """What the engine said when it failed, in our words."""
    text = " ".join(said.split())[-_LONGEST_WHY:]
    low = text.lower()
    if _any(low, "no such container", "no container with name or id", "no such object"):
        return StartError(f"{name} has no such container", fix=f"{name} ps -a", code="no-container")
    if "removal of container" in low and "already in progress" in low:
        return StartError(f"{name} removes that container already", code="removing")
    if _any(low, "no such image", "image not known", "unable to find image"):
        return without_image(name, "IMAGE")
    if _any(low, *_NOT_REACHED):
        return _down(name, text)
    if "error setting rlimit" in low:
        return StartError(
            f"{name} wants higher limits for its containers than this user may set ({text[-60:]})",
            fix="in ~/.config/containers/containers.conf, below [containers]: default_ulimits = "
            '["nofile=1024:1024", "nproc=4096:4096"]',
            code="engine-limits",
        )
    return StartError(f"{name} {verb} failed: {text or 'it does not say why'}", code="engine")


def not_here(name: str) -> StartError:
    """The error for an engine without its program."""
    package = "docker.io" if name == DOCKER else "podman"
    return StartError(
        f"{name} is not installed", fix=f"apt install {package}; or another --hold", code="engine-missing"
    )


def _down(name: str, text: str) -> StartError:
    if name == DOCKER:
        fix = "start it (systemctl start docker), or add yourself to its group; DOCKER_HOST names another"
    else:
        fix = "podman machine start; CONTAINER_HOST names another"
    return StartError(f"{name} cannot be reached: {text}", fix=fix, code="engine-down")


def _any(text: str, *parts: str) -> bool:
    return any(part in text for part in parts)
