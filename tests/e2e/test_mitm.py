"""Real mitmproxy, real TLS: a google-genai program that knows nothing of a tool gets one."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.e2e.clients import INSTALL_S, RUN_S
from tests.e2e.directives import use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.python_programs import install_packages
from tests.e2e.tls import Certificates, tls_endpoint

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

ROOT = Path(__file__).parents[2]
MITMPROXY = "11.0.2"
_READY = re.compile(r"^ready on (\S+)", re.MULTILINE)
_START_S = 60.0

WEATHER: dict[str, Any] = {
    "name": "weather",
    "description": "The weather of a city.",
    "parametersJsonSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
TOOL_FILE = '''
from dragoman import tool

@tool(risk="read")
def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: 21 degrees"
'''

#: A program as anybody writes one; it finds its key, the proxy and the certificate in the environment.
PROGRAM = """
import json, sys
from google import genai
client = genai.Client(api_key="AIza-the-programs-own")
chat = client.chats.create(model=sys.argv[2])
for words in json.loads(sys.argv[1]):
    try:
        if sys.argv[3] == "stream":
            text = "".join(chunk.text or "" for chunk in chat.send_message_stream(words))
        else:
            text = chat.send_message(words).text
        print(json.dumps(["said", text]), flush=True)
    except genai.errors.APIError as error:
        print(json.dumps([error.code, str(error)]), flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def python() -> Path:
    """What `pip install 'dragoman[mitm]'` brings: mitmproxy has its own idea of many versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["mitm"]]
    return install_packages(f"mitmproxy-{MITMPROXY}", [f"mitmproxy=={MITMPROXY}", *needed])


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls") / "made")


@pytest.fixture
def address(google: Google, certificates: Certificates) -> Iterator[str]:
    """Google, as far as the proxy knows: over TLS."""
    with tls_endpoint(google.url, certificates) as url:
        yield url


class Proxy:
    """`dragoman mitm` as a process of its own."""

    def __init__(self, python: Path, home: Path, certificates: Certificates, *flags: str) -> None:
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "DRAGOMAN_HOME": str(home)}
        env |= {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1", "DRAGOMAN_GATEWAY_KEY": GATEWAY_KEY}
        env |= {"SSL_CERT_FILE": str(certificates.authority), "DRAGOMAN_SESSIONS_FOLLOW_UP_WAIT_S": "0.5"}
        self._log = home / "mitm.log"
        self.certificate = home / "mitm" / "mitmproxy-ca-cert.pem"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", "dragoman", "mitm", "--port", "0", *flags],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.url = self._await_ready()

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def program(self, words: list[str], *, model: str = "gemini-3.8-flash", stream: bool = False) -> Program:
        env = {"PATH": os.environ["PATH"], "HTTPS_PROXY": self.url, "SSL_CERT_FILE": str(self.certificate)}
        mode = "stream" if stream else "whole"
        return Program([sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(words), model, mode], env)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(20) == 0, self.log()
        assert "Traceback" not in self.log(), self.log()

    def _await_ready(self) -> str:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            ready = _READY.search(self.log())
            if ready:
                return ready[1]
            time.sleep(0.05)
        self._process.kill()
        raise RuntimeError(f"the proxy did not start:\n{self.log()}")


class Program:
    """Says one thing after the other, whenever it is told to go on."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._process = subprocess.Popen(command, env=env, text=True, **pipes)  # type: ignore[call-overload]

    def hear(self) -> tuple[Any, str]:
        line = self._process.stdout.readline()
        assert line, self._process.communicate(timeout=RUN_S)[1]
        kind, text = json.loads(line)
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return kind, text

    def end(self) -> None:
        _, errors = self._process.communicate(timeout=RUN_S)
        assert self._process.returncode == 0, errors


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["gemini-3.8-flash", "gemini-2.5-flash"])
def test_a_tool_that_the_program_never_heard_of_is_run_and_answers(
    python: Path,
    tmp_path: Path,
    certificates: Certificates,
    address: str,
    google: Google,
    stream: bool,
    model: str,
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "weather.py").write_text(TOOL_FILE)
    proxy = Proxy(python, tmp_path, certificates, "--upstream", address, "--run", "weather,read_file")
    try:
        talk = proxy.program([use("weather", {"city": "Oslo"}), "say goodbye"], model=model, stream=stream)
        kind, text = talk.hear()
        assert (kind, "Oslo: 21 degrees" in text) == ("said", True), (text, proxy.log())
        assert "goodbye" in talk.hear()[1]
        talk.end()
    finally:
        proxy.stop()
    assert google.declared() == ["read_file", "weather"]
    first, second, third = google.requests()
    assert "functionResponse" not in json.dumps(first)
    assert second["contents"][-1]["parts"][0]["functionResponse"]["name"] == "weather"
    assert [
        part for content in third["contents"] for part in content["parts"] if "functionCall" in part
    ] == []
    assert google.keys() == {"AIza-the-programs-own"}


