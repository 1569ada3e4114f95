"""The relay: what stands between a worker's loopback and the gate's socket, in a container of its own (HLD-4).

    python3 /relay worker FOLDER PORT GRACE [captured] [by-carrier]    127.0.0.1:PORT -> FOLDER/gate.sock, and what is
                                                     captured; the carrier of `far` is in between
    python3 /relay far FOLDER HOST:PORT KEYS GRACE   FOLDER/gate.sock -> mutual TLS to HOST:PORT, with what is in KEYS
    python3 /relay check FOLDER                      whether FOLDER/gate.sock can be connected to: exit 0, or 1
    python3 /relay ask PORT REQUEST                  the first line of the answer to an HTTP request on 127.0.0.1:PORT

    python3 /relay rules PORT, prove WORD TARGETS    see rules.py

    words.py      what relays, the listener and who owns a task say to each other, and limits
    ends.py       one end of a connection: plain, or in frames, over TLS or not
    pairs.py      two ends that are one connection, the loop they are in, and the doors that they come in by
    worker.py     who moves bytes beside a worker, and who looks after that
    caught.py     what is captured beside a worker, and led to the gate
    rules.py      who makes the rules for that
    far.py        who carries them to the listener of another machine
    roles.py      the command line

Beside gate.sock lies life.sock: the worker's relay keeps one connection to it, through all that is between, and gives
back what comes. Whoever owns the task sees there that a relay has ended or was stopped, and the relays that their owner
has: then all connections are cut at once, nobody is let in, and after GRACE seconds they end. READY on standard output
says that the whole way is open. An owner that beats (OPEN, again and again) and falls silent counts as gone until it
beats again; one that says SHUT, since the gate does not answer, has nobody let in until it says OPEN.

The worker's relay is two processes: one moves the bytes, and the container's first looks after it. Where the one that
moves was stopped, it is killed, which resets what is open, and there is another in a moment. Stopped alone, the first
is missed by nobody.

This folder runs by itself, in whatever Python an image has (3.10 or later), which is why its modules import nothing of
ours but one another and what relay_image.py names (SHARED), where it says too where they are put. Rules:

* Bytes are moved and never read, but for the numbers of look-ups (caught.py). Each direction has one buffer of `ROOM`
  bytes; what is full is not read from.
* The end of one direction is passed on and the other goes on. A connection that breaks is reset on both sides.
* Over TLS, and from a worker's relay to a carrier, each direction is cut into frames (two bytes of length, then so many
  bytes; none says that it has ended), so that an end which was sent and one that merely happened differ. The first
  frame of the caller says what is wanted (one of NAMES; and for CAUGHT where it was going); what the other side answers
  with, once it has connected that, is OPEN.
"""
