"""Parquet files with encrypted columns."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe


class Keys(pe.KmsClient):
    """Keys that are wrapped in nothing."""

    def wrap_key(self, key: bytes, name: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, name: str) -> bytes:
        return base64.b64decode(key)


def write_encrypted(
    path: Path, table: pa.Table, columns: Sequence[str], plaintext_footer: bool = True, **options: Any
) -> Path:
    """A file of which some columns are encrypted; ``options`` are those of pyarrow's configuration."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = {"key": list(columns)}
    config = pe.EncryptionConfiguration("footer", column_keys=keys, plaintext_footer=plaintext_footer, **options)
    factory = pe.CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table, row_group_size=25)
    return path
