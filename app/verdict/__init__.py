"""Judgement: a window of measurements against an expectation, incidents, diagnosis."""
