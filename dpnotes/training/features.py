"""Untrained features: the similarity of an image to random patches of other images."""

import numpy as np
import torch
from torch.nn import functional

from dpnotes._checks import check_integer, check_rng

# The number of patches from which the whitening is estimated.
_PATCHES = 20_000


def patch_features(
    train: np.ndarray,
    test: np.ndarray,
    *,
    filters: int = 128,
    size: int = 6,
    stride: int = 3,
    rng: np.random.Generator | int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Describe images by their similarity to random whitened patches, without training.

    Parameters
    ----------
    train : ndarray of uint8, shape (n, height, width, channels)
        Images from which the patches come, and on which features are standardised. No labels are
        used.
    test : ndarray of uint8, shape (m, height, width, channels)
        More images to describe.
    filters, size, stride : int
        How many patches, up to 20,000; their side and the step between their positions, in pixels.
    rng : Generator, int or None
        Where the randomness comes from; None asks the system for a fresh start.

    Returns
    -------
    (ndarray, ndarray) of float32, shapes (n, 8 * filters) and (m, 8 * filters)
        For each patch, the positive and the negative part of its response, averaged over each
        quarter of the image.

    Notes
    -----
    After Coates, Ng and Lee (2011), An Analysis of Single-Layer Networks in Unsupervised Feature
    Learning.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(256, size=(50, 32, 32, 3), dtype=np.uint8)
    >>> [part.shape for part in patch_features(images, images[:7], filters=4, rng=0)]
    [(50, 32), (7, 32)]
    """
    _check_images("train", train)
    _check_images("test", test)
    if test.shape[1:] != train.shape[1:]:
        raise ValueError(f"test must have images of {train.shape[1:]}, got {test.shape[1:]}")
    filters = check_integer("filters", filters, low=1, high=_PATCHES)
    size = check_integer("size", size, low=1, high=min(train.shape[1:3]))
    stride = check_integer("stride", stride, low=1)
    weights, offset = _whitened_patches(train, filters, size, check_rng(rng))
    known, unknown = (_responses(part, weights, offset, stride) for part in (train, test))
    mean, deviation = known.mean(0), known.std(0) + 1e-6
    return ((known - mean) / deviation).numpy(), ((unknown - mean) / deviation).numpy()


def _check_images(name: str, images: np.ndarray) -> None:
    allowed = "a non-empty array of bytes (n, height, width, channels)"
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        raise TypeError(f"{name} must be {allowed}")
    if images.ndim != 4 or images.size == 0:
        raise ValueError(f"{name} must be {allowed}, got shape {images.shape}")


def _whitened_patches(
    images: np.ndarray, filters: int, size: int, rng: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return filters (filters, channels, size, size), and the offsets of their responses."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    where = [rng.integers(extent, size=_PATCHES) for extent in windows.shape[:3]]
    patches = windows[tuple(where)].reshape(_PATCHES, -1) / 255.0
    mean = patches.mean(0)
    variances, directions = np.linalg.eigh(np.cov(patches.T))
    whiten = directions / np.sqrt(variances + 0.1 * variances.mean()) @ directions.T
    chosen = (patches[:filters] - mean) @ whiten
    weights = chosen / np.linalg.norm(chosen, axis=1, keepdims=True) @ whiten
    shape = (filters, images.shape[-1], size, size)
    return (
        torch.tensor(weights, dtype=torch.float32).view(shape),
        torch.tensor(-weights @ mean, dtype=torch.float32),
    )


def _responses(
    images: np.ndarray, weights: torch.Tensor, offset: torch.Tensor, stride: int
) -> torch.Tensor:
    pooled = []
    for batch in torch.from_numpy(np.require(images, requirements="W")).split(500):
        likeness = functional.conv2d(
            batch.permute(0, 3, 1, 2).float() / 255, weights, offset, stride
        )
        both = torch.cat([likeness, -likeness], dim=1).relu()
        pooled.append(functional.adaptive_avg_pool2d(both, 2).flatten(1))
    return torch.cat(pooled)
