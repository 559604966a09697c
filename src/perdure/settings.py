"""The settings: what can be chosen without touching code, where each value comes from, and what it must be.

Later sources win: defaults, then the TOML file that `PERDURE_CONFIG` names, then `PERDURE_*`, then arguments.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec

from perdure import mistakes
from perdure.domain import limits
from perdure.domain.attempt import CAPTURED_LEVELS
from perdure.domain.likeness import did_you_mean
from perdure.domain.policy import DEFAULT_ORGANIZATION
from perdure.domain.ranges import RANGES
from perdure.domain.states import ENDED
from perdure.errors import Invalid, Malformed

PREFIX = "PERDURE_"
CONFIG_VARIABLE = "PERDURE_CONFIG"
"""Names the TOML file. Not a setting itself: a file cannot name itself."""

_NOT_SETTINGS = (
    "PERDURE_BENCH_",
    "PERDURE_EFFECT_LEDGER",
    "PERDURE_MUTANTS_",
    "PERDURE_SCHEMA_",
    "PERDURE_SIMULATION_",
    "PERDURE_TEST_",
)
"""How the names begin that the built-in kinds, the tests and the benchmarks have for themselves."""
_NUMBERS: Mapping[Any, str] = {
    int: "a whole number",
    int | None: "a whole number",
    float: "a number",
    float | None: "a number",
}


class SettingRow(NamedTuple):
    """One setting as the documentation shows it."""

    name: str
    variable: str
    default: str
    unit: str
    allowed: str
    doc: str


class _Rule(NamedTuple):
    doc: str
    unit: str
    choices: tuple[str, ...]
    empty: bool


def _setting(
    default: Any,
    doc: str,
    unit: str = "",
    *,
    choices: tuple[str, ...] = (),
    empty: bool = False,
) -> Any:
    metadata = {"rule": _Rule(doc, unit, choices, empty)}
    return (
        field(default_factory=dict, metadata=metadata) if default is dict else field(default=default, metadata=metadata)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting, checked. `Settings(...)` takes values as they are, `Settings.load(...)` asks all sources.

    Raises `Invalid` with the setting's name in `field` when a value is out of range.
    """

    store: str = _setting(
        "perdure.db",
        "The store: a path or `sqlite:///path` of a SQLite file, `postgresql://user@host/database`, "
        "`cockroachdb://user@host:26257/database`, or a gateway's `http://host:port`.",
        "URL",
    )
    listen: str = _setting(
        "127.0.0.1:7373", "Where the gateway listens: an address of this machine that others cannot reach.", "host:port"
    )
    connections: int = _setting(
        limits.CONNECTIONS_DEFAULT,
        "How many connections a gateway holds at once, up to two for each worker; the next is told to come again.",
    )
    client_rate: int = _setting(
        limits.CLIENT_RATE_DEFAULT,
        "How many requests a second one client of a gateway may send, and twice as many at once; more are told when to"
        " come again. A client is a program that names itself, else a connection; workers are not counted.",
    )
    metrics_listen: str | None = _setting(
        None,
        "Where `perdure serve` in the role `worker` or `sweeper` answers `/metrics`, `/healthz` and `/readyz`; unset:"
        " nowhere.",
        "host:port",
    )
    organization: str = _setting(DEFAULT_ORGANIZATION, "The organization that submits and whose work is done.")
    principal: str = _setting("app", "Who the history names as the one that acted.")

    concurrency: int = _setting(20, "How many tasks a worker runs at once.")
    prefetch: int | None = _setting(
        None,
        "How many more tasks a worker holds ready; unset: the work of some 20 ms, at most three times as many as it"
        " runs, and none where a kind has a rate.",
    )
    queues: tuple[str, ...] | None = _setting(
        None, "The queues that a worker serves; unset: `default` and those of its kinds.", "names, by comma"
    )
    capabilities: tuple[str, ...] = _setting((), "What a worker has that tasks may ask for.", "names, by comma")
    build: str = _setting("", "Which build of the program a worker is; noted on each attempt.", empty=True)
    grace: float = _setting(30.0, "How long a stopping worker lets tasks go on before it hands them back.")
    stop_grace: float = _setting(10.0, "How long a handler that was told to stop may take before it is given up.")
    default_timeout: float | None = _setting(
        None, "The timeout of attempts for which neither task nor kind has one; unset: none."
    )
    heartbeat: float = _setting(20.0, "How often a worker says that it is there.")
    control_interval: float = _setting(0.25, "How often a worker that holds tasks asks for cancels.")
    poll: float = _setting(
        2.0,
        "How soon a worker that finds nothing asks for work that nothing announced; four times as late each time, up to"
        " 30 s.",
    )
    report_interval: float = _setting(0.2, "How long a worker gathers progress before it sends it.")
    task_logs: str = _setting(
        "info",
        "The least severe line of a handler's log that is kept with its task; `off`: none.",
        choices=CAPTURED_LEVELS,
    )
    max_tasks: int | None = _setting(None, "After so many tasks a worker drains, to be started afresh; unset: never.")

    lease: float = _setting(
        limits.seconds(limits.LEASE_DEFAULT_US),
        "How long an attempt may act without a sign of life, where neither task nor kind says.",
    )
    execution_limit: float = _setting(
        limits.seconds(limits.EXECUTION_LIMIT_DEFAULT_US),
        "How long after its first claim a task must have ended, where neither task nor kind says.",
    )
    cancel_grace: float = _setting(
        limits.seconds(limits.CANCEL_GRACE_DEFAULT_US), "How long a worker has to stop what is cancelled."
    )
    priority_ageing: float = _setting(
        limits.seconds(limits.PRIORITY_AGEING_DEFAULT_US),
        "For each such time that the first task of a lane has waited, the lane counts as one priority higher, so that"
        " nothing urgent keeps it waiting for ever; 0: never.",
    )
    unroutable_after: float = _setting(
        limits.seconds(limits.UNROUTABLE_AFTER_DEFAULT_US),
        "How long a task may wait while workers serve its queue and none has its kind; then it fails.",
    )
    worker_active: float = _setting(
        limits.seconds(limits.WORKER_ACTIVE_DEFAULT_US), "How long after its last sign a worker counts as alive."
    )
    retention: float = _setting(limits.seconds(limits.RETENTION_DEFAULT_US), "How long what has ended is kept.")
    retention_by_state: Mapping[str, float] = _setting(
        dict,
        "How long instead, for ends of these states; a kind may say otherwise of its own.",
        "state=s, by comma",
        choices=tuple(sorted(ENDED)),
    )
    payload_max_bytes: int = _setting(limits.PAYLOAD_MAX_BYTES, "The largest payload taken.")
    busy_timeout: float = _setting(10.0, "How long to wait for another process that writes to the store.")
    hints: str | None = _setting(
        None,
        "How hints travel between processes on PostgreSQL: unset: by the store's URL; a URL of the same database that"
        " passes by its pooler; `off`: not at all, everybody looks for himself.",
        "URL",
    )
    prepare: str = _setting(
        "auto",
        "Whether statements are prepared on PostgreSQL: where no pooler is noticed; always, for a pooler that keeps"
        " them (PgBouncer 1.21 and `max_prepared_statements`); never.",
        choices=("auto", "on", "off"),
    )

    log_level: str = _setting(
        "info", "The least severe log line written.", choices=("debug", "info", "warning", "error")
    )
    traces: str = _setting("off", "Who makes traces of submits and attempts.", choices=("off", "opentelemetry"))
    log_format: str = _setting("text", "How log lines look.", choices=("text", "json"))

    def __post_init__(self) -> None:
        for each in fields(self):
            _check(each, getattr(self, each.name))

    @classmethod
    def load(
        cls,
        *,
        environ: Mapping[str, str] | None = None,
        config: str | Path | None = None,
        defaults: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> "Settings":
        """The settings from all sources. An argument that is `None` was not said.

        `config` replaces `PERDURE_CONFIG`, `defaults` those of this class. Raises `Invalid` or `Malformed`, naming the
        setting and where it was said.
        """
        environ = os.environ if environ is None else environ
        chosen: dict[str, Any] = dict(defaults or {})
        path = config if config is not None else environ.get(CONFIG_VARIABLE)
        if path is not None and not isinstance(path, str | Path):
            raise Invalid(f"config must be the path of a TOML file, not {path!r}", field="config")
        if path:
            chosen |= _from_file(Path(path))
        chosen |= _from_environment(environ)
        said = {name: value for name, value in arguments.items() if value is not None}
        chosen |= _converted(said, "an argument")
        return cls(**chosen)

    def but(self, **arguments: Any) -> "Settings":
        """The same settings except for these. An argument that is `None` was not said."""
        said = {name: value for name, value in arguments.items() if value is not None}
        return replace(self, **_converted(said, "an argument"))


def settings_table() -> list[SettingRow]:
    """One row per setting, in their order, for docs/settings.md."""
    return [
        SettingRow(
            name=each.name,
            variable=variable(each.name),
            default=_shown(each.default),
            unit=_unit(each),
            allowed=_allowed(each),
            doc=_rule(each).doc,
        )
        for each in _known()
    ]


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """One sentence for each `PERDURE_*` that means nothing here, with the setting that may have been meant."""
    known = [variable(each.name) for each in _known()] + [CONFIG_VARIABLE]
    sentences = []
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in known or name.startswith(_NOT_SETTINGS):
            continue
        sentences.append(f"{name} is not a setting and changes nothing{did_you_mean(name, known, str)}")
    return sentences


def _known() -> Iterator["Field[Any]"]:
    return iter(fields(Settings))


def _rule(each: "Field[Any]") -> _Rule:
    rule = each.metadata["rule"]
    assert isinstance(rule, _Rule)
    return rule


def _check(each: "Field[Any]", value: Any) -> None:
    name, rule = each.name, _rule(each)
    kind = get_type_hints(Settings)[name]
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Invalid(f"setting {name} {_said(error, kind)}", field=name) from None
    if value is None:
        return
    if isinstance(value, Mapping):
        for choice, number in value.items():
            _check_choice(name, rule, choice)
            RANGES[name].check(f"{name}.{choice}", number)
        return
    _check_choice(name, rule, value)
    if name in RANGES:
        RANGES[name].check(name, value)
    if isinstance(value, str) and not value and not rule.empty:
        raise Invalid(f"setting {name} must not be empty", field=name)


def _check_choice(name: str, rule: _Rule, value: Any) -> None:
    if rule.choices and value not in rule.choices:
        raise Invalid(f"setting {name} must be one of {', '.join(rule.choices)}, not {value!r}", field=name)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Invalid(
            f"the configuration file {path} cannot be read: {error.strerror}; correct {CONFIG_VARIABLE} or the file",
            field="config",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the configuration file {path} is not TOML: {error}", field="config") from None
    return _converted(document, str(path))


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings of `PERDURE_*`, checked one by one. Raises `Invalid` with the variable and its value."""
    chosen: dict[str, Any] = {}
    hints = get_type_hints(Settings)
    for each in _known():
        text = environ.get(variable(each.name))
        if text is None:
            continue
        said = f"{variable(each.name)}={text!r}"
        try:
            converted = _converted({each.name: text}, "the environment")
        except Invalid as problem:
            wanted = _NUMBERS.get(hints[each.name])
            fact = f"{said} is not {wanted}" if wanted is not None else f"{said}: {problem.message}"
            raise Invalid(fact, field=each.name) from None
        try:
            _check(each, converted[each.name])
        except Invalid as problem:
            raise Invalid(f"{said}: {problem.message}", field=each.name) from None
        chosen |= converted
    return chosen


def _converted(said: Mapping[str, Any], source: str) -> dict[str, Any]:
    hints = get_type_hints(Settings)
    known = [each.name for each in _known()]
    result: dict[str, Any] = {}
    for name, value in said.items():
        if name not in known:
            meant = did_you_mean(name, known, str)
            raise Invalid(f"there is no setting {name!r} (said by {source}){meant}", field=name)
        kind = hints[name]
        if kind in (tuple[str, ...], tuple[str, ...] | None) and isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if kind == Mapping[str, float] and isinstance(value, str):
            value = _pairs(name, value, source)
        try:
            result[name] = msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError as error:
            raise Invalid(f"setting {name} (said by {source}) {_said(error, kind)}", field=name) from None
    return result


def _said(error: msgspec.ValidationError, kind: Any) -> str:
    """What is wrong with the value of a setting: of which of its names or items, if it has several."""
    message, place = mistakes.said(error, kind, text=True)
    return f"{message}, wherever it has a value" if place else message


def _pairs(name: str, text: str, source: str) -> dict[str, str]:
    """`a=1, b=2` as a mapping."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    for key, equals, _ in pairs:
        if not equals:
            raise Invalid(f"setting {name} (said by {source}): write name=value after {key.strip()!r}", field=name)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _shown(default: Any) -> str:
    if default is MISSING or default is None:
        return ""
    if isinstance(default, tuple):
        return ",".join(default)
    if isinstance(default, float):
        return f"{default:g}"
    return str(default)


def _unit(each: "Field[Any]") -> str:
    unit = _rule(each).unit
    return RANGES[each.name].unit if not unit and each.name in RANGES else unit


def _allowed(each: "Field[Any]") -> str:
    bounds = RANGES[each.name].bounds if each.name in RANGES else ""
    return ": ".join(filter(None, (", ".join(_rule(each).choices), bounds)))
