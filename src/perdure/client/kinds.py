"""Kinds as a gateway tells of them."""

from perdure import wire
from perdure.domain.retry import Retry
from perdure.engine.engine_settings import EngineSettings
from perdure.engine.kinds import Kind, Names, resolve
from perdure.engine.requests import KindDefinition


def kind_of(body: wire.Kind) -> Kind:
    """The kind that a body tells. Of its retries only the number of attempts is told."""
    definition = KindDefinition(
        kind=body.name,
        schema=body.schema,
        queue=body.queue,
        priority=body.priority,
        retry=Retry(body.max_attempts),
        timeout=body.timeout,
        ttl=body.ttl,
        execution_limit=body.execution_limit,
        lease=body.lease,
        max_losses=body.max_losses,
        on_loss=body.on_loss,  # type: ignore[arg-type]
        capabilities=body.capabilities,
        limits=body.limits,
        fair_by=body.fair_by,
        breaker=body.breaker,
        unique=body.unique,
        redact=body.redact,
    )
    defaults = resolve(definition, EngineSettings(), Names.fresh())
    return Kind(body.name, body.version, defaults, body.schema, body.paused)
