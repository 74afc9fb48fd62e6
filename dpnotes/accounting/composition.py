"""Composition of mechanisms of given epsilons, and of numbers with Laplace or Gaussian noise."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpnotes._checks import (
    as_array,
    as_floats,
    check_choice,
    check_delta,
    check_epsilon,
    check_integer,
    check_probability,
    check_real,
    kind_of,
)
from dpnotes.accounting._calibrate import calibrate
from dpnotes.accounting.costs import HARDLY_ANY_NOISE, MOST_QUERIES, SMALLEST, PrivacyCost
from dpnotes.accounting.renyi import DEFAULT_ORDERS, epsilon_from_rdp, laplace_rdp

# Each with its name in dp-accounting.
NEIGHBOURS = {"replaced": "REPLACE_ONE", "added": "ADD_OR_REMOVE_ONE"}

_FEW = 1 << 20  # sums of losses that are enumerated
_CELLS = 1 << 15  # cells of a grid of losses
_LEAST_DELTA = 1e-10  # below it, rounding in Fourier transforms dominates
_BEYOND = 1e-12  # share of delta that may lie beyond the grid
_ON_A_GRID = (1e-100, 1e6)  # sums of epsilons for which a grid of losses is accurate


def compose(epsilons: ArrayLike, delta: float) -> PrivacyCost:
    """Return what any mechanisms of given epsilons cost together.

    Parameters
    ----------
    epsilons : array_like of float, shape (queries,)
        What each answer costs by itself: finite, at least 0, with a delta of 0. An empty list
        costs nothing.
    delta : float
        The probability with which the loss of all may be larger, in [0, 1); at 0 the costs add up.

    Returns
    -------
    PrivacyCost
        The smallest epsilon that holds for *all* mechanisms of these epsilons, if these take few
        different values. Otherwise a certified upper bound; in the tests it is at most 0.5 % above
        the smallest.

    Raises
    ------
    ValueError
        If an epsilon is negative or not finite; there are more than 10**6, or more than 10**4 with
        too many different values; or delta is out of range.

    Notes
    -----
    The worst mechanisms are randomized response (Kairouz, Oh and Viswanath, 2015; Murtagh and
    Vadhan, 2016), of loss epsilon_i with probability 1 / (1 + exp(-epsilon_i)), else -epsilon_i.
    With P the distribution of the sum L of these losses, epsilon solves

        delta = sum_L P(L) max(0, 1 - exp(epsilon - L)).

    Equal epsilons give a binomial, so L is enumerated where it has at most 2^20 values. In general
    the problem is #P-complete (Murtagh and Vadhan). Then each loss is split between the two nearest
    points of a grid, which keeps the mean of exp(-loss): the likelihood ratio only spreads, so the
    cost can only grow (the "connect the dots" of Doroshenko et al., 2022). Sums beyond the grid
    count as infinite losses.

    Examples
    --------
    >>> round(float(compose([0.1] * 100, 1e-5)), 4), round(float(compose([0.1] * 100, 0.0)), 4)
    (4.3068, 10.0)
    """
    epsilons = _check_epsilons(epsilons)
    delta = check_delta(delta)
    most = float(epsilons.sum())
    if delta == 0 or most == 0:
        return PrivacyCost(most, delta)
    values, counts = np.unique(epsilons[epsilons > 0], return_counts=True)
    if math.prod(int(count) + 1 for count in counts) <= _FEW:
        losses, chances, infinite = *_listed(values, counts), 0.0
    elif counts.sum() <= 10**4:
        if not _ON_A_GRID[0] < most < _ON_A_GRID[1]:
            # By basic composition the sum of the epsilons always holds.
            return PrivacyCost(0.0 if most <= delta else most, delta)
        losses, chances, infinite = _on_a_grid(np.repeat(values, counts), delta)
    else:
        raise ValueError(
            "epsilons must have few different values where there are more than 10**4: "
            f"round some up; got {values.size} values"
        )
    return PrivacyCost(min(most, _epsilon_of(losses, chances, delta - infinite)), delta)


def _listed(values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every sum of losses of randomized response, and its probability."""
    losses, log_chances = np.zeros(1), np.zeros(1)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        true = np.arange(count + 1)
        log_binomial = (
            special.gammaln(count + 1)
            - special.gammaln(true + 1)
            - special.gammaln(count - true + 1)
            - true * np.logaddexp(0, -value)
            - (count - true) * np.logaddexp(0, value)
        )
        losses = np.add.outer(losses, (2 * true - count) * value).ravel()
        log_chances = np.add.outer(log_chances, log_binomial).ravel()
    return losses, np.exp(log_chances)


