"""What a private release says of itself: the number, and the promise under which it was made."""

from dataclasses import KW_ONLY, dataclass
from math import inf
from numbers import Real

import numpy as np

from dpnotes._checks import check_epsilon, check_real


@dataclass(frozen=True, slots=True)
class Release:
    """A private number together with the guarantee that it carries.

    Parameters
    ----------
    value : float
        The released number. Any real number is taken, infinity and NaN included: whether a release
        succeeds must not depend on what the noise or the records made of it.
    epsilon : float
        The privacy loss of this release, in nats; positive and finite.
    delta : float, default 0.0
        The probability, in [0, 1), with which the loss may be larger.
    mechanism : str
        How the noise was made, in words.
    neighbours : str
        Which two data sets the promise compares, in words.

    Raises
    ------
    ValueError
        If `epsilon` or `delta` is out of range, or a description is empty.
    TypeError
        If a number is not a real number or a description is not a string.

    Notes
    -----
    Two releases made of the same records add up: by sequential composition their epsilons and
    deltas are summed (Dwork and Roth, 2014, theorem 3.16).

    Examples
    --------
    >>> auc = Release(0.5, 1.0, mechanism="Cauchy noise", neighbours="one record replaced")
    >>> float(auc)
    0.5
    >>> auc
    Release(value=0.5, epsilon=1.0, delta=0.0, mechanism='Cauchy noise', \
neighbours='one record replaced')
    """

    value: float
    epsilon: float
    _: KW_ONLY
    delta: float = 0.0
    mechanism: str
    neighbours: str

    def __post_init__(self) -> None:
        """Check every field and keep the numbers as plain floats."""
        if isinstance(self.value, bool | np.bool_) or not isinstance(self.value, Real):
            raise TypeError(f"value must be a real number, got {type(self.value).__name__}")
        delta = check_real(
            "delta", self.delta, low=0.0, high=1.0, high_open=True, allowed="a number in [0, 1)"
        )
        for name in ("mechanism", "neighbours"):
            _check_words(name, getattr(self, name))
        # A frozen dataclass can only be normalised underneath its own guard.
        object.__setattr__(self, "value", _nearest_float(self.value))
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", delta)

    def __float__(self) -> float:
        """Return the released number."""
        return self.value


def _set_promise(record: object, **fields: object) -> None:
    """Check the promise of a frozen record as `Release` does, and set it with other fields."""
    promise = Release(
        0.0,
        record.epsilon,
        delta=record.delta,
        mechanism=record.mechanism,
        neighbours=record.neighbours,
    )
    # A frozen dataclass can only be normalised underneath its own guard.
    for name, value in {**fields, "epsilon": promise.epsilon, "delta": promise.delta}.items():
        object.__setattr__(record, name, value)


def _nearest_float(value: Real) -> float:
    """Return a real number as a float, and one beyond all floats as infinity: never raise."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _check_words(name: str, words: str) -> None:
    """Refuse a description that is not a string or says nothing."""
    if not isinstance(words, str):
        raise TypeError(f"{name} must be a string, got {type(words).__name__}")
    if not words.strip():
        raise ValueError(f"{name} must say something, got {words!r}")
