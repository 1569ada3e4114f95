"""tidegate.journal.sinks.webhook: the exact bytes of a batch, and their signature."""

from __future__ import annotations

from pathlib import Path

from tests.sinks.receivers import Hook, until
from tests.sinks.rig import Log, rig

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "webhook.md"


def genuine() -> object:
    """Return `is_genuine` as docs/webhook.md gives it to readers."""
    text = DOCUMENT.read_text(encoding="utf-8")
    code = text.split("```python\n", 1)[1].split("```", 1)[0]
    names: dict[str, object] = {}
    exec(compile(code, str(DOCUMENT), "exec"), names)
    return names["is_genuine"]


def test_lines_are_the_logs_own_and_signed(tmp_path: Path) -> None:
    """JRN-6: byte for byte as in the log, so that a receiver can follow the chain; signed as questions are."""
    log = Log(tmp_path / "a")
    wanted = log.blocked(3)
    with Hook() as hook, rig(log, hook):
        until(lambda: hook.seqs == wanted)
        _, _, headers, body = hook.got[0]
    assert body == (Path(log.folder) / "actions.jsonl").read_bytes()
    assert headers["Content-Type"] == "application/x-ndjson"
    assert headers["Idempotency-Key"] == f'"{hook.ids[0]}/{hook.ids[-1]}"'
    is_genuine = genuine()
    assert callable(is_genuine)
    assert is_genuine(hook.key, headers, body)
    assert not is_genuine(hook.key, headers, body + b"\n")
