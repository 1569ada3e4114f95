"""Tasks in containers of docker or podman (HLD-4): the engine, the ways to the gate, and the hold made of them."""
