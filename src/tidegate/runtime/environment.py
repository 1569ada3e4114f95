"""The environment of a task (GAT-10, B100, B110, B133, B137).

What the caller has is kept, but for what would lead a program past the gate: every variable that names a proxy goes,
in any spelling, with the credentials it may carry. What is set instead is the table in `client_settings`. No
credential is ever in it: which task is speaking follows from the listener.
"""

from __future__ import annotations

from tidegate.runtime.client_settings import GIT_CONFIG, HOST, NO_PROXY, PORT, PROXY_URL, SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

OWN_LOOPBACK_NO_PROXY = "localhost,127.0.0.1,::1"
"""The common subset of what clients parse: no CIDR, no brackets, no `*`, no spaces (B133)."""

_JAVA_DIRECT = "localhost|127.*|[::1]"  # as client_settings.py has it
_MAX_GIT_PAIRS = 1000  # a caller's count above this is nonsense, and git would fail on it anyway


def task_environment(
    caller: Mapping[str, str],
    *,
    task: str,
    host: str,
    port: int,
    own_loopback: bool,
    capture: bool = False,
    own_names: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return the environment of a task behind a gate at `host:port`.

    `own_loopback` says that the task's loopback is not the machine's, so traffic to it may stay inside; `own_names`
    are other names and addresses of the task itself, to which the same applies (B80).
    """
    values = {
        PROXY_URL: f"http://{host}:{port}",
        HOST: host,
        PORT: str(port),
        NO_PROXY: ",".join((OWN_LOOPBACK_NO_PROXY, *own_names)) if own_loopback else "",
    }
    environment = without_proxies(caller)
    for name, value, when, join, _tool, _tried in SETTINGS:
        if when == "no-capture" and capture:
            continue
        text = _fill(value, values)
        if not own_loopback:  # what is at this machine's loopback is reached through the gate, or not at all
            text = text.replace(_JAVA_DIRECT, "")
        before = environment.get(name)
        if before and join == "append":
            text = f"{before} {text}"
        environment[name] = text
    _add_git_config(environment, values)
    environment["TIDEGATE_TASK"] = task
    return environment


def without_proxies(caller: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's variables without those that name a proxy, in any spelling."""
    return {name: value for name, value in caller.items() if not _names_a_proxy(name)}


def _names_a_proxy(name: str) -> bool:
    lower = name.lower().replace("-", "_")
    return lower.endswith(("_proxy", "_noproxy")) or lower in ("proxy", "noproxy", "node_use_env_proxy")


def _fill(text: str, values: dict[str, str]) -> str:
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text


def _add_git_config(environment: dict[str, str], values: dict[str, str]) -> None:
    text = environment.get("GIT_CONFIG_COUNT", "0")
    count = int(text) if text.isascii() and text.isdigit() and int(text) <= _MAX_GIT_PAIRS else 0
    for number, (key, value) in enumerate(GIT_CONFIG, count):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = _fill(value, values)
    environment["GIT_CONFIG_COUNT"] = str(count + len(GIT_CONFIG))
