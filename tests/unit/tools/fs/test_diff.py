"""A person sees what a write changes before it happens."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.tools.fs.write import unified_diff
from tests.requirements import require_program

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "x"]), max_size=30).map("".join)


def test_a_diff_names_the_place_and_shows_the_surroundings() -> None:
    old = "".join(f"{number}\n" for number in range(100))
    assert unified_diff("f", old, old.replace("50\n", "fifty\n")) == (
        "--- a/f\n+++ b/f\n@@ -48,7 +48,7 @@\n 47\n 48\n 49\n-50\n+fifty\n 51\n 52\n 53\n"
    )


def test_new_empty_and_unchanged() -> None:
    assert unified_diff("f", None, "a\n") == "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"
    assert unified_diff("f", None, "") == "--- /dev/null\n+++ b/f\n"
    assert unified_diff("f", "a", "a") == ""
    assert "\\ No newline at end of file" in unified_diff("f", "a\n", "a")


def test_a_huge_change_is_summed_up() -> None:
    old = "".join(f"{number}\n" for number in range(3000))
    assert "3000 lines become 3000: too many to show" in unified_diff("f", old, old.replace("\n", "!\n"))


@settings(max_examples=40, deadline=None)
@given(old=LINES, new=LINES)
def test_git_applies_what_we_show(old: str, new: str, tmp_path_factory: object) -> None:
    git = require_program("git")
    folder = Path(tmp_path_factory.mktemp("d"))  # type: ignore[attr-defined]
    (folder / "f").write_text(old)
    diff = unified_diff("f", old, new)
    if diff:
        command = [git, "apply", "--unsafe-paths", "--unidiff-zero", "-"]
        subprocess.run(command, cwd=folder, input=diff.encode(), check=True, capture_output=True)
    assert (folder / "f").read_text() == new
