"""What a recorder keeps of blocks and functions, what it leaves alone, and what it never breaks."""

from __future__ import annotations

import asyncio
import logging
import random
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Recorder, Tape, UsageError, replay
from tracefork_testkit import ProviderServer

from ..run.asking import aask, ask, asked_on
from .serving import kept


def fail(url: str, recorder: Recorder, text: str = "a") -> None:
    """Ask a model in a recorded function that fails."""

    @recorder.recording("job")
    def job() -> None:
        assert ask(url, text) == text
        raise LookupError(text)

    with pytest.raises(LookupError):
        job()


def test_a_block_that_fails_leaves_a_tape_and_one_that_does_not_leaves_nothing(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """The tape replays."""
    recorder = Recorder(tmp_path / "tapes")
    with recorder.recording("fine") as run:
        ask(provider.url, "fine")
    assert run.outcome == "ok"
    fail(provider.url, recorder)
    (path,) = kept(recorder.folder, 1)
    with Tape.open(path) as tape:
        assert tape.receipt is not None
        assert tape.receipt.outcome == "LookupError"
    with replay(path) as again:
        ask(provider.url, "a")
    assert again.exchanges == 1


def test_a_decorated_function_leaves_a_tape_for_each_call_that_fails(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """Sync, async, and four calls of one function at once; a generator is refused."""
    recorder = Recorder(tmp_path)

    @recorder.recording("nightly")
    def nightly(text: str) -> str:
        ask(provider.url, text)
        raise LookupError(text)

    @recorder.recording("hourly")
    async def work(text: str, *, fails: bool) -> str:
        answer = await aask(provider.url, text)
        if fails:
            raise LookupError(text)
        return answer

    async def four() -> list[Any]:
        jobs = (work(str(n), fails=n % 2 == 1) for n in range(4))
        return await asyncio.gather(*jobs, return_exceptions=True)

    with pytest.raises(LookupError):
        nightly("n")
    results = asyncio.run(four())
    assert [results[0], results[2]] == ["0", "2"]
    tapes = kept(tmp_path, 3)
    assert [path.name[20:26] for path in tapes] == ["nightl", "hourly", "hourly"]
    assert sorted(asked_on(path)[0] for path in tapes) == ["1", "3", "n"]
    with pytest.raises(UsageError, match="is a generator"):
        recorder.recording()(lambda: (yield))


def test_a_cancelled_task_leaves_a_tape(tmp_path: Path, provider: ProviderServer) -> None:
    """A timeout around a run cancels it: that is a failure worth to look at."""
    recorder = Recorder(tmp_path)

    async def slow() -> None:
        async with recorder.recording("slow"):
            await aask(provider.url, "a")
            await asyncio.sleep(60)

    async def main() -> None:
        await asyncio.wait_for(slow(), 1)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    (path,) = kept(tmp_path, 1)
    with Tape.open(path) as tape:
        assert tape.served is not None
        assert tape.served.outcome == "CancelledError"


@pytest.mark.parametrize(
    ("keep", "count"),
    [("failed", 1), ("all", 2), (lambda run: run.outcome == "ok", 1), (lambda run: 1 / 0, 2)],
)
def test_keep_decides_which_runs_are_kept(
    tmp_path: Path, provider: ProviderServer, keep: Any, count: int
) -> None:
    """If the caller's own verdict raises, the tape is kept."""
    recorder = Recorder(tmp_path, keep=keep)
    with recorder.recording("fine"):
        ask(provider.url, "fine")
    fail(provider.url, recorder)
    kept(tmp_path, count)


def test_a_run_can_be_marked_during_and_after_it(tmp_path: Path, provider: ProviderServer) -> None:
    """Afterwards only if its tape was kept. Without a recording, `mark` does nothing."""
    recorder = Recorder(tmp_path / "failed")
    with recorder.recording("marked", id="m/1"):
        ask(provider.url, "a")
        assert recorder.current().mark()
    with recorder.recording("fine") as fine:
        pass
    assert not fine.mark()
    assert not recorder.mark(fine.id)
    assert not recorder.current().mark()
    (tape,) = kept(recorder.folder, 1)
    assert tape.name.endswith("-marked_m-1.tape")
    everything = Recorder(tmp_path / "all", keep="all")
    with everything.recording("fine") as fine:
        pass
    assert fine.mark("thumbs-down")
    other_process = Recorder(tmp_path / "all", keep="all")
    assert other_process.mark(fine.id, "looked at")
    assert fine.tape is not None
    assert fine.tape.with_name(f"{fine.tape.name}.mark").read_text() == "looked at\n"
    with pytest.raises(UsageError, match="a word or two"):
        fine.mark("../x")


def test_a_sample_is_drawn_without_the_random_numbers_of_the_app(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """A tenth of 400 runs; of those that are not drawn nothing is left, also if they fail."""
    random.seed(1)
    expected = [random.random() for _ in range(5)]
    random.seed(1)
    recorder = Recorder(tmp_path, sample=0.1)
    drawn = []

    @recorder.recording()
    def job() -> None:
        drawn.append(recorder.current().recorded)
        raise LookupError

    for _ in range(400):
        with pytest.raises(LookupError):
            job()
    assert [random.random() for _ in range(5)] == expected
    assert 10 < sum(drawn) < 90
    kept(tmp_path, sum(drawn))


def test_what_a_recorder_cannot_write_does_not_break_the_service(
    tmp_path: Path, provider: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The folder is gone: every run works, the first one logs a warning, and all are counted."""
    recorder = Recorder(tmp_path / "tapes")
    recorder.folder.rmdir()
    with caplog.at_level(logging.WARNING, logger="tracefork"):
        for text in ("a", "b", "c"):
            fail(provider.url, recorder, text)
    assert len(provider.requests) == recorder.failures == 3
    (record,) = caplog.records
    assert "was not recorded" in record.getMessage()
    recorder.folder.mkdir()
    fail(provider.url, recorder)
    kept(recorder.folder, 1)
    assert recorder.failures == 3


def test_a_run_that_is_too_large_is_not_kept(
    tmp_path: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted, and its calls work to the end."""
    monkeypatch.setattr("tracefork_core.tape.held.MOST", 20_000)
    recorder = Recorder(tmp_path)
    fail(provider.url, recorder, "x" * 20_000)
    assert len(provider.requests) == 1
    kept(tmp_path, 0)
    assert recorder.failures == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "maybe"}, "keep must be"),
        ({"sample": 1.5}, "sample must be between 0 and 1"),
        ({"max_bytes": "-5MB"}, "max_bytes must be a size"),
        ({"max_bytes": 0}, "max_bytes must be a size"),
        ({"max_age": "soon"}, "max_age must be an age"),
        ({"max_tapes": -1}, "max_tapes must be a whole number"),
        ({"mode": "secret"}, "there is no mode"),
        ({"mode": "raw", "mask": ["SHOP"]}, "masks nothing"),
        ({"seal_to": ["age1"]}, "seal_to is for"),
        ({"mode": "sealed", "seal_to": ["age1"]}, "not an age public key"),
    ],
)
def test_an_option_that_cannot_work_is_refused_at_once(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    """Not in the middle of a request."""
    with pytest.raises(UsageError, match=message):
        Recorder(tmp_path, **options)


def test_a_file_cannot_be_the_folder(tmp_path: Path) -> None:
    """A folder that is missing is made."""
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="it is a file"):
        Recorder(tmp_path / "file")
    assert Recorder(tmp_path / "new" / "folder").folder.is_dir()


