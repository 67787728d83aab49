"""Everything a request needs and a process has once: settings, store, the way to Google, the gate."""

from __future__ import annotations

import re

from dragoman.config import Config, is_loopback, model_for
from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.errors import DragomanError, InvalidRequest
from dragoman.exchange import Settings
from dragoman.ir import Tool
from dragoman.server.auth import Caller, Gate
from dragoman.store import Store
from dragoman.upstream.auth import ApiKey, Credentials, DefaultCredentials
from dragoman.upstream.client import UpstreamClient
from dragoman.upstream.hosts import Host
from dragoman.upstream.retry import Budget

_KNOWN_REFUSALS = 4096
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")


class Gateway:
    def __init__(
        self, config: Config, store: Store, *, keys: tuple[str, ...], emulator_url: str = ""
    ) -> None:
        upstream = config.upstream
        self.config = config
        self.draining = False  # no new work, please
        self._needs_proto_schemas: set[tuple[str, int]] = set()
        self.store = store
        self.settings = Settings(
            strict_tool_validation=config.strict_tool_validation,
            enable_tool_calling=config.enable_tool_calling,
        )
        self.gate = Gate(
            keys,
            open_to_all=config.server.no_auth
            or (config.backend == "emulator" and is_loopback(config.server.host)),
            allowed_hosts=(*config.server.allowed_hosts, config.server.host),
        )
        self.host = Host(
            backend=config.backend,
            base_url=emulator_url if config.backend == "emulator" else upstream.base_url,
            version=upstream.api_version,
            project=upstream.project if config.backend == "vertex" else "",
            location=upstream.location,
        )
        self.client = UpstreamClient(
            connect_timeout_s=upstream.connect_timeout_s,
            idle_timeout_s=upstream.idle_timeout_s,
            total_timeout_s=upstream.total_timeout_s,
        )
        self._credentials: Credentials = ApiKey(upstream.api_key)
        if config.backend == "vertex" and not upstream.api_key:
            self._credentials = DefaultCredentials(upstream.project)

    def refuse_while_draining(self) -> None:
        if self.draining:
            raise DragomanError("the gateway is shutting down", kind="overloaded", retry_after_s=1)

    def target(self, model: str, tools: tuple[Tool, ...] = ()) -> Target:
        real = model_for(model, self.config.models)
        if not self.host.has_aliases:
            real = gemini.ALIASES.get(real, real)
        if not _MODEL_NAME.fullmatch(real):  # it becomes part of an address and of a header
            raise InvalidRequest(f"{model[:200]!r} is no name of a model", where="model")
        return Target(
            model=real,
            backend=self.config.backend,
            proto_schemas=bool(self._needs_proto_schemas)
            and (real, hash(tools)) in self._needs_proto_schemas,
        )

    def learn(self, target: Target, tools: tuple[Tool, ...]) -> None:
        """Tools a model took only in the older schema form are not sent to it in the newer one again."""
        if target.proto_schemas and len(self._needs_proto_schemas) < _KNOWN_REFUSALS:
            self._needs_proto_schemas.add((target.model, hash(tools)))

    def budget(self) -> Budget:
        return Budget(attempts=self.config.upstream.max_attempts, wait_s=self.config.upstream.max_wait_s)

    async def auth_headers(self, caller: Caller) -> dict[str, str]:
        if caller.google_key:
            return {"x-goog-api-key": caller.google_key}
        return await self._credentials.headers()

    async def close(self) -> None:
        await self.client.close()
        await self.store.close()
