"""An object that has a key twice is refused, wherever in a body it is; nothing else is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.asking import Asker
from perdure.errors import Malformed
from perdure.gateway.repeated_keys import check_keys

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind":"k","kind":"k"}',
        b'{"kind":"k","payload":{"kind":1,"kind":1}}',
        b'[{"kind":"k"},{"kind":"k","payload":[[{"a":0,"kind":1,"b":0,"kind":2}]]}]',
        b'{"kind" : "k" , "kind"\n:\t"k"}',
        b'{"kind":"k","k\\u0069nd":"k"}',
        b'{"kind":"a\\u003ab","kind":"k"}',
        b'{"kind":"a\\u003Ab","kind":"k"}',
        b'{"kind":99999999999999999999999999999999999999999999,"kind":"k"}',
        b'{"kind":1.0,"x":"a:b\\":c","kind":"k"}',
    ],
)
def test_a_key_that_is_there_twice_is_named(body: bytes):
    with pytest.raises(Malformed) as refused:
        check_keys(body)
    assert refused.value.field == "kind"


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_what_has_every_key_once_is_let_pass(value: object, ascii_only: bool, indent: int | None):
    check_keys(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass"))


@given(st.text(min_size=1), VALUES, VALUES)
def test_a_key_that_is_there_twice_is_always_found(key: str, first: object, second: object):
    said, one, two = (json.dumps(each) for each in (key, first, second))
    with pytest.raises(Malformed):
        check_keys(f"[1, {{{said}: {one}, {said}: {two}}}]".encode())


@pytest.mark.parametrize("body", [b"", b"[]", b'"a:b"', b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b'{"a":NaN}', b"{"])
def test_what_only_others_can_judge_is_left_to_them(body: bytes):
    check_keys(body)


async def test_such_a_body_is_refused_and_stores_nothing(asker: Asker):
    for data in (b'{"kind":"a","kind":"b"}', b'{"kind":"a","payload":{"x":1,"x":2}}', b'[{"kind":"a","kind":"b"}]'):
        answer = await asker.ask("POST", "/v1/tasks", data=data)
        assert (answer.status, answer.json["code"]) == (400, "malformed")
        assert answer.json["field"] in ("kind", "x")
    assert (await asker.ask("GET", "/v1/tasks")).json["tasks"] == []
