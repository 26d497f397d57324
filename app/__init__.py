"""Bandwatch: how fast LLM providers are, and whether that is as fast as their hardware allows."""
