"""``excir demo``: a lake of vehicle sensors, a model trained on it, and its explanation.

The truth is known, so readers can check the ranking: vehicles break down because the engine runs hot and the brakes are
worn, a little because of the weather, and never because of the cabin or of sensors without a group.
"""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from excir_dask.errors import UsageError
from excir_dask.explain import explain
from excir_dask.render.text import explanation as display
from excir_dask.results.storage import check_target
from excir_dask.training.result import check_model_path
from excir_dask.training.train import train

if TYPE_CHECKING:
    from xgboost import Booster

MARKER = ".excir-demo"
"""marks a folder as made by the demo, which may then rebuild it"""
PART = re.compile(r"part-\d{3,}\.parquet")
"""names of the lake's files"""
OUTPUT = "margin"
LABEL = "label"
PATTERN = f"!{LABEL}"
"""features to explain: all but the label, which is no input of the model"""
ROWS_PER_FILE = 50_000
TRAINING_ROWS = 100_000
"""rows of the lake to train on, with validation rows: more take longer and change nothing visible"""
TREES = 60
BASE_RISK = -1.5
"""log-odds of a breakdown if every sensor is at its middle; 28% of all rows are breakdowns"""


@dataclass(frozen=True)
class Sensor:
    """One column of the lake and its true effect."""

    name: str
    group: str | None
    middle: float
    spread: float
    """standard deviation, in the unit of the sensor"""
    loading: float
    """correlation with the common factor of its group; negative for a sensor that moves against it"""
    effect: float
    """change of the log-odds of a breakdown per standard deviation"""


SENSORS = (
    Sensor("engine_rpm", "engine", 2200.0, 450.0, 0.70, 0.10),
    Sensor("engine_torque", "engine", 180.0, 40.0, 0.75, 0.20),
    Sensor("coolant_temp", "engine", 90.0, 6.0, 0.85, 0.80),
    Sensor("oil_temp", "engine", 100.0, 9.0, 0.80, 0.50),
    Sensor("exhaust_temp", "engine", 420.0, 60.0, 0.60, 0.00),
    Sensor("brake_disc_temp", "brakes", 180.0, 45.0, 0.70, 0.45),
    Sensor("brake_vibration", "brakes", 2.0, 0.5, 0.65, 0.25),
    Sensor("brake_pressure", "brakes", 60.0, 12.0, 0.50, 0.00),
    Sensor("pad_thickness", "brakes", 8.0, 1.5, -0.80, -0.70),
    Sensor("rain_rate", "weather", 4.0, 1.5, 0.70, 0.30),
    Sensor("wind_speed", "weather", 20.0, 8.0, 0.60, 0.05),
    Sensor("air_humidity", "weather", 60.0, 15.0, 0.75, 0.00),
    Sensor("cabin_temp", "cabin", 21.0, 1.5, 0.75, 0.00),
    Sensor("fan_speed", "cabin", 3.0, 1.0, 0.70, 0.00),
    Sensor("seat_heating", "cabin", 2.0, 0.7, 0.60, 0.00),
    Sensor("radio_volume", None, 12.0, 4.0, 0.0, 0.00),
    Sensor("mirror_angle", None, 30.0, 5.0, 0.0, 0.00),
    Sensor("phone_battery", None, 55.0, 20.0, 0.0, 0.00),
)
FEATURES = tuple(sensor.name for sensor in SENSORS)
NOISE = tuple(sensor.name for sensor in SENSORS if sensor.group is None)
GROUPS: dict[str, list[str]] = {
    group: [sensor.name for sensor in SENSORS if sensor.group == group]
    for group in dict.fromkeys(sensor.group for sensor in SENSORS)
    if group is not None
}


def run(folder: str, rows: int) -> None:
    """Make a lake and a model in ``folder``, explain the model, and print the ranking and next steps.

    Parameters
    ----------
    folder : str
        A new or empty folder, or one of an earlier demo, whose lake, model and explanation are replaced.
    rows : int
        Rows of the lake.
    """
    home = check_folder(folder)
    began = time.perf_counter()
    _say(f"training an XGBoost model and writing its margin for {rows:,} rows to {home / 'lake'} ...")
    lake = make_lake(home, rows)
    _say(f"explaining column '{OUTPUT}' of {len(list(lake.iterdir()))} files ...")
    explanation = explain(str(lake), output=OUTPUT, features=PATTERN, groups=GROUPS)
    saved = explanation.save(home / "explanation", overwrite=True)
    seconds = time.perf_counter() - began
    _say(f"done in {seconds:.1f} s, of which the explanation took {explanation.provenance.seconds:.1f} s")
    click.echo(display.text(explanation, k=len(FEATURES)))
    click.echo("\n".join(["", *_farewell(home, lake, saved)]))


def check_folder(folder: str) -> Path:
    """The folder, if the demo may fill it; files of the user are never touched."""
    home = Path(folder)
    if home.exists() and not (home / MARKER).is_file() and (not home.is_dir() or any(home.iterdir())):
        raise UsageError(
            f"{home} exists and was not made by 'excir demo', so it is not touched; choose another --folder"
        )
    check_target(home / "explanation", overwrite=True)
    check_model_path(home / "model.ubj", overwrite=True)
    lake = home / "lake"
    for path in [lake] if lake.is_symlink() or lake.is_file() else lake.glob("*"):
        if path == lake or not path.is_file() or not PART.fullmatch(path.name):
            raise UsageError(
                f"{path} was not made by 'excir demo', so it is not touched; "
                "move it elsewhere, or choose another --folder"
            )
    return home


