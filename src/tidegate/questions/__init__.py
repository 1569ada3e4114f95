"""Putting an `ask` before a person: a pure state machine, and the thread-safe shell that gate and server talk to."""