def test_calls_are_captured_and_results_from_a_gateway_come_with_the_next_request(
    python: Path, tmp_path: Path, certificates: Certificates, address: str, google: Google
) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps({"tools": [WEATHER]}))
    gateway = Gateway(tmp_path, google.url)
    gateway.start()
    proxy = Proxy(
        python, tmp_path, certificates, "--upstream", address, "--tools", str(tools), "--session", "demo"
    )
    admin = f"{gateway.url}/v1/sessions/demo"
    key = {"authorization": f"Bearer {GATEWAY_KEY}"}
    try:
        both = f"{use('weather', {'city': 'Oslo'})} and {use('weather', {'city': 'Rome'})}"
        talk = proxy.program([both, "too early", "go on", "say goodbye"])
        kind, text = talk.hear()
        assert (kind, text.startswith("[waiting for weather · call_")) == ("said", True)
        code, why = talk.hear()
        assert (code, "waits for the results of weather" in why) == (409, True)
        calls = requests.get(f"{admin}/calls", headers=key, timeout=10).json()["calls"]
        assert [(one["args"]["city"], one["status"]) for one in calls] == [("Oslo", "open"), ("Rome", "open")]
        results = [{"call_id": one["id"], "output": f"{one['args']['city']} is fine"} for one in calls]
        assert (
            requests.post(f"{admin}/results", headers=key, json={"results": results}, timeout=10).status_code
            == 200
        )
        assert talk.hear()[0] == "said"
        assert talk.hear()[0] == "said"
        talk.end()
        calls = requests.get(f"{admin}/calls", headers=key, timeout=10).json()["calls"]
        assert [one["status"] for one in calls] == ["delivered", "delivered"]
    finally:
        proxy.stop()
        gateway.stop()
    for request in google.requests()[1:]:
        calls_of, responses, *_ = request["contents"][1:]
        assert [part["functionCall"]["args"]["city"] for part in calls_of["parts"]] == ["Oslo", "Rome"]
        told = [part["functionResponse"]["response"] for part in responses["parts"]]
        assert told == [{"output": "Oslo is fine"}, {"output": "Rome is fine"}]
        assert "waiting for" not in json.dumps(request)
    assert google.sentinels() == 0


def test_what_is_not_geminis_passes_unread(
    python: Path, tmp_path: Path, certificates: Certificates, address: str
) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([WEATHER]))
    proxy = Proxy(python, tmp_path, certificates, "--tools", str(tmp_path / "tools.json"))
    try:
        place = urlsplit(proxy.url)
        assert place.hostname == "127.0.0.1"
        with socket.create_connection((place.hostname, place.port or 0), timeout=10) as line:
            target = urlsplit(address).netloc
            line.sendall(f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n".encode())
            assert line.recv(4096).startswith(b"HTTP/1.1 200")
            context = ssl.create_default_context(cafile=str(certificates.authority))
            with context.wrap_socket(line, server_hostname="127.0.0.1") as inside:
                issuer = dict(pair[0] for pair in inside.getpeercert()["issuer"])  # type: ignore[index, misc]
        assert issuer["commonName"] == "test-authority"
        assert (proxy.certificate.parent.stat().st_mode & 0o077) == 0
        assert "never add it to the system's trust" in proxy.log()
    finally:
        proxy.stop()


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--tools", "bad.json"], "tools[0]: this is no function"),
        (["--tools", "list.json"], "must be a list of tools"),
        (["--tools", "none.json"], "No such file"),
        (["--run", "read_fil"], "--run: there is no tool 'read_fil'; did you mean read_file?"),
        (["--run", "read_file", "--root", "nowhere"], "is not a folder"),
        (["--run", "read_file", "--tools", "bad.json"], "cannot be combined"),
        (["--session", "unknown"], "has no tools"),
        (["--port", "99999"], "port number"),
    ],
)
def test_what_cannot_work_is_said_at_once(python: Path, tmp_path: Path, flags: list[str], why: str) -> None:
    (tmp_path / "bad.json").write_text('[{"googleSearch": {}}]')
    (tmp_path / "list.json").write_text('{"tools": {}}')
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    command = [str(python), "-m", "dragoman", "mitm", *flags]
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode in (1, 2)
    assert why in done.stderr
    assert "Traceback" not in done.stderr
