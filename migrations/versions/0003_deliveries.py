"""What came of deliveries, counted: rows of the outbox are trimmed and replayed, and a counter must not go back."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("""
        CREATE TABLE delivery_counts (
            channel text NOT NULL,
            result text NOT NULL,
            n bigint NOT NULL,
            PRIMARY KEY (channel, result)
        ) WITH (fillfactor = 50)
    """)
    op.execute("""
        INSERT INTO delivery_counts
        SELECT channel, state, count(*) FROM outbox WHERE state IN ('delivered', 'dead') GROUP BY channel, state
    """)
