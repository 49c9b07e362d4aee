"""`tracefork try`: ask one recorded question again, changed, and compare the answers."""  # noqa: N999

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import replace

import typer

from tracefork_core.cli import fork_options, options, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.agent.ending import Ending
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.account import dollars, model_name
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.repeated import ask_about_tools
from tracefork_core.errors import DivergenceError, ReplayError, UsageError
from tracefork_core.providers import model_call
from tracefork_core.providers.prices import price_of
from tracefork_core.run.fork_point import start_of
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.creation import scratch_folder
from tracefork_core.tape.rewrite import lay_beside

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("try", cls=options.TapeAndAgent)
@options.grouped
def ask(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentWords,
    at: fork_options.At = "",
    *,
    question: fork_options.QuestionEdit,
    mask: options.Mask = None,
    allow_writes: fork_options.AllowWrites = False,
    as_json: options.AsJson = False,
) -> int:
    """Ask one recorded question again, changed, and compare the answers.

    The agent replays up to --at. Its question there is changed and asked live, and then the agent
    is stopped: one live call. Without a change the same question is asked again. No tape is kept.
    """
    path = tape_names.find(tape)
    if not at:
        raise UsageError(
            "tracefork: try needs a question: --at with the number of an exchange, or a step. "
            f"To see them: `tracefork show {shlex.quote(tape_names.shown(path))}`"
        )
    agent, folder = agent_words.read_for(path, ctx)
    with Tape.open(path) as opened:
        number = start_of(opened, at)
        hash_seed.restore(opened.hash_seed)  # This may restart the process.
    from tracefork_core.run.fork import fork as forking

    ask_about_tools(path, allowed=allow_writes, until=number)
    os.chdir(folder)
    agent.prepare()
    # Not a TemporaryDirectory: its `atexit` cleanup runs when the agent's exit handlers do.
    place = scratch_folder(path, "try")
    try:
        parent = lay_beside(path, place)
        scope = forking(
            parent,
            number,
            question.edit(),
            until=number,
            rerun_tools=True,  # Asked above.
            mask=mask or [],
            scope="process",
        )
        with screen.stdout_kept():  # The agent's output is not the result.
            run, _ = agent.run_under(scope, show=False)
        with Tape.open(parent) as recorded, Tape.open(run.path) as branch:
            # Its number on the branch may differ: other requests may have run at the same time.
            asked = [
                exchange for exchange in branch.exchanges[number:] if exchange.aside.place == number
            ]
            if not asked:
                raise ReplayError(
                    f"tracefork: the agent made no request that corresponds to exchange {number}."
                )
            _report(recorded.exchanges[number], asked[0], as_json=as_json)
    except DivergenceError as error:
        if error.__context__ is not None and not (ending := Ending.of(error.__context__)).is_ours:
            ending.show()  # The agent failed by itself, before it asked its question.
        # The error names the tape in the temporary folder.
        raise DivergenceError(replace(error.divergence, tape=str(path))) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


def _report(before: Exchange, after: Exchange, *, as_json: bool) -> None:
    answers = {"recorded": _answer(before), "now": _answer(after)}
    if as_json:
        screen.say_json({"command": "try", "exit": 0, "at": before.n, **answers})
        return
    console = screen.stdout()
    for label, answer in answers.items():
        facts = [answer["model"], answer["status"], answer["usage"], answer["seconds"]]
        shown = " · ".join(str(fact) for fact in facts if fact)
        console.print(f"{label}  {shown}", style=screen.STRONG, soft_wrap=True)
        console.print(printable(str(answer["answer"]), lines=True), soft_wrap=True)


def _answer(exchange: Exchange) -> dict[str, object]:
    """Return an answer and its figures as JSON-able values."""
    call, failure = model_call(exchange), exchange.failure
    took = exchange.aside.took
    document: dict[str, object] = {
        "model": None,
        "status": failure.kind if failure else exchange.status,
        "usage": None,
        "cost_usd": None,
        "seconds": None if took is None else figures.duration(took / 1e9),
        "answer": exchange.response_body.decode("utf-8", "backslashreplace"),
    }
    if failure:
        document["answer"] = failure.message
    elif call is not None:
        tool_calls = [f"{tool.name}({tool.arguments})" for tool in call.tool_calls]
        text = "\n".join([call.text, *tool_calls]).strip()
        tokens = call.usage.output_tokens if call.usage else None
        document |= {
            "model": call.response_model or model_name(call),
            "usage": None if tokens is None else figures.several(tokens, "token"),
            "cost_usd": dollars(price_of(exchange, call)),
            "answer": text or (call.error.message if call.error else ""),
        }
    return document
