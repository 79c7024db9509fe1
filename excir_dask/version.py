"""The version, where setuptools and the manifest of a run both find it."""

__version__ = "0.1.0"
