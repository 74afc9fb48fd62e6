"""Every public name says what it takes, gives and refuses, and shows itself at work."""

import importlib
import inspect
import pkgutil
import re
import sys
from operator import attrgetter
from pathlib import Path

import pytest
from public import (
    COMMANDS,
    MODULES,
    classes,
    defined_in,
    functions,
    methods,
    public_modules,
    short_name,
)

import dpnotes

# The extras of the package may be missing; where they are, these modules cannot be imported.
NEED = {"symmetric_loss": "torch", "training": "torch", "elun": "sklearn"}

# What others rely on: more parameters may follow, none may go.
CONTRACT = {
    "accounting": [
        "PrivacyCost(epsilon, delta)",
        "SecretCost(epsilon, delta, order, answered)",
        "epsilon_from_rdp(rdp, orders, delta, *, conversion='improved')",
        "compose(epsilons, delta)",
        "compose_laplace(scale, queries, delta, *, sensitivity=1.0)",
        "compose_gaussian(sigma, queries, delta)",
        "compose_bounded_range(epsilon, queries, delta, *, adaptive=True)",
    ],
    "randomized_response": [
        "keep_probability(epsilon, categories=2)",
        "output_distribution(epsilon, categories=2)",
        "privatize(values, epsilon, *, categories=2, rng=None)",
        "estimate(reports, epsilon, *, categories=2)",
        "variance(counts, epsilon)",
        "two_coin(values, *, rng=None)",
        "shuffled_delta(epsilon, n, local_epsilon, *, others=None)",
    ],
    "unary_encoding": [
        "probabilities(epsilon, scheme='optimized')",
        "epsilon(p, q)",
        "output_distribution(categories, p, q)",
        "encode(values, domain, *, missing='raise')",
        "perturb(bits, p, q, *, rng=None)",
        "aggregate(reports, p, q)",
        "aggregate_ones(ones, n, p, q)",
        "simulate_ones(counts, p, q, *, rng=None)",
        "variance(counts, p, q)",
    ],
    "exponential_mechanism": [
        "sample(utilities, epsilon, *, sensitivity=1.0, size=None, rng=None)",
        "output_distribution(utilities, epsilon, *, sensitivity=1.0)",
    ],
    "label_privacy": [
        "output_distribution(epsilon)",
        "privatize(labels, epsilon, *, classes=(-1, 1), rng=None)",
        "estimate(reports, epsilon, *, classes=(-1, 1))",
        "variance(counts, epsilon)",
        "exponential(labels, stated_epsilon, *, method='independent', rng=None)",
        "log_score_pmf(n, stated_epsilon)",
        "truncated_binomial(n, low, high, p)",
        "success_probability(n, stated_epsilon)",
        "minimum_epsilon(n, failure, *, bound='exact')",
    ],
    "symmetric_loss": [
        "barrier_hinge_loss(margin, b=200.0, r=50.0)",
        "sigmoid_loss(margin)",
        "ramp_loss(margin)",
        "unhinged_loss(margin)",
        "hinge_loss(margin)",
        "logistic_loss(margin)",
        "square_loss(margin)",
        "savage_loss(margin)",
        "corrected_logistic_loss(margin, keep_probability)",
        "ber_risk(scores, labels, loss)",
        "auc_risk(scores, labels, loss)",
        "corruption_rates(positive_fraction, keep_probability)",
    ],
    "training": [
        "fit(build, inputs, labels, risks, test_inputs, schedule, *, seed)",
        "predict(network, inputs)",
        "linear(features)",
        "reference_cnn(runs, generator)",
        "small_convnet(runs, generator)",
        "patch_features(train, test, *, rng=None)",
    ],
    "elun": [
        "sensitivity(lipschitz, regularization, n, *, gradient_tolerance=0.0)",
        "logistic_sensitivity(lipschitz, regularization, n, *, noise_scale=0.0, dimension=1)",
        "l2_laplace_noise(dimension, scale, *, size=None, rng=None)",
        "coordinate_laplace_noise(dimension, scale, *, size=None, rng=None)",
        "log_density(output, centre, scale, *, noise='l2')",
        "expected_logistic_loss(margin, noise_scale)",
        "averaged_logistic_loss(margin, shifts, weights=None)",
        "projected_noise(dimension, nodes=50)",
        "uniform_mixture(dimension, nodes=50)",
        "clip_rows(features, lipschitz, *, bias=True)",
        "minimize_loss(rows, labels, regularization, *, shifts=None, weights=None)",
        "PrivateLogisticRegression(epsilon, *, objective='elun', regularization=None, "
        "lipschitz=2.0, draws=50, classes=(0, 1), random_state=None)",
        "fit_many(models, X, y)",
    ],
    "pate": [
        "partition(n, teachers, *, rng=None)",
        "count_votes(predictions, classes)",
        "output_distribution(votes, scale, *, noise='laplace')",
        "LNMax(gamma)",
        "GumbelMax(scale)",
        "GNMax(sigma)",
        "ConfidentGNMax(threshold, sigma_threshold, sigma)",
        *(
            f"{name}.{method}"
            for name in ("LNMax", "GumbelMax", "GNMax", "ConfidentGNMax")
            for method in (
                "answer(self, votes, *, rng=None)",
                "output_distribution(self, votes)",
                "cost(self, queries, delta, *, answers=None)",
                "secret_cost(self, votes, delta, *, orders=None, conversion='improved',"
                " answered=None)",
            )
        ),
        *(f"{name}.for_cost(epsilon, delta, queries)" for name in ("LNMax", "GumbelMax", "GNMax")),
        "ConfidentGNMax.for_cost(epsilon, delta, queries, *, answers, threshold, ratio)",
        "lnmax_error_probability(votes, gamma, *, method='bound')",
        "gnmax_log_error_probability(votes, sigma)",
        "gnmax_rdp(votes, sigma, orders)",
        "release_cost(mechanism, votes, delta, *, answered, rng=None)",
    ],
    "private_auc": [
        "auc(labels, scores, *, ties='half')",
        "average_precision(labels, scores, *, ties='grouped')",
        "auc_local_sensitivity(positives, negatives)",
        "auc_smooth_sensitivity(positives, negatives, beta)",
        "ap_local_sensitivity(positives, negatives=None)",
        "ap_smooth_sensitivity(positives, beta)",
        "cauchy_scale(epsilon, beta, *, calibration='exact')",
        "log_density(output, labels, scores, epsilon, *, metric='auc')",
        "release_auc(labels, scores, epsilon, *, delta=0.0, noise='auto', calibration='exact', "
        "rng=None)",
        "release_average_precision(labels, scores, epsilon, *, delta=0.0, noise='auto', "
        "calibration='exact', rng=None)",
        "metric_interval(release, *, at_least)",
        "binormal_roc(auc, false_positive_rate)",
        "reidentify_label(known_labels, known_scores, published_auc, *, decimals=None)",
    ],
    "private_confusion": [
        "release_confusion_matrix(labels, predictions, epsilon, *, rng=None)",
    ],
    "audit": [
        "exact_epsilon(output_distribution, *, neighbours=None)",
        "exact_delta(output_distribution, epsilon, *, neighbours=None)",
        "epsilon_lower_bound(mechanism, dataset, neighbour, *, trials, confidence=0.95, delta=0.0,"
        " rng=None)",
    ],
    "datasets": [
        "load_adult(split='train')",
        "load_mnist()",
        "load_cifar10(classes=None)",
        "load_pate_votes(name)",
        "load_results(name)",
    ],
}


