"""Print a digest of what a seed draws from each mechanism, as JSON: `python tests/draws.py`.

numpy promises that a seed gives the same raw bytes in every version, and not that a distribution
makes the same numbers of them. So the mechanisms whose chance comes from bytes alone must draw the
same with the oldest and the newest numpy; `test_draws.py` compares them.
"""

import hashlib
import json
import sys

import numpy as np

from dpnotes import (
    _coins,
    exponential_mechanism,
    histogram,
    label_privacy,
    pate,
    private_auc,
    private_confusion,
    randomized_response,
    unary_encoding,
)

SEEDS = range(8)
GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")
BITS = np.eye(5, dtype=np.uint8)[np.arange(2000) % 5]
LABELS, SCORES = np.arange(50) % 3 == 0, np.arange(50) * 7 % 50 / 50
P = np.linspace(0, 0.999, 5000)

CALLS = {
    "cauchy": lambda rng: [str(_coins.cauchy(rng)) for _ in range(20)],
    "discrete_gaussian": lambda rng: _coins.discrete_gaussian(2000, 7.3, rng),
    "discrete_laplace": lambda rng: _coins.discrete_laplace(2000, 300.7, rng),
    "draw_bytes": lambda rng: _coins.draw_bytes(1001, rng),
    "flip": lambda rng: _coins.flip(100_000, 0.3, rng),
    "flip_each": lambda rng: _coins.flip_each(P, rng),
    "flip_either": lambda rng: _coins.flip_either(LABELS, 0.7, 0.2, rng),
    "laplace": lambda rng: [str(_coins.laplace(rng)) for _ in range(20)],
    "student_t": lambda rng: [str(_coins.student_t(3, rng)) for _ in range(20)],
    "above_threshold": lambda rng: exponential_mechanism.above_threshold(
        range(0, 100, 5), 50, 0.1, rng=rng
    ),
    "sample": lambda rng: exponential_mechanism.sample(range(30), 0.3, size=500, rng=rng),
    "release_median": lambda rng: float(
        exponential_mechanism.release_median(SCORES, 0.5, low=0, high=1, steps=1000, rng=rng)
    ),
    "permute_and_flip": lambda rng: exponential_mechanism.permute_and_flip(
        range(30), 0.3, size=50, rng=rng
    ),
    "release_histogram": lambda rng: (
        histogram.release_histogram(["a", "b", "a"], ["a", "b", "c"], 0.1, rng=rng).value
    ),
    "label_privacy.privatize": lambda rng: label_privacy.privatize(
        2 * LABELS.astype(int) - 1, 0.7, rng=rng
    ),
    "label_privacy.exponential, two-step": lambda rng: label_privacy.exponential(
        2 * LABELS.astype(int) - 1, 0.7, method="two-step", rng=rng
    ),
    "LNMax": lambda rng: pate.LNMax(0.1).answer([[90, 100, 95]] * 200, rng=rng),
    "ConfidentGNMax": lambda rng: pate.ConfidentGNMax(100.0, 20.0, 10.0).answer(
        [[90, 100, 95]] * 200, rng=rng
    ),
    "release_auc, Laplace": lambda rng: float(
        private_auc.release_auc(LABELS, SCORES, 1.0, delta=1e-6, noise="laplace", rng=rng)
    ),
    "release_confusion_matrix": lambda rng: (
        private_confusion.release_confusion_matrix(LABELS, SCORES > 0.5, 0.3, rng=rng).value
    ),
    "randomized_response, 2 categories": lambda rng: randomized_response.privatize(
        LABELS, 0.7, rng=rng
    ),
    "randomized_response, 5 categories": lambda rng: randomized_response.privatize(
        np.arange(2000) % 5, 0.7, categories=5, rng=rng
    ),
    "two_coin": lambda rng: randomized_response.two_coin(LABELS, rng=rng),
    "perturb": lambda rng: unary_encoding.perturb(BITS, 0.5, 0.25, rng=rng),
}
# Distributions of numpy that take part, where they do.
BEYOND_BYTES = {
    "label_privacy.exponential, two-step": {"permutation", "shuffle"},
    "permute_and_flip": {"permutation", "shuffle"},
    "randomized_response, 5 categories": {"integers"},
    "release_median": {"integers"},
}


class Watched(np.random.Generator):
    """A generator that remembers which of numpy's distributions were asked for."""

    asked = frozenset()

    def __getattribute__(self, name):
        if name[0] != "_" and name not in ("bit_generator", "bytes", "asked"):
            self.asked |= {name}
        return super().__getattribute__(name)

    def bytes(self, length):
        # numpy's own asks for integers of 32 bits, which a plain generator may do unseen.
        return np.random.Generator(self.bit_generator).bytes(length)


def digest(call, generator="PCG64"):
    """Return the digest of what a call draws with each seed, and what else than bytes it asked."""
    drawn, asked = hashlib.sha256(), set()
    for seed in SEEDS:
        rng = Watched(getattr(np.random, generator)(seed))
        drawn.update(repr(np.asarray(call(rng)).tolist()).encode())
        asked |= rng.asked
    return drawn.hexdigest(), asked


def digests():
    found = {name: digest(call)[0] for name, call in CALLS.items()}
    for generator in GENERATORS:
        found[f"draw_bytes, {generator}"] = digest(CALLS["draw_bytes"], generator)[0]
    return found


if __name__ == "__main__":
    import scipy

    versions = {"numpy": np.__version__, "scipy": scipy.__version__}
    json.dump({"versions": versions, "digests": digests()}, sys.stdout, indent=1)
