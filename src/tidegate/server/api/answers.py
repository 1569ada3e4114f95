"""What the API gives: the shapes of its answers, for the OpenAPI document and for those who make them.

Rules of the file: all times are Unix seconds; hosts are A-labels; nothing here holds a secret but `NewTokenAnswer` and
`SessionAnswer`, each shown once.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """That the server answers, who asked, and which sinks cannot send or have lost something."""

    ok: bool
    version: str
    started: float
    role: Literal["owner", "viewer"]
    living: int
    open_questions: int
    failing_sinks: list[str]


class Exec(msgspec.Struct, frozen=True, kw_only=True):
    """One command of a task that runs now."""

    id: str
    command: list[str]
    hold: str
    started_at: float


class SecretUse(msgspec.Struct, frozen=True, kw_only=True):
    """A secret of a task: for which hosts it is (with their ports), and the variable that holds the stand-in."""

    name: str
    hosts: list[str]
    variable: str


class SecretAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that tasks can be given. `field` is the name of its header or parameter, '' for others."""

    name: str
    hosts: list[str]
    place: str
    field: str
    variable: str
    source: str


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, by name."""

    secrets: list[SecretAnswer]


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that commands can be given. `hosts` is what it says that it talks to.

    It is held to the task's hosts only where `apply_task_hosts`. `works` is whether there is such a program,
    `for_tasks` whether the server offers it to the tasks that are created in it.
    """

    name: str
    description: str
    hosts: list[str]
    apply_task_hosts: bool
    source: str
    works: bool
    for_tasks: bool


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, as they are declared; `problem` says what is wrong with the declaration, '' where nothing is."""

    tools: list[ToolAnswer]
    problem: str


class TaskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One task. `execs` are its commands that run now; the counts are 0 where a server was killed."""

    id: str
    name: str
    folder: str
    command: list[str]
    phase: Literal["install", "runtime"]
    state: Literal["living", "ended"]
    created_at: float
    ended_at: float | None
    outcome: str
    hold: str
    network: str
    wait_seconds: float
    paused: bool
    execs: list[Exec]
    connections: int
    refused: int
    questions: int
    by: str
    secrets: list[SecretUse]
    tools: list[str]
    warnings: list[str]


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """A page of tasks, newest first."""

    tasks: list[TaskAnswer]
    more: bool


class OpenConnection(msgspec.Struct, frozen=True, kw_only=True):
    """A connection that is open now, or a request on one. `how` is '' until bytes may move.

    `waiting` is for a person's answer. `bytes_up` flow away from the task.
    """

    id: int
    host: str
    port: int
    verdict: Literal["allow", "ask", "deny"]
    rule: str
    name: str
    source: str
    phase: Literal["install", "runtime"]
    state: Literal["waiting", "connecting", "open"]
    how: str
    method: str
    address: str
    since: float
    bytes_up: int
    bytes_down: int


class OpenConnections(msgspec.Struct, frozen=True, kw_only=True):
    """What a task has open, the oldest first; `more` are not shown.

    For `seconds` from now `open` events tell what changes of it; whoever looks on for longer asks again before that.
    """

    open: list[OpenConnection]
    more: int
    seconds: float


class CutAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How many connections were closed."""

    cut: int


class Connections(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a task's record, newest first. Each has the keys of the line in its `network.jsonl`."""

    connections: list[dict[str, Any]]
    before: int | None = msgspec.field(default=None)


class HostCount(msgspec.Struct, frozen=True, kw_only=True):
    """One host and port, `*` for all that are too many to count alone: connections that passed and were refused."""

    host: str
    port: int
    reached: int
    refused: int
    bytes: int


class HostCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts, those with the most connections first, and how many more there are."""

    hosts: list[HostCount]
    more: int


class QuestionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One question. `label` is the Unicode form of the host where it is safe to show.

    `group` is the domain under which the task asks for very many names. `no_remember` says why `remember` cannot be
    answered, `problem` why an allowed connection failed all the same; both are mostly empty.
    """

    id: int
    task: str
    task_name: str
    folder: str
    host: str
    label: str
    port: int
    phase: str
    rule: str
    rule_name: str
    source: str
    opened_at: float
    deadline_at: float
    waiting: int
    state: Literal["open", "saving", "answered", "expired", "ended"]
    answer: Literal["allow", "task", "remember", "deny", "deny-task"] | None
    answered_at: float | None
    by: str
    group: str
    warnings: list[str]
    no_remember: str
    problem: str


class Questions(msgspec.Struct, frozen=True, kw_only=True):
    """All questions, open ones first."""

    questions: list[QuestionAnswer]


class RuleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A remembered host."""

    id: int
    folder: str
    host: str
    port: int
    phase: str
    at: float
    by: str


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Remembered hosts."""

    rules: list[RuleAnswer]


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the action log, newest first."""

    lines: list[dict[str, Any]]


class LogFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One place where the log is not as it was written; `line` is 0 for the file as a whole."""

    file: str
    line: int
    what: str


class LogVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the chain of the action log holds, and as far as which line it is sealed."""

    ok: bool
    lines: int
    sealed_to: int
    unfinished: bool
    findings: list[LogFinding]
    more: int


class TokenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A token, without its secret."""

    id: int
    name: str
    role: Literal["owner", "viewer"]
    created_at: float
    last_used_at: float | None
    expires_at: float | None


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that are good."""

    tokens: list[TokenAnswer]


class NewTokenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A new token; `secret` is shown this once."""

    token: TokenAnswer
    secret: str


class CodeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A one-time code, and the portal's address that takes it in its fragment."""

    code: str
    url: str
    expires_at: float


class SessionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A token for the page that showed the code."""

    token: str
    id: int
    role: Literal["owner", "viewer"]
    expires_at: float


class ProofAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An HMAC-SHA-256 in base64url. Its key is the SHA-256 of the token.

    Its text is `tidegate proof 1`, the origin that this door listens at, and the number, with a line end between them.
    """

    proof: str


class PairAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a phone scans. `fingerprint` is the SHA-256 of the certificate that its browser will show."""

    url: str
    expires_at: float
    fingerprint: str
    svg: str


class SettingsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What applies to tasks that say nothing of their own, and how people hear of questions.

    Of the webhook there is only where it leads; `fixed` are settings that the command line of `serve` holds.
    """

    network_default: Literal["none", "allowlist"]
    default_hosts: list[str]
    wait_seconds: float
    notify: bool
    webhook: str
    relay_image: str
    webhook_key_set: bool
    fixed: list[Literal["notify", "webhook"]]


class SinkGap(msgspec.Struct, frozen=True, kw_only=True):
    """Lines, by their numbers, that were gone from the log before a sink had them."""

    first: int
    last: int


class SinkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What follows the action log, and how far it has come. Of its address there is only the host.

    `proxy` is the host and port that it goes through, if it does; `certificate` says whether it shows one of its own.
    `lag` is in lines; `set_aside` were refused by the receiver for ever, `lost` were gone (the newest `gaps`).
    """

    name: str
    kind: Literal["webhook", "elasticsearch", "otlp", "jira", "syslog"]
    host: str
    proxy: str
    certificate: bool
    types: list[str]
    min: Literal["critical", "error", "warning", "notice", "info"]
    state: Literal["up to date", "behind", "failing"]
    error: str
    position: int
    lag: int
    sent: int
    set_aside: int
    lost: int
    gaps: list[SinkGap]
    failing_since: float | None
    sent_at: float | None


class SinkTestAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a receiver said to one record that was a test. `taken` says whether it is there now, as far as it says."""

    name: str
    kind: str
    host: str
    taken: bool
    answer: str


class SinkAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, by name."""

    sinks: list[SinkAnswer]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """It is done."""

    ok: bool = True
