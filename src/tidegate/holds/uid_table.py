"""The table `inet tidegate` of the hold `uid`, as text: what users of the range may send, and nothing else (HLD-3).

    capture   nat     its proxy address, port 53 and TCP to anywhere but loopback lead to its own gate
    fence     output  from here to loopback: what its gate listens on, its own servers; all else is logged and rejected
    forget    output  what a task's connections leave in connection tracking, which all of the machine shares, is short
    met       input   a connection to "its own server" is met by a socket that is marked as that user's, or refused

Rules of the file: text only, nothing is loaded from here; one table for the whole range, so that a process of the range
is fenced before anybody knows of it; users come and go as elements of maps and sets, and rules never change.

A source that is not this machine's is refused first: where the machine lets anybody bind one (ip_nonlocal_bind), the
gate's answer to it would leave by whatever route there is, and be root's.

Why the last chain: a port is an own server's when the task listens there, and may be a service's of this machine a
moment later. The mark is set on the *socket* that listens (watcher.py, SO_MARK), which a task has no right to, so it
ends with the socket. Why packets that begin no connection pass on loopback: they belong to one that was let through,
since a task has no raw sockets. What others send to a gate's ports is refused here, too; the gate asks who it was.

nft(8). Constants that the reader of the log needs are here, too.
"""

from __future__ import annotations

from tidegate.holds.netfilter import TIMEOUTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TABLE = "tidegate"
FAMILY = "inet"
FIRST, LAST = 30000, 39999
"""The range (HLD-3). uids and gids."""
LOG_GROUP = 3128
"""Of nfnetlink_log: who reads what was turned away listens there."""
LOG_PREFIX = "tidegate "
LOGGED = 20
"""Lines a second for one uid; more is counted, and turned away just the same."""
PROXY = ("127.0.0.1", 3128)
"""Where every task finds its gate; the port that is really listened on is its own."""
_MARK_SHIFT = 16  # away from the bits that others use (Kubernetes has 0x4000 and 0x8000)

# As in a namespace of its own (netfilter.py): what has ended is forgotten at once, or a task that connects in a loop
# fills the table of the machine and nobody connects any more; what one side has ended is kept for the other's answer.
_TCP = "nf_conntrack_tcp_timeout_"
_POLICIES = {
    "tcp": ", ".join(f"{name.removeprefix(_TCP)} : {int(seconds)}" for name, seconds in TIMEOUTS if _TCP in name),
    "udp": "unreplied : 5, replied : 5",
}

# Maps and sets by name, and what they hold.
MAPS = {"proxy": "uid : inet_service", "names": "uid : inet_service", "captured": "uid : inet_service"}
MARKS, SAME, GATES, OWN, GUARDED = "marks", "same", "gates", "own", "guarded"
METS = {f"met{ip}": f"uid . ipv{ip}_addr . inet_service : inet_service" for ip in (4, 6)}


def mark_of(uid: int) -> int:
    """The mark of what belongs to a user of the range."""
    return uid << _MARK_SHIFT


