"""The store's time is the server's; another start of the server may be another clock."""

from backends.postgres.opened import one, opened, plain
from conformance.stores import ManualClock
from perdure.domain.limits import LEASE_DEFAULT_US, SECOND_US

NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
SUSPENDED = "SELECT value::bigint FROM perdure_meta WHERE key = 'losses_suspended_until_us'"


async def test_time_is_the_servers(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        with plain(postgres_database) as connection:
            before = one(connection, NOW)
            assert before <= await store.ledger.now_us() <= one(connection, NOW)


async def test_a_clock_that_is_handed_in_is_the_stores_time(postgres_database: str) -> None:
    clock = ManualClock()
    async with opened(postgres_database, clock=clock) as store:
        before = await store.ledger.now_us()
        clock.advance(7 * SECOND_US)
        assert await store.ledger.now_us() == before + 7 * SECOND_US == clock.wall_us()


async def test_the_same_start_of_the_server_suspends_nothing(postgres_database: str) -> None:
    for _ in range(2):
        async with opened(postgres_database) as store:
            assert await store.ledger.losses_suspended_until() == 0


async def test_another_start_of_the_server_suspends_losses_for_a_lease(postgres_database: str) -> None:
    clock = ManualClock()
    async with opened(postgres_database, clock=clock):
        pass
    with plain(postgres_database) as connection:
        connection.execute("UPDATE perdure_meta SET value = '1' WHERE key = 'server_start_us'")
    for _ in range(2):
        async with opened(postgres_database, clock=clock) as store:
            assert await store.ledger.losses_suspended_until() == ManualClock().wall_us() + LEASE_DEFAULT_US
        clock.advance(SECOND_US)


async def test_a_longer_suspension_is_not_shortened_by_another_start(postgres_database: str) -> None:
    clock = ManualClock()
    far = clock.wall_us() + 3 * LEASE_DEFAULT_US
    async with opened(postgres_database, clock=clock) as store:
        await store.ledger.suspend_losses(far)
    with plain(postgres_database) as connection:
        connection.execute("UPDATE perdure_meta SET value = '1' WHERE key = 'server_start_us'")
    async with opened(postgres_database, clock=clock):
        with plain(postgres_database) as connection:
            assert one(connection, SUSPENDED) == far
