"""Facts: accelerators, models, quantizations and providers, with a source in each row."""
