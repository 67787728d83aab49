"""Start each client through its launcher and check that its request arrives."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import msgspec

from dragoman.cli.doctor.finding import DoctorContext, Finding
from dragoman.cli.doctor.trial import TrialGateway, open_trial_gateway
from dragoman.cli.launch.table import CLIENTS
from dragoman.cli.progress import spinner
from dragoman.cli.screen import CommandError


class ClientProbe(msgspec.Struct, frozen=True, kw_only=True):
    """How to ask a client one question without a terminal; `{}` is the question."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}


PROBES = {
    "claude": ClientProbe(
        argv=("-p", "{}"), env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    ),
    "codex": ClientProbe(argv=("exec", "--skip-git-repo-check", "{}")),
    "gemini": ClientProbe(argv=("--skip-trust", "-p", "{}")),
    "opencode": ClientProbe(argv=("run", "{}"), env={"OPENCODE_DISABLE_AUTOUPDATE": "1"}),
    "qwen": ClientProbe(argv=("-p", "{}")),
    "pi": ClientProbe(argv=("-p", "{}"), env={"PI_OFFLINE": "1"}),
    "copilot": ClientProbe(argv=("--silent", "-p", "{}"), env={"COPILOT_OFFLINE": "true"}),
    "q": ClientProbe(argv=("chat", "--no-interactive", "{}")),
    "kiro": ClientProbe(argv=("chat", "--no-interactive", "{}")),
}


def check_arrivals(at: DoctorContext) -> Iterator[Finding]:
    if at.settings is None or not at.clients:
        return
    try:
        with open_trial_gateway(at.env) as trial:
            for name in at.clients:
                yield _try_client(at, trial, name)
    except CommandError as error:
        yield Finding(
            status="fail", what=error.message, why="no client can be tried without a gateway", fix=error.hint
        )


def _try_client(at: DoctorContext, trial: TrialGateway, name: str) -> Finding:
    """Run one client; a random word in the question identifies its request."""
    probe, title = PROBES[name], CLIENTS[name].title
    word = f"dragoman-{secrets.token_hex(4)}"
    argv = [part.format(f"say {word}") for part in probe.argv]
    with spinner(f"{title}: waiting for its request (at most {at.wait_s:.0f} s)"):
        seen = trial.run(name, argv, {**at.env, **probe.env}, word, at.wait_s)
    if not seen.arrived:
        return Finding(
            status="fail",
            what=f"{title}: no request arrived within {at.wait_s:.0f} s"
            if seen.timed_out
            else f"{title}: ended without a request",
            why=seen.output_tail or "it said nothing",
            fix=f"look at the findings about its settings; DRAGOMAN_OBSERVE_LOG=all dragoman {name} shows more",
        )
    if seen.status != 200 or not seen.answered:
        return Finding(
            status="warn",
            what=f"{title}: its request arrived ({seen.path}), its answer did not get through",
            why=seen.output_tail or f"status {seen.status}",
            fix=f"try it yourself: dragoman {name}",
        )
    return Finding(
        status="ok", what=f"{title}: request arrived at {seen.path}, answer shown, in {seen.seconds:.0f} s"
    )
