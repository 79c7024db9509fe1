"""The sections of docs/EVIDENCE.md, and the command that makes them again."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evidence import ablations, comparison, diagnostics, forms, picture, published, sets
from evidence.page import PAGE, drift, section, with_section


@dataclass(frozen=True)
class Section:
    """One part of the page."""

    make: Callable[[], str]
    tolerance: float | None
    """how far a number may be from the page; None if it depends on the machine"""


# Trees of another XGBoost or on another processor may split elsewhere: sections that fit models have some room.
SECTIONS = {
    "published": Section(published.section, 2e-6),
    "diagnostics": Section(diagnostics.section, 2e-3),
    "forms": Section(forms.section, 2e-3),
    "sets": Section(sets.section, 0.03),
    "ablations": Section(ablations.section, 0.05),
    "summary": Section(lambda: comparison.summary(comparison.all_sets()), 0.05),
    "methods": Section(lambda: comparison.section(comparison.all_sets()), 0.05),
    "times": Section(lambda: comparison.times(comparison.all_sets()), None),
}
"""in the order in which they are made"""


def drifted(name: str) -> list[str]:
    """Lines of a section that are not what the page says."""
    tolerance = SECTIONS[name].tolerance
    if tolerance is None:
        return []
    return drift(section(PAGE.read_text(encoding="utf-8"), name), SECTIONS[name].make(), tolerance)


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 if a section was to be checked and has drifted."""
    parser = argparse.ArgumentParser(description="Make the tables of docs/EVIDENCE.md again.")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"Default: all. One of {', '.join(SECTIONS)}.")
    parser.add_argument("--check", action="store_true", help="Compare with the page and change nothing.")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.sections if name not in SECTIONS]:
        parser.error(f"there is no section {', '.join(unknown)}; the sections are {', '.join(SECTIONS)}")
    code = 0
    for name in asked.sections or SECTIONS:
        began = time.perf_counter()
        if asked.check:
            lines = drifted(name)
            code = 1 if lines else code
            print("\n".join(lines))
        else:
            text = SECTIONS[name].make()
            PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), name, text), encoding="utf-8")
            if name == "methods":
                picture.save(comparison.all_sets())
        print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)
    return code