def make_lake(folder: str | Path, rows: int = 300_000, seed: int = 0) -> Path:
    """Write a lake, train a model on it and add its margin; one file and the training rows are in memory at a time.

    Parameters
    ----------
    folder : path
        A new or empty folder, or one that an earlier demo made.
    rows : int
        Rows of the lake, spread over at least four files.
    seed : int
        Seed of sensors and labels: the same seed and rows give the same lake.

    Returns
    -------
    Path
        The lake, ``folder/lake``. The model is saved beside it as ``model.ubj``.
    """
    home = check_folder(str(folder))
    lake = home / "lake"
    home.mkdir(parents=True, exist_ok=True)
    # first, so that an interrupted demo can run again
    (home / MARKER).write_text("made by 'excir demo', which replaces lake, model and explanation here\n")
    lake.mkdir(exist_ok=True)
    for path in lake.iterdir():
        path.unlink()
    for part, size in enumerate(_sizes(rows)):
        _write(lake / f"part-{part:03}.parquet", seed, part, *_rows(seed, part, size))
    model = train(
        lake, label=LABEL, features=list(FEATURES), rounds=TREES, fraction=min(1.0, TRAINING_ROWS / rows), seed=seed,
        # One thread: the same model on every machine. On a busy machine, threads that wait for each other took 15 s
        # instead of 2 s.
        params={"max_depth": 4, "eta": 0.15, "nthread": 1}, out=home / "model.ubj", overwrite=True,
    ).booster  # fmt: skip
    for path in lake.iterdir():
        _add_margin(path, model)
    return lake


def _sizes(rows: int) -> list[int]:
    """Rows of each file: equal up to one row."""
    files = max(4, -(-rows // ROWS_PER_FILE))
    return [rows // files + (part < rows % files) for part in range(files)]


def _rows(seed: int, part: int, size: int) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Sensors, of shape (size, sensors), and labels of one file; 35 ms per file."""
    random = np.random.default_rng([seed, part])
    shared = {group: random.standard_normal(size) for group in GROUPS}
    X = np.empty((size, len(SENSORS)))
    log_odds = np.full(size, BASE_RISK)
    for column, sensor in enumerate(SENSORS):
        z = np.sqrt(1.0 - sensor.loading**2) * random.standard_normal(size)
        if sensor.group is not None:
            z += sensor.loading * shared[sensor.group]
        log_odds += sensor.effect * z
        # rounded like real sensors; with three digits the files also take an eighth of the space
        X[:, column] = np.round(sensor.middle + sensor.spread * z, 2 - round(np.log10(sensor.spread)))
    label = random.random(size) < 1.0 / (1.0 + np.exp(-log_odds))
    return X, label.astype(np.int8)


def _write(path: Path, seed: int, part: int, X: NDArray[np.float64], label: NDArray[np.int8]) -> None:
    fleet = pa.array([f"V{number:04}" for number in range(2000)])
    vehicle = np.random.default_rng([seed, part, 1]).integers(len(fleet), size=len(X))
    columns = {
        "vehicle_id": fleet.take(pa.array(vehicle)),
        **{name: X[:, column] for column, name in enumerate(FEATURES)},
        LABEL: label,
    }
    pq.write_table(pa.table(columns), path)


def _add_margin(path: Path, model: Booster) -> None:
    import xgboost

    table = pq.read_table(path)
    X = np.column_stack([table[name].to_numpy() for name in FEATURES])
    margin = model.predict(xgboost.DMatrix(X, feature_names=list(FEATURES), nthread=1), output_margin=True)
    pq.write_table(table.append_column(OUTPUT, pa.array(margin.astype(np.float64))), path)


def _farewell(home: Path, lake: Path, saved: Path) -> list[str]:
    """Where to find everything, and commands to try as they are."""
    common = f"{shlex.quote(str(lake))} --output {OUTPUT} --features {shlex.quote(PATTERN)}"
    heat = "heat=coolant_temp,oil_temp,exhaust_temp,brake_disc_temp"
    return [
        "The truth behind this lake: engine and brakes cause breakdowns, and the weather a little. The cabin,",
        f"{', '.join(NOISE[:-1])} and {NOISE[-1]} do not. Thick brake pads prevent them (▼). exhaust_temp causes",
        "nothing: it moves with the margin because the other engine sensors do. CIR shows co-movement, not causes.",
        "",
        f"lake         {lake}",
        f"model        {home / 'model.ubj'}",
        f"explanation  {saved}",
        "",
        "Try next:",
        f"  excir plan {common}",
        f"  excir explain {common} --fraction 0.2",
        f"  excir explain {common} --group {heat} --out {shlex.quote(str(home / 'heat'))} --overwrite",
    ]


def _say(message: str) -> None:
    click.echo(message, err=True)
