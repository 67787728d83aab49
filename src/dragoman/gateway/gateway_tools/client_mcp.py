"""MCP servers that a client names in its request; only those that the operator has configured are used.

A server is found by its label or its exact URL. The gateway never connects to a URL because a request names
it (known problem Q9). Credentials in the request are sent only to that server, over a connection that ends with the
request.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from dragoman.config import Config, McpServer
from dragoman.errors import ConfigError, DragomanError, InvalidRequest
from dragoman.gateway.gateway_tools.protocol import ToolOffer, ToolOutcome, ToolRequest
from dragoman.gateway.gateway_tools.resources import START_WAIT_S, ToolResources
from dragoman.ids import new_id
from dragoman.ir import (
    RemoteMcpServer,
    Request,
    ServerCall,
    ServerResult,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    mcp_tool_name,
)
from dragoman.redact import redact
from dragoman.tools.definition import Context, ToolDefinition
from dragoman.tools.handler import Handler
from dragoman.tools.mcp import McpServers
from dragoman.tools.permissions import Rule, RuleGuard, Rules
from dragoman.tools.registry import Registry
from dragoman.tools.results import result_text

_log = logging.getLogger("dragoman")


class ClientMcpServers:
    """The provider of the tools of these servers.

    Only callers with a gateway key get them, because the servers run with the gateway's rights.
    """

    def __init__(self, config: Config, resources: ToolResources) -> None:
        self._config = config
        self._resources = resources
        self._allowed = {
            name: server for name, server in config.mcp.servers.items() if server.enabled and server.requests
        }
        self._rules = Rules.parse(deny=config.tools.deny)

    async def offer(self, tool_request: ToolRequest) -> ToolOffer | None:
        remotes = tool_request.request.remotes
        if not remotes or not (tool_request.caller.key_hash or self._config.server.no_auth):
            return None
        offers = await self._connect_all(remotes)
        if not offers:
            return None
        offer = functools.reduce(ToolOffer.combine, offers)
        return msgspec.structs.replace(offer, tool_choice=_tool_choice(tool_request.request, offer))

    async def close(self) -> None:
        await self._resources.close()

    async def _connect_all(self, remotes: Iterable[RemoteMcpServer]) -> list[ToolOffer]:
        """Connect to all servers concurrently; if one fails, end the others and raise."""
        tasks = [asyncio.ensure_future(self._connect(remote)) for remote in remotes]
        try:
            return [offer for offer in await asyncio.gather(*tasks) if offer is not None]
        except BaseException:
            for task in tasks:
                task.cancel()
            for offer in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(offer, ToolOffer):
                    await offer.aclose()
            raise

    async def _connect(self, remote: RemoteMcpServer) -> ToolOffer | None:
        """Return the offer of one server; None if it is not allowed, then the encoder rejects the request."""
        configured = self._find(remote)
        if configured is None:
            return None
        name, server = configured
        servers = self._resources.servers
        if remote.headers:
            servers = McpServers({name: _with_headers(server, remote)})
        try:
            definitions = await _read_definitions(servers, name, remote)
        except BaseException:  # including the cancellation when the client disconnects
            if remote.headers:
                await servers.stop()
            raise
        tools = tuple(self._tools(remote, name, definitions))
        return ToolOffer(
            tools=tools,
            mcp_labels=frozenset({remote.label}),
            client_events=() if remote.listed else _list_tools_events(remote, tools),
            close_callbacks=(servers.stop,) if remote.headers else (),
        )

    def _find(self, remote: RemoteMcpServer) -> tuple[str, McpServer] | None:
        """Find a configured server by its exact URL, or by its label if the request gives no URL."""
        if remote.url:
            return next((item for item in self._allowed.items() if item[1].url == remote.url), None)
        server = self._allowed.get(remote.label)
        return None if server is None else (remote.label, server)

    def _tools(
        self, remote: RemoteMcpServer, name: str, definitions: tuple[ToolDefinition, ...]
    ) -> list[ClientMcpTool]:
        """Return the tools that the request allows, with a handler that runs their calls."""
        prefix = mcp_tool_name(name, "")
        named = [(definition.name.removeprefix(prefix), definition) for definition in definitions]
        allowed = [(bare, tool) for bare, tool in named if remote.allows(bare, reads=tool.risk == "read")]
        rules = tuple(Rule(effect="allow", tool=tool.name) for _, tool in allowed)
        handler = Handler(
            Registry(tool for _, tool in allowed),
            timeout_s=self._config.tools.timeout_s,
            max_output_bytes=self._config.tools.max_output_bytes,
            guard=RuleGuard(Rules(rules=(*self._rules.rules, *rules))),
            journal=self._resources.audit_log,
            strict=self._config.strict_tool_validation,
        )
        return [ClientMcpTool(remote, bare, tool, handler) for bare, tool in allowed]


async def _read_definitions(
    servers: McpServers, name: str, remote: RemoteMcpServer
) -> tuple[ToolDefinition, ...]:
    try:
        definitions = await servers.tools_of(name, wait_s=START_WAIT_S)
    except ConfigError as error:
        raise InvalidRequest(error.message, where=remote.where) from None
    if not definitions:
        why = servers.problems.get(name, "it has no tools, or none yet")
        _log.warning("MCP server %s: %s", name, redact(why))  # the reason is for the operator only
        raise DragomanError(f"the MCP server {remote.label!r} cannot be used now", kind="overloaded")
    return definitions


class ClientMcpTool:
    """A tool of a requested server. The client sees its calls as MCP calls and can require approval."""

    def __init__(
        self, remote: RemoteMcpServer, name: str, definition: ToolDefinition, handler: Handler
    ) -> None:
        self._remote = remote
        self.name = name
        self.definition = definition
        self._handler = handler
        self.tool = Tool(
            name=mcp_tool_name(remote.label, name),
            description=definition.description,
            schema=definition.schema,
            where=remote.where,
            deferred=remote.is_deferred(name, reads=definition.risk == "read"),
        )

    async def run(self, call: ToolCall, tool_request: ToolRequest) -> ToolOutcome:
        reads = self.definition.risk == "read"
        mcp_call = ServerCall(
            id=call.id, kind="mcp", name=self.name, label=self._remote.label, args=call.args
        )
        if not tool_request.approved and self._remote.needs_approval(self.name, reads=reads):
            question = msgspec.structs.replace(mcp_call, kind="mcp_approval")
            return ToolOutcome(client_events=(question, ServerResult(call_id=call.id, kind="mcp_approval")))
        context = Context(
            session=tool_request.request.session,
            caller=tool_request.caller.scope,
            request=tool_request.request_id,
        )
        result = await self._handler.execute(
            msgspec.structs.replace(call, name=self.definition.name), context
        )
        text = _result_text(result)
        mcp_result = ServerResult(
            call_id=call.id,
            kind="mcp",
            output="" if result.is_error else text,
            error=(text or "failed") if result.is_error else "",
        )
        mcp_call = msgspec.structs.replace(mcp_call, approval=call.id if tool_request.approved else "")
        return ToolOutcome(
            result=msgspec.structs.replace(result, name=call.name), client_events=(mcp_call, mcp_result)
        )


def _result_text(result: ToolResult) -> str:
    """Return the text of a result; the structured content usually repeats it."""
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    return text or result_text(result)


def _with_headers(server: McpServer, remote: RemoteMcpServer) -> McpServer:
    """Return the server with the headers of the request, which replace configured ones."""
    if not server.url:
        raise InvalidRequest(
            "headers go to a server with an address; this one is a program", where=remote.where
        )
    requested = {name.lower() for name, _ in remote.headers}
    configured = {name: value for name, value in server.headers.items() if name.lower() not in requested}
    return msgspec.structs.replace(server, headers=configured | dict(remote.headers))


def _list_tools_events(
    remote: RemoteMcpServer, tools: tuple[ClientMcpTool, ...]
) -> tuple[ServerCall, ServerResult]:
    """Return the events that show the client the tools of a server."""
    listing = [
        {
            "name": tool.name,
            "description": tool.definition.description,
            "input_schema": msgspec.Raw(tool.definition.schema),
            "annotations": {"read_only": tool.definition.risk == "read"},
        }
        for tool in tools
    ]
    call = ServerCall(id=new_id(), kind="mcp_list", label=remote.label)
    output = msgspec.json.encode(listing).decode()
    return call, ServerResult(call_id=call.id, kind="mcp_list", output=output)


def _tool_choice(request: Request, offer: ToolOffer) -> ToolChoice | None:
    """Return the client's tool choice with these tools included, because the client has tool_request for them.

    Deferred tools are left out of a forced choice: they must be found by tool search first.
    """
    choice, offered = request.tool_choice, [gateway_tool.tool for gateway_tool in offer.tools]
    if choice.names:
        names = [name for name in choice.names if "*" not in name]
        names += [tool.name for tool in offered if any(fnmatchcase(tool.name, one) for one in choice.names)]
        return msgspec.structs.replace(choice, names=tuple(dict.fromkeys(names)))
    if choice.mode == "any":
        searches = [tool.name for tool in request.server_tools if tool.kind == "tool_search"]
        names = [tool.name for tool in (*request.tools, *offered) if not (searches and tool.deferred)]
        return msgspec.structs.replace(choice, names=(*names, *searches))
    return None
