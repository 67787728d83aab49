"""Check that the settings are valid."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.cli.doctor.finding import DoctorContext, Finding


def check_settings(at: DoctorContext) -> Iterator[Finding]:
    if at.settings is None:
        what, _, hint = at.settings_error.partition("\n")
        yield Finding(
            status="fail",
            what=what,
            why="nothing starts with wrong settings",
            fix=hint or "mend the place that is named; dragoman config check looks again",
        )
        return
    yield Finding(
        status="ok",
        what=str(at.settings.file or "no file; defaults and environment (dragoman init writes one)"),
    )
    for note in at.settings.loaded.notes:
        yield Finding(status="warn", what=note)
