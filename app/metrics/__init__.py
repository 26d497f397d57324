"""The Prometheus view of the current state."""