FUNCTIONS = [
    pytest.param(function, id=f"{short_name(module)}.{name}")
    for module in MODULES
    for name, function in functions(module).items()
]
CLASSES = [
    pytest.param(kind, id=f"{short_name(module)}.{name}")
    for module in MODULES
    for name, kind in classes(module).items()
]
METHODS = [
    pytest.param(kind, name, id=f"{short_name(module)}.{kind.__name__}.{name}")
    for module in MODULES
    for kind in classes(module).values()
    for name in methods(kind)
]


def faults_of(function, wanted=("Returns", "Raises", "Examples")):
    """Return what the documentation of a function, a class or a method leaves out."""
    signature, documentation = inspect.signature(function), inspect.getdoc(function) or ""
    sections = split_sections(documentation)
    wanted = [*wanted] + ["Parameters"] * bool(signature.parameters)
    faults = [f"no section {name}" for name in wanted if name not in sections]
    if not re.match(r"[A-Z].*\.(\n\n|$)", documentation):
        faults.append("no first line that is a sentence by itself")
    listed = documented_names(sections.get("Parameters", ""))
    if listed != list(signature.parameters):
        faults.append(f"parameters listed as {listed}")
    if "Examples" in wanted and ">>>" not in sections.get("Examples", ""):
        faults.append("no example that runs")
    annotations = {name: p.annotation for name, p in signature.parameters.items()}
    annotations["return"] = signature.return_annotation
    return faults + [
        f"no type hint: {name}" for name, hint in annotations.items() if hint is inspect._empty
    ]