def _on_a_grid(epsilons: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return a grid of losses, chances that bound the cost, and the chance of an infinite loss."""
    # By Hoeffding's inequality a sum exceeds this reach with probability at most _BEYOND * delta.
    drift = float(epsilons @ np.tanh(epsilons / 2))
    spread = math.sqrt(2 * float(epsilons @ epsilons) * (-math.log(_BEYOND) - math.log(delta)))
    reach = min(float(epsilons.sum()), drift + spread)
    step = 2 * reach / _CELLS
    # Rounding to the grid may move each answer one cell further.
    half = _CELLS // 2 + epsilons.size
    chances, infinite = np.zeros(2 * half + 1), 0.0
    chances[half] = 1.0
    for epsilon in epsilons.tolist():
        moved = np.zeros_like(chances)
        for loss in (epsilon, -epsilon):
            chance = special.expit(loss)
            below = math.floor(loss / step)
            # The share of the lower point, which keeps the mean of exp(-loss).
            share = math.expm1((below + 1) * step - loss) / math.expm1(step)
            share = min(1.0, max(0.0, share))
            for places, weight in ((below, chance * share), (below + 1, chance * (1 - share))):
                infinite += _shift_into(moved, chances, places, weight)
        chances = moved
    return step * np.arange(-half, half + 1), chances, infinite


def _shift_into(target: np.ndarray, chances: np.ndarray, places: int, weight: float) -> float:
    """Add shifted chances: clamp at the lower end, and return what leaves at the upper end."""
    size = chances.size
    places = max(-size, min(size, places))
    if places >= 0:
        target[places:] += weight * chances[: size - places]
        return weight * float(chances[size - places :].sum())
    target[:places] += weight * chances[-places:]
    target[0] += weight * float(chances[:-places].sum())
    return 0.0


def _epsilon_of(losses: np.ndarray, chances: np.ndarray, delta: float) -> float:
    """Return the smallest epsilon of at least 0 that a distribution of losses promises at delta."""
    if delta <= 0:
        return math.inf
    positive = losses > 0
    order = np.argsort(-losses[positive], kind="stable")
    losses, chances = losses[positive][order], chances[positive][order]
    # With epsilon between two losses, delta = above - exp(epsilon) ratios, summed over the larger.
    above = np.cumsum(chances)
    with np.errstate(divide="ignore"):
        log_ratios = np.logaddexp.accumulate(np.log(chances) - losses)
    # At epsilon equal to a loss only larger losses count, so that loss is left out of the sum.
    reached = above[:-1] - np.exp(losses[1:] + log_ratios[:-1])
    enough = np.flatnonzero(reached > delta)
    last = int(enough[0]) if enough.size else losses.size - 1
    if last < 0 or above[last] <= delta:
        return 0.0
    epsilon = max(0.0, math.log(above[last] - delta) - float(log_ratios[last]))
    return _polished(min(epsilon, float(losses[0])), losses, chances, delta)


def _polished(epsilon: float, losses: np.ndarray, chances: np.ndarray, delta: float) -> float:
    """Improve an epsilon by Newton's method, on a sum without cancellation."""
    for _ in range(20):
        larger = losses > epsilon
        ahead = epsilon - losses[larger]
        excess = float(chances[larger] @ -np.expm1(ahead)) - delta
        slope = float(chances[larger] @ np.exp(ahead))
        if slope == 0:
            break
        better = max(0.0, epsilon + excess / slope)
        if abs(better - epsilon) <= 1e-14 * epsilon:
            break
        epsilon = better
    return epsilon


def compose_gaussian(sigma: float, queries: int, delta: float) -> PrivacyCost:
    """Return what numbers with Gaussian noise cost together.

    Parameters
    ----------
    sigma : float
        The standard deviation of the noise, in units of the sensitivity (the Euclidean length by
        which one person changes the vector of numbers in an answer); positive and finite.
    queries : int
        How many answers, from 0 to 10**9.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.

    Returns
    -------
    PrivacyCost
        The smallest epsilon that holds.

    Notes
    -----
    Together the answers are equivalent to one with noise sigma / sqrt(queries) (Dong, Roth and Su,
    2022). With mu = sqrt(queries) / sigma, epsilon solves

        delta = Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu),

    Theorem 8 of Balle and Wang (2018).

    Examples
    --------
    >>> round(float(compose_gaussian(10.0, 100, 1e-5)), 4)
    4.3772
    """
    sigma = check_epsilon(sigma, "sigma")
    queries = check_integer("queries", queries, low=0, high=10**9)
    # The quotient may overflow; the cost at 1e300 is infinite as well.
    return gaussian_cost(min(math.sqrt(queries) / sigma, 1e300), delta)


def gaussian_cost(mu: float, delta: float) -> PrivacyCost:
    """Return the cost of mu-Gaussian differential privacy at a delta.

    Parameters
    ----------
    mu : float
        By how many standard deviations of the noise one person moves the answers, at least 0. To
        compose mechanisms, add the squares.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.

    Returns
    -------
    PrivacyCost
        The smallest epsilon that holds.

    Notes
    -----
    See `compose_gaussian`.

    Examples
    --------
    >>> round(float(gaussian_cost(1.0, 1e-5)), 4)
    4.3772
    """
    mu = check_real("mu", mu, low=0.0, allowed="a number of at least 0")
    delta = check_probability("delta", delta)

    def delta_at(epsilon: float) -> float:
        return math.exp(_log_gaussian_delta(epsilon, mu))

    # The first term is below delta here, by Chernoff's bound; for large mu the bound is tight.
    high = mu * (mu / 2 + math.sqrt(-2 * math.log(delta)))
    if mu > HARDLY_ANY_NOISE:
        return PrivacyCost(high, delta)
    if mu == 0 or delta_at(0.0) <= delta:
        return PrivacyCost(0.0, delta)
    epsilon = calibrate(delta_at, delta, SMALLEST, high, start=high, tolerance=1e-13)
    return PrivacyCost(epsilon, delta)


def _log_gaussian_delta(epsilon: float, mu: float) -> float:
    """Return log delta of Gaussian noise, accurately even where its two terms nearly cancel."""
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if mu > 1:
        log_near, log_far = special.log_ndtr(-near), epsilon + special.log_ndtr(-far)
        return float(log_near + math.log(max(-math.expm1(log_far - log_near), SMALLEST)))
    # delta = phi(near) (M(near) - M(far)) for Mills' ratio M, whose slope is x M(x) - 1.
    nodes, weights = np.polynomial.legendre.leggauss(20)
    x = near + mu * (nodes + 1) / 2
    slopes = 1 - x * math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2))
    drop = float(mu / 2 * (weights @ slopes))
    return -near * near / 2 - math.log(2 * math.pi) / 2 + math.log(max(drop, SMALLEST))


