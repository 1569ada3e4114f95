"""Sinks: what the action log is sent to, and what follows it there (JRN-6). Loaded by the server only."""
