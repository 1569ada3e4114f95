"""Holds: the operating-system mechanisms that leave the gate as the only way out."""
