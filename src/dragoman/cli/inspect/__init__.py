"""The commands that show what happened: captured requests, usage and cost, the audit log."""
