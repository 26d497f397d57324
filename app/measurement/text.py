"""Where in an answer something visible begins, as the text grows."""

from __future__ import annotations

from dataclasses import dataclass

OPENING, CLOSING = "<think>", "</think>"


@dataclass(slots=True)
class Visible:
    """Finds the first character that is not blank and not inside a leading `<think>` block."""

    _state: str = "lead"
    _tail: str = ""
    _began: int | None = None
    think: str | None = None
    """`open` or `closed`, once a leading block was seen."""

    def feed(self, text: str, index: int) -> int | None:
        """The index of the event in which something visible began, as soon as it is known; None before."""
        if self._state == "lead":
            return self._lead(text, index)
        if self._state == "think":
            joined = self._tail + text
            place = joined.find(CLOSING)
            if place < 0:
                self._tail = joined[-(len(CLOSING) - 1) :]
                return None
            self._state, self.think = "after", "closed"
            text = joined[place + len(CLOSING) :]
        return index if text.strip() else None

    def _lead(self, text: str, index: int) -> int | None:
        self._tail = (self._tail + text).lstrip()
        if self._tail and self._began is None:
            self._began = index
        if self._tail.startswith(OPENING):
            rest, self._tail = self._tail[len(OPENING) :], ""
            self._state, self.think = "think", "open"
            return self.feed(rest, index)
        if OPENING.startswith(self._tail):
            return None
        return self._began

    def end(self) -> int | None:
        """What was undecided when the stream ended: a mere beginning of `<think>` is visible text."""
        return self._began if self._state == "lead" and self._tail else None
