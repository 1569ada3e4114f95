"""What holds for one connection alone holds in a crowd, where messages go out together with those of others (GAT-5).

These are tests of requests in clear text and inside TLS, in a loop that takes every turn for a crowded one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.gate import test_answer, test_ends, test_forward, test_inner_exchange, test_known_heads
from tests.unit.gate.inside import inside

if TYPE_CHECKING:
    from tests.lab.api import Lab

__all__ = ["inside"]


@pytest.fixture(autouse=True)
def _names(lab: Lab) -> None:
    lab.dns.set("a.test", A=["1.2.3.4"])


@pytest.fixture(autouse=True)
def _crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every turn be one in which several have something to do."""
    monkeypatch.setattr("tidegate.gate.reactor.CROWD", 0)


test_connect_behind_requests = test_forward.test_connect_on_a_connection_that_carried_plain_requests
test_judged_one_by_one = test_forward.test_requests_on_one_connection_are_judged_one_by_one
test_a_stale_origin = test_forward.test_a_stale_origin_connection_is_replaced_once
test_an_origin_that_dies = test_forward.test_an_origin_that_dies_under_a_reused_connection_is_retried
test_what_is_said_unasked = test_forward.test_what_an_origin_says_unasked_is_thrown_away
test_pipelined = test_forward.test_pipelined_requests_are_answered_in_order
test_half_close = test_forward.test_half_close_behind_a_request_still_gets_its_answer
test_websocket = test_forward.test_websocket_becomes_a_tunnel_after_a_checked_101
test_closed_between_requests = test_forward.test_a_socket_closed_by_the_client_between_requests
test_without_a_body = test_answer.test_answers_without_a_body_keep_the_connection
test_ends_too_soon = test_answer.test_an_answer_that_ends_too_soon_is_not_completed
test_without_length = test_answer.test_an_answer_without_length_ends_with_the_connection
test_a_client_that_resets = test_ends.test_a_client_that_resets_while_the_origin_is_silent
test_equal_heads = test_known_heads.test_equal_heads_have_bodies_of_their_own
test_more_behind_an_answer = test_known_heads.test_what_stands_behind_an_answer_is_not_the_next_one
test_inside_judged_one_by_one = test_inner_exchange.test_requests_on_one_connection_are_judged_one_by_one
test_inside_an_idle_end = test_inner_exchange.test_an_origin_that_ends_its_idle_connection_ends_the_clients
test_inside_cut = test_inner_exchange.test_a_connection_that_is_cut_while_idle_is_gone
test_inside_pipelined = test_inner_exchange.test_pipelined_requests_are_answered_in_turn
test_inside_half_close = test_inner_exchange.test_half_close_of_the_client_lets_the_answer_come
test_inside_websocket = test_inner_exchange.test_a_websocket_is_a_pipe_after_a_checked_101
test_inside_an_early_end = test_inner_exchange.test_an_end_that_comes_with_the_handshake_is_seen
