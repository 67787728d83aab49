"""Google's server tools as functions, for models that do not support server tools beside functions.

The model calls `web_search(query)` like any function. The gateway makes a separate model call with the search
tool alone, returns the result to the model, and shows the client a server tool call in the same response
(pain K2).
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.dialects import gemini
from dragoman.errors import DragomanError, ErrorKind
from dragoman.ir import (
    Event,
    Message,
    Request,
    Response,
    ServerCall,
    ServerKind,
    ServerResult,
    ServerTool,
    Source,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from dragoman.server.asking import ask_google
from dragoman.server.gateway import Gateway
from dragoman.server.own import Asked, Offer, Outcome


class Face(msgspec.Struct, frozen=True, kw_only=True):
    """One of Google's tools as a function: its only argument, and the prompt of the separate model call."""

    description: str
    argument: str
    meaning: str
    served_as: str  # the argument's name in the server tool call that the client sees
    listed: bool  # the client sees the argument as a list
    question: str


_FACES: dict[ServerKind, Face] = {
    "web_search": Face(
        description="Search the web with Google and read what was found. Returns the findings with their sources.",
        argument="query",
        meaning="What to look for, in words",
        served_as="queries",
        listed=True,
        question="Search the web for the following and report what you find, with names, numbers and dates."
        " Do not ask back.\n\n{}",
    ),
    "web_fetch": Face(
        description="Read a web page or a document on the web. Returns what it says.",
        argument="url",
        meaning="The whole address of the page",
        served_as="urls",
        listed=True,
        question="Read {} and report in full detail what it says. Do not ask back.",
    ),
    "code_execution": Face(
        description="Run a Python program in a sandbox without network and read what it prints.",
        argument="code",
        meaning="The program",
        served_as="code",
        listed=False,
        question="Run exactly this Python program and report what it printed.\n\n```python\n{}\n```",
    ),
}
_WHY: dict[ErrorKind, str] = {"rate_limit": "too_many_requests", "quota": "too_many_requests"}


class SideCalls:
    """Offer functions for the server tools of a request, if its model cannot combine them with functions."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def offer(self, asked: Asked) -> Offer | None:
        request = asked.request
        wanted = [tool for tool in gemini.one_of_a_kind(request.server_tools) if tool.kind in _FACES]
        if not wanted or not request.tools or gemini.can_mix(self._gateway.target(request.model)):
            return None
        forced = [_name(tool) for tool in wanted if tool.forced]
        return Offer(
            tools=tuple(SideTool(self._gateway, tool) for tool in wanted),
            serves=frozenset(tool.kind for tool in wanted),
            choice=ToolChoice(mode="any", names=tuple(forced)) if forced else None,
        )

    async def close(self) -> None:
        pass


class SideTool:
    """One such function, for one response; it counts its uses against `max_uses`."""

    def __init__(self, gateway: Gateway, served: ServerTool) -> None:
        self._gateway = gateway
        self._served = served
        self._face = _FACES[served.kind]
        self._uses = 0
        name, face = _name(served), self._face
        schema = {
            "type": "object",
            "properties": {face.argument: {"type": "string", "description": face.meaning}},
            "required": [face.argument],
        }
        self.tool = Tool(
            name=name, description=face.description, schema=msgspec.json.encode(schema), where=served.where
        )

    async def run(self, call: ToolCall, asked: Asked) -> Outcome:
        self._uses += 1
        subject = call.arguments.get(self._face.argument)
        if not isinstance(subject, str) or not subject:
            why = f"The argument {self._face.argument!r} is missing."
            return self._failed(call, "", "invalid_tool_input", why)
        most = self._served.max_uses
        if most is not None and self._uses > most:
            why = f"It may be used {most} time(s) in an answer, and it was. Answer with what you have."
            return self._failed(call, subject, "max_uses_exceeded", why)
        if self._served.kind == "web_fetch" and not gemini.admits(self._served, subject):
            return self._failed(call, subject, "url_not_allowed", "Pages of this site must not be read.")
        try:
            response = await ask_google(self._gateway, asked.caller, self._question(subject, asked.request))
        except DragomanError as error:
            return self._failed(
                call, subject, _WHY.get(error.kind, "unavailable"), f"It failed: {error.message}"
            )
        if not any(isinstance(part, Text | ServerResult) for part in response.parts):
            ended = response.finished
            why = f"It failed: Google answered nothing ({ended.detail or ended.raw})."
            return self._failed(call, subject, "unavailable", why, response.usage)
        return self._succeeded(call, subject, response)

    def _question(self, subject: str, request: Request) -> Request:
        alone = msgspec.structs.replace(self._served, max_uses=None, forced=True)
        words = Text(text=self._face.question.format(subject))
        return Request(
            model=request.model,
            messages=(Message(role="user", parts=(words,)),),
            server_tools=(alone,),
            session=request.session,
        )

    def _succeeded(self, call: ToolCall, subject: str, response: Response) -> Outcome:
        """Return the result for the model and the events for the client."""
        results = [part for part in response.parts if isinstance(part, ServerResult)]
        sources = tuple(dict.fromkeys(source for result in results for source in result.sources))
        text = "".join(part.text for part in response.parts if isinstance(part, Text))
        lines = [text, *(["", "Sources:", *map(_line, sources)] if sources else [])]
        told = ServerResult(
            call_id=call.id,
            kind=self._served.kind,
            sources=sources,
            output="".join(result.output for result in results),
            error=next((result.error for result in results if result.error), ""),
        )
        content = (Text(text="\n".join(lines)),)
        result = ToolResult(call_id=call.id, name=call.name, content=content)
        return Outcome(result=result, show=self._shown(call, subject, told), usage=response.usage)

    def _failed(
        self, call: ToolCall, subject: str, error: str, why: str, usage: Usage | None = None
    ) -> Outcome:
        told = ServerResult(call_id=call.id, kind=self._served.kind, error=error)
        content = (Text(text=why),)
        result = ToolResult(call_id=call.id, name=call.name, content=content, is_error=True)
        return Outcome(result=result, show=self._shown(call, subject, told), usage=usage or Usage())

    def _shown(self, call: ToolCall, subject: str, told: ServerResult) -> tuple[Event, ...]:
        args: dict[str, Any] = {self._face.served_as: [subject] if self._face.listed else subject}
        shown = ServerCall(
            id=call.id, kind=self._served.kind, name=self.tool.name, args=msgspec.json.encode(args)
        )
        return (shown, told)


def _name(tool: ServerTool) -> str:
    return tool.name or tool.kind


def _line(source: Source) -> str:
    return f"- {source.title or source.url}: {source.url}" + (f" ({source.error})" if source.error else "")
