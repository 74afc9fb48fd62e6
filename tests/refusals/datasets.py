"""What `dpnotes.datasets` refuses."""

NOT_A_FLAG = [{TypeError: [None, 1, 0.0, "yes"]}]
NOT_A_NAME = [{ValueError: ["", "nonsense", "Adult"], TypeError: [None, 1, b"adult", ["adult"]]}]

WORKING_CALLS = {
    "load_adult": {"split": "test", "download": False},
    "load_mnist": {"download": False},
    "load_cifar10": {"classes": (3, 5), "download": False},
    "load_pate_votes": {"name": "mnist_student_query_indices", "download": False},
    "load_results": {"name": "symmetric_loss"},
    "locate": {"name": "adult"},
}
REFUSED = {
    "load_adult": {"split": NOT_A_NAME, "download": NOT_A_FLAG},
    "load_mnist": {"download": NOT_A_FLAG},
    "load_cifar10": {
        "classes": [{ValueError: [[], [10], [-1]], TypeError: ["35", 3, [3.0], [True], ["3"]]}],
        "download": NOT_A_FLAG,
    },
    "load_pate_votes": {"name": NOT_A_NAME, "download": NOT_A_FLAG},
    "load_results": {
        "name": [{ValueError: ["", "../secrets", "a b"], TypeError: [None, 1, b"adult"]}]
    },
    "locate": {"name": NOT_A_NAME},
}
NOT_CALLED = {
    "load_mnist": "it reads much: `test_datasets` calls it",
    "load_cifar10": "it reads much: `test_datasets` calls it",
    "load_pate_votes": "it may be absent: `test_datasets` calls it",
}
