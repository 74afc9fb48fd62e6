"""What the losses refuse."""

import torch

from dpnotes._checks import check_real

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def check_margin(margin: torch.Tensor) -> torch.Tensor:
    """Return margins, or refuse what is no tensor of floats."""
    return _check_floats("margin", _check_tensor("margin", margin))


def check_barrier(b: float, r: float) -> tuple[float, float]:
    """Return the slope and the half width of a barrier hinge, or refuse them."""
    slope = check_real("b", b, low=1.0, low_open=True, allowed="a finite slope above 1")
    return slope, check_real("r", r, low=0.0, low_open=True, allowed="a positive finite number")


def check_classes(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scores of classes, and labels as integers of 64 bits, or refuse them."""
    logits, labels = _check_tensor("logits", logits), _check_tensor("labels", labels)
    logits = _check_floats("logits", logits)
    if logits.ndim == 0 or logits.shape[-1] < 2:
        raise ValueError(f"logits must have two classes or more, got shape {tuple(logits.shape)}")
    if labels.dtype not in _INTEGERS:
        raise TypeError(f"labels must be integers, got {labels.dtype}")
    if labels.shape != logits.shape[:-1]:
        expected = tuple(logits.shape[:-1])
        raise ValueError(f"labels must have shape {expected}, got {tuple(labels.shape)}")
    categories, labels = logits.shape[-1], labels.long()
    if not bool(((labels >= 0) & (labels < categories)).all()):
        raise ValueError(f"labels must be in [0, {categories}); a record is not")
    return logits, labels


def _check_tensor(name: str, value: torch.Tensor) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    return value


def _check_floats(name: str, value: torch.Tensor) -> torch.Tensor:
    if not value.is_floating_point():
        raise TypeError(f"{name} must be floats, got {value.dtype}")
    return value
