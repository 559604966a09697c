"""How a worker stops: what waits goes back at once, what runs gets a grace period, the rest goes back too."""

import logging

from perdure.errors import PerdureError
from perdure.worker.held import StopReason
from perdure.worker.lanes import Lanes
from perdure.worker.settling import SettleBuffer
from perdure.worker.work_source import WorkSource

logger = logging.getLogger("perdure.worker")

DELIVERY_SECONDS = 10.0
"""How long the last outcomes may take to be delivered; what is left then is lost and runs elsewhere."""
STOP_EXTRA_SECONDS = 1.0


async def drain(lanes: Lanes, buffer: SettleBuffer, grace: float, stop_grace: float, run_waiting: bool = False) -> None:
    """Return when nothing runs and everything that could be delivered is delivered.

    Seconds: `grace` for handlers to end by themselves, then `stop_grace` for them to stop when told to. With
    `run_waiting` what waits here is not handed back before the grace is over.
    """
    if not run_waiting:
        hand_back_waiting(lanes)
    if not await lanes.quiet(grace):
        hand_back_waiting(lanes)
        unfinished = lanes.running
        logger.warning("%d handlers did not end within %g s and are stopped", len(unfinished), grace)
        for held in unfinished:
            lanes.stop(held, StopReason.DRAIN)
        await lanes.quiet(stop_grace + STOP_EXTRA_SECONDS)
    if not await buffer.delivered(DELIVERY_SECONDS):
        logger.error("outcomes could not be delivered before the end; their leases will run out")


async def leave(source: WorkSource, worker_id: str) -> None:
    """Say that the worker is gone for good, if the source can be told."""
    try:
        await source.leave(worker_id)
    except PerdureError as error:
        logger.warning("the worker could not say that it leaves: %s", error)


def hand_back_waiting(lanes: Lanes) -> None:
    """Give up the leases whose handlers have not begun."""
    for held in list(lanes.waiting):
        lanes.stop(held, StopReason.DRAIN)
