"""Tools: programs that run outside a task for it, offered at a name that only its gate answers (SRV-6)."""
