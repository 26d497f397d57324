"""Results of ticks that are counted where they stand, and a walk whose age the database knows."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE claims ADD COLUMN counted boolean NOT NULL DEFAULT false")
    op.execute("UPDATE claims SET counted = true WHERE result IS NOT NULL")
    op.execute("CREATE INDEX claims_uncounted ON claims (result) WHERE result IS NOT NULL AND NOT counted")
    op.execute("ALTER TABLE schedule_mark ADD COLUMN saved_at timestamptz NOT NULL DEFAULT now()")
