"""Five sets that the paper names and does not describe far enough, made from what it says (all with seed 0).

Each function returns ``(X, y)`` as in ``paper_sets.py``; its docstring is the whole definition.
"""

from __future__ import annotations

import numpy as np
from paper_sets import Set, statistics


def har6() -> Set:
    """Windows of a three-axis sensor on a person who walks, climbs, descends, sits, stands or lies.

    2,400 windows of 128 steps. Still activities differ by where gravity points, moving ones by frequency and size of
    the swing, which vary from person to person. Eight statistics of each axis and of the length of the vector.
    """
    random = np.random.RandomState(0)
    y = random.randint(0, 6, 2400)
    gravity = np.array([[1, 0, 0], [0.95, 0.2, 0], [0.95, -0.2, 0], [0.8, 0.5, 0.2], [1, 0.1, 0], [0.1, 0.3, 1]])[y]
    swing = np.array([0.45, 0.35, 0.6, 0.02, 0.02, 0.01])[y] * random.lognormal(0, 0.25, 2400)
    frequency = np.array([0.050, 0.040, 0.060, 0.02, 0.02, 0.02])[y] * random.lognormal(0, 0.15, 2400)
    angle = 2 * np.pi * (frequency[:, None] * np.arange(128) + random.rand(2400, 1))
    axes = []
    for axis, size in enumerate((1.0, 0.6, 0.4)):
        tilt = gravity[:, [axis]] + 0.1 * random.randn(2400, 1)
        axes.append(tilt + size * swing[:, None] * np.sin(angle + axis) + 0.05 * random.randn(2400, 128))
    signals = [*axes, np.sqrt(sum(axis**2 for axis in axes))]
    return np.column_stack([column for signal in signals for column in statistics(signal)]), y


def newsgroups() -> Set:
    """Weighted words (TF-IDF, length 1) of 2,000 documents on two topics.

    400 words with Zipf's frequencies; 20 words are three times as frequent in class 1, 20 in class 0. Documents have
    80 words on average.
    """
    random = np.random.RandomState(0)
    y = random.randint(0, 2, 2000)
    shares = np.tile(1.0 / np.arange(3, 403), (2, 1))
    topical = random.permutation(400)[:40]
    shares[1, topical[:20]] *= 3
    shares[0, topical[20:]] *= 3
    shares /= shares.sum(axis=1, keepdims=True)
    counts = np.array([random.multinomial(random.poisson(80), shares[topic]) for topic in y], dtype=float)
    weighted = counts * np.log(2000 / np.maximum((counts > 0).sum(axis=0), 1))
    return weighted / np.maximum(np.sqrt((weighted**2).sum(axis=1, keepdims=True)), 1e-12), y


def protein_structure() -> Set:
    """Nine sizes and shares of 5,000 folded proteins that follow one latent size; the distance to the native state.

    Surfaces and masses are powers of the size times lognormal noise, shares are beta; the distance saturates in size
    and share of exposed surface.
    """
    random = np.random.RandomState(0)
    size = random.lognormal(0, 0.4, 5000)
    share, contacts = random.beta(6, 14, 5000), random.beta(5, 3, 5000)

    def noisy(values: np.ndarray, spread: float) -> np.ndarray:
        return values * random.lognormal(0, spread, 5000)

    area = noisy(9900 * size**0.75, 0.05)
    X = np.column_stack([
        area, noisy(area * share, 0.1), share, noisy(100 * size * contacts, 0.2), noisy(1.4e6 * size**0.9, 0.08),
        noisy(145 * size, 0.1), noisy(3900 * size**1.5, 0.3), noisy(70 * (1 - contacts), 0.3), noisy(34 * size, 0.2),
    ])  # fmt: skip
    level = 1.2 * np.log(size) + 5 * (share - 0.3) - 3 * (contacts - 0.6) * (size < 1)
    return X, 21 / (1 + np.exp(-level)) + 1.5 * random.randn(5000)


def cyber_security() -> Set:
    """Twelve figures of 5,000 network flows, of which a tenth are attacks.

    Half of the attacks scan (many ports, few bytes), half copy data out at night. Failed logins and alarms are sparse
    counts; time to live, window and jitter are noise.
    """
    random = np.random.RandomState(0)
    y = (random.rand(5000) < 0.1).astype(np.int64)
    scan = (y == 1) & (random.rand(5000) < 0.5)
    copy = (y == 1) & ~scan
    night = copy & (random.rand(5000) < 0.8)
    sent = random.lognormal(7 - 1.5 * scan + 1.5 * copy, 1.2)
    X = np.column_stack([
        random.lognormal(0 - 1.0 * scan, 1.0), sent, random.lognormal(8, 1.3, 5000),
        sent / 500 * random.lognormal(0, 0.3, 5000),
        random.poisson(1.5 + 12 * scan), random.poisson(0.1 + 0.8 * y), random.poisson(0.02 + 0.2 * y),
        random.beta(2 + 4 * scan, 6), np.where(night, random.uniform(0, 6, 5000), random.uniform(0, 24, 5000)),
        random.choice([32, 64, 128, 255], 5000), random.randint(0, 65536, 5000), random.exponential(1, 5000),
    ]).astype(float)  # fmt: skip
    return X, y


def mixed_modal() -> Set:
    """Three kinds of columns at once: shares of 10 text topics, 16 image features of rank 4, 8 figures; two classes.

    The class follows one topic, one latent image factor, two figures, and the product of a figure and the factor.
    """
    random = np.random.RandomState(0)
    topics, latent = random.dirichlet(np.full(10, 0.3), 4000), random.randn(4000, 4)
    image = latent @ random.randn(4, 16) + 0.3 * random.randn(4000, 16)
    figures = np.column_stack([random.randn(4000, 4), random.lognormal(0, 1, (4000, 2)), random.poisson(2, (4000, 2))])
    signal = 3 * (topics[:, 0] - 0.1) + latent[:, 0] + 0.8 * figures[:, 0] - 0.4 * (figures[:, 6] - 2)
    signal += 0.8 * figures[:, 1] * latent[:, 0]
    return np.column_stack([topics, image, figures]), (signal + 0.7 * random.randn(4000) > 0).astype(np.int64)
