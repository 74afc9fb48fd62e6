import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from dpnotes.release import Release

WORDS = {"mechanism": "Laplace noise", "neighbours": "one record replaced"}


def test_a_release_shows_its_promise():
    shown = repr(Release(np.float64(0.25), np.float32(2), delta=1e-6, **WORDS))
    assert shown == (
        "Release(value=0.25, epsilon=2.0, delta=1e-06, "
        "mechanism='Laplace noise', neighbours='one record replaced')"
    )


def test_a_release_cannot_be_changed():
    release = Release(0.25, 1.0, **WORDS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.epsilon = 0.1
    assert not hasattr(release, "__dict__")


def test_equal_releases_are_equal_whatever_number_types_they_were_made_of():
    ours = Release(np.float32(0.5), 1, delta=0, **WORDS)
    assert ours == Release(Fraction(1, 2), 1.0, **WORDS)
    assert len({ours, Release(0.5, 1.0, **WORDS)}) == 1


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 0, -0.0, np.int64(3)])
def test_no_value_that_noise_could_make_is_refused(value):
    kept = Release(value, 1.0, **WORDS).value
    assert type(kept) is float
    assert kept == value or math.isnan(kept)


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(10**400, 3)])
def test_a_value_beyond_all_floats_is_infinite(value):
    assert Release(value, 1.0, **WORDS).value == (math.inf if value > 0 else -math.inf)
