"""The resources next to generation: models, caches, files and embeddings."""
