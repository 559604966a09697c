"""From a request to a task: checked, with the kind's and the system's defaults filled in, and an id of its own."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from perdure.ambient import Clock, Ids
from perdure.domain import limits
from perdure.domain.retry import Retry
from perdure.domain.task import NOTHING_RARE, ON_LOSS, Alike, FailurePolicy, Rare, Task, Terms, Trigger
from perdure.domain.unique import UniqueKey
from perdure.engine import encoding
from perdure.engine.encoding import Checked
from perdure.engine.kinds import Defaults, Kind, Kinds, Names, check_capabilities
from perdure.engine.names import check_key, check_prose
from perdure.engine.quantities import check_choice, check_count, check_priority, instant_us, seconds_us
from perdure.engine.requests import AlikeRequests, Principal, TaskRequest
from perdure.engine.unique_key import unique_key_of
from perdure.errors import Invalid

_TRACE = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]{0,200})?")

_NOT_HASHED = frozenset({"payload", "trace", "idempotency_key"})

_DEFAULT_RETRY = Retry()
_JSON = encoding.JSON
_NULL = b"null"
_NO_FIELDS = b"{}"
"""The payload of a task that says none, where its kind takes fields or results of others fill some."""


class Place(NamedTuple):
    """Where a task stands in its job."""

    job: str
    name: str
    trigger: Trigger
    if_failed: FailurePolicy
    waits: int
    bindings: dict[str, str | list[str]]


class Template(NamedTuple):
    """What tasks of a kind have that ask for nothing special."""

    kind: Kind
    terms: Terms
    rare: Rare


class TaskBuilder:
    """Builds the tasks of one call. Everything that is the same for all of them is worked out once."""

    def __init__(
        self,
        by: Principal,
        known: Mapping[str, Kind],
        kinds: Kinds,
        names: Names,
        ids: Ids,
        clock: Clock,
        payload_max_bytes: int,
        templates: dict[str, Template] | None = None,
        count: int = 0,
    ) -> None:
        """`templates`: those made before for the same `by` and `known`. `count`: how many tasks will be built, if that
        is known.
        """
        self._by = by
        self._initiator = by.initiator or by.name
        self._known = known
        self._kinds = kinds
        self._names = names
        self._new_id: Callable[[], str] = iter(ids.some(count)).__next__ if count else ids.new
        self._clock = clock
        self._payload_max_bytes = payload_max_bytes
        self._templates: dict[str, Template] = {} if templates is None else templates
        self.bytes_left = limits.SUBMIT_MAX_BYTES

    def build(self, request: TaskRequest) -> Task:
        """A task submitted alone. Raises a `Refused` that names the field."""
        template = self._templates.get(request.kind) if type(request.kind) is str else None
        if template is None:
            template = self._new_template(request.kind)
        payload = self._payload(request, template.kind)
        if _asks_for_nothing_but_a_key(request) and not _is_special(template.kind.defaults):
            rare = template.rare
            if request.idempotency_key is not None:
                key = check_key(request.idempotency_key)
                asked = _hash_of({"kind": request.kind}, encoding.as_said(request.payload, payload))
                rare = rare._replace(idempotency_key=key, request_hash=asked)
            return Task(self._new_id(), payload, template.terms, rare)
        return self._special(request, template, payload, None)

    def build_plain(self, requests: Sequence[TaskRequest]) -> Alike | None:
        """The tasks of requests that name one kind, ask for nothing special and have payloads that are known to fit.

        `None` for any others, of which nothing has been counted or refused then: that is for `build`.
        """
        said = requests if isinstance(requests, AlikeRequests) else _alike(requests)
        template = self._templates.get(said.kind) if said is not None else None
        if said is None or template is None or template.rare is not NOTHING_RARE or _is_special(template.kind.defaults):
            return None
        if not _all_known(said.payloads, template.kind):
            return None
        payloads = [each.data for each in said.payloads]
        sizes = [*map(len, payloads)]
        if max(sizes) > self._payload_max_bytes or sum(sizes) > self.bytes_left:
            return None
        try:
            # With something in between, so that no two of them make good UTF-8 which neither is.
            b" ".join(payloads).decode()
        except UnicodeDecodeError:
            return None
        self.bytes_left -= sum(sizes)
        new_id = self._new_id
        return Alike([new_id() for _ in payloads], payloads, template.terms)

    def build_in_job(self, request: TaskRequest, place: Place) -> Task:
        """A task of a job. Raises a `Refused` that names the field."""
        template = self._template_of(request.kind)
        payload = self._payload(request, template.kind, place.bindings)
        if not place.bindings and _asks_for_nothing_special(request) and not _is_special(template.kind.defaults):
            rare = template.rare._replace(job=place.job, name=place.name, waits=place.waits)
            terms = template.terms
            if (place.trigger, place.if_failed) != (terms.trigger, terms.if_failed):
                terms = terms._replace(trigger=place.trigger, if_failed=place.if_failed)
            return Task(self._new_id(), payload, terms, rare)
        return self._special(request, template, payload, place)

    def _template_of(self, kind: object) -> Template:
        template = self._templates.get(kind) if type(kind) is str else None
        return template or self._new_template(kind)

    def _new_template(self, said: object) -> Template:
        name = self._names.kind(said)
        kind = self._known.get(name) or self._kinds.unknown(name)
        defaults = kind.defaults
        terms = Terms(
            organization=self._by.organization,
            kind=name,
            queue=defaults.queue,
            priority=defaults.priority,
            capabilities=defaults.capabilities,
            encoding=_JSON,
            principal=self._by.name,
            initiator=self._initiator,
            ttl_us=defaults.ttl_us,
            execution_limit_us=defaults.execution_limit_us,
            timeout_us=defaults.timeout_us,
            lease_us=defaults.lease_us,
            max_attempts=defaults.retry.max_attempts,
            max_losses=defaults.max_losses,
            on_loss=defaults.on_loss,
            trigger="all_succeeded",
            if_failed="fail",
            retry=_retry_text(defaults.retry),
        )
        rare = Rare(options=_options_text({"redact": True})) if defaults.redact else NOTHING_RARE
        template = self._templates[name] = Template(kind, terms, rare)
        return template

    def _payload(self, request: TaskRequest, kind: Kind, bound: Collection[str] = ()) -> str:
        said = request.payload
        if type(said) is Checked and len(said.data) <= self._payload_max_bytes:
            data = said.data
        else:
            data = encoding.encode(said, "payload", self._payload_max_bytes)
        if data == _NULL and (bound or kind.takes_fields):
            data = _NO_FIELDS
        if kind.schema is not None and not kind.is_known_to_take(said):
            kind.check_payload(data, bound)
        self.bytes_left -= len(data)
        if self.bytes_left < 0:
            raise encoding.too_large(
                "the payloads of one call", limits.SUBMIT_MAX_BYTES, limits.SUBMIT_MAX_BYTES - self.bytes_left
            )
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise Invalid(f"payload is not UTF-8: {error}", field="payload") from None

    def _special(self, request: TaskRequest, template: Template, payload: str, place: Place | None) -> Task:
        defaults, terms = template.kind.defaults, template.terms
        retry = _merged_retry(request, defaults.retry)
        key = None if request.idempotency_key is None else check_key(request.idempotency_key)
        queue, priority, capabilities = self._line(request, defaults)
        unique = unique_key_of(request, template.kind, payload, None if place is None else place.bindings)
        times = _times(request, defaults, self._clock, unique)
        said = terms._replace(
            queue=queue,
            priority=priority,
            capabilities=capabilities,
            ttl_us=times.ttl_us,
            execution_limit_us=times.execution_limit_us,
            timeout_us=times.timeout_us,
            lease_us=times.lease_us,
            max_attempts=retry.max_attempts,
            max_losses=defaults.max_losses
            if request.max_losses is None
            else check_count(request.max_losses, "max_losses", 1, limits.MAX_LOSSES_LIMIT),
            on_loss=defaults.on_loss if request.on_loss is None else check_choice(request.on_loss, "on_loss", ON_LOSS),
            trigger=place.trigger if place else terms.trigger,
            if_failed=place.if_failed if place else terms.if_failed,
            retry=_retry_text(retry),
        )
        rare = Rare(
            delay_us=times.delay_us,
            run_at_us=times.run_at_us,
            idempotency_key=key,
            request_hash=None if key is None else request_hash(request, encoding.as_said(request.payload, payload)),
            job=place.job if place else None,
            name=place.name if place else None,
            waits=place.waits if place else 0,
            options=_options_text(
                _options(request, defaults.redact, place, unique) | _gates(template.kind, payload, queue, priority)
            ),
        )
        # Stores look at the object first: one that says the same is the same.
        return Task(
            self._new_id(), payload, terms if said == terms else said, NOTHING_RARE if rare == NOTHING_RARE else rare
        )

    def _line(self, request: TaskRequest, defaults: Defaults) -> tuple[str, int, tuple[str, ...]]:
        """Queue, priority and capabilities."""
        return (
            defaults.queue if request.queue is None else self._names.queue(request.queue),
            defaults.priority if request.priority is None else check_priority(request.priority),
            defaults.capabilities
            if request.capabilities is None
            else check_capabilities(request.capabilities, self._names),
        )


class _Times(NamedTuple):
    delay_us: int | None
    run_at_us: int | None
    ttl_us: int | None
    execution_limit_us: int
    timeout_us: int | None
    lease_us: int


def _times(request: TaskRequest, defaults: Defaults, clock: Clock, unique: UniqueKey | None) -> _Times:
    delay_us = seconds_us(request.delay, "delay", 0, limits.DELAY_MAX_US)
    if unique is not None and unique.wait_us is not None:
        delay_us = unique.due_us(0, 0)
    run_at_us = instant_us(request.run_at, "run_at", clock.wall_us())
    if delay_us is not None and run_at_us is not None:
        raise Invalid("delay and run_at exclude each other: give one of them", field="run_at")
    ttl_us = seconds_us(request.ttl, "ttl", limits.TTL_MIN_US, limits.TTL_MAX_US) or defaults.ttl_us
    if ttl_us is not None and delay_us is not None and ttl_us <= delay_us:
        longer = "delay" if unique is None or unique.wait_us is None else "the wait of a debounce"
        raise Invalid(f"ttl must be longer than {longer}: it runs from the submit and gates the start", field="ttl")
    execution_limit_us = seconds_us(
        request.execution_limit, "execution_limit", limits.EXECUTION_LIMIT_MIN_US, limits.EXECUTION_LIMIT_MAX_US
    )
    timeout_us = seconds_us(request.timeout, "timeout", limits.TIMEOUT_MIN_US, limits.TIMEOUT_MAX_US)
    lease_us = seconds_us(request.lease, "lease", limits.LEASE_MIN_US, limits.LEASE_MAX_US)
    return _Times(
        delay_us,
        run_at_us,
        ttl_us,
        execution_limit_us or defaults.execution_limit_us,
        timeout_us or defaults.timeout_us,
        lease_us or defaults.lease_us,
    )


def _alike(requests: Sequence[TaskRequest]) -> AlikeRequests | None:
    """The requests in a column, if they name one kind and say nothing but their payloads."""
    kind = requests[0].kind if requests else None
    if type(kind) is not str or not all(each.kind == kind and _asks_for_nothing_special(each) for each in requests):
        return None
    return AlikeRequests(kind, [each.payload for each in requests])


def _all_known(payloads: Sequence[Any], kind: Kind) -> bool:
    """Whether all payloads were made for the schema of the kind, here."""
    if not payloads or {*map(type, payloads)} != {Checked}:
        return False
    if kind.schema is None:
        return True
    schemas = {id(each.schema): each for each in payloads}
    return all(map(kind.is_known_to_take, schemas.values()))


def _asks_for_nothing_special(request: TaskRequest) -> bool:
    return request.idempotency_key is None and _asks_for_nothing_but_a_key(request)


def _asks_for_nothing_but_a_key(request: TaskRequest) -> bool:
    return (
        request.queue is None
        and request.priority is None
        and request.delay is None
        and request.run_at is None
        and request.max_attempts is None
        and request.retry is None
        and request.timeout is None
        and request.ttl is None
        and request.execution_limit is None
        and request.lease is None
        and request.max_losses is None
        and request.on_loss is None
        and request.capabilities is None
        and request.labels is None
        and request.metadata is None
        and request.trace is None
        and request.unique is None
        and request.unique_key is None
    )


def _is_special(defaults: Defaults) -> bool:
    return bool(defaults.limits or defaults.fair_by) or defaults.unique is not None


def _merged_retry(request: TaskRequest, default: Retry) -> Retry:
    retry = default if request.retry is None else request.retry
    if not isinstance(retry, Retry):
        raise Invalid("retry must be a perdure.Retry", field="retry")
    if request.max_attempts is None or request.max_attempts == retry.max_attempts:
        return retry
    attempts = check_count(request.max_attempts, "max_attempts", 1, limits.MAX_ATTEMPTS_LIMIT)
    return Retry(attempts, retry.backoff, retry.base, retry.cap, retry.jitter)


def _retry_text(retry: Retry) -> str | None:
    return None if retry == _DEFAULT_RETRY else encoding.encode_sorted(retry).decode()


def _options_text(options: dict[str, Any]) -> str | None:
    return encoding.encode_sorted(options).decode() if options else None


def _options(request: TaskRequest, redact: bool, place: Place | None, unique: UniqueKey | None) -> dict[str, Any]:
    options: dict[str, Any] = {} if unique is None else {"unique": unique}
    if request.labels:
        options["labels"] = check_labels(request.labels)
    if request.metadata is not None:
        options["metadata"] = check_metadata(request.metadata)
    trace = valid_trace(request.trace)
    if trace is not None:
        options["trace"] = trace
    if redact:
        options["redact"] = True
    if place is not None and place.bindings:
        options["bindings"] = place.bindings
    return options


def _gates(kind: Kind, payload: str, queue: str, priority: int) -> dict[str, Any]:
    gates = kind.gates(payload, queue, priority)
    return {"gates": gates} if gates else {}


def check_labels(labels: object) -> dict[str, str]:
    """Labels: at most 32 pairs of texts of at most 200 characters. Raises `Invalid`."""
    if not isinstance(labels, Mapping):
        raise Invalid("labels must map texts to texts", field="labels")
    if len(labels) > limits.LABELS_MAX:
        raise Invalid(f"labels may be {limits.LABELS_MAX} at most, not {len(labels)}", field="labels")
    checked: dict[str, str] = {}
    for name, value in labels.items():
        good = check_prose(name, "labels", limits.LABEL_MAX_CHARS)
        if not good:
            raise Invalid("labels must have names", field="labels")
        checked[good] = check_prose(value, f"labels.{good}", limits.LABEL_MAX_CHARS)
    return checked


def check_metadata(metadata: Any) -> Any:
    """Metadata as values that encode as JSON, at most 8 KiB. Raises `Invalid` and `TooLarge`."""
    return encoding.decode(encoding.encode(metadata, "metadata", limits.METADATA_MAX_BYTES))


def valid_trace(trace: object) -> str | None:
    """A W3C traceparent, or `None`: an invalid one is dropped, because work matters more than its trace."""
    return trace if isinstance(trace, str) and len(trace) <= 256 and _TRACE.fullmatch(trace) else None


def request_hash(request: TaskRequest, payload: str) -> str:
    """Names what was asked for, as hexadecimal SHA-256: equal requests have equal hashes, whatever the order of keys.

    What differs from one sending of a request to the next (the trace, the key itself) is not part of it.
    """
    stated = {name: getattr(request, name) for name in request.__struct_fields__ if name not in _NOT_HASHED}
    return _hash_of({name: value for name, value in stated.items() if value is not None}, payload)


def _hash_of(said: dict[str, Any], payload: str) -> str:
    return sha256(encoding.encode_sorted([said, encoding.decode(payload)])).hexdigest()
