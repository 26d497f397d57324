"""The one place that builds the object graph."""
