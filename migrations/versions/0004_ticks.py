"""What became of each tick, and a walk that survives a clock set back."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE schedule_mark ADD COLUMN high timestamptz, ADD COLUMN turn integer NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE claims ADD COLUMN result text")
    op.execute("CREATE INDEX claims_claimed_at ON claims (claimed_at)")
