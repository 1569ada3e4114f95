"""`git: read|write|{read, write}`: what fetches and what pushes, over HTTPS."""

from __future__ import annotations

import pytest

from tests.unit.policy.test_alternatives import under
from tidegate.model.reason import Reason
from tidegate.policy.alternatives import why_refused
from tidegate.policy.git import git_alternatives, is_push, repositories

PUSH = Reason.GIT_READ_ONLY
OTHER = Reason.METHOD_NOT_ALLOWED
READ = git_alternatives(("**",), ())
WRITE = git_alternatives(("**",), ("**",))
SOME = git_alternatives(("acme/**",), ("acme/app", "lib.git"))


@pytest.mark.parametrize(
    ("method", "target", "read", "write", "some"),
    [
        ("GET", "/acme/app.git/info/refs?service=git-upload-pack", None, None, None),
        ("GET", "/acme/app/info/refs?service=git-upload-pack", None, None, None),
        ("POST", "/acme/app.git/git-upload-pack", None, None, None),
        ("POST", "/acme/other/git-upload-archive", None, None, None),
        ("GET", "/acme/other.git/objects/ab/cdef", None, None, None),
        ("HEAD", "/acme/other.git/HEAD", None, None, None),
        ("GET", "/acme/app/releases/download/v1/x.tgz", None, None, None),
        ("POST", "/acme/app.git/info/lfs/objects/batch", None, None, None),
        ("GET", "/lib.git/info/refs", None, None, None),
        ("GET", "/lib/info/refs", None, None, None),
        # A push, where it may and where it may not.
        ("GET", "/acme/app.git/info/refs?service=git-receive-pack", PUSH, None, None),
        ("POST", "/acme/app.git/git-receive-pack", PUSH, None, None),
        ("POST", "/acme/app/git-receive-pack", PUSH, None, None),
        ("POST", "/lib/git-receive-pack", PUSH, None, None),
        ("POST", "/acme/other.git/git-receive-pack", PUSH, None, PUSH),
        ("GET", "/acme/other/info/refs?service=git-receive-pack", PUSH, None, PUSH),
        ("POST", "/acme/app/evil.git/git-receive-pack", PUSH, None, PUSH),
        ("POST", "/acme/app.git.git/git-receive-pack", PUSH, None, PUSH),
        # The same in other spellings.
        ("GET", "/acme/other/info/refs?service=git%2Dreceive%2dpack", PUSH, None, PUSH),
        ("GET", "/acme/other/info/refs?service=git%252Dreceive%252Dpack", PUSH, None, PUSH),
        ("GET", "/acme/other/info/refs?%73ervice=git-%72eceive-pack", PUSH, None, PUSH),
        ("GET", "/acme/other/info/refs?service=git-upload-pack&service=git-receive-pack", PUSH, None, PUSH),
        ("GET", "/acme/other/info/refs?service=GIT-RECEIVE-PACK", PUSH, None, PUSH),
        ("GET", "/acme/other/%69nfo/refs?service=git-receive-pack", PUSH, None, PUSH),
        ("GET", "/acme/other/info/refs/?service=git-receive-pack", PUSH, PUSH, PUSH),
        ("POST", "/acme/other/git-receive-pac%6b", PUSH, None, PUSH),
        ("POST", "/acme/other/git-receive-pack/", PUSH, PUSH, PUSH),
        ("POST", "/acme/other/git-receive-pack;x=1", PUSH, PUSH, PUSH),
        ("POST", "/acme//other/git-receive-pack", OTHER, OTHER, OTHER),
        ("POST", "/acme/x/../other/git-upload-pack", OTHER, OTHER, OTHER),
        ("DELETE", "/acme/app/git-receive-pack", PUSH, PUSH, PUSH),
        # Other repositories, also those whose name only begins so, or is written in capitals.
        ("GET", "/evil/app/info/refs?service=git-upload-pack", None, None, OTHER),
        ("GET", "/acme-evil/app/info/refs?service=git-upload-pack", None, None, OTHER),
        ("POST", "/acme-evil/app/git-upload-pack", None, None, OTHER),
        ("POST", "/ACME/app/git-receive-pack", PUSH, None, PUSH),
        # Git LFS, and what is no git at all.
        ("PUT", "/acme/app.git/info/lfs/objects/ab12/4", OTHER, None, None),
        ("PUT", "/acme/app.git/gitlab-lfs/objects/ab12/4", OTHER, None, None),
        ("PUT", "/acme/other.git/info/lfs/objects/ab12/4", OTHER, None, OTHER),
        ("POST", "/acme/app.git/info/lfs/locks", OTHER, None, None),
        ("POST", "/acme/app/settings/delete", OTHER, OTHER, OTHER),
        ("POST", "/acme/app/info/refs", OTHER, OTHER, OTHER),
        ("PROPFIND", "/acme/app.git/", OTHER, OTHER, OTHER),
        # What the web APIs of forges write, at a name that the caller chooses: Gitea, GitLab, Bitbucket, Hugging Face,
        # Azure DevOps. To read there is to read.
        ("POST", "/api/v1/repos/acme/app/contents/git-upload-pack", OTHER, OTHER, OTHER),
        ("POST", "/gitea/api/v1/repos/acme/app/contents/info/lfs/objects/batch", OTHER, OTHER, OTHER),
        ("POST", "/api/v4/projects/7/repository/files/git-upload-pack?branch=main", OTHER, OTHER, OTHER),
        ("PUT", "/api/v4/projects/7/packages/generic/info/lfs/x", OTHER, OTHER, OTHER),
        ("POST", "/scm/rest/api/1.0/projects/a/repos/b/git-upload-pack", OTHER, OTHER, OTHER),
        ("POST", "/API/latest/x/git-upload-pack", OTHER, OTHER, OTHER),
        ("POST", "/api;x/models/acme/app/branch/git-upload-pack", OTHER, OTHER, OTHER),
        ("POST", "/acme/app/-/x/git-upload-archive", OTHER, OTHER, OTHER),
        ("POST", "/acme/app/_apis/wit/git-upload-pack", OTHER, OTHER, OTHER),
        ("POST", "/!api/2.0/x/git-upload-pack", OTHER, OTHER, OTHER),
        ("POST", "/api/v1/x/git-receive-pack", PUSH, PUSH, PUSH),
        ("GET", "/api/v1/repos/acme/app/contents/x", None, None, OTHER),
        # Repositories and groups may have the name.
        ("POST", "/acme/api/git-upload-pack", None, None, None),
        ("POST", "/acme/api/app.git/git-upload-pack", None, None, None),
        ("POST", "/acme/api-v1.git/git-upload-pack", None, None, None),
    ],
)
def test_what_passes(method: str, target: str, read: Reason | None, write: Reason | None, some: Reason | None) -> None:
    """INS-7: under `read`, under `write`, and with `read: [acme/**], write: [acme/app, lib.git]`."""
    said = [why_refused(under((held,)), method, target.encode()) for held in (READ, WRITE, SOME)]
    assert said == [read, write, some]


