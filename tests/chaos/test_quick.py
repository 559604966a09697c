"""The short form of each case of the scoreboard; `make chaos` plays the long one."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from chaos.scoreboard import CASES, SERVERS, Case, Outcome, play
from servers.postgres import NoServer
from skipping import skip

SEED = 20_261_129
PATIENT = [case for case in CASES if case.patient]
BUSY = [case for case in CASES if case.short and not case.patient and "sqlite" in case.stores]
ON_SERVERS = [case for case in CASES if case.short and case.stores == SERVERS]


def told(outcomes: list[Outcome]) -> str:
    """What was wrong, case by case."""
    return "\n".join(line for each in outcomes if each.wrong for line in [each.row(), *each.wrong])


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name.replace(" ", "-")) for case in BUSY])
def test_the_short_form_holds(case: Case):
    outcome = play(case, SEED, quick=True)
    if outcome.not_run:
        skip(f"{case.name} was not run: {outcome.not_run}")
    assert not outcome.wrong, told([outcome])


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name.replace(" ", "-")) for case in ON_SERVERS])
def test_the_short_form_holds_on_postgresql(case: Case):
    try:
        outcome = play(case, SEED, quick=True, store="postgres")
    except NoServer as error:
        skip(str(error))
    assert not outcome.wrong, told([outcome])


def test_the_short_forms_that_wait_for_leases_hold_side_by_side():
    with ThreadPoolExecutor(len(PATIENT)) as pool:
        outcomes = list(pool.map(lambda case: play(case, SEED, quick=True), PATIENT))
    assert [each.case.name for each in outcomes if each.verdict == "pass"] == [case.name for case in PATIENT], told(
        outcomes
    )
