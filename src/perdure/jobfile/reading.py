"""From a file to a `JobRequest`, whatever its format."""

from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Literal

from perdure.builtin import SLEEP_KIND
from perdure.engine.quantities import is_finite
from perdure.engine.requests import JobRequest
from perdure.errors import Invalid, Refused
from perdure.jobfile import dag, own_format, wfformat
from perdure.jobfile.document import DOCUMENT_MAX_BYTES, Document, Path, located, malformed, place_of_offset
from perdure.jobfile.json_text import parse_json
from perdure.jobfile.yaml_text import parse_yaml

Format = Literal["perdure", "wfformat"]


@dataclass(frozen=True, slots=True)
class JobFile:
    """A job as its file gives it. Nothing was stored yet."""

    request: JobRequest
    format: Format
    notes: tuple[str, ...] = ()
    """What was assumed where the file did not say, a line each."""
    seconds: dict[str, float] | None = None
    """How long each task is known to take, by name; `None` where the file does not say for all of them."""

    document: Document | None = None
    """What was read, where its parts can be pointed at as the request names them."""

    def placed(self, refusal: Refused) -> Refused:
        """The same refusal with the place in the file that it is about, where it is about one."""
        field = refusal.fields.get("field")
        if self.document is None or not isinstance(field, str):
            return refusal
        place = self.document.place(self._path(field, refusal.fields.get("task")))
        fields = {**refusal.fields, "file": self.document.name}
        if place is not None:
            fields |= {"line": place.line, "column": place.column}
        return type(refusal)(f"{located(self.document.name, place)}: {refusal.message}", **fields)

    def _path(self, field: str, task: object) -> Path:
        if isinstance(task, str):
            for index, each in enumerate(self.request.tasks):
                if each.name == task:
                    rest = field.removeprefix(f"tasks.{task}").removeprefix(".")
                    return ("tasks", index, *rest.split("."))
        return tuple(field.split("."))

    def parents(self) -> dict[str, list[str]]:
        """The names that each task depends on, by its name."""
        return dag.parents(self.request)


def read_job_file(path: FilePath, time_scale: float = 1.0) -> JobFile:
    """The job in a `.json`, `.yaml` or `.yml` file, checked to be a DAG.

    `time_scale` multiplies the recorded run times of a WfFormat file, and the seconds of sleeps in perdure's own.
    Raises `Malformed` when it cannot be read or parsed and `Invalid` when it breaks a rule, both with the place.
    """
    return read_job(str(path), _content(path), time_scale)


def read_document(path: FilePath) -> Document:
    """What a `.json`, `.yaml` or `.yml` file says. Raises `Malformed`, with the place, when it cannot be read."""
    return _parsed(str(path), _content(path))


def _content(path: FilePath) -> bytes:
    name = str(path)
    try:
        if path.is_dir():
            raise malformed(name, None, "this is a directory; name a file")
        if path.stat().st_size > DOCUMENT_MAX_BYTES:
            raise malformed(name, None, f"the file is larger than {DOCUMENT_MAX_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise malformed(name, None, f"the file cannot be read: {error.strerror or error}") from None


def read_job(name: str, content: bytes, time_scale: float = 1.0) -> JobFile:
    """The job in the content of a file; `name` is for messages and tells JSON from YAML. As `read_job_file`."""
    if not is_finite(time_scale, 0):
        raise Invalid(f"time_scale must be a number, 0 or more, not {time_scale!r}", field="time_scale")
    document = _parsed(name, content)
    if not isinstance(document.value, dict):
        document.refuse((), "a job is an object with a name and tasks")
    if wfformat.recognizes(document.value):
        request, seconds, notes = wfformat.decode(document, time_scale)
        return JobFile(request, "wfformat", notes, seconds)
    request = own_format.decode(document)
    return JobFile(request, "perdure", (), scaled_sleeps(request, time_scale), document)


def scaled_sleeps(request: JobRequest, time_scale: float) -> dict[str, float] | None:
    """Multiply the seconds of all sleeps; the seconds by name if the job has nothing but sleeps."""
    seconds: dict[str, float] = {}
    for task in request.tasks:
        asked = _sleep_seconds(task.payload) if task.kind == SLEEP_KIND else None
        if asked is not None:
            if time_scale != 1.0:
                task.payload = {**task.payload, "seconds": asked * time_scale}
            seconds[task.name] = asked * time_scale
    return seconds if len(seconds) == len(request.tasks) else None


def _sleep_seconds(payload: Any) -> float | None:
    asked = payload.get("seconds") if isinstance(payload, dict) else None
    return float(asked) if isinstance(asked, int | float) and not isinstance(asked, bool) else None


def _parsed(name: str, content: bytes) -> Document:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        raise malformed(name, place_of_offset(before, len(before)), "the file is not UTF-8 text") from None
    json_by_name = name.lower().endswith(".json")
    yaml_by_name = name.lower().endswith((".yaml", ".yml"))
    if json_by_name or (not yaml_by_name and text.lstrip()[:1] == "{"):
        return parse_json(name, text)
    return parse_yaml(name, text)