def test_a_repository_below_api_is_named_in_full() -> None:
    """INS-7: a server of git alone may have one there: without a wildcard it passes, its neighbours do not."""
    held = git_alternatives(("api/app", "api/v1/*"), ("api/v2/lib",))
    assert why_refused(under((held,)), "POST", b"/api/app.git/git-upload-pack") is None
    assert why_refused(under((held,)), "POST", b"/api/v2/lib/git-receive-pack") is None
    assert why_refused(under((held,)), "PUT", b"/api/v2/lib/info/lfs/objects/a/1") is None
    assert why_refused(under((held,)), "POST", b"/api/v1/app/git-upload-pack") is OTHER
    assert why_refused(under((held,)), "GET", b"/api/v1/app/info/refs?service=git-upload-pack") is None


def test_a_websocket_is_no_fetch() -> None:
    """INS-7: behind an accepted one nothing is read; the same GET without the offer passes, if it has no body."""
    assert why_refused(under((READ,)), "GET", b"/-/cable", body=True) is OTHER
    assert why_refused(under((READ,)), "POST", b"/acme/app/git-upload-pack", body=True) is None
    assert why_refused(under((READ,)), "GET", b"/-/cable", socket=True) is OTHER
    assert why_refused(under((READ,)), "GET", b"/-/cable") is None


def test_a_header_turns_no_fetch_into_a_push() -> None:
    """INS-7: what a server may take for the target or the method counts as it."""
    fetch = b"/acme/app/info/refs?service=git-upload-pack"
    push = [(b"x-original-url", b"/acme/app/info/refs?service=git-receive-pack")]
    assert why_refused(under((READ,)), "GET", fetch, push) is PUSH
    assert why_refused(under((READ,)), "GET", fetch, [(b"x-http-method-override", b"PUT")]) is OTHER
    assert why_refused(under((READ,)), "GET", fetch, [(b"x-original-url", fetch)]) is None


def test_a_push_is_no_method_a_client_can_send() -> None:
    """INS-7: the word for it in alternatives has a blank, which no method has; a client's PUSH is none."""
    assert why_refused(under((WRITE,)), "PUSH", b"/acme/app/git-receive-pack") is PUSH


@pytest.mark.parametrize("query", [b"", b"service=git-upload-pack", b"service=%zz", b"x=%"])
def test_what_is_no_push(query: bytes) -> None:
    """INS-7: discovery of a fetch, the dumb protocol's, and queries that are no queries."""
    assert not is_push(["", "a", "info", "refs"], query)
    assert not is_push(["", "a", "info", "refs", "x"], b"service=git-receive-pack")


@pytest.mark.parametrize(
    ("read", "write"),
    [
        ((), ()),
        (("**",), ()),
        (("acme/**", "lib.git"), ()),
        (("acme/**", "acme/app"), ("acme/app",)),
        (("**",), ("**",)),
    ],
)
def test_what_was_named_can_be_said_again(read: tuple[str, ...], write: tuple[str, ...]) -> None:
    """INS-7, B11: a rule is shown as its repositories, not as the requests that git makes for them."""
    named = tuple(one.removesuffix(".git") for one in read)
    assert repositories(git_alternatives(read, write)) == (named, write)
