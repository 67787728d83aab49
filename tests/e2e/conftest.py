"""A gateway in front of the strict emulator, and real clients in front of the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from anthropic import Anthropic

from dragoman import emulator
from tests.e2e.clients import Claude
from tests.e2e.fake_google import Google, emulated_google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.recording_proxy import Tap, recording_proxy
from tests.e2e.sdk_rounds import connect

#: (version, model): a Gemini name changes what 2.1.325 sends (system messages, adaptive thinking).
NEW = ("2.1.325", "claude-sonnet-4-5")
NEW_GEMINI = ("2.1.325", "gemini-3.1-pro-preview")
CLASSIC = ("1.0.128", "claude-sonnet-4-5")


@pytest.fixture(scope="session")
def shared_google() -> Iterator[Google]:
    with emulated_google() as google:
        yield google


@pytest.fixture(scope="session")
def shared_gateway(tmp_path_factory: pytest.TempPathFactory, shared_google: Google) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway") / "home", shared_google.url)
    gateway.start()
    yield gateway
    gateway.stop()


@pytest.fixture(scope="session")
def shared_client(shared_gateway: Gateway) -> Iterator[Anthropic]:
    with connect(shared_gateway) as client:
        yield client


@pytest.fixture
def breaking_gateway(tmp_path: Path) -> Iterator[Gateway]:
    """Google says a few hundred words and hangs up: a stream that merely ended would look like success."""
    story = {"reply": "word " * 400, "fault": {"cut_after": 1500}, "times": "always", "optional": True}
    with emulator.running({"steps": [story]}) as gemini:
        gateway = Gateway(tmp_path / "breaking", gemini.url)
        gateway.start()
        yield gateway
        gateway.stop()
        assert "Traceback" not in gateway.log()


@pytest.fixture
def google(shared_google: Google) -> Iterator[Google]:
    """The upstream's record of this test alone; a refusal fails the test."""
    shared_google.forget()
    yield shared_google
    refusals = shared_google.refusals()
    shared_google.forget()
    assert not refusals, "\n".join(refusals)


@pytest.fixture
def gateway(shared_gateway: Gateway, google: Google) -> Iterator[Gateway]:
    """The shared gateway; its new log lines are shown when the test fails, a traceback fails it."""
    before = len(shared_gateway.log())
    yield shared_gateway
    log = shared_gateway.log()[before:]
    print(log)
    assert "Traceback" not in log


@pytest.fixture
def tap(gateway: Gateway) -> Iterator[Tap]:
    """Between a client and the shared gateway."""
    with recording_proxy(gateway.url) as tap:
        yield tap


@pytest.fixture
def client(shared_client: Anthropic, gateway: Gateway) -> Anthropic:
    """The vendor's SDK on the shared gateway."""
    return shared_client


@pytest.fixture
def own_gateway(tmp_path: Path, google: Google) -> Iterator[Gateway]:
    """A gateway that the test may kill."""
    own = Gateway(tmp_path / "gateway", google.url)
    own.start()
    yield own
    own.stop()
    print(own.log())
    assert "Traceback" not in own.log()


@pytest.fixture(params=[NEW, NEW_GEMINI, CLASSIC], ids=" ".join)
def claude(request: pytest.FixtureRequest, tmp_path: Path, gateway: Gateway) -> Claude:
    """Claude Code on the shared gateway."""
    version, model = request.param
    return Claude(version=version, model=model, folder=tmp_path, url=gateway.url, key=GATEWAY_KEY)
