"""Rules of nf_tables as the kernel takes them: expressions, rules, chains and tables, as netlink messages.

Rules of the file: an expression is one function, named as `nft` names what it stands for; a rule is expressions in
their order; nothing is sent from here. Numbers in attributes are in the network's order. Whole bytes of an address
are compared, so that no masks are needed.

From linux/netfilter/nf_tables.h and nfnetlink.h. `nft -a list ruleset` shows the same; tests compare.
"""

from __future__ import annotations

import struct

from tidegate.holds.netlink import (
    NLM_F_ACK,
    NLM_F_APPEND,
    NLM_F_CREATE,
    NLM_F_EXCL,
    Message,
    attribute,
    big,
    nest,
    text,
)

INET, IPV4, IPV6 = 1, 2, 10  # NFPROTO_*
OUTPUT = 3  # NF_INET_LOCAL_OUT
ACCEPT, DROP = 1, 0
RAW, DESTINATION_NAT, FILTER = -300, -100, 0  # NF_IP_PRI_*

_SUBSYSTEM = 10  # NFNL_SUBSYS_NFTABLES
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_NEW_TABLE, _DELETE_TABLE, _NEW_CHAIN, _NEW_RULE = 0, 2, 3, 6
_REGISTER, _PORT_REGISTER, _VERDICT = 1, 2, 0  # NFT_REG_1, NFT_REG_2, NFT_REG_VERDICT
_L4PROTO, _NFPROTO, _SKUID = 16, 15, 10  # NFT_META_*
_OWNER = 2  # NFT_TABLE_F_OWNER
_NETWORK, _TRANSPORT = 1, 2  # NFT_PAYLOAD_*_HEADER
_SOURCE = {IPV4: 12, IPV6: 8}  # where an address stands in its header
_DESTINATION = {IPV4: 16, IPV6: 24}


def netfilter_header(family: int, resource: int = 0) -> bytes:
    """The struct nfgenmsg that every message of netfilter begins with."""
    return struct.pack("=BB", family, 0) + resource.to_bytes(2, "big")


def expression(name: str, *attributes: bytes) -> bytes:
    """One expression of a rule."""
    data = nest(2, *attributes) if attributes else b""
    return nest(1, text(1, name), data)  # NFTA_LIST_ELEM: NFTA_EXPR_NAME, NFTA_EXPR_DATA


def is_equal(value: bytes) -> bytes:
    """Go on only where what was loaded last is this."""
    return expression("cmp", big(1, _REGISTER), big(2, 0), nest(3, attribute(1, value)))


def meta(key: int, value: int) -> bytes:
    """Go on only where a fact about the packet is this number."""
    return expression("meta", big(1, _REGISTER), big(2, key)) + is_equal(bytes((value,)))


def family(number: int) -> bytes:
    """`meta nfproto`: IPV4 or IPV6."""
    return meta(_NFPROTO, number)


def protocol(number: int) -> bytes:
    """`meta l4proto`: IPPROTO_TCP or IPPROTO_UDP."""
    return meta(_L4PROTO, number)


def socket_uid(uid: int) -> bytes:
    """`meta skuid`: the socket that sends is this user's."""
    return expression("meta", big(1, _REGISTER), big(2, _SKUID)) + is_equal(struct.pack("=I", uid))


def _payload(base: int, offset: int, value: bytes) -> bytes:
    where = (big(1, _REGISTER), big(2, base), big(3, offset), big(4, len(value)))
    return expression("payload", *where) + is_equal(value)


def source(number: int, beginning: bytes) -> bytes:
    """`ip saddr`, `ip6 saddr`: the address begins with these bytes. `family` comes before it."""
    return _payload(_NETWORK, _SOURCE[number], beginning)


def destination(number: int, beginning: bytes) -> bytes:
    """`ip daddr`, `ip6 daddr`, likewise."""
    return _payload(_NETWORK, _DESTINATION[number], beginning)


def port(number: int) -> bytes:
    """`th dport`. `protocol` comes before it."""
    return _payload(_TRANSPORT, 2, number.to_bytes(2, "big"))


def source_port(number: int) -> bytes:
    """`th sport`, likewise."""
    return _payload(_TRANSPORT, 0, number.to_bytes(2, "big"))


def verdict(code: int) -> bytes:
    """`accept` or `drop`: the last of a rule."""
    return expression("immediate", big(1, _VERDICT), nest(2, nest(2, big(1, code))))


def no_track() -> bytes:
    """`notrack`: connection tracking, and with it NAT, leaves this packet alone."""
    return expression("notrack")


def dnat(number: int, address: bytes, to_port: int = 0) -> bytes:
    """`dnat ip to ADDRESS:PORT`: the connection goes there; without a port, to the one it was made to."""
    to = expression("immediate", big(1, _REGISTER), nest(2, attribute(1, address)))
    where = [big(1, 1), big(2, number), big(3, _REGISTER)]
    if to_port:
        to += expression("immediate", big(1, _PORT_REGISTER), nest(2, attribute(1, to_port.to_bytes(2, "big"))))
        where.append(big(5, _PORT_REGISTER))
    return to + expression("nat", *where)


def reject_port() -> bytes:
    """`reject with icmpx port-unreachable`: what a closed port of a machine says."""
    return expression("reject", big(1, 2), attribute(2, b"\1"))


def reject_reset() -> bytes:
    """`reject with tcp reset`."""
    return expression("reject", big(1, 1), attribute(2, b"\0"))


def limit(per_second: int) -> bytes:
    """`limit rate N/second burst N packets`: go on only so often."""
    return expression("limit", big(1, per_second, 8), big(2, 1, 8), big(3, per_second), big(4, 0), big(5, 0))


def log(group: int) -> bytes:
    """`log group N`: tell who listens to that group of nfnetlink_log."""
    return expression("log", big(1, group, 2))


def table(name: str, *, owned: bool = False) -> Message:
    """A new table. One that is `owned` can be changed by the socket that made it only, and goes with that."""
    flags = big(2, _OWNER if owned else 0)
    return _message(f"the table {name}", _NEW_TABLE, NLM_F_CREATE | NLM_F_EXCL, text(1, name) + flags)


def delete_table(name: str) -> Message:
    """A table that goes, with all that is in it."""
    return _message(f"the table {name}", _DELETE_TABLE, 0, text(1, name))


def chain(table_name: str, name: str, kind: str, priority: int, policy: int) -> Message:
    """A chain on what leaves this namespace's programs; `kind` is `filter` or `nat`."""
    hook = nest(4, big(1, OUTPUT), attribute(2, priority.to_bytes(4, "big", signed=True)))
    body = text(1, table_name) + text(3, name) + hook + big(5, policy) + text(7, kind)
    return _message(f"the {kind} chain {name}", _NEW_CHAIN, NLM_F_CREATE, body)


def rule(table_name: str, chain_name: str, *expressions: bytes) -> Message:
    """A rule at the end of a chain."""
    body = text(1, table_name) + text(2, chain_name) + nest(4, *expressions)
    return _message(f"a rule of {chain_name}", _NEW_RULE, NLM_F_CREATE | NLM_F_APPEND, body)


def transaction(messages: list[Message]) -> list[Message]:
    """All of these or none of them, in one step."""
    mark = netfilter_header(0, _SUBSYSTEM)
    begin = Message("the transaction", _BATCH_BEGIN, 0, mark)
    return [begin, *messages, Message("the transaction", _BATCH_END, 0, mark)]


def _message(what: str, number: int, flags: int, body: bytes) -> Message:
    return Message(what, _SUBSYSTEM << 8 | number, flags | NLM_F_ACK, netfilter_header(INET) + body)
