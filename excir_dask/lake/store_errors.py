"""Errors of stores as OSErrors (denied, missing or transient), without credentials in their messages.

Stores raise errors of their own packages (botocore, aiohttp, azure, google), most of which are not OSErrors. They are
classified by the names of their classes, so that none of those packages is imported.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from io import UnsupportedOperation
from typing import Any

_DENIED = (
    r"NoCredentials|PartialCredentials|CredentialRetrieval|DefaultCredentials|ProfileNotFound|TokenRetrieval"
    r"|RefreshError|ClientAuthentication|AuthenticationException|Access_?Denied|Forbidden|Unauthorized|InvalidAccessKeyId|INVALID_ACCESS_KEY_ID"
    r"|INVALID_CLIENT_TOKEN_ID|Signature_?Does_?Not_?Match|ExpiredToken|Permission_?denied|Anonymous caller|locate cred"
)
_MISSING = r"No_?Such_?Bucket|NoSuchKey|NoSuchContainer|ResourceNotFound|ContainerNotFound"
_TRANSIENT = (
    r"Timeout|timed out|Connection|Disconnected|Incomplete|Slow_?Down|Throttl|Too_? ?Many_? ?Requests|Unavailable"
    r"|Internal_? ?(Server_? ?)?(Error|Failure)|curlCode|Network|Payload|Reduce your request|\b(429|500|502|503|504)\b"
)
_NAMES = r"'[^']*'|\"[^\"]*\"|\S*/\S*"
"""quoted names, paths and addresses: a folder called ``run-503`` says nothing of the server"""
_MIN_SECRET_LENGTH = 4
"""characters; shorter values would match parts of ordinary words"""


def as_os_error(error: Exception, options: Mapping[str, Any] | None = None) -> OSError:
    """The error as an OSError of the fitting class, without the values of storage options in its message."""
    text = redacted_message(error, options)
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    if isinstance(error, PermissionError | FileNotFoundError | UnsupportedOperation):
        return type(error)(text)
    if "range requests" in text:
        return no_range_requests()
    if re.search(_DENIED, f"{names} {text}", re.IGNORECASE):
        return PermissionError(text)
    if re.search(_MISSING, f"{names} {text}", re.IGNORECASE):
        return FileNotFoundError(text)
    return ConnectionError(text) if is_transient(error) else OSError(text)


def no_range_requests() -> OSError:
    """The error for a server that only sends whole files."""
    return UnsupportedOperation(
        "its server does not support range requests, so files cannot be read in parts; copy the lake to a store that "
        "supports them"
    )


def is_transient(error: Exception) -> bool:
    """Whether the same call may succeed later."""
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    if isinstance(error, OSError) and error.errno == errno.EBUSY:  # s3fs raises it for status 503
        return True
    return re.search(_TRANSIENT, f"{names} {re.sub(_NAMES, '', str(error))}", re.IGNORECASE) is not None


def redacted_message(error: Exception, options: Mapping[str, Any] | None = None) -> str:
    """An error's message, or its class if it has none, without credentials."""
    text = redact(str(error) or type(error).__name__)
    for value in sorted(_texts(options or {}), key=len, reverse=True):
        if len(value) >= _MIN_SECRET_LENGTH:
            text = text.replace(value, "***")
    return text


def redact(name: str) -> str:
    """A location without credentials, to be shown and saved.

    >>> redact("s3://key:secret@bucket/lake")
    's3://***@bucket/lake'
    >>> redact("https://host/a.parquet?X-Amz-Signature=abc&part=1")
    'https://host/a.parquet?X-Amz-Signature=***&part=1'
    """
    # a password may contain slashes, though it should not; a colon before a number is a port
    name = re.sub(r"(?<=://)(?:[^/@\s]+|[^/@\s:]+:(?!\d+/)[^@\s]+)@", "***@", name)
    hidden = r"([?&][\w-]*(?:key|secret|token|sig|signature|credential|password)[\w-]*=)[^&\s'\"]+"
    return re.sub(hidden, r"\1***", name, flags=re.IGNORECASE)


def _texts(options: Any) -> Iterator[str]:
    if isinstance(options, str):
        yield options
    elif isinstance(options, Mapping):
        for value in options.values():
            yield from _texts(value)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from _texts(value)
