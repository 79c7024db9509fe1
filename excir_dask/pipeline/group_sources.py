"""Where groups come from: a file, the names of columns, or clusters that were found. All give name -> feature names.

That the members are explained features is for :func:`excir_dask.results.tables.check_groups` to say, which knows them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from excir_dask.common.textfile import brief, read_text_file
from excir_dask.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

Groups = dict[str, list[str]]

_SHAPE = "write a mapping from group names to lists of feature names, such as  engine: [rpm, torque]"


def read_groups(path: str | os.PathLike[str]) -> Groups:
    """Groups from a JSON file (by its suffix) or a YAML file.

    Parameters
    ----------
    path : path
        A mapping from group names to lists of feature names, in UTF-8. A group that is written twice is an error,
        where YAML and JSON would take the last one.
    """
    return checked_groups(str(path), read_text_file(path, "groups", _SHAPE))


def write_groups(groups: Mapping[str, Sequence[str]], path: str | os.PathLike[str], note: str = "") -> Path:
    """Write groups as YAML that :func:`read_groups` reads back; the file appears whole or not at all.

    Parameters
    ----------
    groups : mapping name -> feature names
    path : path
        Replaced if it exists.
    note : str
        Written above the groups as a comment.
    """
    import yaml

    target = Path(path)
    content = "".join(f"# {line}".rstrip() + "\n" for line in note.splitlines())
    plain = {group: list(members) for group, members in groups.items()}

    class Dumper(yaml.SafeDumper):
        """Plain YAML, but for quotes around names that some reader takes for a number or a line break."""

        def represent_str(self, name: str) -> Any:
            style = None if name[:1].isalpha() and name.isprintable() else '"'
            return self.represent_scalar("tag:yaml.org,2002:str", name, style)

    Dumper.add_representer(str, Dumper.represent_str)
    content += yaml.dump(plain, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=2**31)
    made = target.with_name(f".{target.name}-{os.getpid()}")
    try:
        made.write_text(content, encoding="utf-8", newline="\n")
        os.replace(made, target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}; choose another file") from None
    finally:
        with contextlib.suppress(OSError):  # after os.replace there is nothing to remove
            made.unlink()
    return target


def prefix_groups(features: Iterable[str], separator: str) -> Groups:
    """Groups of features that have the same name before the last separator; at least two of them.

    >>> prefix_groups(["door_1", "seat", "door_2", "belt_1"], "_")
    {'door': ['door_1', 'door_2']}
    """
    if not separator:
        raise UsageError("the separator of a group's name is empty; give the character between name and number, as '_'")
    found: Groups = {}
    count = 0
    for feature in features:
        count += 1
        prefix = feature.rpartition(separator)[0]
        if prefix:
            found.setdefault(prefix, []).append(feature)
    groups = {prefix: members for prefix, members in found.items() if len(members) > 1}
    if not groups:
        raise UsageError(
            f"no two of {count:,} features share what stands before their last '{separator}'; "
            "give another separator, or name the groups"
        )
    return groups


def name_by_strength(clusters: Iterable[Sequence[str]], features: pd.DataFrame) -> Groups:
    """Name clusters after their strongest members.

    Parameters
    ----------
    clusters : lists of feature names
        Disjoint, so that their names are unique; members in the order of the lake, the first of equals gives the name.
    features : DataFrame
        An explanation's features; of several outputs, the one where a member is strongest counts.
    """
    # closer than 1e-12 is a tie, as in ranks: rounding must not choose a name
    strength = features.groupby("feature")["strength"].max().round(12).to_dict()
    return {max(members, key=strength.__getitem__): list(members) for members in clusters}


def combine(*sources: tuple[str, Mapping[str, Sequence[str]]]) -> Groups:
    """Groups of several sources together, in order; a name that two of them give is an error.

    >>> combine(("--group", {"a": ["x", "y"]}), ("groups.yaml", {"b": ["y"]}))
    {'a': ['x', 'y'], 'b': ['y']}
    """
    found: Groups = {}
    origin: dict[str, str] = {}
    for source, groups in sources:
        for group, members in groups.items():
            if group in found:
                raise UsageError(f"group '{group}' comes from {origin[group]} and from {source}; rename one of them")
            found[group], origin[group] = list(members), source
    return found


def checked_groups(source: str, content: Any) -> Groups:
    """The content of a file, if it is groups; ``source`` names the file in messages."""
    if not isinstance(content, dict):
        kind = "nothing" if content is None else f"a {type(content).__name__}"
        raise UsageError(f"{source} holds {kind} where groups should be; {_SHAPE}")
    for group, members in content.items():
        if not isinstance(group, str):
            raise UsageError(f"{source}: the group name {group!r} is a {type(group).__name__}; put it in quotes")
        if not isinstance(members, list):
            kind = "nothing" if members is None else f"a {type(members).__name__}"
            raise UsageError(f"{source}: group '{group}' is {kind}; give a list of feature names")
        if not members:
            raise UsageError(f"{source}: group '{group}' has no members; give it some, or leave it out")
        for place, member in enumerate(members, 1):
            if not isinstance(member, str):
                raise UsageError(
                    f"{source}: member {place} of group '{group}' is {brief(member)}, a {type(member).__name__}; "
                    "put names in quotes"
                )
    return content
