"""What an answer costs at given votes: a secret, as the votes are.

Where teachers agree, the answer hardly depends on one of them. Every function here bounds, at one
table of votes, the Rényi divergence of its answers from those at any neighbouring table, in this
direction.
"""

import numpy as np
from numpy.typing import ArrayLike

from dpnotes._checks import check_choice
from dpnotes.accounting import laplace_rdp
from dpnotes.accounting.renyi import check_orders
from dpnotes.pate._checks import check_scale, check_votes
from dpnotes.pate._moments import (
    as_given,
    blocks,
    gaussian_rdp,
    log_error,
    pure_rates,
    sum_moments,
    worst_vote,
)

ERRORS = ("bound", "exact")
LNMAX_METHODS = (*ERRORS, "2017")
# The moments 1 to 8 of the 2017 paper.
ORDERS_2017 = tuple(range(2, 10))
# The orders that the code of the 2018 paper searched.
ORDERS_2018 = tuple(
    np.unique(np.append(np.arange(2, 101, 0.5), np.geomspace(100, 500, 100))).tolist()
)


def lnmax_error_probability(
    votes: ArrayLike, gamma: float, *, method: str = "bound"
) -> float | np.ndarray:
    """Return the probability that LNMax answers another label than the one with most votes.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    gamma : float
        The inverse of the noise scale, from 1e-9 to 1e9.
    method : {"bound", "exact"}
        "bound" adds up over the other classes the probability of beating the plurality, which is
        exact for two classes; "exact" integrates.

    Returns
    -------
    float, or ndarray of shape (queries,)
        The probability q; a bound is at most 1 - 1 / classes.

    Notes
    -----
    Lemma 4 of Papernot et al. (2017): a class that is D votes behind beats the plurality with
    probability (2 + gamma D) / (4 exp(gamma D)). With several classes in front, the first of
    them counts as the plurality.

    Examples
    --------
    >>> round(lnmax_error_probability([30, 20], 0.05), 9)
    0.379081662
    """
    table, single = check_votes(votes)
    gamma = check_scale("gamma", gamma)
    q = np.exp(log_error(table, 1 / gamma, "laplace", check_choice("method", method, ERRORS)))
    return float(q[0]) if single else q


def gnmax_log_error_probability(
    votes: ArrayLike, sigma: float, *, method: str = "bound"
) -> float | np.ndarray:
    """Return the log-probability that GNMax answers another label than the one with most votes.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    sigma : float
        The standard deviation of the noise, from 1e-9 to 1e9.
    method : {"bound", "exact"}
        "bound" adds up over the other classes the probability of beating the plurality, which is
        exact for two classes; "exact" integrates.

    Returns
    -------
    float, or ndarray of shape (queries,)
        The natural logarithm of q; a bound on q is at most 1 - 1 / classes.

    Notes
    -----
    Proposition 7 of Papernot et al. (2018): a class that is D votes behind beats the plurality
    with probability erfc(D / (2 sigma)) / 2.

    Examples
    --------
    >>> round(gnmax_log_error_probability([4, 7, 6, 8, 4, 2, 0, 214, 4, 1], 40), 8)
    -6.97187687
    """
    table, single = check_votes(votes)
    sigma = check_scale("sigma", sigma)
    log_q = log_error(table, sigma, "gaussian", check_choice("method", method, ERRORS))
    return float(log_q[0]) if single else log_q


