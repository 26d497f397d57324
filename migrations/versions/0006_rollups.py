"""Rollups that know what came late, and can be dropped by age."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("CREATE TABLE rollups_due (at timestamptz PRIMARY KEY)")
    op.execute("CREATE INDEX rollups_age ON rollups (step_s, at)")
