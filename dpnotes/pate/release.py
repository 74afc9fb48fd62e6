"""Release the secret cost of confident GNMax, with noise.

One teacher votes in all queries, so it changes the cost of all. By how much depends on the votes,
so the noise is scaled to the smooth sensitivity (Nissim, Raskhodnikova and Smith, 2007), as in
Papernot et al. (2018). The release has a cost too, which the released number includes.
"""

import math
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpnotes._checks import (
    as_numbers,
    check_epsilon,
    check_integer,
    check_probability,
    check_real,
    check_rng,
)
from dpnotes.accounting import best_epsilon
from dpnotes.accounting.renyi import _improved
from dpnotes.pate.costs import blocks, gaussian_rates, log_error, log_mixture
from dpnotes.pate.mechanisms import ConfidentGNMax, check_answered, check_threshold
from dpnotes.pate.votes import check_scale, check_votes
from dpnotes.release import Release

_LARGEST_ORDER = 1e100  # its square is a double
_CELLS = 1 << 16  # votes, at all distances, in memory at a time


def gnmax_local_sensitivity(
    votes: ArrayLike, sigma: float, order: float, *, distances: int | None = None
) -> np.ndarray:
    """Bound how much one more teacher changes `gnmax_rdp`, after d teachers have changed already.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    sigma : float
        The standard deviation of the noise, from 1e-9 to 1e9.
    order : float
        The Rényi order, above 1.
    distances : int, optional
        How many distances d = 0, 1, ... are wanted; by default as many as there are teachers.

    Returns
    -------
    ndarray of shape (distances,)
        Bounds in nats, summed over the queries: one teacher votes in all of them.

    Notes
    -----
    Algorithms 3 to 5 of Papernot et al. (2018). One vote takes an error probability q at most to
    (m - 1) / 2 erfc(erfc^-1(2 q / (m - 1)) -+ 1 / sigma), for m classes. They hold where
    `gnmax_sensitivity_conditions` does. For sigma below 2 the released research code ends the
    data-dependent part earlier than Theorem 6 does, and has larger sensitivities.

    Examples
    --------
    >>> gnmax_local_sensitivity([10, 0, 0], 0.5, 1.5, distances=4).round(6)
    array([0.      , 0.      , 0.005907, 3.395894])
    """
    table, _ = check_votes(votes)
    sigma = check_scale("sigma", sigma)
    order = _check_order(order)
    total = np.zeros(_check_distances(distances, table))
    curve = _curve(sigma, order, table.shape[1])
    for block in blocks(table):
        total += curve.local_sensitivities(block, total.size)
    return total


