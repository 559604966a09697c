"""What the bodies have in common: texts with a shape, instants, bodies in encodings."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, Meta

from perdure.domain import limits
from perdure.domain.states import ENDED
from perdure.domain.task import Body
from perdure.errors import Malformed

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JSON = "json"
WAIT_MAX_SECONDS = 30.0
"""The longest that one request waits for something to happen; ask again then."""
PAGE_DEFAULT_ROWS = 50

UUID_PATTERN = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
NO_NUL = "^[^\\u0000]*$"
WORD_PATTERN = "^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$"


def _told(**schema: Any) -> Meta:
    """Tell the schema what the engine checks, without a second check here."""
    return Meta(extra_json_schema=schema)


def _seconds(low_us: int, high_us: int) -> Meta:
    return _told(minimum=low_us / limits.SECOND_US, maximum=high_us / limits.SECOND_US)


Id = Annotated[str, _told(format="uuid", pattern=UUID_PATTERN)]
KindName = Annotated[str, _told(minLength=1, maxLength=limits.KIND_MAX_CHARS, pattern=WORD_PATTERN)]
QueueName = Annotated[str, _told(minLength=1, maxLength=limits.QUEUE_MAX_CHARS, pattern=WORD_PATTERN)]
Word = Annotated[str, _told(minLength=1, maxLength=limits.NAME_MAX_CHARS, pattern=WORD_PATTERN)]
Title = Annotated[str, _told(minLength=1, maxLength=limits.NAME_MAX_CHARS, format="title")]
"""Format `title`: characters that can be shown, no space at either end."""
WorkerTitle = Annotated[str, _told(minLength=1, maxLength=limits.WORKER_TEXT_MAX_CHARS, format="title")]
WorkerBuild = Annotated[str, _told(maxLength=limits.WORKER_TEXT_MAX_CHARS, format="title")]
Key = Annotated[str, _told(minLength=1, maxLength=limits.IDEMPOTENCY_KEY_MAX_BYTES, format="key")]
"""Format `key`: characters that can be shown; the bound is on bytes of UTF-8."""
Text = Annotated[str, _told(maxLength=limits.REASON_TEXT_MAX_CHARS, pattern=NO_NUL)]
Note = Annotated[str, _told(maxLength=limits.NOTE_MAX_CHARS, pattern=NO_NUL)]
LabelText = Annotated[str, _told(maxLength=limits.LABEL_MAX_CHARS, pattern=NO_NUL)]
Labels = Annotated[
    dict[str, LabelText],
    _told(
        maxProperties=limits.LABELS_MAX,
        propertyNames={"minLength": 1, "maxLength": limits.LABEL_MAX_CHARS, "pattern": NO_NUL},
    ),
]
Label = Annotated[str, Meta(examples=["customer=42"], extra_json_schema={"pattern": "^[^=]+="})]
"""A label that is looked for: `name=value`."""
Cursor = Annotated[str, _told(format="cursor")]
"""Format `cursor`: as an earlier page told it; nothing else is one."""
Priority = Annotated[int, _told(minimum=limits.PRIORITY_MIN, maximum=limits.PRIORITY_MAX)]
Attempts = Annotated[int, _told(minimum=1, maximum=limits.MAX_ATTEMPTS_LIMIT)]
Losses = Annotated[int, _told(minimum=1, maximum=limits.MAX_LOSSES_LIMIT)]
Delay = Annotated[float, _seconds(0, limits.DELAY_MAX_US)]
Ttl = Annotated[float, _seconds(limits.TTL_MIN_US, limits.TTL_MAX_US)]
Timeout = Annotated[float, _seconds(limits.TIMEOUT_MIN_US, limits.TIMEOUT_MAX_US)]
ExecutionLimit = Annotated[float, _seconds(limits.EXECUTION_LIMIT_MIN_US, limits.EXECUTION_LIMIT_MAX_US)]
LeaseSeconds = Annotated[float, _seconds(limits.LEASE_MIN_US, limits.LEASE_MAX_US)]
Retention = Annotated[float, _seconds(0, limits.RETENTION_MAX_US)]
Retentions = Annotated[dict[str, Retention], _told(propertyNames={"enum": sorted(ENDED)})]
"""By the state in which a task ended."""
Capabilities = Annotated[list[Word], _told(maxItems=limits.CAPABILITIES_MAX)]
FieldName = Annotated[str, _told(minLength=1, maxLength=limits.FIELD_NAME_MAX_BYTES, format="key")]
Fields = Annotated[list[FieldName], _told(maxItems=limits.LIMIT_BY_MAX, uniqueItems=True)]
"""Names of fields of a payload."""
Limit = Annotated[int, Meta(ge=1, le=limits.LIST_MAX_ROWS)]
Wait = Annotated[float, Meta(ge=0, le=WAIT_MAX_SECONDS)]
Json = msgspec.Raw
"""Any JSON value, kept as it came."""
NULL: Json = cast("Json", None)
"""The default of what may be left out: null."""
LEFT_OUT: Json = cast("Json", UNSET)
"""The default of what is not told."""


def instant(us: int | None) -> datetime | None:
    """Microseconds since 1970 UTC as an instant."""
    return None if us is None else EPOCH + timedelta(microseconds=us)


def instant_us(moment: datetime | None) -> int | None:
    """An instant as microseconds since 1970 UTC."""
    if moment is None:
        return None
    delta = moment - EPOCH
    return (delta.days * 86_400 + delta.seconds) * limits.SECOND_US + delta.microseconds


def body_json(body: Body) -> Json:
    """A body as JSON: itself, or base64 text of another encoding."""
    if body.encoding == JSON:
        return msgspec.Raw(body.data)
    return msgspec.Raw(msgspec.json.encode(base64.b64encode(body.data).decode()))


def json_body(value: Json, encoding: str, field: str) -> Body:
    """The body that `body_json` told. Raises `Malformed` for what is no base64."""
    if encoding == JSON:
        return Body(bytes(value), JSON)
    try:
        return Body(base64.b64decode(msgspec.json.decode(value, type=str), validate=True), encoding)
    except (ValueError, msgspec.MsgspecError):
        raise Malformed(f"{field} is not base64, which encoding {encoding!r} needs", field=field) from None
