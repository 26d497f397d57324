"""The read side, and the small writes that people ask for: one session a request, plain objects out."""
