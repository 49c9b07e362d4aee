"""What the guides show works: their files are saved and their commands typed, in a terminal."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from docs.pages import ROOT, follow

from tracefork_core import Tape

_OF_ONE_RACE = r"\d+of\d+orders|\d+orders?|exchange[0-2](?=\()|--order[0-2],[0-2]|\d+runs"
"""How many orders were tried, and which exchange is which: that is who was quicker to ask."""


def test_calibration_finds_what_the_guide_says(tmp_path: Path) -> None:
    """What does not repeat is named as the page shows it, and once mended all repeats."""
    follow("docs/how-to/find-what-does-not-repeat.md", tmp_path)


def test_a_program_of_any_language_is_recorded_as_the_guide_says(tmp_path: Path) -> None:
    """curl is recorded, replayed without the model, diverges, and is forked."""
    follow("docs/how-to/record-any-language.md", tmp_path)


def test_a_websocket_is_recorded_as_the_guide_says(tmp_path: Path) -> None:
    """It replays, and a fork with another first answer asks the second question live."""
    follow("docs/how-to/record-a-websocket.md", tmp_path)


def test_a_race_is_found_as_the_guide_says(tmp_path: Path) -> None:
    """Another order of answers changes the outcome, and once mended none does; fewer are tried."""
    follow(
        "docs/how-to/hunt-a-race.md",
        tmp_path,
        instead={"race shop": "race --seeds 2 shop"},
        varies=_OF_ONE_RACE,
    )


def test_a_tool_is_recorded_as_the_guide_says(tmp_path: Path) -> None:
    """A tool is answered from the tape when its database is gone; other arguments diverge."""
    follow("docs/how-to/record-a-tool.md", tmp_path)


def test_a_side_effect_happens_as_often_as_the_guide_says(tmp_path: Path) -> None:
    """The replay of plain functions repeats it, a refused fork does not, and no tool on a tape."""
    follow("docs/how-to/side-effects.md", tmp_path)
    assert len((tmp_path / "refunds" / "refunds.log").read_text().splitlines()) == 4


def test_a_service_records_one_request_as_the_guide_says(tmp_path: Path) -> None:
    """Of two requests at once, one tape holds the recorded one alone."""
    follow("docs/how-to/use-it-in-a-service.md", tmp_path)
    (tape,) = tmp_path.rglob("17.tape")
    with Tape.open(tape) as recorded:
        assert len(recorded.exchanges) == 1
        assert b"order 17" in recorded.exchanges[0].request_body
    assert not list(tmp_path.rglob("18.tape"))


def test_an_adapter_is_written_as_the_guide_says(tmp_path: Path) -> None:
    """The template's tests pass. Its entry points are read as if it was installed."""
    project = tomllib.loads((ROOT / "examples/adapter/pyproject.toml").read_text())["project"]
    metadata = tmp_path / "installed" / "tracefork_acme-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    says = "Metadata-Version: 2.1\nName: tracefork-acme\nVersion: 0.1.0\n"
    (metadata / "METADATA").write_text(says)
    points = [
        f"[{group}]\n{name} = {value}\n"
        for group, named in project["entry-points"].items()
        for name, value in named.items()
    ]
    (metadata / "entry_points.txt").write_text("".join(points))
    path = f"{metadata.parent}:{tmp_path}/tracefork-acme/src"
    follow(
        "docs/how-to/write-an-adapter.md",
        tmp_path,
        before=[f"export PYTHONPATH={path}:$PYTHONPATH"],
    )


def test_a_run_is_forked_as_the_guide_says(tmp_path: Path) -> None:
    """Each branch comes out as the page shows it, from Python too."""
    typed = follow("docs/how-to/fork-a-run.md", tmp_path)
    assert "fork" in typed[-4][0]


def test_two_runs_are_compared_as_the_guide_says(tmp_path: Path) -> None:
    """A branch with its parent, two recordings, and what a model was told; git has the setting."""
    typed = follow("docs/how-to/compare-two-runs.md", tmp_path)
    assert "no difference" in next(out for words, out in typed if words.endswith("later.tape"))
    settings = (tmp_path / "compare" / ".git" / "config").read_text()
    assert "show --text" in settings
    assert 'tracefork diff \\"$LOCAL\\"' in settings


def test_a_run_is_exported_as_the_guide_says(tmp_path: Path) -> None:
    """The trace comes back without a difference, and its ids do not change."""
    follow("docs/how-to/export-traces.md", tmp_path)
    folder = tmp_path / "traces"
    told = (folder / "ticket.json").read_text()
    assert "turntable" in (folder / "ticket-content.json").read_text()
    assert "turntable" not in told
    (resource,) = json.loads(told)["resourceSpans"]
    spans = resource["scopeSpans"][0]["spans"]
    assert len({span["spanId"] for span in spans}) == 5


def test_a_cassette_is_imported_as_the_guide_says(tmp_path: Path) -> None:
    """Vcrpy records it, and the provider is gone when it is replayed."""
    typed = follow("docs/how-to/import-recordings.md", tmp_path)
    assert [out for words, out in typed if words.endswith("--tape-import")]
    with Tape.open(tmp_path / "desk" / "answers.tape") as tape:
        assert tape.imported is not None
        assert tape.imported.grade == "proven"


def test_checks_run_again_as_the_guide_says(tmp_path: Path) -> None:
    """A flaky check and a misread one are told apart, and nothing is edited twice."""
    typed = follow("docs/how-to/replay-modes.md", tmp_path)
    hybrid = [out for words, out in typed if "--mode hybrid" in words]
    assert ["flaky" in out for out in hybrid] == [True, False]


def test_a_run_is_blamed_as_the_guide_says(tmp_path: Path) -> None:
    """The step that the page names is named, in its words, and the example in Python agrees."""
    follow("docs/how-to/blame-a-run.md", tmp_path)
    report = json.loads((tmp_path / "blame" / "report.json").read_text())
    assert report["verdict"]["units"] == [1]
    assert re.fullmatch("[0-9a-f]{64}", report["digest"])


def test_a_failed_run_is_shrunk_as_the_guide_says(tmp_path: Path) -> None:
    """Two of nine model calls are left, and one line of one mail."""
    follow("docs/how-to/shrink-a-failed-run.md", tmp_path)
    with Tape.open(tmp_path / "shrink" / "mails.small.tape") as small:
        assert len(small.exchanges) == 3
    request = json.loads((tmp_path / "shrink" / "request.json").read_text())
    assert len(request["messages"]) == 2
    assert "tools" not in request


def test_a_test_is_recorded_as_the_guide_says(tmp_path: Path) -> None:
    """It is recorded once and replayed without a key; another question shows the card."""
    follow("docs/how-to/record-in-pytest.md", tmp_path)


def test_a_run_is_looked_at_as_the_guide_says(tmp_path: Path) -> None:
    """Four pages are written, and the one without content is smaller."""
    # Without a terminal, the view prints its document.
    instead = {"tracefork tui": "tracefork tui --json"}
    follow("docs/how-to/look-at-a-run.md", tmp_path, instead=instead)
    pages = [tmp_path / "look" / name for name in ("ticket.html", "structure.html")]
    assert pages[0].stat().st_size > pages[1].stat().st_size
