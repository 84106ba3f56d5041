"""How is a region of infinitely many steps split into finitely many cases? By asking questions.

A program asks a `Case` whether a form is at least 0, or what its remainder is. Where the region
leaves both answers possible, the program is run once for each; an answer that no whole numbers can
give is cut, by exact integer reasoning. So the cases are the leaves of a binary tree whose branches
exclude each other and leave nothing out: they are disjoint and cover the region by construction,
and each of them really occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lgcourse.certify.integers import Row, System, add, feasible

LIMIT = 20_000  # cases of one region; more are a sign that the relation is no small one


class CaseLimitError(Exception):
    """A region splits into more cases than the limit."""


class Case:
    """One path through the tree: the region so far, and answers.

    Args:
        region: the system of integer conditions.
        width: number of variables in use; remainders take new ones.
        answers: the first answers to give, from an earlier path.
    """

    def __init__(self, region: System, width: int, answers: tuple[tuple[int, bool], ...] = ()):
        self.region, self.width = region, width
        self.others: list[tuple[tuple[int, bool], ...]] = []  # paths that are open, too
        self._script, self._made = answers, [] if not answers else list(answers)
        self._next = 0
        self._known: dict[Row, bool] = {}

    def not_negative(self, form: Row) -> bool:
        """Return whether a form is at least 0."""
        form = _trim(form)
        if form not in self._known:
            negative = add((-1,), form, by=-1)  # form <= -1
            answer = self._choose([System((form,)), System((negative,))]) == 0
            self._known[form], self._known[_trim(negative)] = answer, not answer
        return self._known[form]

    def is_zero(self, form: Row) -> bool:
        """Return whether a form is 0."""
        return self.not_negative(form) and self.not_negative(add((), form, by=-1))

    def divide(self, form: Row, by: int) -> tuple[Row, int]:
        """Return quotient (a form) and remainder of a form divided by a whole number >= 1."""
        if all(c % by == 0 for c in form[1:]):
            return tuple(c // by for c in form), form[0] % by
        quotient = (*(0,) * (self.width + 1), 1)
        exact = add(form, quotient, by=-by)
        self.width += 1
        options = [System(zero=(add(exact, (r,), by=-1),)) for r in range(by)]
        return quotient, self._choose(options, always=True)

    def always_zero(self, form: Row) -> bool:
        """Return whether a form is 0 in the whole region as it is now; asks no question."""
        less, more = add((-1,), form, by=-1), add((-1,), form)
        return not any(feasible(self.region.with_rows([row])) for row in (less, more))

    def _choose(self, options: list[System], always: bool = False) -> int:
        if self._next < len(self._script):
            choice, split = self._script[self._next]
        else:
            possible = [k for k, option in enumerate(options) if feasible(self._with(option))]
            choice, split = possible[0], len(possible) > 1
            path = tuple(self._made)
            self.others += [(*path, (other, True)) for other in possible[1:]]
            self._made.append((choice, split))
        self._next += 1
        if split or always:
            self.region = self._with(options[choice])
        return choice

    def _with(self, option: System) -> System:
        return self.region.with_rows(option.positive, option.zero)


def explore(
    program: Callable[[Case], Any], region: System, width: int, limit: int = LIMIT
) -> Iterator[tuple[Any, Case]]:
    """Yield what a program returns in every case of a region, and the case.

    Args:
        program: asks its `Case` and returns anything; it is deterministic in the answers.
        region: the region to split, which is not empty.
        width: number of variables of the region.
        limit: largest number of cases.

    Raises:
        CaseLimitError: there are more.

    >>> region = System(positive=((0, 1), (9, -1)))  # 0 <= x <= 9
    >>> sign = lambda case: (case.not_negative((-4, 1)), case.divide((0, 1), 2)[1])
    >>> sorted(found for found, _ in explore(sign, region, 1))
    [(False, 0), (False, 1), (True, 0), (True, 1)]
    """
    pending: list[tuple[tuple[int, bool], ...]] = [()]
    count = 0
    while pending:
        count += 1
        if count > limit:
            raise CaseLimitError(f"more than {limit:,} cases")
        case = Case(region, width, pending.pop())
        found = program(case)
        pending += reversed(case.others)
        yield found, case


def _trim(row: Row) -> Row:
    width = len(row)
    while width > 1 and row[width - 1] == 0:
        width -= 1
    return tuple(row[:width])
