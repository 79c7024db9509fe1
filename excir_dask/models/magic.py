"""Say what a file is by its first bytes."""

from __future__ import annotations

_SIGNATURES = (
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x89PNG", "a PNG image"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF file"),
    (b"CBM1", "a CatBoost model; save it with format='onnx'"),
    (b"binf", "an XGBoost model in the old binary format; load it with the version that saved it and save it as .ubj"),
    (b"bs64", "an XGBoost model in the old text format; load it with the version that saved it and save it as .ubj"),
    (b"PK\x03\x04", "a zip archive; load a skops file with skops.io.load and pass the object"),
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"<", "HTML or XML"),
    (b"version https://git-lfs", "a git-lfs pointer; run git lfs pull"),
)
"""files that are often passed by mistake"""


def describe_content(content: bytes) -> str:
    """What a file looks like, for messages.

    >>> describe_content(b"PAR1....")
    'a Parquet file'
    """
    for signature, description in _SIGNATURES:
        if content.startswith(signature):
            return description
    start = content[:32]
    if is_ascii_text(start):
        return f"text that starts with {start.decode('ascii')!r}"
    return f"binary data that starts with {start[:8].hex(' ')}"


def is_unknown_binary(content: bytes) -> bool:
    """Whether a file is binary and has none of the known signatures."""
    known = any(content.startswith(signature) for signature, _ in _SIGNATURES)
    return not known and not is_ascii_text(content[:32])


def is_ascii_text(content: bytes) -> bool:
    return all(byte in (9, 10, 13) or 32 <= byte < 127 for byte in content)
