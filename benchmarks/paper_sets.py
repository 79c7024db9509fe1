"""The synthetic sets of the paper, made from their descriptions (all with seed 0), and scikit-learn's bundled data.

Each function returns ``(X, y)``; whole-number ``y`` are classes, others a number to predict. Where the paper leaves
something open the function says what was chosen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sklearn.datasets
from numpy.typing import NDArray

Set = tuple[NDArray[np.float64], NDArray[np.float64] | NDArray[np.int64]]


def synthetic_clf() -> Set:
    """10 informative, 10 redundant, 5 repeated and 15 noise columns."""
    return sklearn.datasets.make_classification(
        3000, 40, n_informative=10, n_redundant=10, n_repeated=5, random_state=0
    )


def synthetic_reg() -> Set:
    return sklearn.datasets.make_regression(3000, 40, n_informative=10, noise=0.0, random_state=0)


def _waves(rows: int, channels: int, length: int) -> Set:
    """Sines with a second harmonic, faster in class 1; of each channel eight statistics (our choice of them)."""
    random = np.random.RandomState(0)
    y = random.randint(0, 2, rows)
    steps = np.arange(length)
    columns = []
    for _ in range(channels):
        frequency = 0.05 + 0.2 * random.rand(rows, 1) + 0.1 * y[:, None]
        angle = 2 * np.pi * frequency * steps
        columns += statistics(np.sin(angle) + 0.5 * np.sin(2 * angle) + 0.3 * random.randn(rows, length))
    return np.column_stack(columns), y


def statistics(wave: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Eight figures of each row of a (rows, length) signal."""
    spectrum = np.abs(np.fft.rfft(wave, axis=1)) ** 2
    length = wave.shape[1]
    return [
        wave.mean(1), wave.std(1), wave.min(1), wave.max(1), np.abs(np.diff(wave, axis=1)).mean(1),
        (np.diff(np.sign(wave), axis=1) != 0).mean(1), spectrum[:, 1:].argmax(1) / length,
        (spectrum * np.arange(spectrum.shape[1])).sum(1) / spectrum.sum(1) / length,
    ]  # fmt: skip


def ecg_heartbeat() -> Set:
    return _waves(2500, 1, 256)


def sensor_fusion() -> Set:
    return _waves(3000, 3, 128)


def eeg_signals() -> Set:
    return _waves(3000, 4, 256)


def fashion_mnist_features() -> Set:
    """16 latent columns, shifted by 0.15 per class, mapped to 128 at random."""
    random = np.random.RandomState(0)
    y = random.randint(0, 10, 5000)
    latent = random.randn(5000, 16) + 0.15 * y[:, None]
    return latent @ random.randn(16, 128) + 0.1 * random.randn(5000, 128), y


def stock_technical() -> Set:
    """Moments of 60-step random walks; class 1 (our choice) where momentum plus noise of half its size is positive."""
    random = np.random.RandomState(0)
    returns = 0.01 * random.randn(4000, 60)
    momentum = returns.sum(1)
    centred = returns - returns.mean(1, keepdims=True)
    X = np.column_stack(
        [returns.mean(1), returns.std(1), momentum, (centred**3).mean(1) * 1e6, (centred**4).mean(1) * 1e8]
    )
    return X, (momentum + 0.5 * momentum.std() * random.randn(4000) > 0).astype(np.int64)


def gene_expression() -> Set:
    """40 blocks of 50 genes that correlate by 0.7; ten blocks decide the class, five of them by being low."""
    random = np.random.RandomState(0)
    factors = random.randn(800, 40)
    X = np.sqrt(0.7) * np.repeat(factors, 50, axis=1) + np.sqrt(0.3) * random.randn(800, 2000)
    signal = factors[:, :10] @ np.tile([1.0, -1.0], 5)
    return X, (signal + random.randn(800) > 0).astype(np.int64)


def network_topology() -> Set:
    random = np.random.RandomState(0)
    X = np.column_stack([
        random.gamma(2, 2, 3000), random.beta(2, 5, 3000), random.uniform(-0.5, 0.5, 3000),
        random.poisson(5, 3000), random.exponential(1, 3000),
    ])  # fmt: skip
    return X, (X @ [0.3, 0.8, -0.5, 0.1, 0.2] + 0.5 * random.randn(3000) > 1.8).astype(np.int64)


def audio_mfcc() -> Set:
    random = np.random.RandomState(0)
    y = random.randint(0, 5, 3500)
    return random.randn(3500, 20) + 0.25 * (y[:, None] - 2) + 0.1 * random.randn(3500, 20), y


def weather_station() -> Set:
    """Day of the year, pressure, humidity, cloud and wind, in ranges of our choice."""
    random = np.random.RandomState(0)
    day, pressure = random.uniform(0, 365, 5000), random.normal(1013, 8, 5000)
    humidity, cloud, wind = random.uniform(20, 90, 5000), random.uniform(0, 10, 5000), random.gamma(2, 2, 5000)
    y = 10 + 10 * np.sin(2 * np.pi * day / 365) - 0.01 * (pressure - 1013) - 0.05 * (humidity - 50)
    return np.column_stack([day, pressure, humidity, cloud, wind]), y - 0.3 * cloud + 0.2 * wind + random.randn(5000)


