"""What is known of each kind: its defaults and the schema of its payload, as workers declared them."""

import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec

from perdure.ambient import Clock
from perdure.domain import limits
from perdure.domain.breaker import Breaker, check_breaker
from perdure.domain.gate import Gate, in_order
from perdure.domain.limit import Limit, check_fair_by, check_limits, fair_gate, gates_of
from perdure.domain.policy import DEFAULT_QUEUE
from perdure.domain.retention import NOTHING, KindRetention
from perdure.domain.retry import Retry
from perdure.domain.task import ON_LOSS, OnLoss
from perdure.domain.unique import Unique
from perdure.engine import encoding, read_as
from perdure.engine.engine_settings import EngineSettings
from perdure.engine.names import WordCheck
from perdure.engine.quantities import check_choice, check_count, check_priority, seconds_by_state_us, seconds_us
from perdure.engine.requests import KindDefinition, Principal
from perdure.errors import Conflict, Invalid, PerdureError
from perdure.store.definitions import Definition, Definitions

FRESH_US = 2 * limits.SECOND_US
"""For how long what was read is believed: so long may another process not see a kind that was declared anew."""

PUT_TRIES = 5
FAULTS_MAX = 5
"""So many faults of a payload are told at once."""
FAULT_MAX_CHARS = 500

_log = logging.getLogger("perdure.engine")


class Names(NamedTuple):
    """The checks of the names that a submitter gives; they remember good ones."""

    kind: WordCheck
    queue: WordCheck
    capability: WordCheck

    @classmethod
    def fresh(cls) -> "Names":
        """Checks that remember nothing yet."""
        return cls(
            WordCheck("kind", limits.KIND_MAX_CHARS),
            WordCheck("queue", limits.QUEUE_MAX_CHARS),
            WordCheck("capabilities", limits.NAME_MAX_CHARS),
        )


class Defaults(NamedTuple):
    """What holds for a task that does not say otherwise."""

    queue: str
    priority: int
    capabilities: tuple[str, ...]
    ttl_us: int | None
    execution_limit_us: int
    timeout_us: int | None
    lease_us: int
    max_losses: int
    on_loss: OnLoss
    retry: Retry
    limits: tuple[Limit, ...]
    fair_by: tuple[str, ...]
    breaker: Breaker | None
    unique: Unique | None
    redact: bool
    retention: KindRetention


class Kind:
    """One kind as it is known here."""

    __slots__ = ("_same", "_validator", "defaults", "name", "paused", "schema", "version")

    def __init__(
        self, name: str, version: int, defaults: Defaults, schema: dict[str, Any] | None, paused: bool = False
    ) -> None:
        self.name = name
        self.version = version
        self.paused = paused
        self.defaults = defaults
        self.schema = schema
        self._validator: Any = None
        self._same: Mapping[str, Any] | None = None

    def is_known_to_take(self, payload: Any) -> bool:
        """Whether a payload was made for this very schema, here, so that it need not be checked again."""
        if type(payload) is not encoding.Checked or payload.schema is None:
            return False
        if payload.schema is not self._same and payload.schema == self.schema:
            self._same = payload.schema
        return payload.schema is self._same

    @property
    def takes_fields(self) -> bool:
        """Whether payloads have to be objects: then one that says nothing is an object without fields."""
        return self.schema is not None and self.schema.get("type") == "object"

    def gates(self, payload: str, queue: str, priority: int) -> list[Gate]:
        """The gates that a task with this payload has to pass, by the kind's limits and the turns of its keys."""
        said, fair_by = self.defaults.limits, self.defaults.fair_by
        if not said and not fair_by:
            return []
        value = encoding.decode(payload) if fair_by or any(limit.by for limit in said) else None
        fields = value if isinstance(value, dict) else {}
        gates = gates_of(self.name, said, [_key_of(limit.by, fields) for limit in said])
        if fair_by:
            gates.append(fair_gate(self.name, fair_by, _key_of(fair_by, fields), queue, priority))
        return in_order(gates)

    def check_payload(self, data: bytes, bound: Collection[str] = ()) -> None:
        """Refuse a payload that the kind's schema does not allow. Raises `Invalid` with the path of the first fault in
        `field`; the message tells the next ones, too.

        `bound` are fields that results of other tasks will fill: that they are missing is no fault.
        """
        if self.schema is None:
            return
        if self._validator is None:
            self._validator = compile_schema(self.schema)
        value = encoding.decode(data)
        if self._validator.is_valid(value):
            return
        faults = (each for each in self._validator.iter_errors(value) if not _is_filled_later(each, bound))
        told = [
            (encoding.shown_path("payload", list(each.instance_path)), each.message[:FAULT_MAX_CHARS])
            for each in islice(faults, FAULTS_MAX)
        ]
        if not told:
            return
        (path, message), *others = told
        also = "".join(f"; {place}: {fault}" for place, fault in others)
        raise Invalid(f"{path} is not what kind {self.name!r} takes: {message}{also}", field=path)


