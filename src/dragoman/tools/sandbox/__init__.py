"""All access to the files of a project goes through here: by descriptor, below one root, no link out."""

from dragoman.tools.sandbox.names import SECRETS, Names
from dragoman.tools.sandbox.place import Place, replace, sweep
from dragoman.tools.sandbox.walk import Sandbox

__all__ = ["SECRETS", "Names", "Place", "Sandbox", "replace", "sweep"]
