"""What outlives a process: tasks, answers, rules, settings, trust and tokens, behind one interface (SRV-4)."""
