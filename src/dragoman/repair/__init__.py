"""What a history must be before it can leave."""

from dragoman.repair.history import repair
from dragoman.repair.signatures import TEXT_KEY, apply_signatures, last_user, text_key, wanted_keys

__all__ = ["TEXT_KEY", "apply_signatures", "last_user", "repair", "text_key", "wanted_keys"]
