"""A per-object cache for derived values: `notebook`, an attribute of `Message`."""

from __future__ import annotations

import operator
from typing import Any, Protocol, cast


class Notebook(Protocol):
    """Descriptor that returns the object's own cache dictionary.

    A value must be a pure function of the object and of the inputs that are stored with the value.
    """

    def __get__(self, owner: object, kind: type) -> dict[str, Any]: ...


#: Returns the instance `__dict__` itself; `attrgetter` is implemented in C, so that access runs no Python code.
DERIVED = cast("Notebook", property(operator.attrgetter("__dict__")))
