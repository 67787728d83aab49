"""Decode an answer for which Google may run built-in tools.

Google reports their use in `toolCall` and `toolResponse` (search and URL context), `executableCode` and
`codeExecutionResult`. Clients expect calls and results of server tools before the text that cites them, but Google
sends the sources after the text. The text is therefore held back from the first sign of a search until the end of the
answer, or until it exceeds `MAX_HELD_CHARS`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from dragoman.dialects.base import UpstreamStream
from dragoman.dialects.gemini.built_in_tools import BuiltIns
from dragoman.dialects.gemini.citations import (
    Grounding,
    UrlContext,
    UrlMetadata,
    decode_grounding,
    decode_url_context,
    place_citations,
    read_sources,
    site_of,
    sites_of,
)
from dragoman.dialects.gemini.wire import client_id
from dragoman.ir import (
    Citation,
    CitedText,
    Event,
    Failed,
    Finished,
    Native,
    ServerCall,
    ServerKind,
    ServerResult,
    ServerTool,
    Signature,
    Source,
    TextDelta,
    Usage,
)
from dragoman.notes import Note

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


MAX_HELD_CHARS = 1_000_000

_GROUNDED: frozenset[ServerKind] = frozenset({"web_search", "web_fetch"})
_READ = "URL_RETRIEVAL_STATUS_SUCCESS"


class ServerToolsStream:
    """Wraps `inner` and adds server calls, results and citations, in the order that clients expect."""

    def __init__(
        self, inner: UpstreamStream, built_ins: BuiltIns, origin: str, new_id: Callable[[], str]
    ) -> None:
        self._inner = inner
        self._tools = {tool.kind: tool for tool in built_ins.offered}
        self._new_id = new_id
        self._running = ServerToolParts(self._tools, origin, new_id)
        # Without tool parts in the answer, any text may turn out to be based on a search.
        self._holds_any_text = not built_ins.shown and not _GROUNDED.isdisjoint(self._tools)
        self._holds = False
        self._held: list[Event] = []
        self._held_chars = 0
        self._texts: list[str] = []  # the whole text of the answer
        self._emitted_chars = 0  # characters of it that were emitted
        self._part_starts: list[int] = []  # indices in `_texts` at which a part begins
        self._in_text = False
        self._waiting: dict[str, ServerCall] = {}  # calls by id whose results are not known yet
        self._grounding = Grounding()
        self._pages: dict[str, UrlMetadata] = {}
        self._notes: list[Note] = []

    @property
    def notes(self) -> list[Note]:
        return [*self._inner.notes, *self._notes]

    @property
    def has_finish(self) -> bool:
        return self._inner.has_finish

    def feed(self, data: bytes) -> list[Event]:
        out: list[Event] = []
        for event in self._inner.feed(data):
            if self._in_text and not self._holds and isinstance(event, TextDelta):  # fast path
                self._texts.append(event.text)
                self._emitted_chars += len(event.text)
                out.append(event)
            else:
                out += self._handle(event)
        return out

    def close(self) -> list[Event]:
        return [out for event in self._inner.close() for out in self._handle(event)]

    def _handle(self, event: Event) -> Iterator[Event]:
        match event:
            case Native(field="groundingMetadata"):
                self._merge_grounding(event.json)
            case Native(field="urlContextMetadata"):
                self._add_pages(event.json)
            case Usage():
                yield from self._end_running()
                yield msgspec.structs.replace(event, searches=self._searches(), fetches=self._fetches())
            case Finished():
                yield from self._end_running()
                yield from self._release()
                yield event
            case Failed():
                self._held = []  # the client has not seen it, so the request can be retried
                yield event
            case Native() if self._running.reads(event):
                self._in_text = False
                yield from self._emit_uses(self._running.feed(event))
            case _:
                yield from self._emit_uses(self._running.end_code())
                yield from self._handle_content(event)

    def _end_running(self) -> Iterator[Event]:
        yield from self._emit_uses(self._running.close())

    def _emit_uses(self, ran: Iterable[ServerToolUse]) -> Iterator[Event]:
        """Emit tool uses; a use without a result waits for the grounding metadata at the end."""
        holds = self._holds
        for told in ran:
            yield from self._pass_or_hold(told.call)
            if told.result is not None:
                yield from self._pass_or_hold(told.result)
            else:
                self._waiting[told.call.id] = told.call
                holds = True
        self._holds = holds

    def _handle_content(self, event: Event) -> Iterator[Event]:
        is_text = isinstance(event, TextDelta)
        if is_text and not self._in_text:
            self._part_starts.append(len(self._texts))
        self._in_text = is_text
        if isinstance(event, TextDelta):
            self._texts.append(event.text)
            self._holds = self._holds or self._holds_any_text
        yield from self._pass_or_hold(event)
        if self._held_chars > MAX_HELD_CHARS:
            yield from self._release_early()

    def _pass_or_hold(self, event: Event) -> Iterator[Event]:
        if not self._holds:
            if isinstance(event, TextDelta):
                self._emitted_chars += len(event.text)
            yield event
            return
        self._held.append(event)
        if isinstance(event, TextDelta):
            self._held_chars += len(event.text)

    def _release_early(self) -> Iterator[Event]:
        """Emit the held text, because it is too long: sources follow it, and citations are dropped."""
        why = f"the answer is longer than {MAX_HELD_CHARS} characters: its sources are told without their places"
        self._notes.append(Note("dropped", "answer", why))
        self._emitted_chars += self._held_chars
        self._holds, self._holds_any_text, self._held_chars = False, False, 0
        yield from self._held
        self._held = []

    def _release(self) -> Iterator[Event]:
        """Emit everything that waited for the end of the answer: calls, results and text with citations."""
        sources, unwanted = read_sources(self._grounding, self._admits)
        if unwanted:
            why = f"{unwanted} source(s) are of sites the client does not want"
            self._notes.append(Note("withheld", "answer", why))
        hits = tuple({source.url: source for source in sources if source is not None}.values())
        yield from self._late_calls(hits)
        results = dict(self._results(hits))
        held = {event.id for event in self._held if isinstance(event, ServerCall)}
        yield from (result for identity, result in results.items() if identity not in held)
        whole = "".join(self._texts)
        citations: list[Citation] = []
        if self._held:
            runs = _part_offsets(self._texts, self._part_starts)
            citations = place_citations(whole, runs, self._grounding, sources)
        for event in _cite(self._held, whole, self._emitted_chars, citations):
            yield event
            if isinstance(event, ServerCall) and event.id in results:
                yield results[event.id]
        self._held = []

    def _late_calls(self, hits: tuple[Source, ...]) -> Iterator[Event]:
        """Yield calls that only the metadata reports."""
        told = {call.kind for call in self._waiting.values()}
        if "web_search" not in told and "web_search" in self._tools and self._searched(hits):
            yield self._add_late_call("web_search", {"queries": self._grounding.web_search_queries or []})
        if not self._running.fetched:
            yield from (self._add_late_call("web_fetch", {"urls": [url]}) for url in self._pages)

    def _results(self, hits: tuple[Source, ...]) -> Iterator[tuple[str, ServerResult]]:
        """Yield the result of each waiting call, with its id.

        Google does not say which search found which source: the first search gets all of them.
        """
        titles = {hit.url: hit.title for hit in hits}
        for call in self._waiting.values():
            if call.kind == "web_search":
                yield call.id, ServerResult(call_id=call.id, kind="web_search", sources=hits)
                hits = ()
            else:
                yield call.id, self._pages_of(call, titles)

    def _add_late_call(self, kind: ServerKind, args: dict[str, Any]) -> ServerCall:
        tool = self._tools.get(kind, ServerTool(kind=kind))
        name = tool.name or kind
        call = ServerCall(id=self._new_id(), kind=kind, name=name, args=msgspec.json.encode(args))
        self._waiting[call.id] = call
        return call

    def _searched(self, hits: tuple[Source, ...]) -> bool:
        """Whether Google searched: it reports queries, or sources that are not pages it was asked to read."""
        return bool(self._grounding.web_search_queries or any(hit.url not in self._pages for hit in hits))

    def _pages_of(self, call: ServerCall, titles: dict[str, str]) -> ServerResult:
        urls: list[str] = msgspec.json.decode(call.args)["urls"]
        pages = tuple(self._page(url, titles.get(url, "")) for url in urls)
        return ServerResult(call_id=call.id, kind=call.kind, sources=pages)

    def _page(self, url: str, title: str) -> Source:
        status = self._pages.get(url, UrlMetadata()).url_retrieval_status or _READ
        error = "" if status == _READ else status.removeprefix("URL_RETRIEVAL_STATUS_").lower()
        return Source(url=url, title=title, error=error)

    def _admits(self, site: str) -> bool:
        """Apply the domain filter of `web_fetch` to pages that were read, that of `web_search` to all others."""
        read = {site_of(url) for url in self._pages}
        kind: ServerKind = "web_fetch" if site in read or "web_search" not in self._tools else "web_search"
        tool = self._tools.get(kind)
        return tool is None or sites_of(tool).admit(site)

    def _merge_grounding(self, raw: bytes) -> None:
        try:
            self._grounding = self._grounding.merge(decode_grounding(raw) or Grounding())
        except msgspec.DecodeError:
            self._note_unreadable("groundingMetadata")

    def _add_pages(self, raw: bytes) -> None:
        try:
            context = decode_url_context(raw) or UrlContext()
        except msgspec.DecodeError:
            self._note_unreadable("urlContextMetadata")
            return
        for page in context.url_metadata or ():
            if page is not None and page.retrieved_url:
                self._pages[page.retrieved_url] = page

    def _note_unreadable(self, field: str) -> None:
        self._notes.append(Note("dropped", "answer", f"Google's {field} cannot be read"))

    def _searches(self) -> int:
        """Return the number of queries, which Google bills; they are in tool parts or in the metadata."""
        return self._running.queries or len(self._grounding.web_search_queries or ())

    def _fetches(self) -> int:
        return max(self._running.fetched, len(self._pages))


def _part_offsets(texts: list[str], runs: list[int]) -> list[int]:
    """Return the byte offsets at which the parts of the text begin."""
    ends = [0, *itertools.accumulate(len(text.encode()) for text in texts)]
    return [ends[run] for run in runs] or [0]


def _cite(events: list[Event], whole: str, start: int, citations: list[Citation]) -> Iterator[Event]:
    """Yield the events with each run of text split where a citation begins or ends."""
    at = end = start
    for event in events:
        if isinstance(event, TextDelta):
            end += len(event.text)
            continue
        yield from _cut(whole, at, end, citations)
        at = end
        yield event
    yield from _cut(whole, at, end, citations)


def _cut(whole: str, start: int, end: int, citations: list[Citation]) -> Iterator[Event]:
    for citation in citations:
        first, last = max(citation.start, start), min(citation.end, end)
        if first >= last:
            continue
        if start < first:
            yield TextDelta(whole[start:first])
        yield CitedText(whole[first:last], citation.sources)
        start = last
    if start < end:
        yield TextDelta(whole[start:end])
