"""Check this machine: settings, the gateway's port, the state folder, disk space and the store."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from dragoman.cli.doctor.finding import DoctorContext, Finding, Repair
from dragoman.cli.gateway import get_health
from dragoman.cli.launch.apply_overrides import has_override_log, restore_leftovers
from dragoman.cli.settings import KEY_FILE, Settings, load_gateway_key
from dragoman.config import is_loopback
from dragoman.errors import ConfigError
from dragoman.store import StoreUnavailable, open_store


def check_settings(context: DoctorContext) -> Iterator[Finding]:
    if context.settings is None:
        what, _, hint = context.settings_error.partition("\n")
        yield Finding(
            status="fail",
            what=what,
            why="no command starts with invalid settings",
            fix=hint or "fix the named setting, then run dragoman config check",
        )
        return
    yield Finding(
        status="ok",
        what=str(context.settings.file or "no file; defaults and environment (dragoman init writes one)"),
    )
    for note in context.settings.loaded.notes:
        yield Finding(status="warn", what=note)


def check_port(context: DoctorContext) -> Iterator[Finding]:
    if context.settings is None:
        return
    config = context.settings.config
    host, port = config.server.host, config.server.port
    if not port:
        yield Finding(status="ok", what="any free port")
        return
    address = host if is_loopback(host) else "127.0.0.1"
    health = get_health(address, port)
    if health is not None and health.get("service") == "dragoman":
        backend = health.get("backend", "")
        yield Finding(status="ok", what=f"a gateway answers on {address}:{port} (backend {backend})")
        if backend != config.backend:
            yield Finding(
                status="warn",
                what=f"that gateway uses {backend}, your settings select {config.backend}",
                why="it was started with other settings; launchers start their own gateway",
                fix="stop it and start dragoman serve again",
            )
        return
    why = _cannot_bind(host, port)
    if not why:
        yield Finding(status="ok", what=f"{host}:{port} is free")
        return
    yield Finding(
        status="fail",
        what=f"{host}:{port} cannot be used: {why}",
        why="dragoman serve would not start; launchers choose a free port",
        fix="end the program that listens there, or set server.port (DRAGOMAN_SERVER_PORT)",
    )


def _cannot_bind(host: str, port: int) -> str:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error.strerror or str(error)
    return ""


_DISK_FULL_BYTES = 50 * 1024 * 1024
_DISK_LOW_BYTES = 500 * 1024 * 1024
_OTHERS_MODE = 0o077


def check_state(context: DoctorContext) -> Iterator[Finding]:
    home = context.home
    if not home.exists():
        yield Finding(status="ok", what=f"{home} is created at the first start")
        return
    if not home.is_dir() or not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(
            status="fail",
            what=f"{home} cannot be written to",
            why="keys, conversations and signatures are stored there",
            fix="make your user its owner, or point DRAGOMAN_HOME to a folder you own",
        )
        return
    yield Finding(status="ok", what=str(home))
    yield from _open_to_others(home)
    yield from _check_overrides(home)


def _open_to_others(home: Path) -> Iterator[Finding]:
    if os.name != "posix":
        return
    key = home / KEY_FILE
    for path, mode in ((home, 0o700), (key, 0o600)):
        if path.exists() and path.stat().st_mode & _OTHERS_MODE:
            yield Finding(
                status="warn",
                what=f"{path} can be read by others",
                why="anyone with the gateway key can use your Google quota",
                fix=f"chmod {mode:o} {path}",
                repair=Repair(
                    question=f"restrict {path} to your user", apply=partial(_restrict_mode, path, mode)
                ),
            )
    if not key.exists():
        return
    try:
        load_gateway_key(home)
    except ConfigError as error:
        yield Finding(
            status="fail",
            what=str(error).partition("\n")[0],
            fix="delete the file; the next start creates a new key",
        )


def _restrict_mode(path: Path, mode: int) -> str:
    before = path.stat().st_mode & 0o777
    path.chmod(mode)
    return f"{path} is {mode:o} now (it was {before:o})"


def _check_overrides(home: Path) -> Iterator[Finding]:
    """Report settings that a running or killed launcher has overridden."""
    if has_override_log(home):
        yield Finding(
            status="note",
            what="settings of Amazon Q or Kiro are overridden",
            why="a launcher is running, or was killed",
            fix="the next start of any launcher restores what no running launcher uses",
            repair=Repair(
                question="restore what no running launcher uses", apply=partial(_restore_overrides, home)
            ),
        )


def _restore_overrides(home: Path) -> str:
    restore_leftovers(home)
    return "a launcher still uses them" if has_override_log(home) else "restored"


def check_disk(context: DoctorContext) -> Iterator[Finding]:
    folder = next((path for path in (context.home, *context.home.parents) if path.exists()), Path("/"))
    free = shutil.disk_usage(folder).free
    summary = f"{free / 1e9:.1f} GB free at {folder}"
    if free < _DISK_FULL_BYTES:
        yield Finding(
            status="fail",
            what=summary,
            why="conversations and signatures cannot be stored",
            fix="free disk space, or move DRAGOMAN_HOME",
        )
    elif free < _DISK_LOW_BYTES:
        yield Finding(
            status="warn",
            what=summary,
            fix="free disk space, or lower store.max_bytes and observe.capture_bytes",
        )
    else:
        yield Finding(status="ok", what=summary)


def check_store(context: DoctorContext) -> Iterator[Finding]:
    if context.settings is None:
        return
    url = context.settings.config.store.url
    if not url and not context.home.is_dir():
        yield Finding(status="ok", what="SQLite; created at the first start")
        return
    try:
        asyncio.run(_open_and_close_store(context.settings))
    except (StoreUnavailable, ConfigError, sqlite3.Error, OSError) as error:
        yield Finding(
            status="fail",
            what=f"the store cannot be opened: {str(error).partition(chr(10))[0]}",
            why="conversations and thought signatures are stored there",
            fix="check store.url and that the server runs"
            if url
            else f"move {context.home / 'state.db'} away; a new one is created",
        )
    else:
        yield Finding(status="ok", what="Redis answers" if url else "SQLite opens")


async def _open_and_close_store(settings: Settings) -> None:
    store = open_store(settings.config)
    try:
        await store.get_values(["doctor"])
    finally:
        await store.close()
