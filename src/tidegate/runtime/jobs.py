"""Job control as a table: where the terminal's keyboard leads, and what a stop or a continue does to that.

The command runs on a pty of its own, so the kernel's job control sees two halves: the front, a job of the user's
shell on the real terminal, and the command, a job of init on the pty. This table makes them one. The technique is
sudo's: a command that does not own the whole terminal begins in the *background* of its pty, where it can write, and
only when it stops because it wants to read (SIGTTIN) or to set modes (SIGTTOU) is the keyboard led to it.

Pure: no descriptor, no signal is touched here; runtime/front.py carries the actions out in the order given.
"""

from __future__ import annotations

from tidegate.model.closed import Closed


class Mode(Closed):
    """Where the keyboard leads."""

    AWAY = "away"  # nowhere of ours: the real terminal is as the user's shell left it
    HERE = "here"  # to the command: the real terminal is raw, the command is in the foreground of its pty
    PARKED_AWAY = "parked-away"  # the command has stopped, and so have we
    PARKED_HERE = "parked-here"  # likewise, and it had the keyboard or wants it


class Happening(Closed):
    """What the table reacts to."""

    WANTS_IT_FRONT = "wants-it-front"  # the command stopped by SIGTTIN or SIGTTOU; we are in the foreground
    WANTS_IT_BACK = "wants-it-back"  # likewise; we are in the background
    TYPED_STOP = "typed-stop"  # the command stopped by SIGTSTP
    STOPPED = "stopped"  # the command stopped by SIGSTOP
    RESUMED_FRONT = "resumed-front"  # SIGCONT came, and we are in the foreground
    RESUMED_BACK = "resumed-back"  # SIGCONT came, and we are in the background
    REFUSED = "refused"  # we could not stop: our process group is orphaned, no shell would continue us
    LOST = "lost"  # the terminal's foreground is someone else's without our having stopped


class Action(Closed):
    """What the front does about it."""

    ENTER = "enter"  # save the terminal's modes, make it raw, relay the keyboard
    LEAVE = "leave"  # stop relaying, put the modes back
    CONTINUE_FRONT = "continue-front"  # init: foreground of the pty, SIGCONT
    CONTINUE_BACK = "continue-back"  # init: background of the pty, SIGCONT
    STOP_SELF = "stop-self"  # stop the front by the same signal
    STOP_GROUP = "stop-group"  # stop the front's whole process group, as the real terminal would have
    NO_INPUT = "no-input"  # nobody can ever type: the command reads an end of file


_A = Action

TRANSITIONS: dict[tuple[Mode, Happening], tuple[tuple[Action, ...], Mode]] = {
    (Mode.AWAY, Happening.WANTS_IT_FRONT): ((_A.ENTER, _A.CONTINUE_FRONT), Mode.HERE),
    (Mode.AWAY, Happening.WANTS_IT_BACK): ((_A.STOP_GROUP,), Mode.PARKED_HERE),
    # The real terminal is cooked, so the kernel has stopped the rest of our group already.
    (Mode.AWAY, Happening.TYPED_STOP): ((_A.STOP_SELF,), Mode.PARKED_AWAY),
    (Mode.AWAY, Happening.STOPPED): ((_A.STOP_SELF,), Mode.PARKED_AWAY),
    (Mode.AWAY, Happening.RESUMED_FRONT): ((_A.CONTINUE_BACK,), Mode.AWAY),
    (Mode.AWAY, Happening.RESUMED_BACK): ((_A.CONTINUE_BACK,), Mode.AWAY),
    (Mode.AWAY, Happening.LOST): ((), Mode.AWAY),
    (Mode.HERE, Happening.WANTS_IT_FRONT): ((_A.CONTINUE_FRONT,), Mode.HERE),
    (Mode.HERE, Happening.WANTS_IT_BACK): ((_A.LEAVE, _A.STOP_GROUP), Mode.PARKED_HERE),
    (Mode.HERE, Happening.TYPED_STOP): ((_A.LEAVE, _A.STOP_GROUP), Mode.PARKED_HERE),
    (Mode.HERE, Happening.STOPPED): ((_A.LEAVE, _A.STOP_SELF), Mode.PARKED_HERE),
    # We were stopped from outside (kill -STOP) and the shell has put its own modes on the terminal meanwhile.
    (Mode.HERE, Happening.RESUMED_FRONT): ((_A.ENTER, _A.CONTINUE_FRONT), Mode.HERE),
    (Mode.HERE, Happening.RESUMED_BACK): ((_A.LEAVE, _A.CONTINUE_BACK), Mode.AWAY),
    (Mode.HERE, Happening.LOST): ((_A.LEAVE, _A.CONTINUE_BACK), Mode.AWAY),
    (Mode.PARKED_AWAY, Happening.RESUMED_FRONT): ((_A.CONTINUE_BACK,), Mode.AWAY),
    (Mode.PARKED_AWAY, Happening.RESUMED_BACK): ((_A.CONTINUE_BACK,), Mode.AWAY),
    (Mode.PARKED_AWAY, Happening.REFUSED): ((_A.CONTINUE_BACK,), Mode.AWAY),
    (Mode.PARKED_HERE, Happening.RESUMED_FRONT): ((_A.ENTER, _A.CONTINUE_FRONT), Mode.HERE),
    (Mode.PARKED_HERE, Happening.RESUMED_BACK): ((_A.CONTINUE_BACK,), Mode.AWAY),
    (Mode.PARKED_HERE, Happening.REFUSED): ((_A.NO_INPUT, _A.CONTINUE_FRONT), Mode.AWAY),
}


def react(mode: Mode, happening: Happening) -> tuple[tuple[Action, ...], Mode]:
    """Return what to do and the mode afterwards; a pair that cannot be (a stop while parked) changes nothing."""
    return TRANSITIONS.get((mode, happening), ((), mode))
