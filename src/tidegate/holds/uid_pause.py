"""No way to a gate that does not answer, for a user of the range in this machine's own network (HLD-7).

What pause.py does in a network of the task's own is done here beside the table of the range: one more table for this
user, which resets what it sends to its gate, and the end of what it has open towards it. It only ever takes away.

Rules of the file: the table belongs to a socket of ours (NFT_TABLE_F_OWNER, Linux 5.12), so it goes with this process,
however that ends, and nobody else flushes it. The table `inet tidegate` is left alone: who changes that ends tasks.
"""

from __future__ import annotations

from _socket import IPPROTO_TCP, IPPROTO_UDP

from tidegate.holds import netlink, nft, pause
from tidegate.holds.inside import packed
from tidegate.holds.uid_table import PROXY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from tidegate.holds.pause import Connection
    from tidegate.holds.uid_table import Ports

_AFTER_NAT = -50  # where a connection has the gate's own address


class UidPause:
    """See the head of the file; for one user and the ports of its gate."""

    def __init__(self, uid: int, ports: Ports) -> None:
        self._uid = uid
        self._ports = ports
        self._places = {PROXY, *ports.met}
        self._wire: socket | None = None

    def shut(self, *, shut: bool) -> bool:
        """Reset the user's connections to its gate from now on, or no more; whether that is so. Never raises."""
        try:
            if shut:
                self._refuse()
            else:
                self.close()
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Let it pass again."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _refuse(self) -> None:
        if self._wire is None:
            wire = netlink.connect(netlink.NETLINK_NETFILTER)
            try:
                netlink.transact(wire, nft.transaction(self._table()))
            except OSError:
                wire.close()
                raise
            self._wire = wire
        pause.end_open(self._leads_to_gate)

    def _table(self) -> list[netlink.Message]:
        name = f"{pause.TABLE}-{self._uid}"
        made = [nft.table(name, owned=True), nft.chain(name, "pause", "filter", _AFTER_NAT, nft.ACCEPT)]
        for port in self._ports.all():
            for protocol, refusal in ((IPPROTO_TCP, nft.reject_reset()), (IPPROTO_UDP, nft.reject_port())):
                what = (nft.socket_uid(self._uid), nft.protocol(protocol), nft.port(port), refusal)
                made.append(nft.rule(name, "pause", *what))
        return made

    def _leads_to_gate(self, found: Connection) -> bool:
        if found.uid != self._uid:
            return False
        own = found.address.startswith(b"\x7f") if len(found.address) == 4 else found.address == packed("::1")
        return not own or any((packed(host), port) == (found.address, found.port) for host, port in self._places)
