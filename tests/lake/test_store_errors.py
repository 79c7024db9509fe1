"""Errors of stores are classified, and show no credentials."""

from __future__ import annotations

import pytest

from excir_dask.lake.store_errors import as_os_error, is_transient, redact


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", PermissionError),
        ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: The bucket does not exist", FileNotFoundError),
        ("AWS Error UNKNOWN (HTTP status 503) during HeadObject operation: No response body.", ConnectionError),
        ("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7, Could not connect", ConnectionError),
        ("[Errno 16] Service Unavailable", ConnectionError),
        ("[Errno 22] Bad Request", OSError),
    ],
)
def test_messages_of_stores_are_told_apart(message, kind):
    assert type(as_os_error(OSError(f"When getting information for key 'x' in bucket 'b': {message}"))) is kind


@pytest.mark.parametrize("name", ["'/data/run-429/lake'", '"/connection/timeout"', "/lakes/503/part.parquet"])
def test_names_of_files_do_not_make_an_error_transient(name):
    assert not is_transient(NotADirectoryError(20, f"Cannot create directory {name}. Detail: Not a directory"))
    assert is_transient(OSError(f"AWS Error UNKNOWN (HTTP status 429) for {name}"))


def test_what_is_shown_of_a_url_has_no_credentials():
    assert redact("s3://key:se/cr+et@bucket/lake") == "s3://***@bucket/lake"
    assert redact("http://host:80/a@b/c") == "http://host:80/a@b/c"
    assert redact("https://u:p@host/x?sig=abc%3D&se=2026&token=t") == "https://***@host/x?sig=***&se=2026&token=***"
