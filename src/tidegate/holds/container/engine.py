"""Docker or podman, by their command lines: what is asked of them, and their failures in our words (HLD-4).

Rules of the file:

* Every call has an end (after one that was not answered the next ones are short), its own session (Ctrl-C is for the
  task) and no standard stream of ours. What an engine says is read in engine_says.
* An engine is chosen as people choose it, by its own environment (DOCKER_HOST, CONTAINER_HOST, CONTAINERS_CONF);
  nothing here sets or clears it. Nothing is ever pulled: what an image is, is a person's decision.
* All that tidegate makes carries its labels, by which it is found again. Ids and names come from us, not from texts.

What it does not do: decide what a container looks like (container.py), or lead it to a gate (transport.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import suppress

from tidegate.holds.container.engine_says import DOCKER, PODMAN, Facts, facts_of, failure, not_here, without_image
from tidegate.model.errors import StartError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = (
    "DOCKER", "ENGINES", "LABEL_OWNER", "LABEL_PART", "LABEL_RUN", "PATIENCE", "PODMAN", "QUICK", "SILENT", "Engine",
    "Facts", "named",
)  # fmt: skip

ENGINES = (DOCKER, PODMAN)

LABEL_RUN = "tidegate.run"
"""The id of the task that a container, a volume or an image belongs to."""
LABEL_PART = "tidegate.part"
"""What it is for: `worker`, or a transport's own word for a part of the way (`holder`, `relay`, `carrier`)."""
LABEL_OWNER = "tidegate.owner"
"""Who ends it: owner.py says what it holds."""

PATIENCE = 120.0  # seconds for a call that may have much to do: images that are made, a container that is waited for
QUICK = dict.fromkeys(("info", "image", "container", "ps", "volume"), 20.0) | {
    "create": 60.0,
    "start": 60.0,
    "rm": 30.0,
}
"""Seconds for calls that an engine answers in moments: what every start begins with is among the shortest."""
SILENT = 5.0  # seconds for each call to an engine that has not answered before
_INFO = ("info", "--format", "{{json .}}")
_TRIES, _BETWEEN = 4, 1.0  # seconds, to remove a container
_AT_ONCE = {PODMAN: ("--time", "0")}  # it would wait ten seconds for who does not end at SIGTERM; docker does not
_UNREACHABLE = frozenset(("engine-missing", "engine-down", "engine-silent"))


