"""The objects that all requests of a process share: settings, store, upstream client, keys, tools."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

import msgspec

from dragoman.config import Config, ObserveConfig, check_strict_extra, is_loopback, model_for, secrets_of
from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.auth.authenticator import Authenticator, caller_names
from dragoman.gateway.dashboard.auth import DashboardAuth
from dragoman.gateway.gateway_tools.providers import open_tool_providers
from dragoman.gateway.leases import ConversationLeases
from dragoman.gateway.limits.quotas import needs_price
from dragoman.gateway.relay.key_pool import KeyPool
from dragoman.gateway.relay.remote_files import RemoteFileInliner
from dragoman.gateway.telemetry.observer_hub import ObserverHub
from dragoman.ir import Tool
from dragoman.observe.usage import find_price
from dragoman.redact import Redactor
from dragoman.store import Store
from dragoman.translation.exchange import TranslationOptions
from dragoman.upstream.breaker import CircuitBreaker
from dragoman.upstream.client import UpstreamClient
from dragoman.upstream.credentials import DefaultCredentials
from dragoman.upstream.endpoints import Endpoint
from dragoman.upstream.keys import ApiKey
from dragoman.upstream.retry import RetryBudget

_MAX_SCHEMA_FORMS = 4096
_MAX_BREAKERS = 256
_MAX_TARGETS = 256
_MAX_CACHED_NAME_CHARACTERS = 128
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")


class Gateway:
    """Created once per process from the settings; `close()` releases everything, including the store.

    `keys` and `admin_keys` are gateway keys, `emulator_url` is the upstream of the emulator backend. With
    `watched=False` requests are neither logged nor written to the ledger.
    """

    def __init__(
        self,
        config: Config,
        store: Store,
        *,
        keys: tuple[str, ...],
        admin_keys: tuple[str, ...] = (),
        emulator_url: str = "",
        watched: bool = True,
    ) -> None:
        if config.strict_tool_validation:
            check_strict_extra("strict_tool_validation")
        upstream = config.upstream
        self.config = config
        self.draining = False  # shutting down: `/readyz` fails, running requests finish
        self._needs_proto_schemas: set[tuple[str, int]] = set()
        self._targets: dict[str, Target] = {}
        self.store = store
        self.leases = ConversationLeases(store.turns)
        self.redactor = Redactor((*secrets_of(config), *keys, *admin_keys))
        unobserved = ObserveConfig(log="off", ledger=False)
        observed = config if watched else msgspec.structs.replace(config, home="", observe=unobserved)
        self.observer_hub = ObserverHub(observed, self.redactor, store.ledger)
        self.translation_options = TranslationOptions(
            strict_tool_validation=config.strict_tool_validation,
            enable_tool_calling=config.enable_tool_calling,
        )
        is_local_emulator = config.backend == "emulator" and is_loopback(config.server.host)
        self.authenticator = Authenticator(
            keys,
            admin_keys=admin_keys,
            open_to_all=config.server.no_auth or is_local_emulator,
            allowed_hosts=(*config.server.allowed_hosts, config.server.host),
            accepts_google_keys=_accepts_google_keys(config),
        )
        self.dashboard_auth = DashboardAuth(self.authenticator, store, is_open=is_local_emulator)
        self.caller_names = caller_names(config, dict.fromkeys((*keys, *admin_keys), "gateway key"))
        self.started_s = time.time()
        self.tool_providers = open_tool_providers(config, store, self.authenticator.key_hashes, self.target)
        self.endpoint = Endpoint(
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
        self.remote_files = RemoteFileInliner(config.media)
        self.key_pool = KeyPool(upstream.all_keys, store)
        limits = config.limits
        self.has_quotas = bool(limits.key or limits.session or limits.repeated_calls)
        #: Of each request.
        self.retry_budget = RetryBudget(attempts=upstream.max_attempts, wait_s=upstream.max_wait_s)
        self._breakers: dict[str, CircuitBreaker] = {}
        self._default_credentials: DefaultCredentials | None = None
        if config.backend == "vertex" and not upstream.all_keys:
            self._default_credentials = DefaultCredentials(upstream.project)

    def refuse_while_draining(self) -> None:
        if self.draining:
            raise _shutdown_error()

    def target(self, model: str, tools: tuple[Tool, ...] = ()) -> Target:
        """Return the upstream model for a client's model name; raise InvalidRequest if it is no valid name.

        The target asks for the older schema form if the model has rejected these tools in the newer one.
        """
        target = self._targets.get(model) or self._find_target(model)
        rejected = self._needs_proto_schemas
        if rejected and (target.model, hash(tools)) in rejected:
            return msgspec.structs.replace(target, proto_schemas=True)
        return target

    def _find_target(self, model: str) -> Target:
        upstream_name = model_for(model, self.config.models)
        if not self.endpoint.resolves_aliases:
            upstream_name = gemini.ALIASES.get(upstream_name, upstream_name)
        if not _MODEL_NAME.fullmatch(upstream_name):  # it becomes part of a URL and of a header
            raise InvalidRequest(f"{model[:200]!r} is no name of a model", where="model")
        target = Target(model=upstream_name, backend=self.config.backend)
        if len(model) <= _MAX_CACHED_NAME_CHARACTERS:  # names come from clients
            if len(self._targets) >= _MAX_TARGETS:
                self._targets.clear()
            self._targets[model] = target
        return target

    def remember_schema_form(self, target: Target, tools: tuple[Tool, ...]) -> None:
        """Remember for these tools that the model needs the older schema form, if `target` has it."""
        if target.proto_schemas and len(self._needs_proto_schemas) < _MAX_SCHEMA_FORMS:
            self._needs_proto_schemas.add((target.model, hash(tools)))

    def fallbacks(self, model: str) -> tuple[str, ...]:
        """Return the fallback models in order; if a limit is in dollars, only those with a known price."""
        models, limits = self.config.models.fallbacks.get(model, ()), self.config.limits
        if not models or not needs_price(limits):
            return models
        return tuple(other for other in models if find_price(limits, other) is not None)

    def breaker(self, model: str) -> CircuitBreaker:
        """Return the circuit breaker of a model."""
        breaker = self._breakers.get(model)
        if breaker is None:
            if len(self._breakers) >= _MAX_BREAKERS:  # names come from clients
                self._breakers.clear()
            breaker = self._breakers[model] = CircuitBreaker()
        return breaker

    @property
    def breakers(self) -> Mapping[str, CircuitBreaker]:
        """The circuit breakers by model, for models that this process has called."""
        return self._breakers

    async def auth_headers(self, key: ApiKey) -> dict[str, str]:
        """Return the upstream credentials: `key`, or default credentials on Vertex AI without keys."""
        if self._default_credentials is not None:
            return await self._default_credentials.headers()
        return {"x-goog-api-key": key.secret} if key.secret else {}

    async def close(self) -> None:
        for provider in self.tool_providers:
            await provider.close()
        await self.observer_hub.close()
        await self.client.close()
        await self.store.close()


def _accepts_google_keys(config: Config) -> bool:
    """Whether a client's own Google key authenticates it.

    Google verifies the key, but does not know whether its owner may use this gateway. By default such keys
    are accepted only if the gateway listens on the loopback interface.
    """
    when = config.server.google_callers
    return when == "always" or (when == "loopback" and is_loopback(config.server.host))


def _shutdown_error() -> DragomanError:
    return DragomanError("the gateway is shutting down", kind="overloaded", retry_after_s=1)
