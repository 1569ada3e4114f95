"""Where tidegate keeps what it writes: the user's state folder, and one folder a task in it.

    $XDG_STATE_HOME/tidegate  or  ~/.local/state/tidegate
        tasks/ID/network.jsonl
        log/actions.jsonl           of a server: what happened to all tasks (journal/actions.py)
        keys/                       what seals it, and secrets
        secrets/                    without their values (runtime/secret_store.py)
        sinks/                      where the log is sent, and how far that has come (server/sinks.py)
        run/                        the server's sockets (server/place.py)

Everything is private to the user (0700). A folder that belongs to someone else, or is a symlink, is refused rather
than used. At most `KEPT_TASKS` task folders stay; the oldest go first. The configuration folder is only read.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LOG_NAME = "network.jsonl"
RUN_FOLDER = "run"
FRONT_SOCKET = "front.sock"
KEPT_TASKS = 500
_SWEEP_AT_ONCE = 50
_OUR_NAMES = frozenset(("tasks", RUN_FOLDER, "log", "keys", "secrets", "sinks", LOG_NAME))
_LONGEST_ADDRESS = 107  # bytes of sun_path, unix(7)
_ID_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # no i, l, o, 0, 1: people read these aloud


def home_folder(environ: Mapping[str, str]) -> str:
    """Return the user's home: $HOME, or what the password file says.

    Raises:
        StartError: when neither names an absolute folder.
    """
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = ""
    if not os.path.isabs(home):
        raise StartError(
            "there is no home folder to keep the record in", fix="set HOME, or XDG_STATE_HOME and --log FILE"
        )
    return home


def state_folder(environ: Mapping[str, str]) -> str:
    """Return the path of tidegate's state folder; it may not exist yet."""
    return _xdg(environ, "XDG_STATE_HOME", ".local/state")


def log_folder(state: str) -> str:
    """Return the folder of the action log below the state folder; it may not exist yet."""
    return os.path.join(state, "log")


def key_folder(state: str) -> str:
    """Return the folder of the keys below the state folder; it may not exist yet."""
    return os.path.join(state, "keys")


def sinks_folder(state: str) -> str:
    """Return the folder of the sinks below the state folder; it may not exist."""
    return os.path.join(state, "sinks")


def config_folder(environ: Mapping[str, str]) -> str:
    """Return the path of tidegate's configuration folder; it may not exist."""
    return _xdg(environ, "XDG_CONFIG_HOME", ".config")


def cache_folder(environ: Mapping[str, str]) -> str:
    """Return the path of the cache folder, where the launcher keeps an environment it cannot keep beside itself."""
    return _xdg(environ, "XDG_CACHE_HOME", ".cache")


