"""What `q` and `kiro-cli` do with their settings and their login, as their source has it; no more than that."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

HOME = Path(os.environ["HOME"])
DATA = Path(os.environ.get("XDG_DATA_HOME") or HOME / ".local" / "share")  # dirs::data_local_dir on Linux
KIRO = os.environ.get("STAND_IN") == "kiro"
SETTINGS = HOME / ".kiro" / "settings" / "cli.json" if KIRO else DATA / "amazon-q" / "settings.json"
DATABASE = DATA / ("kiro-cli" if KIRO else "amazon-q") / "data.sqlite3"
TOKEN = "kirocli:odic:token" if KIRO else "codewhisperer:odic:token"
SERVICE = "api.krs.service" if KIRO else "api.codewhisperer.service"
AWS = "https://q.us-east-1.amazonaws.com"
QUESTION = {
    "conversationState": {
        "conversationId": "c1",
        "chatTriggerType": "MANUAL",
        "currentMessage": {"userInputMessage": {"content": "say done", "origin": "CLI"}},
    }
}


def load_settings() -> dict[str, Any]:
    SETTINGS.parent.mkdir(parents=True, exist_ok=True)
    if not SETTINGS.exists():
        SETTINGS.write_text("{}")
    with SETTINGS.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        loaded: dict[str, Any] = json.load(file)
    return loaded


def save_settings(settings: dict[str, Any]) -> None:
    """All that was read at the start and what changed since, sorted, over whatever is there by now."""
    with SETTINGS.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump(settings, file, indent=2, sort_keys=True)


def find_token() -> str:
    """A stored login first, a key in the environment second."""
    DATABASE.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(DATABASE) as database:
        database.execute("CREATE TABLE IF NOT EXISTS auth_kv (key TEXT PRIMARY KEY, value TEXT)")
        row = database.execute("SELECT value FROM auth_kv WHERE key = ?", (TOKEN,)).fetchone()
    database.close()
    if row is not None:
        token = json.loads(row[0])
        assert token["expires_at"] > "2026"
        return str(token["access_token"])
    key = os.environ.get("KIRO_API_KEY", "") if KIRO else ""
    return key if key.startswith("ksk_") else ""


def find_endpoint(settings: dict[str, Any]) -> str:
    """Anything but an object with two texts is as good as nothing."""
    service = settings.get(SERVICE)
    if isinstance(service, dict) and isinstance(service.get("endpoint"), str) and service.get("region"):
        return str(service["endpoint"])
    return AWS


def ask(endpoint: str, token: str) -> dict[str, Any]:
    """The path of the endpoint stays in front, as smithy-rs joins them."""
    request = urllib.request.Request(
        endpoint.removesuffix("/") + "/",
        data=json.dumps(QUESTION).encode(),
        headers={
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": "AmazonCodeWhispererStreamingService.GenerateAssistantResponse",
            "authorization": f"Bearer {token}",
        },
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request) as response:
            return {"status": response.status, "id": response.headers["x-dragoman-request-id"]}
    except urllib.error.HTTPError as error:
        with error:
            return {"status": error.code, "id": error.headers["x-dragoman-request-id"]}


def main(argv: list[str]) -> int:
    settings = load_settings()
    token = find_token()
    if argv[:1] == ["whoami"]:
        return 0 if token else 1
    if argv[:1] == ["settings"]:
        print(json.dumps(settings))
        return 0
    if not token:
        print("You are not logged in, please log in with q login")
        return 1
    endpoint = find_endpoint(settings)
    report = {"argv": argv, "endpoint": endpoint, "token": token, "settings": settings}
    report |= ask(endpoint, token) if endpoint != AWS else {}
    if "SAVE" in os.environ:
        save_settings(settings | json.loads(os.environ["SAVE"]))
    part = Path(os.environ["REPORT"] + ".part")
    part.write_text(json.dumps(report))
    part.rename(os.environ["REPORT"])
    try:
        deadline = time.monotonic() + 60
        while os.environ.get("UNTIL") and not Path(os.environ["UNTIL"]).exists():
            if time.monotonic() > deadline:
                return 9
            time.sleep(0.02)
    except KeyboardInterrupt:
        return 5
    return int(os.environ.get("CODE", "0"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
