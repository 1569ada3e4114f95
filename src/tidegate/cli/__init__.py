"""Command line: one thin file a command, imported lazily so that run starts fast."""
