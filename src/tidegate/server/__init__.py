"""Server: gates, tasks, questions, API and portal in one process (`tidegate serve`)."""