def table_text(first: int = FIRST, last: int = LAST, *, nflog: bool = True) -> str:
    """The whole table without an element, for `nft -f`. Loading it where it is adds its rules once more.

    Without `nflog` the kernel's own log is told of what is turned away, where there is no other (attempt_log.py).
    """
    size = last - first + 1
    users = f"meta skuid {first}-{last}"
    marks = f"meta mark {mark_of(first):#x}-{mark_of(last) | 0xFFFF:#x}"
    maps = "".join(f" map {name} {{ type {kind}; size {size * 8}; }}\n" for name, kind in (MAPS | METS).items())
    # By `lo` only: a program can name another interface, and what is sent to loopback leaves by that one (IP_PKTINFO).
    local = ("oif lo ip daddr 127.0.0.0/8", "oif lo ip6 daddr ::1")
    begins = "tcp flags & (syn | ack) == syn"
    own = "".join(
        f"  {at} {begins} meta skuid . tcp dport @{OWN} meta mark set meta skuid map @{MARKS} accept\n"
        f"  {at} tcp flags & (syn | ack) != syn accept\n"
        for at in local
    )
    gates = "".join(
        f"  {at} meta skuid . th dport @{GATES} accept\n"
        for at in ("oif lo ip daddr 127.0.0.1", "oif lo ip6 daddr ::1")
    )
    theirs = [f"{at} {rule}" for at in local for rule in (begins, "meta l4proto udp")]
    guards = "".join(f"  {rule} th dport @{GUARDED} reject\n" for rule in theirs)
    refusal = (
        f"  update @logged {{ meta skuid limit rate {LOGGED}/second burst {2 * LOGGED} packets }} "
        f'log prefix "{LOG_PREFIX}" {f"group {LOG_GROUP}" if nflog else "flags skuid"}\n'
    )
    forget = "".join(
        f'  {users} meta nfproto {family} meta l4proto {protocol} ct timeout set "{protocol}{ip}"\n'
        for ip, family in ((4, "ipv4"), (6, "ipv6"))
        for protocol in _POLICIES
    )
    return f"""table {FAMILY} {TABLE} {{
{_timeouts()}{maps} map {MARKS} {{ type uid : mark; size {size}; }}
 set {SAME} {{ type mark . mark; size {size}; }}
 set {GATES} {{ type uid . inet_service; size {size * 64}; }}
 set {OWN} {{ type uid . inet_service; size {size * 64}; }}
 set {GUARDED} {{ type inet_service; size 65535; }}
 set refused {{ type uid; size {size}; flags dynamic; counter; }}
 set logged {{ type uid; size {size}; flags dynamic,timeout; timeout 1m; }}
 chain forget {{
  type filter hook output priority -150; policy accept;
{forget} }}
 chain capture {{
  type nat hook output priority -100; policy accept;
  {users} jump redirected
 }}
 chain redirected {{
  ip daddr {PROXY[0]} tcp dport {PROXY[1]} redirect to :meta skuid map @proxy
  meta l4proto tcp redirect to :meta skuid . ip daddr . tcp dport map @met4
  meta l4proto tcp redirect to :meta skuid . ip6 daddr . tcp dport map @met6
  meta l4proto {{ tcp, udp }} th dport 53 redirect to :meta skuid map @names
  ip daddr 127.0.0.0/8 return
  ip6 daddr ::1 return
  meta l4proto tcp redirect to :meta skuid map @captured
 }}
 chain fence {{
  type filter hook output priority filter; policy accept;
  {users} goto task
  meta skuid != 0 jump guard
 }}
 chain guard {{
{guards} }}
 chain task {{
  fib saddr type != local goto refuse
{gates}{own}  goto refuse
 }}
 chain refuse {{
  update @refused {{ meta skuid }}
{refusal}  meta l4proto tcp reject with tcp reset
  reject with icmpx type admin-prohibited
 }}
 chain met {{
  type filter hook input priority filter; policy accept;
  {marks} goto server
 }}
 chain server {{
  tcp flags & (syn | ack) != syn accept
  socket mark . meta mark @{SAME} accept
  meta l4proto tcp reject with tcp reset
  drop
 }}
}}
"""


def _timeouts() -> str:
    return "".join(
        f" ct timeout {protocol}{ip} {{\n  protocol {protocol}\n  l3proto {family}\n  policy = {{ {policy} }}\n }}\n"
        for ip, family in ((4, "ip"), (6, "ip6"))
        for protocol, policy in _POLICIES.items()
    )


class Ports:
    """The ports of one user's gate: the proxy's, and those of capture (0: none). `met` are services of this machine."""

    __slots__ = ("captured", "met", "names", "proxy")

    def __init__(
        self, proxy: int, captured: int = 0, names: int = 0, met: Mapping[tuple[str, int], int] | None = None
    ) -> None:
        self.proxy = proxy
        self.captured = captured
        self.names = names
        self.met = dict(met or {})

    def all(self) -> tuple[int, ...]:
        """Every port that is listened on."""
        ports = (self.proxy, self.captured, self.names, *self.met.values())
        return tuple(port for port in dict.fromkeys(ports) if port)


def elements(uid: int, ports: Ports) -> list[tuple[str, str]]:
    """What a living user has in the table: the set or map, and the element."""
    found = [("proxy", f"{uid} : {ports.proxy}")]
    if ports.captured:
        found.append(("captured", f"{uid} : {ports.captured}"))
    if ports.names:
        found.append(("names", f"{uid} : {ports.names}"))
    for (address, port), at in ports.met.items():
        found.append(("met6" if ":" in address else "met4", f"{uid} . {address} . {port} : {at}"))
    found.append((MARKS, f"{uid} : {mark_of(uid):#x}"))
    found.append((SAME, f"{mark_of(uid):#x} . {mark_of(uid):#x}"))
    found += [(GATES, f"{uid} . {port}") for port in ports.all()]
    found += [(GUARDED, str(port)) for port in ports.all()]
    return found


def change_text(word: str, changes: Iterable[tuple[str, str]]) -> str:
    """A transaction that creates (fails where there is one), adds or deletes elements.

    A port may be guarded already: of another family's listener, or by what a killed run left.
    """
    return "".join(
        f"{'add' if word == 'create' and name == GUARDED else word} element {FAMILY} {TABLE} {name} {{ {element} }}\n"
        for name, element in changes
    )
