"""Runtime: a running task put together from policy, hold, gate and journal."""
