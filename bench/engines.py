"""Engines of our own, for the bench and for tests: docker's daemon and podman's store in a folder, and an image.

Nothing of this machine's own docker or podman is touched: the daemon has its own folders, socket and network (none at
all, and no iptables), podman its own store and settings. The image is made here, of Debian's static busybox.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile

from bench import processes
from bench.processes import BenchError

BUSYBOX = "/bin/busybox"
IMAGE = "tidegate-test:2"
FOLDERS = (
    *("bin", "dev", "etc", "home", "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr"),
    *("var", "var/tmp"),
)
APPLETS = (
    *("cat", "chmod", "dd", "echo", "env", "false", "grep", "head", "id", "ip", "kill", "ln", "ls", "mkdir", "mount"),
    *("mv", "nc", "nslookup", "ps", "pwd", "rm", "sh", "sleep", "sort", "stty", "tail", "touch", "true", "tty"),
    *("umount", "wc", "wget"),
)
_SETTINGS = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
"""


def image_tar() -> bytes:
    """The image of the tests: busybox, its folders, and nothing else."""
    written = io.BytesIO()
    with open(BUSYBOX, "rb") as file:
        content = file.read()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name in FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755
            tar.addfile(folder)
        program = tarfile.TarInfo("bin/busybox")
        program.size, program.mode = len(content), 0o755
        tar.addfile(program, io.BytesIO(content))
        links = {f"bin/{name}": "busybox" for name in APPLETS}
        # So that this machine's own Python runs there, where /usr is shared.
        for name, leads in (links | {"lib": "usr/lib", "lib64": "usr/lib64"}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, leads
            tar.addfile(link)
    return written.getvalue()


def missing(engine: str) -> str:
    """Why this engine cannot be used here; '' where it can."""
    if os.geteuid() != 0:
        return f"{engine} is started by root only"
    needed = {"docker": ("docker", "dockerd"), "podman": ("podman", "runc")}[engine]
    for program in needed:
        if not shutil.which(program):
            return f"{program} is not installed (scripts/setup installs it as root)"
    return "" if os.path.exists(BUSYBOX) else f"{BUSYBOX} is not installed (scripts/setup installs it as root)"


def dockerd(folder: str) -> list[str]:
    """Return the command of a daemon that keeps all it has in a folder; its socket is `docker.sock` there."""
    return [
        *(shutil.which("dockerd") or "dockerd", "--host", f"unix://{folder}/docker.sock"),
        *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"),
        *("--iptables=false", "--ip6tables=false", "--bridge=none", "--default-runtime", "runc"),
    ]


def podman_store(folder: str) -> dict[str, str]:
    """Make a store in a folder, and return the variables by which podman finds it."""
    os.makedirs(folder, mode=0o711, exist_ok=True)
    environment = {
        "CONTAINERS_CONF": os.path.join(folder, "containers.conf"),
        "CONTAINERS_STORAGE_CONF": os.path.join(folder, "storage.conf"),
    }
    with open(environment["CONTAINERS_CONF"], "w", encoding="ascii") as file:
        file.write(_SETTINGS)
    with open(environment["CONTAINERS_STORAGE_CONF"], "w", encoding="ascii") as file:
        file.write(f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/run"\n')
    return environment


def unmount_below(folder: str) -> None:
    """Unmount what an engine left mounted in its folder."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        places = [line.split()[1] for line in file]
    for place in sorted((one for one in places if one.startswith(folder)), reverse=True):
        subprocess.run(["umount", "-l", place], capture_output=True, check=False)


class Engine:
    """A running engine with the image in it, for the bench's own corner of the machine."""

    def __init__(self, name: str, folder: str) -> None:
        """Start it.

        Raises:
            BenchError: when it does not work here.
        """
        if why := missing(name):
            raise BenchError(why)
        self.name = name
        self._folder = os.path.join(folder, name)
        self._daemon = None
        if name == "docker":
            os.makedirs(self._folder, mode=0o711, exist_ok=True)
            self.environment = {"DOCKER_HOST": f"unix://{self._folder}/docker.sock"}
            self._daemon = processes.start(dockerd(self._folder), log=os.path.join(self._folder, "log"))
        else:
            self.environment = podman_store(self._folder)
        try:
            self._import()
        except BenchError:
            self.stop()
            raise

    def _import(self) -> None:
        env = os.environ | self.environment
        if self._daemon is not None:
            asked = ["docker", "version"]
            processes.wait_until(
                lambda: not subprocess.run(asked, env=env, capture_output=True, check=False).returncode,
                f"docker's daemon (its output: {self._folder}/log)",
                seconds=60,
                process=self._daemon,
            )
        done = subprocess.run(
            [self.name, "import", "-", IMAGE], env=env, input=image_tar(), capture_output=True, check=False
        )
        if done.returncode:
            raise BenchError(f"{self.name} import: {done.stderr.decode(errors='replace')[-300:]}")

    def stop(self) -> None:
        """End it, and what is mounted."""
        if self._daemon is not None:
            processes.stop(self._daemon, patience=20)
        unmount_below(self._folder)
