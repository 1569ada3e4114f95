r"""What the API takes: bodies and queries, as types that say their bounds. The OpenAPI document is made from them.

Rules of the file: a name that is not here is refused; every text has a length, every list a size, every number a
range; times are Unix seconds. What only the house can judge (hosts, policies, folders) is judged where it is used.
Patterns end in `(?![\s\S])`, which is the end of the text in Python's and in ECMAScript's language alike; `$` is not.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MAX_POLICY = 8 * 1024 * 1024  # POL-0
MAX_BODY = 2 * MAX_POLICY  # escaped as a JSON string
LATEST = 253402300799.0  # the last second of the year 9999

_Count = Annotated[int, Meta(ge=1, le=2**53 - 1)]
Time = Annotated[float, Meta(ge=0, le=LATEST, description="Unix seconds")]
Port = Annotated[int, Meta(ge=1, le=65535)]
Path = Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"^/[^\x00-\x1f\x7f]*(?![\s\S])")]
Name = Annotated[str, Meta(min_length=1, max_length=80, pattern=r"^[^\x00-\x1f\x7f]+(?![\s\S])")]
SecretName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_]*(?![\s\S])")]
ToolName = Annotated[str, Meta(min_length=1, max_length=48, pattern=r"^[a-z][a-z0-9_-]*(?![\s\S])")]
HostText = Annotated[str, Meta(min_length=1, max_length=260)]
Hosts = Annotated[list[HostText], Meta(max_length=1000)]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Before = Annotated[int, Meta(ge=1, le=2**53 - 1)]


class NoQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """No parameters."""


class NewTask(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A task to be created in a folder: under a policy, under a list of hosts, or under the settings' default."""

    folder: Path
    name: Name | None = None
    policy: Annotated[str, Meta(max_length=MAX_POLICY, description="the text of a policy file")] | None = None
    hosts: Hosts | None = None
    wait_seconds: Annotated[int, Meta(ge=60, le=28800)] | None = None
    network: Literal["none", "allowlist"] | None = None
    secrets: Annotated[list[SecretName], Meta(max_length=100, description="names; tidegate secret set")] = []
    tools: Annotated[list[ToolName], Meta(max_length=64, description="of those with `for_tasks`")] = []
    issue: Annotated[str, Meta(max_length=31, pattern=r"^([A-Z][A-Z0-9_]{1,19}-[1-9][0-9]{0,9})?(?![\s\S])")] = ""


class PhaseChange(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The phase a living task moves to; `cut` closes what is open."""

    phase: Literal["install", "runtime"]
    cut: bool = False


class WaitChange(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """How long questions of the task wait that open from now on."""

    wait_seconds: Annotated[int, Meta(ge=60, le=28800)]


class Pause(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Whether new connections of the task are refused."""

    paused: bool


class CutRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Which open connections are closed: all, those to a host, those to a host and port, or one by its number."""

    host: HostText | None = None
    port: Port | None = None
    connection: _Count | None = None


class HostChange(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Rules that join a living task's policy."""

    allow: Hosts = []
    deny: Hosts = []


class Reply(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A person's answer to a question, and where it ends (with `allow` and `task`)."""

    answer: Literal["allow", "task", "remember", "deny", "deny-task"]
    until: Time | None = None
    connections: _Count | None = None
    bytes: _Count | None = None


class NewToken(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A token to be made."""

    name: Name
    role: Literal["owner", "viewer"] = "viewer"
    expires_at: Time | None = None


class CodeRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What the one-time code is good for."""

    role: Literal["owner", "viewer"] = "owner"


class Session(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A one-time code, to be changed into a token."""

    code: Annotated[str, Meta(min_length=1, max_length=200)]


class ProofRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Which token the asker has, by its id, and a number that it has just drawn: 256 random bits in base64url."""

    token: _Count
    number: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{43}(?![\s\S])", min_length=43, max_length=43)]


class WebhookReply(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A one-time token that the webhook was sent: it names the question and the answer."""

    token: Annotated[str, Meta(min_length=1, max_length=200)]


class PairRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The phone to be paired."""

    name: Name = "phone"
    role: Literal["owner", "viewer"] = "owner"


class Nothing(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """An empty object."""


class TasksQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Which tasks: newest first; `before` is the id of the last one seen."""

    living: bool | None = None
    limit: Limit = 100
    before: Annotated[str, Meta(max_length=64)] | None = None


class PageQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Which lines: newest first; `before` is the number of the last one seen."""

    limit: Limit = 100
    before: Before | None = None


class HostsQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """How many hosts at most."""

    limit: Limit = 20


class RulesQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Which remembered hosts: of one folder, or all."""

    folder: Path | None = None


class LogQuery(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Which lines of the action log: newest first."""

    limit: Limit = 100
    before: Before | None = None
    type: Annotated[str, Meta(max_length=64)] | None = None
    task: Annotated[str, Meta(max_length=64)] | None = None


class SettingsChange(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The settings to change; one that is left out stays. An empty `webhook` is none; its key is taken, never given."""

    network_default: Literal["none", "allowlist"] | None = None
    default_hosts: Hosts | None = None
    wait_seconds: Annotated[float, Meta(ge=60, le=28800)] | None = None
    notify: bool | None = None
    webhook: Annotated[str, Meta(max_length=2000)] | None = None
    webhook_key: Annotated[str, Meta(min_length=16, max_length=4096)] | None = None
    relay_image: Annotated[str, Meta(max_length=300)] | None = None


class SinkChange(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A sink, whole (docs/sinks.md). A key that is left out stays as long as the address does."""

    url: Annotated[str, Meta(min_length=1, max_length=2000)]
    key: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    types: Annotated[list[Annotated[str, Meta(min_length=1, max_length=60)]], Meta(max_length=50)] = []
    min: Literal["critical", "error", "warning", "notice", "info"] = "info"
    clear: bool = False
    ca: Annotated[str, Meta(max_length=65536)] = ""
    key_header: Annotated[str, Meta(max_length=60)] = ""
    client_cert: Annotated[str, Meta(max_length=65536, description="PEM: a certificate and its chain, no key")] = ""
    client_key: Annotated[str, Meta(min_length=1, max_length=16384, description="PEM, without a password")] | None = (
        None
    )
    proxy: Annotated[str, Meta(max_length=300, description="http://HOST:PORT")] = ""
    proxy_key: Annotated[str, Meta(min_length=3, max_length=4096, description="user:password")] | None = None
    from_start: bool = False
