"""Which of Google's two front doors a request came through, and which contract stands behind it."""

from __future__ import annotations

from typing import Literal

import msgspec

Surface = Literal["studio", "vertex"]

_TYPE_ROOTS = {"studio": "google.ai.generativelanguage", "vertex": "google.cloud.aiplatform"}


class Backend(msgspec.Struct, frozen=True):
    """AI Studio or Vertex, with the API version of the path."""

    surface: Surface
    version: str

    @property
    def is_vertex(self) -> bool:
        return self.surface == "vertex"

    @property
    def table(self) -> str:
        """The key of this contract in fields.json; AI Studio has one for all its versions."""
        return f"vertex_{self.version}" if self.is_vertex else "mldev"

    def type_url(self, name: str) -> str:
        # Google names its types by the version that is called, v1 of AI Studio excepted: it runs on v1beta's.
        version = self.version if self.is_vertex else "v1beta"
        return f"type.googleapis.com/{_TYPE_ROOTS[self.surface]}.{version}.{name}"
