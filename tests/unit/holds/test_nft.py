"""What nft.py encodes is what the `nft` program says it is."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.unit.holds.apart import apart

NFT = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin")

# an expression (of nft.py), the chain's kind, and what `nft` calls it
SPOKEN = (
    ("nft.family(nft.IPV6), nft.source(nft.IPV6, b'\\xfd')", "filter", "ip6 saddr fd00::/8"),
    ("nft.family(nft.IPV4), nft.destination(nft.IPV4, bytes((10, 0, 0, 1)))", "filter", "ip daddr 10.0.0.1"),
    ("nft.family(nft.IPV4), nft.destination(nft.IPV4, bytes((10,)))", "filter", "ip daddr 10.0.0.0/8"),
    ("nft.protocol(6), nft.port(8443)", "filter", "tcp dport 8443"),
    ("nft.protocol(17), nft.port(53), nft.verdict(nft.DROP)", "filter", "udp dport 53 drop"),
    ("nft.protocol(17), nft.source_port(53)", "filter", "udp sport 53"),
    ("nft.protocol(6), nft.verdict(nft.ACCEPT)", "filter", "meta l4proto tcp accept"),
    ("nft.no_track()", "filter", "notrack"),
    ("nft.protocol(6), nft.reject_reset()", "filter", "meta l4proto tcp reject with tcp reset"),
    ("nft.reject_port()", "filter", "reject"),
    ("nft.socket_uid(0), nft.reject_port()", "filter", "meta skuid 0 reject"),
    ("nft.limit(7), nft.log(3)", "filter", "limit rate 7/second burst 7 packets log group 3"),
    (
        "nft.family(nft.IPV4), nft.protocol(6), nft.dnat(nft.IPV4, bytes((1, 2, 3, 4)), 99)",
        "nat",
        "meta nfproto ipv4 meta l4proto tcp dnat ip to 1.2.3.4:99",
    ),
    (
        "nft.family(nft.IPV6), nft.protocol(17), nft.port(53), nft.dnat(nft.IPV6, bytes(15) + b'\\1')",
        "nat",
        "meta nfproto ipv6 udp dport 53 dnat ip6 to ::1",
    ),
)


@pytest.mark.skipif(NFT is None, reason="there is no nft to compare with")
@pytest.mark.parametrize(("expressions", "kind", "spoken"), SPOKEN)
def test_each_expression_is_what_it_is_called(expressions: str, kind: str, spoken: str) -> None:
    """One rule of each expression, made by raw netlink and read back by `nft` (HLD-6, B91)."""
    code = f"""
    import subprocess
    from tidegate.holds import netlink, nft
    inside(linux.CLONE_NEWNET, root=True)  # for nft, which loses its rights at exec otherwise
    wire = netlink.connect(netlink.NETLINK_NETFILTER)
    chain = nft.chain('t', 'c', {kind!r}, nft.RAW if {kind!r} == 'filter' else nft.DESTINATION_NAT, nft.ACCEPT)
    netlink.transact(wire, nft.transaction([nft.table('t'), chain, nft.rule('t', 'c', {expressions})]))
    print(subprocess.run([{NFT!r}, 'list', 'ruleset'], capture_output=True, text=True, check=True).stdout)
    """
    lines = [line.strip() for line in apart(code).splitlines()]
    assert spoken in lines, lines


def test_a_transaction_is_whole_or_nothing() -> None:
    """One rule that the kernel refuses, and the table is not there; a second table of that name is refused (HLD-7)."""
    code = """
    from tidegate.holds import netlink, nft
    inside(linux.CLONE_NEWNET, root=True)  # for nft, which loses its rights at exec otherwise
    wire = netlink.connect(netlink.NETLINK_NETFILTER)
    made = [nft.table('t'), nft.chain('t', 'c', 'filter', 0, nft.DROP)]
    def send(*more):
        try:
            netlink.transact(wire, nft.transaction([*made, *more]))
        except OSError as error:
            return f'{errno.errorcode[error.errno]} {error.filename}'
        return 'done'
    print(send(nft.rule('t', 'c', nft.expression('no-such-thing'))))
    print(send(), send())
    """
    assert apart(code) == "ENOENT a rule of c\ndone EEXIST the table t\n"


def test_the_ruleset_is_json_to_nft() -> None:
    """The whole table of the hold is read back by `nft -j`: three chains on output, the last one closed (HLD-6)."""
    if NFT is None:
        pytest.skip("there is no nft to compare with")
    code = f"""
    import subprocess
    from tidegate.holds import netfilter
    inside(linux.CLONE_NEWNET, root=True)  # for nft, which loses its rights at exec otherwise
    netfilter.install(3128)
    print(subprocess.run([{NFT!r}, '-j', 'list', 'ruleset'], capture_output=True, text=True, check=True).stdout)
    """
    listed = json.loads(apart(code))["nftables"]
    chains = {one["chain"]["name"]: one["chain"] for one in listed if "chain" in one}
    assert {name: (one["type"], one["hook"], one["prio"], one["policy"]) for name, one in chains.items()} == {
        "raw": ("filter", "output", -300, "accept"),
        "capture": ("nat", "output", -100, "accept"),
        "fence": ("filter", "output", 0, "drop"),
    }
    rules = [one["rule"]["expr"] for one in listed if "rule" in one and one["rule"]["chain"] == "capture"]
    to = [step["dnat"] for rule in rules for step in rule if "dnat" in step]
    assert [(one["family"], one["addr"], one.get("port")) for one in to] == [
        ("ip", "198.18.0.2", None),
        ("ip", "198.18.0.2", None),
        ("ip", "198.18.0.2", 3128),
        ("ip6", "fd74:6467:6174:6500::2", None),
        ("ip6", "fd74:6467:6174:6500::2", None),
        ("ip6", "fd74:6467:6174:6500::2", 3128),
    ]
