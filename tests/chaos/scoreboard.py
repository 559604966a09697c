"""The cases of the scoreboard, and how one is run and told."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from chaos import (
    databases,
    deaths,
    disks,
    flows,
    gateways,
    latency,
    pauses,
    races,
    scheduling,
    server_disks,
    server_power,
    strangers,
    unique_races,
)
from chaos.arena import Arena, NotRun, held
from chaos.grounds import STORES, ground


class Case(NamedTuple):
    """One row of the scoreboard. `number` is empty for what must be shown beside it."""

    number: str
    name: str
    run: Callable[[Arena], Awaitable[None]]
    seconds: int = 120
    """How long it may take in the long tier, whatever happens."""
    short: bool = True
    """It has a form that is short enough for every run of the tests."""
    patient: bool = False
    """It mostly waits for leases to run out: others may go on beside it."""
    stores: tuple[str, ...] = STORES
    """The stores that it is about."""
    settings: Mapping[str, str] = MappingProxyType({})
    """What a PostgreSQL server is started with."""


FILES, SERVERS = ("sqlite",), ("postgres",)

CASES = (
    Case("1", "worker killed", deaths.killed_in_the_middle, 240, patient=True),
    Case("2", "crash points", deaths.every_crash_point, 900),
    Case("3", "poison", deaths.poison, patient=True),
    Case("4", "zombie, second attempt", pauses.wakes_during_the_second_attempt, patient=True),
    Case("5", "zombie, after the end", pauses.wakes_after_the_end, patient=True),
    Case("6", "GIL held", pauses.gil_held, patient=True),
    Case("7", "gateway killed", gateways.killed_under_load, 240, short=False),
    Case("8", "rolling deploy", deaths.rolling_deploy),
    Case("8", "rolling deploy, gateway", gateways.rolling_deploy, short=False),
    Case("9", "clock jumps", pauses.wall_clock_jumps, patient=True),
    Case("10", "DST and downtime", scheduling.dst_and_downtime, 300, stores=FILES),
    Case("11", "answer lost", gateways.answers_lost),
    Case("12", "parts repeated", gateways.parts_repeated),
    Case("14", "slow, one-way links", gateways.bad_links, 300, short=False),
    Case("13", "black hole", databases.black_hole, 180, short=False, stores=SERVERS),
    Case("15", "server restarts", databases.restarts, 240, stores=SERVERS),
    Case("16", "power loss, server", server_power.power_loss, 280, short=False, stores=SERVERS),
    Case("17", "power loss", disks.power_loss, stores=FILES),
    Case("18", "wake-ups lost", databases.wake_ups_lost, 240, stores=SERVERS),
    Case("19", "disk full", disks.disk_full, stores=FILES),
    Case("19", "disk full, server", server_disks.disk_full, 240, short=False, stores=SERVERS),
    Case("20", "fsync fails", disks.fsync_fails, stores=FILES),
    Case("20", "fsync fails, server", server_disks.fsync_fails, 300, short=False, stores=SERVERS),
    Case("21", "old snapshot", databases.old_snapshot, 400, short=False, stores=SERVERS),
    Case("22", "serialization storm", databases.storm, 300, stores=SERVERS),
    Case(
        "23",
        "few connections",
        databases.few_connections,
        240,
        short=False,
        stores=SERVERS,
        settings=databases.FEW_CONNECTIONS,
    ),
    Case("24", "contention", races.contention, 300, stores=FILES),
    Case("27", "fan-in race", races.fan_in, 400),
    Case("28", "cancel race", races.cancel_race, 400),
    Case("29", "idempotency race", races.one_key),
    Case("29", "unique race", unique_races.unique_race, 300),
    Case("29", "debounce race", unique_races.debounce_race, 300),
    Case("30", "two schedulers", scheduling.two_schedulers, 300),
    Case("31", "hostile payloads", strangers.hostile),
    Case("32", "slow and greedy", strangers.slow_and_greedy, 240, short=False),
    Case("", "SIGTERM", deaths.told_to_end_in_the_middle),
    Case("", "renews for ever", pauses.renews_for_ever, patient=True),
    Case("", "limits under kills", flows.limits_under_kills, 500),
    Case("", "two processes", latency.two_processes, 240),
)


class Outcome(NamedTuple):
    """What became of a case. `not_run` tells what it lacks."""

    case: Case
    seed: int
    seconds: float
    recovery: float | None
    figures: dict[str, object]
    wrong: list[str]
    not_run: str = ""

    @property
    def verdict(self) -> str:
        """pass, FAIL or NOT RUN."""
        return "NOT RUN" if self.not_run else "FAIL" if self.wrong else "pass"

    def row(self) -> str:
        """One line of the table."""
        recovery = "-" if self.recovery is None else f"{self.recovery:.2f} s"
        told = self.not_run or ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.figures.items())
        what = f"{self.case.number:>3}  {self.case.name:<24} {self.seed:>10}"
        return f"{what}  {self.seconds:>7.1f} s  {recovery:>10}  {self.verdict:<8} {told}"


HEAD = f"{'#':>3}  {'case':<24} {'seed':>10}  {'took':>9}  {'recovery':>10}  {'verdict':<8} figures"


def play(case: Case, seed: int, quick: bool, store: str = "sqlite") -> Outcome:
    """Run one case in a folder that is gone afterwards."""
    if store not in case.stores:
        return Outcome(case, seed, 0.0, None, {}, [], f"it is not about a store on {store}")
    began = time.monotonic()
    seconds = 100 if quick else case.seconds
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        try:
            with ground(store, Path(name), case.settings) as below:
                arena = asyncio.run(held(Path(name), below, seed, quick, seconds, case.run))
        except NotRun as error:
            return Outcome(case, seed, time.monotonic() - began, None, {}, [], str(error))
    return Outcome(case, seed, time.monotonic() - began, arena.recovery, arena.figures, arena.wrong)
