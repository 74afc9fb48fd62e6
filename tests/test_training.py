import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from dpnotes import randomized_response, training  # noqa: E402
from dpnotes.symmetric_loss import (  # noqa: E402
    auc_risk,
    barrier_hinge_loss,
    ber_risk,
    corrected_logistic_loss,
    logistic_loss,
    sigmoid_loss,
)
from dpnotes.training import (  # noqa: E402
    Schedule,
    features,
    fit,
    linear,
    networks,
    predict,
)

NETWORKS = [training.reference_cnn, training.small_convnet]
QUICK = Schedule(epochs=4, batch_size=8, learning_rate=0.01, evaluate_after=(1, 2, 3))

RISKS = [
    partial(auc_risk, loss=barrier_hinge_loss, check=False),
    partial(ber_risk, loss=logistic_loss, check=False),
]


def mean_risk(scores, labels, loss=logistic_loss):
    return loss(labels * scores).mean(-1)


@pytest.fixture(autouse=True)
def one_thread():
    """Sums are formed in one order only where one thread forms them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def separable(n=2000, features=5, *, seed=0):
    """Return points, the direction that separates them, and their true labels."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=features)
    direction /= np.linalg.norm(direction)
    points = rng.normal(size=(n, features))
    return points, direction, np.where(points @ direction > 0, 1, -1)


def lie(labels, epsilon, *, seed):
    kept = randomized_response.privatize(np.ones(len(labels), dtype=bool), epsilon, rng=seed)
    return np.where(kept, labels, -labels)


def tensors(points, *labels):
    return torch.tensor(points, dtype=torch.float32), torch.tensor(
        np.stack(labels), dtype=torch.float32
    )


def images(n=24, *, seed=0, runs=2):
    """Return noise of the images' shape, and labels for every run."""
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(256, (n, 32, 32, 3), dtype=torch.uint8, generator=generator)
    labels = 2.0 * torch.randint(2, (runs, n), generator=generator) - 1
    return pixels, labels


def ranked(scores):
    """Return scores without their threshold, on which a risk of pairs says nothing but rounding."""
    return scores - scores.mean(-1, keepdims=True)


def weights_of(fitted):
    return torch.cat([p.detach().flatten() for p in fitted.network.parameters()])


# What is learnt.


@pytest.mark.parametrize(
    "risk",
    [
        partial(auc_risk, loss=barrier_hinge_loss),
        partial(ber_risk, loss=sigmoid_loss),
        partial(
            mean_risk,
            loss=partial(
                corrected_logistic_loss, keep_probability=randomized_response.keep_probability(1.0)
            ),
        ),
    ],
    ids=["auc, barrier hinge", "ber, sigmoid", "mean, corrected logistic"],
)
def test_a_linear_separator_is_recovered_from_labels_that_lie(risk):
    points, direction, truth = separable()
    inputs, labels = tensors(points, lie(truth, 1.0, seed=1))
    assert 0.2 < float((labels[0].numpy() != truth).mean()) < 0.35
    schedule = Schedule(epochs=25, batch_size=250, learning_rate=0.2)
    fitted = fit(linear(5), inputs, labels, [risk], inputs, schedule, seed=0)
    [weight] = fitted.network.weight.detach().numpy()
    cosine = float(weight[:, 0] @ direction / np.linalg.norm(weight))
    assert cosine > 0.98
    assert np.mean(np.sign(fitted.scores[25][0]) == truth) > 0.93


def test_forward_correction_gives_true_odds_where_the_plain_loss_gives_reported_ones():
    keep = randomized_response.keep_probability(1.0)
    # Of 1,000 labels of which 800 are positive, so many are reported so.
    positive = round(800 * keep) + 200 - round(200 * keep)
    reports = np.repeat([1, -1], [positive, 1000 - positive])
    inputs, labels = tensors(np.zeros((1000, 1)), reports, reports)
    corrected = partial(mean_risk, loss=partial(corrected_logistic_loss, keep_probability=keep))
    schedule = Schedule(epochs=100, batch_size=1000, learning_rate=0.1, weight_decay=0.0)
    fitted = fit(linear(1), inputs, labels, [corrected, mean_risk], inputs[:1], schedule, seed=0)
    odds = [math.log(4), math.log(positive / (1000 - positive))]
    np.testing.assert_allclose(fitted.scores[100][:, 0], odds, atol=0.01)


# Many runs at once.


@pytest.mark.parametrize("build", NETWORKS)
def test_a_run_in_an_ensemble_is_the_run_that_one_gets_alone(build):
    pixels, labels = images(runs=2)
    together = fit(build, pixels, labels, RISKS, pixels, QUICK, seed=3)
    for run, risk in enumerate(RISKS):
        alone = fit(build, pixels, labels[run : run + 1], [risk], pixels, QUICK, seed=3)
        for epoch, scores in alone.scores.items():
            np.testing.assert_allclose(
                ranked(together.scores[epoch][run]), ranked(scores[0]), rtol=1e-3, atol=1e-4
            )
    assert np.abs(ranked(together.scores[4][0]) - ranked(together.scores[4][1])).max() > 1e-2