@pytest.mark.parametrize("mode", ["metadata", "raw", "sealed"])
def test_the_tapes_of_a_recorder_have_its_mode(
    tmp_path: Path, provider: ProviderServer, own_key: str, mode: Any
) -> None:
    """A sealed tape hides the request, too."""
    seal_to = [own_key] if mode == "sealed" else []
    recorder = Recorder(tmp_path, mode=mode, seal_to=seal_to)
    fail(provider.url, recorder, "my words")
    (path,) = kept(tmp_path, 1)
    with Tape.open(path) as tape:
        assert tape.mode == mode
        assert tape.complete
        assert len(tape.exchanges) == 1
        assert tape.served is not None
    if mode == "raw":
        assert asked_on(path) == ["my words"]


def test_a_held_tape_is_as_whole_as_a_recorded_one(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """Large bodies fill several segments, and each byte is checked."""
    from tracefork_core.tape.integrity import check_integrity

    recorder = Recorder(tmp_path, keep="all")
    with recorder.recording("large"):
        for n in range(5):
            ask(provider.url, f"{n}" * 200_000)
    (path,) = kept(tmp_path, 1)
    found = check_integrity(path)
    assert (found.damage, found.complete, found.exchanges) == ([], True, 5)
    assert found.digest == found.recorded
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    assert check_integrity(path).damage
