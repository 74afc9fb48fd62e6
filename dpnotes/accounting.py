"""What asking again costs: the privacy of many answers about the same people.

Each function takes what every single answer costs, how many there are, and a delta, and returns the
epsilon of all answers together. Whatever the answers are, the cost of one kind of mechanism is
known better than that of any mechanism of the same epsilon:

    compose                     any mechanisms of given epsilons
    compose_laplace             numbers with Laplace noise
    compose_gaussian            numbers with Gaussian noise
    compose_bounded_range       the exponential mechanism and its like
    compose_subsampled_gaussian sums over random batches with Gaussian noise
    epsilon_from_rdp, epsilon_from_zcdp    whatever has a Rényi divergence

All hold where each question may depend on earlier answers, unless a function says otherwise.

A cost that no record decides is a `PrivacyCost` and may be published. A cost that has looked at the
records is a `SecretCost`, another type: nothing turns one into the other.

Laplace noise and random batches need Google's dp-accounting: ``pip install dpnotes[accounting]``.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dpnotes._checks import (
    as_array,
    check_choice,
    check_epsilon,
    check_integer,
    check_probability,
    check_real,
    kind_of,
)

CONVERSIONS = ("improved", "classic")
NEIGHBOURS = ("replaced", "added")
# 600 orders from 1.001 to 10^7, each excess over 1 about 4 % above the one before.
DEFAULT_ORDERS = tuple((1 + np.geomspace(1e-3, 1e7, 600)).tolist())

_MOST_QUERIES = 10**6
_LARGEST_ORDER = 1e100  # its square is a double
_FEW = 1 << 20  # losses that can be listed
_CELLS = 1 << 15  # of a grid of losses
_BEYOND = 1e-12  # of delta may lie beyond the grid
_WORK = 1 << 25  # cells times choices times queries, for adaptive questions
_SMALLEST = 5e-324
_ON_A_GRID = (1e-100, 1e6)  # sums of epsilons for which a grid of losses has its digits
_HARDLY_ANY_NOISE = 1e8  # a mu, or the square root of a rho, so large that bounds are exact


@dataclass(frozen=True, slots=True)
class PrivacyCost:
    """What a mechanism costs, whatever the records are; ``float(cost)`` is epsilon.

    Parameters
    ----------
    epsilon : float
        The privacy loss, in nats: at least 0, and infinite where nothing is promised.
    delta : float
        The probability, in [0, 1), with which the loss may be larger.

    Raises
    ------
    ValueError, TypeError
        If a number is out of range or no real number; a `SecretCost` is none.

    Examples
    --------
    >>> float(PrivacyCost(1.5, 1e-5))
    1.5
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Check both numbers and keep them as plain floats."""
        _check_cost(self)

    def __float__(self) -> float:
        """Return epsilon."""
        return self.epsilon

    def __format__(self, spec: str) -> str:
        """Write epsilon as the format says, and the whole cost where it says nothing."""
        return format(self.epsilon, spec) if spec else repr(self)


@dataclass(frozen=True, slots=True, repr=False)
class SecretCost:
    """A cost that was computed from the records: true, and as secret as they are.

    Publishing it is a release like any other, and it has not been paid for. So it has no
    ``float()``, and its repr says what it is. Read ``cost.epsilon`` where you mean to.

    Parameters
    ----------
    epsilon : float
        The privacy loss at these records, in nats.
    delta : float
        The probability, in [0, 1), with which the loss may be larger.
    order : float or None
        The Rényi order at which epsilon is smallest, out of those given; None where there is none.
    answered : float
        How many queries were answered; an expectation where noise is still to decide; NaN where
        that is not known.

    Raises
    ------
    ValueError, TypeError
        If epsilon or delta is out of range or no real number.

    Examples
    --------
    >>> SecretCost(1.5, 1e-5, 20.0, 100.0)
    SecretCost(epsilon=1.5, delta=1e-05, order=20.0, answered=100.0: looks at the records, do not \
publish)
    """

    epsilon: float
    delta: float
    order: float | None
    answered: float

    def __post_init__(self) -> None:
        """Check epsilon and delta and keep them as plain floats."""
        _check_cost(self)

    def __repr__(self) -> str:
        """Say that this is a secret, and what it is."""
        return (
            f"SecretCost(epsilon={self.epsilon}, delta={self.delta}, order={self.order}, "
            f"answered={self.answered}: looks at the records, do not publish)"
        )


def _check_cost(cost: PrivacyCost | SecretCost) -> None:
    epsilon = cost.epsilon
    if not (isinstance(epsilon, float) and epsilon == math.inf):
        epsilon = check_real("epsilon", epsilon, low=0.0, allowed="a number of at least 0")
    delta = check_real(
        "delta", cost.delta, low=0.0, high=1.0, high_open=True, allowed="a number in [0, 1)"
    )
    # A frozen dataclass can only be normalised underneath its own guard.
    object.__setattr__(cost, "epsilon", epsilon)
    object.__setattr__(cost, "delta", delta)


# Rényi divergences.


def epsilon_from_rdp(
    rdp: ArrayLike, orders: ArrayLike, delta: float, *, conversion: str = "improved"
) -> PrivacyCost:
    """Convert Rényi divergences, whatever the records, to the epsilon that they promise at a delta.

    Parameters
    ----------
    rdp : array_like of float, shape (orders,)
        Divergences, in nats, not negative; infinite ones promise nothing. They bound what the
        mechanism does on *all* neighbours: divergences computed from records make a secret cost.
    orders : array_like of float, shape (orders,)
        Their orders, above 1.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    conversion : {"improved", "classic"}
        "classic" adds log(1 / delta) / (order - 1), as early papers did; the other is never above.

    Returns
    -------
    PrivacyCost
        The smallest epsilon over the orders; 0 where a divergence is small against delta.

    Raises
    ------
    ValueError, TypeError
        If the lengths differ, or a parameter is out of range or of the wrong kind.

    Notes
    -----
    "classic" is Proposition 3 of Mironov (2017). "improved" is Proposition 12 of Canonne, Kamath
    and Steinke (2020), rdp + log(1 - 1 / order) - log(order delta) / (order - 1); and it is 0 where
    delta is at least sqrt(1 - exp(-rdp)), which bounds the total variation (Bretagnolle and Huber).

    Examples
    --------
    >>> round(float(epsilon_from_rdp([0.1, 0.8], [2, 16], 1e-5, conversion="classic")), 6)
    1.567528
    """
    epsilon, _ = best_epsilon(rdp, orders, delta, conversion=conversion)
    return PrivacyCost(epsilon, delta)


def best_epsilon(
    rdp: ArrayLike, orders: ArrayLike, delta: float, *, conversion: str = "improved"
) -> tuple[float, float]:
    """Convert Rényi divergences to the smallest epsilon, and say at which order it is.

    Parameters
    ----------
    rdp : array_like of float, shape (orders,)
        Divergences, in nats, not negative. Where they come from records, so does the result.
    orders : array_like of float, shape (orders,)
        Their orders, above 1.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    conversion : {"improved", "classic"}
        See `epsilon_from_rdp`.

    Returns
    -------
    tuple of two floats
        Epsilon and the order.

    Raises
    ------
    ValueError, TypeError
        If the lengths differ, or a parameter is out of range or of the wrong kind.

    Examples
    --------
    >>> best_epsilon([0.1, 0.8], [2, 16], 1e-5, conversion="classic")[1]
    16.0
    """
    orders = check_orders(orders)
    rdp = _check_divergences(rdp, orders)
    delta = check_probability("delta", delta)
    check_choice("conversion", conversion, CONVERSIONS)
    if conversion == "classic":
        epsilons = np.where(rdp == 0, 0.0, rdp - math.log(delta) / (orders - 1))
    else:
        epsilons = _improved(rdp, orders, delta)
        epsilons = np.where(delta * delta + np.expm1(-rdp) >= 0, 0.0, np.maximum(epsilons, 0.0))
    best = int(epsilons.argmin())
    return float(epsilons[best]), float(orders[best])


def epsilon_from_zcdp(rho: float, delta: float) -> PrivacyCost:
    """Convert zero-concentrated differential privacy to the epsilon that it promises at a delta.

    Parameters
    ----------
    rho : float
        The divergence at every order is at most rho times the order; at least 0. Those of several
        answers are added.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.

    Returns
    -------
    PrivacyCost
        The smallest epsilon over all orders above 1.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    Bun and Steinke (2016) define it; `epsilon_from_rdp` has the conversion. Any order gives a valid
    epsilon, so nothing rests on how well the best one was found.

    Examples
    --------
    >>> round(float(epsilon_from_zcdp(100 * 0.1**2 / 8, 1e-5)), 4)
    2.1657
    """
    rho = check_real("rho", rho, low=0.0, allowed="a number of at least 0")
    delta = check_probability("delta", delta)
    if -math.expm1(-rho) <= delta * delta:
        return PrivacyCost(0.0, delta)
    if rho > _HARDLY_ANY_NOISE**2:
        # The best of the classic conversion; next to 1 an order has no digits.
        return PrivacyCost(rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta)), delta)

    def epsilon(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return float(_improved(rho * order, order, delta))

    # The classic conversion is smallest at this excess over 1, and the improved one nearby.
    centre = 0.5 * (math.log(-math.log(delta)) - math.log(rho))
    found = optimize.minimize_scalar(
        epsilon, bounds=(centre - 8, centre + 8), method="bounded", options={"xatol": 1e-10}
    )
    return PrivacyCost(max(0.0, float(found.fun)), delta)


def _improved(rdp: np.ndarray | float, order: np.ndarray | float, delta: float) -> np.ndarray:
    """Return Proposition 12 of Canonne, Kamath and Steinke (2020)."""
    return rdp + np.log1p(-1 / order) - np.log(order * delta) / (order - 1)


# Any mechanisms of given epsilons.


def compose(epsilons: ArrayLike, delta: float) -> PrivacyCost:
    """Return what any mechanisms of given epsilons cost together.

    Parameters
    ----------
    epsilons : array_like of float, shape (queries,)
        What each answer costs by itself: finite, at least 0, with a delta of 0. No answer costs
        nothing.
    delta : float
        The probability with which the loss of all may be larger, in [0, 1); at 0 the costs add up.

    Returns
    -------
    PrivacyCost
        The smallest epsilon that holds for *all* mechanisms of these epsilons, where few epsilons
        differ. Else a certified upper bound; in the tests it is at most 0.5 % above the smallest.

    Raises
    ------
    ValueError
        If an epsilon is negative or not finite, there are more than 10**6, or more than 10**4 of
        which too many differ to be listed; or delta is out of range.
    TypeError
        If a parameter is of the wrong kind.

    Notes
    -----
    The worst mechanisms are randomized response (Kairouz, Oh and Viswanath, 2015; Murtagh and
    Vadhan, 2016), of loss epsilon_i with probability 1 / (1 + exp(-epsilon_i)), else -epsilon_i.
    With P the distribution of the sum L of these losses, epsilon solves

        delta = sum_L P(L) max(0, 1 - exp(epsilon - L)).

    Equal epsilons make a binomial, so L is listed where that gives at most 2^20 sums. In general
    the problem is #P-complete (Murtagh and Vadhan). Then each loss is moved to the two nearest
    points of a grid, so that the mean of exp(-loss) stays: the likelihood ratio only spreads, which
    never helps privacy (the "connect the dots" of Doroshenko et al., 2022). Sums beyond the grid
    count as infinite losses.

    Examples
    --------
    >>> round(float(compose([0.1] * 100, 1e-5)), 4), round(float(compose([0.1] * 100, 0.0)), 4)
    (4.3068, 10.0)
    """
    epsilons = _check_epsilons(epsilons)
    delta = check_real(
        "delta", delta, low=0.0, high=1.0, high_open=True, allowed="a number in [0, 1)"
    )
    most = float(epsilons.sum())
    if delta == 0 or most == 0:
        return PrivacyCost(most, delta)
    values, counts = np.unique(epsilons[epsilons > 0], return_counts=True)
    if math.prod(int(count) + 1 for count in counts) <= _FEW:
        losses, chances, infinite = *_listed(values, counts), 0.0
    elif counts.sum() <= 10**4:
        if not _ON_A_GRID[0] < most < _ON_A_GRID[1]:
            # Nobody is more than `most` likelier to see one thing than another.
            return PrivacyCost(0.0 if most <= delta else most, delta)
        losses, chances, infinite = _on_a_grid(np.repeat(values, counts), delta)
    else:
        raise ValueError(
            "epsilons must have few different values where there are more than 10**4: "
            f"round some up; got {values.size} values"
        )
    return PrivacyCost(min(most, _epsilon_of(losses, chances, delta - infinite)), delta)


def _listed(values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every sum of losses of randomized response, with its log-probability exponentiated."""
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
    """Return losses on a grid that spread wider than the true ones, and the chance of more."""
    # Hoeffding: a sum lies beyond this reach with a small part of the probability delta.
    drift = float(epsilons @ np.tanh(epsilons / 2))
    spread = math.sqrt(2 * float(epsilons @ epsilons) * (-math.log(_BEYOND) - math.log(delta)))
    reach = min(float(epsilons.sum()), drift + spread)
    step = 2 * reach / _CELLS
    # Each answer's spread may lead one cell further.
    half = _CELLS // 2 + epsilons.size
    chances, infinite = np.zeros(2 * half + 1), 0.0
    chances[half] = 1.0
    for epsilon in epsilons.tolist():
        moved = np.zeros_like(chances)
        for loss, chance in (
            (epsilon, special.expit(epsilon)),
            (-epsilon, special.expit(-epsilon)),
        ):
            below = math.floor(loss / step)
            # How much goes to the point below, so that the mean of exp(-loss) stays.
            share = math.expm1((below + 1) * step - loss) / math.expm1(step)
            share = min(1.0, max(0.0, share))
            for places, weight in ((below, chance * share), (below + 1, chance * (1 - share))):
                infinite += _shift_into(moved, chances, places, weight)
        chances = moved
    return step * np.arange(-half, half + 1), chances, infinite


