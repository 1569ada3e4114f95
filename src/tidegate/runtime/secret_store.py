"""Secrets as they are kept: one file each below the state folder, which no task sees (INS-5, B119).

    secrets/NAME.json    hosts, place, variable, and where the value comes from
    keys/secrets         what seals values that a person pasted; made with the first one

Rules of the file:

* A value is in no file as it is: it is named (a variable, a file, a command), or sealed with AES-GCM. What a sealed
  value belongs to is part of the seal, so nobody leads it to another host without the key.
* Files are private to the user (0600) and read through no link. Errors name the secret, never a value.

What it does not do: keep a value from the user's own programs outside of tasks, which can read the key as well.
"""

from __future__ import annotations

import json
import os
import stat
from base64 import b64decode, b64encode

from tidegate.model.errors import StartError
from tidegate.model.value import Value
from tidegate.runtime.state import key_folder, make_private_folder, write_private, write_private_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

SOURCES = ("sealed", "env", "file", "command", "credential", "keyring")
PLACES = ("bearer", "basic", "header", "query", "body-field")
_KEY = "secrets"
_KEY_BYTES = 32  # AES-256
_NONCE = 12  # bytes, NIST SP 800-38D
_MOST = 1 << 16
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")


class OpenToOthersError(OSError):
    """A file that has to be this user's alone is not."""


class Stored(Value):
    """One secret without its value.

    `hosts` are (canonical host, port); `place` is one of PLACES with the header's or parameter's name in `field`;
    `variable` holds the stand-in in a task. `source` is one of SOURCES: `origin` is the variable, the file, the command
    with its arguments, the credential's name, or service and user of a keyring's entry; `sealed` is for the first one.
    """

    name: str
    hosts: tuple[tuple[str, int], ...]
    place: str
    field: str
    variable: str
    source: str
    origin: tuple[str, ...] = ()
    sealed: bytes = b""

    def file(self, environ: Mapping[str, str]) -> str:
        """Return the file that the value is in and that no task may see, '' where it is in none."""
        if self.source == "file":
            return self.origin[0]
        folder = environ.get("CREDENTIALS_DIRECTORY", "")
        return os.path.join(folder, self.origin[0]) if self.source == "credential" and folder else ""

    def belongs(self) -> str:
        """Say where it goes, for people."""
        hosts = ", ".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return f"{self.place}{f' {self.field}' if self.field else ''} of {hosts}"


def is_name(text: str) -> bool:
    """Whether this can name a secret and a variable (POSIX, 8.1)."""
    return bool(text) and len(text) <= 64 and text[0] in _LETTERS and all(c in _LETTERS or c.isdigit() for c in text)


def folder_of(state: str) -> str:
    """Return the folder of the secrets; it may not exist."""
    return os.path.join(state, "secrets")


def names(state: str) -> list[str]:
    """Return the names of all secrets, sorted."""
    try:
        found = os.listdir(folder_of(state))
    except OSError:
        return []
    return sorted(name.removesuffix(".json") for name in found if name.endswith(".json") and is_name(name[:-5]))


def load(state: str, name: str) -> Stored:
    """Return a secret.

    Raises:
        StartError: when there is none of this name, or its file cannot be used.
    """
    if not is_name(name) or not os.path.lexists(_path(state, name)):
        raise StartError(f"there is no secret {name!r}", fix=f"tidegate secret set {name or 'NAME'} --host HOST")
    try:
        return _read(name, json.loads(_private(_path(state, name))))
    except (OSError, ValueError, KeyError, TypeError):
        raise StartError(
            f"the secret {name!r} cannot be read: {_path(state, name)!r} is no such file of this user",
            fix=f"tidegate secret forget {name}, and set it again",
        ) from None


def load_all(state: str, wanted: Iterable[str]) -> tuple[Stored, ...]:
    """Return the secrets of a task.

    Raises:
        StartError: as `load`, or where two would have one variable.
    """
    found: dict[str, Stored] = {}
    for name in wanted:
        one = load(state, name)
        other = found.setdefault(one.variable, one)
        if other is not one:
            raise StartError(
                f"the secrets {other.name} and {name} are both for ${one.variable}",
                fix=f"tidegate secret set {name} … --env OTHER",
            )
    return tuple(found.values())


