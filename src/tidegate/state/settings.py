"""The server's settings: names, defaults, and what a value may be (POL-13, ASK-2).

Whether a default host is a rule is for whoever knows the grammar of rules; here it is a short printable text.
"""

from __future__ import annotations

from math import isfinite

from tidegate.model.errors import UsageError
from tidegate.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NETWORK_DEFAULTS = ("none", "allowlist")
SHORTEST_WAIT = 60  # seconds
LONGEST_WAIT = 8 * 3600
MOST_HOSTS = 1000
LONGEST_HOST = 300
LONGEST_URL = 2000
LONGEST_IMAGE = 300


class Settings(Value):
    """What applies to tasks that say nothing of their own, and how people hear of questions.

    `wait_seconds` is how long a question waits. `notify` shows notifications on the server's desktop; `webhook` is
    where questions are posted, '' for nowhere (its key is no setting: it is never shown). `relay_image` is that of the
    relays of container holds, '' for tidegate's own (HLD-4).
    """

    network_default: str = "none"
    default_hosts: tuple[str, ...] = ()
    wait_seconds: float = 900
    notify: bool = True
    webhook: str = ""
    relay_image: str = ""


class SettingError(UsageError):
    """A setting that does not exist, or a value it cannot have."""


def changed(settings: Settings, changes: Mapping[str, object]) -> Settings:
    """Return the settings with these changes.

    Raises:
        SettingError: for the first of them that cannot be.
    """
    checked: dict[str, object] = {}
    for name, value in changes.items():
        if name == "network_default":
            if value not in NETWORK_DEFAULTS:
                raise _wrong(name, value, "none or allowlist")
            checked[name] = value
        elif name == "default_hosts":
            checked[name] = _hosts(value)
        elif name == "wait_seconds":
            if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
                raise _wrong(name, value, "a number of seconds")
            if not SHORTEST_WAIT <= value <= LONGEST_WAIT:
                raise _wrong(name, value, f"{SHORTEST_WAIT} to {LONGEST_WAIT} seconds (1 minute to 8 hours)")
            checked[name] = value
        elif name == "notify":
            if not isinstance(value, bool):
                raise _wrong(name, value, "true or false")
            checked[name] = value
        elif name == "webhook":
            if not isinstance(value, str) or len(value) > LONGEST_URL or not value.isprintable():
                raise _wrong(name, value, "https://HOST/PATH")
            checked[name] = value
        elif name == "relay_image":
            checked[name] = _image(value)
        else:
            raise SettingError(f"there is no setting {name!r}", fix=f"one of {', '.join(Settings._fields)}")
    return settings.replace(**checked)


def plain(settings: Settings) -> dict[str, object]:
    """Return the settings as they are kept."""
    return {
        "network_default": settings.network_default,
        "default_hosts": list(settings.default_hosts),
        "wait_seconds": settings.wait_seconds,
        "notify": settings.notify,
        "webhook": settings.webhook,
        "relay_image": settings.relay_image,
    }


def shown(settings: Settings) -> dict[str, object]:
    """Return the settings as people and logs see them: of the webhook its place, since its path may be a secret."""
    start, slashes, rest = settings.webhook.partition("://")
    place, slash, _ = rest.partition("/")
    return plain(settings) | {"webhook": start + slashes + place.partition("?")[0] + ("/..." if slash else "")}


def _hosts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong("default_hosts", value, "a list of hosts")
    if len(value) > MOST_HOSTS:
        raise SettingError(f"default_hosts: {len(value)} hosts are too many", fix=f"at most {MOST_HOSTS}")
    for host in value:
        if not isinstance(host, str) or not host or len(host) > LONGEST_HOST or not host.isprintable():
            raise _wrong("default_hosts", host, "a host such as api.example.com")
    return tuple(value)


def _image(value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_IMAGE or value.startswith("-"):
        raise _wrong("relay_image", value, "an image, such as registry.example.com/relay:1")
    if not all(letter.isascii() and (letter.isalnum() or letter in "._-/:@") for letter in value):
        raise _wrong("relay_image", value, "an image, such as registry.example.com/relay:1")
    return value


def _wrong(name: str, value: object, instead: str) -> SettingError:
    return SettingError(f"{name}: {ascii(value)[:80]} is none", fix=f"write {instead}")
