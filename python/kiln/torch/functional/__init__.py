"""Functions of torch.nn.functional and torch, on Kiln: the same names, arguments and results, with gradients.

What Kiln does not serve raises kiln.Unsupported or kiln.InvalidArgument before anything runs. docs/pytorch.md says what
that is.
"""

from . import activation, attention, columns, convolution, ctc, loss, moves, normalisation, pooling, product, recurrent, sampling
from .activation import *  # noqa: F403
from .attention import *  # noqa: F403
from .columns import *  # noqa: F403
from .convolution import *  # noqa: F403
from .ctc import *  # noqa: F403
from .loss import *  # noqa: F403
from .moves import *  # noqa: F403
from .normalisation import *  # noqa: F403
from .pooling import *  # noqa: F403
from .product import *  # noqa: F403
from .recurrent import *  # noqa: F403
from .sampling import *  # noqa: F403

__all__ = [
    *activation.__all__,
    *attention.__all__,
    *columns.__all__,
    *convolution.__all__,
    *ctc.__all__,
    *loss.__all__,
    *moves.__all__,
    *normalisation.__all__,
    *pooling.__all__,
    *product.__all__,
    *recurrent.__all__,
    *sampling.__all__,
]
