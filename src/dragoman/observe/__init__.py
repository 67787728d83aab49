"""What happened and what it cost."""
