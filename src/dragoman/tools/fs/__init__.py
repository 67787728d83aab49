"""The file tools: list, read, write, edit and search files, list and restore backups."""

from dragoman.tools.fs.backups import Backup, Backups
from dragoman.tools.fs.definitions import FileTools, file_tools
from dragoman.tools.fs.limits import FileLimits

__all__ = ["Backup", "Backups", "FileLimits", "FileTools", "file_tools"]
