"""Diagnoses that were asked for, how far they are, and what they found."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("""
        CREATE TABLE diagnoses (
            id text PRIMARY KEY,
            target text NOT NULL,
            location text NOT NULL,
            state text NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed')),
            question jsonb NOT NULL,
            asked_at timestamptz NOT NULL,
            started_at timestamptz,
            beat_at timestamptz,
            finished_at timestamptz,
            owner text,
            progress jsonb,
            error text,
            report jsonb
        )
    """)
    op.execute("CREATE UNIQUE INDEX diagnoses_one ON diagnoses (target, location) WHERE state IN ('queued', 'running')")
    op.execute("CREATE INDEX diagnoses_by_target ON diagnoses (target, asked_at DESC)")
