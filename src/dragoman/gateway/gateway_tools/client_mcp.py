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
    """The provider of these servers' tools.

    Only for callers with a gateway key, because the servers run with the gateway's rights.
    """

    def __init__(self, config: Config, workshop: ToolResources) -> None:
        self._config = config
        self._resources = workshop
        self._allowed = {
            name: server for name, server in config.mcp.servers.items() if server.enabled and server.requests
        }
        self._rules = Rules.parse(deny=config.tools.deny)

    async def offer(self, asked: ToolRequest) -> ToolOffer | None:
        remotes = asked.request.remotes
        if not remotes or not (asked.caller.key_hash or self._config.server.no_auth):
            return None
        served = await self._connect_all(remotes)
        if not served:
            return None
        whole = functools.reduce(ToolOffer.combine, served)
        return msgspec.structs.replace(
            whole, tool_choice=_tool_choice(asked.request.tool_choice, asked, whole)
        )

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
        found = self._find(remote)
        if found is None:
            return None
        name, server = found
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
            return next(((n, s) for n, s in self._allowed.items() if s.url == remote.url), None)
        server = self._allowed.get(remote.label)
        return None if server is None else (remote.label, server)

    def _tools(
        self, remote: RemoteMcpServer, name: str, definitions: tuple[ToolDefinition, ...]
    ) -> list[ClientMcpTool]:
        """Return the tools that the request allows, with a handler that runs their calls."""
        prefix = mcp_tool_name(name, "")
        named = [(one.name.removeprefix(prefix), one) for one in definitions]
        wanted = [(bare, one) for bare, one in named if remote.allows(bare, reads=one.risk == "read")]
        allowed = tuple(Rule(effect="allow", tool=one.name) for _, one in wanted)
        handler = Handler(
            Registry(one for _, one in wanted),
            timeout_s=self._config.tools.timeout_s,
            max_output_bytes=self._config.tools.max_output_bytes,
            guard=RuleGuard(Rules(rules=(*self._rules.rules, *allowed))),
            journal=self._resources.audit_log,
            strict=self._config.strict_tool_validation,
        )
        return [ClientMcpTool(remote, bare, one, handler) for bare, one in wanted]


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

    async def run(self, call: ToolCall, asked: ToolRequest) -> ToolOutcome:
        reads = self.definition.risk == "read"
        shown = ServerCall(id=call.id, kind="mcp", name=self.name, label=self._remote.label, args=call.args)
        if not asked.approved and self._remote.needs_approval(self.name, reads=reads):
            request = msgspec.structs.replace(shown, kind="mcp_approval")
            return ToolOutcome(client_events=(request, ServerResult(call_id=call.id, kind="mcp_approval")))
        context = Context(session=asked.request.session, caller=asked.caller.scope, request=asked.request_id)
        own = msgspec.structs.replace(call, name=self.definition.name)
        result = await self._handler.execute(own, context)
        words = _result_words(result)
        told = ServerResult(
            call_id=call.id,
            kind="mcp",
            output="" if result.is_error else words,
            error=(words or "failed") if result.is_error else "",
        )
        shown = msgspec.structs.replace(shown, approval=call.id if asked.approved else "")
        return ToolOutcome(
            result=msgspec.structs.replace(result, name=call.name), client_events=(shown, told)
        )


def _result_words(result: ToolResult) -> str:
    """Return the text of a result; the structured content usually repeats it."""
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    return text or result_text(result)


def _with_headers(server: McpServer, remote: RemoteMcpServer) -> McpServer:
    if not server.url:
        raise InvalidRequest(
            "headers go to a server with an address; this one is a program", where=remote.where
        )
    given = {name.lower(): value for name, value in remote.headers}
    kept = {name: value for name, value in server.headers.items() if name.lower() not in given}
    return msgspec.structs.replace(server, headers=kept | dict(remote.headers))


def _list_tools_events(
    remote: RemoteMcpServer, tools: tuple[ClientMcpTool, ...]
) -> tuple[ServerCall, ServerResult]:
    listed = [
        {
            "name": tool.name,
            "description": tool.definition.description,
            "input_schema": msgspec.Raw(tool.definition.schema),
            "annotations": {"read_only": tool.definition.risk == "read"},
        }
        for tool in tools
    ]
    call = ServerCall(id=new_id(), kind="mcp_list", label=remote.label)
    output = msgspec.json.encode(listed).decode()
    return call, ServerResult(call_id=call.id, kind="mcp_list", output=output)


def _tool_choice(choice: ToolChoice, asked: ToolRequest, offer: ToolOffer) -> ToolChoice | None:
    """Return the client's tool choice with these tools included, because the client has asked for them.

    Deferred tools are left out of a forced choice: they must be found by tool search first.
    """
    ours = [own.tool.name for own in offer.tools]
    if choice.names:
        names = [name for name in choice.names if "*" not in name]
        names += [name for name in ours if any(fnmatchcase(name, pattern) for pattern in choice.names)]
        return msgspec.structs.replace(choice, names=tuple(dict.fromkeys(names)))
    if choice.mode == "any":
        searches = [tool.name for tool in asked.request.server_tools if tool.kind == "tool_search"]
        every = (*asked.request.tools, *(own.tool for own in offer.tools))
        names = [tool.name for tool in every if not (searches and tool.deferred)]
        return msgspec.structs.replace(choice, names=(*names, *searches))
    return None
