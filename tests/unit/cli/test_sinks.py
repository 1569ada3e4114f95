"""`tidegate sinks` against a whole server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sinks.proxies import company_proxy
from tests.sinks.receivers import Hook, Otlp, until
from tests.sinks.rig import authority
from tests.unit.server.api.running import Whole
from tidegate.cli.main import main


def key_file(folder: Path, key: bytes) -> str:
    """Return a key file that only its owner reads."""
    path = folder / "key"
    path.write_bytes(key + b"\n")
    path.chmod(0o600)
    return str(path)


def test_sinks_are_set_shown_and_removed(whole: Whole, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JRN-6: one line each, with how far it has come; exit status 1 where one cannot send."""
    with Hook() as hook:
        words = ["sinks", "set", "siem", hook.url, "--key-file", key_file(tmp_path, hook.key), "--type", "net.*"]
        assert main(words) == 0
        assert "siem  webhook at localhost · line " in capsys.readouterr().out
        seq = whole.server.log.append("net.blocked", "t", host="h.test:1")
        until(lambda: hook.seqs == [seq])
        until(lambda: whole.get("/api/sinks")["sinks"][0]["lag"] == 0)
        assert main(["sinks"]) == 0
        assert "up to date" in capsys.readouterr().out
        assert main(["sinks", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["sent"] == 1
    whole.server.log.append("net.blocked", "t", host="h.test:1")
    until(lambda: whole.get("/api/health")["failing_sinks"] == ["siem"])
    assert main(["sinks"]) == 1
    assert "Connection refused (since " in capsys.readouterr().out
    assert main(["sinks", "remove", "siem"]) == 0
    assert main(["sinks"]) == 0
    said = capsys.readouterr()
    assert said.out == "siem is removed\n"
    assert said.err == "tidegate: there is no sink: tidegate sinks set NAME URL; see docs/sinks.md\n"


def test_mistakes_are_one_line(whole: Whole, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JRN-6, HLD-16: a key that others can read, clear text to elsewhere, a CA that is none, a name of none."""
    path = key_file(tmp_path, b"0123456789abcdef")
    Path(path).chmod(0o644)
    for words, status, says in (
        (["set", "x", "https://h.test/", "--key-file", path], 78, "read by others"),
        (["set", "x", "syslog+udp://h.test"], 2, "--clear"),
        (["set", "x", "otlp+https://h.test", "--ca", path], 2, "PEM"),
        (["set", "x", "otlp+https://h.test", "--ca", "/none"], 2, "cannot be read"),
        (["set", "x", "otlp+https://h.test", "--min", "loud"], 2, "'warning'"),
        (["set", "x", "otlp+https://h.test", "--type", "net.block"], 2, "did you mean net.blocked?"),
        (["set", "x", "h.test:514"], 2, "or syslog+tls://HOST"),
        (["set", "x", "gopher://h.test"], 2, "or syslog+tls://HOST"),
        (["remove", "x"], 2, "there is no sink 'x': tidegate sinks set NAME URL"),
        (["test", "x"], 2, "there is no sink 'x': tidegate sinks set NAME URL"),
    ):
        assert main(["sinks", *words]) == status, words
        err = capsys.readouterr().err
        assert says in err
        assert err.count("\n") <= 2
    assert whole.get("/api/sinks")["sinks"] == []


@pytest.mark.usefixtures("whole")
def test_a_sink_is_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JRN-6, HLD-16: one line with what the receiver answered; 0 where it has the record, 1 where it has not."""
    with Hook() as hook:
        path = key_file(tmp_path, hook.key)
        assert (
            main(["sinks", "set", "siem", hook.url, "--key-file", path, "--type", "task.*", "--min", "critical"]) == 0
        )
        capsys.readouterr()
        assert main(["sinks", "test", "siem"]) == 0
        assert capsys.readouterr() == ("siem  webhook at localhost · taken: it answers 204\n", "")
        assert hook.seqs == [0]
        hook.faults.append("401")
        assert main(["sinks", "test", "siem"]) == 1
        assert capsys.readouterr() == ("siem  webhook at localhost · not taken: it answers 401\n", "")
        assert main(["sinks", "test", "siem", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {
            "name": "siem", "kind": "webhook", "host": "localhost", "taken": True, "answer": "it answers 204",
        }  # fmt: skip
    assert main(["sinks", "test", "siem"]) == 1
    assert capsys.readouterr().out == "siem  webhook at localhost · not taken: Connection refused\n"
    for word in ("remove", "test"):
        assert main(["sinks", word, "soc"]) == 2
        assert capsys.readouterr() == ("", "tidegate: there is no sink 'soc': one of siem\n")
    assert main(["sinks", "remove", "siem"]) == 0


def test_a_certificate_and_a_proxy_are_given_by_files(
    whole: Whole, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JRN-6: keys from files that their owner reads; shown is the proxy's place and no key; mistakes quote none."""
    client = authority().client
    certificate = tmp_path / "client.pem"
    certificate.write_text(client["cert"])
    pem = key_file(tmp_path, client["cert_key"])
    (tmp_path / "proxy").mkdir()
    password = key_file(tmp_path / "proxy", b"me:s3cret")
    (tmp_path / "ca.pem").write_text(authority().pem)
    shown = ["--ca", str(tmp_path / "ca.pem"), "--client-cert", str(certificate), "--client-key", pem]
    with Otlp(authority().strict) as otlp, company_proxy(user="me", password="s3cret") as proxy:
        through = ["--proxy", f"http://{proxy.name}", "--proxy-key-file", password]
        assert main(["sinks", "set", "siem", otlp.url, *shown, *through]) == 0
        assert f"siem  otlp at localhost through {proxy.name} · line " in capsys.readouterr().out
        assert main(["sinks", "test", "siem"]) == 0
        assert main(["sinks", "set", "siem", otlp.url, *shown[:4], *through[:2]]) == 0  # keys stay
        assert main(["sinks", "test", "siem"]) == 0
        assert main(["sinks", "set", "siem", otlp.url, *shown[:4], "--proxy", "http://127.0.0.1:9"]) == 0
        capsys.readouterr()
        assert main(["sinks", "test", "siem"]) == 1
        assert "not taken: through the proxy 127.0.0.1:9: Connection refused" in capsys.readouterr().out
    Path(pem).chmod(0o644)
    for words, status, says in (
        (shown, 78, "read by others"),
        (["--client-cert", str(certificate), "--client-key", password], 2, "no pair"),
        (["--client-cert", str(certificate)], 2, "a client's key is missing"),
        (["--client-cert", pem, "--client-key", password], 2, "holds a private key"),
        (["--proxy", "http://me:s3cret@proxy.test:1"], 2, "--proxy-key-file FILE"),
    ):
        assert main(["sinks", "set", "x", "otlp+https://h.test", *words]) == status, words
        err = capsys.readouterr().err
        assert says in err
        assert err.count("\n") == 1
        assert "s3cret" not in err
    whole_text = json.dumps(whole.get("/api/sinks")) + json.dumps(whole.get("/api/log"))
    assert "s3cret" not in whole_text
    assert "PRIVATE" not in whole_text
