"""The first schema: runs by day, what follows from them, the outbox, and the queue."""

from __future__ import annotations

from alembic import op
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment

revision = "0001"
down_revision = None

TABLES = (
    """
    CREATE TABLE runs (
        id text NOT NULL,
        due_at timestamptz NOT NULL,
        target text NOT NULL,
        location text NOT NULL,
        provider text NOT NULL,
        model text NOT NULL,
        recipe text NOT NULL,
        started_at timestamptz NOT NULL,
        finished_at timestamptz NOT NULL,
        outcome text NOT NULL,
        error_class text NOT NULL,
        connection text NOT NULL,
        ttft_s double precision,
        ttft_reliable boolean NOT NULL,
        decode_tps double precision,
        tpot_s double precision,
        tps_reliable boolean NOT NULL,
        e2e_s double precision,
        gap_max_s double precision,
        connect_s double precision,
        tls_s double precision,
        output_tokens integer,
        contaminated boolean NOT NULL,
        cost_usd double precision,
        has_recording boolean NOT NULL,
        measurement jsonb NOT NULL,
        read_stamps_s double precision[] NOT NULL,
        read_tokens real[] NOT NULL,
        PRIMARY KEY (due_at, target, location)
    ) PARTITION BY RANGE (due_at)
    """,
    """
    CREATE INDEX runs_window ON runs (target, location, started_at) INCLUDE (
        due_at, outcome, error_class, connection, ttft_s, ttft_reliable, decode_tps, tps_reliable, e2e_s, connect_s, tls_s,
        output_tokens, contaminated
    )
    """,
    "CREATE INDEX runs_started_at ON runs (started_at)",
    "CREATE INDEX runs_id ON runs (id)",
    """
    CREATE TABLE recordings (
        run_id text PRIMARY KEY,
        target text NOT NULL,
        kept_at timestamptz NOT NULL,
        content bytea NOT NULL
    )
    """,
    "CREATE INDEX recordings_target ON recordings (target, kept_at)",
    """
    CREATE TABLE verdicts (
        target text NOT NULL,
        location text NOT NULL,
        due_at timestamptz NOT NULL,
        state text NOT NULL,
        severity text NOT NULL,
        checked_at timestamptz NOT NULL,
        verdict jsonb NOT NULL,
        trail jsonb NOT NULL,
        PRIMARY KEY (target, location)
    ) WITH (fillfactor = 70)
    """,
    """
    CREATE TABLE verdict_changes (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        target text NOT NULL,
        location text NOT NULL,
        at timestamptz NOT NULL,
        state text NOT NULL,
        severity text NOT NULL,
        verdict jsonb NOT NULL
    )
    """,
    "CREATE INDEX verdict_changes_target ON verdict_changes (target, at)",
    """
    CREATE TABLE incidents (
        id text PRIMARY KEY,
        target text NOT NULL,
        provider text NOT NULL,
        model text NOT NULL,
        location text NOT NULL,
        rule text NOT NULL,
        severity text NOT NULL,
        state text NOT NULL,
        opened_at timestamptz NOT NULL,
        updated_at timestamptz NOT NULL,
        resolved_at timestamptz,
        acknowledged_at timestamptz,
        resolve_reason text,
        summary text NOT NULL,
        verdict jsonb
    )
    """,
    "CREATE UNIQUE INDEX incidents_one_open ON incidents (target, location, rule) WHERE state = 'open'",
    "CREATE INDEX incidents_opened_at ON incidents (opened_at)",
    """
    CREATE TABLE incident_events (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        incident_id text NOT NULL REFERENCES incidents ON DELETE CASCADE,
        at timestamptz NOT NULL,
        kind text NOT NULL,
        summary text NOT NULL,
        verdict jsonb
    )
    """,
    "CREATE INDEX incident_events_incident ON incident_events (incident_id, id)",
    """
    CREATE TABLE outbox (
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text NOT NULL UNIQUE,
        channel text NOT NULL,
        type text NOT NULL,
        body jsonb NOT NULL,
        incident_id text,
        created_at timestamptz NOT NULL,
        state text NOT NULL DEFAULT 'pending',
        attempts integer NOT NULL DEFAULT 0,
        next_at timestamptz NOT NULL,
        lease_owner text,
        leased_until timestamptz,
        finished_at timestamptz
    ) WITH (fillfactor = 70)
    """,
    "CREATE INDEX outbox_pending ON outbox (channel, incident_id, seq) WHERE state = 'pending'",
    "CREATE INDEX outbox_state ON outbox (state, seq)",
    """
    CREATE TABLE delivery_attempts (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        outbox_id text NOT NULL REFERENCES outbox (id) ON DELETE CASCADE,
        at timestamptz NOT NULL,
        status integer,
        latency_s double precision NOT NULL,
        response text NOT NULL
    )
    """,
    "CREATE INDEX delivery_attempts_outbox ON delivery_attempts (outbox_id, id)",
    """
    CREATE TABLE disabled_channels (
        name text PRIMARY KEY,
        at timestamptz NOT NULL,
        reason text NOT NULL
    )
    """,
    """
    CREATE TABLE budgets (
        scope text NOT NULL,
        day date NOT NULL,
        tokens bigint NOT NULL,
        usd double precision NOT NULL,
        PRIMARY KEY (scope, day)
    ) WITH (fillfactor = 70)
    """,
    """
    CREATE TABLE claims (
        due_at timestamptz NOT NULL,
        target text NOT NULL,
        location text NOT NULL,
        owner text NOT NULL,
        claimed_at timestamptz NOT NULL,
        attempts integer NOT NULL,
        PRIMARY KEY (due_at, target, location)
    )
    """,
    """
    CREATE TABLE tick_counts (
        result text PRIMARY KEY,
        n bigint NOT NULL
    ) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE totals (
        target text NOT NULL,
        location text NOT NULL,
        totals jsonb NOT NULL,
        PRIMARY KEY (target, location)
    ) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE processes (
        instance text PRIMARY KEY,
        role text NOT NULL,
        location text NOT NULL,
        started_at timestamptz NOT NULL,
        beat_at timestamptz NOT NULL,
        stats jsonb NOT NULL
    ) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE schedule_mark (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        at timestamptz NOT NULL,
        keys text[] NOT NULL
    ) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE api_targets (
        name text PRIMARY KEY,
        document jsonb NOT NULL,
        created_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE api_channels (
        name text PRIMARY KEY,
        document jsonb NOT NULL,
        created_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE paused_targets (
        name text PRIMARY KEY,
        at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE silences (
        id text PRIMARY KEY,
        match jsonb NOT NULL,
        starts_at timestamptz NOT NULL,
        ends_at timestamptz NOT NULL,
        comment text NOT NULL,
        created_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE api_keys (
        id text PRIMARY KEY,
        name text NOT NULL,
        scope text NOT NULL,
        hash bytea NOT NULL UNIQUE,
        created_at timestamptz NOT NULL,
        revoked_at timestamptz
    )
    """,
    """
    CREATE TABLE audit (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at timestamptz NOT NULL,
        actor text NOT NULL,
        action text NOT NULL,
        object text NOT NULL,
        detail jsonb NOT NULL
    )
    """,
    """
    CREATE TABLE rollups (
        step_s integer NOT NULL,
        at timestamptz NOT NULL,
        target text NOT NULL,
        location text NOT NULL,
        outcomes jsonb NOT NULL,
        histograms jsonb NOT NULL,
        PRIMARY KEY (step_s, target, location, at)
    )
    """,
    """
    CREATE TABLE rollup_marks (
        step_s integer PRIMARY KEY,
        until timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE lessons (
        provider text NOT NULL,
        parameter text NOT NULL,
        learnt_at timestamptz NOT NULL,
        PRIMARY KEY (provider, parameter)
    )
    """,
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for statement in TABLES:
        op.execute(statement)
    queue = QueryBuilderEnvironment().build_install_query()  # many statements, which only asyncpg's own execute takes
    op.get_bind().connection.dbapi_connection.run_async(lambda connection: connection.execute(queue))
