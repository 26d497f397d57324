"""What a deployment should reach: roofline, latency law, prefill, speculation, baseline."""