def _shift_into(target: np.ndarray, chances: np.ndarray, places: int, weight: float) -> float:
    """Add shifted chances; gather at the lower end what leaves there, return what leaves above."""
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
    # At a loss itself only larger ones count: nothing is left to rounding at the largest.
    reached = above[:-1] - np.exp(losses[1:] + log_ratios[:-1])
    enough = np.flatnonzero(reached > delta)
    last = int(enough[0]) if enough.size else losses.size - 1
    if last < 0 or above[last] <= delta:
        return 0.0
    epsilon = max(0.0, math.log(above[last] - delta) - float(log_ratios[last]))
    return _polished(min(epsilon, float(losses[0])), losses, chances, delta)


def _polished(epsilon: float, losses: np.ndarray, chances: np.ndarray, delta: float) -> float:
    """Improve an epsilon by Newton's method, on a sum in which nothing cancels."""
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


# Noise on numbers.


def compose_gaussian(sigma: float, queries: int, delta: float) -> PrivacyCost:
    """Return what numbers with Gaussian noise cost together.

    Parameters
    ----------
    sigma : float
        The standard deviation of the noise, in units of the sensitivity (the Euclidean length by
        which one person changes all that is asked at a time); positive and finite.
    queries : int
        How many answers, from 0 to 10**9.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.

    Returns
    -------
    PrivacyCost
        The smallest epsilon that holds.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    Together the answers are one with noise sigma / sqrt(queries) (Dong, Roth and Su, 2022). With
    mu = sqrt(queries) / sigma, epsilon solves

        delta = Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu),

    Theorem 8 of Balle and Wang (2018).

    Examples
    --------
    >>> round(float(compose_gaussian(10.0, 100, 1e-5)), 4)
    4.3772
    """
    sigma = check_epsilon(sigma, "sigma")
    queries = check_integer("queries", queries, low=0, high=10**9)
    return gaussian_cost(math.sqrt(queries) / sigma, delta)


