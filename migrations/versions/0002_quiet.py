"""Who was told of an incident and why it is held back; what waits in the outbox to be merged."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE incidents ADD COLUMN channels text[] NOT NULL DEFAULT '{}', ADD COLUMN held text")
    op.execute("ALTER TABLE outbox ADD COLUMN group_key text, ADD COLUMN merged_into text")
    op.execute("CREATE INDEX outbox_merged ON outbox (merged_into) WHERE merged_into IS NOT NULL")
