"""The systemd units of the server, for `tidegate serve --print-unit` (systemd.service(5), systemd.exec(5)). Pure.

`user` is for the manager of one user (systemctl --user), `system` a template for a machine where nobody logs in:
tidegate@USER.service.

Rules of the file: nothing here may give the server other user or PID namespaces than those who run tasks have, or it
would take them for tasks and refuse them (peers.py): no PrivateUsers=, no PrivatePIDs=, and in a user's manager, which
makes a user namespace for them, no mount namespace either. Nothing may hide a path that a front can see: the server
writes the record where `--log` says. So no PrivateTmp=, ProtectHome= or ProtectSystem=strict. What a unit cannot hold
in, the tasks' own holds do: the server starts no task itself.
"""

from __future__ import annotations

from tidegate.model.errors import UsageError

KINDS = ("user", "system")
_NEVER_RUN = frozenset("\"'\\")
_MOST_FILES = 524288  # two descriptors a tunnel; systemd's own hard limit

_COMMON = """\
Type=exec
ExecStart={command}
Restart=on-failure
RestartSec=1
# 78: another server runs, or its folder cannot be used; a restart mends neither.
RestartPreventExitStatus=78
TimeoutStopSec=15
LimitNOFILE={files}
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
"""

_SYSTEM = """\
User=%i
CapabilityBoundingSet=
ProtectSystem=full
ProtectClock=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
"""

_HOW = {
    "user": """\
# tidegate serve --print-unit user > ~/.config/systemd/user/tidegate.service
# systemctl --user enable --now tidegate
""",
    "system": """\
# tidegate serve --print-unit system > /etc/systemd/system/tidegate@.service
# systemctl enable --now tidegate@USER
""",
}
_TARGET = {"user": "default.target", "system": "multi-user.target"}


def unit(kind: str, program: str, *, state_home: str = "") -> str:
    """Return the text of a unit that runs this program; `state_home` is the XDG_STATE_HOME to give it, '' for none.

    Raises:
        UsageError: where the program's path is one that systemd runs nothing from.
    """
    if not program.isprintable() or set(program) & _NEVER_RUN:
        raise UsageError(
            f"systemd runs no program whose path has quotes or backslashes, as {ascii(program)[:200]} has",
            fix="move tidegate to another folder",
            code="unit",
        )
    lines = [
        _HOW[kind],
        "[Unit]\nDescription=Tidegate: the gate and the record of tasks\n",
        "After=network-online.target\nWants=network-online.target\n" if kind == "system" else "",
        "\n[Service]\n",
        _COMMON.format(command=f"{quoted(program)} serve", files=_MOST_FILES),
        f"Environment={quoted(f'XDG_STATE_HOME={state_home}')}\n" if state_home and kind == "user" else "",
        _SYSTEM if kind == "system" else "",
        f"\n[Install]\nWantedBy={_TARGET[kind]}\n",
    ]
    return "".join(lines)


def quoted(text: str) -> str:
    """Return text as one word of a unit's line (systemd.syntax(7)): no specifier or escape is left in it."""
    plain = "".join(_ESCAPED.get(char, char) for char in text)
    return f'"{plain}"'


_ESCAPED = {"\\": "\\\\", '"': '\\"', "%": "%%", "\n": "\\n", "\t": "\\t"}
