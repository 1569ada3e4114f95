"""tidegate.runtime.first_message."""

from __future__ import annotations

import json
import marshal

from tests.unit.runtime.test_task import ORDER
from tidegate.policy.layers import command_line, join
from tidegate.runtime.first_message import first_message, lower, proxies_of


def test_only_the_operators_proxies_reach_the_gate() -> None:
    """GAT-8: the gate's way out is the caller's own variables, in either case, and nothing else of the environment."""
    environ = {"https_proxy": "a", "HTTP_PROXY": "b", "No_Proxy": "c", "all_proxy": "d", "FTP_PROXY": "e", "HOME": "/"}
    assert proxies_of(environ) == {"https_proxy": "a", "HTTP_PROXY": "b", "No_Proxy": "c", "all_proxy": "d"}


def test_it_travels_to_a_gate_and_to_a_server() -> None:
    """HLD-8: plain data, as marshal (a gate of its own) and JSON (a server) carry it, in the phase that was given."""
    policy = join(command_line(allow=("a.test",), ask=(), deny=()))
    message = first_message(ORDER, policy, "netns", "install", names=("Build-1",), met={"install": ()}, roots="")
    assert marshal.loads(marshal.dumps(message)) == message
    assert json.loads(json.dumps(message))["own_names"] == ["build-1"]
    assert (message["phase"], message["task"], message["hold"], message["home"]) == ("install", "t1", "netns", "/")
    assert lower(("A.Test", "b")) == ("a.test", "b")
