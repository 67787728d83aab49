"""Lent for as long as the block runs: the ledger first, everything back in the end, left-overs later."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.cli.launch import apply_overrides, settings_files
from dragoman.cli.launch.apply_overrides import open_override_log, override_settings, restore_leftovers
from dragoman.cli.launch.client import SettingsEdit
from dragoman.cli.launch.settings_files import AuthKvTable, JsonSettingsFile
from dragoman.cli.terminal import CommandError
from tests.unit.cli.test_settings_files import database, rows

__all__ = ["database"]

KEY = "api.codewhisperer.service"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    path.write_text('{"chat.theme": "dark"}')
    return path


def edit(file: Path, value: Any, **more: Any) -> SettingsEdit:
    return SettingsEdit(file=JsonSettingsFile(path=str(file), lock=str(file)), values={KEY: value}, **more)


def read(file: Path) -> Any:
    return json.loads(file.read_text())


def lent(home: Path) -> list[str]:
    folder = home / "lent"
    return sorted(entry.name for entry in folder.iterdir() if entry.name != "lock") if folder.exists() else []


def test_the_ledger_is_written_before_the_file_is_touched(
    home: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real = settings_files.write_atomically

    def write(path: Path, content: bytes, mode: int) -> None:
        order.append(path.name)
        real(path, content, mode)

    monkeypatch.setattr("dragoman.cli.launch.apply_overrides.write_atomically", write)
    monkeypatch.setattr("dragoman.cli.launch.settings_files.write_atomically", write)
    with override_settings(home, (edit(file, "ours"),)):
        assert order == ["ledger.json", "settings.json"]
        written = home / "lent" / "ledger.json"
        assert stat.S_IMODE(written.stat().st_mode) == 0o600
        assert read(written)[0]["original"]["text"] == '{"chat.theme": "dark"}'
    assert order == ["ledger.json", "settings.json", "settings.json"]
    assert lent(home) == []


def test_nothing_is_made_for_a_client_that_lends_nothing(home: Path) -> None:
    with override_settings(home, ()):
        restore_leftovers(home)
    assert not home.exists()


@pytest.mark.parametrize("first_out", ["first", "second"])
def test_of_two_at_once_the_last_one_out_restores(home: Path, file: Path, first_out: str) -> None:
    first, second = (
        override_settings(home, (edit(file, "one"),)),
        override_settings(home, (edit(file, "two"),)),
    )
    first.__enter__()
    second.__enter__()
    assert read(file)[KEY] == "two"
    inner, outer = (first, second) if first_out == "first" else (second, first)
    inner.__exit__(None, None, None)
    assert read(file)[KEY] == ("two" if first_out == "first" else "one")
    outer.__exit__(None, None, None)
    assert file.read_text() == '{"chat.theme": "dark"}'
    assert lent(home) == []


def test_one_that_stays_keeps_what_repair_would_take(
    home: Path, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with override_settings(home, (edit(file, "ours"),)):
        restore_leftovers(home)
        assert read(file)[KEY] == "ours"
    assert capfd.readouterr().err == ""


def test_two_keys_of_two_launchers_do_not_meddle(home: Path, file: Path) -> None:
    place = JsonSettingsFile(path=str(file), lock=str(file))
    with override_settings(home, (SettingsEdit(file=place, values={"a": 1}),)):
        with override_settings(home, (SettingsEdit(file=place, values={"b": 2}),)):
            assert read(file) == {"chat.theme": "dark", "a": 1, "b": 2}
        assert read(file) == {"chat.theme": "dark", "a": 1}
    assert file.read_text() == '{"chat.theme": "dark"}'


def test_an_edit_that_fails_takes_the_others_back(home: Path, file: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with (
        pytest.raises(
            CommandError, match=r"cannot be configured: .*broken\.json is not a plain JSON object"
        ) as failure,
        override_settings(home, (edit(file, "ours"), edit(broken, "ours"))),
    ):
        pytest.fail("the client must not start")
    assert "not changed" in failure.value.hint
    assert (file.read_text(), broken.read_text()) == ('{"chat.theme": "dark"}', "{")
    assert lent(home) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_whatever_ends_the_block_it_is_undone(home: Path, file: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), override_settings(home, (edit(file, "ours"),)):
        raise error
    assert file.read_text() == '{"chat.theme": "dark"}'


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_would_end_the_process_ends_the_block(
    home: Path, file: Path, number: signal.Signals
) -> None:
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as ended, override_settings(home, (edit(file, "ours"),)):
        signal.raise_signal(number)
    assert ended.value.code == 128 + number
    assert file.read_text() == '{"chat.theme": "dark"}'
    assert signal.getsignal(number) == before


def test_ctrl_c_while_it_is_put_back_waits(home: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = settings_files.write_atomically

    def write(path: Path, content: bytes, mode: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        real(path, content, mode)

    with pytest.raises(KeyboardInterrupt), override_settings(home, (edit(file, "ours"),)):
        monkeypatch.setattr("dragoman.cli.launch.settings_files.write_atomically", write)
    assert file.read_text() == '{"chat.theme": "dark"}'


DYING = """
import os, signal, sys
import msgspec
from pathlib import Path
from dragoman.cli.launch import settings_files
from dragoman.cli.launch.apply_overrides import override_settings
from dragoman.cli.launch.client import SettingsEdit

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

