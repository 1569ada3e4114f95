"""`python3 /relay ROLE ...` in the image, where this file stands beside the packages."""

from __future__ import annotations

import sys

from tidegate.holds.container.relay.roles import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
