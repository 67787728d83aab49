"""Decode the parts that report Google's use of its built-in tools.

These are `toolCall` and `toolResponse` (search and URL context), `executableCode` and `codeExecutionResult`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from dragoman.dialects.gemini.ids import client_id
from dragoman.ir import Native, ServerCall, ServerKind, ServerResult, ServerTool, Signature

_KINDS: dict[str, ServerKind] = {
    "GOOGLE_SEARCH_WEB": "web_search",
    "GOOGLE_SEARCH_IMAGE": "web_search",
    "URL_CONTEXT": "web_fetch",
}
_OUTCOMES = {"OUTCOME_OK": "", "OUTCOME_DEADLINE_EXCEEDED": "timeout"}


class Invocation(msgspec.Struct, rename="camel"):
    id: str | None = None
    tool_type: str | None = None
    args: Any = None


class Code(msgspec.Struct):
    id: str | None = None
    code: str | None = None
    outcome: str | None = None
    output: str | None = None


class ToolPart(msgspec.Struct, rename="camel"):
    tool_call: Invocation | None = None
    tool_response: Invocation | None = None
    executable_code: Code | None = None
    code_execution_result: Code | None = None


class ServerToolUse(msgspec.Struct, frozen=True):
    """A use of a server tool; `result` is None if it must be taken from the grounding metadata."""

    call: ServerCall
    result: ServerResult | None = None


_decode_part = msgspec.json.Decoder(ToolPart, strict=False).decode


class ServerToolParts:
    """Collects tool parts; `feed` yields the calls once all calls that run in parallel have a response.

    Google wants the parts back in its own order, so they are kept together in the signature of the first call.
    `queries` counts the searches, `fetched` the pages read.
    """

    def __init__(
        self, tools: Mapping[ServerKind, ServerTool], origin: str, new_id: Callable[[], str]
    ) -> None:
        self._tools = tools
        self._origin = origin
        self._new_id = new_id
        self._call_parts: list[bytes] = []
        self._calls: list[Invocation] = []
        self._answered = 0
        self._code_parts: list[bytes] = []
        self._code: Code | None = None
        self._results: list[Code] = []
        self.queries = 0
        self.fetched = 0

    def reads(self, native: Native) -> bool:
        """Whether `feed` handles this part."""
        part = _decode(native)
        invocation = part.tool_call or part.tool_response
        if invocation is not None:
            return invocation.tool_type in _KINDS
        return part.executable_code is not None or part.code_execution_result is not None

    def feed(self, native: Native) -> Iterator[ServerToolUse]:
        part = _decode(native)
        if part.code_execution_result is not None:
            self._code_parts.append(native.json)
            self._results.append(part.code_execution_result)
            return
        yield from self.end_code()
        if part.executable_code is not None:
            self._code_parts.append(native.json)
            self._code = part.executable_code
        elif part.tool_call is not None:
            self._call_parts.append(native.json)
            self._calls.append(part.tool_call)
        elif self._calls:  # ignore a response without a call
            self._call_parts.append(native.json)
            self._answered += 1
            if self._answered == len(self._calls):
                yield from self._end_calls()

    def close(self) -> Iterator[ServerToolUse]:
        yield from self.end_code()
        yield from self._end_calls()

    def _end_calls(self) -> Iterator[ServerToolUse]:
        """Yield the collected calls.

        The parts are attached as a signature only if every call has a response: it is not known how Google
        treats an unanswered call in the history.
        """
        calls, whole = self._calls, self._answered == len(self._calls)
        signature = self._sign(self._call_parts) if whole else None
        self._call_parts, self._calls, self._answered = [], [], 0
        for told in (told for call in calls for told in self._split(call)):
            yield ServerToolUse(msgspec.structs.replace(told, signature=signature))
            signature = self._sign([]) if whole else None

    def _split(self, call: Invocation) -> Iterator[ServerCall]:
        """Yield one call for a search, even with several queries, and one for each page that was read."""
        kind = _KINDS[call.tool_type or ""]
        args = call.args if isinstance(call.args, dict) else {}
        if kind == "web_search":
            queries = _strings(args.get("queries"))
            self.queries += len(queries) or 1
            yield self._call(kind, call.id, {"queries": queries})
            return
        urls = _strings(args.get("urls"))
        self.fetched += len(urls)
        for place, url in enumerate(urls or [""]):
            yield self._call(kind, call.id if not place else None, {"urls": [url] if url else []})

    def end_code(self) -> Iterator[ServerToolUse]:
        """Yield the collected code execution; any other part means that it has no more results."""
        code, results, parts = self._code, self._results, self._code_parts
        self._code, self._results, self._code_parts = None, [], []
        if not parts:
            return
        identity = code.id if code is not None else None
        args = {"code": code.code or ""} if code is not None else {}
        call = msgspec.structs.replace(
            self._call("code_execution", identity, args), signature=self._sign(parts)
        )
        errors = [_OUTCOMES.get(result.outcome or "", "failed") for result in results]
        result = ServerResult(
            call_id=call.id,
            kind="code_execution",
            output="".join(result.output or "" for result in results),
            error=next(filter(None, errors), "") if results else "unavailable",
        )
        yield ServerToolUse(call, result)

    def _call(self, kind: ServerKind, identity: str | None, args: dict[str, Any]) -> ServerCall:
        own = self._new_id()
        tool = self._tools.get(kind)
        return ServerCall(
            id=client_id(own, identity) if identity else own,
            kind=kind,
            name=(tool.name if tool is not None else "") or kind,
            args=msgspec.json.encode(args),
        )

    def _sign(self, parts: list[bytes]) -> Signature:
        """Return the raw parts as a signature, because Google wants them back unchanged."""
        return Signature(f"[{','.join(part.decode() for part in parts)}]", self._origin)


def _decode(native: Native) -> ToolPart:
    try:
        return _decode_part(native.json)
    except msgspec.DecodeError:
        return ToolPart()


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
