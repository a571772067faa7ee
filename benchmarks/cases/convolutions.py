"""Compiled convolutions, their gradients, pools, and steps of small nets: features last for Gradix and JAX, first for PyTorch."""

import numpy

from benchmarks.case import case
from benchmarks.cases.kernels import LIMIT, compiled
from benchmarks.cases.orders import normal

LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC")}


def features_first(value, axis):
    """PyTorch's copy with the last axis moved to `axis`, the two last axes of a kernel exchanged and moved to the front."""
    return value.movedim(-1, axis) if axis else value.movedim((-1, -2), (0, 1))


def convolution(what, images, kernel, stride=1):
    """Cases of a convolution with padding "SAME", and of its gradients, of images (batch, space, features) and a kernel."""
    space, sizes = len(images) - 2, "x".join(map(str, images))
    name = f"{sizes}, {'x'.join(map(str, kernel[:-2]))}{f' by {stride}' if stride > 1 else ''} to {kernel[-1]}"
    out = (images[0], *[-(-n // stride) for n in images[1:-1]], kernel[-1])

    def run(x):
        return lambda a, w: x.lax.conv_general_dilated(
            a, w, (stride,) * space, "SAME", dimension_numbers=LAYOUTS[space]
        )

    def operands(x):
        return normal(x, *images), normal(x, *kernel), normal(x, *out)

    def make(x, part):
        a, w, c = operands(x)
        if part is None:
            return compiled(x, run(x), a, w)
        return compiled(
            x,
            lambda a, w, c: x.api.vjp(
                lambda v: run(x)(*(v if i == part else u for i, u in enumerate((a, w)))), (a, w)[part]
            )[1](c),
            a,
            w,
            c,
        )

    def make_torch(x, part):
        a, w, c = operands(x)
        a, w, c = (features_first(v, i).contiguous() for v, i in ((a, 1), (w, 0), (c, 1)))
        halves = [(k - 1) // 2 for k in kernel[:-2]]
        if part is None:
            return lambda: x.api.convolution(a, w, None, [stride] * space, halves, [1] * space, False, [0] * space, 1)
        wanted = [part == 0, part == 1, False]
        return lambda: x.api.ops.aten.convolution_backward(
            c, a, w, None, [stride] * space, halves, [1] * space, False, [0] * space, 1, wanted
        )

    for part, title in ((None, "conv"), (0, "to input"), (1, "to kernel")):
        if title in what:
            case(f"{title} {name}", "convolutions", LIMIT, torch=lambda x, p=part: make_torch(x, p))(
                lambda x, p=part: make(x, p)
            )


BOTH, ALL = ("conv", "to kernel"), ("conv", "to input", "to kernel")
convolution(BOTH, (8, 32, 32, 3), (3, 3, 3, 16))
convolution(BOTH, (32, 28, 28, 1), (5, 5, 1, 6))
convolution(BOTH, (32, 28, 28, 1), (3, 3, 1, 16))
convolution(BOTH, (32, 28, 28, 1), (3, 3, 1, 32))
convolution(ALL, (32, 14, 14, 6), (5, 5, 6, 16))
# The convolution of this one is itself a case of the group of kernels.
convolution(("to input", "to kernel"), (8, 32, 32, 16), (3, 3, 16, 32))
convolution(ALL, (32, 32, 32, 16), (3, 3, 16, 16))
convolution(ALL, (8, 33, 33, 16), (3, 3, 16, 32), 2)
convolution(ALL, (8, 28, 28, 64), (3, 3, 64, 64))
convolution(("conv", "to kernel"), (32, 32, 32, 3), (3, 3, 3, 32))
convolution(("conv",), (1, 512, 512, 1), (3, 3, 1, 1))
convolution(("conv",), (1, 512, 512, 1), (5, 5, 1, 1))
convolution(("conv",), (1, 512, 512, 1), (11, 11, 1, 1))
convolution(("conv",), (32, 1000, 1), (15, 1, 1))
convolution(("conv",), (32, 1000, 1), (3, 1, 16))
convolution(("conv",), (32, 1000, 4), (5, 4, 16))
convolution(("conv",), (32, 1000, 16), (3, 16, 16))

for _count, _by in ((1000, 10), (10_000, 100), (100_000, 10), (100_000, 100), (100_000, 1000)):

    def _convolve(x, count=_count, by=_by):
        return compiled(x, x.np.convolve, normal(x, count), normal(x, by))

    def _convolve_numpy(x, count=_count, by=_by):
        a, w = normal(x, count), normal(x, by)
        return lambda: numpy.convolve(a, w)

    case(f"convolve {_count} by {_by}", "convolutions", LIMIT, numpy=_convolve_numpy)(_convolve)


def pool(kind, shape, size, stride, gradient):
    """A pool of images (batch, rows, columns, features), or the gradient to them."""

    def run(x):
        if kind == "max":
            return lambda a: x.lax.reduce_window(
                a, -x.np.inf, x.lax.max, (1, size, size, 1), (1, stride, stride, 1), "VALID"
            )
        return lambda a: (
            x.lax.reduce_window(a, 0.0, x.lax.add, (1, size, size, 1), (1, stride, stride, 1), "VALID") / size**2
        )

    def make(x):
        a = normal(x, *shape)
        if not gradient:
            return compiled(x, run(x), a)
        return compiled(x, lambda a, c: x.api.vjp(run(x), a)[1](c), a, run(x)(a))

    def make_torch(x):
        a = features_first(normal(x, *shape), 1).contiguous()
        f = x.nn.max_pool2d if kind == "max" else x.nn.avg_pool2d
        c = f(a, size, stride)
        if not gradient:
            return lambda: f(a, size, stride)
        a.requires_grad_()
        return lambda: x.api.autograd.grad(f(a, size, stride), a, c)

    name = f"{kind} pool {'x'.join(map(str, shape))}, {size}x{size} by {stride}"
    case(f"gradient of {name}" if gradient else name, "convolutions", LIMIT, torch=make_torch)(make)


for _kind in ("max", "avg"):
    for _gradient in (False, True):
        pool(_kind, (32, 28, 28, 16), 2, 2, _gradient)
        pool(_kind, (8, 56, 56, 64), 3, 2, _gradient)


def lenet_params(x):
    """Two kernels and three matrices."""
    shapes = ((5, 5, 1, 6), (5, 5, 6, 16), (784, 120), (120, 84), (84, 10))
    return [x.np.asarray(normal(x, *shape)) / 10 for shape in shapes]


def lenet_torch(x, batch):
    """PyTorch's loss of the same net and its gradients."""
    params = [(features_first(p, 0) if p.ndim == 4 else p).contiguous().requires_grad_() for p in lenet_params(x)]
    images, targets = (features_first(normal(x, batch, 28, 28, 1), 1).contiguous(), normal(x, batch, 10))

    def step():
        h = images
        for w in params[:2]:
            h = x.nn.max_pool2d(x.nn.relu(x.nn.conv2d(h, w, padding=2)), 2)
        h = h.flatten(1)
        for w in params[2:4]:
            h = x.nn.relu(h @ w)
        return x.api.autograd.grad(((h @ params[4] - targets) ** 2).mean(), params)

    return step


def lenet(x, batch):
    """The loss of a net of two convolutions and three layers, and its gradients."""
    images, targets = normal(x, batch, 28, 28, 1), normal(x, batch, 10)

    def loss(params):
        h = images
        for w in params[:2]:
            h = x.nn.relu(x.lax.conv_general_dilated(h, w, (1, 1), "SAME", dimension_numbers=LAYOUTS[2]))
            h = x.lax.reduce_window(h, -x.np.inf, x.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        h = h.reshape(batch, -1)
        for w in params[2:4]:
            h = x.nn.relu(h @ w)
        return ((h @ params[4] - targets) ** 2).mean()

    return compiled(x, x.api.value_and_grad(loss), lenet_params(x))


for _batch in (32, 128):
    case(f"LeNet's step, batch {_batch}", "convolutions", LIMIT, torch=lambda x, b=_batch: lenet_torch(x, b))(
        lambda x, b=_batch: lenet(x, b)
    )
