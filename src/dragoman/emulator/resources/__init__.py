"""What stands beside the models: caches, files, embeddings and the lists of all of them."""
