"""One class a proxy: how it is configured, started, and asked for its version.

Each is set up as its operator would for many short tunnels: no cache, no limits in the way, one list of allowed
destinations, and a log line per connection where the proxy can write one, because tidegate's journal is on too.
`settings` says so in words; the table in RESULTS.md quotes it. The fetching of the address is left to the proxy.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, ClassVar

from bench import processes
from bench.build import ROOT, VENV, find
from bench.loads import DENIED, NAME, Origin

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL_MODES = frozenset({"tunnels", "names", "throughput", "refuse", "get", "idle"})


def free_port() -> int:
    """Return a port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether something accepts on this port of 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Peer:
    """A proxy that can be started with its own origin and ended again."""

    name: ClassVar[str]
    package: ClassVar[str] = ""  # what build.install_peers calls it; '' where nothing is installed
    settings: ClassVar[str]
    modes: ClassVar[frozenset[str]] = ALL_MODES
    patience: ClassVar[float] = 20.0

    def __init__(self, folder: str) -> None:
        self.folder = os.path.join(folder, self.name)
        os.makedirs(self.folder, exist_ok=True)
        self.origin = self.make_origin()
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def make_origin(self) -> Origin:
        """Return a running origin of its own."""
        return Origin()

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """The file that takes what it prints."""
        return os.path.join(self.folder, "output")

    def path(self, name: str) -> str:
        """Return the path of one of its files."""
        return os.path.join(self.folder, name)

    def write(self, name: str, text: str) -> str:
        """Write one of its files and return the path."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def command(self) -> list[str]:
        """Write its configuration and return the command that runs it in the foreground."""
        raise NotImplementedError

    def environment(self) -> dict[str, str] | None:
        """Return its environment; None for ours."""
        return None

    def start(self) -> None:
        """Start it and wait until it listens.

        Raises:
            BenchError: when it does not come up.
        """
        self.process = processes.start(self.command(), log=self.log, env=self.environment(), cwd=self.folder)
        what = f"{self.name} (its output: {self.log})"
        processes.wait_until(lambda: listens(self.port), what, seconds=self.patience, process=self.process)

    def pids(self) -> list[int]:
        """Return its processes."""
        return processes.tree_of(self.process.pid) if self.process else []

    def stop(self) -> None:
        """End it and its origin."""
        if self.process:
            processes.stop(self.process)
        self.origin.stop()

    @classmethod
    def version(cls) -> str:
        """Return the version it gives itself."""
        raise NotImplementedError


def said_by(command: Sequence[str], pattern: str) -> str:
    """Return the first group of `pattern` in what the command prints, or `unknown`."""
    try:
        done = subprocess.run(list(command), capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    found = re.search(pattern, (done.stdout + done.stderr).decode(errors="replace"))
    return found.group(1) if found else "unknown"


def give_to(user: str, *paths: str) -> None:
    """Make files those of a user: proxies that give up root must still reach their folder."""
    if os.geteuid() == 0:
        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            return
        for path in paths:
            os.chown(path, entry.pw_uid, entry.pw_gid)


class Squid(Peer):
    """The proxy most networks have."""

    name = "squid"
    package = "squid"
    settings = "foreground, one worker, nothing cached, access log to a file with buffered writes"
    access_log = "stdio:{path}/access.log"

    def command(self) -> list[str]:
        """Write what it reads, return what runs it."""
        user = "proxy" if os.geteuid() == 0 and _mapped("proxy") else ""
        config = f"""
{self.listening()}
acl here dst {self.origin.address}
acl name dstdomain {NAME}
acl port port {" ".join(map(str, self.origin.ports.values()))}
http_access deny !port
http_access allow name
http_access allow here
http_access deny all
cache deny all
cache_mem 0
access_log {self.access_log.format(path=self.folder)}
buffered_logs on
cache_log {self.folder}/cache.log
pid_filename {self.folder}/squid.pid
coredump_dir none
hosts_file /etc/hosts
pinger_enable off
icp_port 0
via off
forwarded_for delete
shutdown_lifetime 0 seconds
max_filedescriptors 16384
{f"cache_effective_user {user}" if user else ""}
"""
        path = self.write("squid.conf", config)
        if user:
            give_to(user, self.folder, path)
            for parent in _parents(self.folder):
                os.chmod(parent, os.stat(parent).st_mode | 0o011)
        return [self.program(), "-N", "-d0", "-f", path]

    def listening(self) -> str:
        """Return the lines about where it listens, and for what."""
        return f"http_port 127.0.0.1:{self.port}"

    def program(self) -> str:
        """Return what is run."""
        return find("squid") or "squid"

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        return said_by([find("squid") or "squid", "-v"], r"Version (\S+)")


class SquidWithoutLog(Squid):
    """The same without a log, so that the table shows what squid's log costs it."""

    name = "squid, no log"
    settings = "as squid, access_log none"
    access_log = "none"
    modes = frozenset({"tunnels", "get"})


def _parents(path: str) -> list[str]:
    found = []
    while path not in {ROOT, "/"}:
        path = os.path.dirname(path)
        found.append(path)
    return found


def _mapped(user: str) -> bool:
    """Whether this user exists and its number means something in our user namespace."""
    try:
        number = pwd.getpwnam(user).pw_uid
    except KeyError:
        return False
    with open("/proc/self/uid_map", encoding="ascii") as ranges:
        return any(
            int(start) <= number < int(start) + int(length) for start, _, length in (line.split() for line in ranges)
        )


