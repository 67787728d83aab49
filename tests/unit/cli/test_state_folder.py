"""The state folder and the key in it."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from dragoman.cli.settings import load_gateway_key, make_state_folder, state_folder
from dragoman.errors import ConfigError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("platform", "env", "folder"),
    [
        ("linux", {"HOME": "/h"}, "/h/.local/share/dragoman"),
        ("linux", {"HOME": "/h", "XDG_DATA_HOME": "/x"}, "/x/dragoman"),
        ("linux", {"HOME": "/h", "XDG_DATA_HOME": "relative"}, "/h/.local/share/dragoman"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Application Support/dragoman"),
        ("win32", {"HOME": "/h", "LOCALAPPDATA": "/l"}, "/l/dragoman"),
        ("win32", {"HOME": "/h"}, "/h/AppData/Local/dragoman"),
        ("linux", {"HOME": "/h", "DRAGOMAN_HOME": "/d"}, "/d"),
    ],
)
def test_the_folder_is_where_the_platform_keeps_data(platform: str, env: dict[str, str], folder: str) -> None:
    assert state_folder(env, platform=platform) == Path(folder)


def test_a_configured_folder_wins_and_is_absolute() -> None:
    assert state_folder({"DRAGOMAN_HOME": "/d"}, configured="/c") == Path("/c")
    assert state_folder({"DRAGOMAN_HOME": "d"}) == Path.cwd() / "d"


def test_a_new_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    home = make_state_folder(tmp_path / "a" / "b")
    assert mode(home) == 0o700


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert mode(make_state_folder(tmp_path)) == 0o755


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        make_state_folder(tmp_path / "file")


def test_the_key_is_made_once_and_kept(tmp_path: Path) -> None:
    first, notes = load_gateway_key(tmp_path)
    assert first.startswith("dgm-")
    assert len(first) > 40
    assert notes == ()
    assert load_gateway_key(tmp_path)[0] == first
    assert mode(tmp_path / "gateway.key") == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["gateway.key"]


def test_two_folders_have_two_keys(tmp_path: Path) -> None:
    assert load_gateway_key(make_state_folder(tmp_path / "a")) != load_gateway_key(
        make_state_folder(tmp_path / "b")
    )


def test_a_key_open_to_others_is_closed_and_said(tmp_path: Path) -> None:
    load_gateway_key(tmp_path)
    (tmp_path / "gateway.key").chmod(0o644)
    _, notes = load_gateway_key(tmp_path)
    assert "was readable by others" in notes[0]
    assert mode(tmp_path / "gateway.key") == 0o600


@pytest.mark.parametrize("text", ["", "short", "changeme", "ä key that is damaged badly"])
def test_a_damaged_key_is_refused_with_the_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "gateway.key").write_text(text)
    with pytest.raises(ConfigError, match="delete the file; the next start creates a new key"):
        load_gateway_key(tmp_path)


def test_gateways_that_start_together_agree_on_one_key(tmp_path: Path) -> None:
    keys: list[str] = []
    threads = [threading.Thread(target=lambda: keys.append(load_gateway_key(tmp_path)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8
    assert len(set(keys)) == 1
