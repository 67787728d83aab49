"""The two APIs that serve Gemini, AI Studio and Vertex AI, and the contract of each."""

from __future__ import annotations

from typing import Literal

import msgspec

Surface = Literal["studio", "vertex"]

_TYPE_ROOTS = {"studio": "google.ai.generativelanguage", "vertex": "google.cloud.aiplatform"}


class Backend(msgspec.Struct, frozen=True):
    """AI Studio or Vertex AI, with the API version from the path."""

    surface: Surface
    version: str

    @property
    def is_vertex(self) -> bool:
        return self.surface == "vertex"

    @property
    def table(self) -> str:
        """The key of the contract in fields.json; all versions of AI Studio share one."""
        return f"vertex_{self.version}" if self.is_vertex else "mldev"

    def type_url(self, name: str) -> str:
        # Type names contain the version in the path, except that v1 of AI Studio uses the types of v1beta.
        version = self.version if self.is_vertex else "v1beta"
        return f"type.googleapis.com/{_TYPE_ROOTS[self.surface]}.{version}.{name}"
