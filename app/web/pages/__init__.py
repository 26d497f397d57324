"""The pages, a file a subject."""
