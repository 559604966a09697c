"""Finds every predicate of a statement, and gives the statement without it: one mutant each.

A predicate is a term of an AND in a WHERE, ON, HAVING or WHEN (or in a THEN of a CASE that is a condition itself), or
an arm of an OR within one. A term that is dropped becomes `1`, an arm becomes `0` (or what the store has for these):
what remains is the same statement with one condition less.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(r"--[^\n]*|'(?:[^']|'')*'|DISTINCT\s+(?:FROM|ON)\b|[A-Za-z_:][A-Za-z_0-9]*|[()]|\s+|.", re.DOTALL)
_OPENING = frozenset({"WHERE", "ON", "HAVING", "WHEN"})
_CLOSING = frozenset(
    {"WHERE", "GROUP", "ORDER", "LIMIT", "UNION", "RETURNING", "HAVING", "LEFT", "CROSS", "INNER", "JOIN", "THEN"}
    | {"ELSE", "WHEN", "SET", "DO", "FROM", "WINDOW", "EXCEPT", "ON", "FOR"}
)
_BEFORE_CONDITION = frozenset({"WHERE", "AND", "OR", "ON", "NOT", "("})
_ALWAYS = frozenset({"true", "1", "MATCHED", "NOT MATCHED"})


class Words(NamedTuple):
    """What stands in a statement for a condition that is dropped."""

    always: str
    never: str


NUMBERS = Words("1", "0")


class Token(NamedTuple):
    """A word, a sign, a string or space, where it begins, and how deep in parentheses and CASEs it stands."""

    text: str
    at: int
    depth: int

    @property
    def word(self) -> str:
        """In capitals, for keywords."""
        return self.text.upper()

    @property
    def empty(self) -> bool:
        """Space or a comment."""
        return self.text.isspace() or self.text.startswith("--")


class Mutant(NamedTuple):
    """A statement without one predicate."""

    statement: str
    number: int
    predicate: str
    """In one line."""
    sql: str

    @property
    def name(self) -> str:
        """For the command line and the list of survivors; the text keeps it when others are added before it."""
        return f"{self.statement}: {self.predicate}"


def tokens(sql: str) -> list[Token]:
    """The statement in pieces. A closing parenthesis or END has the depth of its opening."""
    found: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(sql):
        text = match.group()
        if text == ")" or text.upper() == "END":
            depth -= 1
        found.append(Token(text, match.start(), depth))
        if text == "(" or text.upper() == "CASE":
            depth += 1
    return found


def mutants(statement: str, sql: str, words: Words = NUMBERS) -> list[Mutant]:
    """The statement without each of its predicates in turn."""
    made: list[Mutant] = []
    pieces = tokens(sql)
    for begin, end in _clauses(pieces):
        for first, last, is_arm in _droppable(pieces, begin, end):
            if _told(sql, pieces, first, last) in _ALWAYS:
                continue
            mutant = Mutant(statement, len(made), _told(sql, pieces, first, last), "")
            if is_arm:
                mutant = mutant._replace(predicate=f"{mutant.predicate} (arm)")
            instead = words.never if is_arm else words.always
            made.append(mutant._replace(sql=_without(sql, pieces, first, last, instead)))
    return _named_apart(made)


def _clauses(pieces: list[Token]) -> Iterator[tuple[int, int]]:
    """The bounds of each condition: from after its keyword to before what follows it."""
    deciding = _deciding_cases(pieces)
    for place, token in enumerate(pieces):
        opens = token.word in _OPENING and not _is_conflict(pieces, place)
        if not opens and not (token.word == "THEN" and deciding.get(place)):
            continue
        end = place + 1
        while end < len(pieces) and not _closes(pieces[end], token.depth):
            end += 1
        yield place + 1, end


def _deciding_cases(pieces: list[Token]) -> dict[int, bool]:
    """For each THEN, whether its CASE is a condition itself."""
    found: dict[int, bool] = {}
    cases: list[bool] = []
    before = ""
    for place, token in enumerate(pieces):
        if token.empty:
            continue
        if token.word == "CASE":
            cases.append(before in _BEFORE_CONDITION)
        elif token.word == "END" and cases:
            cases.pop()
        elif token.word == "THEN" and cases:
            found[place] = cases[-1]
        before = token.word
    return found


def _is_conflict(pieces: list[Token], place: int) -> bool:
    following = next((each.word for each in pieces[place + 1 :] if not each.empty), "")
    return following == "CONFLICT"


def _closes(token: Token, depth: int) -> bool:
    if token.depth < depth:
        return True
    return token.depth == depth and (token.word in _CLOSING or token.text in (",", ";"))


def _droppable(pieces: list[Token], begin: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """The bounds of what can be dropped, and whether it is an arm of an OR."""
    terms = list(_split(pieces, begin, end, "AND"))
    for first, last in terms:
        yield first, last, False
        yield from _arms(pieces, first, last)


def _arms(pieces: list[Token], first: int, last: int) -> Iterator[tuple[int, int, bool]]:
    """The arms of an OR that stands in this term, with or without parentheses around it."""
    solid = [place for place in range(first, last) if not pieces[place].empty]
    if len(solid) > 2 and pieces[solid[0]].text == "(" and pieces[solid[-1]].text == ")":
        closing = next(place for place in solid[1:] if pieces[place].depth == pieces[solid[0]].depth)
        if closing == solid[-1] and pieces[solid[1]].word != "SELECT":
            first, last = solid[0] + 1, solid[-1]
    arms = list(_split(pieces, first, last, "OR"))
    if len(arms) < 2:
        return
    for arm_first, arm_last in arms:
        yield arm_first, arm_last, True
        terms = list(_split(pieces, arm_first, arm_last, "AND"))
        if len(terms) > 1:
            yield from ((term_first, term_last, False) for term_first, term_last in terms)


def _split(pieces: list[Token], begin: int, end: int, by: str) -> Iterator[tuple[int, int]]:
    """Split at a keyword of the outermost depth. The AND of a BETWEEN does not count; an AND binds before an OR."""
    if begin >= end:
        return
    depth = min(piece.depth for piece in pieces[begin:end])
    first, between = begin, False
    words = [piece.word for piece in pieces[begin:end] if piece.depth == depth]
    if by == "AND" and "OR" in words:
        yield begin, end
        return
    for place in range(begin, end):
        piece = pieces[place]
        if piece.depth != depth:
            continue
        if piece.word == "BETWEEN":
            between = True
        elif piece.word == by and by == "AND" and between:
            between = False
        elif piece.word == by:
            yield first, place
            first = place + 1
    yield first, end


def _bounds(sql: str, pieces: list[Token], first: int, last: int) -> tuple[int, int]:
    return pieces[first].at, pieces[last].at if last < len(pieces) else len(sql)


def _told(sql: str, pieces: list[Token], first: int, last: int) -> str:
    begin, end = _bounds(sql, pieces, first, last)
    return " ".join(re.sub(r"--[^\n]*", "", sql[begin:end]).split())


def _without(sql: str, pieces: list[Token], first: int, last: int, instead: str) -> str:
    begin, end = _bounds(sql, pieces, first, last)
    text = sql[begin:end]
    kept_before, kept_after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{sql[:begin]}{kept_before or ' '}{instead}{kept_after or ' '}{sql[end:]}"


def _named_apart(made: list[Mutant]) -> list[Mutant]:
    """Give the same predicate in two places two names."""
    seen: dict[str, int] = {}
    apart: list[Mutant] = []
    for each in made:
        count = seen[each.predicate] = seen.get(each.predicate, 0) + 1
        apart.append(each if count == 1 else each._replace(predicate=f"{each.predicate} ({count})"))
    return apart
