"""Journal: event to line, the per-task log, the summary after a command."""
