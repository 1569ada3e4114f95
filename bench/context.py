"""What every measure is given: the peers, how many rounds, where to put results, and a way to say what goes on."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from bench.build import ROOT
from bench.processes import BenchError
from bench.quiet import Others, wait_for_quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.inspectors import Inspector
    from bench.peers import Peer
    from bench.results import Results

DIRECT = "direct"
_P = TypeVar("_P", bound="Peer")


@dataclass
class Context:
    """One run of the bench.

    `seconds` is the length of each load, `folder` where peers keep their files, `patience` how many seconds a sample
    may wait for a quiet machine, `bounds_only` leaves out loads that no bound is about, `others` holds the share of
    the processors that others used during each sample, `inspectors` are what reads inside TLS.
    """

    peers: tuple[type[Peer], ...]
    rounds: int
    seconds: float
    folder: str
    results: Results
    by_name: bool
    quick: bool = False
    patience: float = 0.0
    bounds_only: bool = False
    inspectors: tuple[type[Inspector], ...] = ()
    others: list[float] = field(default_factory=list)

    @property
    def missing(self) -> dict[str, str]:
        """Peers that are not installed, with the reason."""
        return self.results.missing

    def say(self, line: str) -> None:
        """Tell the person at the terminal what is being measured."""
        print(f"bench: {line}", file=sys.stderr, flush=True)

    def note(self, name: str, version: Callable[[], str], settings: str) -> None:
        """Keep what must be known of a peer to read its figures; its version is asked for once."""
        if name not in self.results.versions:
            self.results.versions[name] = version()
        known = self.results.settings.get(name, "")
        if settings not in known:
            self.results.settings[name] = f"{known}; {settings}" if known else settings

    def failed(self, what: str, why: BenchError | str) -> None:
        """Note that something could not be measured; the run goes on without it."""
        said = str(why).replace(f"{ROOT}/", "")  # the table is for every machine
        self.results.failed.setdefault(what, said)
        self.say(f"{what}: {said}")

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Surround one sample: wait for a quiet moment before it, and note how quiet the machine stayed."""
        wait_for_quiet(self.patience)
        others = Others()
        yield
        self.others.append(others.share())

    @contextmanager
    def running(self, mode: str, kinds: Sequence[type[_P]]) -> Iterator[list[_P]]:
        """Start every peer of these that can do `mode`, freshly; end them all on the way out."""
        started: list[_P] = []
        try:
            for kind in kinds:
                if mode not in kind.modes or (kind.package and kind.package in self.missing):
                    continue
                try:
                    peer = kind(self.folder)
                except BenchError as error:
                    self.failed(f"{kind.name}: its origin", error)
                    continue
                try:
                    peer.start()
                except BenchError as error:
                    self.failed(kind.name, error)
                    peer.stop()
                else:
                    started.append(peer)
                    self.note(kind.name, kind.version, kind.settings)
            yield started
        finally:
            for peer in started:
                peer.stop()

    def turns(self, peers: Sequence[_P]) -> Iterator[tuple[int, _P]]:
        """Yield the number of the round and a peer; each round begins with another peer."""
        for number in range(self.rounds):
            start = number % max(1, len(peers))
            for peer in (*peers[start:], *peers[:start]):
                yield number, peer
