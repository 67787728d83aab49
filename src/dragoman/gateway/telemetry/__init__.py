"""What the gateway records of its requests: the recorder of one request, the hub of observers, the ledger."""
