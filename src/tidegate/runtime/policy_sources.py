"""Which policy is in force for a run: files read, layers joined (POL-8).

Nearest last: the administrator's (administrator.py), the user's `policy.yaml` in the configuration folder, the folder's
`tidegate.yaml` (folder_policy.py), `--policy FILE`, the options of the command line, the hosts of an agent (agent.py).
Who names a policy has spoken about a folder's file that nobody trusted: it is left aside then.
"""

from __future__ import annotations

import errno
import os
import stat

from tidegate.model.errors import StartError, UsageError
from tidegate.model.rule import Layer
from tidegate.policy.layers import REGISTRIES, PolicyLayer, command_line, join
from tidegate.policy.rules import RuleError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.policy.policy import Policy
    from tidegate.runtime.agent import Agent

USER_FILE = "policy.yaml"
MAX_BYTES = 8 * 1024 * 1024  # POL-0


def read_policy_file(path: str, *, folder: bool = False, what: str = "policy") -> bytes:
    """Return the bytes of a policy file; that of a `folder`, where tasks write, is a plain file and no link.

    `what` is how an error calls the file.

    Raises:
        UsageError: when it cannot be read as a file, or is larger than a policy may be.
        StartError: for a folder's file that is a link, and one with other names, by which a task could change it.
    """
    try:
        # Not blocking, so that a pipe nobody writes to is refused and not waited for.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if folder else 0))
    except OSError as error:
        if folder and error.errno == errno.ELOOP:
            raise StartError(
                f"{path!r} is a symbolic link, and what it leads to could change",
                fix=f"put the file itself there, or give it with --policy {os.path.realpath(path)}",
                code="untrusted-folder",
            ) from None
        why = os.strerror(error.errno or errno.EIO)
        raise UsageError(f"the {what} {path!r} cannot be read: {why}", fix="name a file that can be read") from None
    try:
        found = os.fstat(fd)
        mode = found.st_mode
        if stat.S_ISDIR(mode):
            raise UsageError(
                f"the {what} {path!r} is a folder",
                fix=f"name a file in it, such as {path}/{what.partition(' ')[0]}.yaml",
            )
        if not stat.S_ISREG(mode) and (folder or not stat.S_ISFIFO(mode)):
            raise UsageError(f"the {what} {path!r} is not a file", fix="name a file")
        if stat.S_ISREG(mode) and found.st_nlink > 1 and os.access(path, os.W_OK):
            raise StartError(
                f"the {what} {path!r} has another name (a hard link), by which a task could change it",
                fix="give a copy of it (cp), which has one",
                code="policy-links",
            )
        os.set_blocking(fd, True)
        with open(fd, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        why = os.strerror(error.errno or errno.EIO)
        raise UsageError(f"the {what} {path!r} cannot be read: {why}", fix="name a file that can be read") from None
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"the {what} {path!r} is larger than 8 MiB", fix="a policy is a list of hosts; see docs/policy.md"
        )
    return data


def option_layer(
    *,
    allow: Sequence[str] = (),
    ask: Sequence[str] = (),
    deny: Sequence[str] = (),
    profile: str = "",
    files: str = "",
    registries: str = "",
) -> PolicyLayer:
    """Return the layer of the command line's own options.

    Raises:
        UsageError: when one of them is no rule, or there is no such profile or mode of registries.
    """
    if registries and registries not in REGISTRIES:
        raise UsageError(f"there is no --registries {_shown(registries)}", fix=f"one of {', '.join(REGISTRIES)}")
    for option, texts in (("--allow", allow), ("--ask-for", ask), ("--deny", deny)):
        for text in texts:
            try:
                command_line(allow=[text])
            except RuleError as error:
                raise UsageError(f"{option} {_shown(text)}: {error.what}", fix=error.advice) from None
    try:
        return command_line(
            allow=allow,
            ask=ask,
            deny=deny,
            profile=profile or None,
            files=files or None,
            registries=registries or None,
        )
    except RuleError as error:
        raise UsageError(f"--profile {_shown(profile)}: {error.what}", fix=error.advice) from None


def policy_in_force(
    *,
    folder: str,
    config: str,
    state: str,
    options: PolicyLayer,
    policy_file: str = "",
    trust_folder: bool = False,
    no_folder_policy: bool = False,
    agent: Agent | None = None,
) -> Policy:
    """Read what there is to read and join it into the policy of one run; of an `agent`, what the profile gives it.

    `config` and `state` are tidegate's folders of these names; which bytes of the folder's file a person has trusted is
    known from the second.

    Raises:
        UsageError: for wrong text anywhere, all errors of a file at once.
        StartError: for a folder's file that nobody trusted, and for what the administrator forbids.
    """
    from tidegate.runtime.administrator import administrator_layer, refuse_what_is_locked
    from tidegate.runtime.folder_policy import folder_policy
    from tidegate.runtime.remembered import remembered_hosts

    below, above = [], [options]
    notes: tuple[str, ...] = ()
    administrator = administrator_layer()
    if administrator is not None:
        if trust_folder:
            refuse_what_is_locked("trust-folder", "--trust-folder", administrator)
        below.append(administrator)
    user_file = os.path.join(config, USER_FILE)
    if os.path.lexists(user_file):
        below.append(_load(user_file, user_file, Layer.USER))
    if policy_file:
        from tidegate.runtime.imported_policy import policy_layer

        layer, notes = policy_layer(policy_file, folder)
        above.insert(0, layer)
    found = None if no_folder_policy else folder_policy(folder, state, trusted=trust_folder)
    try:
        if found is not None and (found.trusted or found.known is not None or not policy_file):
            below.append(found.layer_between(below, above))
        remembered = remembered_hosts(folder, state)
        if remembered is not None:
            above.append(remembered)
        policy = join(*below, *above)
        added = agent.layer(policy.profile) if agent is not None else None
        policy = policy if added is None else join(*below, *above, added)
    except RuleError as error:
        raise UsageError(error.what, fix=error.advice) from None
    if policy.profile == "audit" and administrator is not None:
        refuse_what_is_locked("audit", "the profile audit", administrator)
    return policy.replace(notes=(*notes, *policy.notes)) if notes else policy


def is_strict(files: str) -> bool:
    """Say whether all is read-only but what is named: root could write what the machine runs later (HLD-15)."""
    return files == "strict" if files else os.geteuid() == 0


def files_without_gate(option: str, *, config: str, state: str) -> str:
    """Return what the option and the policies of user and administrator say of files where there is no gate.

    The rest of those policies has no meaning there.

    Raises:
        UsageError: for wrong text.
    """
    from tidegate.runtime.administrator import FILE

    if not os.path.lexists(FILE) and not os.path.lexists(os.path.join(config, USER_FILE)):
        return option
    options = option_layer(files=option)
    return policy_in_force(folder="", config=config, state=state, options=options, no_folder_policy=True).files


def _load(path: str, shown: str, layer: Layer) -> PolicyLayer:
    from tidegate.policy.loader import load_policy

    return load_policy(read_policy_file(path), shown, layer)


def _shown(text: str) -> str:
    """The text as a person may see it: control characters escaped, not too long (ASK-6)."""
    escaped = ascii(text)
    return escaped if len(escaped) <= 80 else escaped[:77] + "…'"
