"""Application Default Credentials for Vertex AI, obtained with google-auth only (known problem L9)."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

from dragoman.errors import ConfigError

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class DefaultCredentials:
    """Provide request headers from Application Default Credentials.

    An expired token is refreshed in a thread. Raise `ConfigError` if google-auth is not installed, or (with
    kind "permission") if the credentials cannot be loaded or refreshed.
    """

    def __init__(self, project: str) -> None:
        if find_spec("google") is None or find_spec("google.auth") is None:
            raise ConfigError(
                "Vertex needs the extra\npip install 'dragoman[vertex]', or set GEMINI_API_KEY instead"
            )
        self._project = project
        self._credentials: Any = None
        self._lock = asyncio.Lock()

    async def headers(self) -> dict[str, str]:
        async with self._lock:
            if self._credentials is None or not self._credentials.valid:
                await asyncio.to_thread(self._refresh)
        return {"authorization": f"Bearer {self._credentials.token}", "x-goog-user-project": self._project}

    def _refresh(self) -> None:
        import google.auth
        import google.auth.exceptions
        import google.auth.transport.requests

        try:
            if self._credentials is None:
                self._credentials, _ = google.auth.default(scopes=[_SCOPE])
            self._credentials.refresh(google.auth.transport.requests.Request())
        except google.auth.exceptions.GoogleAuthError as error:
            why = f"Google's default credentials do not work: {error}"
            raise ConfigError(why, kind="permission") from error
