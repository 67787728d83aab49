"""Google's server tools as functions, for models that do not support server tools beside functions.

The model calls `web_search(query)` like any function. The gateway makes a separate model call with the search tool
alone (not streamed, retried like a client's request), returns the result to the model, and shows the client a server
tool call in the same response (known problem K2).
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from dragoman.dialects import gemini
from dragoman.errors import DragomanError, ErrorKind
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from dragoman.gateway.gateway_tools.protocol import ToolOffer, ToolOutcome, ToolRequest
from dragoman.gateway.relay.attempt_plan import AttemptPlan
from dragoman.ids import new_id
from dragoman.ir import (
    Collector,
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
from dragoman.upstream.generate import generate_events


async def generate_internal(gateway: Gateway, caller: Caller, request: Request) -> Response:
    """Send a request to Google and return the response; raise the last error when no attempt is left."""
    plan = AttemptPlan(gateway, caller, request)
    while True:
        try:
            response = await _generate_once(gateway, plan, request)
        except DragomanError as error:
            await plan.record_outcome(error)
            wait_s = plan.plan_next(error)
            if wait_s is None:
                raise
            await asyncio.sleep(wait_s)
        else:
            await plan.record_outcome(None)
            return response


async def _generate_once(gateway: Gateway, plan: AttemptPlan, request: Request) -> Response:
    encoded = gemini.encode_request(request, plan.target, lambda: f"call_{new_id()}")
    url = gateway.endpoint.url(plan.target.model, "generateContent")
    headers = await plan.headers()
    answer = generate_events(gateway.client, url, headers, encoded, stream=False, within_s=plan.remaining_s)
    collector = Collector()
    async for event in answer:
        collector.feed(event)
    return collector.close()


class FunctionFacade(msgspec.Struct, frozen=True, kw_only=True):
    """One of Google's tools as a function: its only argument, and the prompt of the separate model call."""

    description: str
    argument: str
    argument_description: str
    server_argument: str  # the argument's name in the server tool call that the client sees
    is_list: bool  # the client sees the argument as a list
    prompt: str


_FACADES: dict[ServerKind, FunctionFacade] = {
    "web_search": FunctionFacade(
        description="Search the web with Google and read what was found. Returns the findings with their sources.",
        argument="query",
        argument_description="What to look for, in words",
        server_argument="queries",
        is_list=True,
        prompt="Search the web for the following and report what you find, with names, numbers and dates."
        " Do not ask back.\n\n{}",
    ),
    "web_fetch": FunctionFacade(
        description="Read a web page or a document on the web. Returns what it says.",
        argument="url",
        argument_description="The whole address of the page",
        server_argument="urls",
        is_list=True,
        prompt="Read {} and report in full detail what it says. Do not ask back.",
    ),
    "code_execution": FunctionFacade(
        description="Run a Python program in a sandbox without network and read what it prints.",
        argument="code",
        argument_description="The program",
        server_argument="code",
        is_list=False,
        prompt="Run exactly this Python program and report what it printed.\n\n```python\n{}\n```",
    ),
}
_ERROR_CODES: dict[ErrorKind, str] = {"rate_limit": "too_many_requests", "quota": "too_many_requests"}