def gaussian_cost(mu: float, delta: float) -> PrivacyCost:
    """Return the cost of mu-Gaussian differential privacy at a delta.

    Parameters
    ----------
    mu : float
        By how many standard deviations of the noise one person moves the answers, at least 0. The
        squares of several mechanisms are added.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.

    Returns
    -------
    PrivacyCost
        The smallest epsilon that holds.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

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

    def excess(epsilon: float) -> float:
        return _log_gaussian_delta(epsilon, mu) - math.log(delta)

    # Phi alone is below delta here, by Chernoff's bound; mu^2 / 2 is nearly all of it in the end.
    high = mu * (mu / 2 + math.sqrt(-2 * math.log(delta)))
    if mu > _HARDLY_ANY_NOISE:
        return PrivacyCost(high, delta)
    if mu == 0 or excess(0.0) <= 0:
        return PrivacyCost(0.0, delta)
    epsilon = optimize.brentq(excess, 0.0, high, xtol=_SMALLEST, rtol=1e-13)
    return PrivacyCost(float(epsilon), delta)


def _log_gaussian_delta(epsilon: float, mu: float) -> float:
    """Return log delta of Gaussian noise, where its two terms may nearly cancel too."""
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if mu > 1:
        log_near, log_far = special.log_ndtr(-near), epsilon + special.log_ndtr(-far)
        return float(log_near + math.log(max(-math.expm1(log_far - log_near), _SMALLEST)))
    # delta = phi(near) (M(near) - M(far)) for Mills' ratio M, whose slope is x M(x) - 1.
    nodes, weights = np.polynomial.legendre.leggauss(20)
    x = near + mu * (nodes + 1) / 2
    slopes = 1 - x * math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2))
    drop = float(mu / 2 * (weights @ slopes))
    return -near * near / 2 - math.log(2 * math.pi) / 2 + math.log(max(drop, _SMALLEST))


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
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.
    ModuleNotFoundError
        If dp-accounting is not installed.

    Notes
    -----
    The loss of one answer, at most sensitivity / scale, is discretised to 200 values by
    dp-accounting so that its cost only grows, and composed numerically (Koskela, Jälkö and Honkela,
    2020). The result is never above `compose` of as many answers of that epsilon, which stands
    alone where an answer costs more than 20, or more than 20,000 are asked.

    Examples
    --------
    >>> round(float(compose_laplace(20.0, 200, 1e-5)), 3)
    2.893
    """
    loss = check_epsilon(sensitivity, "sensitivity") / check_epsilon(scale, "scale")
    loss = check_epsilon(loss, "sensitivity / scale")
    queries = check_integer("queries", queries, low=0, high=2 * _MOST_QUERIES)
    delta = check_probability("delta", delta)
    return _compose_laplace(loss, queries, delta)


