"""Errors cross the wire by their codes."""

import pytest

from perdure import errors
from perdure.client.problems import CLASSES, error_of, error_of_answer
from perdure.errors import Misuse, NotFound, Refused, StoreUnreachable, Unavailable
from perdure.gateway import problems

REFUSALS = [each for each in problems.classes() if issubclass(each, Refused) and each.__module__ == errors.__name__]


@pytest.mark.parametrize("cls", REFUSALS, ids=lambda each: each.__name__)
def test_a_refusal_arrives_as_the_same_class_with_the_same_words_and_fields(cls):
    sent = cls("no such thing", what="task", id="x", retry_after=2.0)
    arrived = error_of(problems.members_of(sent))
    assert type(arrived) is cls
    assert arrived.message == sent.message
    assert arrived.fields == sent.fields


def test_every_class_with_a_code_of_its_own_can_arrive():
    for code, cls in CLASSES.items():
        assert type(error_of({"code": code, "status": cls.status, "detail": "d"})) is cls


@pytest.mark.parametrize(
    ("status", "cls"), [(404, NotFound), (409, Refused), (503, Unavailable), (500, errors.PerdureError)]
)
def test_a_code_of_a_later_version_becomes_the_nearest_class(status, cls):
    error = error_of({"code": "os.system", "status": status, "detail": "later"})
    assert type(error) is cls
    assert error.problem == "os.system"


@pytest.mark.parametrize("body", [b"", b"null", b"[1]", b"{", b"\xff"])
def test_a_broken_problem_is_an_error_nonetheless(body):
    error = error_of_answer(400, "application/problem+json", body, "http://gateway")
    assert isinstance(error, Misuse)
    assert isinstance(error_of_answer(502, "application/problem+json", body, "http://gateway"), StoreUnreachable)
