"""The values of a task's secrets, got where the gate runs and nowhere else (INS-5, B119).

Rules of the file:

* The gate's process asks each source when the task starts. The front, and whatever is forked from it, never has a
  value that it did not have before; what it is told are the stand-ins.
* Variables of the caller that have a value in them go into the task with the stand-in in its place, in each form that
  is looked for in answers too (scrub.py): a URL with a password, a name and password in base64.
* No error repeats a value, or what a command printed.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from importlib.util import find_spec

from tidegate.inspect.placeholder import MOST, UnfitError, fits, make_placeholder
from tidegate.inspect.scrub import Scrubber
from tidegate.inspect.secrets import Place, Secret, Vault, Where
from tidegate.model.errors import StartError
from tidegate.runtime.model_keys import alone_at
from tidegate.runtime.secret_store import load, unseal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping

    from tidegate.runtime.secret_store import Stored

COMMAND_SECONDS = 60.0


def open_secrets(
    state: str,
    names: Iterable[str],
    environ: Mapping[str, str],
    kept: MutableMapping[str, str] | None = None,
    keys: Iterable[Stored] = (),
    *,
    asker: int = -1,
) -> tuple[Vault, dict[str, str]]:
    """Return the secrets of a task, and the variables that are another in it than in `environ`.

    `kept` are the stand-ins that the task has already, by name; those that are made now join them. `keys` are secrets
    that are in no store: those of an agent's model (model_keys.py). `asker` is a socket: a source that is still asked
    when its other end is closed is ended.

    Raises:
        StartError: where a source gives no value, one that no stand-in can be made for, or one that the task's stand-in
            does not fit.
    """
    kept = {} if kept is None else kept
    found = []
    own: dict[str, str] = {}
    wanted = [(name, load(state, name)) for name in names]
    wanted += [(f"${key.variable}", key) for key in keys]  # a secret may be called like somebody's variable
    for slot, stored in wanted:
        value = value_of(stored, state, environ, asker=asker)
        placeholder = kept[slot].encode("ascii") if slot in kept else stand_in(stored, value)
        if not fits(value, placeholder):
            raise StartError(
                f"the value of the secret {stored.name} has another shape than when the task began, and its stand-in"
                " does not fit it",
                fix="begin another task",
                code="secret-shape",
            )
        kept[slot] = placeholder.decode("ascii")
        field = stored.field.lower() if stored.place == "header" else stored.field
        place = Place(Where(stored.place), field.encode("ascii"))
        alone = alone_at(stored.variable, stored.hosts)
        found.append(Secret(stored.name, stored.hosts, place, value, placeholder, alone))
        own[stored.variable] = placeholder.decode("ascii")
    variables: dict[str, str] = {}
    cover = Scrubber((one.value, one.placeholder) for one in found).all
    for name, text in environ.items():
        covered = cover(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        if covered != text:
            variables[name] = covered
    return Vault(found), variables | own


def stand_in(stored: Stored, value: bytes) -> bytes:
    """Return a new placeholder for a value.

    Raises:
        StartError: where none can be made.
    """
    try:
        return make_placeholder(value, secrets.randbelow)
    except UnfitError as error:
        raise StartError(f"the secret {stored.name} cannot be used: {error}", fix="give another value") from None


def value_of(stored: Stored, state: str, environ: Mapping[str, str], *, asker: int = -1) -> bytes:
    """Return the value that the source gives now, without a newline at its end.

    Raises:
        StartError: where it gives none.
    """
    if stored.source == "sealed":
        value = unseal(state, stored)
    elif stored.source == "env":
        value = environ.get(stored.origin[0], "").encode("utf-8", "surrogateescape")
    elif stored.source == "file":
        value = _file(stored, stored.origin[0])
    elif stored.source == "credential":
        value = _credential(stored, environ)
    elif stored.source == "keyring":
        value = _keyring(stored, environ, asker)
    else:
        value = _command(stored, stored.origin, environ, asker)
    value = value.rstrip(b"\r\n")
    if not value:
        absent = stored.source == "env" and stored.origin[0] not in environ
        raise _nothing(stored, "it is not set here" if absent else "it gives nothing")
    return value


def source_of(stored: Stored) -> str:
    """Say where the value comes from, for people."""
    if stored.source == "sealed":
        return "sealed here"
    if stored.source == "command":
        return f"the command {os.path.basename(stored.origin[0])}"
    if stored.source == "keyring":
        return f"the keyring's entry of {stored.origin[1]} for {stored.origin[0]}"
    kind = {"env": "variable", "credential": "credential"}.get(stored.source, "file")
    return f"the {kind} {stored.origin[0]}"


def _credential(stored: Stored, environ: Mapping[str, str]) -> bytes:
    """Of a service of systemd: LoadCredential= and its relatives (systemd.exec(5))."""
    path = stored.file(environ)
    if not path:
        raise _nothing(stored, "CREDENTIALS_DIRECTORY is not set: systemd sets it for a unit with LoadCredential=")
    return _file(stored, path)


def _keyring(stored: Stored, environ: Mapping[str, str], asker: int) -> bytes:
    """By the keyring package's own program: a desktop that asks for a password holds up nothing but the start."""
    if find_spec("keyring") is None:
        raise StartError(
            f"the secret {stored.name} has no value: the package that reads the desktop's keyring is not installed",
            fix=f"{sys.executable} -m pip install keyring",
            code="packages",
        )
    # -I: nothing of the folder that a task works in is imported.
    return _command(stored, (sys.executable, "-I", "-m", "keyring", "get", *stored.origin), environ, asker)


def _file(stored: Stored, path: str) -> bytes:
    try:
        # A pipe that nobody writes to would be waited for without end.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _nothing(stored, f"it is no regular file: --from-command -- cat {path} reads it")
            return file.read(MOST + 2)
    except OSError as error:
        raise _nothing(stored, os.strerror(error.errno or 5).lower()) from None


def _command(stored: Stored, argv: tuple[str, ...], environ: Mapping[str, str], asker: int) -> bytes:
    from tidegate.runtime.printed import PrintedError, printed

    try:
        return printed(argv, environ, seconds=COMMAND_SECONDS, most=MOST + 2, asker=asker)
    except PrintedError as error:
        raise _nothing(stored, str(error)) from None


def open_to_others(stored: Stored) -> bool:
    """Whether every user of this machine can read or change the file that the value is in: no task sees it, they do."""
    try:
        return stored.source == "file" and bool(os.stat(stored.origin[0]).st_mode & (stat.S_IROTH | stat.S_IWOTH))
    except OSError:
        return False


def _nothing(stored: Stored, why: str) -> StartError:
    return StartError(
        f"the secret {stored.name} has no value: {source_of(stored)}: {why}",
        fix=f"tidegate secret test {stored.name}",
    )
