"""Say how two exchanges of the same place differ, and what each run brought into later questions.

A model is sent the whole history with each question, so one other answer is in all questions that
follow. A `History` holds what differed before: a question that differs only by that is the same
question, asked after another history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from tracefork_core.comparing.alignment import align
from tracefork_core.comparing.finding import Kind, Section
from tracefork_core.comparing.reading import Reading, Spoken, as_key
from tracefork_core.explaining.differences import body_places, value_places
from tracefork_core.providers.lenient import Json
from tracefork_core.providers.question import MESSAGES

_TELLING = 3
"""The least length of a text that is recognised inside another."""
_KEPT = 1_000
"""The latest texts that are looked for in later messages."""
_HEARD = "\0"


@dataclass(slots=True)
class History:
    """What one run said before that the other did not."""

    keys: set[str] = field(default_factory=set)
    texts: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def has(self, message: Spoken) -> bool:
        """Return whether a message was heard before."""
        return message.key in self.keys or self.without(message.words) == _HEARD

    def without(self, words: str) -> str:
        """Return a text with a mark in place of what was heard before."""
        for text in sorted(self.texts, key=len, reverse=True):
            words = words.replace(text, _HEARD) if len(text) >= _TELLING else words
        return words

    def add_answer(self, reading: Reading) -> None:
        """Note what an exchange answered."""
        self.keys.update(message.key for message in reading.said)
        self.texts.extend(_texts(list(reading.answer.values())))

    def add_exchange(self, reading: Reading) -> None:
        """Note an exchange that the other run does not have."""
        self.add(list(reading.tail))
        self.add_answer(reading)

    def add(self, messages: list[Spoken]) -> None:
        """Note messages of a question."""
        self.keys.update(message.key for message in messages)


@dataclass(slots=True)
class Past:
    """What differed before: the histories of both runs, and changes outside of messages."""

    before: History = field(default_factory=History)
    after: History = field(default_factory=History)
    changes: set[str] = field(default_factory=set)

    def is_new(self, section: Section) -> bool:
        """Return whether a system prompt, tools or settings change like this for the first time."""
        key = as_key([section.name, section.before, section.after])
        is_new = key not in self.changes
        self.changes.add(key)
        return is_new


@dataclass(frozen=True, slots=True)
class Judgement:
    """How two exchanges differ; `after_other` if their questions follow different histories."""

    kind: Kind
    pointer: str = ""
    sections: tuple[Section, ...] = ()
    after_other: bool = False


def judge(first: Reading, second: Reading, past: Past) -> Judgement:
    """Compare two exchanges, and note what differs for the questions that follow."""
    before, after = past.before, past.after
    if first.operation != second.operation:
        sections = (Section("operation", first.operation, second.operation),)
        before.add_exchange(first)
        after.add_exchange(second)
        return Judgement("operation differs", "operation", sections)
    changed = list(differing(first.fixed, second.fixed))
    # What a model is told with each question is one change; what a tool is asked is its own.
    fixed = [one for one in changed if not first.messages or past.is_new(one)]
    asked = _Messages(first.messages, second.messages)
    new = asked.new(before, after)
    answers = list(differing(first.answer, second.answer))
    if answers or first.error != second.error:
        before.add_answer(first)
        after.add_answer(second)
    after_other = bool(changed or asked.dropped or asked.added)
    if fixed or new:
        pointer = _pointer(first, second, asked, bool(new))
        return Judgement("input differs", pointer, (*fixed, *new, *answers), after_other)
    if first.error != second.error:
        section = Section("error", first.error, second.error)
        return Judgement("error differs", "error", (section, *answers), after_other)
    if answers:
        pointer = answers[0].name + _first_place(answers[0])
        return Judgement("output differs", pointer, tuple(answers), after_other)
    return Judgement("exact", after_other=after_other)


class _Messages:
    """The messages that only one of two questions has."""

    def __init__(self, first: tuple[Spoken, ...], second: tuple[Spoken, ...]) -> None:
        pairs = align([one.key for one in first], [one.key for one in second])
        here, there = {i for i, _ in pairs}, {j for _, j in pairs}
        self.dropped = [i for i in range(len(first)) if i not in here]
        self.added = [j for j in range(len(second)) if j not in there]
        self._first, self._second = first, second

    def new(self, before: History, after: History) -> list[Section]:
        """Return what differs and was not in the history; add it to the history."""
        dropped = [i for i in self.dropped if not before.has(self._first[i])]
        added = [j for j in self.added if not after.has(self._second[j])]
        # A message may hold an earlier answer, and differ by nothing else.
        here = [before.without(self._first[i].words) for i in dropped]
        there = [after.without(self._second[j].words) for j in added]
        same = align(here, there)
        ours, theirs = {i for i, _ in same}, {j for _, j in same}
        dropped = [number for i, number in enumerate(dropped) if i not in ours]
        added = [number for j, number in enumerate(added) if j not in theirs]
        before.add([self._first[i] for i in self.dropped])
        after.add([self._second[j] for j in self.added])
        self.new_places = dropped, added
        return list(self._sections(dropped, added))

    def _sections(self, dropped: list[int], added: list[int]) -> Iterator[Section]:
        if dropped and sorted(self._first[i].key for i in dropped) == sorted(
            self._second[j].key for j in added
        ):
            here: Json = [label(self._first[i]) for i in dropped]
            there: Json = [label(self._second[j]) for j in added]
            yield Section("order of messages", here, there)
            return
        for i, j in zip_longest(dropped, added):
            message = self._first[i] if i is not None else self._second[j]
            yield Section(
                label(message),
                None if i is None else self._first[i].words,
                None if j is None else self._second[j].words,
            )


def label(message: Spoken) -> str:
    """Return what a message is to people: "system prompt", "prompt", "tool result", "history"."""
    if message.is_result:
        return "tool result"
    names = {"system": "system prompt", "developer": "system prompt", "user": "prompt"}
    return names.get(message.role, "history")


def _texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            yield from (text for one in value.values() for text in _texts(one))
        case list():
            yield from (text for one in value for text in _texts(one))


def differing(before: dict[str, Json], after: dict[str, Json]) -> Iterator[Section]:
    """Yield the parts of two exchanges that differ, by their names."""
    for name in [*before, *(name for name in after if name not in before)]:
        one, other = before.get(name), after.get(name)
        # As JSON: 1, 1.0 and true are equal in Python, but not to a provider.
        if as_key(one) != as_key(other):
            yield Section(name, one, other)


def _pointer(first: Reading, second: Reading, asked: _Messages, is_in_messages: bool) -> str:
    """Return where two questions differ at first, as a pointer into the request body."""
    if not first.exchange.has_bodies or not second.exchange.has_bodies:
        return "body"
    bodies = first.exchange.request_body, second.exchange.request_body
    places = [
        pointer
        for pointer, one, other in body_places(*bodies)
        if first.plain(one) != second.plain(other)
    ]
    within = f"/{MESSAGES.get(first.api, ('messages', ''))[0]}/"
    if not is_in_messages:
        return next((place for place in places if not place.startswith(within)), "url")
    dropped, added = asked.new_places
    at = f"{within}{min([*dropped[:1], *added[:1]])}"
    if dropped[:1] != added[:1]:
        return at  # One message more or less, and all that follow moved.
    return next((place for place in places if place.startswith(f"{at}/")), at)


def _first_place(section: Section) -> str:
    """Return the pointer to the first value that differs in a section; empty if it is all of it."""
    return next((pointer for pointer, *_ in value_places(section.before, section.after)), "")
