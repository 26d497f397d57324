"""When and where probes run: ticks, jobs, workers, locations."""
