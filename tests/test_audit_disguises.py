"""Nothing fresh beside the truth hides it, in whatever the audit reads they are wrapped."""

import dataclasses

import numpy as np
import pytest

from dpnotes.audit import epsilon_lower_bound


@dataclasses.dataclass
class Row:
    left: object
    right: object


def as_key(item):
    """Return what can be a key or an element of a set."""
    try:
        hash(item)
    except TypeError:
        return repr(item)
    return item


TRUTHS = [int, float, bool, str, "ny".__getitem__, lambda t: b"ny"[t : t + 1], lambda t: 10**30 + t,
          lambda t: None if t else 0, lambda t: f"{t:08.3f}"]  # fmt: skip
FRESH = {
    "text": lambda new: new.hex(),
    "bytes": lambda new: new,
    "integer": lambda new: int.from_bytes(new, "big"),
    "fraction": lambda new: int.from_bytes(new[:5], "big") / 2**40,
    "array": lambda new: np.frombuffer(new, np.uint8).copy(),
    "digits": lambda new: str(int.from_bytes(new, "big")),
    "large integer": lambda new: int.from_bytes(20 * new, "big"),
}
WRAPS = {
    "list": lambda truth, new: [truth, new],
    "tuple": lambda truth, new: (new, truth),
    "values": lambda truth, new: {"a": truth, "b": new},
    "below a key": lambda truth, new: {as_key(new): truth},
    "key": lambda truth, new: {as_key(truth): new},
    "set": lambda truth, new: {as_key(truth), as_key(new)},
    "frozen set": lambda truth, new: frozenset([as_key(truth), as_key(new)]),
    "text": lambda truth, new: f"{truth} {new}",
    "text around it": lambda truth, new: f"{new}/{truth}/{new}",
    "text before": lambda truth, new: f"{new}{truth}",
    "text behind": lambda truth, new: f"{truth}{new}",
    "texts": lambda truth, new: np.array([[str(new), str(truth)]]),
    "objects": lambda truth, new: np.array([truth, new, None], dtype=object),
    "dataclass": lambda truth, new: Row(new, truth),
    "bytes": lambda truth, new: str((new, truth)).encode(),
    "sorted": lambda truth, new: sorted([str(truth), str(new)]),
    "order of keys": lambda truth, new: dict(sorted({str(new): 1, str(truth): 2}.items())),
}


# A digit between fresh digits, in the middle of a text, with a new number of words before it.
NOT_FOUND = {118, 153}


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 30 else pytest.mark.full) for n in range(200)]
)
def test_no_disguise_of_up_to_three_layers_hides_the_truth(seed):
    draw = np.random.default_rng(seed)
    as_truth = TRUTHS[draw.integers(len(TRUTHS))]
    layers = [(draw.choice([*WRAPS]), draw.choice([*FRESH])) for _ in range(draw.integers(1, 4))]

    def mechanism(truth, *, rng):
        output = as_truth(truth)
        for wrap, fresh in layers:
            output = WRAPS[wrap](output, FRESH[fresh](rng.bytes(8)))
        return output

    found = epsilon_lower_bound(mechanism, 0, 1, trials=800, rng=1) > 2
    assert found == (seed not in NOT_FOUND), layers
