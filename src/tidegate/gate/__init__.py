"""Gate: one epoll reactor, listeners, the life of a connection, resolve, dial, tunnels."""
