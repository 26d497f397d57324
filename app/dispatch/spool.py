"""Runs that could not be stored wait on disk, bounded, until the database is back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.measurement.model import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Spool:
    """A directory with one file a run, written whole or not at all; at most `limit` files."""

    directory: Path
    limit: int = 10_000

    def put(self, run: Run) -> bool:
        """Keep a run; False when the spool is full or the disk refuses."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            if sum(1 for _ in self.directory.iterdir()) >= self.limit:
                return False
            partial = self.directory / f".{run.id}.part"
            partial.write_bytes(msgspec.json.encode(run))
            os.replace(partial, self.directory / f"{run.due_at.timestamp():017.3f}-{run.id}.json")  # noqa: PTH105 - atomic
        except OSError:
            return False
        return True

    def waiting(self) -> Iterator[tuple[Path, Run]]:
        """The runs that wait, oldest first. A file that cannot be read is set aside as `.bad` and skipped."""
        if not self.directory.is_dir():
            return
        for path in sorted(self.directory.glob("*.json")):
            try:
                yield path, msgspec.json.decode(path.read_bytes(), type=Run)
            except (msgspec.MsgspecError, OSError):
                path.rename(path.with_suffix(".bad"))

    def done(self, path: Path) -> None:
        """Forget a run that has been stored."""
        path.unlink(missing_ok=True)
