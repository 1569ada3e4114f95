"""What reads inside TLS where a rule asks for it: the run's own authority, TLS on memory, HTTP inside (SPEC section 6).

Nothing here owns a socket; the gate moves the bytes.
"""
