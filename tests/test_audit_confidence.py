"""Does `epsilon_lower_bound` accuse as rarely as it says, of every kind of mechanism?"""

import functools
import math

import numpy as np
import pytest
from scipy import stats
from test_audit import gaussian, geometric, laplace, randomized_response, unary

from dpnotes.audit import MechanismFailed, epsilon_lower_bound

# Each spends exactly its claim of (epsilon, delta) between the data sets 0 and 1, no less.


def coin(truth, rng, epsilon=1.0):
    """Keep a bit or flip it."""
    return truth if rng.random() < 1 / (1 + math.exp(-epsilon)) else 1 - truth


def many_values(truth, *, rng):
    return 500 * coin(truth, rng) + int(rng.integers(500))


def vectors(truth, *, rng):
    return truth * np.array([0.5, -0.25, 0.25]) + rng.laplace(size=3)


def strings(truth, *, rng):
    return f"{'yes' if coin(truth, rng) else 'no'}, said {rng.integers(30)}"


def exceptions(truth, *, rng):
    if coin(truth, rng):
        raise ValueError(f"refused for reason {rng.integers(3)}")
    return "answered"


def collections(truth, *, rng):
    return {"bit": coin(truth, rng), "noise": [rng.normal(), None]}


def tells_now_and_then(truth, *, rng):
    return f"it is {truth}" if rng.random() < 0.05 else coin(truth, rng)


class Memoized:
    """Keep the first report about each truth, for ever."""

    def __init__(self, epsilon=1.0):
        self.epsilon, self.kept = epsilon, {}

    def __call__(self, truth, *, rng):
        return self.kept.setdefault(truth, coin(truth, rng, self.epsilon))


class BornWithACoin:
    """Toss the coin when it is built, and never again."""

    def __init__(self, rng):
        self.flips = coin(0, rng)

    def __call__(self, truth):
        return truth ^ self.flips


GAUSSIAN = stats.norm.cdf(-0.5) - math.e * stats.norm.cdf(-1.5)
PURE = {
    **{m.__name__: m for m in (coin, many_values, vectors, strings, exceptions, collections)},
    "Laplace noise": laplace(1.0),
    "geometric noise": geometric(1.0),
    "ten categories": randomized_response(1.0, 10),
    "two bits": unary(1 / (math.e + 1), 1 / 2, 2),
}
# mechanism, delta, whether it is a factory
CLAIMS = [
    *(pytest.param(mechanism, 0.0, False, id=name) for name, mechanism in PURE.items()),
    pytest.param(gaussian(1.0), GAUSSIAN, False, id="Gaussian noise"),
    pytest.param(tells_now_and_then, 0.05, False, id="tells now and then"),
    pytest.param(Memoized, 0.0, True, id="Memoized"),
    pytest.param(BornWithACoin, 0.0, True, id="BornWithACoin"),
]


def accused(mechanism, delta, factory, *, audits, claim=1.0, **options):
    """Count the audits whose bound is above the claim."""
    options = {"trials": 100, "delta": delta, "factory": factory} | options
    return sum(
        epsilon_lower_bound(mechanism, 0, 1, rng=seed, **options) > claim for seed in range(audits)
    )


def most(audits, confidence):
    """Return how many audits may accuse, one time in a thousand, if each does so at the error."""
    return stats.binom.ppf(0.999, audits, 1 - confidence)


MANY = [pytest.param(2000, confidence, marks=pytest.mark.full) for confidence in (0.8, 0.95)]


@pytest.mark.claim("audit.epsilon_lower_bound", kind="simulation with its error")
@pytest.mark.parametrize(("audits", "confidence"), [(60, 0.8), *MANY])
@pytest.mark.parametrize(("mechanism", "delta", "factory"), CLAIMS)
def test_a_mechanism_that_spends_its_claim_is_seldom_accused(
    mechanism, delta, factory, audits, confidence
):
    found = accused(mechanism, delta, factory, audits=audits, confidence=confidence)
    assert found <= most(audits, confidence)


def test_the_same_audits_accuse_who_spends_more_than_the_claim():
    found = accused(coin, 0.0, False, audits=60, claim=0.4, confidence=0.8, trials=400)
    assert found > most(60, 0.8)


def test_a_mechanism_that_is_right_is_not_refuted_by_many_runs_which_come_near_its_claim():
    for name in ("coin", "Laplace noise", "ten categories", "geometric noise", "two bits"):
        assert 0.6 < epsilon_lower_bound(PURE[name], 0, 1, trials=8000, rng=1) <= 1


def test_a_mechanism_with_memory_is_accused_unless_it_is_built_for_every_run():
    # At log 3 the two kept reports differ with probability 5/8, and then all runs agree with them.
    audits, claim = 60, math.log(3)
    build = functools.partial(Memoized, claim)
    kept = sum(
        epsilon_lower_bound(build(), 0, 1, trials=100, rng=seed) > claim for seed in range(audits)
    )
    assert stats.binom.ppf(0.001, audits, 5 / 8) <= kept <= stats.binom.ppf(0.999, audits, 5 / 8)
    assert accused(build, 0.0, True, audits=audits, claim=claim) <= most(audits, 0.95)


@pytest.mark.parametrize("build", [BornWithACoin, functools.partial(Memoized)])
def test_what_is_built_costs_what_it_costs(build):
    bound = epsilon_lower_bound(build, 0, 1, trials=4000, factory=True, rng=1)
    assert 0.75 < bound <= 1


def test_a_factory_is_called_before_every_run_and_what_it_builds_runs_once():
    events, generator = [], np.random.default_rng(0)

    def factory():
        events.append("built")
        return lambda data, rng: events.append((data, rng))

    epsilon_lower_bound(factory, 5, 6, trials=20, factory=True, rng=generator)
    assert events[::2] == ["built"] * 40
    assert sorted(data for data, _ in events[1::2]) == [5] * 20 + [6] * 20
    assert all(rng is generator for _, rng in events[1::2])


def test_a_factory_that_raises_is_seen_to():
    def factory(*, rng):
        if rng.random() < 0.5:
            raise OSError("no room")
        return lambda data: data

    assert epsilon_lower_bound(factory, 0, 1, trials=200, factory=True, rng=0) > 0.1
    assert epsilon_lower_bound(factory, 0, 0, trials=200, factory=True, rng=0) < 0.1


def test_a_factory_that_builds_no_mechanism_gets_no_bound():
    with pytest.raises(MechanismFailed, match="mechanism must build what can be called, built "):
        epsilon_lower_bound(lambda: 0.5, 0, 1, trials=100, factory=True, rng=0)
