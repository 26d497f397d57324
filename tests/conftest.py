"""Fixtures for all tests."""

from collections.abc import Iterator

import pytest

from tests.support.postgres import Cluster, cluster


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    with cluster() as server:
        yield server


@pytest.fixture
def dsn(postgres: Cluster) -> str:
    return postgres.new_database()
