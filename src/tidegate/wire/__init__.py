"""Wire: bytes to values and back, incremental and strict. Raises nothing but WireError."""
