"""The training schedule of an ensemble."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from dpnotes._checks import check_choice, check_integer, check_real, require_kind


@dataclass(frozen=True)
class Schedule:
    """The length and the step sizes of training with Adam (AMSGrad variant).

    Parameters
    ----------
    epochs : int
        Passes over the training data, at least 1.
    batch_size : int
        Images per step. An incomplete batch at the end of an epoch is dropped; the next epoch
        shuffles all images anew.
    learning_rate, weight_decay : float
        Parameters of Adam: the rate is positive, the decay (added to the gradient) non-negative.
    evaluate_after : tuple of int
        The epochs after which test scores are kept, in addition to the last one.
    precision : {"float32", "bfloat16"}
        The type of the products in the layers during training; weights, risks and test scores are
        in single precision.

    Examples
    --------
    >>> Schedule(epochs=3, evaluate_after=[1]).evaluate_after
    (1,)
    """

    epochs: int = 50
    batch_size: int = 128
    learning_rate: float = 1e-4
    weight_decay: float = 1e-4
    evaluate_after: tuple[int, ...] = ()
    precision: str = "float32"

    def __post_init__(self) -> None:
        """Check every field, and keep it as a plain number."""
        keep = partial(object.__setattr__, self)
        for name in ("epochs", "batch_size"):
            keep(name, check_integer(name, getattr(self, name), low=1))
        rate, decay = self.learning_rate, self.weight_decay
        positive = {"low": 0.0, "low_open": True, "allowed": "a positive number"}
        keep("learning_rate", check_real("learning_rate", rate, **positive))
        allowed = "a non-negative number"
        keep("weight_decay", check_real("weight_decay", decay, low=0.0, allowed=allowed))
        require_kind("evaluate_after", self.evaluate_after, Sequence, "a sequence of epochs")
        bounds = {"low": 1, "high": self.epochs}
        epochs = (check_integer("evaluate_after", e, **bounds) for e in self.evaluate_after)
        keep("evaluate_after", tuple(epochs))
        check_choice("precision", self.precision, ("float32", "bfloat16"))