def compose_laplace(
    scale: float, queries: int, delta: float, *, sensitivity: float = 1.0
) -> PrivacyCost:
    """Return what numbers with Laplace noise cost together.

    Parameters
    ----------
    scale : float
        The scale of the noise, positive and finite.
    queries : int
        How many answers, from 0 to 2 * 10**6.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    sensitivity : float
        The most by which one person changes an answer, positive and finite.

    Returns
    -------
    PrivacyCost
        An upper bound, in the tests within 0.1 % of the smallest epsilon that holds.

    Raises
    ------
    ModuleNotFoundError
        If dp-accounting is not installed.

    Notes
    -----
    The loss of one answer, at most sensitivity / scale, is discretised to 200 values by
    dp-accounting so that its cost can only grow, and composed numerically (Koskela, Jälkö and
    Honkela, 2020). The result is never above `compose` of as many answers of that epsilon, nor
    above what `laplace_rdp` gives. Where an answer costs more than 20, or more than 20,000 are
    asked, the smaller of these two is taken.

    Examples
    --------
    >>> round(float(compose_laplace(20.0, 200, 1e-5)), 3)
    2.893
    """
    loss = check_epsilon(sensitivity, "sensitivity") / check_epsilon(scale, "scale")
    loss = check_epsilon(loss, "sensitivity / scale")
    queries = check_integer("queries", queries, low=0, high=2 * MOST_QUERIES)
    delta = check_probability("delta", delta)
    return _compose_laplace(loss, queries, delta)


