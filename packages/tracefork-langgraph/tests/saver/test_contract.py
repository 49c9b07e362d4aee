"""LangGraph's own suite of what a checkpointer must do, and what it does not look at."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate

import tracefork_core as tracefork
from tracefork_core.adapters import checkpoints
from tracefork_langgraph import TapeSaver

At = Callable[..., Any]


def checkpoint(n: int, **values: object) -> Any:
    """Return a checkpoint whose channels have a version that other branches have too."""
    versions = dict.fromkeys(values, n)
    made = {**empty_checkpoint(), "id": f"{n:04}", "channel_values": values}
    return {**made, "channel_versions": versions, "updated_channels": list(values)}


async def test_all_of_the_conformance_suite(path: Path) -> None:
    """All required capabilities and all optional ones are there and pass."""

    @checkpointer_test(name="TapeSaver")
    async def saver() -> AsyncIterator[TapeSaver]:
        yield TapeSaver(path)

    report = await validate(saver)
    results = report.to_dict()["results"].values()
    assert report.conformance_level() == "FULL"
    assert sum(one["tests_passed"] for one in results) == 81
    assert not any(one["tests_failed"] or one["tests_skipped"] for one in results)


def test_branches_with_equal_versions_have_their_own_values(saver: TapeSaver, on: At) -> None:
    """Two children of a checkpoint keep their values, though their versions are equal numbers."""
    root = saver.put(on(), checkpoint(1, said="root"), {}, {"said": 1})
    one = saver.put(root, checkpoint(2, said="one"), {}, {"said": 2})
    other = saver.put(root, {**checkpoint(2, said="other"), "id": "0003"}, {}, {"said": 2})
    for config, said in ((root, "root"), (one, "one"), (other, "other")):
        found = saver.get_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"said": said}
        assert found.checkpoint["updated_channels"] == ["said"]


def test_pending_writes_are_in_the_order_of_their_paths(saver: TapeSaver, on: At) -> None:
    """Not the id of a task decides, which is a hash, but its path."""
    config = saver.put(on(), checkpoint(1), {}, {})
    for task, path in (("a", "~2"), ("b", "~1"), ("c", "")):
        saver.put_writes(config, [("said", task), ("said", task * 2)], task, path)
    found = saver.get_tuple(config)
    assert found is not None
    assert [one[2] for one in found.pending_writes or ()] == ["c", "cc", "b", "bb", "a", "aa"]


def test_parents_that_go_in_a_circle_end(saver: TapeSaver, on: At) -> None:
    """A file may say anything: what is asked for is looked for once in each checkpoint."""
    saver.put(on(checkpoint_id="0002"), checkpoint(1), {}, {})
    second = saver.put(on(checkpoint_id="0001"), checkpoint(2), {}, {})
    saver.put_writes(on(checkpoint_id="0001"), [("said", "once")], "a")
    found = saver.get_delta_channel_history(config=second, channels=["said"])
    assert found["said"]["writes"] == [("a", "said", "once")]


def test_a_saver_keeps_nothing_of_a_session(tmp_path: Path, on: At) -> None:
    """One that was made in a replay holds no more than a file when that is over."""
    tape = tmp_path / "run.tape"
    with tracefork.record(tape):
        TapeSaver(tape).put(on(), checkpoint(1, said="x"), {}, {"said": 1})
    with tracefork.replay(tape):
        saver = TapeSaver(tape)
        assert saver.get_tuple(on()) is not None
        store = weakref.ref(checkpoints(tape))
        assert store() is not None
    gc.collect()
    assert store() is None
    assert saver.get_tuple(on()) is not None


def test_a_channel_without_a_value_stays_so(saver: TapeSaver, on: At) -> None:
    """A channel that was emptied does not get an older value back."""
    first = saver.put(on(), checkpoint(1, said="x", kept="y"), {}, {"said": 1, "kept": 1})
    emptied = {**checkpoint(2, kept="y"), "channel_versions": {"said": 2, "kept": 1}}
    saver.put(first, emptied, {}, {"said": 2})
    assert saver.get(on())["channel_values"] == {"kept": "y"}


def test_versions_of_two_branches_differ(saver: TapeSaver) -> None:
    """The next version of one is another one each time, and greater."""
    one, other = saver.get_next_version(None, None), saver.get_next_version(None, None)
    assert one != other
    assert saver.get_next_version(one, None) > max(one, other)
    assert saver.get_next_version(7, None).startswith(f"{8:032}.")


def test_a_clone_with_more_allowed_types_shares_the_threads(saver: TapeSaver, on: At) -> None:
    """What the clone puts, the saver has."""
    clone = saver.with_allowlist({("app", "Doc")})
    assert clone is not saver
    clone.put(on(), checkpoint(1, said="x"), {}, {"said": 1})
    assert saver.get(on())["channel_values"] == {"said": "x"}


def test_a_saver_is_of_a_file(tmp_path: Path, on: At, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the one that was meant when it was named, wherever the program goes; memory is refused."""
    monkeypatch.chdir(tmp_path)
    saver = TapeSaver("threads.tape")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    saver.put(on(), checkpoint(1), {}, {})
    assert (tmp_path / "threads.tape").exists()
    with pytest.raises(tracefork.UsageError, match="InMemorySaver"):
        TapeSaver(":memory:")


def test_secrets_of_a_config_do_not_land(path: Path, saver: TapeSaver, on: At) -> None:
    """A key in a config is no part of the metadata, nor of the file."""
    config = on(openai_api_key="not-to-be-kept-1", note="Bearer 0123456789abcdefghijkl")
    saver.put(config, checkpoint(1), {"source": "input"}, {})
    found = saver.get_tuple(on())
    assert found is not None
    assert found.metadata["openai_api_key"] == "tracefork-secret-openai_api_key"
    assert found.metadata["source"] == "input"
    files = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"not-to-be-kept-1" not in files
    assert b"0123456789abcdefghijkl" not in files
