"""The picture of `dragoman chat` in the README: a real session in tmux, its screen as SVG.

Made anew by `python -m tests.e2e.record_chat_svg`; needs tmux.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "chat.svg"
COLUMNS, ROWS = 92, 30
_CELL, _LINE, _MARGIN = 8.43, 19, 16
_COLOURS = {
    "31": "#ff7b72",
    "32": "#7ee787",
    "33": "#e3b341",
    "34": "#79c0ff",
    "35": "#d2a8ff",
    "36": "#56d4dd",
}
_SEQUENCE = re.compile(r"\x1b\[([0-9;]*)m|\x1b[()][A-Z0-9]")
_PATIENCE_S = 30.0

#: What is typed, and what must be seen before the next line is typed.
SESSION = (
    ("", "/help lists the commands"),
    ("list the files", "list_files returned"),
    (
        'use edit_file with {"path": "src/main.rs", "old": "world", "new": "dragoman"} '
        "then say **Done.** `main.rs` greets you now.",
        "ne[v]er:",
    ),
    ("y", "Done. main.rs greets"),
    ("/undo", "undone"),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "hello"
        (project / "src").mkdir(parents=True)
        (project / "src" / "main.rs").write_text('fn main() {\n    println!("Hello, world!");\n}\n')
        (project / "Cargo.toml").write_text('[package]\nname = "hello"\n')
        screen = play(project, Path(folder) / "state")
    PICTURE.write_text(draw(screen.replace(str(project), "~/hello")), "utf-8")


def play(project: Path, state: Path) -> str:
    """The screen at the end, with its colours."""
    tmux = ["tmux", "-L", f"dragoman-{os.getpid()}"]
    run = f"{sys.executable} -m dragoman chat"
    env = {"PATH": os.environ["PATH"], "HOME": str(state), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    env |= {"DRAGOMAN_HOME": str(state), "DRAGOMAN_SERVER_PORT": "0"}
    size = ["-x", str(COLUMNS), "-y", str(ROWS)]
    subprocess.run([*tmux, "new-session", "-d", *size, "-c", str(project), run], env=env, check=True)
    try:
        for typed, seen in SESSION:
            if typed:
                subprocess.run([*tmux, "send-keys", "-l", typed], check=True)
                subprocess.run([*tmux, "send-keys", "Enter"], check=True)
            _await(tmux, seen)
            time.sleep(1)  # the prompt comes after the last words
        return _capture(tmux, "-e")
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)


def _await(tmux: list[str], words: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while words not in " ".join(_capture(tmux).split("\n")):
        if time.monotonic() > deadline:
            raise SystemExit(f"{words!r} did not come:\n{_capture(tmux)}")
        time.sleep(0.1)


def _capture(tmux: list[str], *flags: str) -> str:
    done = subprocess.run([*tmux, "capture-pane", "-p", *flags], capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


def draw(screen: str) -> str:
    """Lines of text with colours as a picture of a terminal."""
    lines = screen.split("\n")
    width = round(COLUMNS * _CELL + 2 * _MARGIN)
    height = len(lines) * _LINE + 2 * _MARGIN + 24
    rows = []
    state: dict[str, str] = {}
    for number, line in enumerate(lines):
        y = _MARGIN + 24 + (number + 1) * _LINE - 5
        rows.append(f'<text x="{_MARGIN}" y="{y}" xml:space="preserve">{_spans(line, state)}</text>')
    dots = "".join(
        f'<circle cx="{_MARGIN + 6 + 20 * place}" cy="18" r="6" fill="{colour}"/>'
        for place, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
    )
    body = "\n".join(rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="dragoman chat in a terminal" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, '
        f'monospace" font-size="14" fill="#e6edf3">\n<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n'
        f"{dots}\n{body}\n</svg>\n"
    )


def _spans(line: str, state: dict[str, str]) -> str:
    spans, start = [], 0
    for found in _SEQUENCE.finditer(line):
        spans.append(_span(line[start : found.start()], state))
        start = found.end()
        for code in (found[1] or "0").split(";") if found[1] is not None else ():
            _apply(code, state)
    return "".join([*spans, _span(line[start:], state)])


def _apply(code: str, state: dict[str, str]) -> None:
    if code in ("", "0"):
        state.clear()
    elif code == "39":
        state.pop("fill", None)
    elif code in _COLOURS:
        state["fill"] = _COLOURS[code]
    elif code == "1":
        state["font-weight"] = "bold"
    elif code == "2":
        state["fill-opacity"] = "0.6"


def _span(text: str, state: dict[str, str]) -> str:
    words = html.escape(text)
    if not state or not text:
        return words
    looks = " ".join(f'{name}="{value}"' for name, value in state.items())
    return f"<tspan {looks}>{words}</tspan>"


if __name__ == "__main__":
    main()