def _key_of(by: Sequence[str], fields: Mapping[str, Any]) -> str:
    """The values of the fields by which a limit holds: their JSON, or its digest where that is long."""
    if not by:
        return ""
    values = [fields.get(name) for name in by]
    return _key_text(values[0] if len(values) == 1 else values)


def _key_text(value: Any) -> str:
    text = encoding.encode_sorted(value).decode()
    return text if len(text) <= limits.LIMIT_KEY_MAX_CHARS else f"sha256:{sha256(text.encode()).hexdigest()}"


def gate_keys(said: str) -> tuple[str, ...]:
    """The keys of gates that somebody may mean by a text: the key itself, the key of that text, that of its JSON.

    Raises `Invalid` for what is no text.
    """
    try:
        found = {_key_text(said)} | ({said} if "\0" not in said else set())
    except UnicodeEncodeError:
        raise Invalid("key is not Unicode text", field="key") from None
    with contextlib.suppress(PerdureError, ValueError, RecursionError):
        found.add(_key_text(encoding.decode(said)))
    return tuple(sorted(found))


def _is_filled_later(fault: Any, bound: Collection[str]) -> bool:
    return bool(bound) and not fault.instance_path and fault.kind.name == "required" and fault.kind.property in bound


def check_unique(said: object) -> Unique | None:
    """`said` itself. Raises `Invalid` where it is something else."""
    if said is None or isinstance(said, Unique):
        return said
    raise Invalid("unique must be a perdure.Unique", field="unique")


def check_fields(option: str, by: Sequence[str], kind: str, schema: object) -> None:
    """Raise `Invalid` where something is by a field that no payload of the kind has: all its tasks would be one."""
    if not isinstance(schema, dict) or schema.get("additionalProperties") is not False or "patternProperties" in schema:
        return
    fields = schema.get("properties", {})
    for field in by:
        if field not in fields:
            known = f"it takes {', '.join(fields)}" if fields else "it takes none"
            raise Invalid(
                f"{option} is by {field!r}, which kind {kind!r} does not take: {known}", field=option, kind=kind
            )


def compile_schema(schema: object) -> Any:
    """A validator that never asks the network. Raises `Invalid` when `schema` is no JSON Schema."""
    if not isinstance(schema, dict):
        raise Invalid(f"schema must be a JSON Schema object, not {type(schema).__name__}", field="schema")
    try:
        return jsonschema_rs.validator_for(schema, offline=True, keywords={read_as.KEYWORD: read_as.ReadAs})
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Invalid(f"schema is no JSON Schema: {reason}", field="schema") from None


