"""The pytest fixture `gemini_emulator`: run tests of agents against the emulator instead of Google."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

# pytest imports this module in every test run, so the emulator is imported only by tests that use it.
if TYPE_CHECKING:
    from dragoman.emulator.testing import Emulator

_EMULATOR = pytest.StashKey["Emulator"]()
_MARK = "gemini_script"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{_MARK}(file): what the fixture gemini_emulator answers in this test"
    )


@pytest.fixture
def gemini_emulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """Start an emulator on a free port and point the environment variables of Gemini clients at it."""
    from dragoman.emulator.testing import CONFLICTING_VARIABLES, running

    with running(check=False) as emulator:
        for marker in reversed(list(request.node.iter_markers(_MARK))):
            _add_script(emulator, request, marker.args)
        for name in CONFLICTING_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in emulator.env.items():
            monkeypatch.setenv(name, value)
        request.node.stash[_EMULATOR] = emulator
        yield emulator


def pytest_runtest_setup(item: pytest.Item) -> None:
    wanted = item.get_closest_marker(_MARK) is not None
    if wanted and "gemini_emulator" not in getattr(item, "fixturenames", ()):
        pytest.fail(f"a test marked {_MARK} needs the fixture gemini_emulator", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail the test itself, not its teardown, when the requests did not follow the script."""
    try:
        result = yield
    except BaseException:
        _report(item)
        raise
    emulator = item.stash.get(_EMULATOR, None)
    problems = emulator.problems() if emulator is not None else []
    if problems:
        _report(item)
        pytest.fail("the Gemini emulator's script was not followed:\n" + "\n".join(problems), pytrace=False)
    return result


def _add_script(emulator: Emulator, request: pytest.FixtureRequest, sources: tuple[Any, ...]) -> None:
    from dragoman.emulator.script.load import ScriptError

    for source in sources:
        beside = request.path.parent / source if isinstance(source, str) and "\n" not in source else None
        try:
            emulator.script(beside if beside is not None and beside.is_file() else source)
        except ScriptError as error:
            pytest.fail(str(error), pytrace=False)


def _report(item: pytest.Item) -> None:
    """Add the recorded requests and problems to the report of a failed test."""
    emulator = item.stash.get(_EMULATOR, None)
    if emulator is not None:
        lines = [*map(repr, emulator.requests), *emulator.problems()]
        item.add_report_section("call", "Gemini emulator", "\n".join(lines) or "no requests")
