"""The provider of tools from profiles: which requests get them, and their permissions and audit.

A profile of the settings names tools (of MCP servers, Python files, or the file tools) and the requests they are
offered to. `tools.handler` checks permissions, runs the calls and writes the audit log.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from dragoman.config import Config, Profile
from dragoman.errors import ConfigError
from dragoman.gateway.gateway_tools.protocol import GatewayTool, ToolOffer, ToolOutcome, ToolRequest
from dragoman.gateway.gateway_tools.resources import ToolResources
from dragoman.ir import ToolCall
from dragoman.notes import Note
from dragoman.tools.definition import Context, ToolDefinition
from dragoman.tools.fs.definitions import TOOL_SPECS
from dragoman.tools.handler import Handler
from dragoman.tools.permissions import Rule, RuleGuard, Rules
from dragoman.tools.registry import Registry
from dragoman.translation.tool_loop import LoopLimits

_log = logging.getLogger("dragoman")


def open_profiles(
    config: Config, resources: ToolResources, key_hashes: tuple[str, ...]
) -> ProfileToolsProvider:
    """Return the provider of the configured profiles; no server is started yet. Raises ConfigError."""
    for name, profile in config.profiles.items():
        for key in profile.keys:
            if not any(_has_key_hash(key_hash, key) for key_hash in key_hashes):
                _log.warning("profiles.%s.keys: no gateway key has the hash %s", name, key)
    profiles = [ProfileTools(name, profile, config, resources) for name, profile in config.profiles.items()]
    return ProfileToolsProvider(profiles, resources, open_to_all=config.server.no_auth)


class ProfileToolsProvider:
    """Offer the tools of all profiles that cover a request.

    The tools run with the gateway's rights, so the caller must have a gateway key, unless `server.no_auth` is
    set.
    """

    def __init__(
        self, profiles: Iterable[ProfileTools], resources: ToolResources, *, open_to_all: bool
    ) -> None:
        self._profiles = tuple(profiles)
        self._resources = resources
        self._open_to_all = open_to_all

    async def offer(self, tool_request: ToolRequest) -> ToolOffer | None:
        if not tool_request.caller.key_hash and not self._open_to_all:
            return None
        matching = [profile for profile in self._profiles if profile.matches(tool_request)]
        if not matching:
            return None
        offers = await asyncio.gather(*(profile.offer() for profile in matching))
        return functools.reduce(ToolOffer.combine, offers)

    async def close(self) -> None:
        await self._resources.close()


class ProfileTools:
    """The tools of one profile."""

    def __init__(self, name: str, profile: Profile, config: Config, resources: ToolResources) -> None:
        self._name = name
        self._profile = profile
        self._resources = resources
        self._selectors = profile.selectors
        denied = Rules.parse(deny=config.tools.deny, where="tools")  # no profile can allow these
        self._rules = Rules(rules=(*denied.rules, *_read_rules(name, profile).rules))
        self._handler = Handler(
            Registry(),
            timeout_s=config.tools.timeout_s,
            max_output_bytes=config.tools.max_output_bytes,
            journal=resources.audit_log,
            strict=config.strict_tool_validation,
        )
        self._definitions: tuple[ToolDefinition, ...] = ()
        self._tools: tuple[GatewayTool, ...] = ()

    def matches(self, tool_request: ToolRequest) -> bool:
        """Return whether the request meets all conditions of the profile."""
        profile, request, key_hash = self._profile, tool_request.request, tool_request.caller.key_hash
        return (
            (not profile.keys or any(_has_key_hash(key_hash, key) for key in profile.keys))
            and (bool(request.tools) or not profile.only_beside_tools)
            and _matches_pattern(request.session, profile.sessions)
            and _matches_pattern(request.model, profile.models)
        )

    async def offer(self) -> ToolOffer:
        """Return the tools that are available now, with a note for each resource that is unavailable."""
        profile = self._profile
        # Concurrently: each may wait for a server that is starting, and the client waits for all of them.
        searches = (self._resources.find(selector, profile.root) for selector in self._selectors)
        found = await asyncio.gather(*searches)
        definitions: dict[str, ToolDefinition] = {}
        for selector, (tools, _) in zip(self._selectors, found, strict=True):
            for definition in tools.values():
                if selector.kind != "fs" or definition.risk == "read" or self._may_write(definition.name):
                    definitions.setdefault(definition.name, definition)
        self._update(tuple(definitions.values()))
        problems = dict.fromkeys(problem for _, problem in found if problem)
        return ToolOffer(
            tools=self._tools,
            limits=LoopLimits(max_rounds=profile.max_rounds, max_output_bytes=profile.max_output_bytes),
            max_seconds=profile.max_seconds,
            notes=tuple(Note("withheld", f"profiles.{self._name}", problem) for problem in problems),
        )

    def _update(self, definitions: tuple[ToolDefinition, ...]) -> None:
        """Update handler and permissions if the tools have changed.

        Listed tools may run without a question, because no user is present. Deny rules take precedence, and
        file tools need a rule to write.
        """
        if definitions == self._definitions:
            return
        self._definitions = definitions
        listed = tuple(
            Rule(effect="allow", tool=definition.name)
            for definition in definitions
            if definition.name not in TOOL_SPECS
        )
        rules = Rules(rules=(*self._rules.rules, *listed))
        self._handler.registry = Registry(definitions)
        self._handler.guard = RuleGuard(rules, root=Path(self._profile.root) if self._profile.root else None)
        self._tools = tuple(ProfileTool(self._name, self._handler, definition) for definition in definitions)

    def _may_write(self, tool: str) -> bool:
        return any(rule.effect == "allow" and fnmatchcase(tool, rule.tool) for rule in self._rules.rules)


class ProfileTool:
    """A gateway tool that runs its calls through the profile's handler."""

    def __init__(self, profile: str, handler: Handler, definition: ToolDefinition) -> None:
        self._profile = profile
        self._handler = handler
        self.tool = definition.to_ir()

    async def run(self, call: ToolCall, tool_request: ToolRequest) -> ToolOutcome:
        context = Context(
            session=tool_request.request.session,
            caller=tool_request.caller.scope,
            request=tool_request.request_id,
            profile=self._profile,
        )
        return ToolOutcome(result=await self._handler.execute(call, context))


def _read_rules(name: str, profile: Profile) -> Rules:
    """Parse the rules of a profile; raise ConfigError if a listed file tool that writes is not allowed."""
    where = f"profiles.{name}"
    has_python = any(selector.kind == "python" for selector in profile.selectors)
    known = () if has_python else tuple(TOOL_SPECS)
    rules = Rules.parse(profile.allow, deny=profile.deny, known=known, where=where)
    for index, selector in enumerate(profile.selectors):
        place = f"{where}.tools[{index}]"
        if selector.kind == "fs" and not any(map(selector.matches, TOOL_SPECS)):
            raise ConfigError(
                f"there is no file tool {selector.tool!r}: {', '.join(TOOL_SPECS)}", where=place
            )
        allowed = any(
            rule.effect == "allow" and fnmatchcase(selector.tool, rule.tool) for rule in rules.rules
        )
        if selector.tool in _WRITING_TOOLS and selector.kind == "fs" and not allowed:
            message = f"no rule allows {selector.tool}\nadd one, such as allow = ['{selector.tool}(docs/**)']"
            raise ConfigError(message, where=place)
    return rules


_WRITING_TOOLS = frozenset({"write_file", "edit_file", "restore_backup"})


def _has_key_hash(key_hash: str, prefix: str) -> bool:
    return bool(key_hash) and key_hash.startswith(prefix.removeprefix("sha256:"))


def _matches_pattern(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)
