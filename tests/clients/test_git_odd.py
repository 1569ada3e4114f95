"""Git held to fetch, beyond a push: Git LFS by its real client, the dumb protocol, and paths in odd forms (INS-7)."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.client_programs import note_client, program_version
from tests.clients.git_site import git_site
from tests.clients.kit import absent, held
from tests.https_site import HttpsSite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.product import Product

LARGE = b"what is large, said once\n" * 40
OID = hashlib.sha256(LARGE).hexdigest()
LFS = "/git/one.git/info/lfs"
_POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize {len(LARGE)}\n"
_CONFIG = """[user]
	name = t
	email = t@a.test
[filter "lfs"]
	clean = git-lfs clean -- %f
	smudge = git-lfs smudge -- %f
	process = git-lfs filter-process
	required = true
[lfs]
	locksverify = false
	activitytimeout = 20
[lfs "transfer"]
	maxretries = 1
"""


def git(folder: Path, script: str) -> None:
    """Run a script on the machine, outside the gate, with no configuration but its own."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "t",
        "GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "t@a.test",
    }  # fmt: skip
    subprocess.run(["sh", "-ec", script], cwd=folder, env=environment, check=True, capture_output=True)


def answer(site: HttpsSite, method: str, path: str, body: bytes) -> bytes:
    """Say where objects lie, and take those that are sent (git-lfs: docs/api/batch.md)."""
    if method == "PUT":
        site.pages[path] = ("application/octet-stream", body)
        return b""
    if not path.endswith("/objects/batch"):
        return b"{}"
    asked = json.loads(body)
    objects = [
        one | {"actions": {asked["operation"]: {"href": f"https://a.test{LFS}/objects/{one['oid']}"}}}
        for one in asked["objects"]
    ]
    return json.dumps({"transfer": "basic", "objects": objects}).encode()


@pytest.fixture
def site(product: Product, lab: Lab, tmp_path: Path) -> Iterator[HttpsSite]:
    """https://a.test/git/one.git with one large file, kept by Git LFS, and two.git beside it."""
    with git_site(product, lab, tmp_path) as made:
        (tmp_path / "pointer").write_text(_POINTER)
        git(
            tmp_path,
            "git init -q -b main seed; cd seed; cp ../pointer large; echo 'large filter=lfs' >.gitattributes;"
            "git add -A; git commit -qm first; for name in one two; do git clone -q --bare . ../repositories/$name.git;"
            "git -C ../repositories/$name.git update-server-info; done",
        )
        made.takes[f"{LFS}/"] = answer
        made.pages[f"{LFS}/objects/{OID}"] = ("application/octet-stream", LARGE)
        (product.home / ".gitconfig").write_text(_CONFIG)
        yield made


def git_held(product: Product, said: str) -> tuple[str, str]:
    """Write a policy with `git`; return the option that names it."""
    return held(product, f"network: {{runtime: {{allow: [{{host: 'a.test:443', git: {said}}}]}}}}\n")


@pytest.mark.parametrize(("said", "sends"), [("{read: [git/one]}", False), ("{write: [git/one]}", True)])
def test_git_lfs_downloads_and_does_not_upload(
    product: Product, site: HttpsSite, record_property: Callable[[str, object], None], said: str, *, sends: bool
) -> None:
    """INS-7: a clone brings the large file; what a push would send is refused at its PUT, and git-lfs shows why."""
    version = program_version(("git-lfs", "version"))
    if version is None:
        absent("git-lfs")
    note_client(record_property, "git-lfs", version)
    script = (
        "git clone -q https://a.test/git/one.git one && cd one && cat large && echo mine >large && "
        "git commit -qam second && git lfs push origin main"
    )
    done = product.run(*git_held(product, said), "--", "sh", "-c", script, timeout=90)
    assert done.stdout.encode().startswith(LARGE), done.stderr
    assert (done.returncode == 0) is sends, done.stderr
    assert any(one.startswith(f"PUT {LFS}/objects/") for one in site.requests) is sends
    if not sends:
        assert "the rule allows other methods or paths only" in done.stdout + done.stderr


_ODD = (
    # Another repository, in every form that might be taken for the one that is named.
    "git/two.git", "git//one.git", "git/./one.git", "git/%2e/one.git", "git/one.git/../two.git",
    "git/one.git/%2e%2e/two",
    "git/one.git%2f..%2ftwo.git", "GIT/one.git", "git/ONE.git", "git/one.git;x/../two.git", "git/one.git.git",
    "git/one.git%00", "git\\\\one.git", "git/%6fne/../two.git",
)  # fmt: skip


def test_no_other_repository_is_fetched_from_or_pushed_to(product: Product, site: HttpsSite) -> None:
    """INS-7, INS-6: in whatever form the path is written; the one that is named passes, in another spelling too."""
    forms = "\n".join(_ODD)
    script = f"""
        printf '%s\n' '{forms}' | while read -r path; do
            for what in 'info/refs?service=git-upload-pack' git-upload-pack; do
                data=; [ $what = git-upload-pack ] && data="-d 0000"
                curl -sS -g --path-as-is -o /dev/null -w '%{{http_code}} ' $data "https://a.test/$path/$what"
            done
        done
        echo
        for path in git/one.git git/one git/%6fne; do
            curl -sS -o /dev/null -w '%{{http_code}} ' "https://a.test/$path/info/refs?service=git-upload-pack"
        done
    """
    done = product.run(*git_held(product, "{read: [git/one]}"), "--", "sh", "-c", script)
    odd, named = done.stdout.splitlines()
    assert odd.split() == ["403"] * (2 * len(_ODD)), (odd, done.stderr)
    assert "403" not in named
    assert len(site.requests) == 3


def test_a_push_of_the_dumb_protocol_is_none_that_passes(product: Product, site: HttpsSite) -> None:
    """INS-7: WebDAV's methods are refused, under `git: write` too; the dumb protocol's files can be read."""
    script = """
        for method in PROPFIND MKCOL LOCK MOVE PUT DELETE; do
            curl -sS -o /dev/null -w '%{http_code} ' -X $method https://a.test/git/one.git/objects/ab/cdef
        done
        GIT_SMART_HTTP=0 git clone -q https://a.test/git/one.git one 2>/dev/null; cat one/.gitattributes
    """
    done = product.run(*git_held(product, "write"), "--", "sh", "-c", script)
    assert done.stdout == "403 " * 6 + "large filter=lfs\n", done.stderr
    assert all(one.startswith(("GET ", "POST ")) for one in site.requests)
