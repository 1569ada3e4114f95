"""`git: read|write|{read: […], write: […]}`: what fetches from a repository over HTTPS, and what pushes (INS-7).

A fetch is GET and HEAD below the repository's path (the smart protocol's discovery, the dumb protocol's files, archives
and releases) and POST to `git-upload-pack`; a push begins with `info/refs?service=git-receive-pack` and is a POST to
`git-receive-pack` (gitprotocol-http(5), git-http-backend(1)).

Rules of the file:

* Nothing of a body is read. A query that could be read as the push's counts as that, in whatever encoding.
* Git LFS asks for downloads and uploads alike by POST to `info/lfs/objects/batch`, and only its body says which. It
  changes nothing itself, so it passes where a fetch does; what uploads (PUT, on this host) and its locks do not. Where
  the objects lie on another host, that host's own rule is what counts.
* Where any repository may be meant, the end of a path alone does not make a request git's: the web APIs of forges have
  addresses that end in a name of the caller's choice, a file's or a branch's, and what they do is no fetch. There only
  a repository that is named without wildcards passes.
* A repository is written as its path, `acme/app`; requests may have `.git` behind it. Case counts: hosts that
  do not care are held to the spelling that the policy has.

What it does not do: pushes of the old WebDAV kind, which never pass; ssh, inside of which nothing is read.
"""

from __future__ import annotations

from itertools import pairwise

from tidegate.model.rule import GIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.rule import Alternative

PUSH = "git push"
"""What a push has as its method in alternatives: no method that a client can send has a blank."""
ANY = "**"
FORGES = (
    "altssh.bitbucket.org", "altssh.gitlab.com", "bitbucket.org", "codeberg.org", "dev.azure.com", "gist.github.com",
    "git.launchpad.net", "git.sr.ht", "gitea.com", "github.com", "gitlab.com", "hf.co", "huggingface.co",
    "salsa.debian.org", "ssh.dev.azure.com", "ssh.github.com",
)  # fmt: skip
"""Public hosts of repositories, which `git: read` of a whole policy holds to fetch; those for ssh then give nothing."""
_RECEIVE = "git-receive-pack"
_READS = ("git-upload-pack", "git-upload-archive", "info/lfs/objects/batch")
_WRITES = ("info/lfs/**", "gitlab-lfs/**")
_API_FIRST = frozenset(("api",))  # nobody's name on a forge: GitHub, GitLab, Gitea and Hugging Face keep it for this
_API_ANYWHERE = frozenset(("_apis", "!api", "-"))  # Azure DevOps, Bitbucket, GitLab
_ROUNDS = 3  # of percent-decoding: no server does more


def git_alternatives(read: Iterable[str], write: Iterable[str]) -> tuple[Alternative, ...]:
    """Return what may be fetched from `read` and `write`, and pushed to `write`: patterns of repositories' paths."""
    pushed = [form for repository in write for form in _forms(repository)]
    fetched = list(dict.fromkeys([form for repository in read for form in _forms(repository)] + pushed))
    found: list[Alternative] = []
    if fetched:
        whole = tuple(path for form in fetched for path in ((form,) if form == "/**" else (form, f"{form}/**")))
        found.append((GIT, ("GET", "HEAD"), whole))
        found.append((GIT, ("POST",), tuple(f"{form}/{what}" for form in fetched for what in _READS)))
    if pushed:
        found.append((GIT, (PUSH,), tuple(f"{form}/{what}" for form in pushed for what in (_RECEIVE, "info/refs"))))
        found.append((GIT, ("POST", "PUT"), tuple(f"{form}/{what}" for form in pushed for what in _WRITES)))
    return tuple(found)


def repositories(alternatives: Iterable[Alternative]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what git_alternatives was given: the repositories that may be fetched, and those that may be pushed to."""
    fetched: dict[str, None] = {}
    pushed: dict[str, None] = {}
    for kind, methods, paths in alternatives:
        into, end = (pushed, f"/{_RECEIVE}") if methods == (PUSH,) else (fetched, f"/{_READS[0]}")
        if kind == GIT:
            into |= {path[1 : -len(end)]: None for path in paths if path.endswith(end)}
    return _named(fetched), _named(pushed)


def _named(forms: dict[str, None]) -> tuple[str, ...]:
    return tuple(form for form in forms if form.removesuffix(".git") == form or form.removesuffix(".git") not in forms)


def _forms(repository: str) -> tuple[str, ...]:
    bare = repository.removesuffix(".git")
    return ("/" + bare,) if bare.endswith("*") else ("/" + bare, f"/{bare}.git")


def named(alternatives: Iterable[Alternative]) -> tuple[Alternative, ...]:
    """Return those of git_alternatives that name one repository."""
    found = ((kind, methods, tuple(map(_without_wildcards, paths))) for kind, methods, paths in alternatives)
    return tuple((kind, methods, tuple(filter(None, paths))) for kind, methods, paths in found if any(paths))


def _without_wildcards(pattern: str) -> str:
    return "" if "*" in pattern.removesuffix("/**") else pattern


def is_push(path: list[str], query: bytes) -> bool:
    """Whether a request with this path, in normal form, is part of a push."""
    bare = [segment.partition(";")[0].lower() for segment in path]  # some servers cut parameters off
    if _RECEIVE in bare:
        return True
    if [segment for segment in bare if segment][-2:] != ["info", "refs"]:
        return False
    text = query
    for _ in range(_ROUNDS):
        if b"receive" in text.lower():
            return True
        text = _decoded(text)
    return b"receive" in text.lower()


def is_api(path: list[str]) -> bool:
    """Whether a path, in normal form, lies in a forge's web API: `/api/v1/…` below whatever path the forge has."""
    bare = [segment.partition(";")[0].lower() for segment in path]
    return (
        not _API_ANYWHERE.isdisjoint(bare)
        or bare[1] in _API_FIRST
        or any(one == "api" and _is_version(after) for one, after in pairwise(bare))
    )


def _is_version(segment: str) -> bool:
    return segment == "latest" or segment.removeprefix("v").replace(".", "").isdigit()


def _decoded(text: bytes) -> bytes:
    first, *rest = text.split(b"%")
    parts = [first]
    for part in rest:
        try:
            parts.append(bytes((int(part[:2], 16),)) + part[2:])
        except ValueError:
            parts.append(b"%" + part)
    return b"".join(parts)
