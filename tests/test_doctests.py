"""Examples in docstrings run, in the package as it is installed."""

import doctest
import importlib
import pkgutil

import pytest

import excir_dask

MODULES = [found.name for found in pkgutil.walk_packages(excir_dask.__path__, "excir_dask.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) >= 8
