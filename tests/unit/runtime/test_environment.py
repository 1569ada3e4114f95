"""tidegate.runtime.environment."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tidegate.runtime.environment import task_environment

CALLER = {"HOME": "/home/u", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


def _made(caller: dict[str, str] | None = None, **changes: object) -> dict[str, str]:
    options: dict[str, object] = {"task": "t1", "host": "127.0.0.1", "port": 3128, "own_loopback": True} | changes
    return task_environment(CALLER if caller is None else caller, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"])
def test_the_proxy_is_named_in_both_cases_without_credentials(name: str) -> None:
    """GAT-10, B137: an http:// URL of the gate and nothing else; who speaks follows from the listener."""
    assert _made()[name] == "http://127.0.0.1:3128"


def test_no_value_of_the_callers_proxy_stays() -> None:
    """B100, B133: the caller's proxy, its credentials and its NO_PROXY never reach the task, in any spelling."""
    caller = CALLER | {
        "HTTPS_PROXY": "http://user:hunter2@10.0.0.9:8080",
        "https_proxy": "http://user:hunter2@10.0.0.9:8080",
        "Http_Proxy": "http://user:hunter2@10.0.0.9:8080",
        "ftp_proxy": "http://user:hunter2@10.0.0.9:8080",
        "RSYNC_PROXY": "user:hunter2@10.0.0.9:8080",
        "NPM_CONFIG_HTTPS_PROXY": "http://user:hunter2@10.0.0.9:8080",
        "NPM_CONFIG_PROXY": "http://user:hunter2@10.0.0.9:8080",
        "GLOBAL_AGENT_HTTP_PROXY": "http://user:hunter2@10.0.0.9:8080",
        "NO_PROXY": "*",
        "no_proxy": "evil.test",
    }
    made = _made(caller)
    assert not any("hunter2" in value or "10.0.0.9" in value for value in made.values())
    assert made["NO_PROXY"] == made["no_proxy"] == "localhost,127.0.0.1,::1"


def test_no_proxy_is_empty_where_loopback_is_the_machines() -> None:
    """GAT-10, B82: with a shared loopback no address goes around the gate."""
    made = _made(own_loopback=False)
    assert made["NO_PROXY"] == made["no_proxy"] == made["npm_config_noproxy"] == ""


def test_variables_of_other_meaning_are_kept() -> None:
    """GAT-10, B110: what is not about a proxy is the caller's, certificates and near names included."""
    caller = CALLER | {"SSL_CERT_FILE": "/x", "PROXY_PASS": "nginx word", "APP_PROXY_MODE": "1", "EMPTY": ""}
    made = _made(caller)
    assert {name: made[name] for name in caller} == caller


def test_java_options_are_appended_and_only_without_capture() -> None:
    """B131: a user's own JAVA_TOOL_OPTIONS stays; under capture nothing is set."""
    caller = CALLER | {"JAVA_TOOL_OPTIONS": "-Xmx1g"}
    value = _made(caller)["JAVA_TOOL_OPTIONS"]
    assert value.startswith("-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128")
    assert "nonProxyHosts=localhost|127.*|[::1]" in value
    assert _made(caller, capture=True)["JAVA_TOOL_OPTIONS"] == "-Xmx1g"
    assert "JAVA_TOOL_OPTIONS" not in _made(capture=True)


def test_node_yarn_npm_and_pip_are_told() -> None:
    """B130, B139: tools with settings of their own get them, for both schemes."""
    made = _made()
    assert made["NODE_USE_ENV_PROXY"] == "1"
    for name in ("npm_config_proxy", "npm_config_https_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "PIP_PROXY"):
        assert made[name] == "http://127.0.0.1:3128"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_takes_the_gate_over_a_proxy_line_of_the_user(tmp_path: object) -> None:
    """GAT-10: git's own http.proxy in a gitconfig does not lead elsewhere, and the caller's pairs stay in force."""
    with open(f"{tmp_path}/.gitconfig", "w") as file:
        file.write("[http]\n\tproxy = http://10.0.0.9:8080\n")
    caller = CALLER | {
        "HOME": str(tmp_path),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "someone",
    }
    made = _made(caller)
    answer = [
        subprocess.run(["git", "config", "--get", key], env=made, capture_output=True, text=True, check=True).stdout
        for key in ("http.proxy", "user.name")
    ]
    assert answer == ["http://127.0.0.1:3128\n", "someone\n"]


@pytest.mark.parametrize("count", ["-1", "x", "99999999999", "", "\uff11"])
def test_a_nonsense_git_count_is_replaced(count: str) -> None:
    """A caller's broken GIT_CONFIG_COUNT neither crashes the start nor survives."""
    assert _made(CALLER | {"GIT_CONFIG_COUNT": count})["GIT_CONFIG_COUNT"] == "1"


def test_the_emitted_no_proxy_upsets_no_parser() -> None:
    """B133: only the common subset: names and addresses, no CIDR, no bracket, no star, no space."""
    assert not set(_made()["NO_PROXY"]) & set("[]*/ ")


def test_own_names_are_not_for_the_proxy() -> None:
    """B80: under capture the task's own address and host name stay inside, in NO_PROXY beside loopback."""
    made = _made(capture=True, own_names=("198.18.0.1", "box"))
    assert made["NO_PROXY"] == made["no_proxy"] == "localhost,127.0.0.1,::1,198.18.0.1,box"
    assert _made(own_loopback=False, own_names=("box",))["NO_PROXY"] == ""