class GoogleToolsAsFunctions:
    """Offer functions for the server tools of a request, if its model cannot combine them with functions."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def offer(self, asked: ToolRequest) -> ToolOffer | None:
        request = asked.request
        wanted = [tool for tool in gemini.one_of_a_kind(request.server_tools) if tool.kind in _FACADES]
        if not wanted or not request.tools or gemini.can_mix(self._gateway.target(request.model)):
            return None
        forced = [_tool_name(tool) for tool in wanted if tool.forced]
        return ToolOffer(
            tools=tuple(GoogleToolFunction(self._gateway, tool) for tool in wanted),
            replaced_server_tools=frozenset(tool.kind for tool in wanted),
            tool_choice=ToolChoice(mode="any", names=tuple(forced)) if forced else None,
        )

    async def close(self) -> None:
        pass


class GoogleToolFunction:
    """One such function, for one response; it counts its uses against `max_uses`."""

    def __init__(self, gateway: Gateway, served: ServerTool) -> None:
        self._gateway = gateway
        self._server_tool = served
        self._facade = _FACADES[served.kind]
        self._uses = 0
        name, face = _tool_name(served), self._facade
        schema = {
            "type": "object",
            "properties": {face.argument: {"type": "string", "description": face.argument_description}},
            "required": [face.argument],
        }
        self.tool = Tool(
            name=name, description=face.description, schema=msgspec.json.encode(schema), where=served.where
        )

    async def run(self, call: ToolCall, asked: ToolRequest) -> ToolOutcome:
        self._uses += 1
        subject = call.arguments.get(self._facade.argument)
        if not isinstance(subject, str) or not subject:
            why = f"The argument {self._facade.argument!r} is missing."
            return self._failed(call, "", "invalid_tool_input", why)
        most = self._server_tool.max_uses
        if most is not None and self._uses > most:
            why = f"It may be used {most} time(s) in an answer, and it was. Answer with what you have."
            return self._failed(call, subject, "max_uses_exceeded", why)
        if self._server_tool.kind == "web_fetch" and not gemini.admits(self._server_tool, subject):
            return self._failed(call, subject, "url_not_allowed", "Pages of this site must not be read.")
        try:
            response = await generate_internal(
                self._gateway, asked.caller, self._internal_request(subject, asked.request)
            )
        except DragomanError as error:
            return self._failed(
                call, subject, _ERROR_CODES.get(error.kind, "unavailable"), f"It failed: {error.message}"
            )
        if not any(isinstance(part, Text | ServerResult) for part in response.parts):
            ended = response.finished
            why = f"It failed: Google answered nothing ({ended.detail or ended.raw})."
            return self._failed(call, subject, "unavailable", why, response.usage)
        return self._succeeded(call, subject, response)

    def _internal_request(self, subject: str, request: Request) -> Request:
        alone = msgspec.structs.replace(self._server_tool, max_uses=None, forced=True)
        words = Text(text=self._facade.prompt.format(subject))
        return Request(
            model=request.model,
            messages=(Message(role="user", parts=(words,)),),
            server_tools=(alone,),
            session=request.session,
        )

    def _succeeded(self, call: ToolCall, subject: str, response: Response) -> ToolOutcome:
        """Return the result for the model and the events for the client."""
        results = [part for part in response.parts if isinstance(part, ServerResult)]
        sources = tuple(dict.fromkeys(source for result in results for source in result.sources))
        text = "".join(part.text for part in response.parts if isinstance(part, Text))
        lines = [text, *(["", "Sources:", *map(_source_line, sources)] if sources else [])]
        told = ServerResult(
            call_id=call.id,
            kind=self._server_tool.kind,
            sources=sources,
            output="".join(result.output for result in results),
            error=next((result.error for result in results if result.error), ""),
        )
        content = (Text(text="\n".join(lines)),)
        result = ToolResult(call_id=call.id, name=call.name, content=content)
        return ToolOutcome(
            result=result, client_events=self._client_events(call, subject, told), usage=response.usage
        )

    def _failed(
        self, call: ToolCall, subject: str, error: str, why: str, usage: Usage | None = None
    ) -> ToolOutcome:
        told = ServerResult(call_id=call.id, kind=self._server_tool.kind, error=error)
        content = (Text(text=why),)
        result = ToolResult(call_id=call.id, name=call.name, content=content, is_error=True)
        return ToolOutcome(
            result=result, client_events=self._client_events(call, subject, told), usage=usage or Usage()
        )

    def _client_events(self, call: ToolCall, subject: str, told: ServerResult) -> tuple[Event, ...]:
        args: dict[str, Any] = {self._facade.server_argument: [subject] if self._facade.is_list else subject}
        shown = ServerCall(
            id=call.id, kind=self._server_tool.kind, name=self.tool.name, args=msgspec.json.encode(args)
        )
        return (shown, told)


def _tool_name(tool: ServerTool) -> str:
    return tool.name or tool.kind


def _source_line(source: Source) -> str:
    return f"- {source.title or source.url}: {source.url}" + (f" ({source.error})" if source.error else "")