class Engine:
    """One of the two engines, as this user has it, for one start: what it has said of itself and of images is kept.

    Its program takes some 25 ms for any answer, most of them its own start. So answers that are wanted soon are asked
    for together (`expect`), while other things are done.
    """

    def __init__(self, name: str, environ: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._environ = dict(os.environ if environ is None else environ)
        self._facts: Facts | None = None
        self._images: dict[str, dict[str, Any]] = {}
        self._begun: dict[tuple[str, ...], subprocess.Popen[bytes]] = {}
        self._silent = False  # it has not answered in time: nobody waits for it as long again

    @property
    def command(self) -> tuple[str, ...]:
        """How its command line begins."""
        return (self.name,)

    @property
    def environ(self) -> dict[str, str]:
        """The environment its commands have; a copy."""
        return dict(self._environ)

    def run(self, *arguments: str, data: bytes | None = None, pass_fds: Sequence[int] = ()) -> str:
        """Do one command and return what it printed, without the end of line.

        Raises:
            StartError: when the engine is not there, does not answer or says no.
        """
        return self.read(*arguments, data=data, pass_fds=pass_fds).decode("utf-8", "replace").rstrip("\n")

    def read(self, *arguments: str, data: bytes | None = None, pass_fds: Sequence[int] = ()) -> bytes:
        """Do one command and return all that it printed.

        Raises:
            StartError: as `run`.
        """
        patience = SILENT if self._silent else QUICK.get(arguments[0], PATIENCE)
        try:
            with self._begun.pop(arguments, None) or self._spawn(arguments, data, pass_fds) as begun:
                try:
                    printed, said = begun.communicate(data, patience)
                except BaseException:
                    begun.kill()
                    raise
        except FileNotFoundError:
            raise not_here(self.name) from None
        except subprocess.TimeoutExpired:
            self._silent = True
            self._forget_expected()
            raise StartError(
                f"{self.name} did not answer within {patience:.0f} seconds ({arguments[0]})",
                fix=f"see that `{self.name} info` answers",
                code="engine-silent",
            ) from None
        except OSError as error:
            raise StartError(f"{self.name} cannot be run: {error.strerror}", code="engine") from None
        if begun.returncode:
            raise self.failure(arguments[0], said.decode("utf-8", "replace"))
        return printed

    def _spawn(self, arguments: Sequence[str], data: bytes | None, pass_fds: Sequence[int]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.command, *arguments],
            stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environ,
            start_new_session=True,
            pass_fds=pass_fds,
        )

    def expect(self, image: str) -> None:
        """Ask for what each start of a container of this image asks first; who wants an answer then waits for it.

        Raises:
            UsageError: as `has_image`.
        """
        for arguments in (("image", "inspect", named(image)), _INFO, _listing(LABEL_OWNER)):
            if arguments not in self._begun:
                try:
                    self._begun[arguments] = self._spawn(arguments, None, ())
                except OSError:
                    return  # who asks is told

    def _forget_expected(self) -> None:
        while self._begun:
            _arguments, begun = self._begun.popitem()
            with begun:
                begun.kill()

    def facts(self) -> Facts:
        """What it is; asked once.

        Raises:
            StartError: as `run`.
        """
        if self._facts is None:
            self._facts = facts_of(self.name, self._json(*_INFO))
        return self._facts

    def create(
        self, image: str, arguments: Sequence[str], command: Sequence[str] = (), *, pass_fds: Sequence[int] = ()
    ) -> str:
        """Make a container and return its id. `arguments` are options of `create`; the image is never pulled.

        Raises:
            StartError: as `run`; code `image-missing` where the image is not here.
        """
        made = self.run("create", "--pull=never", *arguments, image, *command, pass_fds=pass_fds)
        return made.splitlines()[-1] if made else ""

    def start(self, container: str) -> None:
        """Start a container that was made.

        Raises:
            StartError: as `run`.
        """
        self.run("start", container)

    def begin(self, image: str, arguments: Sequence[str], command: Sequence[str] = ()) -> str:
        """Make a container and start it; its id. One that cannot be started is removed.

        Raises:
            StartError: as `create`.
        """
        container = self.create(image, arguments, command)
        try:
            self.start(container)
        except BaseException:
            self.remove(container)
            raise
        return container

    def inspect(self, container: str) -> dict[str, Any]:
        """All that the engine knows of a container.

        Raises:
            StartError: as `run`; code `no-container` where there is none.
        """
        found = self._json("container", "inspect", container)
        if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], dict):
            raise self._strange("container inspect")
        return found[0]

    def pid(self, container: str) -> int:
        """The first process of a running container, as this machine numbers it.

        Raises:
            StartError: when it does not run.
        """
        state = self.inspect(container).get("State") or {}
        pid = state.get("Pid")
        if state.get("Status") != "running" or not isinstance(pid, int) or pid <= 0:
            raise StartError(
                f"the container {container[:20]} ended before the task could start",
                fix=f"see `{self.name} logs {container[:20]}`",
                code="container-ended",
            )
        return pid

    def has_begun(self, container: str) -> bool:
        """Whether a container has ever run; true where the engine cannot say."""
        try:
            state = self.inspect(container).get("State") or {}
        except StartError:
            return True
        return state.get("Status") != "created" and not str(state.get("StartedAt", "")).startswith("0001-")

    def signal(self, container: str, number: int) -> None:
        """Send a signal to a container's first process. It is not waited for; the caller reaps all its children."""
        subprocess.Popen(
            [*self.command, "kill", "--signal", str(number), container],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environ,
            start_new_session=True,
        )

    def remove(self, *containers: str) -> None:
        """End and remove containers; one that is gone already, or that somebody else removes, is as good.

        Raises:
            StartError: as `run`.
        """
        if self.name == DOCKER and len(containers) > 1:  # docker's program removes them at the same time
            try:
                self.run("rm", "--force", "--volumes", *containers)
            except StartError as error:
                if error.code in _UNREACHABLE:
                    raise  # else: one by one, each with its tries
            else:
                return
        for container in containers:
            for left in range(_TRIES - 1, -1, -1):
                try:
                    self.run("rm", *_AT_ONCE.get(self.name, ()), "--force", "--volumes", container)
                except StartError as error:
                    if error.code == "no-container":
                        break
                    if not left and error.code == "removing":
                        break
                    if not left or error.code in _UNREACHABLE:
                        raise
                    time.sleep(_BETWEEN)  # docker's daemon says no where a busy machine is slow to end a process
                else:
                    break

    def discard(self, *containers: str) -> None:
        """Remove containers, or leave them to the next sweep where the engine is gone."""
        try:
            self.remove(*containers)
        except StartError:
            for container in containers if len(containers) > 1 else ():  # one that stays keeps no other
                with suppress(StartError):
                    self.remove(container)

    def labelled(self, label: str, value: str = "") -> list[dict[str, str]]:
        """The labels of every container, running or not, that has this one; among them as `id` and `name` what it is.

        An image's labels are those of its containers, too, whoever started them: a label alone makes none of them ours.

        Raises:
            StartError: as `run`.
        """
        ids = self.run(*_listing(label, value)).split()
        found = []
        for one in ids:
            try:
                seen = self.inspect(one)
            except StartError as error:
                if error.code == "no-container":
                    continue  # it has ended meanwhile
                raise
            labels = (seen.get("Config") or {}).get("Labels") or {}
            found.append({**labels, "id": one, "name": str(seen.get("Name", "")).lstrip("/")})
        return found

    def has_image(self, image: str) -> bool:
        """Whether an image is here.

        Raises:
            UsageError: for a name that an engine would read as an option, or as more than one.
            StartError: as `run`.
        """
        if image in self._images:
            return True
        try:
            self.run("image", "inspect", "--format", "{{.Id}}", named(image))
        except StartError as error:
            if error.code == "image-missing":
                return False
            raise
        return True

    def image(self, image: str) -> dict[str, Any]:
        """All that the engine knows of an image; asked once, so that one start has one answer.

        Raises:
            UsageError: as `has_image`.
            StartError: as `run`; code `image-missing` where it is not here.
        """
        if image in self._images:
            return self._images[image]
        try:
            found = self._json("image", "inspect", named(image))
        except StartError as error:
            if error.code == "image-missing":
                raise self.without_image(image) from None
            raise
        if not isinstance(found, list) or not found or not isinstance(found[0], dict):
            raise self._strange("image inspect")
        self._images[image] = found[0]
        return self._images[image]

    def import_image(self, name: str, tar: bytes, changes: Sequence[str] = ()) -> None:
        """Make an image of one tar file; `changes` are lines of a Containerfile.

        Raises:
            StartError: as `run`.
        """
        options = [part for change in changes for part in ("--change", change)]
        self.run("import", *options, "-", name, data=tar)

    def without_image(self, image: str) -> StartError:
        """The error for an image that is not here."""
        return without_image(self.name, image)

    def failure(self, verb: str, said: str) -> StartError:
        """What the engine said when it failed, in our words."""
        return failure(self.name, verb, said)

    def _json(self, *arguments: str) -> Any:
        try:
            return json.loads(self.run(*arguments))
        except ValueError:
            raise self._strange(" ".join(arguments[:2])) from None

    def _strange(self, verb: str) -> StartError:
        return StartError(f"{self.name} {verb} answers in a way that is not understood", code="engine")


def _listing(label: str, value: str = "") -> tuple[str, ...]:
    wanted = f"label={label}={value}" if value else f"label={label}"
    return ("ps", "--all", "--quiet", "--no-trunc", "--filter", wanted)


def named(image: str) -> str:
    """Return the name of an image as it is.

    Raises:
        UsageError: for what an engine would read as an option, or as more than one word.
    """
    if image.startswith("-") or image.split() != [image]:
        raise UsageError(f"{image!r} is no name of an image", fix="--image NAME:TAG")
    return image
