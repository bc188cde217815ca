"""Deformable convolution."""

from .common import Benchmark


class DeformConv2d(Benchmark):
    """3x3 kernels, modulated."""

    operator = "deform_conv2d"
    sizes = {"wide": ((1, 128, 25, 34), 128), "shallow": ((2, 16, 40, 40), 16)}

    def arguments(self, rng, dtype, shape, outputs):
        images, channels, *size = shape
        x, weight = rng.standard_normal(shape), rng.standard_normal((outputs, channels, 3, 3))
        offset, mask = rng.standard_normal((images, 18, *size)), rng.uniform(size=(images, 9, *size))
        arrays = (x.astype(dtype), offset.astype(dtype), weight.astype(dtype))
        return arrays, {"mask": mask.astype(dtype), "padding": 1}
