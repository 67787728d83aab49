"""Authentication of API requests: gateway keys, AWS signatures and clients' own Google keys."""
