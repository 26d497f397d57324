"""Delivery of what was decided: the outbox courier and its channels."""
