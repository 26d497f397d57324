"""From recorded bytes to figures: framing, dialects, timeline, measurement, outcome, statistics."""