def resolve(definition: KindDefinition, settings: EngineSettings, names: Names) -> Defaults:
    """The defaults of a kind, checked. Raises `Invalid` with the field."""
    retry = definition.retry if definition.retry is not None else Retry()
    if not isinstance(retry, Retry):
        raise Invalid("retry must be a perdure.Retry", field="retry")
    return Defaults(
        queue=DEFAULT_QUEUE if definition.queue is None else names.queue(definition.queue),
        priority=limits.PRIORITY_DEFAULT if definition.priority is None else check_priority(definition.priority),
        capabilities=check_capabilities(definition.capabilities, names),
        ttl_us=seconds_us(definition.ttl, "ttl", limits.TTL_MIN_US, limits.TTL_MAX_US),
        execution_limit_us=seconds_us(
            definition.execution_limit,
            "execution_limit",
            limits.EXECUTION_LIMIT_MIN_US,
            limits.EXECUTION_LIMIT_MAX_US,
        )
        or settings.execution_limit_us,
        timeout_us=seconds_us(definition.timeout, "timeout", limits.TIMEOUT_MIN_US, limits.TIMEOUT_MAX_US),
        lease_us=seconds_us(definition.lease, "lease", limits.LEASE_MIN_US, limits.LEASE_MAX_US) or settings.lease_us,
        max_losses=limits.MAX_LOSSES_DEFAULT
        if definition.max_losses is None
        else check_count(definition.max_losses, "max_losses", 1, limits.MAX_LOSSES_LIMIT),
        on_loss="retry" if definition.on_loss is None else check_choice(definition.on_loss, "on_loss", ON_LOSS),
        retry=retry,
        limits=check_limits(definition.limits),
        fair_by=check_fair_by(definition.fair_by),
        breaker=check_breaker(definition.breaker),
        unique=check_unique(definition.unique),
        redact=bool(definition.redact),
        retention=_retention(definition),
    )


def _retention(definition: KindDefinition) -> KindRetention:
    """How long ends of a kind are kept; the store reads the same from the kind's document. Raises `Invalid`."""
    said = definition.retention
    by_state = seconds_by_state_us(said, "retention") if isinstance(said, dict) else NOTHING
    keep_us = None if isinstance(said, dict) else seconds_us(said, "retention", 0, limits.RETENTION_MAX_US)
    result_us = seconds_us(definition.result_retention, "result_retention", 0, limits.RETENTION_MAX_US)
    return KindRetention(keep_us, by_state, result_us)


def check_capabilities(capabilities: object, names: Names) -> tuple[str, ...]:
    """Capabilities, sorted and without repeats. Raises `Invalid`."""
    if not capabilities:
        return ()
    if not isinstance(capabilities, list | tuple | set | frozenset):
        raise Invalid("capabilities must be a list of names", field="capabilities")
    if len(capabilities) > limits.CAPABILITIES_MAX:
        raise Invalid(f"capabilities may be {limits.CAPABILITIES_MAX} at most", field="capabilities")
    return tuple(sorted({names.capability(each) for each in capabilities}))