@lru_cache(maxsize=1024)
def _compose_laplace(loss: float, queries: int, delta: float) -> PrivacyCost:
    if queries == 0:
        return PrivacyCost(0.0, delta)
    orders = np.array(DEFAULT_ORDERS)
    with np.errstate(over="ignore"):
        rdp = queries * laplace_rdp(loss, orders)
    by_orders = epsilon_from_rdp(rdp, orders, delta)
    simple = min(_equal_epsilons(loss, queries, delta), float(by_orders))
    # dp-accounting cannot divide losses near the smallest doubles into 200 values.
    if queries > 20_000 or not 1e-300 <= loss <= 20:
        return PrivacyCost(simple, delta)
    from dp_accounting.pld import privacy_loss_distribution

    single = privacy_loss_distribution.from_laplace_mechanism(
        1 / loss, value_discretization_interval=loss / 100
    )
    together = single.self_compose(queries).get_epsilon_for_delta(delta)
    return PrivacyCost(min(simple, float(together)), delta)


def _equal_epsilons(epsilon: float, queries: int, delta: float) -> float:
    """Return the epsilon of `compose` for equal epsilons."""
    if epsilon * queries > 1e300:
        return epsilon * queries
    losses, chances = _listed(np.array([epsilon]), np.array([queries]))
    return min(epsilon * queries, _epsilon_of(losses, chances, delta))


def compose_subsampled_gaussian(
    sigma: float, probability: float, steps: int, delta: float, *, neighbours: str = "replaced"
) -> PrivacyCost:
    """Return what sums over random batches with Gaussian noise cost, as in noisy gradient descent.

    Parameters
    ----------
    sigma : float
        The standard deviation of the noise, in units of the largest length of one person's term; at
        least 0.01 and finite.
    probability : float
        With which each person is in a batch, independently of all others (Poisson sampling) and of
        other batches; strictly between 0 and 1.
    steps : int
        How many batches, from 0 to 10**6.
    delta : float
        The probability with which the loss may be larger, at least 1e-10 and below 1: for a smaller
        one, rounding in doubles would dominate.
    neighbours : {"replaced", "added"}
        Whether one person's record is replaced by another, as everywhere in this book, or added or
        taken away, as much software has it. The first costs more.

    Returns
    -------
    PrivacyCost
        An upper bound, close to the smallest epsilon that holds.

    Raises
    ------
    ModuleNotFoundError
        If dp-accounting is not installed.

    Notes
    -----
    Computed from the privacy loss distribution of dp-accounting. It sums losses by Fourier
    transforms, whose rounding may change delta by some 1e-13, so a slightly smaller delta is used.
    For the same reason the bound is loose below an epsilon of 1e-3. It does not hold for batches
    that are cut from a shuffled list.

    Examples
    --------
    >>> for neighbours in ("replaced", "added"):
    ...     cost = compose_subsampled_gaussian(1.0, 0.01, 1000, 1e-5, neighbours=neighbours)
    ...     print(f"{float(cost):.2f}")
    2.84
    1.83
    """
    sigma = check_real("sigma", sigma, low=0.01, high=1e100, allowed="a number from 0.01 to 1e100")
    probability = check_probability("probability", probability)
    steps = check_integer("steps", steps, low=0, high=MOST_QUERIES)
    allowed = "a number of at least 1e-10 and below 1"
    delta = check_real("delta", delta, low=_LEAST_DELTA, high=1.0, high_open=True, allowed=allowed)
    check_choice("neighbours", neighbours, NEIGHBOURS)
    if steps == 0:
        return PrivacyCost(0.0, delta)
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution

    # Coarser cells where losses are large because of little noise or many steps: bounds memory.
    width = 1e-4 * max(1.0, math.sqrt(steps / 1e4)) / min(1.0, sigma) ** 2
    single = privacy_loss_distribution.from_gaussian_mechanism(
        sigma,
        sampling_prob=probability,
        neighboring_relation=NeighboringRelation[NEIGHBOURS[neighbours]],
        value_discretization_interval=width,
    )
    rounding = 1e-12 * max(1.0, steps / 2e4)
    spent = single.self_compose(steps).get_epsilon_for_delta(delta - min(rounding, delta / 2))
    return PrivacyCost(float(spent), delta)


def _check_epsilons(epsilons: ArrayLike) -> np.ndarray:
    array = as_array("epsilons", epsilons)
    if array.size and array.dtype.kind not in "iuf":
        raise TypeError(
            f"epsilons must be numbers, got {kind_of(array)}; of releases they are "
            "[release.epsilon for release in releases]"
        )
    if array.ndim != 1 or array.size > MOST_QUERIES:
        raise ValueError(
            f"epsilons must be a list of at most {MOST_QUERIES} numbers, got shape {array.shape}"
        )
    array = as_floats(array)
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    if not (np.all(array >= 0) and np.isfinite(total)):
        raise ValueError("epsilons must be at least 0, and their sum finite; one is not")
    return array
