"""No stated cost is below what an attack, worked out exactly, reaches at random settings."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from test_accounting import delta_of, laplace_losses, randomized_responses

from dpnotes import accounting, noisy_gradient_descent, pate


def log_uniform(rng, low, high):
    return float(10 ** rng.uniform(low, high))


def compose(rng, delta):
    epsilons = rng.choice(log_uniform(rng, -2, 0.6) * rng.uniform(size=6), rng.integers(1, 11))
    return accounting.compose(epsilons, delta), partial(delta_of, *randomized_responses(epsilons))


def compose_laplace(rng, delta):
    loss, queries, scale = log_uniform(rng, -2, 1), rng.integers(1, 99), log_uniform(rng, -3, 3)
    cost = accounting.compose_laplace(scale, queries, delta, sensitivity=loss * scale)
    return cost, partial(delta_of, *laplace_losses(loss, queries, 2000))


def descent(rng, delta):
    # The attack adds up all steps. At a rate of 1, where all is Gaussian, no attack is better.
    noise, steps, rate = log_uniform(rng, 0, 1), rng.integers(1, 30), rng.choice([0.2, 0.9, 1])
    batches, places = np.arange(steps + 1), np.linspace(-2, 4, 4001)[:, None] * steps
    neighbours, weights = rng.choice(["replaced", "added"]), stats.binom.pmf(batches, steps, rate)
    spread, other = noise * steps**0.5, -batches if neighbours == "replaced" else 0 * batches
    here, there = (stats.norm.sf(places, means, spread) @ weights for means in (batches, other))
    cost = noisy_gradient_descent.cost(noise, rate, steps, delta, neighbours=neighbours)
    return cost, lambda epsilon: (here - np.exp(epsilon) * there).max()


def bounded_range(rng, delta):
    length, queries, adaptive = log_uniform(rng, -1.5, 1), rng.integers(1, 50), rng.random() < 0.5
    t, seconds = np.linspace(0, length, 401)[1:-1, None], np.arange(queries + 1)
    chances = stats.binom.pmf(seconds, queries, np.expm1(t) / np.expm1(length))
    losses = queries * t - seconds * length
    cost = accounting.compose_bounded_range(length, queries, delta, adaptive=adaptive)
    return cost, lambda left: (chances * -np.expm1(np.minimum(left - losses, 0))).sum(1).max()


def reached(queries, answers, chances, losses, left):
    """Return the largest delta if any pair may be next; the last label is that of no answer."""
    if min(queries, answers) == 0:
        return -np.expm1(np.minimum(left, 0))
    ahead = np.subtract.outer(left, losses)
    told = reached(queries - 1, answers - 1, chances, losses, ahead[..., :-1])
    untold = reached(queries - 1, answers, chances, losses, ahead[..., -1:])
    return (chances * np.concatenate([told, untold], axis=-1)).sum(axis=-1).max(axis=-1)


def votes(rng, delta, kind, labels):
    scale, queries = log_uniform(rng, -0.5, 2), rng.integers(1, 4)
    here = 5000 + np.rint(scale * rng.normal(size=(5, labels)) * [[0], [0.3], [0.5], [1], [2]])
    there = here + np.eye(labels)[1] - np.eye(labels)[0]
    noise = {"LNMax": [1 / scale], "ConfidentGNMax": [5000 + scale, 2 * scale, scale]}
    answers = rng.integers(0, queries + 1) if kind == "ConfidentGNMax" else queries
    options = {"labels": labels} if kind == "LNMax" else {"answers": answers}
    ask = getattr(pate, kind)(*noise.get(kind, [scale]))
    chances = ask.output_distribution(np.vstack([here, there]))
    losses = np.log(chances / np.roll(chances, len(here), axis=0))
    if kind != "ConfidentGNMax":
        chances, losses = (np.pad(x, ((0, 0), (0, 1))) for x in (chances, losses))
    attack = partial(reached, queries, answers, chances, losses)
    return ask.cost(queries, delta, **options), attack


VOTES = [*(("LNMax", labels) for labels in (2, 3, 5)), ("GumbelMax", 2), ("GNMax", 3)]
VOTES += [("ConfidentGNMax", labels) for labels in (2, 3)]
DRAWS = [(compose, 0.999), (bounded_range, 0.99)]
DRAWS += [(partial(votes, kind=kind, labels=labels), 0.7) for kind, labels in VOTES]
LONG = [(compose_laplace, 0.999), (descent, 0.95)]
DRAWS += [pytest.param(*draw, marks=pytest.mark.full) for draw in LONG]


@pytest.mark.parametrize(("draw", "close"), DRAWS)
def test_no_cost_is_below_an_exact_one_and_some_are_close(draw, close, monkeypatch):
    pytest.importorskip("dp_accounting")
    rng, near = np.random.default_rng(5), 0
    for _ in range(50):
        delta = log_uniform(rng, -7, -0.5)
        # Every other time as if there were too many sums to enumerate.
        monkeypatch.setattr(accounting.composition, "_FEW", rng.choice([0, 1 << 20]))
        cost, delta_at = draw(rng, delta)
        assert delta_at(float(cost)) <= delta * (1 + 1e-8)
        near += cost.epsilon > 0 and delta_at(close * float(cost)) > delta
    assert near >= 3
