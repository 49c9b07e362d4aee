"""Multiply tokens by prices where a model's price is no more than that.

The library takes a quarter of a millisecond for each call: it checks its price list again and works
out which counts contain which. A long tape has ten thousand calls of two models. So what depends on
the price list alone is worked out once.

The library stays the measure. Each combination of counts is given to it first, and is multiplied
from then on only if both results are equal. It is asked again for prices in tiers, for counts that
are no whole tokens, and for counts that contradict each other. If a later version of it has other
insides, all prices are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tracefork_core.providers.lenient import Json

if TYPE_CHECKING:
    from tracefork_core.providers.price_lists import PriceLists

_TOKENS = "_tokens"
_ROOTS = ("usage", ["usage"], "usageMetadata", ["usageMetadata"])
"""Where the library looks for the usage object in an answer."""
_Reported = tuple[tuple[str, ...], tuple[bool, ...]]
"""The kinds that a usage reports, and which of them are more than zero: a zero is no gap."""


@dataclass(frozen=True, slots=True)
class _Charge:
    """What tokens of a kind cost: those that no narrower kind of the same list counts, too."""

    kind: str
    price: Decimal
    per: int
    narrower: tuple[str, ...]


@dataclass(slots=True)
class _Prices:
    """The charges of a price list, the narrowest kinds first.

    `proven` are the combinations of reported kinds for which they give what the library gives.
    """

    source: object
    charges: list[_Charge]
    proven: set[_Reported] = field(default_factory=set)

    def total(self, counts: dict[str, int]) -> Decimal | None:
        """Return the price; None if a kind counts more tokens than the kinds it is part of."""
        own: dict[str, int] = {}
        total = Decimal(0)
        for charge in self.charges:
            count = counts.get(charge.kind, 0) - sum([own[kind] for kind in charge.narrower])
            if count < 0:
                return None
            own[charge.kind] = count
            total += charge.price * count / charge.per
        return total


@dataclass(frozen=True, slots=True)
class _Path:
    """Where a usage object of a provider holds a count of a kind."""

    steps: tuple[str, ...]
    kind: str
    is_required: bool


class LinearPrices:
    """The prices of the installed lists."""

    def __init__(self, lists: PriceLists) -> None:
        self._lists = lists
        self._prices: dict[int, _Prices | None] = {}
        self._paths: dict[tuple[str, str], list[_Path] | None] = {}

    def counts(self, reported: Json, provider: str, flavor: str) -> dict[str, int] | None:
        """Return the counts in a usage object; None if only the library can read it.

        Args:
            reported: the usage object, as the provider wrote it.
            provider: the provider, by the library's name.
            flavor: the format, by the library's name.
        """
        key = provider, flavor
        paths = self._paths.get(key)
        if paths is None and key not in self._paths:
            paths = self._paths[key] = self._read_paths(provider, flavor)
        counts: dict[str, int] = {}
        for path in paths or ():
            value: Json = reported
            for step in path.steps:
                value = value.get(step) if isinstance(value, dict) else None
            if type(value) is int and value >= 0:
                counts[path.kind] = counts.get(path.kind, 0) + value
            elif path.is_required or value is not None:
                return None
        return counts or None

    def _read_paths(self, provider: str, flavor: str) -> list[_Path] | None:
        try:
            found = self._lists.prices.find_provider(None, provider, None)
            reader = next(one for one in found.extractors if one.api_flavor == flavor)
            paths = []
            for one in reader.mappings:
                steps = (one.path,) if isinstance(one.path, str) else tuple(one.path)
                paths.append(_Path(steps, one.dest, one.required))
        except (AttributeError, LookupError, StopIteration, TypeError):
            return None
        is_plain = all(isinstance(step, str) for path in paths for step in path.steps)
        return paths if is_plain and reader.root in _ROOTS else None

    def total(
        self,
        counts: dict[str, int] | None,
        usage: Callable[[], object],
        model: str,
        provider: str,
        at: datetime | None,
        context: dict[str, str],
    ) -> Decimal:
        """Return what a call cost.

        Args:
            counts: the tokens of each kind; None if they are not whole.
            usage: returns the same, as the library has it.
            model: the model's name.
            provider: its provider, by the library's name.
            at: when the call was made; None for now.
            context: the service tier and the speed, as far as they are stated.

        Raises:
            LookupError, ValueError: the library knows no price.
        """
        at = at or datetime.now(UTC)
        prices = self._of(model, provider, at, context)
        reported: _Reported = ((), ())
        if prices is not None and counts and all(kind.endswith(_TOKENS) for kind in counts):
            reported = tuple(counts), tuple(map(bool, counts.values()))
            total = prices.total(counts) if reported in prices.proven else None
            if total is not None:
                return total
        price: Decimal = self._lists.prices.calc(
            usage(),
            model,
            provider_id=provider,
            provider_api_url=None,
            genai_request_timestamp=at,
            price_context=context,
        ).total_price
        if prices is not None and counts and reported[0] and prices.total(counts) == price:
            prices.proven.add(reported)
        return price

    def _of(
        self, name: str, provider: str, at: datetime, context: dict[str, str]
    ) -> _Prices | None:
        """Return the price list of a model at a time; None if it is more than factors."""
        _, model = self._lists.prices.find_provider_model(name, None, provider, None)
        if context and model.price_variants:
            return None
        source = model.get_prices(at)
        known = self._prices.get(id(source))
        if known is None and id(source) not in self._prices:
            known = self._prices[id(source)] = self._read(source)
        return known

    def _read(self, source: Any) -> _Prices | None:
        try:
            units = self._lists.units()
            listed = [
                (units[name], price) for name, price in vars(source).items() if price is not None
            ]
            if not all(type(price) is Decimal and price >= 0 for _, price in listed):
                return None
            listed.sort(key=lambda one: -len(one[0].dimensions))
            charges = [
                _Charge(
                    unit.usage_key,
                    price,
                    unit.per,
                    tuple(
                        other.usage_key
                        for other, _ in listed
                        if other is not unit and unit.dimensions.items() <= other.dimensions.items()
                    ),
                )
                for unit, price in listed
            ]
        except (ImportError, AttributeError, LookupError, TypeError):
            return None
        return _Prices(source, charges)
