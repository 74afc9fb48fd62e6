"""Junk in place of any parameter is taken without a warning, or refused in words."""

import copy
import math
import random
import re
import traceback
from decimal import Decimal
from fractions import Fraction
from numbers import Number

import numpy as np
import pandas as pd
import pytest
from kinds import (
    READS_FILES,
    SECRET,
    SECRET_WORD,
    find_parameters,
    find_thing,
    make_arguments,
    make_call,
    torch,
)
from test_refusals import NAMES

from dpnotes import datasets

JUNK = [
    *(None, ..., True, np.True_, 0, 3, -1, 2**63, np.int8(-1), np.uint64(2**64 - 1)),
    *(0.5, 1.0, 1e-17, 1e17, 1e308, math.nan, -math.inf, np.float32(1.5), Fraction(1, 3)),
    *(Decimal("0.5"), 1j, "", "exact", b"exact", "a" * 200, object(), [], (), {}, range(2)),
    *({0: SECRET}, {SECRET, 1}, [[]], [[1, 0], [1]], [0, [1, 0]]),
    *([SECRET, SECRET_WORD], [True, SECRET], [0.5, math.nan], [np.uint64(1), -1], iter([0, 1])),
    *(np.array(0.5), np.array([]), np.zeros((0, 2)), np.array([SECRET, None, 1], dtype=object)),
    *(np.array(["a", SECRET_WORD]), np.array([math.nan, SECRET]), np.array([1, SECRET], ">i2")),
    *(np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), np.array([0, 2], "u1").view(bool)),
    *(np.ma.array([0, SECRET], mask=[0, 1]), [0, np.ma.masked], np.random.default_rng(0)),
    *(pd.Series([0, SECRET]), pd.Series([0, None], dtype="Int64"), pd.Index([0, SECRET])),
    *(pd.Series(["a", SECRET_WORD], dtype="category"), pd.DataFrame({"a": [0, 1], "b": ["", "b"]})),
    *(torch.tensor([1.0, SECRET]), torch.tensor([[0, SECRET]])),
]
# What stands for the same as an array, or nearly.
DISGUISES = [
    *(tuple, iter, list, pd.Series, lambda x: dict(enumerate(x)), lambda x: list(map(str, x))),
    *(lambda x: [*x, x[0]], lambda x: list(x)[:-1], lambda x: [list(x)]),
    *(lambda x: np.array(x)[::-1], lambda x: np.array(x, dtype=object), np.ma.array),
]
# What takes long or runs what it is given.
NO_JUNK = {"elun.PrivateLogisticRegression.fit", "noisy_gradient_descent.fit", "training.fit"}
NO_JUNK |= {"audit.epsilon_lower_bound", "audit.report"} | READS_FILES
SLOW = {"accounting.compose_subsampled_gaussian", "grading.grade"}
SLOW |= {"noisy_gradient_descent.cost", "noisy_gradient_descent.noise_for"}
# These are no records, and may be quoted.
QUOTED = {"classes", "domain", "orders", "epsilons", "output_distribution", "neighbours"}
QUOTED |= {"evaluate_after"}
WARNINGS = ("classes were read off the labels", "the interval will say next to nothing")


def ask(name, chances):
    """Put junk in the place of each parameter in turn, some of it chosen by lot."""
    call, arguments = make_call(name), make_arguments(name, find_thing(name))
    for p in find_parameters(find_thing(name)):
        works = arguments.get(p.name)
        plain = isinstance(works, list) and not isinstance(works[0], tuple)
        disguised = [disguise(works) for disguise in DISGUISES if plain]
        junk = random.Random(f"{name} {p.name}").sample(JUNK, chances)
        for value in copy.deepcopy([*junk, *([bad] for bad in junk[::4])]) + disguised:
            assert_taken_or_refused(call, arguments | {p.name: value}, p.name)


def assert_taken_or_refused(call, arguments, parameter):
    """Call with junk: a result, or a refusal in words that repeats no record and changes none."""
    before = {name: f"{type(value)} {value!r}" for name, value in arguments.items()}
    try:
        call(**arguments)
    except (ValueError, TypeError, FileNotFoundError) as refusal:
        message, junk = str(refusal), arguments[parameter]
        theirs = parameter in ("X", "y") and "/sklearn/" in raised_in(refusal)
        assert theirs or re.search(rf"\b{parameter}\b| must ", message), (junk, message)
        if parameter not in QUOTED and not isinstance(junk, str | bytes | Number):
            assert str(SECRET) not in message
            assert SECRET_WORD not in message
    except datasets.DatasetUnavailable:
        pass
    except UserWarning as warning:
        assert "/sklearn/" in raised_in(warning) or str(warning).startswith(WARNINGS)  # noqa: PT017
    after = {name: f"{type(value)} {value!r}" for name, value in arguments.items()}
    assert before == after


def raised_in(error):
    return traceback.extract_tb(error.__traceback__)[-1].filename


@pytest.mark.parametrize("name", sorted({*NAMES} - NO_JUNK - SLOW))
def test_junk_is_taken_without_a_warning_or_refused_in_words(name):
    ask(name, 6)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted({*NAMES} - NO_JUNK))
def test_all_junk_is_taken_without_a_warning_or_refused_in_words(name):
    ask(name, len(JUNK))
