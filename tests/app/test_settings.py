"""Settings: where they come from, what they must be, and how they are told."""

import math

import pytest

from perdure.errors import Invalid, Malformed
from perdure.settings import Settings, settings_table, unknown_variables


def test_defaults_hold_where_nothing_is_said():
    settings = Settings.load(environ={})
    assert settings == Settings()
    assert settings.store == "perdure.db"


def test_later_sources_win(tmp_path):
    config = tmp_path / "perdure.toml"
    config.write_text('store = "file.db"\nconcurrency = 3\ngrace = 5\nqueues = ["a", "b"]\n')
    environ = {"PERDURE_CONFIG": str(config), "PERDURE_CONCURRENCY": "4", "PERDURE_GRACE": "6"}
    settings = Settings.load(environ=environ, grace=7.5)
    assert (settings.store, settings.concurrency, settings.grace) == ("file.db", 4, 7.5)
    assert settings.queues == ("a", "b")


def test_an_argument_that_is_none_was_not_said():
    assert Settings.load(environ={"PERDURE_STORE": "a.db"}, store=None).store == "a.db"


def test_lists_in_the_environment_are_separated_by_commas():
    assert Settings.load(environ={"PERDURE_QUEUES": "a, b,,c"}).queues == ("a", "b", "c")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("concurrency", 0),
        ("concurrency", 1_001),
        ("lease", 4.9),
        ("lease", math.nan),
        ("retention", -1),
        ("log_level", "loud"),
        ("payload_max_bytes", 10**9),
        ("store", ""),
        ("queues", "a"),
        ("grace", "long"),
    ],
)
def test_a_bad_value_is_refused_with_the_setting_named(name, value):
    with pytest.raises(Invalid) as refused:
        Settings(**{name: value})
    assert refused.value.field == name
    assert name in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("PERDURE_CONCURRENCY", "many", "^PERDURE_CONCURRENCY='many' is not a whole number$"),
        ("PERDURE_PREFETCH", "1.5", "^PERDURE_PREFETCH='1.5' is not a whole number$"),
        ("PERDURE_GRACE", "long", "^PERDURE_GRACE='long' is not a number$"),
        ("PERDURE_CONCURRENCY", "0", "^PERDURE_CONCURRENCY='0': .* must be 1 to 1000 tasks"),
        ("PERDURE_LOG_LEVEL", "loud", "^PERDURE_LOG_LEVEL='loud': .* must be one of debug"),
    ],
)
def test_a_bad_value_in_the_environment_is_refused_with_its_variable(name, text, says):
    with pytest.raises(Invalid, match=says):
        Settings.load(environ={name: text})


def test_an_unknown_variable_is_told_with_the_nearest_one():
    environ = {"PERDURE_CONCURENCY": "3", "PERDURE_GRACE": "3", "PERDURE_TEST_LIVES": "3", "PERDURE_EFFECT_LEDGER": "x"}
    [sentence] = unknown_variables(environ)
    assert sentence == "PERDURE_CONCURENCY is not a setting and changes nothing; did you mean PERDURE_CONCURRENCY?"


def test_an_unknown_setting_is_refused_and_the_nearest_is_named(tmp_path):
    config = tmp_path / "perdure.toml"
    config.write_text("concurency = 3\n")
    with pytest.raises(Invalid, match="did you mean concurrency"):
        Settings.load(environ={}, config=config)


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(Invalid, match="cannot be read"):
        Settings.load(environ={"PERDURE_CONFIG": "/no/such/file.toml"})


def test_a_file_that_is_not_toml_is_refused(tmp_path):
    config = tmp_path / "perdure.toml"
    config.write_text("store = = 1")
    with pytest.raises(Malformed, match="is not TOML"):
        Settings.load(environ={}, config=config)


def test_settings_do_not_change():
    with pytest.raises(AttributeError):
        Settings().store = "other.db"


def test_changed_settings_are_new_ones():
    settings = Settings()
    assert settings.but(store="other.db", grace=None) == Settings(store="other.db")
    assert settings.store == "perdure.db"


def test_how_long_ends_are_kept_is_said_by_state(tmp_path):
    said = {"succeeded": 60.0, "dead_lettered": 2_592_000.0}
    assert Settings.load(environ={"PERDURE_RETENTION_BY_STATE": "succeeded=60, dead_lettered=2592000"}) == Settings(
        retention_by_state=said
    )
    config = tmp_path / "perdure.toml"
    config.write_text("[retention_by_state]\nsucceeded = 60\ndead_lettered = 2592000\n")
    assert Settings.load(environ={}, config=config).retention_by_state == said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("succeeded", "write name=value"),
        ("succeeded=soon", "must be a number"),
        ("running=60", "must be one of cancelled"),
        ("succeeded=-1", "0 to 315360000 s"),
    ],
)
def test_a_bad_choice_of_how_long_ends_are_kept_is_refused_with_its_name(text, says):
    with pytest.raises(Invalid, match="retention_by_state.*" + says):
        Settings.load(environ={"PERDURE_RETENTION_BY_STATE": text})


def test_every_setting_is_told_with_its_variable_unit_and_meaning():
    rows = {row.name: row for row in settings_table()}
    assert rows["lease"].variable == "PERDURE_LEASE"
    assert (rows["lease"].default, rows["lease"].unit, rows["lease"].allowed) == ("60", "s", "5 to 3600")
    assert all(row.doc.endswith(".") for row in rows.values())
