"""Check for variables that bypass the gateway: launchers remove them, a client started by hand uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import msgspec

from dragoman.cli.client_env import CLAUDE_CONFLICTS
from dragoman.cli.doctor.finding import DoctorContext, Finding, Status
from dragoman.cli.launch.table import COPILOT_CONFLICTS, GOOGLE_CONFLICTS


class _ConflictGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Conflicting variables of one family of clients."""

    clients: tuple[str, ...]
    names: frozenset[str]
    why: str


_CONFLICT_GROUPS = (
    _ConflictGroup(
        clients=("claude",),
        names=CLAUDE_CONFLICTS,
        why="Claude Code prefers it to the gateway's address or key; dragoman claude takes it away for its run",
    ),
    _ConflictGroup(
        clients=("gemini", "qwen"),
        names=GOOGLE_CONFLICTS,
        why="programs on Google's SDK prefer it to the gateway's address or key; the launchers take it away",
    ),
    _ConflictGroup(
        clients=("copilot",),
        names=COPILOT_CONFLICTS,
        why="Copilot prefers it; dragoman copilot takes it away",
    ),
)
#: Variables with a base URL, and the path that the gateway's URL needs there.
_BASE_URL_VARIABLES = {
    "ANTHROPIC_BASE_URL": "",
    "OPENAI_BASE_URL": "/v1",
    "OPENAI_API_BASE": "/v1",
    "GOOGLE_GEMINI_BASE_URL": "",
    "COPILOT_PROVIDER_BASE_URL": "/v1",
}


def check_environment(at: DoctorContext) -> Iterator[Finding]:
    findings = [finding for look in _ENVIRONMENT_CHECKS for finding in look(at)]
    yield from findings or [Finding(status="ok", what="nothing that leads elsewhere")]


def _check_conflicts(at: DoctorContext) -> Iterator[Finding]:
    # these configure the gateway itself
    ours = set(at.settings.loaded.sources.values()) if at.settings else set()
    for group in _CONFLICT_GROUPS:
        names = sorted(name for name in group.names if at.env.get(name) and f"env {name}" not in ours)
        if names and (not at.clients or set(group.clients) & set(at.clients)):
            yield Finding(
                status="note",
                what=f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} set",
                why=group.why,
                fix=f"by hand: unset {' '.join(names)}",
            )


def _check_base_urls(at: DoctorContext) -> Iterator[Finding]:
    ours = at.settings.config.server.port if at.settings else 0
    for name, path in _BASE_URL_VARIABLES.items():
        given = at.env.get(name, "").strip().rstrip("/")
        if not given:
            continue
        parts = urlsplit(given)
        local = parts.hostname in ("127.0.0.1", "localhost", "::1") and parts.port == ours
        status: Status = "note"
        what, fix = f"{name} is {parts.hostname}, not this gateway", f"by hand: unset {name}"
        if local and parts.path.rstrip("/") == path:
            status, what, fix = "ok", f"{name} leads to this gateway", ""
        elif local:
            status, what = "warn", f"{name} leads to this gateway, but to the path {parts.path or '/'}"
            fix = f"export {name}={parts.scheme}://{parts.netloc}{path}"
        yield Finding(status=status, what=what, fix=fix)


def _check_own_address(at: DoctorContext) -> Iterator[Finding]:
    """Report a gateway whose upstream is itself: it would send requests to itself forever."""
    if at.settings is None:
        return
    config = at.settings.config
    parts = urlsplit(config.upstream.base_url)
    if parts.hostname in ("127.0.0.1", "localhost", "::1") and parts.port == config.server.port:
        source = at.settings.loaded.sources.get("upstream.base_url", "upstream.base_url")
        yield Finding(
            status="fail",
            what=f"{source} leads to the gateway's own address",
            why="it would ask itself for ever",
            fix="unset it: clients are pointed here by GOOGLE_GEMINI_BASE_URL, the gateway by GEMINI_BASE_URL",
        )


_ENVIRONMENT_CHECKS: tuple[Callable[[DoctorContext], Iterator[Finding]], ...] = (
    _check_own_address,
    _check_base_urls,
    _check_conflicts,
)
