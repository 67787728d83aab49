"""Records of finished requests: logs, metrics, traces, captures, usage and prices."""
