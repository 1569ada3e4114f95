"""Small registries for the clients of tests/clients: each puts its pages on an HttpsSite (tests/https_site.py).

One package, `tidetest`, in the form of each registry: a Python index under /simple/, an npm registry under /npm/, a
sparse index of crates under /crates/, a Maven repository under /maven/, a module proxy under /go/ and a gem server
under /gems/. The site is reached as `https://HOST/`; pages name no other host.

What it does not do: anything a real registry would check. tests/registries drives the real ones.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.https_site import HttpsSite

NAME = "tidetest"
MODULE = "tide.test/one"


def wheel(name: str = NAME) -> bytes:
    """Return a wheel with one module that says its own name."""
    files = {
        f"{name}.py": f"NAME = {name!r}\n",
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},"
        f"{len(text)}\n"
        for path, text in files.items()
    )
    files[f"{name}-1.0.dist-info/RECORD"] = f"{record}{name}-1.0.dist-info/RECORD,,\n"
    return _zip(files)


def python_index(site: HttpsSite) -> None:
    """Serve https://HOST/simple/, for pip, uv and poetry."""
    file = f"{NAME}-1.0-py3-none-any.whl"
    packed = wheel()
    link = f"/files/{file}#sha256={hashlib.sha256(packed).hexdigest()}"
    site.pages[f"/simple/{NAME}/"] = ("text/html", f'<!DOCTYPE html><a href="{link}">{file}</a>'.encode())
    site.pages[f"/files/{file}"] = ("application/zip", packed)


def npm_registry(site: HttpsSite, root: str = "https://a.test/") -> None:
    """Serve an npm registry at `root`, for npm, yarn, pnpm and bun."""
    page, tarball = _npm_page(root)
    path = "/" + root.split("/", 3)[3]
    site.pages[f"{path}{NAME}"] = ("application/json", json.dumps(page).encode())
    site.pages[f"{path}{NAME}/-/{NAME}-1.0.0.tgz"] = ("application/octet-stream", tarball)


def npm_document(root: str) -> dict[str, object]:
    """Return what a client publishes to an npm registry at `root`."""
    page, tarball = _npm_page(root)
    data = base64.b64encode(tarball).decode()
    file = {"content_type": "application/octet-stream", "data": data, "length": len(tarball)}
    return {key: page[key] for key in ("name", "dist-tags", "versions")} | {
        "_id": NAME,
        "_attachments": {f"{NAME}-1.0.0.tgz": file},
    }


def _npm_page(root: str) -> tuple[dict[str, object], bytes]:
    tarball = _tar({"package/package.json": json.dumps({"name": NAME, "version": "1.0.0"})})
    version = {
        "name": NAME,
        "version": "1.0.0",
        "dist": {
            "tarball": f"{root}{NAME}/-/{NAME}-1.0.0.tgz",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode(),
            "shasum": hashlib.sha1(tarball).hexdigest(),
        },
    }
    page: dict[str, object] = {
        "name": NAME,
        "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": version},
        "time": {"1.0.0": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z"},
    }
    return page, tarball


def crates(site: HttpsSite, host: str = "a.test") -> None:
    """Serve sparse+https://HOST/index/, for cargo."""
    crate = _tar(
        {
            f"{NAME}-1.0.0/Cargo.toml": f'[package]\nname = "{NAME}"\nversion = "1.0.0"\n',
            f"{NAME}-1.0.0/src/lib.rs": "",
        }
    )
    line = {
        "name": NAME, "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
        "cksum": hashlib.sha256(crate).hexdigest(),
    }  # fmt: skip
    site.pages["/index/config.json"] = (
        "application/json",
        json.dumps({"dl": f"https://{host}/crates", "api": f"https://{host}"}).encode(),
    )
    site.pages[f"/index/ti/de/{NAME}"] = ("text/plain", json.dumps(line).encode() + b"\n")
    site.pages[f"/crates/{NAME}/1.0.0/download"] = ("application/gzip", crate)


