"""The presets: hosts, and what reads there. Made by scripts/compile-presets of the YAML files here; change those."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.policy.rows import LimitsRow

HOSTS: dict[str, tuple[str, ...]] = {
    "crates": ("index.crates.io", "static.crates.io", "crates.io"),
    "go-storage": ("storage.googleapis.com",),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "maven": ("repo.maven.apache.org", "repo1.maven.org"),
    "npm": ("registry.npmjs.org",),
    "nuget": ("api.nuget.org", "azuresearch-usnc.nuget.org", "azuresearch-ussc.nuget.org"),
    "pypi": ("pypi.org", "files.pythonhosted.org"),
    "rubygems": ("rubygems.org", "index.rubygems.org"),
    "yarn": ("registry.yarnpkg.com", "repo.yarnpkg.com"),
}

GROUPS: dict[str, tuple[str, ...]] = {
    "package-registries": ("crates", "go", "maven", "npm", "nuget", "pypi", "rubygems", "yarn"),
}

_0: LimitsRow = (
    None,
    None,
    (
        (
            (
                "registry",
                ("GET", "HEAD"),
                (),
            ),
        ),
    ),
)
_1: LimitsRow = (
    None,
    None,
    (
        (
            (
                "registry",
                ("GET", "HEAD"),
                ("/proxy-golang-org-prod/**",),
            ),
        ),
    ),
)
_2: LimitsRow = (
    None,
    None,
    (
        (
            (
                "registry",
                ("GET", "HEAD"),
                (),
            ),
            (
                "registry",
                ("POST",),
                (
                    "/-/npm/v1/security/advisories/bulk",
                    "/-/npm/v1/security/audits",
                    "/-/npm/v1/security/audits/quick",
                ),
            ),
        ),
    ),
)

READS: dict[str, LimitsRow] = {
    "index.crates.io": _0,
    "static.crates.io": _0,
    "crates.io": _0,
    "storage.googleapis.com": _1,
    "proxy.golang.org": _0,
    "sum.golang.org": _0,
    "repo.maven.apache.org": _0,
    "repo1.maven.org": _0,
    "registry.npmjs.org": _2,
    "api.nuget.org": _0,
    "azuresearch-usnc.nuget.org": _0,
    "azuresearch-ussc.nuget.org": _0,
    "pypi.org": _0,
    "files.pythonhosted.org": _0,
    "rubygems.org": _0,
    "index.rubygems.org": _0,
    "registry.yarnpkg.com": _2,
    "repo.yarnpkg.com": _0,
}
