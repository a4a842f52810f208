"""kiln.tune by worker processes of the package, and the use of its result."""

import tempfile

import kiln

from checks import ON_GPU, check

ON_THE_GPU = "conv_forward x=f16:32x64x56x56:nhwc w=f16:64x64x3x3:nhwc pad=1"
EMULATED = "softmax_forward x=f32:4x16"


@check("kiln.tune of one layer, and its use")
def _():
    request, candidates = (ON_THE_GPU, 6) if ON_GPU else (EMULATED, 1)
    driver = {} if ON_GPU else {"driver": "emulator"}
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/tuning.db"
        result = kiln.tune([request], candidates=candidates, cache=database, progress=False, **driver)
        plan = kiln.plan(request, context=kiln.Context(cache=database, **driver))
        assert plan.variant == result.layers[0].variant, (plan.variant, result.layers[0].variant)
        return f"{plan.variant} ({plan.source})\n{result}"