@lru_cache(maxsize=1024)
def _compose_laplace(loss: float, queries: int, delta: float) -> PrivacyCost:
    any_mechanism = _equal_epsilons(loss, queries, delta)
    if queries == 0 or queries > 20_000 or loss > 20:
        return PrivacyCost(any_mechanism, delta)
    from dp_accounting.pld import privacy_loss_distribution

    single = privacy_loss_distribution.from_laplace_mechanism(
        1 / loss, value_discretization_interval=loss / 100
    )
    together = single.self_compose(queries).get_epsilon_for_delta(delta)
    return PrivacyCost(min(any_mechanism, float(together)), delta)


def _equal_epsilons(epsilon: float, queries: int, delta: float) -> float:
    """Return the epsilon of `compose` for equal epsilons."""
    if queries == 0 or epsilon * queries > 1e300:
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
        The standard deviation of the noise, in units of the largest length of one person's term.
    probability : float
        With which each person is in a batch, independently of all others (Poisson sampling) and of
        other batches; strictly between 0 and 1.
    steps : int
        How many batches, from 0 to 10**6.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    neighbours : {"replaced", "added"}
        Whether one person's record is replaced by another, as everywhere in this book, or added or
        taken away, as much software has it. The first costs more.

    Returns
    -------
    PrivacyCost
        An upper bound, close to the smallest epsilon that holds.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.
    ModuleNotFoundError
        If dp-accounting is not installed.

    Notes
    -----
    The privacy loss distribution of dp-accounting. It does not hold for batches that are cut from a
    shuffled list.

    Examples
    --------
    >>> for neighbours in ("replaced", "added"):
    ...     cost = compose_subsampled_gaussian(1.0, 0.01, 1000, 1e-5, neighbours=neighbours)
    ...     print(f"{float(cost):.2f}")
    2.84
    1.83
    """
    sigma = check_epsilon(sigma, "sigma")
    probability = check_probability("probability", probability)
    steps = check_integer("steps", steps, low=0, high=_MOST_QUERIES)
    delta = check_probability("delta", delta)
    check_choice("neighbours", neighbours, NEIGHBOURS)
    if steps == 0:
        return PrivacyCost(0.0, delta)
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution

    relation = {
        "replaced": NeighboringRelation.REPLACE_ONE,
        "added": NeighboringRelation.ADD_OR_REMOVE_ONE,
    }[neighbours]
    single = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=probability, neighboring_relation=relation
    )
    return PrivacyCost(float(single.self_compose(steps).get_epsilon_for_delta(delta)), delta)


# The exponential mechanism and its like.


def compose_bounded_range(
    epsilon: float, queries: int, delta: float, *, adaptive: bool = True
) -> PrivacyCost:
    """Return what answers of the exponential mechanism, or of any bounded range, cost together.

    Parameters
    ----------
    epsilon : float
        What one answer costs, positive and finite. The range is bounded: for any neighbours, the
        losses of all outputs lie in *some* interval of this length.
    queries : int
        How many answers, from 0 to 10**6.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    adaptive : bool
        Whether a question may depend on earlier answers. Where all are fixed beforehand it is a
        little less.

    Returns
    -------
    PrivacyCost
        With ``adaptive=False`` the smallest epsilon that holds for all such mechanisms. Otherwise a
        certified upper bound on it.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range or of the wrong kind.

    Notes
    -----
    The worst of them have two outputs, of loss t and t - epsilon for some t. For questions fixed
    beforehand, Dong, Durfee and Rogers (2020) show that all t are the same, and one of
    (total + (l + 1) epsilon) / (queries + 1), for l = 0, ..., queries and the epsilon total.

    An adversary who may adapt chooses t anew after every answer. The largest delta that can be
    reached from any odds is a convex function of the odds, found backwards from the last answer:
    between the points of a grid a straight line is an upper bound, and the best t in each cell has
    a closed form. Each answer also has a zCDP of epsilon / (exp(epsilon) - 1) +
    log((exp(epsilon) - 1) / epsilon) - 1 (Harrison and Manurangsi, 2026), just below the
    epsilon^2 / 8 of Cesar and Rogers (2021). The smaller of both is taken, and zCDP alone where
    many questions would need too fine a grid.

    Examples
    --------
    >>> for adaptive in (True, False):
    ...     print(f"{float(compose_bounded_range(0.1, 100, 1e-5, adaptive=adaptive)):.4f}")
    1.9939
    1.9886
    """
    epsilon = check_epsilon(epsilon)
    queries = check_integer("queries", queries, low=0, high=_MOST_QUERIES)
    delta = check_probability("delta", delta)
    if not isinstance(adaptive, bool | np.bool_):
        raise TypeError(f"adaptive must be True or False, got {type(adaptive).__name__}")
    if queries == 0:
        return PrivacyCost(0.0, delta)
    composed = _adaptive_range if adaptive else _fixed_range
    return PrivacyCost(min(epsilon * queries, composed(epsilon, queries, delta)), delta)


@lru_cache(maxsize=1024)
def _fixed_range(epsilon: float, queries: int, delta: float) -> float:
    """Return the smallest epsilon for questions that are fixed beforehand."""
    steps = np.arange(1, queries + 2)

    def excess(total: float) -> float:
        t = np.minimum((total + steps * epsilon) / (queries + 1), epsilon)
        return float(_two_output_delta(total, t, epsilon, queries).max()) - delta

    if excess(0.0) <= 0:
        return 0.0
    high = min(epsilon * queries, float(epsilon_from_zcdp(queries * _range_zcdp(epsilon), delta)))
    if high <= 0 or excess(high) >= 0:
        return high
    return float(optimize.brentq(excess, 0.0, high, xtol=_SMALLEST, rtol=1e-12))


def _range_zcdp(epsilon: float) -> float:
    """Return the smallest rho for which every mechanism of this range is rho-zCDP."""
    if epsilon < 0.01:
        return epsilon * epsilon / 8
    share = -math.expm1(-epsilon)
    return epsilon * math.exp(-epsilon) / share + epsilon + math.log(share / epsilon) - 1


def _two_output_delta(total: float, t: np.ndarray, epsilon: float, queries: int) -> np.ndarray:
    """Return delta at an epsilon `total` for mechanisms of two outputs, losses t, t - epsilon."""
    second = np.expm1(-t) / np.expm1(-epsilon) * np.exp(t - epsilon)
    second_there = np.expm1(-t) / np.expm1(-epsilon)
    # The largest number of second outputs with which the loss is still above the total.
    most = np.ceil((queries * t - total) / epsilon) - 1
    here = special.bdtr(np.maximum(most, 0), queries, np.minimum(second, 1.0))
    there = special.bdtr(np.maximum(most, 0), queries, np.minimum(second_there, 1.0))
    with np.errstate(divide="ignore"):
        return np.where(most < 0, 0.0, here - np.exp(total + np.log(there)))


@lru_cache(maxsize=1024)
def _adaptive_range(epsilon: float, queries: int, delta: float) -> float:
    """Return an epsilon that holds for adaptive questions, from zCDP or by backward induction."""
    simple = float(epsilon_from_zcdp(queries * _range_zcdp(epsilon), delta))
    if simple == 0:
        return 0.0
    # From -simple to 2 simple, in cells of epsilon / fineness: so many for all questions.
    cells = queries * 3 * simple / epsilon
    fineness = min(32, int(math.sqrt(_WORK / cells)))
    if fineness < 4 or epsilon > 10:
        return simple
    return min(simple, _backward_induction(epsilon, queries, delta, fineness, simple))


def _backward_induction(
    epsilon: float, queries: int, delta: float, fineness: int, reach: float
) -> float:
    """Bound what an adversary can reach who chooses every question after the last answer.

    ``value[j]`` bounds the largest delta from where the losses still to come must exceed
    ``left[j]``. It is convex in exp(left), so a straight line between points bounds it above.
    """
    step = epsilon / fineness
    left = step * np.arange(-math.ceil(reach / step), math.ceil(2 * reach / step) + 1)
    value = -np.expm1(np.minimum(left, 0.0))
    width, odds = math.expm1(step), math.expm1(epsilon)
    # A row a cell: losses t from cell * step to (cell + 1) * step, and t - epsilon.
    factor = np.exp(step * np.arange(1, fineness + 1))[:, np.newaxis]
    for _ in range(queries):
        padded = np.concatenate([np.ones(fineness + 1), value, np.full(fineness + 1, value[-1])])
        rows = np.lib.stride_tricks.sliding_window_view(padded, value.size)
        drops = np.lib.stride_tricks.sliding_window_view(np.diff(padded) / width, value.size)
        second, rest = rows[2 * fineness : fineness : -1], drops[2 * fineness : fineness : -1]
        gap = rows[fineness:0:-1] - second
        slope = drops[fineness:0:-1] - rest
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.sqrt(factor * (slope - gap) / (slope * (odds + 1) + odds * rest)) - 1
        inside = np.nan_to_num(np.clip(inside, 0.0, width))
        # The upper end of a cell is the lower end of the one before; of the first it is t = 0.
        for x in (inside, 0.0):
            chance = (odds + 1 - factor / (1 + x)) / odds
            reached = second + rest * x + chance * (gap + slope * x)
            np.maximum(value, reached.max(axis=0), out=value)
        np.minimum(value, 1.0, out=value)
    after = int(np.flatnonzero(value <= delta)[0]) if value[-1] <= delta else -1
    if after < 1:
        return math.inf if after < 0 else 0.0
    share = (value[after - 1] - delta) / (value[after - 1] - value[after])
    return max(0.0, float(left[after - 1] + math.log1p(share * width)))


# What is refused.


def check_orders(orders: ArrayLike, *, above: float = 1.0) -> np.ndarray:
    """Return orders as a one-dimensional array of floats, all above a bound.

    Parameters
    ----------
    orders : array_like of float, shape (orders,), or float
        One order or several.
    above : float
        What each must be above.

    Returns
    -------
    ndarray of float, shape (orders,)
        The orders.

    Raises
    ------
    ValueError, TypeError
        If there is none, one is out of range, or they are no numbers.

    Examples
    --------
    >>> check_orders(2)
    array([2.])
    """
    array = as_array("orders", orders)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"orders must be numbers, got {kind_of(array)}")
    if array.ndim > 1 or array.size == 0:
        raise ValueError(f"orders must be one number or a list of them, got shape {array.shape}")
    array = np.atleast_1d(array.astype(float))
    if not np.all((array > above) & (array <= _LARGEST_ORDER)):
        raise ValueError(f"orders must be above {above} and at most {_LARGEST_ORDER}, got {orders}")
    return array


def _check_divergences(rdp: ArrayLike, orders: np.ndarray) -> np.ndarray:
    array = as_array("rdp", rdp)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"rdp must be numbers, got {kind_of(array)}")
    array = np.atleast_1d(array.astype(float))
    if array.shape != orders.shape or not np.all(array >= 0):
        raise ValueError(
            f"rdp must be numbers of at least 0, one for each of the {orders.size} orders, "
            f"got shape {array.shape}"
        )
    return array


def _check_epsilons(epsilons: ArrayLike) -> np.ndarray:
    array = as_array("epsilons", epsilons)
    if array.size and array.dtype.kind not in "iuf":
        raise TypeError(f"epsilons must be numbers, got {kind_of(array)}")
    if array.ndim != 1 or array.size > _MOST_QUERIES:
        raise ValueError(
            f"epsilons must be a list of at most {_MOST_QUERIES} numbers, got shape {array.shape}"
        )
    array = array.astype(float)
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    if not (np.all(array >= 0) and np.isfinite(total)):
        raise ValueError("epsilons must be at least 0, and their sum finite; one is not")
    return array