def test_neighbouring_runs_with_one_risk_are_computed_together():
    calls = []

    def first(scores, labels):
        calls.append(len(scores))
        return mean_risk(scores, labels)

    _, labels = images(n=8, runs=4)
    schedule = Schedule(epochs=1, batch_size=8)
    risks = [first, first, mean_risk, first]
    fit(linear(3), torch.zeros(8, 3), labels, risks, torch.zeros(2, 3), schedule, seed=0)
    assert calls == [2, 1]


def test_every_epoch_sees_whole_batches_of_different_examples():
    seen = []

    class Watch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1, 1, 1))

        def forward(self, x):
            if self.training:
                seen.append(x.flatten().tolist())
            return (x * self.weight).view(1, -1, 1)

    inputs = torch.arange(10.0).view(10, 1)
    schedule = Schedule(epochs=20, batch_size=4)
    fit(lambda runs, g: Watch(), inputs, torch.ones(1, 10), [mean_risk], inputs, schedule, seed=0)
    assert [len(batch) for batch in seen] == [4] * 40
    epochs = [a + b for a, b in zip(seen[::2], seen[1::2], strict=True)]
    assert all(len(set(epoch)) == 8 for epoch in epochs)
    assert set().union(*epochs) == set(range(10))
    assert len({tuple(epoch) for epoch in epochs}) == 20


# The networks.


@pytest.mark.parametrize(
    ("build", "weights"), [(NETWORKS[0], 1_304_617), (NETWORKS[1], 23_761)], ids=["cnn", "convnet"]
)
def test_networks_have_the_weights_that_their_layers_add_up_to(build, weights):
    counted = [
        sum(p.numel() for p in build(runs, torch.Generator()).parameters()) for runs in (1, 3)
    ]
    assert counted == [weights, 3 * weights]


def plain_reference(network):
    """Return the reference network as torch's own layers, with the weights of a single run."""
    conv, dense_ = torch.nn.Conv2d, torch.nn.Linear
    layers = [conv(3, 18, 5), conv(18, 48, 5)]
    layers += [dense_(1200, 800), dense_(800, 400), dense_(400, 1)]
    for layer, ours in zip(layers, [network[i] for i in (1, 3, 6, 9, 12)], strict=True):
        weight = ours.weight if ours.weight.ndim == 4 else ours.weight[0].t()
        layer.load_state_dict({"weight": weight, "bias": ours.bias.flatten()})

    def score(pixels):
        x = pixels.permute(0, 3, 1, 2).float() / 127.5 - 1
        for convolution in layers[:2]:
            x = functional.max_pool2d(convolution(x), 2)
        x = x.flatten(1)
        for dense in layers[2:4]:
            x = dense(x).relu()
        return layers[4](x)

    return score


def test_the_reference_network_is_what_its_layers_are_by_themselves():
    pixels, _ = images(n=5)
    network = training.reference_cnn(1, torch.Generator().manual_seed(1)).eval()
    [scores] = network(pixels)
    torch.testing.assert_close(scores, plain_reference(network)(pixels), rtol=1e-4, atol=1e-5)


def test_initial_weights_are_as_wide_as_those_of_torch():
    network = training.reference_cnn(2, torch.Generator().manual_seed(0))
    for layer, inputs in [(network[1], 75), (network[3], 450), (network[6], 1200)]:
        weight = layer.weight.detach()
        assert float(weight.abs().max()) == pytest.approx(inputs**-0.5, rel=0.01)
        assert float(weight.std()) == pytest.approx((3 * inputs) ** -0.5, rel=0.03)
        assert torch.equal(*weight.chunk(2))


def test_dropout_silences_half_of_the_units_while_training_alone():
    dropout = networks.Dropout(torch.Generator().manual_seed(0))
    x = torch.ones(2, 50, 40)
    out = dropout(x)
    assert set(out.unique().tolist()) == {0.0, 2.0}
    assert float(out.mean()) == pytest.approx(1, abs=0.1)
    assert torch.equal(out[0], out[1])
    assert not torch.equal(out, dropout(x))
    assert dropout.eval()(x) is x


def test_scores_do_not_depend_on_how_many_examples_are_scored_at_a_time():
    pixels, _ = images(n=7)
    network = training.small_convnet(2, torch.Generator().manual_seed(0))
    whole = predict(network, pixels)
    assert whole.shape == (2, 7)
    assert whole.dtype == np.float32
    np.testing.assert_allclose(predict(network, pixels, batch_size=2), whole, rtol=1e-4, atol=1e-5)
    assert not network.training