class _Curve:
    """The divergence of GNMax at one order, as a function of log q, and what a vote does to it."""

    def __init__(self, sigma: float, order: float, classes: int) -> None:
        self.sigma, self.order, self.classes = sigma, order, classes
        self.cap = order / sigma / sigma
        self.start = self._where_data_stops_helping()
        self.plateau_start = float(self.moved(np.array([self.start]), -1)[0])

    def rdp(self, log_q: np.ndarray) -> np.ndarray:
        """Return the divergence for every log q."""
        moment = self.order - 1
        agreed, other, reach = gaussian_rates(log_q, self.sigma)
        log_moment = log_mixture(log_q, agreed * moment, other * moment)
        return np.where(moment <= reach, np.minimum(log_moment / moment, self.cap), self.cap)

    def moved(self, log_q: np.ndarray, way: int) -> np.ndarray:
        """Return log q after one vote has moved, at most: up if `way` is 1, down if it is -1."""
        others = math.log(self.classes - 1)
        z = special.ndtri_exp(np.minimum(log_q - others, -1e-300)) + way * math.sqrt(2) / self.sigma
        return np.minimum(others + special.log_ndtr(z), -1e-12)

    def sensitivity(self, log_q: np.ndarray) -> np.ndarray:
        """Return how much one vote changes the divergence, at most."""
        flat = (log_q >= self.plateau_start) & (log_q <= self.start)
        log_q = np.where(flat, self.plateau_start, log_q)
        here = self.rdp(log_q)
        # Anywhere on the plateau one vote may lead to the data-independent divergence.
        above = np.where(flat, self.cap, self.rdp(self.moved(log_q, 1)))
        return np.maximum(above - here, here - self.rdp(self.moved(log_q, -1)))

    def local_sensitivities(self, votes: np.ndarray, distances: int) -> np.ndarray:
        """Return the bounds at every distance, summed over the rows of votes."""
        votes, counts = np.unique(-np.sort(-votes, axis=1), axis=0, return_counts=True)
        log_q = log_error(votes, self.sigma, "gaussian", "bound")
        plateau = float(self.sensitivity(np.array([self.plateau_start]))[0])
        queries = counts.sum()
        total = np.full(distances, queries * plateau)
        total[:1] = counts @ self.sensitivity(log_q)
        # Towards the plateau: to more agreement from a tie, to less from agreement.
        tied = log_q > self.start
        going, done = self._short_of_the_plateau(log_q, tied, votes[:, 1]), 1
        while going.any() and done < distances:
            votes, counts, tied = votes[going], counts[going], tied[going]
            size = max(1, _CELLS // votes.size)
            steps = np.arange(done, min(done + size, distances))
            moved = _moved_towards_plateau(votes, steps, tied)
            log_q = log_error(moved.reshape(-1, votes.shape[1]), self.sigma, "gaussian", "bound")
            log_q = log_q.reshape(moved.shape[:2])
            further = self._short_of_the_plateau(log_q, tied[:, None], moved[:, :, 1])
            # A step is on the way where every earlier one fell short of the plateau.
            on_the_way = np.ones(log_q.shape, dtype=bool)
            np.logical_and.accumulate(further[:, :-1], axis=1, out=on_the_way[:, 1:])
            arrived = queries - counts @ on_the_way
            total[steps] = arrived * plateau + counts @ (on_the_way * self.sensitivity(log_q))
            going, done = on_the_way[:, -1] & further[:, -1], done + size
        return total

    @cached_property
    def conditions(self) -> tuple[bool, bool]:
        """Whether conditions C5 and C6 hold; see `gnmax_sensitivity_conditions`."""
        if self.start == -math.inf:
            return True, True
        far = np.geomspace(1e3, 1, 20_000)
        q, moved_q = self.start * far, self.plateau_start * far
        added = self.rdp(self.moved(moved_q, 1)) - self.rdp(moved_q)
        slack = -1e-12 * self.cap
        return bool(np.all(np.diff(self.rdp(q)) >= slack)), bool(np.all(np.diff(added) >= slack))

    def _short_of_the_plateau(
        self, log_q: np.ndarray, tied: np.ndarray, second: np.ndarray
    ) -> np.ndarray:
        """Say which votes have still to be moved, by their log q and their second largest count."""
        return np.where(tied, (log_q > self.start) & (second > 0), log_q < self.plateau_start)

    def _where_data_stops_helping(self) -> float:
        """Return the largest log q whose divergence is below the data-independent one."""
        # The grid reaches as far as log q can: the most votes under the least noise.
        grid = -np.geomspace(1e-9, 1e40, 12_000)
        helps = np.flatnonzero(self.rdp(grid) < self.cap)
        if helps.size == 0:
            return -math.inf
        above, below = (grid[helps[0] - 1] if helps[0] else -1e-12), grid[helps[0]]
        for _ in range(100):
            middle = (above + below) / 2
            helping = self.rdp(np.array([middle]))[0] < self.cap
            above, below = (above, middle) if helping else (middle, below)
        return float(below)


_curve = lru_cache(maxsize=64)(_Curve)


def _moved_towards_plateau(votes: np.ndarray, steps: np.ndarray, tied: np.ndarray) -> np.ndarray:
    """Return each row of descending counts after the given numbers of steps, one vote a step.

    From a tie the largest count wins a vote of the second largest, whichever that is by then.
    From agreement it loses one, until the two are as close as they can be.
    """
    moved = np.repeat(votes[:, None], steps.size, axis=1)
    apart = (votes[~tied, 0] - votes[~tied, 1]) // 2
    lost = np.minimum(steps, apart[:, None])
    moved[~tied, :, 0] -= lost
    moved[~tied, :, 1] += lost
    others = votes[tied, 1:]
    sums = others.cumsum(axis=1)
    won = np.minimum(steps, sums[:, -1:])
    # The first others are level once they have lost what they have more than the next one.
    until_level = sums[:, :-1] - np.arange(1, others.shape[1]) * others[:, 1:]
    level = 1 + np.count_nonzero(until_level[:, None] <= won[:, :, None], axis=2)
    height, higher = np.divmod(np.take_along_axis(sums, level - 1, axis=1) - won, level)
    place = np.arange(others.shape[1])
    levelled = height[:, :, None] + (place < higher[:, :, None])
    moved[tied, :, 1:] = np.where(place < level[:, :, None], levelled, others[:, None])
    moved[tied, :, 0] += won
    return moved


def gnmax_sensitivity_conditions(sigma: float, order: float, classes: int) -> tuple[bool, bool]:
    """Say whether the local sensitivities of GNMax are bounded as `gnmax_local_sensitivity` says.

    Parameters
    ----------
    sigma : float
        The standard deviation of the noise, from 1e-9 to 1e9.
    order : float
        The Rényi order, above 1.
    classes : int
        The number of classes, at least 2.

    Returns
    -------
    tuple of two bools
        Conditions C5 and C6 of Papernot et al. (2018), checked on 20,000 points: the divergence
        grows with q, and so does what a vote adds to it, as far as the data helps.

    Examples
    --------
    >>> gnmax_sensitivity_conditions(20, 25, 10), gnmax_sensitivity_conditions(30, 25, 10)
    ((True, False), (True, True))
    """
    sigma = check_scale("sigma", sigma)
    order = _check_order(order)
    classes = check_integer("classes", classes, low=2, high=2**31)
    return _curve(sigma, order, classes).conditions


def threshold_local_sensitivity(
    votes: ArrayLike,
    threshold: float,
    sigma: float,
    order: float,
    *,
    distances: int | None = None,
) -> np.ndarray:
    """Bound how much one more teacher changes the cost of deciding, after d teachers have changed.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes; each row sums to the number of teachers.
    threshold : float
        How many votes, after noise, are agreement enough, from -1e9 to 1e9.
    sigma : float
        The standard deviation of the noise on the largest count, from 1e-9 to 1e9.
    order : float
        The Rényi order, above 1.
    distances : int, optional
        How many distances d = 0, 1, ... are wanted; by default as many as there are teachers.

    Returns
    -------
    ndarray of shape (distances,)
        Bounds in nats, summed over the queries. They never fall with the distance.

    Notes
    -----
    The largest count moves by at most one a step. The bound at distance d is the largest at *up to*
    d steps. The released research code takes *exactly* d steps, which is too little once queries
    with peaks at different distances are added up.

    Examples
    --------
    >>> threshold_local_sensitivity([20, 10, 0], 2, 2, 10, distances=3).round(6)
    array([0.160212, 0.207021, 0.207021])
    """
    table, _ = check_votes(votes)
    threshold = check_threshold("threshold", threshold)
    sigma = check_scale("sigma", sigma)
    order = _check_order(order)
    total = np.zeros(_check_distances(distances, table))
    teachers = table.sum(axis=1)
    for most in np.unique(teachers):
        tops, counts = np.unique(table[teachers == most].max(axis=1), return_counts=True)
        steps = _threshold_steps(int(most), threshold, sigma, order)
        for top, count in zip(tops, counts, strict=True):
            total += count * _largest_within(steps, int(top), total.size)
    return total


def _threshold_steps(teachers: int, threshold: float, sigma: float, order: float) -> np.ndarray:
    """Return how much one step changes the cost, for every largest count from 0 to `teachers`."""
    margin = (np.arange(teachers + 1) - threshold) / sigma
    rdp = _curve(math.sqrt(2) * sigma, order, 2).rdp(special.log_ndtr(-np.abs(margin)))
    change = np.abs(np.diff(rdp))
    return np.maximum(np.append(change, 0), np.insert(change, 0, 0))


def _largest_within(steps: np.ndarray, top: int, distances: int) -> np.ndarray:
    """Return the largest entry within every distance of a place."""
    up, down = np.zeros(distances), np.zeros(distances)
    above, below = steps[top:][:distances], steps[top::-1][:distances]
    up[: above.size], down[: below.size] = above, below
    return np.maximum.accumulate(np.maximum(up, down))


def smooth_sensitivity(local_sensitivities: ArrayLike, beta: float) -> float:
    """Return the largest local sensitivity, discounted by exp(-beta) for every teacher.

    Parameters
    ----------
    local_sensitivities : array_like of float, shape (distances,)
        Bounds at distance 0, 1, ..., at least 0; those of several mechanisms are added before.
    beta : float
        How fast the sensitivity may change from neighbour to neighbour; positive and finite.

    Returns
    -------
    float
        max_d exp(-beta d) LS_d, in nats.

    Examples
    --------
    >>> smooth_sensitivity([0.0, 1.0, 2.0], beta=math.log(4))
    0.25
    """
    array = as_numbers("local_sensitivities", local_sensitivities)
    if array.ndim != 1 or array.size == 0 or not np.all(np.isfinite(array) & (array >= 0)):
        raise ValueError(
            "local_sensitivities must be a list of finite numbers of at least 0, "
            f"got shape {array.shape}"
        )
    beta = check_epsilon(beta, "beta")
    return float((array * np.exp(-beta * np.arange(array.size))).max())


def gnss_rdp(order: float, beta: float, scale: float) -> float:
    """Return the Rényi divergence of Gaussian noise that is scaled to the smooth sensitivity.

    Parameters
    ----------
    order : float
        The Rényi order, above 1.
    beta : float
        How fast the smooth sensitivity may change from neighbour to neighbour; positive.
    scale : float
        The deviation of the noise, in smooth sensitivities; positive.

    Returns
    -------
    float
        The divergence, in nats; infinite from order 1 / (1 - exp(-2 beta)) on.

    Notes
    -----
    The worst case has a sensitivity of 1 here, of exp(-beta) at the neighbour, and values that far
    apart. With v = 1 - order (1 - exp(-2 beta)) its divergence is

        order exp(-2 beta) / (2 scale^2 v) - (log(v) / 2 + order beta) / (order - 1).

    The code of Papernot et al. (2018) returns 0.518 in the example, which is not a valid bound.

    Examples
    --------
    >>> round(gnss_rdp(14, 0.0329, 6.23), 3)
    1.607
    """
    order = _check_order(order)
    beta = check_epsilon(beta, "beta")
    scale = check_epsilon(scale, "scale")
    left = 1 + order * math.expm1(-2 * beta)
    if left <= 0:
        return math.inf
    shift = order * math.exp(-2 * beta) / 2 / scale / scale / left
    # The term of the change in deviation is not negative, except by rounding.
    return shift + max(0.0, -(math.log(left) / 2 + order * beta) / (order - 1))


def release_cost(
    mechanism: ConfidentGNMax,
    votes: ArrayLike,
    delta: float,
    *,
    answered: ArrayLike,
    order: float | None = None,
    beta: float | None = None,
    scale: float | None = None,
    rng: np.random.Generator | int | None = None,
) -> Release:
    """Release what confident GNMax has cost, with noise that hides any one teacher.

    Parameters
    ----------
    mechanism : ConfidentGNMax
        What answered.
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes; each row sums to the number of teachers.
    delta : float
        The probability with which the loss may be larger, strictly between 0 and 1.
    answered : array_like of bool, shape (queries,)
        Which queries were answered, as everybody saw.
    order : float, optional
        The Rényi order at which the cost is counted, above 1. Like `beta` and `scale` it must be
        chosen without a look at the votes: from public numbers, or on votes that are public.
    beta : float, optional
        How fast the smooth sensitivity may change; below -log(1 - 1 / order) / 2.
    scale : float, optional
        The deviation of the noise, in smooth sensitivities, from 1e-9 to 1e9.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    Release
        Its value estimates, without bias, the epsilon at `delta` of all answers and this release
        together, and is the number to report. Its epsilon is what this release costs alone. The
        value may come out too low: the deviation of the noise depends on the votes, and is a secret
        too.

    Raises
    ------
    ValueError, TypeError
        If the votes are not whole numbers, a parameter is out of range or of the wrong kind, or
        the sensitivity is not known to be bounded for the mechanism's sigma and `order`.

    Notes
    -----
    The defaults follow from public numbers: the mechanism, delta, and how many queries there were
    and were answered. The order is the best for the fixed cost, 1 + sqrt(2 log(1 / delta)) / mu; a
    larger one makes better use of agreement but adds more noise. beta is 0.3 / order; a larger one
    raises the cost of the release, a smaller one the sensitivity. The scale is such that a shift by
    one smooth sensitivity costs 5 % of the fixed cost, which adds little to the value. On the
    released votes of MNIST, SVHN and Adult all three are close to the best that we found.

    The Gaussian noise is drawn in floats, and the sum is rounded to six decimals, which removes its
    last bits.

    Examples
    --------
    >>> ask = ConfidentGNMax(threshold=150, sigma_threshold=60, sigma=40)
    >>> released = release_cost(ask, [[240, 10]] * 400, 1e-5, answered=[True] * 400, rng=0)
    >>> round(float(released), 2), round(float(ask.cost(400, 1e-5)), 2)
    (2.0, 3.3)
    """
    if not isinstance(mechanism, ConfidentGNMax):
        raise TypeError(f"mechanism must be a ConfidentGNMax, got {type(mechanism).__name__}")
    table, single = check_votes(votes, at_least=1)
    delta = check_probability("delta", delta)
    answered = check_answered(answered, table, single)
    queries, answers, classes = len(table), int(answered.sum()), table.shape[1]
    order, *usual = _usual_parameters(mechanism, queries, answers, classes, delta, order)
    beta = check_epsilon(usual[0] if beta is None else beta, "beta")
    scale = check_scale("scale", usual[1] if scale is None else scale)
    own = gnss_rdp(order, beta, scale)
    if own == math.inf:
        raise ValueError(f"beta must be below -log(1 - 1 / order) / 2, got {beta}")
    sigma = mechanism.sigma
    if not all(gnmax_sensitivity_conditions(sigma, order, classes)):
        raise ValueError(f"order must meet conditions C5 and C6 with sigma {sigma}, got {order}")
    rdp = mechanism.rdp(table, order, answered=answered)
    # One more than the number of teachers, because the bounds are constant from there on.
    reach = int(table.sum(axis=1).max()) + 1
    local = threshold_local_sensitivity(
        table, mechanism.threshold, mechanism.sigma_threshold, order, distances=reach
    )
    local += gnmax_local_sensitivity(table[answered], sigma, order, distances=reach)
    noise = check_rng(rng).normal() * scale * smooth_sensitivity(local, beta)
    return Release(
        round(float(_improved(rdp + own, order, delta)) + noise, 6),
        _gnss_epsilon(beta, scale, delta),
        delta=delta,
        mechanism=f"Gaussian noise of {scale} smooth sensitivities, beta {beta}, order {order}",
        neighbours="one teacher changed, and with it one vote in every query",
    )


def _usual_parameters(
    mechanism: ConfidentGNMax,
    queries: int,
    answers: int,
    classes: int,
    delta: float,
    order: float | None,
) -> tuple[float, float, float]:
    """Return an order, a beta and a scale from public numbers; the order may be given."""
    if order is None:
        order = 1 + math.sqrt(-2 * math.log(delta)) / mechanism._mu(queries, answers)
        # Few queries give a large order, at which the sensitivity may not be bounded.
        while order > 1.5 and not all(
            gnmax_sensitivity_conditions(mechanism.sigma, order, classes)
        ):
            order = 1 + 0.8 * (order - 1)
    order = _check_order(order)
    beta = 0.3 / order
    share = 0.05 * float(mechanism.cost(queries, delta, answers=answers))
    left = 1 + order * math.expm1(-2 * beta)
    scale = math.exp(-beta) * math.sqrt(order / 2 / left / max(share, 1e-12))
    return order, beta, min(max(scale, 1e-9), 1e9)


def _gnss_epsilon(beta: float, scale: float, delta: float) -> float:
    """Return what the release of a number costs by itself."""
    room = min(-1 / math.expm1(-2 * beta) - 1, 1e12)
    orders = 1 + np.geomspace(min(1e-4, room / 1e4), 0.999 * room, 2000)
    rdp = [gnss_rdp(order, beta, scale) for order in orders]
    # A `Release` needs a positive epsilon, even if it underflows.
    return max(best_epsilon(rdp, orders, delta)[0], 5e-324)


def _check_order(order: float) -> float:
    allowed = f"a number above 1 and at most {_LARGEST_ORDER}"
    return check_real("order", order, low=1.0, low_open=True, high=_LARGEST_ORDER, allowed=allowed)


def _check_distances(distances: int | None, table: np.ndarray) -> int:
    if distances is None:
        return int(table.sum(axis=1).max(initial=0))
    return check_integer("distances", distances, low=0, high=2**40)
