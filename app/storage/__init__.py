"""Postgres: tables, repositories, partitions, rollups, and an embedded server."""
