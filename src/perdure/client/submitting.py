"""From requests to bodies: each item is encoded and checked here as the engine would, so that one bad item is refused
alone and what JSON cannot say is refused instead of being changed.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from perdure import mistakes, wire
from perdure.ambient import Ids
from perdure.domain import limits
from perdure.engine import encoding
from perdure.engine.requests import JobRequest, JobTaskRequest, NewTask, TaskRequest
from perdure.errors import Invalid, Refused

REQUEST_MAX_BYTES = 4 * 1024 * 1024
"""How much is sent in one request; more goes in several."""
REQUEST_MAX_ITEMS = 1_000
KEY_PREFIX = "once-"
"""Keys that the client makes, so that a submit whose answer was lost can be sent again."""

_TASK = msgspec.json.Decoder(wire.SubmitTask)
_ADDED_TASK = msgspec.json.Decoder(wire.AddTask)
_JOB_TASK = msgspec.json.Decoder(wire.SubmitJobTask)
_ROOM = 1024 * 1024
"""The most that all of an item but its payload may take."""


def new_key(ids: Ids) -> str:
    """A key for a submit that has none."""
    return KEY_PREFIX + ids.new()


def encoded_task(request: TaskRequest, ids: Ids) -> bytes:
    """One task as JSON, with a key of its own if it has none. Raises a `Refused` with the field."""
    said = _said(request)
    if request.idempotency_key is None:
        said["idempotency_key"] = new_key(ids)
    text = _encoded(request, said)
    _check(_TASK, text)
    return text


def encoded_job(request: JobRequest, ids: Ids) -> bytes:
    """A job as JSON, with a key of its own if it has none. Raises a `Refused` that names task and field."""
    said: dict[str, Any] = {"name": request.name, "on_failure": request.on_failure}
    if request.metadata is not None:
        said["metadata"] = encoding.decode(encoding.encode(request.metadata, "metadata", limits.METADATA_MAX_BYTES))
    key = request.idempotency_key
    said["idempotency_key"] = new_key(ids) if key is None else key
    head = _plain(said)
    tasks = b",".join(_encoded_job_task(task, _JOB_TASK) for task in request.tasks)
    return head[:-1] + b',"tasks":[' + tasks + b"]}"


def encoded_added_task(request: NewTask) -> bytes:
    """A task that is to be added to a job as JSON. Raises a `Refused` that names task and field."""
    return _encoded_job_task(request, _ADDED_TASK)


def batches(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Items in lists that fit into one request each."""
    batch: list[bytes] = []
    size = 0
    for item in items:
        if batch and (size + len(item) > REQUEST_MAX_BYTES or len(batch) >= REQUEST_MAX_ITEMS):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item) + 1
    if batch:
        yield batch


def _encoded_job_task(task: JobTaskRequest, decoder: "msgspec.json.Decoder[Any]") -> bytes:
    try:
        text = _encoded(task, _said(task))
        _check(decoder, text)
    except Refused as refusal:
        fields = dict(refusal.fields)
        place = f"tasks.{task.name}"
        fields["field"] = f"{place}.{fields['field']}" if "field" in fields else place
        raise type(refusal)(f"task {task.name!r}: {refusal.message}", task=task.name, **fields) from None
    return text


def _said(request: TaskRequest) -> dict[str, Any]:
    """What was said, without the payload."""
    stated = {name: getattr(request, name) for name in request.__struct_fields__ if name != "payload"}
    return {name: value for name, value in stated.items() if value is not None}


def _encoded(request: TaskRequest, said: dict[str, Any]) -> bytes:
    payload = encoding.encode(request.payload, "payload", limits.PAYLOAD_MAX_BYTES)
    if "metadata" in said:
        said["metadata"] = encoding.decode(encoding.encode(said["metadata"], "metadata", limits.METADATA_MAX_BYTES))
    return _plain(said)[:-1] + b',"payload":' + payload + b"}"


def _plain(said: dict[str, Any]) -> bytes:
    """Named values as one JSON object. The path of a fault begins with the field's name, as in the engine."""
    try:
        return encoding.encode(said, "request", _ROOM)
    except Refused as refusal:
        fields = {
            name: value.removeprefix("request.") if isinstance(value, str) else value
            for name, value in refusal.fields.items()
        }
        raise type(refusal)(refusal.message.removeprefix("request."), **fields) from None


def _check(decoder: "msgspec.json.Decoder[Any]", text: bytes) -> None:
    try:
        decoder.decode(text)
    except msgspec.ValidationError as error:
        message, field = mistakes.said(error, decoder.type)
        raise Invalid(f"{field}: {message}" if field else message, field=field or None) from None
