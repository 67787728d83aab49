"""The file sandbox: all access to a project's files is by descriptor, below one root, with no symlink leading out."""

from dragoman.tools.sandbox.names import SECRET_NAMES, PathRules
from dragoman.tools.sandbox.place import SandboxEntry, remove_stale_drafts, replace_file
from dragoman.tools.sandbox.walk import Sandbox

__all__ = ["SECRET_NAMES", "PathRules", "Sandbox", "SandboxEntry", "remove_stale_drafts", "replace_file"]
