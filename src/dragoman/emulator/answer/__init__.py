"""Encode the model's reply as Google does: chunks, the merged response, and all metadata."""
