"""What a history must be before it can leave."""

from dragoman.repair.history import repair
from dragoman.repair.signatures import apply_signatures, last_user, text_key, wanted_keys

__all__ = ["apply_signatures", "last_user", "repair", "text_key", "wanted_keys"]
