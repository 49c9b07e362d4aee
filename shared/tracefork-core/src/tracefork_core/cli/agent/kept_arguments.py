"""Keep the secrets in an agent's arguments out of the store of commands."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tracefork_core.masking.masking import Masking
from tracefork_core.masking.masks import Masks
from tracefork_core.masking.names import secret_values
from tracefork_core.masking.redactor import placeholder


def without_secrets(arguments: Sequence[str], mask: Sequence[str]) -> list[str]:
    """Return arguments with a placeholder for each secret, as a tape would hold them."""
    masking = Masking("safe", Masks.read(mask))
    return [masking.text(argument) for argument in arguments]


def with_secrets(arguments: Sequence[str]) -> list[str]:
    """Return arguments with the values that the variables of their placeholders have now.

    A placeholder stays where the variable is not set, or holds more than one secret. The agent then
    gets the placeholder, and a replay sees the same request.
    """
    filled = list(arguments)
    # The longest first: one name may be the beginning of another.
    for name in sorted(os.environ, key=len, reverse=True):
        text, value = placeholder(name), os.environ[name].strip()
        if len(secret_values(name, value)) < 2:
            filled = [argument.replace(text, value) for argument in filled]
    return filled