def satellite_ndvi() -> Set:
    """Six bands between 0.05 and 1 (our choice, so that no ratio explodes), sun and view angles."""
    random = np.random.RandomState(0)
    bands, sun, view = random.uniform(0.05, 1, (4000, 6)), random.uniform(0, 70, 4000), random.uniform(0, 30, 4000)
    index = (bands[:, 3] - bands[:, 2]) / (bands[:, 3] + bands[:, 2])
    y = index + 0.001 * (sun - 35) - 0.001 * (view - 15) + 0.02 * random.randn(4000)
    return np.column_stack([bands, sun, view]), y


def industrial_process() -> Set:
    random = np.random.RandomState(0)
    X = random.randn(4500, 4)
    return X, 2 + X @ [1.5, -0.7, 0.9, 1.2] + 0.3 * random.randn(4500)


def social_network() -> Set:
    random = np.random.RandomState(0)
    X = np.column_stack([random.poisson(mean, 5000) for mean in (3, 120, 50, 12, 5)]).astype(float)
    return X, (X @ [0.2, 0.01, 0.03, 0.05, 0.08] + 0.5 * random.randn(5000) > 3).astype(np.int64)


def retail_demand() -> Set:
    random = np.random.RandomState(0)
    price, promotion = random.uniform(1, 20, 5000), random.randint(0, 2, 5000).astype(float)
    month, trend = random.randint(1, 13, 5000).astype(float), random.uniform(0, 1, 5000)
    y = 3 - 0.5 * np.log(price) + 0.8 * promotion + 0.2 * np.sin(2 * np.pi * month / 12) + 0.5 * trend
    return np.column_stack([price, promotion, month, trend]), y + 0.2 * random.randn(5000)


def traffic_flow() -> Set:
    random = np.random.RandomState(0)
    hour, day, rain = random.uniform(0, 24, 4500), random.randint(0, 7, 4500), random.exponential(1, 4500)
    y = 20 + 15 * np.sin(2 * np.pi * hour / 24) + 5 * (day >= 5) - 3 * rain + 2 * random.randn(4500)
    return np.column_stack([hour, day, rain]), y


def energy_consumption() -> Set:
    random = np.random.RandomState(0)
    occupants, hour = random.poisson(20, 4000).astype(float), random.uniform(0, 24, 4000)
    temperature, humidity = random.normal(18, 8, 4000), random.uniform(20, 90, 4000)
    y = 0.4 * occupants + 0.2 * hour - 0.1 * (temperature - 20) + 0.05 * (humidity - 50) + random.randn(4000)
    return np.column_stack([occupants, hour, temperature, humidity]), y


def sbm_communities() -> Set:
    """A stochastic block model (our definition: the paper names the set, and says no more).

    2,000 nodes in four equal communities; an edge has probability 0.02 inside and 0.008 across. The first 250 nodes of
    each community are landmarks whose community is known. A node's 14 features: its degree, its neighbours among the
    landmarks of each community, the mean degree of its neighbours, four attributes that are shifted by 0.5 for one
    community each, and four that are noise. The community is the class.
    """
    random = np.random.RandomState(0)
    y = np.repeat(np.arange(4), 500)
    drawn = random.rand(2000, 2000) < np.where(y[:, None] == y, 0.02, 0.008)
    edges = np.triu(drawn, 1)
    edges = (edges | edges.T).astype(float)
    degree = edges.sum(1)
    landmarks = (np.arange(2000) % 500 < 250)[:, None] & (y[:, None] == np.arange(4))
    attributes = random.randn(2000, 8)
    attributes[:, :4] += 0.5 * (y[:, None] == np.arange(4))
    return np.column_stack([degree, edges @ landmarks, edges @ degree / np.maximum(degree, 1), attributes]), y


def _bundled(load: Callable[..., Set]) -> Callable[[], Set]:
    return lambda: load(return_X_y=True)


SETS: dict[str, Callable[[], Set]] = {
    "iris": _bundled(sklearn.datasets.load_iris),
    "diabetes": _bundled(sklearn.datasets.load_diabetes),
    "wine": _bundled(sklearn.datasets.load_wine),
    "digits": _bundled(sklearn.datasets.load_digits),
    "breast_cancer": _bundled(sklearn.datasets.load_breast_cancer),
    **{
        make.__name__: make
        for make in (
            synthetic_clf, synthetic_reg, ecg_heartbeat, sensor_fusion, eeg_signals, fashion_mnist_features,
            stock_technical, gene_expression, network_topology, audio_mfcc, weather_station, satellite_ndvi,
            industrial_process, social_network, retail_demand, traffic_flow, energy_consumption, sbm_communities,
        )
    },
}  # fmt: skip
"""name -> function that makes it, the bundled ones first"""

BLOCKS = {"gene_expression": 50}
"""name -> columns of a block, where a set consists of blocks that correlate"""
