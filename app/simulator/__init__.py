"""A provider to try things on, whose speed follows the theory."""
