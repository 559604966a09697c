"""Whether anything is held, or may be in a moment: what a duty goes by that looks for losses."""

from conformance.making import World, us


async def test_something_is_held_from_when_it_can_be_claimed_until_it_has_ended(world: World) -> None:
    await world.worker()
    assert not await world.ledger.holding()
    await world.submit(delay_us=us(60))
    assert not await world.ledger.holding()
    await world.submit()
    assert await world.ledger.holding()
    (lease,) = await world.claim(1)
    assert await world.ledger.holding()
    await world.finish(lease)
    assert not await world.ledger.holding()
