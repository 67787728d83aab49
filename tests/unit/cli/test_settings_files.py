"""A client's own files: changed whole or not at all, and in the end the same to the last byte."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.cli.launch import settings_files
from dragoman.cli.launch.settings_files import (
    AuthKvTable,
    CurrentSettings,
    JsonSettingsFile,
    OriginalFile,
    SettingsChange,
    SettingsFileError,
    SettingsFileMissing,
)
from dragoman.cli.launch.settings_overrides import ABSENT

OURS = {"endpoint": "http://127.0.0.1:1/key/secret", "region": "us-east-1"}
KEY = "api.codewhisperer.service"


def json_file(path: Path) -> JsonSettingsFile:
    return JsonSettingsFile(path=str(path), lock=str(path))


def put(
    place: JsonSettingsFile | AuthKvTable, values: Mapping[str, Any], back_to: OriginalFile | None = None
) -> CurrentSettings:
    """Write the values; what was found before."""
    seen: list[CurrentSettings] = []

    def decide(found: CurrentSettings) -> SettingsChange:
        seen.append(found)
        return SettingsChange(values=values, restore=back_to)

    place.update([KEY, *values], decide)
    return seen[0]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("aé😀", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("kü", max_size=2), inner, max_size=3),
    max_leaves=5,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=40,
)
@given(
    document=st.dictionaries(st.sampled_from(["a", "ü", KEY, "z"]), JSON, max_size=4),
    indent=st.none() | st.integers(0, 4),
    ascii_only=st.booleans(),
)
def test_put_and_taken_back_is_the_same_text(
    tmp_path: Path, document: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    path = tmp_path / "settings.json"
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only) + "\n"
    path.write_text(text, "utf-8")
    path.chmod(0o640)
    found = put(json_file(path), {KEY: OURS})
    assert json.loads(path.read_text("utf-8")) == {**document, KEY: OURS}
    put(json_file(path), {KEY: document.get(KEY, ABSENT)}, found.original)
    assert path.read_text("utf-8") == text
    assert mode(path) == 0o640


def test_numbers_and_duplicates_of_others_are_not_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"big": 1e999, "exact": 1.10, "exact": 2.50, "long": 123456789012345678901234567890}')
    put(json_file(path), {KEY: OURS})
    lent = path.read_text()
    assert ('"big": 1e999' in lent, '"exact": 2.50' in lent) == (True, True)
    assert "123456789012345678901234567890" in lent


def test_what_the_client_saved_meanwhile_stays_as_it_saved_it(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{ "telemetry.enabled":false }')
    found = put(json_file(path), {KEY: OURS})
    path.write_text(json.dumps({KEY: OURS, "chat.theme": "dark", "telemetry.enabled": False}))
    put(json_file(path), {KEY: ABSENT}, found.original)
    assert json.loads(path.read_text()) == {"chat.theme": "dark", "telemetry.enabled": False}


def test_a_key_of_ours_is_for_the_owners_eyes_while_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    path.chmod(0o644)
    found = put(json_file(path), {KEY: OURS})
    assert mode(path) == 0o600
    put(json_file(path), {KEY: ABSENT}, found.original)
    assert (path.read_text(), mode(path)) == ("{}", 0o644)


def test_the_mode_comes_back_also_when_the_key_is_somebody_elses_by_now(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    path.chmod(0o644)
    found = put(json_file(path), {KEY: OURS})
    path.write_text('{"x": 1}')
    put(json_file(path), {}, found.original)
    assert (path.read_text(), mode(path)) == ('{"x": 1}', 0o644)


def test_a_file_that_was_not_there_is_made_and_left_as_the_client_would_make_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "settings.json"
    found = put(json_file(path), {KEY: OURS})
    assert (json.loads(path.read_text()), mode(path)) == ({KEY: OURS}, 0o600)
    put(json_file(path), {KEY: ABSENT}, found.original)
    assert path.read_text() == "{}"


def test_a_file_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    put(json_file(path), {}, OriginalFile(text="{}", mode=0o644))
    assert not path.exists()


def test_a_link_into_somebodys_dotfiles_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "q.json", tmp_path / "settings.json"
    real.parent.mkdir()
    real.write_text("{}")
    link.symlink_to(real)
    put(json_file(link), {KEY: OURS})
    assert link.is_symlink()
    assert json.loads(real.read_text()) == {KEY: OURS}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '"x"', '{"a": 1} // no', '{"a": nope}', "\ufeff{}", "{'a': 1}", '{"' + KEY + '": 1e999}'],
)
def test_what_is_no_json_object_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(settings_files, "_EMPTY_FILE_WAIT_S", 0.0)
    path = tmp_path / "settings.json"
    path.write_text(text, "utf-8")
    with pytest.raises(SettingsFileError, match="not a plain JSON object"):
        put(json_file(path), {KEY: OURS})
    assert path.read_text("utf-8") == text
    assert [file.name for file in tmp_path.iterdir()] == ["settings.json"]


def test_other_texts_than_utf8_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(SettingsFileError, match="not UTF-8"):
        put(json_file(path), {KEY: OURS})
    assert path.read_bytes() == b'{"a": "\xff"}'


def test_a_client_that_has_emptied_its_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("")
    later = threading.Timer(0.1, lambda: path.write_text('{"a": 1}'))
    later.start()
    put(json_file(path), {KEY: OURS})
    later.join()
    assert json.loads(path.read_text()) == {"a": 1, KEY: OURS}


def test_the_clients_own_lock_is_waited_for(tmp_path: Path) -> None:
    path, lock = tmp_path / "cli.json", tmp_path / "cli.json.lock"
    path.write_text("{}")
    lock.touch()
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        def save_and_let_go() -> None:
            time.sleep(0.1)
            path.write_text('{"saved": true}')
            fcntl.flock(held, fcntl.LOCK_UN)

        client = threading.Thread(target=save_and_let_go)
        client.start()
        put(JsonSettingsFile(path=str(path), lock=str(lock)), {KEY: OURS})
        client.join()
    assert json.loads(path.read_text()) == {"saved": True, KEY: OURS}


def test_a_lock_that_is_kept_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_files, "_LOCK_TIMEOUT_S", 0.05)
    path = tmp_path / "settings.json"
    path.write_text("{}")
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(SettingsFileError, match="locked by another program"):
            put(json_file(path), {KEY: OURS})
    assert path.read_text() == "{}"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsFileError, match=r"File exists|Not a directory"):
        put(json_file(tmp_path / "file" / "settings.json"), {KEY: OURS})


def test_a_file_stays_its_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda _descriptor, user, group: given.append((user, group)))
    put(json_file(path), {KEY: OURS})
    assert given == [(path.stat().st_uid, path.stat().st_gid)]


def test_a_draft_that_a_killed_launcher_left_is_swept_up(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    (tmp_path / ".settings.json.dragoman-dead").write_text("with a key in it")
    put(json_file(path), {KEY: OURS})
    assert [file.name for file in tmp_path.iterdir()] == ["settings.json"]


def test_a_full_disk_leaves_the_file_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SettingsFileError, match="No space left"):
        put(json_file(path), {KEY: OURS})
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("settings.json", "{}")]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "data #1?.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE auth_kv (key TEXT PRIMARY KEY, value TEXT)")
    connection.execute("INSERT INTO auth_kv VALUES ('other', 'login')")
    connection.commit()
    connection.close()
    return path


def rows(database: Path) -> dict[str, str]:
    connection = sqlite3.connect(database)
    found = dict(connection.execute("SELECT key, value FROM auth_kv").fetchall())
    connection.close()
    return found


def test_a_row_is_put_and_taken_back(database: Path) -> None:
    table = AuthKvTable(path=str(database))
    assert put(table, {"token": "ours"}).values == {}
    assert rows(database) == {"other": "login", "token": "ours"}
    assert put(table, {"token": ABSENT}).values == {"token": "ours"}
    assert rows(database) == {"other": "login"}


def test_only_the_keys_in_question_are_read(database: Path) -> None:
    assert put(AuthKvTable(path=str(database)), {"token": "ours"}).values == {}


def test_a_failure_between_reading_and_writing_changes_nothing(database: Path) -> None:
    def fail(_found: CurrentSettings) -> SettingsChange:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        AuthKvTable(path=str(database)).update(["token"], fail)
    assert rows(database) == {"other": "login"}


def test_no_database_is_made(tmp_path: Path) -> None:
    with pytest.raises(SettingsFileMissing, match="there is no"):
        put(AuthKvTable(path=str(tmp_path / "data.sqlite3")), {"token": "ours"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"this is no database, whatever it is called"])
def test_another_kind_of_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.sqlite3"
    path.write_bytes(content)
    with pytest.raises(SettingsFileError, match=r"data\.sqlite3: "):
        put(AuthKvTable(path=str(path)), {"token": "ours"})
    assert path.read_bytes() == content
