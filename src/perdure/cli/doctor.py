"""`perdure doctor`: how the store is, and what to do where something is not as it should be."""

import platform
from typing import TYPE_CHECKING

import typer

from perdure.cli.options import JsonOption, StoreOption

if TYPE_CHECKING:
    from perdure.store.health import Fact, Health, TableHealth

_KIB = 1024
_OF_NOTHING = {"copying_from": "no other store"}
"""What a fact without a value means, where that is known."""
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def doctor(store: StoreOption = None, json: JsonOption = False) -> None:
    """Look at the store and warn of what may go wrong. Exit code 1 if there are warnings."""
    import asyncio

    from perdure.cli.output import write_json
    from perdure.cli.session import check_exists, settings_for
    from perdure.wiring import store_health

    settings = settings_for(store)
    check_exists(settings.store)
    health = asyncio.run(store_health(settings))
    facts = [*_of_program(), *health.facts]
    if json:
        write_json(_document(health, facts))
    else:
        _write(health, facts)
    if health.warnings():
        raise typer.Exit(1)


def _of_program() -> "list[Fact]":
    from importlib.metadata import version

    from perdure.store.health import Fact

    return [
        Fact("perdure_version", version("perdure")),
        Fact("python_version", platform.python_version()),
        Fact("platform", platform.platform()),
    ]


def _document(health: "Health", facts: "list[Fact]") -> dict[str, object]:
    from perdure.cli.output import instant

    def fields(table: "TableHealth") -> dict[str, object]:
        return {
            "name": table.name,
            "rows": table.rows,
            "dead_rows": table.dead_rows,
            "size_bytes": table.size_bytes,
            "vacuumed_at": instant(table.vacuumed_us),
            "analyzed_at": instant(table.analyzed_us),
        }

    warnings = health.warnings()
    return {
        "healthy": not warnings,
        "store": health.store,
        "facts": {fact.name: fact.value for fact in facts},
        "tables": [fields(table) for table in health.tables],
        "warnings": [{"about": name, "message": message} for name, message in warnings],
    }


def _write(health: "Health", facts: "list[Fact]") -> None:
    from perdure.cli.output import shown_instant, write_facts, write_line, write_table

    write_facts([("store", health.store), *((_title(fact), _shown(fact)) for fact in facts)])
    if health.tables:
        write_line("")
        write_table(
            ("TABLE", "ROWS", "DEAD", "SIZE", "VACUUMED", "ANALYZED"),
            [
                (
                    table.name,
                    f"{table.rows:,}",
                    f"{table.dead_rows:,}",
                    shown_bytes(table.size_bytes),
                    shown_instant(table.vacuumed_us),
                    shown_instant(table.analyzed_us),
                )
                for table in health.tables
            ],
            "no tables",
        )
    write_line("")
    warnings = health.warnings()
    for name, message in warnings:
        write_line(f"warning: {name}: {message}")
    if not warnings:
        write_line("nothing to warn of")


def _title(fact: "Fact") -> str:
    return fact.name.removesuffix("_bytes").removesuffix("_seconds").replace("_", " ")


def _shown(fact: "Fact") -> str:
    value = fact.value
    if value is None:
        return _OF_NOTHING.get(fact.name, "unknown")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if fact.name.endswith("_bytes"):
        return shown_bytes(value)
    return f"{value:,} s" if fact.name.endswith("_seconds") else f"{value:,}"


def shown_bytes(size: float) -> str:
    """A size for people: `640 bytes`, `1.5 GiB`."""
    step = 0
    while size >= _KIB and step < len(_UNITS) - 1:
        size /= _KIB
        step += 1
    return f"{size:,.0f} {_UNITS[step]}" if step == 0 else f"{size:,.1f} {_UNITS[step]}"