def maven_repository(site: HttpsSite) -> None:
    """Serve https://HOST/maven/ with the parent project `test:tidetest:1.0`, for Maven."""
    pom = (
        "<project><modelVersion>4.0.0</modelVersion><groupId>test</groupId>"
        f"<artifactId>{NAME}</artifactId><version>1.0</version><packaging>pom</packaging></project>"
    ).encode()
    path = f"/maven/test/{NAME}/1.0/{NAME}-1.0.pom"
    site.pages[path] = ("text/xml", pom)
    site.pages[f"{path}.sha1"] = ("text/plain", hashlib.sha1(pom).hexdigest().encode())


def go_proxy(site: HttpsSite) -> None:
    """Serve https://HOST/go/ with one module, as GOPROXY."""
    path = f"/go/{MODULE}/@v/v1.0.0"
    head = f"{MODULE}@v1.0.0"
    mod = f"module {MODULE}\n"
    site.pages[f"{path}.info"] = ("application/json", b'{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}')
    site.pages[f"{path}.mod"] = ("text/plain", mod.encode())
    site.pages[f"{path}.zip"] = ("application/zip", _zip({f"{head}/go.mod": mod, f"{head}/one.go": "package one\n"}))


def gem_server(site: HttpsSite, folder: Path) -> None:
    """Serve https://HOST/gems/ with one gem, made by gem itself in `folder`."""
    packed = folder / "served" / "gems"
    packed.mkdir(parents=True)
    (folder / "one.gemspec").write_text(
        f"Gem::Specification.new {{ |s| s.name = '{NAME}'; s.version = '1.0'; s.summary = s.author = 't'\n"
        "  s.homepage = 'https://a.test/'; s.license = 'MIT'; s.files = [] }\n"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    for words in (
        ["build", "-q", "one.gemspec", "-o", f"served/gems/{NAME}-1.0.gem"],
        ["generate_index", "-q", "-d", "served"],
    ):
        subprocess.run(["gem", *words], cwd=folder, env=environment, check=True, capture_output=True)
    with open(packed / f"{NAME}-1.0.gem", "rb") as file:
        info = f"---\n1.0 |checksum:{hashlib.sha256(file.read()).hexdigest()}\n".encode()
    versions = f"created_at: 2020-01-01T00:00:00Z\n---\n{NAME} 1.0 {hashlib.md5(info).hexdigest()}\n"
    site.pages["/gems/versions"] = ("text/plain", versions.encode())  # what bundler asks for
    site.pages[f"/gems/info/{NAME}"] = ("text/plain", info)
    for where, _, files in os.walk(folder / "served"):
        for file in files:
            path = os.path.join(where, file)
            with open(path, "rb") as source:
                body = source.read()
            site.pages[f"/gems/{os.path.relpath(path, folder / 'served')}"] = ("application/octet-stream", body)


def takes_crates(site: HttpsSite) -> None:
    """Take what cargo publishes, into the index, and what it yanks (the registry web API of the cargo book)."""

    def take(site: HttpsSite, method: str, _path: str, body: bytes) -> bytes:
        if method == "PUT" and body:
            size = int.from_bytes(body[:4], "little")
            told = json.loads(body[4 : 4 + size])
            crate = body[8 + size :]
            name, version = told["name"], told["vers"]
            line = {"name": name, "vers": version, "deps": [], "features": {}, "yanked": False,
                    "cksum": hashlib.sha256(crate).hexdigest()}  # fmt: skip
            site.pages[f"/index/{name[:2]}/{name[2:4]}/{name}"] = ("text/plain", json.dumps(line).encode() + b"\n")
        return b'{"ok": true, "warnings": {"invalid_categories": [], "invalid_badges": [], "other": []}}'

    site.takes["/api/v1/crates/"] = take


def takes_others(site: HttpsSite) -> None:
    """Take what gem pushes and yanks, and what Maven deploys."""
    site.takes["/gems/api/v1/gems"] = lambda _site, _method, _path, _body: b"Successfully taken"
    site.takes["/maven/"] = lambda _site, _method, _path, _body: b""


def repository(home: Path) -> None:
    """Make a bare git repository `one.git` with one file."""
    script = """
        set -e
        git init -q seed
        cd seed
        printf "it was there\\n" >file
        git add file
        git -c user.name=t -c user.email=t@a.test commit -qm first
        git clone -q --bare . ../one.git
    """
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["sh", "-c", script], cwd=home, env=environment, check=True, capture_output=True)


def _zip(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return packed.getvalue()


def _tar(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()
