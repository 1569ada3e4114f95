"""What tools have beside install and publish, at read-only registries: audits pass, what changes something does not.

The commands of one tool run in one task, one after the other; what reaches the registry is what counts (INS-7, B127).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from tests.client_programs import trusting
from tests.clients import package_managers as fetch
from tests.clients import registries
from tests.clients.kit import ALLOWED, held, need, net_lines, shown, unaided
from tests.clients.publishers import PUBLISHERS
from tests.clients.registries import NAME
from tests.clients.table import BUN
from tests.https_site import HttpsSite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.real_registries import House
    from tests.lab.api import Lab
    from tests.product import Product

_MANAGERS = {row.name: row for row in fetch.PACKAGE_MANAGERS}
_PUBLISH = {row.client.name: row for row in PUBLISHERS}
YARN = "registry.yarnpkg.com"
_PRESETS = {"npm.test": "npm", "crates.test": "crates", "gems.test": "rubygems"}
READ_ONLY = "package registries are read-only here"

_AUDITS = {
    "npm": "npm audit --registry=https://a.test/",
    "pnpm": f"{fetch.PNPM} audit --registry=https://a.test/",
    "Yarn 1": f"node {fetch.YARN1} audit",  # whichever registry it is told of, it asks its own name for it
    "Yarn 4": f"node {fetch.YARN4} npm audit",
    "Bun": f"{BUN} audit --registry=https://a.test/",
}


def preset(product: Product, name: str, host: str) -> tuple[str, str]:
    """Write a policy that says nothing but that a host is a preset's; return the option that names it."""
    return held(product, f"profile: balanced\npresets: {{{name}: ['{host}:443']}}\n")


@pytest.mark.parametrize("name", _AUDITS)
def test_an_audit_passes(
    product: Product, lab: Lab, tmp_path: Path, record_property: Callable[[str, object], None], name: str
) -> None:
    """INS-7, B127: each tool asks by POST for advisories about what it has installed, and that only reads."""
    row = _MANAGERS[name]
    need(row, record_property)
    lab.dns.set(YARN, A=[ALLOWED])
    with HttpsSite(lab.listener(ALLOWED, 443), ["a.test", YARN], tmp_path) as site:
        product.environment.update(trusting(shown(product, site.ca_file)))
        registries.npm_registry(site)
        site.takes["/-/npm/v1/security/"] = lambda _site, _method, _path, _body: b"{}"
        add = [word for word in row.command(unaided(product, "a.test")) if word not in {"--no-save", "--no-lockfile"}]
        script = f"{shlex.join(add)} && {{ {_AUDITS[name]}; }}"
        (product.folder / "package.json").write_text('{"name": "x", "version": "1.0.0"}')
        done = product.run(*preset(product, "npm", "a.test"), "--", "sh", "-c", script, timeout=90)
        asked = [one for one in site.requests if one.startswith("POST ")]
    assert asked, done.stdout + done.stderr
    assert {line.partition(" · ")[2] for line in net_lines(done)} == {"inspected (package-registries)"}
    assert done.returncode == 0 or name == "Yarn 1", done.stderr  # which has more to read of an answer in mind


_NPM = (
    "dist-tag add {name}@1.0.0 beta", "deprecate {name}@1.0.0 gone", "owner add other {name}", "unpublish -f {name}",
    "star {name}", "token create --password x", "team create a:b", "logout", "login --auth-type=web",
)  # fmt: skip
_COMMANDS = {
    # The tool: whose row, what its commands begin with, those that change something, and those that read.
    "npm": (
        "npm publish", "npm --registry={url}", _NPM,
        ("view {name} version", "search {name}", "whoami"),
    ),
    "Yarn 1": (
        "Yarn 1 publish", f"node {fetch.YARN1} --registry={{url}} --non-interactive",
        ("tag add {name}@1.0.0 beta", "tag remove {name} latest", "owner add other {name}"),
        ("info {name} version", "tag list {name}"),
    ),
    "Yarn 4": (
        "Yarn 4 publish", f"node {fetch.YARN4} npm",
        ("tag add {name}@1.0.0 beta",), ("info {name}", "whoami", "tag list {name}"),
    ),
    "pnpm": (
        "pnpm publish", f"{fetch.PNPM} --registry={{url}}",
        ("dist-tag add {name}@1.0.0 beta", "deprecate {name}@1.0.0 gone", "unpublish --force {name}"),
        ("view {name} version", "whoami"),
    ),
    "cargo": (
        "cargo publish", "cargo",
        ("owner --registry lab --add other {name}", "owner --registry lab --remove other {name}",
         "yank --registry lab --undo {name}@1.0.0"),
        ("search --registry lab {name}",),
    ),
    "gem": (
        "gem push", "gem",
        ("owner {name} -a other@a.test --host {url}gems", "owner {name} -r other@a.test --host {url}gems"),
        ("search {name} --remote --clear-sources --source {url}gems/",),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "npm" else ()) for name in _COMMANDS]
)
def test_what_changes_something_is_refused(
    product: Product, house: House, record_property: Callable[[str, object], None], name: str
) -> None:
    """INS-7, B127: tags, owners, tokens, teams, stars, log-ins: none arrives, each is told; what reads goes on."""
    row, begin, changes, reads = _COMMANDS[name]
    publisher = _PUBLISH[row]
    need(publisher.client, record_property)
    place = unaided(product, publisher.host)
    argv = list(publisher.client.command(place))  # for the files and variables that it needs
    variables = argv[: argv.index(next(word for word in argv[1:] if "=" not in word))] if argv[0] == "env" else []
    lines = [
        f"{begin} {words}".format(url=place.url, name=NAME) + f' && echo "passed {number}"'
        for number, words in enumerate((*changes, *reads))
    ]
    house.small.pages["/api/v1/crates"] = ("application/json", b'{"crates": [], "meta": {"total": 0}}')
    options = preset(product, _PRESETS[publisher.host], publisher.host)
    done = product.run(*options, "--", *variables, "sh", "-c", "\n".join(lines), timeout=240)
    passed = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("passed ")]
    assert passed == list(range(len(changes), len(lines))), done.stdout + done.stderr
    assert {one.split()[0] for one in house.arrived()} == {"GET"}, house.arrived()
    refused = next(line for line in done.stderr.splitlines() if f"{publisher.host}:443 · refused, {READ_ONLY}" in line)
    assert int(refused.partition(" ×")[2] or "1") >= len(changes), done.stderr
