"""Services of the machine and of the user that would act outside for whoever asks: engines, buses, agents, displays."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.doctor.escapes.needs import paths
from tidegate.doctor.escapes.table import FENCED, HELD, escape, named
from tidegate.doctor.escapes.tools import none_of, unix

if TYPE_CHECKING:
    from collections.abc import Callable

GONE = ("ENOENT", "ECONNREFUSED", "EACCES", "ENOTDIR")
# Where each listens, by default. RUNTIME is the user's runtime folder, in which the trial has a canary at each place.
SERVICES: dict[str, tuple[str, ...]] = {
    "docker": ("/run/docker.sock", "/var/run/docker.sock", "HOME/.docker/run/docker.sock", "RUNTIME/docker.sock"),
    "podman": ("/run/podman/podman.sock", "RUNTIME/podman/podman.sock"),
    "containerd": ("/run/containerd/containerd.sock", "RUNTIME/containerd/containerd.sock"),
    "d_bus": ("/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket", "RUNTIME/bus"),
    "systemd": ("/run/systemd/private", "/run/systemd/io.systemd.ManagedOOM", "RUNTIME/systemd/private"),
    "ssh_agent": ("RUNTIME/ssh-agent.socket", "RUNTIME/keyring/ssh", "HOME/.ssh/agent/s"),
    "gpg_agent": ("RUNTIME/gnupg/S.gpg-agent", "RUNTIME/gnupg/S.gpg-agent.ssh", "HOME/.gnupg/S.gpg-agent"),
    "x11": ("/tmp/.X11-unix/X0", "@/tmp/.X11-unix/X0"),
    "wayland": ("RUNTIME/wayland-0", "/run/user/0/wayland-0"),
    "pulse_audio": ("RUNTIME/pulse/native", "RUNTIME/pipewire-0"),
    "resolved": ("/run/systemd/resolve/io.systemd.Resolve",),
    "name_cache": ("/run/nscd/socket", "/var/run/nscd/socket"),
    "container_runtime": ("/run/crio/crio.sock", "/run/k3s/containerd/containerd.sock", "/var/run/cri-dockerd.sock"),
    "virtual_machines": ("/run/libvirt/libvirt-sock", "/run/incus/unix.socket", "/var/lib/lxd/unix.socket"),
    "databases": ("/run/postgresql/.s.PGSQL.5432", "/run/mysqld/mysqld.sock", "/tmp/.s.PGSQL.5432"),
}


def places(service: str) -> list[str]:
    """The paths at which a service is looked for, in a task's environment."""
    home, runtime = HELD["home"], HELD["runtime"]
    return [path.replace("RUNTIME", runtime).replace("HOME", home) for path in SERVICES[service]]


def _service_of(service: str) -> Callable[[], object]:
    def attempt() -> None:
        raise none_of(unix, places(service), "answers")

    return attempt


def _needs(service: str) -> Callable[[], str]:
    """Whether one is here: the trial has canaries of its own for those of a user, not in the system's folders."""
    if any("RUNTIME" in path for path in SERVICES[service]):
        return lambda: ""
    return paths(*(path for path in SERVICES[service] if path.startswith("/")))


for _name in SERVICES:
    escape(*GONE, needs=_needs(_name))(
        named(_service_of(_name), f"service_{_name}", f"The sockets of {_name.replace('_', ' ')} by path.")
    )


@escape("ENOENT", "ECONNREFUSED", holds=FENCED)
def every_socket_of_the_machine() -> None:
    """Every unix socket that somebody on this machine listened at when the task was set up: none takes a call."""
    last = none_of(unix, HELD["listed"], "answers")
    raise last if last.errno in (2, 111) else FileNotFoundError(2, os.strerror(2))
