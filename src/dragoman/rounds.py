"""One answer with tools that the gateway runs itself: rounds with the model that the client does not see.

    answer = round { results round }            ours in between, text and thoughts shown as they come
    round  = what the model says, our own calls held back

The last round is the first without a call of ours, or with one of the client's: a mixed step, whose calls of ours
are answered too and kept for the history (`repair.hidden`). When it is enough (rounds, bytes, circles, or somebody
says so) the model is told, our tools are withdrawn, and the next round is the last.

Where somebody else answers a call of ours, the answer is suspended: it ends there, and the client sees words that stand
for the calls. When the results have come it goes on where the client's history shows it, or behind the history.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from dragoman.allowance import Allowance
from dragoman.allowance import Limits as Limits
from dragoman.claims import Claims
from dragoman.finding import Deferred
from dragoman.ir import (
    Cited,
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
from dragoman.mending import fits
from dragoman.notes import Note
from dragoman.repair import Hidden, hidden_key, hidden_places, last_user, weave

_ENOUGH = (
    "No more tools of this kind can be used for this answer: {why}."
    " Answer now with what you have, and say what is missing."
)
_FREE = Usage()


class Rounds:
    """`tools` are ours. The client's names are the client's: ours gets another name, or is left out.

    `choice` stands for the client's; `served` are the labels of the MCP servers it asked for and gets. `deferred` tools,
    the client's or ours, are declared once one of the `finders`, which are ours, has found them, or the conversation
    knows them.
    """

    def __init__(
        self,
        request: Request,
        tools: Iterable[Tool],
        *,
        finders: Iterable[Tool] = (),
        deferred: Deferred | None = None,
        choice: ToolChoice | None = None,
        served: Container[str] = (),
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        notes: Iterable[Note] = (),
    ) -> None:
        claims = Claims(tool.name for tool in request.tools)
        searching, declared = claims.claim(finders), claims.claim(tools)
        self._real = claims.real
        self.notes = [*notes, *claims.notes]
        self._deferred = deferred or Deferred()
        waits = self._deferred.names(request.tools)  # of the client's
        self._finders = frozenset(tool.name for tool in searching if waits)
        others = self._deferred.others
        self._first = (*others(request.tools), *searching, *others(declared))
        remotes = tuple(remote for remote in request.remotes if remote.label not in served)
        self.request = msgspec.structs.replace(request, remotes=remotes)
        choice = claims.declared(choice)
        if choice is not None:
            self.request = msgspec.structs.replace(self.request, tool_choice=choice)
        self._narrows = choice is None
        self.places = hidden_places(request.messages)
        self.remind({})
        self.usage = Usage()  # of the rounds before this one
        self._allowance = Allowance(limits)
        self._said: tuple[Message, ...] = ()  # the rounds that are over
        self._answers: dict[str, ToolResult] = {}
        self._suspended = False
        self._enough = ""
        self._opened = False
        self._parted = False
        self._shown: list[str] = []
        self.begin()

    def begin(self) -> None:
        """A round, or another attempt at it."""
        self._collector = Collector()
        self._calls: list[ToolCall] = []
        self._results: tuple[ToolResult, ...] = ()
        self._settled = False
        self._client_call = ""
        self._started = False
        self._text: list[str] = []
        self._used = self._spent = _FREE

    @property
    def number(self) -> int:
        """How many rounds are over."""
        return len(self._said) // 2

    def owns(self, name: str) -> bool:
        return name in self._real

    def takes(self, name: str, args: bytes) -> bool:
        """Whether a call is ours to answer: of our own tools, or a wrong guess at one that the model has not seen."""
        unseen = self.unseen(name)
        return self.owns(name) or (unseen is not None and not fits(unseen, args))

    def unseen(self, name: str) -> Tool | None:
        """A tool of the client's that the model has not been shown yet."""
        return self._deferred.unseen(name, self.request.tools)

    def remind(self, found: Mapping[str, str]) -> None:
        """What the store knows of `places`."""
        self._found = found
        self.request = msgspec.structs.replace(self.request, tools=self._first)
        self._reveal(self._deferred.known(self.request, self.places, found))

    def resume(self, found: Mapping[str, str], behind: Iterable[Hidden] = ()) -> None:
        """Suspended answers that have their results: in their places, and those that go on behind the history."""
        self.remind({**self._found, **found})
        records = tuple(behind)
        self._reveal(self._deferred.named(name for record in records for name in record.revealed))
        self._said = tuple(message for record in records for message in record.closed())

    def ask(self, messages: tuple[Message, ...]) -> Request:
        """The request of the next round; `messages` are the client's."""
        messages = (*self._answered(weave(messages, self.places, self._found)), *self._said)
        tools, choice = self.request.tools, self._choice()
        if self._enough:
            why = Text(text=_ENOUGH.format(why=self._enough))
            messages += (Message(role="system", parts=(why,)),)
            tools = tuple(tool for tool in tools if not self.owns(tool.name))
            names = tuple(name for name in choice.names if not self.owns(name))
            choice = msgspec.structs.replace(choice, names=names)
        return msgspec.structs.replace(self.request, messages=messages, tools=tools, tool_choice=choice)

    def open(
        self, shown: Iterable[Event] = (), kinds: frozenset[ServerKind] = frozenset()
    ) -> tuple[Event, ...]:
        """What must come before anything that is `shown` while the model has said nothing yet.

        Where the client sees server calls of these `kinds`, they keep the text before and behind them apart.
        """
        opening = () if self._opened or self._started else (Started(),)
        self._opened = True
        self._parted = any(isinstance(event, ServerCall) and event.kind in kinds for event in shown)
        return opening

    def give(self, event: Event) -> tuple[Event, ...]:
        """What the client gets of an event: one opening, one end, and text of different rounds told apart."""
        self.hear(event)
        match event:
            case TextDelta() | Cited():
                return (*self._apart(event.text), event)
            case ToolCall():
                self._client_call = self._client_call or event.id
            case Started() if self._opened:
                return ()
            case Started():
                self._started = True
            case Usage():
                self._used = event
                return (self._told(event),)
            case Finished():
                return (*self._aside(), self._ending(event))
        return (event,)

    def hear(self, event: Event) -> None:
        """Something the model said, whether the client gets it or not."""
        self._collector.feed(event)

    def take(self, call: ToolCall) -> bool:
        """A call of ours; False if it is dropped, because it comes when it is enough."""
        if self._enough:
            self.notes.append(Note("dropped", call.name, f"called again although {self._enough}"))
            return False
        self._collector.feed(call)
        own = self._real.get(call.name, call.name)
        self._calls.append(msgspec.structs.replace(call, name=own))
        return True

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Ours that wait for their results, by the tools' own names."""
        return () if self._settled else tuple(self._calls)

    @property
    def approved(self) -> tuple[ToolCall, ...]:
        """Calls of ours that the user has just agreed to: they are run before the model is asked."""
        last = max((n for n, one in enumerate(self.request.messages) if one.role == "model"), default=-1)
        news = (part for message in self.request.messages[last + 1 :] for part in message.parts)
        agreed = {part.call_id for part in news if isinstance(part, ToolResult) and part.approval == "yes"}
        asked = self.request.messages[last].parts if agreed and last >= 0 else ()
        return tuple(
            ToolCall(id=part.id, name=self._real[part.name], args=part.args)
            for part in asked
            if isinstance(part, ToolCall) and part.id in agreed and self.owns(part.name)
        )

    def answer(self, results: Iterable[ToolResult]) -> None:
        """What came of the calls that the user agreed to."""
        self._answers |= {result.call_id: result for result in results}

    @property
    def mixed(self) -> bool:
        """The client has something to answer in this round: no other follows."""
        return bool(self._client_call)

    def settle(
        self,
        results: Sequence[ToolResult | None],
        usage: Usage,
        *,
        reveal: Iterable[Tool] = (),
        enough: str = "",
        spent: Usage = _FREE,
    ) -> None:
        """Our calls are answered, in their order; one that is not waits for the client, who was asked something.

        `usage` is what has been used until now, `spent` what of it our tools used themselves in this round.
        """
        self._spent = spent
        answered = [(call, result) for call, result in zip(self._calls, results, strict=True) if result]
        waiting = (call.id for call, result in zip(self._calls, results, strict=True) if not result)
        self._client_call = self._client_call or next(waiting, "")
        self._results = tuple(result for _, result in answered)
        self._settled = True
        self._enough = self._enough or self._allowance.spend(self.number + 1, answered) or enough
        self._reveal(reveal)
        self._opened = True
        if not self.mixed:
            self._said += (self._turn(), Message(role="user", parts=self._results))
            self._shown += self._text
            self.usage = usage
            self.begin()

    def suspend(
        self, results: Sequence[ToolResult | None], later: Container[str], words: str, spent: Usage = _FREE
    ) -> tuple[Event, ...]:
        """The answer ends here: others answer the calls with the ids `later`; results and `spent` as for `settle`.

        A client that has nothing to answer in this step is told in `words` what is waited for.
        """
        self._spent = spent
        pairs = list(zip(self._calls, results, strict=True))
        asked = (call.id for call, result in pairs if result is None and call.id not in later)
        self._client_call = self._client_call or next(asked, "")
        self._results = tuple(result for _, result in pairs if result is not None)
        self._settled = self._suspended = True
        if self.mixed:
            return ()
        apart = (TextDelta("\n\n"),) if "".join((*self._shown, *self._text)).strip() else ()
        self._text.append(words)
        return (*apart, TextDelta(words))

    def memory(self) -> list[tuple[str, str]]:
        """What must be remembered of an answer, under the key its client will bring back.

        Of a suspended one `record` is kept by whoever waits for the results.
        """
        if self._suspended or (not self._said and not self._calls):
            return []
        key, hidden = self.record()
        return [(key, hidden.encode())] if key else []

    def record(self) -> tuple[str, Hidden]:
        """What really happened, and the key of what the client saw of it; none if it saw nothing."""
        text = "".join((*self._shown, *self._text))
        hidden = Hidden(
            last=self._turn(),
            rounds=self._said,
            results=self._results,
            revealed=self._deferred.names(self.request.tools),
        )
        if not self._client_call and not text.strip():
            return "", hidden
        return hidden_key(last_user(self.request.messages), text, self._client_call), hidden

    def _apart(self, text: str) -> tuple[Event, ...]:
        apart = self._shown and not self._text and not self._parted and not self._shown[-1].endswith("\n")
        self._text.append(text)
        return (TextDelta("\n\n"),) if apart else ()

    def _aside(self) -> tuple[Event, ...]:
        """What our tools used in the last round: the client has been told of the model alone."""
        if self._spent == _FREE:
            return ()
        spent = msgspec.structs.replace(self._spent, input_tokens=0, cached_tokens=0)
        return (self._told(self._used.plus(spent)),)

    def _ending(self, event: Finished) -> Finished:
        ours = event.reason == "tool_calls" and not self._client_call
        return msgspec.structs.replace(event, reason="end") if ours else event

    def _told(self, usage: Usage) -> Usage:
        """All that was written, but as read only what the last round read.

        Every round reads everything again, and clients take the number for the size of the conversation.
        """
        total = self.usage.plus(usage)
        read = {"input_tokens": usage.input_tokens, "cached_tokens": usage.cached_tokens}
        return msgspec.structs.replace(total, **read)

    def _choice(self) -> ToolChoice:
        """A client that forces a call forces one of its own, and once: the rounds behind it are free.

        Unless the call that it forces has to be found first. Where it names the tools there is nothing to find.
        """
        choice = self.request.tool_choice
        names = [tool.name for tool in self.request.tools]
        if choice.mode == "any":
            if not self._narrows and not self._said:
                return choice
            finders = () if choice.names else tuple(name for name in names if name in self._finders)
            theirs = tuple(name for name in names if not self.owns(name)) + finders
            if (self._said and not finders) or not (theirs or choice.names):
                return ToolChoice(parallel=choice.parallel)
            return msgspec.structs.replace(choice, names=choice.names or theirs)
        if choice.names and self._narrows:
            ours = (name for name in names if self.owns(name) and name not in self._finders)
            return msgspec.structs.replace(choice, names=(*choice.names, *ours))
        return choice

    def _turn(self) -> Message:
        """What the model said in this round; thoughts go back only where they are signed."""
        parts = self._collector.close().parts
        kept = (part for part in parts if not isinstance(part, Thought) or part.signature is not None)
        return Message(role="model", parts=tuple(kept))

    def _answered(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        if not self._answers:
            return messages
        return tuple(
            Message(role=message.role, parts=tuple(map(self._answer_of, message.parts)))
            if any(isinstance(part, ToolResult) and part.call_id in self._answers for part in message.parts)
            else message
            for message in messages
        )

    def _answer_of(self, part: Part) -> Part:
        return self._answers.get(part.call_id, part) if isinstance(part, ToolResult) else part

    def _reveal(self, tools: Iterable[Tool]) -> None:
        before = {tool.name for tool in self.request.tools}
        new = {tool.name: tool for tool in tools if tool.name not in before}
        if new:
            declared = (*self.request.tools, *new.values())
            self.request = msgspec.structs.replace(self.request, tools=declared)