def split_sections(documentation):
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", documentation, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented_names(section):
    lines = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", section, flags=re.MULTILINE)
    return [name.lstrip("*") for line in lines for name in line.split(", ")]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_public_function_is_documented_in_full(function):
    faults = faults_of(function)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_is_documented_with_all_that_it_takes(kind):
    faults = faults_of(kind, wanted=["Examples"])
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_every_method_says_what_it_takes_gives_and_refuses(kind, name):
    # Looked up on an object that nobody made, so that `self` is no parameter.
    method = getattr(object.__new__(kind), name)
    faults = faults_of(method, wanted=["Returns", "Raises"])
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_module_and_class_says_what_it_is(module):
    assert inspect.getdoc(module), f"{module.__name__} needs a docstring of its own"
    for thing in defined_in(module, inspect.isclass):
        assert vars(thing).get("__doc__"), thing.__name__


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_package_lists_its_public_names_and_no_file_of_it_hides_one(module):
    if not hasattr(module, "__path__"):
        return
    listed = set(module.__all__)
    assert listed == {name for name in listed if hasattr(module, name)}
    unlisted = {*functions(module), *classes(module)} - listed
    assert not unlisted, f"__all__ of {module.__name__} needs {', '.join(sorted(unlisted))}"
    for found in pkgutil.iter_modules(module.__path__):
        file = importlib.import_module(f"{module.__name__}.{found.name}")
        for kind in (inspect.isfunction, inspect.isclass):
            hidden = {thing.__name__ for thing in defined_in(file, kind)} - listed - COMMANDS
            assert not hidden or found.name.startswith("_"), (found.name, hidden)


def test_every_module_has_a_page_that_the_page_of_the_package_links_to():
    book = Path(__file__).parents[1] / "book"
    overview = (book / "api.md").read_text(encoding="utf-8")
    for module in MODULES:
        page = book / "api" / f"{short_name(module)}.md"
        assert page.exists(), f"book/api needs a page {page.name}, like its neighbours"
        listed = re.findall(r"^\.\. automodule:: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
        assert listed == [module.__name__]
        assert f"(api/{page.name})" in overview, f"book/api.md needs a link to {page.name}"


def test_a_new_module_is_found_by_itself(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("def bare(counts):\n    return counts\n")
    monkeypatch.setattr(dpnotes, "__path__", [*dpnotes.__path__, str(tmp_path)])
    [found] = [module for module in public_modules() if short_name(module) == "planted"]
    del sys.modules["dpnotes.planted"], dpnotes.planted
    assert "no section Returns" in faults_of(functions(found)["bare"])


def test_a_bare_function_would_be_noticed():
    def bare(counts, rng: int = 0):
        """count something"""

    assert faults_of(bare) == [
        "no section Returns",
        "no section Raises",
        "no section Examples",
        "no section Parameters",
        "no first line that is a sentence by itself",
        "parameters listed as []",
        "no example that runs",
        "no type hint: counts",
        "no type hint: return",
    ]


def breaches_of(function, promised):
    """Return how a signature differs from the promised one, but for further optional parameters."""
    given = inspect.signature(function).parameters
    breaches = [
        str(parameter)
        for name, parameter in promised.parameters.items()
        if name not in given or not agrees(given[name], parameter)
    ]
    if places(given)[: len(places(promised.parameters))] != places(promised.parameters):
        breaches.append("order")
    extra = [given[name] for name in given if name not in promised.parameters]
    return breaches + [f"required: {p.name}" for p in extra if p.default is p.empty]


def places(parameters):
    return [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]


def agrees(given, promised):
    return (given.kind, given.default) == (promised.kind, promised.default)


def signature_of(words):
    names = {}
    exec(f"def promised({words.partition('(')[2]}: pass", names)
    return inspect.signature(names["promised"])


@pytest.mark.parametrize(
    ("module", "words"), [(module, words) for module in CONTRACT for words in CONTRACT[module]]
)
def test_every_name_that_others_rely_on_is_as_promised(module, words):
    if module in NEED:
        pytest.importorskip(NEED[module])
    function = attrgetter(words.partition("(")[0])(importlib.import_module(f"dpnotes.{module}"))
    assert breaches_of(function, signature_of(words)) == []


@pytest.mark.parametrize(
    "broken",
    ["f(a, b=3)", "f(b=2, *, a)", "f(a)", "f(a, *, b=2)", "f(c, a, b=2)", "f(a, b=2, *, c)"],
)
def test_a_changed_signature_would_be_noticed(broken):
    promised = signature_of("f(a, b=2)")
    names = {}
    exec(f"def {broken}: pass", names)
    assert breaches_of(names["f"], promised)
    exec("def f(a, b=2, *, c=None): pass", names)
    assert breaches_of(names["f"], promised) == []
