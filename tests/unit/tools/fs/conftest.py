"""A project, a world around it that must stay as it is, and the tools between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.tools.definition import Context
from dragoman.tools.fs import FileLimits, FileTools
from dragoman.tools.fs.sandbox import Sandbox

ANYONE = Context(session="s")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A neighbour whose name begins like the project's."""
    neighbour = tmp_path / "project-evil"
    neighbour.mkdir()
    (neighbour / "canary.txt").write_text("CANARY")
    return neighbour


@pytest.fixture
def sandbox(root: Path) -> Sandbox:
    return Sandbox(root)


@pytest.fixture
def files(root: Path, tmp_path: Path) -> FileTools:
    return FileTools(root, limits=FileLimits(state=tmp_path / "state"))
