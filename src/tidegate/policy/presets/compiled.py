"""The hosts of all presets, made by scripts/compile-presets of the YAML files here; change those."""

from __future__ import annotations

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
