"""A machine without some program passes with skips; `.ci/run` does not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SKIPPED = """
from tests.requirements import require_program

def test_that_passes():
    require_program("sh", package="dash")

def test_that_is_skipped():
    require_program("no-such-program", package="some-package")
"""


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize(("forbidden", "code"), [("", 0), ("1", 1)])
def test_a_skip_fails_the_run_only_where_it_is_forbidden(
    tmp_path: Path, processes: str, forbidden: str, code: int
) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_sample.py").write_text(SKIPPED)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "-n", processes, "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "FORBID_SKIPS": forbidden},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "needs no-such-program: apt-get install some-package" in done.stdout
    assert "1 passed, 1 skipped" in done.stdout
    assert done.returncode == code, done.stdout
    assert ("FORBID_SKIPS is set" in done.stdout) == bool(forbidden)


def test_ci_forbids_skips() -> None:
    assert re.search(r"^export FORBID_SKIPS=1$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


def test_no_test_installs_a_system_package() -> None:
    install = re.compile(r"""["']apt(-get)?["'],""")
    assert [path for path in (ROOT / "tests").rglob("*.py") if install.search(path.read_text("utf-8"))] == []
