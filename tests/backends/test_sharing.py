"""Each field of a task is shared by a group of tasks or is its own: none is forgotten, none is both."""

from perdure.domain.task import Task
from perdure.store.relational.sharing import LANE, OWN, SPECIFICATION


def test_every_field_of_a_task_is_shared_or_its_own():
    assert sorted({*LANE, *SPECIFICATION, *OWN}) == sorted(Task._fields)
    assert not {*LANE, *SPECIFICATION} & {*OWN}