# The same again.


@pytest.mark.parametrize("build", NETWORKS)
def test_a_seed_gives_the_same_run_and_another_seed_another(build):
    pixels, labels = images(n=12)
    schedule = replace(QUICK, epochs=2, evaluate_after=())
    first, second, other = (
        fit(build, pixels, labels, RISKS, pixels, schedule, seed=seed) for seed in (3, 3, 4)
    )
    assert torch.equal(weights_of(first), weights_of(second))
    assert not torch.equal(weights_of(first), weights_of(other))


def test_training_leaves_the_global_generator_alone():
    before = torch.random.get_rng_state()
    pixels, labels = images(n=8)
    fit(training.reference_cnn, pixels, labels, RISKS, pixels, Schedule(1, 8), seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_integers_of_numpy_are_integers():
    """A byte would overflow where sizes are multiplied."""
    for build in NETWORKS:
        ours, theirs = (build(runs, torch.Generator().manual_seed(0)) for runs in (3, np.int8(3)))
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(a, b)
    wide = linear(np.int8(100))(np.int8(2), torch.Generator())
    assert wide.weight.shape == (2, 100, 1)
    inputs, labels = torch.ones(8, 2), torch.ones(1, 8)
    small = Schedule(np.int8(2), np.uint8(8), np.float32(0.125), np.int8(0), [np.int8(1)])
    assert small == Schedule(2, 8, 0.125, 0.0, (1,))
    assert [type(value) for value in vars(small).values()] == [int, int, float, float, tuple, str]
    train = partial(fit, linear(2), inputs, labels, [mean_risk], inputs)
    one = train(small, seed=np.uint8(3), names=[np.str_("a")])
    assert np.array_equal(one.scores[2], train(small, seed=3).scores[2])
    assert predict(one.network, inputs, batch_size=np.int8(3)).shape == (1, 8)
    pixels = np.random.default_rng(0).integers(256, size=(9, 12, 12, 3), dtype=np.uint8)
    sizes = {"filters": np.int8(100), "size": np.int8(6), "stride": np.int8(3)}
    assert training.patch_features(pixels, pixels, rng=0, **sizes)[0].shape == (9, 800)


# What goes wrong.


def test_a_run_that_is_no_longer_finite_stops_with_its_name_and_epoch():
    calls = []

    def breaks(scores, labels):
        calls.append(1)
        return mean_risk(scores, labels) * (math.nan if len(calls) == 5 else 1)

    inputs = torch.randn(16, 2, generator=torch.Generator().manual_seed(0))
    labels = torch.ones(3, 16)
    train = partial(fit, linear(2), inputs, labels, [mean_risk, breaks, mean_risk], inputs, QUICK)
    with pytest.raises(
        FloatingPointError, match="the risk of run 1 is nan in epoch 3: it diverged"
    ):
        train(seed=0)
    calls.clear()
    with pytest.raises(FloatingPointError, match="the risk of run hinge is nan in epoch 3"):
        train(seed=0, names=["square", "hinge", "ramp"])


def test_a_batch_without_one_of_the_classes_stops_instead_of_teaching_nothing():
    inputs, labels = torch.randn(16, 2, generator=torch.Generator()), torch.ones(1, 16)
    with pytest.raises(FloatingPointError, match="or a batch lacks one of its classes"):
        fit(linear(2), inputs, labels, RISKS[:1], inputs, QUICK, seed=0)


def test_inputs_fill_a_batch():
    inputs, labels = torch.zeros(7, 2), torch.ones(1, 7)
    with pytest.raises(ValueError, match="inputs must fill a batch of 8, got 7"):
        fit(linear(2), inputs, labels, [mean_risk], inputs, QUICK, seed=0)


def test_training_on_the_cpu_never_wakes_cuda(monkeypatch):
    def wake():
        raise AssertionError("CUDA was initialised")

    monkeypatch.setattr(torch.cuda, "_lazy_init", wake)
    with pytest.raises(AssertionError, match="CUDA was initialised"):
        torch.cuda.current_device()
    pixels, labels = images()
    for precision in ("float32", "bfloat16"):
        schedule = Schedule(epochs=1, batch_size=8, precision=precision)
        for build in NETWORKS:
            fit(build, pixels, labels, RISKS, pixels, schedule, seed=0)


def test_test_scores_are_in_single_precision_even_where_training_is_not():
    pixels, labels = images(n=64)
    schedule = Schedule(epochs=1, batch_size=8, precision="bfloat16")
    scores = fit(training.reference_cnn, pixels, labels, RISKS, pixels, schedule, seed=0).scores[1]
    rounded = torch.from_numpy(scores).bfloat16().float().numpy()
    assert np.mean(rounded != scores) > 0.9


# Fixed features.


def stripes(n, *, seed):
    """Return images of horizontal (+1) or vertical (-1) stripes in noise."""
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.5, 1, -1)
    wave = 60 * (np.arange(16) // 2 % 2)[:, None] * np.ones(16)
    shown = np.where(labels[:, None, None] > 0, wave, wave.T)[..., None]
    return (shown + rng.integers(100, size=(n, 16, 16, 1))).astype(np.uint8), labels


def test_features_of_patches_tell_what_pixels_show():
    (train, labels), (test, truth) = stripes(300, seed=0), stripes(200, seed=1)
    known, unknown = training.patch_features(train, test, filters=16, size=4, stride=2, rng=0)
    weights = np.linalg.lstsq(known, labels, rcond=None)[0]
    assert np.mean(np.sign(unknown @ weights) == truth) > 0.95


def test_features_are_standardised_on_the_training_images():
    train, _ = stripes(300, seed=0)
    known, again = training.patch_features(train, train[:9], filters=16, size=4, rng=0)
    assert known.dtype == np.float32
    np.testing.assert_allclose(known.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(known.std(0), 1, atol=1e-2)
    np.testing.assert_allclose(known[:9], again, atol=1e-4)


def test_filters_are_patches_whitened_and_brought_to_one_length():
    train, _ = stripes(300, seed=0)
    weights, offset = features._whitened_patches(train, 20, 4, np.random.default_rng(3))
    filters = weights.reshape(20, -1).double().numpy()
    windows = np.lib.stride_tricks.sliding_window_view(train, (4, 4), axis=(1, 2))
    patches = windows.reshape(-1, 16) / 255
    patches = patches - patches.mean(0)
    covariance = np.cov(patches.T)
    covariance += 0.1 * np.trace(covariance) / 16 * np.eye(16)
    # A filter is C^-1 p over the length of C^-1/2 p, for a patch p of the images.
    np.testing.assert_allclose(np.diag(filters @ covariance @ filters.T), 1, atol=0.03)
    found = filters @ covariance
    cosines = found @ patches.T / np.linalg.norm(patches, axis=1)
    assert (cosines.max(1) / np.linalg.norm(found, axis=1) > 0.999).all()
    mean = windows.reshape(-1, 16).mean(0) / 255
    np.testing.assert_allclose(offset, -filters @ mean, atol=0.05)


def test_likeness_and_unlikeness_are_the_parts_of_one_response():
    train, _ = stripes(20, seed=0)
    weights, offset = features._whitened_patches(train, 6, 4, np.random.default_rng(3))
    found = features._responses(train, weights, offset, 2)
    assert found.shape == (20, 48)
    assert (found >= 0).all()
    pixels = torch.from_numpy(train).permute(0, 3, 1, 2) / 255
    response = functional.conv2d(pixels, weights, offset, 2)
    mean = functional.adaptive_avg_pool2d(response, 2).flatten(1)
    size = functional.adaptive_avg_pool2d(response.abs(), 2).flatten(1)
    like, unlike = found.chunk(2, dim=1)
    torch.testing.assert_close(like - unlike, mean, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(like + unlike, size, rtol=1e-4, atol=1e-5)


def test_the_generator_draws_the_patches():
    train, _ = stripes(50, seed=0)
    one, same, other = (
        training.patch_features(train, train, filters=1, size=4, stride=1, rng=rng)[0]
        for rng in (1, np.random.default_rng(1), 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


# On a GPU.


@pytest.mark.gpu
@pytest.mark.parametrize("build", NETWORKS)
def test_a_gpu_takes_the_same_first_steps(build):
    pixels, labels = images()
    schedule = Schedule(epochs=1, batch_size=8, learning_rate=1e-3)
    here = fit(build, pixels, labels, RISKS, pixels, schedule, seed=3)
    there = fit(build, pixels.cuda(), labels.cuda(), RISKS, pixels.cuda(), schedule, seed=3)
    assert next(there.network.parameters()).is_cuda
    np.testing.assert_allclose(there.scores[1], here.scores[1], rtol=0.02, atol=0.02)


@pytest.mark.gpu
@pytest.mark.parametrize("build", NETWORKS)
def test_a_run_in_an_ensemble_on_a_gpu_is_the_run_that_one_gets_alone(build):
    pixels, labels = (x.cuda() for x in images(runs=2))
    schedule = Schedule(epochs=1, batch_size=8, learning_rate=1e-3)
    together = fit(build, pixels, labels, RISKS, pixels, schedule, seed=3)
    for run, risk in enumerate(RISKS):
        alone = fit(build, pixels, labels[run : run + 1], [risk], pixels, schedule, seed=3)
        np.testing.assert_allclose(
            together.scores[1][run], alone.scores[1][0], rtol=0.02, atol=0.02
        )
