"""The table of escapes: what a task could try to get around its hold, tried inside a real one.

    table.py     what a row is, and the two decorators that add one
    tools.py     what rows are written with: raw system calls, namespaces inside, connections
    needs.py     what a kernel may lack of what a row is about, asked outside
    rows/        the rows, one file a theme
    inside.py    runs them; it is the command that is held
    bundle.py    all of the above as one file that a task can run wherever tidegate lies

    world.py     a network namespace in which every address leads back: what gets out of a hold gets no further
    lab.py       who answers in there: a resolver, an allowed origin, canaries at every other address
    machine.py   files and listeners of this machine for the rows to try
    keeper.py    the process around a trial: sets all that up, and hears who comes
    held.py      the front of the trial: holds the table as `run` holds a command
    attempt.py   a trial from beginning to end
    outcome.py   what its answers mean

To add a row, write a function in the file of its theme and decorate it:

    @escape("ECONNREFUSED", holds=FENCED, offline=NO_FAMILY)
    def tcp_to_the_machines_loopback() -> None:
        '''TCP to a listener on the machine's 127.0.0.1.'''
        tcp(socket.AF_INET, "127.0.0.1", HELD["tcp4"])

It runs inside in a process of its own, and must end with one of the errnos it lists: whatever else comes of it is an
escape. `wrong(...)` says that it saw something. What it tries must do no harm where it works: scratch files, canaries,
arguments that the kernel refuses once it has looked at the right to them. `holds` says where it is tried, `who` by
whom, `needs` probes outside for what it is about, where a kernel may lack that. `@neighbour()` marks what must pass.
A new theme is a new file, imported by rows/__init__.py. What a row needs outside (a listener, a file) is set up by
machine.py and told in HELD, names and origins by lab.py. What a row sends to whomever it reaches is `word()`: it
carries the row's name, and a canary that hears it means that this row escaped, whatever it answered.

Every row has its weakening in tests/holds/escapes/weakenings.py: a hold that was made worse on purpose, in which the
row must be reported as escaped. A new row is named there.

`tidegate doctor --escape` runs the table for a person; tests/holds/test_escapes.py runs it in each hold.
"""
