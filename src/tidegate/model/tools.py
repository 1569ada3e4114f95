"""The name at which a task finds its tools (SRV-6). Only its gate answers it; no resolver is ever asked for it.

`.internal` is set aside for private use (ICANN resolution 2024.07.29.06): no public zone will have it.
"""

from __future__ import annotations

from tidegate.model.destination import Destination
from tidegate.model.host import Host

NAME = "tools.tidegate.internal"
PORT = 80
PLACE = Destination(Host(NAME, None), PORT)
URL = f"http://{NAME}/"
VARIABLE = "TIDEGATE_TOOLS"
RULE = "tools"  # what the journal has in the place of a rule's name
SOURCE = "--tool"
ANY_TOOL = f"{SOURCE} NAME"  # what a task needs that asks for its tools and has none
