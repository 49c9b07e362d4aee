"""LangGraph's conformance suite for checkpointers, and what the suite does not test."""

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
    """Return a checkpoint whose channel versions other branches have too."""
    versions = dict.fromkeys(values, n)
    made = {**empty_checkpoint(), "id": f"{n:04}", "channel_values": values}
    return {**made, "channel_versions": versions, "updated_channels": list(values)}


async def test_saver_passes_the_whole_conformance_suite(path: Path) -> None:
    """It has all required capabilities and all optional ones."""

    @checkpointer_test(name="TapeSaver")
    async def saver() -> AsyncIterator[TapeSaver]:
        yield TapeSaver(path)

    report = await validate(saver)
    results = report.to_dict()["results"].values()
    assert report.conformance_level() == "FULL"
    assert sum(one["tests_passed"] for one in results) == 81
    assert not any(one["tests_failed"] or one["tests_skipped"] for one in results)


def test_branches_with_equal_versions_have_their_own_values(saver: TapeSaver, on: At) -> None:
    """Two children of a checkpoint keep their values although their versions are equal."""
    root = saver.put(on(), checkpoint(1, said="root"), {}, {"said": 1})
    one = saver.put(root, checkpoint(2, said="one"), {}, {"said": 2})
    other = saver.put(root, {**checkpoint(2, said="other"), "id": "0003"}, {}, {"said": 2})
    for config, said in ((root, "root"), (one, "one"), (other, "other")):
        found = saver.get_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"said": said}
        assert found.checkpoint["updated_channels"] == ["said"]


def test_pending_writes_are_sorted_by_task_path(saver: TapeSaver, on: At) -> None:
    """Not by task id, which is a hash."""
    config = saver.put(on(), checkpoint(1), {}, {})
    for task, path in (("a", "~2"), ("b", "~1"), ("c", "")):
        saver.put_writes(config, [("said", task), ("said", task * 2)], task, path)
    found = saver.get_tuple(config)
    assert found is not None
    assert [one[2] for one in found.pending_writes or ()] == ["c", "cc", "b", "bb", "a", "aa"]


def test_search_ends_if_parents_form_a_cycle(saver: TapeSaver, on: At) -> None:
    """A file may contain anything: the search visits each checkpoint once."""
    saver.put(on(checkpoint_id="0002"), checkpoint(1), {}, {})
    second = saver.put(on(checkpoint_id="0001"), checkpoint(2), {}, {})
    saver.put_writes(on(checkpoint_id="0001"), [("said", "once")], "a")
    found = saver.get_delta_channel_history(config=second, channels=["said"])
    assert found["said"]["writes"] == [("a", "said", "once")]


def test_saver_does_not_keep_the_store_of_a_finished_session(tmp_path: Path, on: At) -> None:
    """A saver that was created in a replay holds only a file when the replay is over."""
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


def test_emptied_channel_does_not_get_an_older_value_back(saver: TapeSaver, on: At) -> None:
    """The other channel keeps its value."""
    first = saver.put(on(), checkpoint(1, said="x", kept="y"), {}, {"said": 1, "kept": 1})
    emptied = {**checkpoint(2, kept="y"), "channel_versions": {"said": 2, "kept": 1}}
    saver.put(first, emptied, {}, {"said": 2})
    assert saver.get(on())["channel_values"] == {"kept": "y"}


def test_versions_of_two_branches_differ(saver: TapeSaver) -> None:
    """Each call returns another version, and a greater one."""
    one, other = saver.get_next_version(None, None), saver.get_next_version(None, None)
    assert one != other
    assert saver.get_next_version(one, None) > max(one, other)
    assert saver.get_next_version(7, None).startswith(f"{8:032}.")


def test_a_clone_with_more_allowed_types_shares_the_threads(saver: TapeSaver, on: At) -> None:
    """The saver reads what its clone has saved."""
    clone = saver.with_allowlist({("app", "Doc")})
    assert clone is not saver
    clone.put(on(), checkpoint(1, said="x"), {}, {"said": 1})
    assert saver.get(on())["channel_values"] == {"said": "x"}


def test_saver_keeps_its_file_if_the_working_directory_changes(
    tmp_path: Path, on: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`:memory:` is refused."""
    monkeypatch.chdir(tmp_path)
    saver = TapeSaver("threads.tape")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    saver.put(on(), checkpoint(1), {}, {})
    assert (tmp_path / "threads.tape").exists()
    with pytest.raises(tracefork.UsageError, match="InMemorySaver"):
        TapeSaver(":memory:")


def test_secrets_of_a_config_are_not_stored(path: Path, saver: TapeSaver, on: At) -> None:
    """A key in a config is neither in the metadata nor in the file."""
    config = on(openai_api_key="not-to-be-kept-1", note="Bearer 0123456789abcdefghijkl")
    saver.put(config, checkpoint(1), {"source": "input"}, {})
    found = saver.get_tuple(on())
    assert found is not None
    assert found.metadata["openai_api_key"] == "tracefork-secret-openai_api_key"
    assert found.metadata["source"] == "input"
    files = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"not-to-be-kept-1" not in files
    assert b"0123456789abcdefghijkl" not in files
