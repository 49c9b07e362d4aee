"""`tracefork try`: ask one recorded question otherwise, and see both answers."""  # noqa: N999

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.agent.ending import Ending
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.account import dollars, model_name
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import DivergenceError, ReplayError, UsageError
from tracefork_core.providers import model_call
from tracefork_core.providers.prices import price_of
from tracefork_core.run.fork_point import number_of
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.creation import SCRATCH
from tracefork_core.tape.rewrite import lay_beside

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("try", cls=options.TapeAndAgent)
@options.grouped
def ask(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentWords,
    at: options.At = "",
    *,
    question: options.QuestionEdit,
    mask: options.Mask = None,
    as_json: options.AsJson = False,
) -> int:
    """Ask one recorded question otherwise, and see both answers.

    The agent runs from the tape up to --at; its question is changed and asked live, and there the
    agent ends: one call. Without a change it is asked once more as it was. Nothing is kept.
    """
    path = tape_names.find(tape)
    if not at:
        raise UsageError(
            f"tracefork: try what? --at takes the number of an exchange, or a step: "
            f"tracefork show {shlex.quote(tape_names.shown(path))}"
        )
    agent, folder = agent_words.read_for(path, ctx)
    with Tape.open(path) as opened:
        number = number_of(opened, at)
        hash_seed.restore(opened.hash_seed)
    from tracefork_core.run import fork as forking  # not before the process has started anew

    os.chdir(folder)
    agent.prepare()
    # Not a TemporaryDirectory: that goes with `atexit`, which the agent comes to before we do.
    place = tempfile.mkdtemp(prefix=f"{SCRATCH}try-", dir=path.parent)
    try:
        parent = lay_beside(path, Path(place))
        scope = forking(parent, number, question.edit(), until=number, mask=mask or [])
        with screen.stdout_kept():  # What the agent says is not the result.
            run, _ = agent.run_under(scope, show=False)
        with Tape.open(parent) as recorded, Tape.open(run.path) as branch:
            # Others may have been asked at the same time: it need not have the same number.
            asked = [one for one in branch.exchanges[number:] if one.aside.place == number]
            if not asked:
                raise ReplayError(f"tracefork: the agent asked nothing in the place of {number}.")
            _report(recorded.exchanges[number], asked[0], as_json=as_json)
    except DivergenceError as error:
        if error.__context__ is not None and not (ending := Ending.of(error.__context__)).is_ours:
            ending.show()  # The agent failed by itself, before it came to its question.
        # The tape that it names lay in the folder that is going.
        raise DivergenceError(replace(error.divergence, tape=str(path))) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


def _report(before: Exchange, after: Exchange, *, as_json: bool) -> None:
    told = {"recorded": _told(before), "now": _told(after)}
    if as_json:
        screen.say_json({"command": "try", "exit": 0, "at": before.n, **told})
        return
    console = screen.stdout()
    for label, one in told.items():
        facts = [one["model"], one["status"], one["usage"], one["seconds"]]
        shown = " · ".join(str(fact) for fact in facts if fact)
        console.print(f"{label}  {shown}", style=screen.STRONG, soft_wrap=True)
        console.print(printable(str(one["answer"]), lines=True), soft_wrap=True)


def _told(exchange: Exchange) -> dict[str, object]:
    """Return what is shown of an answer, as JSON-able values."""
    call, failure = model_call(exchange), exchange.failure
    took = exchange.aside.took
    told: dict[str, object] = {
        "model": None,
        "status": failure.kind if failure else exchange.status,
        "usage": None,
        "cost_usd": None,
        "seconds": None if took is None else figures.duration(took / 1e9),
        "answer": exchange.response_body.decode("utf-8", "backslashreplace"),
    }
    if failure:
        told["answer"] = failure.message
    elif call is not None:
        calls = [f"{one.name}({one.arguments})" for one in call.tool_calls]
        said = "\n".join([call.text, *calls]).strip()
        tokens = call.usage.output_tokens if call.usage else None
        told |= {
            "model": call.response_model or model_name(call),
            "usage": None if tokens is None else figures.several(tokens, "token"),
            "cost_usd": dollars(price_of(exchange, call)),
            "answer": said or (call.error.message if call.error else ""),
        }
    return told
