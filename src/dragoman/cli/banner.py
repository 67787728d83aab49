"""The output of `dragoman serve` when it is ready: the upstream, and settings to copy into each client."""

from __future__ import annotations

from dragoman.cli.launchers import CLIENTS
from dragoman.cli.settings import ClientKey
from dragoman.config import Config

API_KEY_URL = "https://aistudio.google.com/apikey"


def describe_upstream(config: Config) -> str:
    """Return a description of the upstream for the user."""
    upstream = config.upstream
    match config.backend:
        case "emulator":
            return (
                "Gemini emulator (configured)"
                if upstream.kind == "emulator"
                else "Gemini emulator (no Google API key)"
            )
        case "vertex":
            return f"Vertex AI ({upstream.project or 'express key'}, {upstream.location})"
        case "gemini":
            where = upstream.base_url or "Google AI Studio"
            return f"Gemini ({where})" + ("" if upstream.all_keys else ", clients send their own key")


def describe_models(config: Config) -> list[str]:
    """Return the effective model mapping, one line per rule (known problem M4)."""
    models = config.models
    rows = [("gemini-*", "unchanged"), *((f"*{word}*", model) for word, model in models.rules.items())]
    rows += [("*haiku*", models.haiku), ("*sonnet*", models.sonnet), ("*opus*", models.opus)]
    rows.append(("any other", models.default))
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  →  {model}" for name, model in rows]


def ready_banner(config: Config, base_url: str, key: ClientKey | None) -> str:
    """Return the ready line and client settings, which show how to read the key but not the key itself."""
    token = key.expression if key else "none"
    lines = [f"ready on {base_url} → {describe_upstream(config)}"]
    if config.backend == "emulator" and config.upstream.kind == "auto":
        lines += ["", f"  To use Gemini itself: export GEMINI_API_KEY=…  ({API_KEY_URL})"]
    if config.backend == "emulator":
        lines += [
            "",
            '  The emulator calls tools only on explicit instructions:  use Bash with {"command": "ls"} then say done',
        ]
    lines += [
        "",
        f"  Any client      dragoman {' | '.join(CLIENTS)}",
        f"  Claude Code     export ANTHROPIC_BASE_URL={base_url}",
        f'                  export ANTHROPIC_AUTH_TOKEN="{token}"',
        "                  unset ANTHROPIC_API_KEY; claude",
        f'  Anthropic SDK   Anthropic(base_url="{base_url}", auth_token=os.environ["ANTHROPIC_AUTH_TOKEN"])',
        f'  OpenAI SDK      OpenAI(base_url="{base_url}/v1", api_key=…)      Chat Completions and Responses',
        f'  Gemini SDK      genai.Client(api_key=…, http_options={{"base_url": "{base_url}"}})',
        f"  Dashboard       {base_url}/dashboard",
        f"  curl            curl {base_url}/v1/messages -H 'content-type: application/json' \\",
        f'                    -H "authorization: Bearer {token}" \\',
        """                    -d '{"model":"sonnet","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}'""",
        "",
        "  Models",
        *(f"    {row}" for row in describe_models(config)),
        "",
        "  Stop with Ctrl-C.",
    ]
    return "\n".join(lines)
