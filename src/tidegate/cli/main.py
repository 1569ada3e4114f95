"""The entry: which command, and the one place where an error becomes a line and an exit status.

`run` is looked for first and brings nothing with it; every other command is a click command imported when named.
"""

from __future__ import annotations

import sys

from tidegate.model.errors import EXIT_USAGE, TidegateError

USAGE = """\
usage: tidegate COMMAND ...

  run [options] -- COMMAND   run a command behind a gate (tidegate run --help)
  policy check FILE          read a policy and say what each entry covers
  policy explain HOST[:PORT] what the policy says of a host, and why
  policy show                the policy in force, joined
  policy diff A B            what B lets through that A does not
  policy trust               trust this folder's tidegate.yaml as it is now
  policy test FILE           expected verdicts, for CI
  policy import FILE         the policy that a file of another product becomes
  policy learn TASK          a policy of what a task did
  policy new-hosts LOG       what a run reached that a policy does not name, for CI
  events                     the record of a task
  serve                      the server: tasks that live on, questions, one record of all
  task create|list|show|phase|wait|end
                             tasks of the server
  exec TASK -- COMMAND       run a command in a task of the server
  attach --container ID      put the gate of a task into a container that you started without a network
  questions [--follow]       what waits for a person's answer
  answer ID ANSWER           allow, task, remember, deny or deny-task
  watch                      what waits, tasks and connections on the whole terminal; a key answers
  rules [forget ID]          hosts that are remembered, by folder
  settings [set NAME VALUE]  what applies to tasks that say nothing of their own
  sinks [set NAME URL]       where the record of all tasks is sent, and how far that has come
  allow HOST --task T        let a living task reach a host, until it ends
  deny HOST --task T         keep it from one, and close what is open there
  pause --task T             refuse its new connections
  resume --task T            let its policy decide again
  cut [HOST] --task T        close its open connections
  portal [--phone]           open the portal in a browser, or pair a phone with it
  secret set|list|test|forget
                             keys that tasks use and never have
  tools                      programs that may run outside for a task, and the hosts that they talk to
  token create|list|revoke   who may use the API
  log verify                 whether the record of all tasks is what was written
  relay-image build|show     the image of the relay that docker and podman containers reach their gate through
  doctor [--escape]          whether tasks can be held here; --escape tries every known way out of a hold
  --version                  the version
"""

CLICK = (
    *("policy", "events", "log", "doctor", "serve", "task", "attach"),
    *(
        "questions",
        "answer",
        "watch",
        "rules",
        "settings",
        "sinks",
        "allow",
        "deny",
        "pause",
        "resume",
        "cut",
        "secret",
        "tools",
        "token",
        "portal",
        "relay-image",
    ),
)
"""What is a click command; group.py knows its module."""


def main(argv: list[str]) -> int:
    """Run one command and return its exit status. Errors that a person can mend are one line each.

    Raises:
        KeyboardInterrupt, BrokenPipeError: left to the caller, who ends as a program in C would.
    """
    try:
        return _dispatch(argv)
    except TidegateError as error:
        if error.code == "policy-text":
            raw(str(error))  # FILE:LINE:COL: editors and CI jump to it
        else:
            say(str(error))
        return error.exit_status


def say(text: str) -> None:
    """Print lines for a person on standard error; never raises where that is closed or full."""
    raw("\n".join(f"tidegate: {line}" for line in text.splitlines()))


def raw(text: str) -> None:
    """Print text on standard error as it is; never raises where that is closed or full."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


def _dispatch(argv: list[str]) -> int:
    command = argv[0] if argv else ""
    if command == "run":
        from tidegate.cli.run import run

        return run(argv[1:])
    if command == "exec":
        from tidegate.cli.exec import exec_

        return exec_(argv[1:])
    if command in ("--version", "version"):
        from tidegate import __version__

        print(f"tidegate {__version__}")  # noqa: T201  the answer itself
        return 0
    if command in ("--help", "-h", "help"):
        sys.stdout.write(USAGE)
        return 0
    if command in CLICK:
        from tidegate.cli.group import run_click

        return run_click(argv)
    if command:
        from tidegate.policy.suggest import nearest

        near = nearest(command, (*CLICK, "run", "exec"))
        say(f"unknown command {command!r}: " + (f"did you mean {near}?" if near else "see tidegate --help"))
    else:
        raw(USAGE.rstrip("\n"))
    return EXIT_USAGE


def console() -> None:
    """Entry of the console script; ends by the signal on Ctrl-C and on a closed pipe."""
    import signal

    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        number = signal.SIGINT
    except BrokenPipeError:
        number = signal.SIGPIPE
    else:
        sys.exit(status)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