def default_folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return where these three are when no XDG variable moves them: what a task puts there, the next run may read."""
    try:
        home = home_folder(environ)
    except StartError:
        return ()
    return tuple(os.path.join(home, part, "tidegate") for part in (".local/state", ".config", ".cache"))


def _xdg(environ: Mapping[str, str], variable: str, default: str) -> str:
    # The XDG base directory specification: a relative path is invalid and ignored.
    base = environ.get(variable, "")
    if not os.path.isabs(base):
        base = os.path.join(home_folder(environ), default)
    return os.path.join(base, "tidegate")


def new_task_id(now: tuple[int, ...], random: bytes) -> str:
    """Return a short id for a task that begins at `now` (year, month, day, hour, minute, second): sorts by time."""
    year, month, day, hour, minute, second = now[:6]
    tail = "".join(_ID_LETTERS[byte % len(_ID_LETTERS)] for byte in random[:4])
    return f"{year:04d}{month:02d}{day:02d}-{hour:02d}{minute:02d}{second:02d}-{tail}"


def make_private_folder(path: str) -> None:
    """Make `path` and what leads to it; it is ours and nobody else's when this returns.

    Raises:
        StartError: when it cannot be made, is in a home that is not there, or is no private folder of this user.
    """
    need_home(path, os.environ)
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        found = _made(path)
    except OSError as error:
        raise StartError(
            f"the folder {path!r} for tidegate's records cannot be made: {os.strerror(error.errno or errno.EIO)}",
            fix="set XDG_STATE_HOME to a folder that can be written",
            code="state-folder",
        ) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise StartError(
            f"{path!r} is not a folder of this user", fix="move it away, or set XDG_STATE_HOME", code="state-folder"
        )
    if found.st_mode & 0o077:
        try:
            # Somebody may have made it with the usual umask; but what holds other things is not ours to close.
            if set(os.listdir(path)) <= _OUR_NAMES:
                os.chmod(path, 0o700)
                return
        except OSError:
            pass
        raise StartError(
            f"the folder {path!r} is open to others", fix=f"chmod 700 {path}, or set XDG_STATE_HOME to another folder"
        )


def need_home(path: str, environ: Mapping[str, str]) -> None:
    """See that the home is there that a folder is to be in: root could make it, and a wrong HOME would be a folder.

    Raises:
        StartError: when it is not.
    """
    home = os.path.normpath(environ.get("HOME") or "/")
    if path.startswith(f"{home}/") and not os.path.isdir(home):
        raise StartError(
            f"the home folder {home[:200]!r} is not there",
            fix="set HOME to a folder that is, or XDG_STATE_HOME",
            code="state-folder",
        )


def _made(path: str) -> os.stat_result:
    # Not looked for first: another run may make it meanwhile. What is there counts, whoever made it.
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return os.lstat(path)
    return os.lstat(path)


def write_private(path: str, content: bytes) -> None:
    """Write a file of this user's alone, at once or not at all, through no link.

    Raises:
        OSError: when it cannot be written.
    """
    _put(path, content, os.replace)


def write_private_once(path: str, content: bytes) -> bool:
    """Write it as `write_private` does, unless there is one by then: of several writers the first's stays.

    Returns whether it is this one's.

    Raises:
        OSError: when it cannot be written.
    """
    try:
        _put(path, content, os.link)
    except FileExistsError:
        return False
    return True


def _put(path: str, content: bytes, place: Callable[[str, str], None]) -> None:
    # A name of its own: two commands may write the same file at the same time.
    fresh = f"{path}.{os.urandom(6).hex()}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(content)
        place(fresh, path)
    finally:
        if os.path.lexists(fresh):
            os.unlink(fresh)


def front_socket(state: str) -> str:
    """Return where the server of this state folder listens for fronts."""
    return os.path.join(state, RUN_FOLDER, FRONT_SOCKET)


def make_task_folder(state: str, task: str) -> str:
    """Make the folder of a new task below the state folder and return its path.

    Raises:
        StartError: when it cannot be made.
    """
    tasks = os.path.join(state, "tasks")
    make_private_folder(state)
    make_private_folder(tasks)
    folder = os.path.join(tasks, task)
    make_private_folder(folder)
    return folder


def task_folders(state: str) -> list[str]:
    """Return the names of all task folders, oldest first; empty where there is none."""
    try:
        return sorted(os.listdir(os.path.join(state, "tasks")))
    except OSError:
        return []


def sweep_tasks(state: str) -> None:
    """Remove the oldest task folders above the bound, but for those of living tasks, whose log is locked.

    Never raises: a record that stays is no harm.
    """
    names = task_folders(state)
    for name in names[: max(0, min(len(names) - KEPT_TASKS, _SWEEP_AT_ONCE))]:
        folder = os.path.join(state, "tasks", name)
        try:
            if _is_written(os.path.join(folder, LOG_NAME)):
                continue
            for file in os.listdir(folder):
                _remove(os.path.join(folder, file))
            os.rmdir(folder)
        except OSError:
            continue


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except IsADirectoryError:  # of a tool's program, where everything that would have removed it was killed
        from shutil import rmtree

        rmtree(path)


def _is_written(path: str) -> bool:
    """Whether a gate holds this log open (it has a shared lock on it)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


class unix_address:  # noqa: N801  used as a function; contextlib costs each start 5 ms
    """Give the address of a unix socket, however long its path is: a long one goes by its folder's descriptor.

    Raises:
        OSError: on entering, when the folder of a long path cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = -1

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= _LONGEST_ADDRESS:
            return self._path
        folder, name = os.path.split(self._path)
        self._folder = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._folder}/{name}"

    def __exit__(self, *_: object) -> None:
        if self._folder >= 0:
            os.close(self._folder)
