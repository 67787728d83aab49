"""The options of a translation, and the summary of an answer."""

from __future__ import annotations

import msgspec

from dragoman.ir import Usage


class TranslationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that change a translation."""

    strict_tool_validation: bool = False
    enable_tool_calling: bool = True


class ResponseSummary(msgspec.Struct, kw_only=True):
    """Summary of the answer received so far, for logs and metrics."""

    model: str = ""
    response_id: str = ""
    usage: Usage = Usage()  # total of all rounds
    calls: list[str] = []  # names of the client's tools that were called
    call_ids: list[str] = []
    stop: str = ""
    rounds: int = 1

    def add_call(self, name: str, call_id: str) -> None:
        self.calls.append(name)
        self.call_ids.append(call_id)
