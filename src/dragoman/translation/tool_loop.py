"""The tool loop of one answer: rounds with the model in which the gateway runs its own tools.

    answer = round { results round }    results are the gateway's; text and thoughts reach the client as they arrive
    round  = the model's output; calls of gateway tools are held back

The loop ends with the first round that calls no gateway tool, or that also calls a tool of the client (a mixed
round). In a mixed round the gateway tools are run too, and their results are stored for the next request
(`repair.hidden_rounds`). When a limit is reached (rounds, bytes, repeated calls, or a reason given by the caller) the
gateway tools are withdrawn, the model is told why, and the next round is the last.

If an external party supplies the result of a gateway call later, the answer is suspended: it ends, and the client
sees a text in place of the calls. When the results arrive, the answer resumes at its place in the client's history,
or after the history if the client does not show it.

Separate from `exchange`, which also serves requests without gateway tools, and without I/O: the gateway runs the
tools (`gateway.gateway_tools`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from dragoman.ir import (
    CitedText,
    Collector,
    Event,
    Finished,
    Message,
    Part,
    Request,
    ServerCall,
    ServerKind,
    Started,
    Text,
    TextDelta,
    Thought,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from dragoman.notes import Note
from dragoman.translation.argument_repair import arguments_fit
from dragoman.translation.repair import (
    HiddenRounds,
    hidden_key,
    hidden_places,
    last_user_message,
    restore_hidden_rounds,
)
from dragoman.translation.tool_search import DeferredTools


class LoopDetector:
    """Counts consecutive calls with the same arguments and the same result.

    A different result is progress: running the tests after every edit is not a loop.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, bytes], tuple[int, ToolResult]] = {}

    def count(self, call: ToolCall, result: ToolResult) -> int:
        """Record a call; return how many times in a row it had this result."""
        key = (call.name, _canonical(call.args))
        result = msgspec.structs.replace(result, call_id="")
        times, previous = self._seen.get(key, (0, result))
        times = times + 1 if previous == result else 1
        self._seen[key] = times, result
        return times


def _canonical(args: bytes) -> bytes:
    """Return the arguments with sorted keys and without white space, so that equal objects compare equal."""
    try:
        return msgspec.json.encode(msgspec.json.decode(args), order="deterministic")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return args


class LoopLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits per answer."""

    max_rounds: int = 16  # rounds with calls of gateway tools
    max_output_bytes: int = 4 * 1024 * 1024  # total size of all results
    max_repeats: int = 3  # equal calls with equal results

    def stricter(self, other: LoopLimits) -> LoopLimits:
        """Return the stricter value of each limit."""
        return LoopLimits(
            max_rounds=min(self.max_rounds, other.max_rounds),
            max_output_bytes=min(self.max_output_bytes, other.max_output_bytes),
            max_repeats=min(self.max_repeats, other.max_repeats),
        )


class LoopBudget:
    """Tracks the use of gateway tools against the limits."""

    def __init__(self, limits: LoopLimits) -> None:
        self._limits = limits
        self._loop_detector = LoopDetector()
        self._bytes = 0

    def add_round(self, rounds: int, results: Iterable[tuple[ToolCall, ToolResult]]) -> str:
        """Count the results of a round. Return why the loop must stop, or an empty string.

        `rounds` is the number of rounds so far, including this one.
        """
        times = 0
        for call, result in results:
            self._bytes += len(msgspec.json.encode(result))
            times = max(times, self._loop_detector.count(call, result))
        if rounds >= self._limits.max_rounds:
            return f"they were used {rounds} times in a row"
        if self._bytes > self._limits.max_output_bytes:
            return f"they have answered {self._bytes:,} bytes"
        if times >= self._limits.max_repeats:
            return "the same call gave the same answer again and again"
        return ""


_GATEWAY_PREFIX = "gateway_"


class ToolNames:
    """Assigns names to gateway tools; `original_names` maps each declared name to the tool's own name."""

    def __init__(self, client_names: Iterable[str]) -> None:
        self._client_names = frozenset(client_names)
        self.original_names: dict[str, str] = {}
        self.notes: list[Note] = []

    def assign(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return the tools under names that are free; of two tools with one name only the first."""
        return tuple(named for tool in tools if (named := self._assign(tool)) is not None)

    def rename_choice(self, choice: ToolChoice | None) -> ToolChoice | None:
        """Return the choice with the declared names; None if none of the tools it names is declared."""
        if choice is None or not choice.names:
            return choice
        declared = {original: name for name, original in self.original_names.items()}
        renamed = (declared.get(name, name if name in self._client_names else "") for name in choice.names)
        names = tuple(name for name in renamed if name)
        return msgspec.structs.replace(choice, names=names) if names else None

    def _assign(self, tool: Tool) -> Tool | None:
        name = tool.name
        if name in self.original_names:
            return None
        if name in self._client_names:
            name = _GATEWAY_PREFIX + name
            if name in self._client_names or name in self.original_names:
                self.notes.append(Note("withheld", tool.name, "the client has tools of this name"))
                return None
            why = f"{tool.name!r} is the client's; the gateway's own tool of this name is {name!r}"
            self.notes.append(Note("renamed", tool.name, why))
        self.original_names[name] = tool.name
        return tool if name == tool.name else msgspec.structs.replace(tool, name=name)


_STOP_TEXT = (
    "No more tools of this kind can be used for this answer: {why}."
    " Answer now with what you have, and say what is missing."
)
NO_USAGE = Usage()


class ToolLoop:
    """The state of one tool loop.

    `tools` are gateway tools; one whose name the client uses is renamed or left out. `search_tools` are the gateway
    tools that search for tools. `deferred` tools, of the client or the gateway, are declared only after a search
    tool has found them or if the conversation already used them. `tool_choice` replaces the client's tool choice.
    `mcp_labels` are the labels of the requested MCP servers that the gateway runs; they are removed from the request.
    """

    def __init__(
        self,
        request: Request,
        tools: Iterable[Tool],
        *,
        search_tools: Iterable[Tool] = (),
        deferred: DeferredTools | None = None,
        tool_choice: ToolChoice | None = None,
        mcp_labels: Container[str] = (),
        limits: LoopLimits = LoopLimits(),  # noqa: B008 (frozen)
        notes: Iterable[Note] = (),
    ) -> None:
        names = ToolNames(tool.name for tool in request.tools)
        search_tools, tools = names.assign(search_tools), names.assign(tools)
        tool_choice = names.rename_choice(tool_choice)
        self._original_names = names.original_names
        self.notes = [*notes, *names.notes]
        self._deferred = deferred or DeferredTools()
        client_deferred = self._deferred.names(request.tools)
        self._search_tools = frozenset(tool.name for tool in search_tools if client_deferred)
        not_deferred = self._deferred.not_deferred
        self._initial_tools = (*not_deferred(request.tools), *search_tools, *not_deferred(tools))
        self._client_chooses = tool_choice is None
        self.request = msgspec.structs.replace(
            request,
            remotes=tuple(remote for remote in request.remotes if remote.label not in mcp_labels),
            tool_choice=tool_choice or request.tool_choice,
        )
        self.places = hidden_places(request.messages)
        self.set_stored_rounds({})
        self.usage = NO_USAGE  # total of the completed rounds
        self._budget = LoopBudget(limits)
        # The model's turn and the results of each completed round.
        self._completed: tuple[Message, ...] = ()
        self._approved_results: dict[str, ToolResult] = {}
        self._suspended = False
        self._stop_reason = ""
        self._opened = False  # the client's answer has started, in an earlier round or with `opening_events`
        self._separated = False
        self._earlier_text: list[str] = []  # shown in completed rounds
        self.begin_round()

    def begin_round(self) -> None:
        """Reset the state of the current round, for a new round or another attempt."""
        self._collector = Collector()
        self._calls: list[ToolCall] = []
        self._results: tuple[ToolResult, ...] = ()
        self._has_results = False
        self._client_call_id = ""  # the first call that the client must answer
        self._started = False
        self._text: list[str] = []
        self._round_usage = self._tool_usage = NO_USAGE

    @property
    def completed_rounds(self) -> int:
        """The number of completed rounds."""
        return len(self._completed) // 2

    def is_gateway_tool(self, name: str) -> bool:
        return name in self._original_names

    def handles(self, name: str, args: bytes) -> bool:
        """Whether the gateway answers this call: it calls a gateway tool, or a deferred tool that the model has not
        seen yet, with arguments that do not fit."""
        unseen = self.undeclared_tool(name)
        return self.is_gateway_tool(name) or (unseen is not None and not arguments_fit(unseen, args))

    def undeclared_tool(self, name: str) -> Tool | None:
        """Return the deferred tool of this name if it is not declared yet."""
        return self._deferred.undeclared_tool(name, self.request.tools)

    def set_stored_rounds(self, records: Mapping[str, str]) -> None:
        """Set the records that the store has for the keys of `places`, and declare the tools that they mention."""
        self._records = records
        self.request = msgspec.structs.replace(self.request, tools=self._initial_tools)
        self._declare(self._deferred.known_tools(self.request, self.places, records))

    def resume(self, in_history: Mapping[str, str], after_history: Iterable[HiddenRounds] = ()) -> None:
        """Continue suspended answers that have their results.

        `in_history` are records whose place is in the client's history; the records in `after_history` follow it.
        """
        self.set_stored_rounds({**self._records, **in_history})
        records = tuple(after_history)
        self._declare(self._deferred.with_names(name for record in records for name in record.revealed))
        self._completed = tuple(message for record in records for message in record.to_messages())

    @property
    def approved_calls(self) -> tuple[ToolCall, ...]:
        """Gateway calls that the user has just approved; the gateway runs them before the first round."""
        messages = self.request.messages
        last = max((index for index, message in enumerate(messages) if message.role == "model"), default=-1)
        new_parts = (part for message in messages[last + 1 :] for part in message.parts)
        approved = {
            part.call_id for part in new_parts if isinstance(part, ToolResult) and part.approval == "yes"
        }
        return tuple(
            ToolCall(id=part.id, name=self._original_names[part.name], args=part.args)
            for part in (messages[last].parts if approved and last >= 0 else ())
            if isinstance(part, ToolCall) and part.id in approved and self.is_gateway_tool(part.name)
        )

    def set_approved_results(self, results: Iterable[ToolResult]) -> None:
        """Set the results of the approved calls."""
        self._approved_results |= {result.call_id: result for result in results}

    def next_request(self, messages: tuple[Message, ...]) -> Request:
        """Return the request of the next round: the client's `messages` and all completed rounds."""
        history = restore_hidden_rounds(messages, self.places, self._records)
        messages = (*self._with_approved_results(history), *self._completed)
        tools, choice = self.request.tools, self._next_choice()
        if self._stop_reason:
            why = Text(text=_STOP_TEXT.format(why=self._stop_reason))
            messages += (Message(role="system", parts=(why,)),)
            tools = tuple(tool for tool in tools if not self.is_gateway_tool(tool.name))
            names = tuple(name for name in choice.names if not self.is_gateway_tool(name))
            choice = msgspec.structs.replace(choice, names=names)
        return msgspec.structs.replace(self.request, messages=messages, tools=tools, tool_choice=choice)

    def opening_events(
        self, events: Iterable[Event] = (), server_kinds: frozenset[ServerKind] = frozenset()
    ) -> tuple[Event, ...]:
        """Return the events that must precede `events` of the gateway if the model has not started yet.

        `server_kinds` are the server calls that the client's dialect can show: such a call already separates the
        text before it from the text after it.
        """
        opening = () if self._opened or self._started else (Started(),)
        self._opened = True
        self._separated = any(
            isinstance(event, ServerCall) and event.kind in server_kinds for event in events
        )
        return opening

    def forward(self, event: Event) -> tuple[Event, ...]:
        """Return the events for the client: one start and one end per answer, a blank line between the texts of
        different rounds."""
        self.record_event(event)
        match event:
            case TextDelta() | CitedText():
                return (*self._separator(event.text), event)
            case ToolCall():
                self._client_call_id = self._client_call_id or event.id
            case Started() if self._opened:
                return ()
            case Started():
                self._started = True
            case Usage():
                self._round_usage = event
                return (self._client_usage(event),)
            case Finished():
                return (*self._usage_with_tools(), self._client_finish(event))
        return (event,)

    def record_event(self, event: Event) -> None:
        """Record an event of the model for the next round, whether the client gets it or not."""
        self._collector.feed(event)

    def accept_call(self, call: ToolCall) -> bool:
        """Record a call of a gateway tool. Return False if it is dropped because a limit was reached."""
        if self._stop_reason:
            self.notes.append(Note("dropped", call.name, f"called again although {self._stop_reason}"))
            return False
        self._collector.feed(call)
        name = self._original_names.get(call.name, call.name)
        self._calls.append(msgspec.structs.replace(call, name=name))
        return True

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Gateway calls that wait for their results, with the tools' original names."""
        return () if self._has_results else tuple(self._calls)

    @property
    def is_mixed(self) -> bool:
        """Whether the client must answer a call of this round, so that no further round follows."""
        return bool(self._client_call_id)

    def add_results(
        self,
        results: Sequence[ToolResult | None],
        *,
        found_tools: Iterable[Tool] = (),
        stop_reason: str = "",
        tool_usage: Usage = NO_USAGE,
    ) -> None:
        """Add the results of `calls`, in the same order, and complete the round unless it is mixed.

        A result is None if the call waits for the client. `found_tools` are declared from the next round on.
        `stop_reason`, if not empty, says why the next round must be the last. `tool_usage` are the tokens that the
        tools used themselves.
        """
        answered = self._set_results(results, tool_usage)
        limit = self._budget.add_round(self.completed_rounds + 1, answered)
        self._stop_reason = self._stop_reason or limit or stop_reason
        self._declare(found_tools)
        self._opened = True
        if not self.is_mixed:
            self._completed += (self._model_turn(), Message(role="user", parts=self._results))
            self._earlier_text += self._text
            self.usage = self.usage.plus(self._round_usage).plus(tool_usage)
            self.begin_round()

    def suspend(
        self,
        results: Sequence[ToolResult | None],
        external_ids: Container[str],
        placeholder: str,
        tool_usage: Usage = NO_USAGE,
    ) -> tuple[Event, ...]:
        """End the answer now; the results of the calls with the `external_ids` arrive from elsewhere.

        `results` and `tool_usage` are as for `add_results`. If the client has no call to answer, return events that
        show it the `placeholder` text in place of the pending calls.
        """
        self._set_results(results, tool_usage, external_ids)
        self._suspended = True
        if self.is_mixed:
            return ()
        separator = (TextDelta("\n\n"),) if "".join((*self._earlier_text, *self._text)).strip() else ()
        self._text.append(placeholder)
        return (*separator, TextDelta(placeholder))

    def store_entries(self) -> list[tuple[str, str]]:
        """Return the key and record to store, so that the next request can restore the hidden rounds.

        Empty if there is nothing to hide, or if the answer is suspended: the code that waits for the results stores
        the record then.
        """
        if self._suspended or (not self._completed and not self._calls):
            return []
        key, record = self.build_record()
        return [(key, record.encode())] if key else []

    def build_record(self) -> tuple[str, HiddenRounds]:
        """Return the complete answer with its store key; the key is empty if the client saw nothing of it."""
        text = "".join((*self._earlier_text, *self._text))
        record = HiddenRounds(
            last=self._model_turn(),
            rounds=self._completed,
            results=self._results,
            revealed=self._deferred.names(self.request.tools),
        )
        if not self._client_call_id and not text.strip():
            return "", record
        return hidden_key(last_user_message(self.request.messages), text, self._client_call_id), record

    def _declare(self, tools: Iterable[Tool]) -> None:
        """Declare more tools, after those that are declared already."""
        before = {tool.name for tool in self.request.tools}
        new = {tool.name: tool for tool in tools if tool.name not in before}
        if new:
            declared = (*self.request.tools, *new.values())
            self.request = msgspec.structs.replace(self.request, tools=declared)

    def _with_approved_results(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Replace the approvals in the messages by the results of the approved calls."""
        results = self._approved_results
        if not results:
            return messages

        def replaced(part: Part) -> Part:
            return results.get(part.call_id, part) if isinstance(part, ToolResult) else part

        return tuple(
            Message(role=message.role, parts=tuple(map(replaced, message.parts)))
            if any(isinstance(part, ToolResult) and part.call_id in results for part in message.parts)
            else message
            for message in messages
        )

    def _next_choice(self) -> ToolChoice:
        """Return the tool choice of the next round.

        A client that forces a call means one of its own tools (known problem B15), and only once: later rounds are
        free. If the forced tool may be deferred, the search tools are allowed too, and the call stays forced until the
        tool is found. If the client names the tools, there is nothing to find.
        """
        choice = self.request.tool_choice
        names = [tool.name for tool in self.request.tools]
        if choice.mode == "any":
            if not self._client_chooses and not self._completed:
                return choice
            search = () if choice.names else tuple(name for name in names if name in self._search_tools)
            allowed = tuple(name for name in names if not self.is_gateway_tool(name)) + search
            if (self._completed and not search) or not (allowed or choice.names):
                return ToolChoice(parallel=choice.parallel)
            return msgspec.structs.replace(choice, names=choice.names or allowed)
        if choice.names and self._client_chooses:
            gateway = (
                name for name in names if self.is_gateway_tool(name) and name not in self._search_tools
            )
            return msgspec.structs.replace(choice, names=(*choice.names, *gateway))
        return choice

    def _separator(self, text: str) -> tuple[Event, ...]:
        """Record a text for the client; return a separator if an earlier round has shown text before it."""
        separator = (
            self._earlier_text
            and not self._text
            and not self._separated
            and not self._earlier_text[-1].endswith("\n")
        )
        self._text.append(text)
        return (TextDelta("\n\n"),) if separator else ()

    def _client_usage(self, usage: Usage) -> Usage:
        """Return the total usage, but with the input tokens of the current round only.

        Every round reads the whole history again, and clients take the input tokens for the size of the
        conversation (known problem H1).
        """
        total = self.usage.plus(usage)
        return msgspec.structs.replace(
            total, input_tokens=usage.input_tokens, cached_tokens=usage.cached_tokens
        )

    def _usage_with_tools(self) -> tuple[Event, ...]:
        """Return the usage including the gateway tools of the last round: the client only got the model's so far."""
        if self._tool_usage == NO_USAGE:
            return ()
        output = msgspec.structs.replace(self._tool_usage, input_tokens=0, cached_tokens=0)
        return (self._client_usage(self._round_usage.plus(output)),)

    def _client_finish(self, event: Finished) -> Finished:
        """Report a normal end to the client if only gateway tools were called."""
        only_gateway = event.reason == "tool_calls" and not self._client_call_id
        return msgspec.structs.replace(event, reason="end") if only_gateway else event

    def _set_results(
        self, results: Sequence[ToolResult | None], tool_usage: Usage, external_ids: Container[str] = ()
    ) -> list[tuple[ToolCall, ToolResult]]:
        """Set the results of the round's calls and return those that have one.

        The client answers a call without a result, unless its result is external.
        """
        pairs = list(zip(self._calls, results, strict=True))
        waiting = (call.id for call, result in pairs if result is None and call.id not in external_ids)
        self._client_call_id = self._client_call_id or next(waiting, "")
        answered = [(call, result) for call, result in pairs if result is not None]
        self._results = tuple(result for _, result in answered)
        self._has_results = True
        self._tool_usage = tool_usage
        return answered

    def _model_turn(self) -> Message:
        """Return the model's output of this round; unsigned thoughts are never sent back (known problem A2)."""
        parts = self._collector.close().parts
        kept = (part for part in parts if not isinstance(part, Thought) or part.signature is not None)
        return Message(role="model", parts=tuple(kept))
