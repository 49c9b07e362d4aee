"""Patches are undone in reverse order, shared by many users, and never undo others' patches."""

from __future__ import annotations

import json
import sys
import threading
from types import ModuleType
from typing import Any

import pytest

from tracefork_core.errors import UsageError
from tracefork_core.patching.patch import Patches, Shared


class Base:
    def inherited(self) -> str:
        return "base"


class Client(Base):
    def send(self) -> str:
        return "real"

    @staticmethod
    def static() -> str:
        return "real"


def loud(original: Any) -> Any:
    """Return a method that appends an exclamation mark to the result of `original`."""

    def send(self: Client) -> str:
        return f"{original(self)}!"

    return send


def test_undo_restores_the_identical_attributes_in_reverse_order() -> None:
    """Static methods stay static, and inherited attributes are inherited again."""
    before, patches = dict(vars(Client)), Patches()
    for _ in range(2):
        patches.wrap(Client, "send", loud)
    patches.wrap(Client, "inherited", loud)
    patches.replace(Client, "static", lambda: "replaced")
    assert (Client().send(), Client().inherited()) == ("real!!", "base!")
    patches.undo()
    assert dict(vars(Client)) == before
    assert (Client().send(), Client.static()) == ("real", "real")
    assert "inherited" not in vars(Client)


def test_undo_keeps_a_later_patch_of_another_library() -> None:
    """A tracer that wraps a client during a session continues to work after it."""
    patches, theirs, original = Patches(), Patches(), Client.send
    patches.wrap(Client, "send", loud)
    theirs.wrap(Client, "send", loud)
    patches.undo()
    assert Client().send() == "real!!"
    theirs.undo()
    Client.send = original  # type: ignore[method-assign]


def test_undo_keeps_a_class_that_another_library_gave_an_object() -> None:
    """The class of an object is restored only if it is still tracefork's."""

    class Ours(Client):
        pass

    class Theirs(Client):
        pass

    patches, client = Patches(), Client()
    patches.change_class(client, Ours)
    assert type(client) is Ours
    patches.undo()
    assert type(client) is Client
    patches.change_class(client, Ours)
    theirs = Patches()
    theirs.change_class(client, Theirs)
    patches.undo()
    assert isinstance(client, Theirs)


def test_a_missing_attribute_names_the_library_and_its_version() -> None:
    """If a new release drops a private name, the error says which release."""
    library = ModuleType("somelib")
    library.__version__ = "9.1"  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "somelib", library)
        for put_in in (Patches().replace, Patches().wrap):
            with pytest.raises(UsageError, match=r"somelib 9\.1 has no somelib\._private"):
                put_in(library, "_private", loud)
    with pytest.raises(UsageError, match=r"Python 3\..*JSONDecoder\._private"):
        Patches().replace(json.JSONDecoder, "_private", loud)
    assert not hasattr(library, "_private")


def test_the_first_user_patches_and_the_last_restores() -> None:
    """Sessions may end in any order; the patches stay while one of them is open."""
    original = Client.send
    shared = Shared(lambda patches: patches.wrap(Client, "send", loud))
    shared.on()
    shared.on()
    assert Client().send() == "real!"
    shared.off()
    assert Client().send() == "real!"
    shared.off()
    assert Client.send is original


def test_patches_that_fail_halfway_are_undone() -> None:
    """Each session that tries gets the error, and no patch stays."""
    original = Client.send

    def put_in(patches: Patches) -> None:
        patches.wrap(Client, "send", loud)
        patches.wrap(Client, "gone", loud)

    shared = Shared(put_in)
    for _ in range(2):
        with pytest.raises(UsageError):
            shared.on()
        assert Client.send is original


def test_threads_that_switch_at_once_patch_once() -> None:
    """Eight threads open and close at once; there is one wrapper, and none at the end."""
    original, together = Client.send, threading.Barrier(8, timeout=20)
    shared = Shared(lambda patches: patches.wrap(Client, "send", loud))
    heard: list[str] = []

    def use() -> None:
        for _ in range(50):
            together.wait()
            shared.on()
            heard.append(Client().send())
            shared.off()

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(heard) == {"real!"}
    assert len(heard) == 400
    assert Client.send is original