class Kinds:
    """The kinds of each organization, read at most once in `FRESH_US`."""

    def __init__(self, definitions: Definitions, clock: Clock, settings: EngineSettings, names: Names) -> None:
        self._definitions = definitions
        self._clock = clock
        self._settings = settings
        self._names = names
        self._known: dict[str, dict[str, Kind]] = {}
        self._read_us: dict[str, int] = {}
        self._system = resolve(KindDefinition(kind="system"), settings, names)

    async def of(self, organization: str) -> Mapping[str, Kind]:
        """The kinds of an organization by name, as read not long ago."""
        known = self.fresh(organization)
        return await self._read(organization) if known is None else known

    def fresh(self, organization: str) -> Mapping[str, Kind] | None:
        """The kinds of an organization by name, if they were read not long ago."""
        known = self._known.get(organization)
        if known is not None and self._clock.monotonic_us() - self._read_us[organization] < FRESH_US:
            return known
        return None

    def at_hand(self, organization: str) -> Mapping[str, Kind]:
        """The kinds of an organization as far as they were read before; asks nobody."""
        return self._known.get(organization, {})

    def unknown(self, name: str) -> Kind:
        """A kind that nobody has declared: the system's defaults, any payload."""
        return Kind(name, 0, self._system, None)

    def leases_us(self) -> set[int]:
        """The lease lengths that are in use as far as is known here."""
        known = {kind.defaults.lease_us for kinds in self._known.values() for kind in kinds.values()}
        return known | {self._settings.lease_us}

    async def declare(self, definitions: Sequence[KindDefinition], by: Principal) -> None:
        """Store kinds as their workers have them; what is stored already is not written again.

        Raises `Invalid` with the field, and then stores none.
        """
        for each in definitions:
            self.check(each)
        if not definitions:
            return
        known = await self._read(by.organization)
        for each in definitions:
            kind = known.get(each.kind)
            wanted = resolve(each, self._settings, self._names)
            if kind is None or kind.defaults != wanted or kind.schema != each.schema:
                await self._put(each, by)
        await self._read(by.organization)

    async def refresh(self, organization: str) -> None:
        """Read the kinds of an organization again."""
        await self._read(organization)

    def check(self, definition: KindDefinition) -> None:
        """Raise `Invalid` with the field, or `TooLarge`, for what cannot be stored."""
        self._names.kind(definition.kind)
        resolve(definition, self._settings, self._names)
        if definition.schema is None:
            return
        compile_schema(definition.schema)
        size = len(msgspec.json.encode(definition.schema))
        if size > limits.SCHEMA_MAX_BYTES:
            raise encoding.too_large("schema", limits.SCHEMA_MAX_BYTES, size)
        encoding.check_document(msgspec.json.encode({"schema": definition.schema}).decode())
        for limit in definition.limits:
            check_fields("limits", limit.by, definition.kind, definition.schema)
        check_fields("fair_by", definition.fair_by, definition.kind, definition.schema)
        if definition.unique is not None:
            check_fields("unique", definition.unique.by, definition.kind, definition.schema)

    async def _put(self, definition: KindDefinition, by: Principal) -> None:
        for tries_left in reversed(range(PUT_TRIES)):
            stored = await self._definitions.get(by.organization, "kind", definition.kind)
            # Who paused the kind is an operator, and stays in charge of that.
            paused = stored is not None and msgspec.json.decode(stored.document).get("paused", False)
            document = msgspec.json.encode(msgspec.structs.replace(definition, paused=paused)).decode()
            if stored is not None and stored.document == document:
                # Somebody else declared the same meanwhile.
                return
            version = stored.version if stored is not None else 0
            try:
                await self._definitions.put(by.organization, "kind", definition.kind, document, by.name, version)
            except Conflict:
                if not tries_left:
                    raise
            else:
                return

    async def _read(self, organization: str) -> dict[str, Kind]:
        started_us = self._clock.monotonic_us()
        if organization in self._known:
            # Those who ask meanwhile take what is known, instead of all reading at once.
            self._read_us[organization] = started_us
        before = self._known.get(organization, {})
        kinds: dict[str, Kind] = {}
        for each in await self._definitions.list(organization, "kind"):
            kind = before.get(each.name)
            if kind is None or kind.version != each.version:
                kind = self._understand(each)
            if kind is not None:
                kinds[each.name] = kind
        self._known[organization] = kinds
        self._read_us[organization] = started_us
        return kinds

    def _understand(self, stored: Definition) -> Kind | None:
        try:
            definition = msgspec.json.decode(stored.document, type=KindDefinition)
            defaults = resolve(definition, self._settings, self._names)
        except (msgspec.MsgspecError, Invalid) as error:
            _log.warning("the stored definition of kind %s is ignored: %s", stored.name, error)
            return None
        return Kind(stored.name, stored.version, defaults, definition.schema, definition.paused)
