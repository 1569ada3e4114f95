"""The hosts that a folder remembers, as a layer of the policy of what starts in it (ASK-8, POL-8)."""

from __future__ import annotations

import os

from tidegate.model.errors import NotSavedError, StartError
from tidegate.policy.layers import remembered_layer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.policy.layers import PolicyLayer


def remembered_hosts(folder: str, state: str) -> PolicyLayer | None:
    """Return what `folder` remembers, None where it remembers nothing. `state` is tidegate's state folder.

    Raises:
        StartError: when the store cannot be read: what was remembered, and then forgotten, is not known then.
    """
    from tidegate.state.folders import STORE_FILE, folder_key

    if not os.path.lexists(os.path.join(state, STORE_FILE)):
        return None
    from tidegate.state.sqlite import open_store

    store = open_store(state)
    try:
        rules = store.rules(folder_key(folder))
    except NotSavedError as error:
        raise StartError(error.what, fix=error.fix, code="store") from None
    finally:
        store.close()
    if not rules:
        return None
    return remembered_layer((rule.host, rule.port, rule.phase, f"rule {rule.id}, by {rule.by}") for rule in rules)