def save(state: str, secret: Stored) -> None:
    """Keep a secret, in place of one of the same name.

    Raises:
        StartError: when it cannot be kept.
    """
    fields: dict[str, Any] = {field: getattr(secret, field) for field in Stored._fields}
    fields["sealed"] = b64encode(secret.sealed).decode("ascii")
    try:
        for folder in (state, folder_of(state)):
            make_private_folder(folder)
        write_private(_path(state, secret.name), json.dumps(fields, indent=1).encode("ascii"))
    except OSError as error:
        raise _not_kept(secret.name, error) from None


def forget(state: str, name: str) -> bool:
    """Remove a secret; False where there was none."""
    if not is_name(name):
        return False
    try:
        os.unlink(_path(state, name))
    except FileNotFoundError:
        return False
    return True


def seal(state: str, secret: Stored, value: bytes) -> Stored:
    """Return the secret with a value sealed in it.

    Raises:
        StartError: when there is no key and none can be made.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        key = _key(state, make=True)
    except OpenToOthersError as error:
        raise _key_unusable(state, secret.name, str(error)) from None
    except OSError as error:
        raise _not_kept(secret.name, error) from None
    if len(key) != _KEY_BYTES:
        raise _key_unusable(state, secret.name, "it is no key")
    nonce = os.urandom(_NONCE)
    return secret.replace(sealed=nonce + AESGCM(key).encrypt(nonce, value, _bound(secret)))


def unseal(state: str, secret: Stored) -> bytes:
    """Return the value.

    Raises:
        StartError: when the key is gone, or the file was changed.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    sealed = secret.sealed
    try:
        return AESGCM(_key(state, make=False)).decrypt(sealed[:_NONCE], sealed[_NONCE:], _bound(secret))
    except OpenToOthersError as error:
        raise _key_unusable(state, secret.name, str(error)) from None
    except (OSError, ValueError, InvalidTag):
        raise StartError(
            f"the secret {secret.name} cannot be unsealed: its key is gone, or its file was changed",
            fix=f"tidegate secret set {secret.name} … again",
        ) from None


def _bound(secret: Stored) -> bytes:
    # What the seal says the value belongs to.
    return json.dumps([secret.name, secret.hosts, secret.place, secret.field]).encode("ascii")


def _key(state: str, *, make: bool) -> bytes:
    path = os.path.join(key_folder(state), _KEY)
    if make and not os.path.lexists(path):
        for folder in (state, key_folder(state)):
            make_private_folder(folder)
        write_private_once(path, os.urandom(32))  # never over one with which another command has just sealed
    return _private(path)


def _private(path: str) -> bytes:
    """Return a file of this user's alone."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise OpenToOthersError("it is open to others")
        return file.read(_MOST)


def _path(state: str, name: str) -> str:
    return os.path.join(folder_of(state), f"{name}.json")


def _read(name: str, told: Mapping[str, Any]) -> Stored:
    found = Stored(
        str(told["name"]),
        tuple((str(host), int(port)) for host, port in told["hosts"]),
        str(told["place"]),
        str(told["field"]),
        str(told["variable"]),
        str(told["source"]),
        tuple(map(str, told["origin"])),
        b64decode(told["sealed"]),
    )
    if found.name != name or found.place not in PLACES or found.source not in SOURCES or not is_name(found.variable):
        raise ValueError(name)
    return found


def _key_unusable(state: str, name: str, why: str) -> StartError:
    path = os.path.join(key_folder(state), _KEY)
    return StartError(
        f"the secret {name} cannot be sealed with the key in {path!r}: {why}",
        fix="remove that file: the next secret makes another, and those that were sealed with it are set again",
        code="secret-key",
    )


def _not_kept(name: str, error: OSError) -> StartError:
    return StartError(
        f"the secret {name} cannot be kept: {os.strerror(error.errno or 5).lower()}",
        fix="see that the state folder is yours and has room",
        code="state-folder",
    )
