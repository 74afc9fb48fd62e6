"""The mechanisms, as objects: each can answer, return its distribution, and return its cost.

Replacing one record changes one teacher, so in each query at most one vote moves. Votes and noise
are integer multiples of the step of a public grid, because the last digits of floats would reveal
what was added to what (Mironov, 2012).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import repeat
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpnotes._checks import (
    as_array,
    check_choice,
    check_integer,
    check_probability,
    check_real,
    check_rng,
    kind_of,
)
from dpnotes._coins import discrete_gaussian, discrete_laplace, draw_index
from dpnotes.accounting import (
    DEFAULT_ORDERS,
    PrivacyCost,
    SecretCost,
    best_epsilon,
    calibrate,
    compose_bounded_range,
    compose_laplace,
    gaussian_cost,
)
from dpnotes.accounting.costs import MOST_QUERIES
from dpnotes.accounting.renyi import check_orders
from dpnotes.pate.costs import (
    _ERRORS,
    _LNMAX_METHODS,
    as_given,
    blocks,
    gaussian_rdp,
    gnmax_rdp,
    gumbel_rdp,
    lnmax_rdp,
    log_error,
)
from dpnotes.pate.votes import check_scale, check_votes, output_distribution

_COINS = {"laplace": discrete_laplace, "gaussian": discrete_gaussian}
_LEAST_NOISE, _MOST_NOISE = 1e-9, 1e9
_CLOSE = 1e-5  # relative tolerance of the least noise
_CELLS = 1 << 16  # noisy counts that fit a second-level cache
# The range of LNMax in units of gamma, by the number of labels, and for any number: 2, 2.26423 and
# 8/3 with continuous noise. The rest is for the steps of the discrete noise, at most a millionth of
# its scale, which change each slope by a factor of at most exp(2e-6 labels).
_RANGES = {2: 2.0001, 3: 2.2643}
_ANY_RANGE = 2.6668


class _Mechanism:
    """What all mechanisms on votes have in common."""

    __slots__ = ()
    _METHODS = _ERRORS

    def __post_init__(self) -> None:
        """Check every field and keep it as a plain float."""
        for field in fields(self):
            check = check_threshold if field.name == "threshold" else check_scale
            # A frozen dataclass can set its own fields only in this way.
            object.__setattr__(self, field.name, check(field.name, getattr(self, field.name)))

    def answer(
        self, votes: ArrayLike, *, rng: np.random.Generator | int | None = None
    ) -> int | np.ndarray:
        """Draw a label for each query.

        Parameters
        ----------
        votes : array_like of whole numbers, shape (classes,) or (queries, classes)
            The votes.
        rng : Generator, int or None
            Where the randomness comes from; None asks the system for a fresh start.

        Returns
        -------
        int, or ndarray of int64 of shape (queries,)
            The labels; -1 where a query is not answered.

        Notes
        -----
        Laplace and Gaussian noise is discrete, drawn with exact coins on a grid of at most a
        millionth of its scale (or 2^-30 votes, if that is more); ties are broken at random. The
        discrete noise costs no more than what `cost` returns, up to 1e-13 nats a query for the
        rounded odds of the coins, and from a scale of 0.001 votes on, the labels have the
        distribution of `output_distribution` up to about 1e-12. Discrete noise is truncated within
        1,400 scales: exact noise would lie beyond with a probability below 1e-304. So where one
        vote is hundreds of scales the largest count always wins, and the cost, in the hundreds as
        well, promises nothing.

        Draws are only as unpredictable as numpy's generator, which is made for simulation: this is
        a teaching implementation, not one for production.
        """
        table, single = check_votes(votes, at_least=1)
        answers = self._draw(table, check_rng(rng))
        return int(answers[0]) if single else answers

    def output_distribution(self, votes: ArrayLike) -> np.ndarray:
        """Return the exact distribution of the answer.

        Parameters
        ----------
        votes : array_like of whole numbers, shape (classes,) or (queries, classes)
            The votes; with two dimensions, a row for each query or possible data set.

        Returns
        -------
        ndarray of the shape of `votes`
            Probabilities of the labels; each row sums to 1.

        Notes
        -----
        See the function `output_distribution`.
        """
        return output_distribution(votes, self._noise(), noise=self._KIND)

    def cost(self, queries: int, delta: float, *, answers: int | None = None) -> PrivacyCost:
        """Return what answering costs, whatever the votes.

        Parameters
        ----------
        queries : int
            How many queries, from 0 to 10**6; each may depend on earlier answers.
        delta : float
            The probability with which the loss may be larger, strictly between 0 and 1.
        answers : int, optional
            How many of them are answered: all, since this mechanism answers every query.

        Returns
        -------
        PrivacyCost
            It depends on no vote, and may be published.
        """
        queries = check_integer("queries", queries, low=0, high=MOST_QUERIES)
        check_integer("answers", queries if answers is None else answers, low=queries, high=queries)
        return self._cost(queries, check_probability("delta", delta))

    def rdp(
        self,
        votes: ArrayLike,
        orders: ArrayLike,
        *,
        answered: ArrayLike | None = None,
        method: str = "bound",
    ) -> np.ndarray | float:
        """Bound the Rényi divergence at these votes, summed over the queries: a secret.

        Parameters
        ----------
        votes : array_like of whole numbers, shape (classes,) or (queries, classes)
            The votes.
        orders : array_like of float, shape (orders,), or float
            Rényi orders, above 1.
        answered : array_like of bool, shape (queries,), optional
            Which queries were answered, where not all are; None for a mechanism that answers every
            query. By default each answer of `ConfidentGNMax` counts with its probability, as in the
            table of the paper: that is the cost expected before anything is drawn, and no bound on
            what answering will cost.
        method : {"bound", "exact"}
            The chance of another label, see `lnmax_error_probability`. With Gumbel noise
            it is exact either way. `LNMax` also accepts "2017", see `lnmax_rdp`.

        Returns
        -------
        ndarray of shape (orders,), or float
            Divergences of these votes from any neighbouring ones, in nats.
        """
        divergences, _ = self._sum_rdp(votes, check_orders(orders), answered, method)
        return as_given(divergences, orders)

    def secret_cost(
        self,
        votes: ArrayLike,
        delta: float,
        *,
        orders: ArrayLike | None = None,
        conversion: str = "improved",
        answered: ArrayLike | None = None,
        method: str = "bound",
    ) -> SecretCost:
        """Return what answering costs at these votes: a secret, as the votes are.

        Parameters
        ----------
        votes : array_like of whole numbers, shape (classes,) or (queries, classes)
            The votes; no query costs nothing.
        delta : float
            The probability with which the loss may be larger, strictly between 0 and 1.
        orders : array_like of float, shape (orders,), optional
            The Rényi orders to search, above 1; `accounting.DEFAULT_ORDERS` by default.
            The papers had 2 to 9 and `ORDERS_2018`.
        conversion : {"improved", "classic"}
            See `accounting.epsilon_from_rdp`; the papers had "classic".
        answered : array_like of bool, shape (queries,), optional
            Which queries were answered, as in `rdp`.
        method : {"bound", "exact"}
            How the chance of another label is computed, as in `rdp`.

        Returns
        -------
        SecretCost
            Not to be published; `release_cost` releases it with noise. Where teachers disagree
            `cost` may be smaller, and holds too.
        """
        orders = check_orders(DEFAULT_ORDERS if orders is None else orders)
        delta = check_probability("delta", delta)
        divergences, count = self._sum_rdp(votes, orders, answered, method)
        epsilon, order = best_epsilon(divergences, orders, delta, conversion=conversion)
        return SecretCost(epsilon, delta, order, count)

    @classmethod
    def for_cost(cls, epsilon: float, delta: float, queries: int) -> Self:
        """Return the mechanism of least noise that answers all queries within a budget.

        Parameters
        ----------
        epsilon : float
            What all answers may cost, positive and finite.
        delta : float
            The probability with which the loss may be larger, strictly between 0 and 1.
        queries : int
            How many queries, from 1 to 10**6.

        Returns
        -------
        Self
            Its `cost` is at most epsilon, and hardly below it: about a hundred-thousandth, unless
            the noise is the least that is allowed.

        Raises
        ------
        ValueError
            If a parameter is out of range, or no noise is loud enough.
        """
        queries = check_integer("queries", queries, low=1, high=MOST_QUERIES)
        return _least_noise(cls, epsilon, delta, queries)

    def _sum_rdp(
        self, votes: ArrayLike, orders: np.ndarray, answered: ArrayLike | None, method: str
    ) -> tuple[np.ndarray, float]:
        """Return the divergences, summed over the queries, and how many are answered."""
        table, _ = check_votes(votes)
        check_choice("method", method, self._METHODS)
        if answered is not None:
            raise ValueError("answered must be None: this mechanism answers every query")
        return self._rdp(table, orders, method), float(len(table))

    def _noise(self) -> float:
        """Return the scale of the noise, which is the first field of most mechanisms."""
        return getattr(self, fields(self)[0].name)

    def _draw(self, table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return noisy_winners(table, self._noise(), _COINS[self._KIND], rng)


@dataclass(frozen=True, slots=True)
class LNMax(_Mechanism):
    """Answer with the largest count after Laplace noise of scale 1 / gamma (2017).

    Parameters
    ----------
    gamma : float
        The inverse of the noise scale, from 1e-9 to 1e9. A *smaller* gamma is more private; a query
        costs at most 2 gamma.

    Notes
    -----
    A vote that moves shifts two counts, each with noise of its own, and the answer is computed from
    the noisy counts. So queries cost at most as much as *twice as many* numbers with Laplace noise
    of this scale. The answer reveals less than the noisy counts: at any votes its losses lie in an
    interval of length 2 gamma for two labels, 2.265 gamma for three, 8/3 gamma for any number (our
    theorem; its proof is on the deeper page on PATE). So `accounting.compose_bounded_range` of that
    length holds as well, and `cost` is the smaller of the two.

    `cost` needs dp-accounting: ``pip install dpnotes[accounting]``.

    Examples
    --------
    >>> ask = LNMax(gamma=0.05)
    >>> ask.answer([3, 240, 7], rng=0)
    1
    >>> [round(float(ask.cost(100, 1e-5, labels=labels)), 2) for labels in (2, 3, None)]
    [1.99, 2.29, 2.75]
    >>> ask.secret_cost([[3, 240, 7]] * 100, 1e-5).epsilon < 0.2
    True
    """

    gamma: float

    _KIND = "laplace"
    _METHODS = _LNMAX_METHODS

    def _noise(self) -> float:
        return 1 / self.gamma

    def cost(
        self, queries: int, delta: float, *, answers: int | None = None, labels: int | None = None
    ) -> PrivacyCost:
        """Return what answering costs, whatever the votes.

        Parameters
        ----------
        queries : int
            How many queries, from 0 to 10**6; each may depend on earlier answers.
        delta : float
            The probability with which the loss may be larger, strictly between 0 and 1.
        answers : int, optional
            How many of them are answered: all, since this mechanism answers every query.
        labels : int, optional
            How many labels there are, at least 2: two and three cost less. By default any number.

        Returns
        -------
        PrivacyCost
            It depends on no vote, and may be published.
        """
        counts = super(LNMax, self).cost(queries, delta, answers=answers)
        length = self.gamma * _range_of(labels)
        return min(counts, compose_bounded_range(length, queries, delta), key=float)

    def _cost(self, queries: int, delta: float) -> PrivacyCost:
        return compose_laplace(self._noise(), 2 * queries, delta)

    @classmethod
    def for_cost(
        cls, epsilon: float, delta: float, queries: int, *, labels: int | None = None
    ) -> Self:
        """Return the mechanism of least noise that answers all queries within a budget.

        Parameters
        ----------
        epsilon : float
            What all answers may cost, positive and finite.
        delta : float
            The probability with which the loss may be larger, strictly between 0 and 1.
        queries : int
            How many queries, from 1 to 10**6.
        labels : int, optional
            How many labels there are, at least 2: two and three cost less. By default any number.

        Returns
        -------
        LNMax
            Its ``cost(queries, delta, labels=labels)`` is at most epsilon, and hardly below it:
            about a hundred-thousandth, unless the noise is the least that is allowed.

        Raises
        ------
        ValueError
            If a parameter is out of range, or no noise is loud enough.
        """
        queries = check_integer("queries", queries, low=1, high=MOST_QUERIES)
        return _least_noise(lambda noise: cls(1 / noise), epsilon, delta, queries, labels=labels)

    def _mu(self, queries: int, labels: int | None = None) -> float:
        # A range r weighs as much as Gaussian noise with a shift of r / 2.
        return math.sqrt(queries) * self.gamma * _range_of(labels) / 2

    def _rdp(self, table: np.ndarray, orders: np.ndarray, method: str) -> np.ndarray:
        return lnmax_rdp(table, self.gamma, orders, method=method)


@dataclass(frozen=True, slots=True)
class GumbelMax(_Mechanism):
    """Answer with the largest count after Gumbel noise: the exponential mechanism.

    Parameters
    ----------
    scale : float
        The scale of the noise, in votes, from 1e-9 to 1e9; a query costs at most 2 / scale.

    Notes
    -----
    Label j is the answer with probability proportional to exp(n_j / scale), and is drawn from this
    distribution by exact coins, without any noise. A vote that moves makes the losses of any two
    labels differ by at most 2 / scale: the range is bounded, and `cost` is
    `accounting.compose_bounded_range`.

    Examples
    --------
    >>> ask = GumbelMax(scale=20)
    >>> ask.answer([[3, 240, 7], [245, 1, 4]], rng=0)
    array([1, 0])
    >>> round(float(ask.cost(100, 1e-5)), 3)
    1.994
    """

    scale: float

    _KIND = "gumbel"

    def _draw(self, table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        chances = output_distribution(table, self.scale, noise="gumbel")
        return draw_index(chances, len(table), rng)

    def _cost(self, queries: int, delta: float) -> PrivacyCost:
        return compose_bounded_range(2 / self.scale, queries, delta)

    def _mu(self, queries: int) -> float:
        return math.sqrt(queries) / self.scale

    def _rdp(self, table: np.ndarray, orders: np.ndarray, method: str) -> np.ndarray:
        return gumbel_rdp(table, self.scale, orders)


@dataclass(frozen=True, slots=True)
class GNMax(_Mechanism):
    """Answer with the largest count after Gaussian noise of deviation sigma (2018).

    Parameters
    ----------
    sigma : float
        The standard deviation of the noise, in votes, from 1e-9 to 1e9.

    Notes
    -----
    A vote that moves shifts the counts by sqrt(2) in all, so a query is Gaussian noise of deviation
    sigma / sqrt(2), and all queries together are one of mu^2 = 2 queries / sigma^2 (Dong, Roth and
    Su, 2022). `cost` is that of the noisy counts: an upper bound, as the answer reveals less. The
    Rényi divergence of discrete Gaussian noise under shifts by whole steps is at most that of
    Gaussian noise (Canonne, Kamath and Steinke, 2020).

    Examples
    --------
    >>> ask = GNMax(sigma=40)
    >>> ask.answer([[3, 240, 7], [245, 1, 4]], rng=0)
    array([1, 0])
    >>> round(float(ask.cost(286, 1e-5)), 3)
    2.435
    """

    sigma: float

    _KIND = "gaussian"

    def _mu(self, queries: int) -> float:
        return math.sqrt(2 * queries) / self.sigma

    def _cost(self, queries: int, delta: float) -> PrivacyCost:
        return gaussian_cost(self._mu(queries), delta)

    def _rdp(self, table: np.ndarray, orders: np.ndarray, method: str) -> np.ndarray:
        return gnmax_rdp(table, self.sigma, orders, method=method)


@dataclass(frozen=True, slots=True)
class ConfidentGNMax(_Mechanism):
    """Answer as `GNMax` does, but only where the largest count plus noise reaches a threshold.

    Parameters
    ----------
    threshold : float
        How many votes, after noise, are agreement enough, from -1e9 to 1e9.
    sigma_threshold, sigma : float
        Standard deviations, from 1e-9 to 1e9 votes, of the noise on the largest count and on all
        counts.

    Notes
    -----
    Algorithm 1 of Papernot et al. (2018). The largest count changes by at most 1, so at given votes
    deciding costs what `GNMax` costs with sqrt(2) times the noise, where q is the smaller
    probability of the two decisions.

    Examples
    --------
    >>> ask = ConfidentGNMax(threshold=200, sigma_threshold=15, sigma=4)
    >>> ask.answer([[3, 240, 7], [90, 80, 80]], rng=0)
    array([ 1, -1])
    >>> ask = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma=40)
    >>> round(float(ask.cost(640, 1e-5, answers=286)), 4)
    2.5426
    >>> cost = ask.secret_cost([[240, 10]] * 100, 1e-5, orders=[10, 20, 30])
    >>> round(cost.epsilon, 4), cost.order, round(cost.answered, 2)
    (0.3184, 30.0, 60.51)
    """

    threshold: float
    sigma_threshold: float
    sigma: float

    def answer(
        self,
        votes: ArrayLike,
        *,
        answers: int | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> int | np.ndarray:
        """Draw a label for each query that is agreed upon.

        Parameters
        ----------
        votes : array_like of whole numbers, shape (classes,) or (queries, classes)
            The votes.
        answers : int, optional
            The most queries that are answered. Later ones are left unanswered. By default there is
            no limit.
        rng : Generator, int or None
            Where the randomness comes from; None asks the system for a fresh start.

        Returns
        -------
        int, or ndarray of int64 of shape (queries,)
            The labels; -1 where a query is not answered.

        Notes
        -----
        The noise is that of `GNMax.answer`.
        """
        table, single = check_votes(votes, at_least=1)
        most = len(table) if answers is None else check_integer("answers", answers, low=0)
        rng = check_rng(rng)
        labels = np.full(len(table), -1)
        sure = reaches(table, self.threshold, self.sigma_threshold, rng)
        labels[sure] = noisy_winners(table[sure], self.sigma, discrete_gaussian, rng)
        labels[np.cumsum(sure) > most] = -1
        return int(labels[0]) if single else labels

    def output_distribution(self, votes: ArrayLike) -> np.ndarray:
        """Return the exact distribution of the answer; the last column is for not answering.

        Parameters
        ----------
        votes : array_like of whole numbers, shape (classes,) or (queries, classes)
            The votes; with two dimensions, a row for each query or possible data set.

        Returns
        -------
        ndarray of shape (classes + 1,) or (queries, classes + 1)
            Probabilities of the labels, then that of no answer; each row sums to 1.

        Notes
        -----
        The threshold is reached with probability Phi((n_max - threshold) / sigma_threshold), and
        then a label is drawn from the distribution of `GNMax`. No probability is 0, because smaller
        ones are raised to 1e-300.

        Examples
        --------
        >>> ask = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma=40)
        >>> ask.output_distribution([150, 100]).round(4)
        array([0.2998, 0.0696, 0.6306])
        """
        table, single = check_votes(votes, at_least=1)
        margin = (table.max(axis=1) - self.threshold) / self.sigma_threshold
        labels = output_distribution(table, self.sigma, noise="gaussian")
        labels *= special.ndtr(margin)[:, None]
        rows = np.column_stack([labels, special.ndtr(-margin)]).clip(1e-300)
        return rows[0] if single else rows

    def cost(self, queries: int, delta: float, *, answers: int | None = None) -> PrivacyCost:
        """Return what answering costs, whatever the votes, if no more queries are answered.

        Parameters
        ----------
        queries : int
            How many queries are compared with the threshold, from 0 to 10**6; each may depend on
            earlier answers.
        delta : float
            The probability with which the loss may be larger, strictly between 0 and 1.
        answers : int, optional
            How many of them may be answered: a number fixed in advance, and kept by
            ``answer(votes, answers=...)``. By default all of them. The number that happened to be
            answered is not fixed in advance.

        Returns
        -------
        PrivacyCost
            It depends on no vote, and may be published.

        Notes
        -----
        The largest count moves by 1, and all counts by sqrt(2) in all, so the cost is that of
        mu-Gaussian differential privacy with

            mu^2 = queries / sigma_threshold^2 + 2 answers / sigma^2.

        Earlier noise decides which queries are answered, so a step's share of mu is not known in
        advance, only a bound on the sum of squares. The composition theorem of Dong, Roth and Su
        (2022) assumes known shares; that a bound on the sum is enough is the privacy filter of
        Smith and Thakurta (2022), and of Koskela, Tobaben and Honkela (2023).
        """
        queries = check_integer("queries", queries, low=0, high=MOST_QUERIES)
        answers = queries if answers is None else answers
        answers = check_integer("answers", answers, low=0, high=queries)
        return gaussian_cost(self._mu(queries, answers), delta)

    @classmethod
    def for_cost(
        cls,
        epsilon: float,
        delta: float,
        queries: int,
        *,
        answers: int,
        threshold: float,
        ratio: float,
    ) -> Self:
        """Return the mechanism of least noise for given decisions and answers within a budget.

        Parameters
        ----------
        epsilon : float
            What all answers may cost, positive and finite.
        delta : float
            The probability with which the loss may be larger, strictly between 0 and 1.
        queries : int
            How many queries are compared with the threshold, from 1 to 10**6.
        answers : int
            How many of them may be answered, from 0 to `queries`.
        threshold : float
            How many votes, after noise, are agreement enough, from -1e9 to 1e9.
        ratio : float
            sigma_threshold / sigma, from 0.001 to 1000; the papers had 3.75 and 5.

        Returns
        -------
        ConfidentGNMax
            Its ``cost(queries, delta, answers=answers)`` is at most epsilon, and hardly below it:
            about a hundred-thousandth, unless the noise is the least that is allowed.

        Raises
        ------
        ValueError
            If a parameter is out of range, or no noise is loud enough.

        Examples
        --------
        >>> ask = ConfidentGNMax.for_cost(1.0, 1e-5, 640, answers=286, threshold=200, ratio=3.75)
        >>> round(ask.sigma, 1), round(float(ask.cost(640, 1e-5, answers=286)), 4)
        (92.7, 1.0)
        """
        queries = check_integer("queries", queries, low=1, high=MOST_QUERIES)
        answers = check_integer("answers", answers, low=0, high=queries)
        threshold = check_threshold("threshold", threshold)
        allowed = "a number from 0.001 to 1000"
        ratio = check_real("ratio", ratio, low=0.001, high=1000.0, allowed=allowed)

        def of_noise(noise: float) -> Self:
            # Scale so that the smaller of the two deviations equals `noise`.
            return cls(threshold, noise * max(1.0, ratio), noise * max(1.0, 1 / ratio))

        most = _MOST_NOISE / max(ratio, 1 / ratio)
        return _least_noise(of_noise, epsilon, delta, queries, most, answers=answers)

    def _mu(self, queries: int, answers: int) -> float:
        deciding, answering = math.sqrt(queries), math.sqrt(2 * answers)
        return math.hypot(deciding / self.sigma_threshold, answering / self.sigma)

    def _sum_rdp(
        self, votes: ArrayLike, orders: np.ndarray, answered: ArrayLike | None, method: str
    ) -> tuple[np.ndarray, float]:
        table, single = check_votes(votes)
        check_choice("method", method, self._METHODS)
        told = None if answered is None else check_answered(answered, table, single)
        given = repeat(None) if told is None else blocks(told)
        rdp, count = np.zeros(orders.size), 0.0
        for block, known in zip(blocks(table), given, strict=False):
            margin = (block.max(axis=1) - self.threshold) / self.sigma_threshold
            # Of the two decisions, the less likely one.
            log_q = special.log_ndtr(-np.abs(margin))
            rdp += gaussian_rdp(log_q, math.sqrt(2) * self.sigma_threshold, orders)
            weights = special.ndtr(margin) if known is None else known.astype(float)
            log_q = log_error(block, self.sigma, "gaussian", method)
            rdp += gaussian_rdp(log_q, self.sigma, orders, weights)
            count += float(weights.sum())
        return rdp, count


def _least_noise(
    of_noise: Callable,
    epsilon: float,
    delta: float,
    queries: int,
    most: float = _MOST_NOISE,
    **known: int | None,
) -> _Mechanism:
    """Return the mechanism of least noise whose cost is at most epsilon."""
    # Start from the noise that would be right if the cost were that of Gaussian noise.
    largest_mu = 1 / calibrate(lambda noise: gaussian_cost(1 / noise, delta), epsilon, 1e-26, 1e26)
    noise = calibrate(
        lambda noise: of_noise(noise).cost(queries, delta, **known),
        epsilon,
        _LEAST_NOISE,
        most,
        start=of_noise(1.0)._mu(queries, **known) / largest_mu,
        tolerance=_CLOSE,
    )
    return of_noise(noise)


def _range_of(labels: int | None) -> float:
    """Return how far apart the losses of LNMax lie at most, in units of gamma."""
    if labels is None:
        return _ANY_RANGE
    return _RANGES.get(check_integer("labels", labels, low=2), _ANY_RANGE)


def check_threshold(name: str, value: float) -> float:
    return check_real(name, value, low=-1e9, high=1e9, allowed="a number from -1e9 to 1e9")


def check_answered(answered: ArrayLike, table: np.ndarray, single: bool) -> np.ndarray:
    array = as_array("answered", answered)
    if array.size and array.dtype.kind != "b":
        raise TypeError(f"answered must be booleans, got {kind_of(array)}")
    if array.shape != (() if single else (len(table),)):
        raise ValueError(f"answered must say of each query if it was, got shape {array.shape}")
    return np.atleast_1d(array).astype(bool)


def grid(scale: float) -> int:
    """Return how many halvings of a vote give steps of at most a millionth of the scale."""
    return min(30, max(0, math.ceil(20 - math.log2(scale))))


def noisy_winners(
    table: np.ndarray, scale: float, noise: Callable, rng: np.random.Generator
) -> np.ndarray:
    """Add noise to every count, and return the place of the largest one in each row."""
    halvings = grid(scale)
    winners = np.empty(len(table), dtype=np.int64)
    rows = max(1, _CELLS // table.shape[1])
    for start in range(0, len(table), rows):
        # One row for each class, because numpy finds the maxima of columns faster than of rows.
        noisy = np.left_shift(table[start : start + rows].T, halvings, order="C")
        noisy += noise(noisy.size, scale * 2.0**halvings, rng).reshape(noisy.shape)
        winners[start : start + rows] = _places_of_largest(noisy, rng)
    return winners


def _places_of_largest(noisy: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the row of the largest entry in each column; ties are broken at random."""
    best = noisy == noisy.max(axis=0)
    # The smallest type that holds all places takes the least time.
    places = np.zeros(noisy.shape[1], dtype=np.min_scalar_type(len(noisy) - 1))
    for place in range(1, len(noisy)):
        np.maximum(places, best[place] * places.dtype.type(place), out=places)
    if np.count_nonzero(best) > places.size:
        tied = np.flatnonzero(np.count_nonzero(best, axis=0) > 1)
        lots = rng.integers(np.count_nonzero(best[:, tied], axis=0))
        places[tied] = (np.cumsum(best[:, tied], axis=0) > lots).argmax(axis=0)
    return places


def reaches(
    table: np.ndarray, threshold: float, sigma: float, rng: np.random.Generator
) -> np.ndarray:
    """Say where the largest count, plus noise, reaches the threshold."""
    steps = 2.0 ** grid(sigma)
    noisy = table.max(axis=1) << grid(sigma)
    noisy += discrete_gaussian(len(table), sigma * steps, rng)
    return noisy >= math.ceil(threshold * steps)
