"""What was computed of a thing, kept with it."""

from __future__ import annotations

import operator
from typing import Any, Protocol, cast


class Notebook(Protocol):
    """A dictionary of an object's own. Entries are pure functions of the object and of what stands beside them."""

    def __get__(self, owner: object, kind: type) -> dict[str, Any]: ...


#: The object's own attributes: there is no other dictionary, and nothing of Python's to run on the way to it.
NOTEBOOK = cast("Notebook", property(operator.attrgetter("__dict__")))
