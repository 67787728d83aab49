"""Whoever reads bytes of strangers raises nothing but our own errors: spoilt bytes here, atheris with `make fuzz`."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.clients import INSTALL_S, install_once
from tests.fuzz.decoders import DECODERS
from tests.fuzz.mutate import _spoil_bytes, mutate

ROOT = Path(__file__).parents[2]
ROUNDS = 300
ATHERIS = "3.0.0"
SECONDS = os.environ.get("DRAGOMAN_FUZZ_S", "5")
_NOT_JSON = {"answer", "sse", "eventstream", "door", "emulator", "settings", "characters"}


@pytest.mark.parametrize("name", DECODERS)
def test_spoilt_bytes_surprise_no_reader(name: str) -> None:
    read, seeds = DECODERS[name]
    assert seeds
    for seed in seeds:
        read(seed)
    for number in range(ROUNDS):
        chance = random.Random(f"{name} {number}")
        seed = chance.choice(seeds)
        read(_spoil_bytes(seed, chance) if name in _NOT_JSON else mutate(seed, chance))


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("name", DECODERS)
@given(data=st.binary(max_size=300))
def test_any_bytes_at_all(name: str, data: bytes) -> None:
    DECODERS[name][0](data)


def install_atheris() -> Path:
    """A folder from which this Python can import it."""

    def make(folder: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, "--no-deps", "--target", str(folder), f"atheris=={ATHERIS}"], check=True)

    return install_once(f"atheris-{ATHERIS}-{sys.implementation.cache_tag}", make)


@pytest.mark.clients
@pytest.mark.timeout(INSTALL_S)
@pytest.mark.parametrize("name", DECODERS)
def test_atheris_finds_nothing(name: str, tmp_path: Path) -> None:
    """Guided by what the code does with the bytes; as long as DRAGOMAN_FUZZ_S says."""
    limits = [
        f"-max_total_time={SECONDS}",
        "-timeout=20",
        "-rss_limit_mb=4096",
        "-max_len=20000",
        "-verbosity=0",
    ]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(install_atheris()), str(ROOT), str(ROOT / "src"))),
    }
    corpus = Path(os.environ.get("DRAGOMAN_FUZZ_CORPUS") or tmp_path) / name
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.fuzz.run_atheris",
            name,
            str(corpus),
            *limits,
            f"-artifact_prefix={tmp_path}/",
        ],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = [(file.name, file.read_bytes()) for file in tmp_path.glob("*-*") if file.is_file()]
    assert done.returncode == 0, f"{done.stderr[-6000:]}\n{found}"
