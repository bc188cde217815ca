"""multi_scale_deform_attn: errors, grid_sample as MMCV's formula has it, any number of threads."""

import numpy as np
import pytest

import detops
from tests.support import calls
from tests.support.comparison import BACKENDS

GIVEN = calls.ordinary("multi_scale_deform_attn").arrays


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (
            {"value": np.zeros((2, 60, 10))},
            ValueError,
            "value: expected shape (num_images, num_keys, num_heads, channels), got (2, 60, 10)",
        ),
        (
            {"attention_weights": np.zeros((1, 6, 2, 2, 3))},
            ValueError,
            "attention_weights: expected shape (2, num_queries, 2, num_levels, num_points), got (1, 6, 2, 2, 3)",
        ),
        (
            {"sampling_locations": np.zeros((2, 6, 2, 2, 3, 3))},
            ValueError,
            "sampling_locations: expected shape (2, 6, 2, 2, 3, 2), got (2, 6, 2, 2, 3, 3)",
        ),
        ({"spatial_shapes": [[6, 8]]}, ValueError, "spatial_shapes: expected shape (2, 2), got (1, 2)"),
        ({"level_start_index": [0]}, ValueError, "level_start_index: expected shape (2,), got (1,)"),
        ({"level_start_index": [0.0, 48.0]}, TypeError, "level_start_index: expected an integer dtype, got float64"),
        (
            {"spatial_shapes": [[6, 8], [-3, -4]]},
            ValueError,
            "spatial_shapes: expected sizes of at least 0, got -3 x -4 in level 1",
        ),
        (
            {"spatial_shapes": [[6, 8], [3, 5]]},
            ValueError,
            "level_start_index: expected maps within 60 keys, got 3 x 5 elements from 48 on in level 1",
        ),
        (
            {"spatial_shapes": [[2**62, 2**62], [3, 4]]},
            ValueError,
            f"level_start_index: expected maps within 60 keys, got {2**62} x {2**62} elements from 0 on in level 0",
        ),
        (
            {"level_start_index": [-1, 48]},
            ValueError,
            "level_start_index: expected maps within 60 keys, got 6 x 8 elements from -1 on in level 0",
        ),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_errors(backend, changed, error, message):
    with pytest.raises(error) as caught:
        detops.multi_scale_deform_attn(**{**GIVEN, **changed}, backend=backend)
    assert str(caught.value) == message


def test_grid_sample_of_each_level_gives_the_same():
    """MMCV's formula: the maps of each level are sampled at 2 * locations - 1, and summed with their weights."""
    value, locations, weights = (GIVEN[name] for name in ("value", "sampling_locations", "attention_weights"))
    wanted = np.zeros((2, 2, value.shape[3], locations.shape[1]))
    for level, ((height, width), start) in enumerate(
        zip(GIVEN["spatial_shapes"], GIVEN["level_start_index"], strict=True)
    ):
        maps = value[:, start : start + height * width].transpose(0, 2, 3, 1).reshape(4, -1, height, width)
        grid = 2 * locations[:, :, :, level].transpose(0, 2, 1, 3, 4).reshape(4, -1, 3, 2) - 1
        share = weights[:, :, :, level].transpose(0, 2, 1, 3).reshape(4, 1, -1, 3)
        wanted += (detops.grid_sample(maps, grid) * share).sum(-1).reshape(wanted.shape)
    got = detops.multi_scale_deform_attn(**GIVEN)
    np.testing.assert_allclose(got, wanted.transpose(0, 3, 1, 2).reshape(got.shape), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_any_number_of_threads(backend):
    case = calls.ordinary("multi_scale_deform_attn", 200).cast("float32")
    before = detops.get_num_threads()
    try:
        detops.set_num_threads(1)
        wanted = detops.multi_scale_deform_attn(**case, backend=backend)
        for threads in (2, 5):
            detops.set_num_threads(threads)
            np.testing.assert_array_equal(detops.multi_scale_deform_attn(**case, backend=backend), wanted)
    finally:
        detops.set_num_threads(before)
