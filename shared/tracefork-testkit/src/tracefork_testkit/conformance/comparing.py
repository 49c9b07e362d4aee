"""Two recordings of an agent are the same run, and another answer is one difference."""

from __future__ import annotations

from pathlib import Path

import tracefork_core as tracefork
from tracefork_testkit.conformance.subject import Subject
from tracefork_testkit.conversation import ModelRequest, ToolCall
from tracefork_testkit.provider import ProviderServer
from tracefork_testkit.script import Reply


class Comparing(Subject):
    """What `tracefork diff` says of the framework's runs."""

    def test_a_second_recording_is_the_same_run(self, tmp_path: Path) -> None:
        """Ids and times of the framework are no differences. Another answer is one finding."""
        paths = [tmp_path / f"{name}.tape" for name in ("first", "again", "other")]
        for path, said in zip(paths, (_SAID, _SAID, "It is lost."), strict=True):
            with ProviderServer(_Model(said)) as provider, tracefork.record(path):
                self._answer(provider.url, "Where is it?", "sync")
        first, again, other = paths
        assert tracefork.diff(first, again).findings == ()
        (finding,) = tracefork.diff(first, other).findings
        assert finding.kind == "output differs"
        assert [section.name for section in finding.sections] == ["answer"]


_SAID = "It is on its way."


class _Model:
    """A model that calls the tool, and then says something."""

    def __init__(self, said: str) -> None:
        self._said = said

    def __call__(self, request: ModelRequest) -> Reply:
        said = Reply(self._said)
        return said if request.tool_results else Reply(tool_calls=[ToolCall("lookup", {})])
