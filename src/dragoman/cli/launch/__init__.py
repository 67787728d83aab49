"""`dragoman claude|codex|…`: find the client's program, open a gateway and run the real client on it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from dragoman.cli.banner import API_KEY_URL, describe_upstream
from dragoman.cli.gateway import open_gateway
from dragoman.cli.help_pages import LAUNCHER_PAGE, help_sections
from dragoman.cli.launch.apply_overrides import override_settings, restore_leftovers
from dragoman.cli.launch.client import ClientModel, Env, GatewayEndpoint, LaunchPlan
from dragoman.cli.launch.foreground import run_foreground
from dragoman.cli.launchers import CLIENTS, LaunchableClient
from dragoman.cli.settings import find_client_key, print_setting_notes, read_settings
from dragoman.cli.terminal import CommandError, print_note, print_result, print_status, spinner

_FIRST_RUN_S = 20.0


def run(name: str, argv: list[str]) -> int:
    """Run the client with the given arguments unchanged; return its exit code."""
    client = CLIENTS[name]
    settings = read_settings()
    restore_leftovers(settings.home)
    program = require_program(client)
    print_setting_notes(settings)
    for conflict in client.conflicts(os.environ):
        print_note(conflict)
    key = find_client_key(settings)
    token = key.secret if key else "no-auth"
    with (
        open_gateway(settings, token) as base_url,
        tempfile.TemporaryDirectory(prefix=f"dragoman-{name}-", ignore_cleanup_errors=True) as folder,
    ):
        models = _list_models(base_url, token, settings.config.models.default)
        endpoint = GatewayEndpoint(base_url=base_url, token=token, models=models, folder=Path(folder))
        plan = client.prepare(endpoint, os.environ, argv)
        _write_files(endpoint.folder, plan)
        print_status(f"{client.title} → {base_url} → {describe_upstream(settings.config)}")
        if settings.config.backend == "emulator":
            print_status(f"to use Gemini, set GEMINI_API_KEY ({API_KEY_URL})")
        _create_settings(program, plan)
        with override_settings(settings.home, plan.edits):
            return run_foreground([program, *plan.args, *argv], plan.env)


def explain(name: str) -> None:
    """Print what the launcher does; `--help` is passed to the client like every argument."""
    client = CLIENTS[name]
    lines = [
        f"usage: dragoman {name} [ARGUMENTS OF {client.program} …]",
        "",
        f"Run {client.title} on Gemini. All arguments are passed to it unchanged, including --help.",
        *(["", client.about] if client.about else []),
        "",
        f"Install: {client.source}",
        f"Use another program than the one on PATH: {client.variable}=/path/to/{client.program}",
        "",
        "examples:",
        f"  dragoman {name}",
        f"  dragoman {name} --help",
        f"  {client.variable}=/opt/{client.program} dragoman {name}",
        "",
        help_sections(LAUNCHER_PAGE),
        "  any other  the client's exit code",
    ]
    print_result("\n".join(lines))


def _create_settings(program: str, plan: LaunchPlan) -> None:
    """Let a client that has never run create its own database."""
    for edit in plan.edits:
        if edit.created_by and not Path(edit.file.path).exists():
            with (
                spinner(f"{Path(program).name} creates its own files"),
                contextlib.suppress(OSError, subprocess.TimeoutExpired),
            ):
                subprocess.run(  # noqa: S603
                    [program, edit.created_by],
                    env=plan.env,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_FIRST_RUN_S,
                    check=False,
                )


def _write_files(folder: Path, plan: LaunchPlan) -> None:
    for name, text in plan.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for name, target in plan.links.items():
        if not (target.exists() or target.is_symlink()):  # a folder that the client would create
            target.mkdir(parents=True)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(target, target_is_directory=target.is_dir())


def find_program(client: LaunchableClient, env: Env) -> str | None:
    """Return the path of the program, from PATH or the client's variable."""
    return shutil.which(env.get(client.variable, "").strip() or client.program, path=env.get("PATH"))


def require_program(client: LaunchableClient) -> str:
    found = find_program(client, os.environ)
    if found is None:
        given = os.environ.get(client.variable, "").strip()
        what = (
            f"{client.variable} is {given}, which is not a program"
            if given
            else f"{client.title} is not installed: no {client.program} on PATH"
        )
        hint = f"{client.source}, or set {client.variable} to its path"
        raise CommandError(what, hint=hint)
    return found


def _list_models(base_url: str, token: str, default: str) -> tuple[ClientModel, ...]:
    """Return the default model and the Gemini models that the gateway lists; never use a proxy."""
    place = urlsplit(base_url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=5)
    try:
        connection.request("GET", "/v1/models", headers={"authorization": f"Bearer {token}"})
        listed = json.loads(connection.getresponse().read())["data"]
        offered = [
            ClientModel(
                id=one["id"],
                context_window=one["context_window"],
                max_output_tokens=one["max_output_tokens"],
            )
            for one in listed
            if one["id"].startswith("gemini-")
        ]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        offered = []  # the client still works with one model
    finally:
        connection.close()
    return (ClientModel(id=default), *(model for model in offered if model.id != default))


__all__ = ["explain", "run"]
