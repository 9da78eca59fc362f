"""Sets of operators that ETO was evaluated on, as nests: the zoo's models, or a table.

Source: ETO (Fang et al., PVLDB 15(2), 2022), table 2.
"""

from __future__ import annotations

from ..compiler import zoo
from ..compiler.pipelines import LOWER_TO_KERNEL
from ..compiler.targets.levels import run_passes
from ..passes.reuse.kernel_nests import nests_of
from ..passes.reuse.nest import OperatorNest, sketches_of

# He et al. 2015, table 1: ResNet-50 whose blocks have their stride on the first 1x1 convolution.
# (The zoo's has it on the 3x3, as torchvision.) Features, size, channels, window, stride.
_RESNET50 = (
    (64, 112, 3, 7, 2),
    *((64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (256, 56, 64, 1, 1), (64, 56, 256, 1, 1)),
    *((128, 28, 256, 1, 2), (128, 28, 128, 3, 1), (512, 28, 128, 1, 1)),
    *((512, 28, 256, 1, 2), (128, 28, 512, 1, 1)),
    *((256, 14, 512, 1, 2), (256, 14, 256, 3, 1), (1024, 14, 256, 1, 1)),
    *((1024, 14, 512, 1, 2), (256, 14, 1024, 1, 1)),
    *((512, 7, 1024, 1, 2), (512, 7, 512, 3, 1), (2048, 7, 512, 1, 1)),
    *((2048, 7, 1024, 1, 2), (512, 7, 2048, 1, 1)),
)


def conv2d(
    space: tuple[int, int, int, int], channels: int, window: int, stride: int = 1
) -> OperatorNest:
    """A square convolution: images, features, height and width; padded to keep its size."""
    reduction = (channels, window, window)
    sketches = sketches_of("conv2d", space, reduction)
    pads = (window // 2,) * 2
    return OperatorNest("conv2d", sketches, space, reduction, (stride,) * 2, (1, 1), pads)


def resnet50(batch: int = 1) -> list[OperatorNest]:
    """The 20 convolutions of the first ResNet-50."""
    return [conv2d((batch, f, n, n), c, k, stride) for f, n, c, k, stride in _RESNET50]


def zoo_nests(name: str, batch: int = 1, **sizes: int) -> dict[OperatorNest, int]:
    """The nests of a zoo model's kernels, with their counts."""
    program = zoo.build(name, batch, **sizes)
    for passes in LOWER_TO_KERNEL:
        run_passes(program, passes)
    return nests_of(program)


def mobilenet_v2() -> list[OperatorNest]:
    """20 convolutions and 10 depthwise ones; the zoo's classifier is a product."""
    return [nest for nest in zoo_nests("mobilenet-v2") if nest.kind != "matmul"]


def bert(batch: int = 1, sequence: int = 128, hidden: int = 768) -> list[OperatorNest]:
    """The products of one encoder layer, without the pooler."""
    sizes = {"sequence": sequence, "hidden": hidden, "heads": hidden // 64}
    found = zoo_nests("bert-base", batch, layers=1, vocabulary=2, **sizes)
    return [nest for nest in found if nest.space != (1, batch, hidden)]


def berts() -> list[OperatorNest]:
    """BERT-base and -large, batch 1 and 16, 64 and 128 tokens: BERT(L) of the paper."""
    shapes = ((b, s, h) for h in (768, 1024) for b in (1, 16) for s in (64, 128))
    return list(dict.fromkeys(nest for shape in shapes for nest in bert(*shape)))
