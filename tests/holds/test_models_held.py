"""The model guard in every hold that has a gate: calls are looked at, the key and the sign-in are outside (INS-8)."""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING

import pytest

from tests.clients.kit import ALLOWED
from tests.engines import of_one_worker
from tests.holds.inside_tls import CONTAINED, OWN, Inside
from tests.holds.leaks import found_in_files
from tests.served import until

if TYPE_CHECKING:
    from tests.lab.api import Lab

API = "api.anthropic.com"
KEY = f"sk-ant-api03-He1d{secrets.token_hex(12)}"
SIGN_IN = f"sk-ant-oat01-He1d{secrets.token_hex(12)}"
CALL = '{"model": "x", "messages": []}'
FETCH = '{"model": "x", "messages": [], "tools": [{"type": "web_fetch_20260318", "name": "web_fetch"}]}'
AGENT = f"""#!/bin/sh
echo "$ANTHROPIC_API_KEY"
cat "$HOME"/.claude/.credentials.json "$HOME"/.codex/auth.json 2>/dev/null
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'
echo looked
touch ready; while [ ! -e go ]; do sleep 0.1; done
ask() {{
  curl -sS -m 30 -o out -w '%{{http_code}} ' -H "x-api-key: ${{KEY:-$ANTHROPIC_API_KEY}}" \\
    -H 'Content-Type: application/json' -d "$1" "https://{API}$2"
  cat out; echo
}}
ask '{CALL}' /v1/messages
ask '{FETCH}' /v1/messages
ask '{{}}' /v1/files
KEY=another-key-of-somebody-else; ask '{CALL}' /v1/messages
"""


CONTAINERS = [pytest.param(one, marks=(pytest.mark.slow, *of_one_worker(one))) for one in CONTAINED[:2]]


@pytest.mark.parametrize("place", [*OWN, *CONTAINERS])
def test_calls_are_looked_at_and_the_key_is_outside(request: pytest.FixtureRequest, lab: Lab, place: str) -> None:
    """INS-8, POL-12: a call passes with the key; one that fetches, another path and another key do not."""
    lab.dns.set(API, A=[ALLOWED])
    origin = lab.origin("echo", ALLOWED, 443, tls=API)
    with Inside(place, request, lab) as inside:
        product = inside.product
        product.environment["ANTHROPIC_API_KEY"] = KEY
        for name in (".claude/.credentials.json", ".codex/auth.json"):
            (product.home / name).parent.mkdir(exist_ok=True)
            (product.home / name).write_text(json.dumps({"accessToken": SIGN_IN}))
        agent = product.folder / "claude"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        words = list(inside.words("--harness", "claude", "--profile", "closed", script=""))
        process = product.start(*words[: words.index("--")], "--", "./claude")
        ready, go = product.folder / "ready", product.folder / "go"
        known = ""
        try:
            until(lambda: ready.exists() or process.poll() is not None)
            if inside.hold in ("docker", "podman"):
                ids = inside.engine.run("ps", "-aq").split()
                known = json.dumps([inside.engine.inspect(one) for one in ids])
        finally:
            go.touch()
            out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        stand_in, *lines = out.splitlines()
        assert (len(stand_in), stand_in[:13], stand_in != KEY) == (len(KEY), "sk-ant-api03-", True)
        counted = lines.index("looked")
        seen = "\n".join(lines[:counted])
        if inside.hold == "landlock":
            assert "this hold hides no single file" in err
        else:
            assert (SIGN_IN not in seen, "the task does not see" in err) == (True, True)
        assert KEY not in out + err + known
        answers = "\n".join(lines[counted + 1 :])
        assert "200 POST /v1/messages" in answers
        assert answers.count("403 ") == 3, answers
        assert "web_fetch_20260318" in answers
        assert "another one was sent there in x-api-key" in answers
        assert stand_in in answers  # what the service repeats is swapped back
        assert [KEY.encode() in head for head in origin.heads] == [True]
        assert f"net: {API}:443 · inspected (harness:claude)" in err
        assert found_in_files(KEY, product.home) == []
        assert os.path.exists(product.home / ".claude/.credentials.json")