class Tinyproxy(Peer):
    """The small one: a thread a connection."""

    name = "tinyproxy"
    package = "tinyproxy"
    settings = "foreground, MaxClients 4096, FilterDefaultDeny with an exact list, LogLevel Connect to a file"
    log_level = "Connect"

    def command(self) -> list[str]:
        """Write what it reads, return what runs it."""
        user = "tinyproxy" if os.geteuid() == 0 and _mapped("tinyproxy") else ""
        hosts = self.write("filter", f"^{re.escape(self.origin.address)}$\n^{re.escape(NAME)}$\n")
        ports = "\n".join(f"ConnectPort {port}" for port in self.origin.ports.values())
        config = f"""
{f"User {user}" if user else ""}
Port {self.port}
Listen 127.0.0.1
Timeout 600
MaxClients 4096
LogFile "{self.folder}/tinyproxy.log"
LogLevel {self.log_level}
PidFile "{self.folder}/tinyproxy.pid"
Allow 127.0.0.0/8
DisableViaHeader Yes
Filter "{hosts}"
FilterType ere
FilterDefaultDeny Yes
{ports}
ConnectPort 443
"""
        path = self.write("tinyproxy.conf", config)
        if user:
            give_to(user, self.folder, path, hosts)
            for parent in _parents(self.folder):
                os.chmod(parent, os.stat(parent).st_mode | 0o011)
        return [find("tinyproxy") or "tinyproxy", "-d", "-c", path]

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        return said_by([find("tinyproxy") or "tinyproxy", "-v"], r"tinyproxy (\S+)")


class TinyproxyWithoutLog(Tinyproxy):
    """The same, saying nothing of connections."""

    name = "tinyproxy, no log"
    settings = "as tinyproxy, LogLevel Critical"
    log_level = "Critical"
    modes = frozenset({"tunnels", "refuse"})


class ProxyPy(Peer):
    """proxy.py: Python, one process a core."""

    name = "proxy.py"
    package = "proxy.py"
    settings = "its defaults (as many workers as cores), log level error, one filtered host"

    def command(self) -> list[str]:
        """Write what it reads, return what runs it."""
        plugin = "proxy.plugin.FilterByUpstreamHostPlugin"
        denied = DENIED.rpartition(":")[0]
        return [
            *(os.path.join(VENV, "bin", "python"), "-m", "proxy", "--hostname", "127.0.0.1", "--port", str(self.port)),
            *("--log-level", "e", "--plugins", plugin, "--filtered-upstream-hosts", denied),
            *("--data-dir", self.folder),
        ]

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        return _package_version("proxy.py")


class Pproxy(Peer):
    """pproxy: Python, asyncio, one process."""

    name = "pproxy"
    package = "pproxy"
    settings = "one HTTP listener, direct; it closes without an answer where a host is blocked, so no refusals"
    modes = frozenset({"tunnels", "names", "throughput", "get", "idle"})

    def command(self) -> list[str]:
        """Write what it reads, return what runs it."""
        return [os.path.join(VENV, "bin", "pproxy"), "-l", f"http://127.0.0.1:{self.port}"]

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        return _package_version("pproxy")


class Mitmproxy(Peer):
    """mitmproxy, told to leave every host alone, so that it only tunnels."""

    name = "mitmproxy"
    package = "mitmproxy"
    settings = "mitmdump --quiet, every host ignored (no interception); it has no refusal of a CONNECT by list"
    modes = frozenset({"tunnels", "names", "throughput", "get", "idle"})
    patience = 40.0

    def command(self) -> list[str]:
        """Write what it reads, return what runs it."""
        return [
            *(os.path.join(VENV, "bin", "mitmdump"), "--quiet", "--listen-host", "127.0.0.1", "-p", str(self.port)),
            *("--set", f"confdir={self.folder}", "--set", "connection_strategy=eager", *self.options()),
        ]

    def options(self) -> list[str]:
        """Return what else it is told."""
        return ["--ignore-hosts", ".*"]

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        return _package_version("mitmproxy")


def _package_version(package: str) -> str:
    return said_by([os.path.join(VENV, "bin", "pip"), "show", package], r"Version: (\S+)")


class Tidegate(Peer):
    """The gate with everything on: policy, address check, journal. `gate_driver` wires it as `run` does."""

    name = "tidegate"
    settings = "policy of exact rules, address check, journal to a file, 4096 connections a task"
    override: ClassVar[list[str]] = []

    def command(self) -> list[str]:
        """Write what it reads, return what runs it."""
        allowed = [word for rule in self.origin.rules() for word in ("--allow", rule)]
        driver = self.override or [sys.executable, "-I", "-S", os.path.join(ROOT, "bench", "gate_driver.py")]
        return [*driver, "--port", str(self.port), "--journal", self.path("network.jsonl"), *allowed]

    def pids(self) -> list[int]:
        """Return the gate's process; the driver that started it stands for the front and is not counted."""
        found = super().pids()
        return found[1:] if len(found) > 1 else found

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        text = said_by(["grep", "__version__", os.path.join(ROOT, "src", "tidegate", "__init__.py")], r'"([^"]+)"')
        git = shutil.which("git")
        commit = said_by([git, "-C", ROOT, "rev-parse", "--short", "HEAD"], r"(\w+)") if git else ""
        return f"{text} ({commit})" if commit else text


PEERS: tuple[type[Peer], ...] = (
    Tidegate,
    Squid,
    SquidWithoutLog,
    Tinyproxy,
    TinyproxyWithoutLog,
    ProxyPy,
    Pproxy,
    Mitmproxy,
)
QUICK = (Tidegate, Squid, Tinyproxy)
"""What --quick compares unless --peers says else."""