home, edit, when = sys.argv[1:]
if when == "before the file is written":
    settings_files.write_atomically = die
with override_settings(Path(home), (msgspec.json.decode(edit, type=SettingsEdit),)):
    die()
"""


def die_inside(home: Path, edit: SettingsEdit, when: str = "while the client runs") -> None:
    """A process that is killed: nothing of Python's cleans up after it."""
    command = [sys.executable, "-c", DYING, str(home), msgspec.json.encode(edit).decode(), when]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


def test_what_a_killed_launcher_left_comes_back_and_is_told(
    home: Path, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    die_inside(home, edit(file, "ours"))
    assert read(file)[KEY] == "ours"
    restore_leftovers(home)
    assert file.read_text() == '{"chat.theme": "dark"}'
    assert f"an earlier launcher was killed; restored: {file}\n" in capfd.readouterr().err
    restore_leftovers(home)
    assert capfd.readouterr().err == ""
    assert lent(home) == []


def test_killed_between_the_ledger_and_the_file_nothing_is_told(
    home: Path, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    die_inside(home, edit(file, "ours"), "before the file is written")
    assert "ledger.json" in lent(home)
    restore_leftovers(home)
    assert file.read_text() == '{"chat.theme": "dark"}'
    assert capfd.readouterr().err == ""
    assert lent(home) == []


def test_the_next_one_takes_over_from_one_that_was_killed(home: Path, file: Path) -> None:
    die_inside(home, edit(file, "dead"))
    with override_settings(home, (edit(file, "ours"),)):
        assert read(file)[KEY] == "ours"
    assert file.read_text() == '{"chat.theme": "dark"}'


def test_what_cannot_be_put_back_now_is_put_back_later(
    home: Path, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with override_settings(home, (edit(file, "ours"),)):
        saved = file.read_text()
        file.write_text("{ half a fi")
    assert "the next start of a launcher restores" in capfd.readouterr().err
    assert file.read_text() == "{ half a fi"
    file.write_text(saved)
    restore_leftovers(home)
    assert file.read_text() == '{"chat.theme": "dark"}'


def test_a_ledger_that_cannot_be_read_is_set_aside_and_told(
    home: Path, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    die_inside(home, edit(file, "ours"))
    (home / "lent" / "ledger.json").write_text("[{")
    restore_leftovers(home)
    assert "ledger.damaged" in capfd.readouterr().err
    assert (home / "lent" / "ledger.damaged").read_text() == "[{"
    restore_leftovers(home)
    assert capfd.readouterr().err == ""


def test_a_ledger_that_somebody_keeps_is_said(
    home: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply_overrides, "_LOCK_TIMEOUT_S", 0.05)
    with (
        open_override_log(home),
        pytest.raises(CommandError, match="another launcher holds"),
        open_override_log(home),
    ):
        pytest.fail("two have it open")


def login(database: Path, **more: Any) -> SettingsEdit:
    return SettingsEdit(
        file=AuthKvTable(path=str(database)),
        values={"token": "placeholder"},
        only_missing=True,
        applied_message="not logged in",
        unusable_message="log in first",
        **more,
    )


def test_a_login_is_left_alone(home: Path, database: Path, capfd: pytest.CaptureFixture[str]) -> None:
    place = AuthKvTable(path=str(database))
    with override_settings(
        home,
        (SettingsEdit(file=place, values={"other": "placeholder"}, only_missing=True, applied_message="no"),),
    ):
        assert rows(database) == {"other": "login"}
        assert lent(home)[-1].endswith(".run")
    assert (rows(database), capfd.readouterr().err) == ({"other": "login"}, "")


def test_without_a_login_a_placeholder_stands_in_until_the_last_one_leaves(
    home: Path, database: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with override_settings(home, (login(database),)):
        with override_settings(home, (login(database),)):
            assert rows(database)["token"] == "placeholder"
        assert rows(database)["token"] == "placeholder"
    assert rows(database) == {"other": "login"}
    assert "not logged in" in capfd.readouterr().err


def test_a_login_made_meanwhile_stays(home: Path, database: Path) -> None:
    with override_settings(home, (login(database),)):
        connection = sqlite3.connect(database)
        connection.execute("REPLACE INTO auth_kv (key, value) VALUES ('token', 'real')")
        connection.commit()
        connection.close()
    assert rows(database) == {"other": "login", "token": "real"}


def test_a_database_that_went_with_its_client_is_forgotten(
    home: Path, database: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    die_inside(home, login(database))
    capfd.readouterr()
    database.unlink()
    restore_leftovers(home)
    assert (lent(home), capfd.readouterr().err) == ([], "")


def test_where_there_is_no_database_the_start_goes_on(
    home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with override_settings(home, (login(tmp_path / "none.sqlite3"),)):
        assert "log in first" in capfd.readouterr().err
    assert lent(home) == []
