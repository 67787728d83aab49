"""Start each client through its launcher and check that its request arrives."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import msgspec

from dragoman.cli.doctor.finding import Finding, Situation
from dragoman.cli.doctor.trial import Trial, trial_gateway
from dragoman.cli.launch.table import CLIENTS
from dragoman.cli.progress import working
from dragoman.cli.screen import Failure


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """How to ask a client one question without a terminal; `{}` is the question."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}


PROBES = {
    "claude": Probe(
        argv=("-p", "{}"), env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    ),
    "codex": Probe(argv=("exec", "--skip-git-repo-check", "{}")),
    "gemini": Probe(argv=("--skip-trust", "-p", "{}")),
    "opencode": Probe(argv=("run", "{}"), env={"OPENCODE_DISABLE_AUTOUPDATE": "1"}),
    "qwen": Probe(argv=("-p", "{}")),
    "pi": Probe(argv=("-p", "{}"), env={"PI_OFFLINE": "1"}),
    "copilot": Probe(argv=("--silent", "-p", "{}"), env={"COPILOT_OFFLINE": "true"}),
    "q": Probe(argv=("chat", "--no-interactive", "{}")),
    "kiro": Probe(argv=("chat", "--no-interactive", "{}")),
}


def check_arrivals(at: Situation) -> Iterator[Finding]:
    if at.settings is None or not at.clients:
        return
    try:
        with trial_gateway(at.env) as trial:
            for name in at.clients:
                yield _prove(at, trial, name)
    except Failure as error:
        yield Finding(
            status="fail", what=error.message, why="no client can be tried without a gateway", fix=error.hint
        )


def _prove(at: Situation, trial: Trial, name: str) -> Finding:
    """Run one client; a random word in the question identifies its request."""
    probe, title = PROBES[name], CLIENTS[name].title
    word = f"dragoman-{secrets.token_hex(4)}"
    argv = [part.format(f"say {word}") for part in probe.argv]
    with working(f"{title}: waiting for its request (at most {at.wait_s:.0f} s)"):
        seen = trial.run(name, argv, {**at.env, **probe.env}, word, at.wait_s)
    if not seen.arrived:
        return Finding(
            status="fail",
            what=f"{title}: no request arrived within {at.wait_s:.0f} s"
            if seen.timed_out
            else f"{title}: ended without a request",
            why=seen.last_words or "it said nothing",
            fix=f"look at the findings about its settings; DRAGOMAN_OBSERVE_LOG=all dragoman {name} shows more",
        )
    if seen.status != 200 or not seen.answered:
        return Finding(
            status="warn",
            what=f"{title}: its request arrived ({seen.path}), its answer did not get through",
            why=seen.last_words or f"status {seen.status}",
            fix=f"try it yourself: dragoman {name}",
        )
    return Finding(
        status="ok", what=f"{title}: request arrived at {seen.path}, answer shown, in {seen.seconds:.0f} s"
    )
