"""Whatever the numbers, what waits again does so within its budgets and before its deadline."""

from hypothesis import given
from hypothesis import strategies as st

from domain.test_settlement import BOOM, NOW, S, facts
from perdure.domain.outcome import Failed
from perdure.domain.retry import Retry
from perdure.domain.settlement import Charge, settle, settle_loss
from perdure.domain.states import TaskState


@given(
    failures=st.integers(0, 10),
    max_attempts=st.integers(1, 10),
    losses=st.integers(0, 10),
    max_losses=st.integers(1, 10),
    left=st.integers(0, 1000),
    ttl=st.none() | st.integers(0, 1000),
    spread=st.floats(-1, 1),
    on_loss=st.sampled_from(("retry", "count", "fail")),
    charged=st.booleans(),
)
def test_what_waits_is_due_before_its_deadline_and_within_its_budgets(
    failures: int,
    max_attempts: int,
    losses: int,
    max_losses: int,
    left: int,
    ttl: int | None,
    spread: float,
    on_loss: str,
    charged: bool,
) -> None:
    each = facts(
        failures=min(failures, max_attempts - 1),
        max_attempts=max_attempts,
        losses=min(losses, max_losses - 1),
        max_losses=max_losses,
        on_loss=on_loss,
        deadline_us=NOW + left * S,
        expires_us=None if ttl is None else NOW + ttl * S,
    )
    retry = Retry()
    for settlement in (settle(Failed(BOOM), each, retry, spread), settle_loss(each, retry, spread, charged)):
        if settlement.state is TaskState.RETRYING:
            assert NOW + settlement.delay_us < each.deadline_us
        if settlement.state in (TaskState.RETRYING, TaskState.QUEUED):
            spent_attempt = settlement.charge in (Charge.ATTEMPT, Charge.LOSS_AND_ATTEMPT)
            spent_loss = settlement.charge in (Charge.LOSS, Charge.LOSS_AND_ATTEMPT)
            assert each.failures + spent_attempt < max_attempts
            assert each.losses + spent_loss < max_losses
