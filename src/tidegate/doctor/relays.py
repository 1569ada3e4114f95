"""The relays of the container holds: their image, the authority in run/ca, and that the listener answers (HLD-4).

Rules of the file: no row where nothing of the kind was ever used. The listener is asked as a relay asks it, with a
certificate of its own that is worth nothing afterwards.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import tempfile
from typing import TYPE_CHECKING, Final

from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.holds.container import door_link
from tidegate.holds.container.engine import ENGINES, Engine
from tidegate.holds.container.relay.words import CERTIFICATE, LIFE, NAMES, OPEN, SERVER_NAME
from tidegate.holds.container.relay_image import NAME, default_image
from tidegate.model.errors import StartError
from tidegate.runtime.state import state_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.holds.container.certificates import Authority

_IMAGE: Final = "relay image"
_AUTHORITY: Final = "relay authority"
_LISTENER: Final = "relay listener"
_PATIENCE = 10.0


def check_relays(environ: Mapping[str, str]) -> list[Check]:
    """Return a row for each engine that has or had the image, and those of the authority and the listener."""
    rows = [
        row for name in ENGINES if shutil.which(name, path=environ.get("PATH")) for row in _image(Engine(name, environ))
    ]
    try:
        state = state_folder(environ)
    except StartError:
        return rows  # the row of the state folder says it
    return [*rows, *_listening(state)]


def _image(engine: Engine) -> list[Check]:
    name = f"{_IMAGE} ({engine.name})"
    try:
        if engine.has_image(default_image()):
            return [Check(name, OK, default_image())]
        if not engine.run("image", "ls", "--quiet", NAME):
            return []
    except StartError:
        return []  # that it does not answer is for the row of its hold
    what = f"{default_image()} is not here, only one of another version; transports relay and vm need it"
    return [Check(name, WARN, what, f"tidegate relay-image build --engine {engine.name}")]


def _listening(state: str) -> list[Check]:
    folder = os.path.join(state, "run", "ca")
    if not os.path.lexists(os.path.join(folder, "authority.pem")):
        return []
    try:
        from tidegate.holds.container.certificates import open_authority

        authority = open_authority(state, door_link.now())
    except ImportError:
        return [Check(_AUTHORITY, FAIL, "the package cryptography is not installed", "pip install 'cryptography>=42'")]
    except StartError as error:
        return [Check(_AUTHORITY, FAIL, error.what, error.fix)]
    until = authority.certificate.not_valid_after_utc
    rows = [Check(_AUTHORITY, OK, f"{folder}, until {until:%Y-%m-%d}")]
    try:
        port = _ask(state, authority)
    except StartError as error:
        return [*rows, Check(_LISTENER, FAIL, error.what, error.fix)]
    except OSError as error:
        what = f"it does not let a certificate of its own authority in: {error.strerror or error}"
        return [*rows, Check(_LISTENER, FAIL, what, f"see {os.path.join(state, door_link.LOG)}")]
    return [*rows, Check(_LISTENER, OK, f"it answers on port {port} of {door_link.ADDRESS}")]


def _ask(state: str, authority: Authority) -> int:
    """Come in as a relay does, through to a socket of our own; the listener's port.

    Raises:
        StartError: when there is no listener.
        OSError: when it does not let us in.
    """
    with tempfile.TemporaryDirectory(prefix="tidegate-doctor-") as folder, socket.socket(socket.AF_UNIX) as life:
        life.bind(os.path.join(folder, NAMES[LIFE]))
        life.listen(1)
        life.settimeout(_PATIENCE)
        now = door_link.now()
        keys = authority.task("doctor", now, 300.0)
        route = door_link.register(state, "doctor", keys, folder, authority, now=now, warn=lambda _line: None)
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.load_verify_locations(cadata=keys.authority.decode())
            path = os.path.join(folder, CERTIFICATE)
            with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(keys.pem)
            context.load_cert_chain(path)
            raw = socket.create_connection((door_link.ADDRESS, route.port), _PATIENCE)
            with raw, context.wrap_socket(raw, server_hostname=SERVER_NAME) as sock:
                sock.sendall(b"\0\1" + LIFE)
                if sock.recv(10) != b"\0\1" + OPEN:
                    raise OSError("it closes the connection")
                life.accept()[0].close()
        finally:
            route.close()
    return route.port
