"""List the functions that are known to draw randomness or the time, with a remedy for each.

Nothing is imported here: a function is looked up in its module once that is loaded. Sources that
are not Python functions cannot be wrapped, and are not in this table; see
docs/explanation/determinism-boundary.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

CLOCK, ENTROPY = "clock", "entropy"

VALUES = frozenset(
    """
    arrow bson cuid cuid2 dateutil faker fastuuid freezegun ksuid mimesis nacl nanoid pandas
    pendulum random secrets shortuuid time_machine ulid uuid uuid6 uuid_extensions uuid_utils
    whenever
    """.split()
)
"""Libraries that draw on behalf of their caller, by the first part of their names."""

STARTERS = frozenset(
    "anyio asyncio concurrent multiprocessing os pty shutil subprocess uvloop".split()
)
"""Libraries that start programs and processes on behalf of their caller."""

Asked = tuple[tuple[object, ...], Mapping[str, object]]
"""Positional and named arguments of a call."""


@dataclass(frozen=True, slots=True)
class Door:
    """One function that draws.

    Attributes:
        module: the module that it is looked up in.
        name: its name there; a method with its class in front.
        why: why a call is not on the tape, to go on after the function's name.
        fix: the remedy, a sentence.
        source: the source that records it while that is on; None if none does.
        draws: returns whether a call with these arguments draws; None if each does.
    """

    module: str
    name: str
    why: str
    fix: str
    source: str | None = None
    draws: Callable[[Asked], bool] | None = None

    @property
    def label(self) -> str:
        """The function as users write it."""
        return f"{self.module}.{self.name.removesuffix('.__init__')}"


def _unseeded(asked: Asked) -> bool:
    """Return whether the call has no seed, neither as first argument nor by name."""
    given, named = asked
    seed = given[0] if given else named.get("seed", named.get("x"))
    return seed is None


def _unseeded_self(asked: Asked) -> bool:
    given, named = asked
    return type(given[0]).__name__ != "SystemRandom" and _unseeded((given[1:], named))


def _no_time(asked: Asked) -> bool:
    given, _ = asked
    return not given or given[0] is None


_RANDOM = """
    random randint randrange choice choices sample shuffle uniform triangular gauss normalvariate
    lognormvariate expovariate betavariate gammavariate paretovariate weibullvariate vonmisesvariate
    getrandbits randbytes
"""
_SECRETS = "token_bytes token_hex token_urlsafe choice randbelow randbits"
_UUIDS = "uuid1 uuid4 uuid6 uuid7"
_FASTUUIDS = """
    uuid_v1mc uuid4_bulk uuid7_bulk uuid4_as_strings_bulk uuid7_as_strings_bulk
"""
_OFF = "is not on the tape: the entropy of this run was switched off"
_SWITCH_ON = "Leave entropy on, or draw from run.nondet."
_NATIVE = "draws in native code, which is not on the tape"
_USE_UUID = "Use uuid.uuid4(), or run.nondet.uuid()."
_USE_BYTES = "Use os.urandom() or secrets, or run.nondet."
_SEED = "Give it a seed, for example random.getrandbits(64)."


def _covered(module: str, names: str) -> Iterator[Door]:
    for name in names.split():
        yield Door(module, name, _OFF, _SWITCH_ON, ENTROPY)


def _native(module: str, names: str, fix: str) -> Iterator[Door]:
    for name in names.split():
        yield Door(module, name, _NATIVE, fix)


DOORS = (
    *_covered("uuid", "uuid1 uuid4"),
    *_covered("fastuuid", "uuid4 uuid7"),
    *_covered("uuid_utils", _UUIDS),
    *_covered("uuid_utils.compat", _UUIDS),
    *_covered("os", "urandom getrandom"),
    *_covered("random", _RANDOM),
    *_covered("secrets", _SECRETS),
    Door("random", "Random.__init__", "without a seed " + _OFF, _SEED, ENTROPY, _unseeded_self),
    *(
        Door(
            "time",
            name,
            "reads the clock in C, which is not on the tape",
            "Use time.strftime() or datetime.now().",
            draws=_no_time,
        )
        for name in ("ctime", "asctime")
    ),
    *_native("fastuuid", _FASTUUIDS, _USE_UUID),
    *_native("ssl", "RAND_bytes", _USE_BYTES),
    *_native("nacl.utils", "random", _USE_BYTES),
    Door("numpy.random", "default_rng", "without a seed " + _OFF, _SEED, ENTROPY, _unseeded),
    Door(
        "_thread",
        "start_new_thread",
        "starts a thread without a lane: its exchanges have no order",
        "Start a threading.Thread.",
    ),
)
