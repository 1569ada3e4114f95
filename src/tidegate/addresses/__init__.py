"""Addresses: the table of special ranges, IPv4 inside IPv6, admission. Pure."""
