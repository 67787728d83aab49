"""An archive of path tricks: each is refused, or harmless and only a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.tools.errors import ToolError, ToolRefused
from dragoman.tools.fs.sandbox import MAX_DEPTH, PathRules, Sandbox, printable_path, replace_file
from tests.fuzz.tree_snapshot import snapshot

TRAVERSAL = """
.. ../ ../x ../../etc/passwd ./../x a/.. a/../b a/../../b a/b/../../.. a/./../x foo/../../../etc/shadow ..//x
a//../x .//..//x ../project ../project/x ../project-evil/canary.txt ../../ a/.././../x x/y/z/../../../../w
very/deep/path/../../../../../../../etc a/b/c/d/e/../../../../.. ./.. ./../ ../. .././ a/../.
../../../../../../../../../../../../etc/passwd ....//../x ..;/../x %2e%2e/../x
""".split()
ABSOLUTE = """
/ // /etc/passwd //etc/passwd ///etc/passwd /./etc/passwd /../etc/passwd /etc/../etc/passwd /proc/self/root
/proc/self/cwd/x /proc/self/environ /proc/1/root/etc/passwd /proc/self/fd/3 /proc/thread-self/root /dev/null
/dev/stdin /dev/fd/0 /dev/mem /dev/tcp/127.0.0.1/80 /sys/kernel /home/user/.ssh/id_rsa /var/log/auth.log /.
/.. /tmp /tmp/x /run/secrets/x /root/.bashrc
""".split()
HOME = "~ ~/ ~/.ssh/id_rsa ~/Desktop/x ~root/.bashrc ~user/x ~/../x".split()
GIT = (
    *".git .git/ .git/config .git/hooks/pre-commit sub/.git sub/.git/HEAD .GIT/config .Git/hooks/x .gIt".split(),
    ".git./config", ".git /config", ".git. . /x", ".g\u200cit/config", "\ufeff.git/config", ".git\u200f",
)  # fmt: skip
SECRET = """
.env .env.local .env.production config/.env.development .ENV .Env.Local .ssh .ssh/id_rsa .aws/credentials
.gnupg/secring .kube/config .netrc .npmrc .pypirc id_rsa deploy/id_ed25519 server.pem private.key Private.KEY
credentials.json a/b/credentials.json .env. .env\u200b
""".split()
TEXT = (
    "", "\0", "a\0b", "a\0/../x", "file\0.txt", ".env\0.txt", "\ud800", "a/\udcff", "x" * 256, "a/" + "é" * 128,
    "a/" * 2048 + "x", "x/" * (MAX_DEPTH + 1) + "x",
)  # fmt: skip
REFUSED = [*TRAVERSAL, *ABSOLUTE, *HOME, *GIT, *SECRET, *TEXT]

HARMLESS = (
    *"... .... ..a a.. .gitignore .github/x .gitmodules git .git2 a.git .envrc env .env.example .env.sample".split(),
    *"%2e%2e/x %2e%2e%2fetc%2fpasswd ..%2fx ..%c0%afx C:/x C:\\x \\\\host\\share ..\\x ..\\..\\x a\\..\\b".split(),
    *"con nul aux.txt com1 LPT1 x::$DATA x:stream GIT~1 file.txt::$INDEX x.key.txt pem key id_rsa.pub".split(),
    *"$HOME/x ${HOME} $(id) `id` *?[] ;ls |x &x >x <x -rf --help '\"".split(),
    "a.", "a ", " a", " ", "a. . .", "a\nb", "a\tb", "a\x1b[2J", "․․/x", "‥/x", "．．/x", "a∕b", "／etc/passwd",
    "\u202e/x", "x" * 255, "é" * 127, "~x", "a/~", "a/~/b", "~$doc.docx", "password_reset.py", "file:/x",
)  # fmt: skip


def test_the_archive_is_worth_its_name() -> None:
    assert len(set(REFUSED)) >= 100
    assert len(set(HARMLESS)) >= 50


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: ascii(path)[:60])
def test_refused_for_reading_and_writing(path: str, tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "a/b").mkdir(parents=True)
    before = snapshot(tmp_path)
    sandbox = Sandbox(root)
    with pytest.raises(ToolRefused), sandbox.open_entry(path) as place:
        place.read(100)
    with pytest.raises(ToolRefused), sandbox.open_entry(path, create_parents=True) as place:
        replace_file(place, b"x")
    if path:
        with pytest.raises(ToolRefused), sandbox.open_directory(path):
            pass
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("path", HARMLESS, ids=lambda path: ascii(path)[:60])
def test_harmless_names_are_names_and_stay_as_they_are(path: str, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    with Sandbox(root).open_entry(path, create_parents=True) as place:
        replace_file(place, b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project"]
    written = [str(found.relative_to(root)) for found in root.rglob("*") if found.is_file()]
    assert written == [path]


def test_a_reason_is_one_harmless_line() -> None:
    for path in REFUSED:
        with pytest.raises(ToolError) as caught:
            PathRules().split(path)
        said = str(caught.value)
        assert said.isprintable()
        assert len(said) < 400
    assert printable_path("a\x1b[2J") == r"'a\x1b[2J'"


def test_secrets_are_a_setting_and_git_is_not() -> None:
    assert PathRules(()).split(".env") == [".env"]
    assert PathRules(("*.sql",)).split("id_rsa") == ["id_rsa"]
    with pytest.raises(ToolRefused, match="secrets"):
        PathRules(("*.SQL",)).split("dump.Sql")
    with pytest.raises(ToolRefused):
        PathRules(()).split(".git/config")
