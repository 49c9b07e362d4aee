"""The check of a folder as JUnit's XML, which CI servers show as tests."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from tracefork_core.cli.display.text import printable
from tracefork_core.cli.gate.verdict import Checked, Gate, Verdict

_SUITE = "tracefork"


def junit(gate: Gate) -> bytes:
    """Return the document: a tape is a test case, and one that is undecided was skipped."""
    failed, open_ = len(gate.of(Verdict.FAIL)), len(gate.of(Verdict.UNDECIDED))
    counts = {
        "name": _SUITE,
        "tests": str(len(gate.checks)),
        "failures": str(failed),
        "errors": "0",
        "skipped": str(open_),
        "time": f"{gate.seconds:.3f}",
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", counts)
    for one in gate.checks:
        _add(suite, one)
    if gate.orphans:
        names = ", ".join(map(printable, gate.orphans))
        ET.SubElement(suite, "system-out").text = f"in no entry of the manifest: {names}"
    document: bytes = ET.tostring(root, "utf-8", xml_declaration=True)
    return document


def _add(suite: ET.Element, one: Checked) -> None:
    case = {"classname": _SUITE, "name": printable(one.name), "time": f"{one.seconds:.3f}"}
    if one.place is not None:
        case |= {"file": printable(one.place[0]), "line": str(one.place[1])}
    element = ET.SubElement(suite, "testcase", case)
    reason = printable(one.reason)
    if one.verdict == Verdict.FAIL:
        failure = ET.SubElement(element, "failure", {"message": reason, "type": f"exit {one.exit}"})
        failure.text = "\n".join(details(one))
    elif one.verdict == Verdict.UNDECIDED:
        ET.SubElement(element, "skipped", {"message": f"{reason} (missing: {one.missing})"})


def details(one: Checked) -> list[str]:
    """Return what is known of a failure, line by line, without colours."""
    lines = [printable(one.reason)]
    if (card := one.divergence) is not None:
        lines.append(printable(card.where))
        if card.pointer:
            lines += [
                f"{printable(card.pointer)}",
                f"  recorded  {printable(card.recorded or '')}",
                f"  now       {printable(card.actual or '')}",
            ]
        lines += [printable(hint) for hint in card.hints]
    return lines + [f"| {printable(line)}" for line in one.said]
