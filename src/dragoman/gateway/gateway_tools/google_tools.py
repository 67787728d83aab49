"""Google's server tools as functions, for models that do not support server tools beside functions.

The model calls `web_search(query)` like any function. The gateway sends a request of its own with the search tool alone
(`generate_internal`: not streamed, retried like a client's request), returns the result to the model, and shows the
client a server tool call in the same response (known problem K2).
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

    async def offer(self, tool_request: ToolRequest) -> ToolOffer | None:
        request = tool_request.request
        tools = [tool for tool in gemini.one_of_a_kind(request.server_tools) if tool.kind in _FACADES]
        if not tools or not request.tools or gemini.can_mix(self._gateway.target(request.model)):
            return None
        forced = [_tool_name(tool) for tool in tools if tool.forced]
        return ToolOffer(
            tools=tuple(GoogleToolFunction(self._gateway, tool) for tool in tools),
            replaced_server_tools=frozenset(tool.kind for tool in tools),
            tool_choice=ToolChoice(mode="any", names=tuple(forced)) if forced else None,
        )

    async def close(self) -> None:
        """Do nothing: it holds nothing."""


class GoogleToolFunction:
    """One such function, for one response; it counts its uses against `max_uses`."""

    def __init__(self, gateway: Gateway, server_tool: ServerTool) -> None:
        self._gateway = gateway
        self._server_tool = server_tool
        self._facade = facade = _FACADES[server_tool.kind]
        self._uses = 0
        schema = {
            "type": "object",
            "properties": {facade.argument: {"type": "string", "description": facade.argument_description}},
            "required": [facade.argument],
        }
        self.tool = Tool(
            name=_tool_name(server_tool),
            description=facade.description,
            schema=msgspec.json.encode(schema),
            where=server_tool.where,
        )

    async def run(self, call: ToolCall, tool_request: ToolRequest) -> ToolOutcome:
        self._uses += 1
        value = call.arguments.get(self._facade.argument)
        if not isinstance(value, str) or not value:
            why = f"The argument {self._facade.argument!r} is missing."
            return self._failed(call, "", "invalid_tool_input", why)
        limit = self._server_tool.max_uses
        if limit is not None and self._uses > limit:
            why = f"It may be used {limit} time(s) in an answer, and it was. Answer with what you have."
            return self._failed(call, value, "max_uses_exceeded", why)
        if self._server_tool.kind == "web_fetch" and not gemini.admits(self._server_tool, value):
            return self._failed(call, value, "url_not_allowed", "Pages of this site must not be read.")
        try:
            response = await generate_internal(
                self._gateway, tool_request.caller, self._internal_request(value, tool_request.request)
            )
        except DragomanError as error:
            return self._failed(
                call, value, _ERROR_CODES.get(error.kind, "unavailable"), f"It failed: {error.message}"
            )
        if not any(isinstance(part, Text | ServerResult) for part in response.parts):
            finished = response.finished
            why = f"It failed: Google answered nothing ({finished.detail or finished.raw})."
            return self._failed(call, value, "unavailable", why, response.usage)
        return self._succeeded(call, value, response)

    def _internal_request(self, value: str, request: Request) -> Request:
        """Return the request that uses only the server tool."""
        server_tool = msgspec.structs.replace(self._server_tool, max_uses=None, forced=True)
        prompt = Text(text=self._facade.prompt.format(value))
        return Request(
            model=request.model,
            messages=(Message(role="user", parts=(prompt,)),),
            server_tools=(server_tool,),
            session=request.session,
        )

    def _succeeded(self, call: ToolCall, value: str, response: Response) -> ToolOutcome:
        """Return the result for the model and the events for the client."""
        results = [part for part in response.parts if isinstance(part, ServerResult)]
        sources = tuple(dict.fromkeys(source for result in results for source in result.sources))
        text = "".join(part.text for part in response.parts if isinstance(part, Text))
        lines = [text, *(["", "Sources:", *map(_source_line, sources)] if sources else [])]
        server_result = ServerResult(
            call_id=call.id,
            kind=self._server_tool.kind,
            sources=sources,
            output="".join(result.output for result in results),
            error=next((result.error for result in results if result.error), ""),
        )
        content = (Text(text="\n".join(lines)),)
        result = ToolResult(call_id=call.id, name=call.name, content=content)
        return ToolOutcome(
            result=result, client_events=self._client_events(call, value, server_result), usage=response.usage
        )

    def _failed(
        self, call: ToolCall, value: str, error: str, why: str, usage: Usage | None = None
    ) -> ToolOutcome:
        server_result = ServerResult(call_id=call.id, kind=self._server_tool.kind, error=error)
        content = (Text(text=why),)
        result = ToolResult(call_id=call.id, name=call.name, content=content, is_error=True)
        return ToolOutcome(
            result=result,
            client_events=self._client_events(call, value, server_result),
            usage=usage or Usage(),
        )

    def _client_events(self, call: ToolCall, value: str, server_result: ServerResult) -> tuple[Event, ...]:
        args: dict[str, Any] = {self._facade.server_argument: [value] if self._facade.is_list else value}
        server_call = ServerCall(
            id=call.id, kind=self._server_tool.kind, name=self.tool.name, args=msgspec.json.encode(args)
        )
        return (server_call, server_result)


def _tool_name(tool: ServerTool) -> str:
    return tool.name or tool.kind


def _source_line(source: Source) -> str:
    return f"- {source.title or source.url}: {source.url}" + (f" ({source.error})" if source.error else "")
