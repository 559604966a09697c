"""The key of a unique task: its kind, and the values of the fields that make two tasks the same."""

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256

from perdure.domain import limits
from perdure.domain.unique import OnConflict, UniqueKey
from perdure.engine import encoding
from perdure.engine.kinds import Kind, check_fields, check_unique
from perdure.engine.names import check_key
from perdure.engine.requests import TaskRequest
from perdure.errors import Invalid


def unique_key_of(request: TaskRequest, kind: Kind, payload: str, bindings: Collection[str] | None) -> UniqueKey | None:
    """The key of a task; none where it is not unique. `bindings`: for one of a job, its fields that results of others
    fill. Raises `Invalid`.
    """
    if bindings is None:
        return _key_alone(request, kind, payload)
    return _key_in_job(request, kind, payload, bindings)


def _key_alone(request: TaskRequest, kind: Kind, payload: str) -> UniqueKey | None:
    unique = kind.defaults.unique if request.unique is None else check_unique(request.unique)
    if unique is None:
        if request.unique_key is not None:
            raise Invalid("unique_key is for unique tasks: say unique, at the kind or here", field="unique_key")
        return None
    if request.unique is not None and request.unique_key is None:
        check_fields("unique", unique.by, kind.name, kind.schema)
    if unique.on_conflict == "debounce" and (request.delay is not None or request.run_at is not None):
        field = "delay" if request.delay is not None else "run_at"
        raise Invalid(f"a debounced task runs once nobody has submitted it for a while: leave {field} out", field=field)
    if request.unique_key is not None:
        return unique.key(f"{kind.name} {check_key(request.unique_key, 'unique_key')}")
    return unique.key(key_by(kind.name, unique.by, payload), unique.by)


def _key_in_job(request: TaskRequest, kind: Kind, payload: str, bound: Collection[str]) -> UniqueKey | None:
    """Refused is what could be answered with another task, which has no place in a job, and what only the results of
    others would tell.
    """
    key = _key_alone(request, kind, payload)
    if key is None:
        return None
    if key.on_conflict is not OnConflict.REJECT:
        raise Invalid(
            f"a task of a job is stored or refused: it cannot be unique by {key.on_conflict}, only by reject",
            field="unique",
        )
    unique = kind.defaults.unique if request.unique is None else request.unique
    later = sorted({*unique.by} & {*bound}) if unique is not None and request.unique_key is None else []
    if later:
        raise Invalid(f"field {later[0]!r} is the result of another task: it cannot be unique by that", field="unique")
    return key


def key_by(kind: str, by: Sequence[str], payload: str) -> str:
    """The key of tasks of a kind that are unique by these fields of their payloads."""
    if not by:
        return kind
    value = encoding.decode(payload)
    fields: Mapping[str, object] = value if isinstance(value, dict) else {}
    text = encoding.encode_sorted({name: fields.get(name) for name in by}).decode()
    if len(text) > limits.UNIQUE_VALUES_MAX_CHARS:
        text = f"sha256:{sha256(text.encode()).hexdigest()}"
    return f"{kind} {text}"
