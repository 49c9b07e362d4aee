"""Let forked children join the session of their parent.

A forked child has a copy of its parent's session, which it must not use. It connects to its parent
and joins, like any other child.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from tracefork_core.children.child.joined_process import JoinedProcess, arrive
from tracefork_core.children.child.joined_session import Member
from tracefork_core.children.environment import announce
from tracefork_core.children.invitation import Descent, Invitation
from tracefork_core.egress.guard import pass_on_watch
from tracefork_core.exchange.current import current_session

NAME = "fork"

joined_processes: list[JoinedProcess] = []
"""This process as a member of its parent's sessions: usually one."""
_descents: list[Descent] = []
_forking = threading.local()
_watching = 0


def watch(descent: Descent) -> None:
    """Let processes forked from now on join the session of `descent`."""
    _descents.append(descent)
    if not _watching:
        os.register_at_fork(before=_before)
        come_last()


def come_last() -> None:
    """Run `_in_child` after all fork handlers that are registered now."""
    global _watching
    _watching = number = _watching + 1
    os.register_at_fork(after_in_child=lambda: _in_child() if number == _watching else None)


def forget(descent: Descent) -> None:
    """Undo `watch`."""
    _descents.remove(descent)


def descents() -> list[Descent]:
    """Return the `Descent` of the session that this code runs under: a child would join that."""
    session = current_session()
    return [descent for descent in _descents if descent.session is session]


def _before() -> None:
    invited = [] if _is_start_of_uvloop() else descents()
    _forking.invited = [(descent, descent.invite(NAME)) for descent in invited]


def _is_start_of_uvloop() -> bool:
    """Return whether this fork is uvloop starting a program, not Python code calling `os.fork`.

    uvloop's child runs these handlers while the parent holds the interpreter lock and waits for the
    child's exec. So the parent could not answer a child that joins, and the program needs no
    session.
    """
    events = sys.modules.get("asyncio.events")
    loop = events._get_running_loop() if events is not None else None  # noqa: SLF001 - in `__all__`
    if loop is None or not type(loop).__module__.startswith("uvloop"):
        return False
    return not any("fork" in name for name in sys._getframe(2).f_code.co_names)


def _in_child() -> None:
    invited: list[tuple[Descent, Invitation]] = getattr(_forking, "invited", [])
    before = {id(joined.descent): joined for joined in joined_processes}
    joined_processes.clear()
    for descent, invitation in invited:
        if isinstance(descent.session, Member):
            descent.session.forget()
        earlier = before.get(id(descent))
        member = arrive(invitation)
        pass_on_watch(descent.session, member)
        descent.continue_in_fork(member, invitation)
        joined_processes.append(joined := JoinedProcess(member, descent))
        # A child without a draw so far is switched on at its first draw, forked or not.
        if earlier is None or earlier.chance is not None:
            joined.start_chance()
    if invited:
        announce(everywhere=True)
        atexit.register(leave)
        # Most forked children end with `os._exit`, which runs no `atexit` handlers.
        os._exit = _leaving_first(os._exit)  # type: ignore[assignment]


def leave() -> None:
    """Report the last draws before the process ends."""
    for joined in joined_processes:
        joined.leave()


def _leaving_first(end: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
    def leave_and_end(status: int) -> NoReturn:
        try:
            leave()
        finally:
            end(status)

    return leave_and_end
