"""Everything in the terms of tasks makes their lane, or is written with them: nothing is forgotten."""

from perdure.domain.task import Terms
from perdure.store.relational.sharing import LANE, SPECIFICATION


def test_every_field_of_the_terms_is_the_lanes_or_written():
    assert {*LANE, *SPECIFICATION} == {*Terms._fields}
