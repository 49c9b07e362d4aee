"""A module of tools of every kind, for tests that name them."""

from __future__ import annotations

SHOP = '''
import asyncio
import functools

ran = []


def noted(what):
    ran.append(what)
    return what


def plain(what: str, *more: str, limit: int = 3) -> str:
    """Note it."""
    return noted(what)


def politely(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


def rudely(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


class Framework:
    def __init__(self, function):
        self.name = function.__name__
        self.run = rudely(function)

    def __call__(self, what):
        return self.run(what)


@politely
@politely
def wrapped(what):
    return noted(what)


@rudely
@politely
def unnamed(what):
    return noted(what)


@functools.lru_cache
def cached(what):
    return noted(what)


@Framework
def framework(what):
    return noted(what)


@politely
async def awaited(what):
    await asyncio.sleep(0)
    return noted(what)


@rudely
def yielded(what):
    yield noted(what)
    yield noted(what + what)


@politely
async def streamed(what):
    yield noted(what)
    await asyncio.sleep(0)
    yield noted(what + what)


def closure():
    prefix = "c"

    def closed(what):
        return noted(prefix + what)
    return closed


closed = closure()
added = functools.partial(plain, limit=4)


class Bank:
    def pay(self, what):
        return noted(what)

    @staticmethod
    async def lend(what):
        return noted(what)

    @classmethod
    @politely
    def save(cls, what):
        return noted(what)


bank = Bank()
pay = bank.pay
TABLE = {"plain": plain, "pay": bank.pay}
NESTED = [{"type": "function", "name": "wrapped", "function": wrapped}, {"more": {unnamed}}]


def by_default(what, call=plain):
    return call(what)
'''