def lnmax_rdp(
    votes: ArrayLike, gamma: float, orders: ArrayLike, *, method: str = "bound"
) -> np.ndarray | float:
    """Bound the Rényi divergence of LNMax, summed over the queries.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    gamma : float
        The inverse of the noise scale, from 1e-9 to 1e9.
    orders : array_like of float, shape (orders,), or float
        Rényi orders, above 1: the moments of the 2017 paper plus 1.
    method : {"bound", "exact", "2017"}
        How the error probability is had; see `lnmax_error_probability`. "2017" is "bound" with the
        cap of the 2017 paper, as its published figures have it.

    Returns
    -------
    ndarray of shape (orders,), or float
        Divergences, in nats. Those of further queries, or of another worker's, are added.

    Notes
    -----
    With l = order - 1, l times the divergence is at most

        log((1 - q) ((1 - q) / (1 - exp(2 gamma) q))^l + q exp(2 gamma l))

    for q of at most 1 / (exp(2 gamma) + 1) (Papernot et al., 2017, Theorem 3). And whatever q is,
    one vote shifts two counts, each with Laplace noise of its own, so l times the divergence is at
    most twice that of such a noise (Mironov, 2017, Table II),

        2 log((l + 1) / (2 l + 1) exp(l gamma) + l / (2 l + 1) exp(-(l + 1) gamma)),

    which is at most gamma^2 l (l + 1). The smaller is taken. The paper has the smaller of
    2 gamma^2 l (l + 1) and 2 gamma l there, which holds for every mechanism of cost 2 gamma. Memory
    does not grow with the number of queries.

    Examples
    --------
    >>> lnmax_rdp([4, 7, 6, 8, 4, 2, 0, 214, 4, 1], 0.05, [2, 9]).round(8)
    array([0.000164  , 0.00020132])
    """
    table, _ = check_votes(votes)
    gamma = check_scale("gamma", gamma)
    orders_ = check_orders(orders)
    check_choice("method", method, LNMAX_METHODS)
    moments, loss = orders_ - 1, 2 * gamma
    if method == "2017":
        caps, method = np.minimum(loss**2 / 2 * moments * orders_, loss * moments), "bound"
    else:
        caps = np.minimum(2 * moments * laplace_rdp(gamma, orders_), loss * moments)
    total = np.zeros(moments.size)
    for block in blocks(table):
        log_q = log_error(block, 1 / gamma, "laplace", method)
        total += sum_moments(log_q, None, caps, moments, lambda log_q: pure_rates(log_q, loss))
    return as_given(total / moments, orders)


def gumbel_rdp(votes: ArrayLike, scale: float, orders: ArrayLike) -> np.ndarray | float:
    """Return the Rényi divergence of the largest count with Gumbel noise, summed over the queries.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    scale : float
        The scale of the noise, in votes, from 1e-9 to 1e9.
    orders : array_like of float, shape (orders,), or float
        Rényi orders, above 1.

    Returns
    -------
    ndarray of shape (orders,), or float
        Divergences from the worst neighbour of each query, in nats. Those of further queries, or of
        another worker's, are added.

    Notes
    -----
    No bound is needed, since the answer is the exponential mechanism's: label j comes with
    probability p_j proportional to exp(n_j / scale). A vote that moves from a to b multiplies p_a
    by exp(-1 / scale), p_b by exp(1 / scale), and divides all by the new sum r. With
    x = (order - 1) / scale the divergence is

        log(r) + log(1 + p_a (exp(x) - 1) + p_b (exp(-x) - 1)) / (order - 1),

    and the largest over all pairs of labels, of which a has a vote, is taken.

    Examples
    --------
    >>> gumbel_rdp([150, 60, 40], 20, [2, 8]).round(8)
    array([0.0001179 , 0.00057574])
    """
    table, _ = check_votes(votes)
    scale = check_scale("scale", scale)
    orders_ = check_orders(orders)
    rows, counts = np.unique(-np.sort(-table, axis=1), axis=0, return_counts=True)
    total = np.zeros(orders_.size)
    for row, count in zip(rows, counts, strict=True):
        total += count * worst_vote(row, scale, orders_)
    return as_given(total, orders)


def gnmax_rdp(
    votes: ArrayLike, sigma: float, orders: ArrayLike, *, method: str = "bound"
) -> np.ndarray | float:
    """Bound the Rényi divergence of GNMax, summed over the queries.

    Parameters
    ----------
    votes : array_like of whole numbers, shape (classes,) or (queries, classes)
        The votes.
    sigma : float
        The standard deviation of the noise, from 1e-9 to 1e9.
    orders : array_like of float, shape (orders,), or float
        Rényi orders, above 1.
    method : {"bound", "exact"}
        How the error probability is had; see `gnmax_log_error_probability`.

    Returns
    -------
    ndarray of shape (orders,), or float
        Divergences, in nats. Those of further queries, or of another worker's, are added.

    Notes
    -----
    Theorem 6 of Papernot et al. (2018) with the orders of its Proposition 10, mu2 = sigma
    sqrt(log(1 / q)) and mu1 = mu2 + 1; order / sigma^2 where that is smaller or the theorem does
    not apply. Memory does not grow with the number of queries.

    Examples
    --------
    >>> gnmax_rdp([4, 7, 6, 8, 4, 2, 0, 214, 4, 1], 40, [2, 8]).round(8)
    array([0.00026472, 0.00033647])
    """
    table, _ = check_votes(votes)
    sigma = check_scale("sigma", sigma)
    orders_ = check_orders(orders)
    check_choice("method", method, ERRORS)
    total = np.zeros(orders_.size)
    for block in blocks(table):
        log_q = log_error(block, sigma, "gaussian", method)
        total += gaussian_rdp(log_q, sigma, orders_)
    return as_given(total, orders)
