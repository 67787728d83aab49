"""Find a captured request, for the commands that show, replay or export one."""

from __future__ import annotations

from pathlib import Path

from dragoman.cli.screen import CommandError
from dragoman.cli.settings import Settings
from dragoman.observe.captures import CAPTURES_FOLDER, CapturedRequest, find_capture, recent_captures


def captures_folder(settings: Settings) -> Path:
    return settings.home / CAPTURES_FOLDER


def require_capture(settings: Settings, identity: str) -> CapturedRequest:
    """Return the capture with this request id, a prefix of it, or `last`; raise `Failure` if there is none."""
    folder = captures_folder(settings)
    if identity == "last":
        newest = recent_captures(folder, 1)
        found = newest[0] if newest else None
    else:
        found = find_capture(folder, identity)
    if found is None:
        off = settings.config.observe.capture == "off" and not folder.is_dir()
        hint = (
            "nothing is captured: start the gateway with DRAGOMAN_OBSERVE_CAPTURE=all (or errors)"
            if off
            else "dragoman capture list shows what there is"
        )
        raise CommandError(f"there is no capture of {identity!r}", hint=hint)
    return found
