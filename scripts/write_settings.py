"""Writes docs/settings.md from `perdure.settings`. Run it with `make docs`."""

from pathlib import Path

from perdure.settings import SettingRow, settings_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"

HEAD = """# Settings

This page is made from `src/perdure/settings.py` by `make docs`; a test compares the two. Everything has a default
that is safe; a value out of range is refused at start with the setting's name.

Later sources win: the default, then the TOML file that `PERDURE_CONFIG` names (keys as in the first column), then the
environment, then arguments of the program.

| setting | environment | default | unit | allowed | what it is |
|---|---|---|---|---|---|
"""


def write() -> str:
    """The whole page."""
    return HEAD + "".join(map(_line, settings_table()))


def _line(row: SettingRow) -> str:
    default = f"`{row.default}`" if row.default else "(none)"
    cells = [f"`{row.name}`", f"`{row.variable}`", default, row.unit or "-", row.allowed or "-", row.doc]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(write(), encoding="utf-8")
