"""Groups in files: a mapping from group names to lists of feature names, in YAML or JSON.

:func:`excir_dask.results.tables.check_groups` checks that the members are explained features.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from excir_dask.common.atomic import write_file
from excir_dask.common.textfile import brief, read_text_file
from excir_dask.errors import UsageError

Groups = dict[str, list[str]]

_SHAPE = "write a mapping from group names to lists of feature names, such as  engine: [rpm, torque]"


def read_groups(path: str | os.PathLike[str]) -> Groups:
    """Groups from a JSON file (by its suffix) or a YAML file.

    Parameters
    ----------
    path : path
        A mapping from group names to lists of feature names, in UTF-8. A repeated group name is an error; plain YAML
        and JSON would silently keep the last one.
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

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]  # yaml has no annotations
        """Plain YAML, with quotes around names that a reader could take for a number or a line break."""

        def represent_str(self, name: str) -> Any:
            style = None if name[:1].isalpha() and name.isprintable() else '"'
            return self.represent_scalar("tag:yaml.org,2002:str", name, style)

    Dumper.add_representer(str, Dumper.represent_str)
    content += yaml.dump(plain, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=2**31)
    try:
        write_file(target, content.encode())
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}; choose another file") from None
    return target


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
