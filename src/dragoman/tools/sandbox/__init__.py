"""The file sandbox: all access to a project's files is by descriptor, below one root, with no symlink leading out."""

from dragoman.tools.sandbox.names import SECRETS, Names
from dragoman.tools.sandbox.place import Place, replace, sweep
from dragoman.tools.sandbox.walk import Sandbox

__all__ = ["SECRETS", "Names", "Place", "Sandbox", "replace", "sweep"]
