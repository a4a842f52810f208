"""Contexts, errors, tuning and explanations."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import kiln

REQUEST = "softmax_forward x=f32:4x16"


def test_errors_have_a_class_a_code_and_a_hint(context):
    with pytest.raises(kiln.ParseError) as parse:
        kiln.plan("softmax_forward x=f33:4x16", context=context)
    assert parse.value.code == "parse error"
    assert isinstance(parse.value, (kiln.Error, ValueError))
    with pytest.raises(kiln.InvalidArgument) as wrong:
        kiln.Context(driver="emulator", device=7)
    assert wrong.value.hint and str(wrong.value) == f"{wrong.value.message} ({wrong.value.hint})"


def test_rows_have_the_same_bits_in_every_batch():
    told = []
    invariant = kiln.Context(driver="emulator", cache="off", batch_invariant=True, announce=told.append)
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((64, 301), dtype=np.float32), rng.standard_normal((301, 24), dtype=np.float32)
    every = kiln.gemm(a, b, context=invariant)
    for first, count in ((0, 1), (5, 2), (3, 33)):
        some = kiln.gemm(a[first : first + count], b, context=invariant)
        assert some.tobytes() == every[first : first + count].tobytes()
    assert kiln.gemm(a[:1], b, batch_invariant=True).tobytes() == every[:1].tobytes()
    assert not any("batch invariant" in message for message in told)
    kiln.gemm(a.T, a, context=invariant)
    assert any("gemm is not batch invariant" in message for message in told)
    with pytest.raises(kiln.InvalidArgument, match="the batch lies inside other dimensions of a"):
        kiln.gemm(a.T, a, batch_invariant=True)
    with pytest.raises(kiln.InvalidArgument, match="batch_invariant is 1"):
        kiln.Context(driver="emulator", batch_invariant=1)


def test_every_code_has_its_class(context):
    codes = {kind.code for kind in kiln.Error.__subclasses__()}
    assert "input/output error" in codes and "out of memory" in codes
    with pytest.raises(kiln.MissingLibrary):
        kiln.Context(driver="/nowhere/libcuda.so")


def test_announcements_are_warnings_or_go_to_the_caller(tmp_path):
    told = []
    pack = tmp_path / "missing.pack"
    kiln.Context(driver="emulator", cache="off", packs=[pack], announce=told.append)
    assert any("missing.pack" in message for message in told)
    with pytest.warns(kiln.Warning, match="missing.pack") as warned:
        kiln.Context(driver="emulator", cache="off", packs=pack)
    assert {each.filename for each in warned} == {__file__}
    told.clear()
    kiln.Context(driver="emulator", cache="off", bundles=tmp_path / "missing.bundle", announce=told.append)
    assert any("missing.bundle" in message for message in told)


def test_a_database_that_is_not_there_is_announced(tmp_path, monkeypatch):
    missing = tmp_path / "none" / "tuning.db"
    told = []
    kiln.Context(driver="emulator", cache=missing, announce=told.append)
    assert [message for message in told if str(missing) in message and "there is no database" in message]
    monkeypatch.setenv("KILN_CACHE", str(missing))
    with pytest.warns(kiln.Warning, match="there is no database .*tuning.db"):
        kiln.Context(driver="emulator")
    assert not missing.parent.exists()
    told.clear()
    kiln.Context(driver="emulator", cache="off", announce=told.append)
    kiln.Context(driver="emulator", cache=tmp_path / "new.db", announce=told.append, tuning=kiln.Tuning("within_budget"))
    assert not told


def test_a_context_has_its_own_settings(tmp_path):
    long = "gemm a=f32:2x20000 b=f32:20000x3"
    assert kiln.plan(long, context=kiln.Context(driver="emulator", cache="off")).workspace_bytes > 0
    context = kiln.Context(driver="emulator", cache="off", workspace_limit=16, kernel_store=tmp_path / "store")
    assert kiln.plan(long, context=context).workspace_bytes <= 16
    assert list((tmp_path / "store").iterdir())


def test_a_context_keeps_as_many_plans_as_it_is_told():
    context = kiln.Context(driver="emulator", cache="off", kept_plans=2, kept_plan_bytes=1 << 20)
    for length in range(2, 7):
        context.prepare(f"tensor_set y=f32:{length}")
    count = context.plan_count
    assert (count.plans, count.held, count.given_up) == (2, 0, 3)
    assert count.bytes > 0
    held = kiln.plan("tensor_set y=f32:9", context=context)
    context.prepare(["tensor_set y=f32:10", "tensor_set y=f32:11"])
    assert context.plan_count.held == 1
    del held
    assert context.plan_count.held == 0


def test_a_first_call_may_be_served_at_once(tmp_path):
    context = kiln.Context(driver="emulator", cache="off", kernel_store=tmp_path / "store", first_call="at_once")
    assert "_open " not in kiln.plan("softmax_forward x=f32:4x37", context=context).variant
    context.wait_until_tuned()
    request = "softmax_forward x=f32:3x37"
    first = kiln.plan(request, context=context)
    assert "_open " in first.variant
    context.wait_until_tuned()
    assert "_open " not in kiln.plan(request, context=context).variant
    assert "_open " in first.variant


def test_requests_that_define_user_code_are_refused_where_asked(context):
    text = "# a layer\nexpression twice\n2.0f * acc\nend expression\nsoftmax_forward x=f32:2x4 epilogue=user:twice\n"
    with pytest.raises(kiln.InvalidArgument, match="line 2: user code is refused here: .* expression twice") as raised:
        context.prepare(text, allow_code=False)
    assert "allow_code=True" in raised.value.hint
    context.prepare(text)
    context.prepare(REQUEST, allow_code=False)
    with pytest.raises(kiln.InvalidArgument, match="allow_code is 1 .give True or False"):
        context.prepare(REQUEST, allow_code=1)


def test_a_context_prepares_and_says_what_it_is(context):
    context.prepare([REQUEST, "# a comment", "tensor_set y=f32:7"])
    assert context.emulated
    assert "emulated" in context.device_id
    assert "Kiln emulated" in repr(context)
    with pytest.raises(kiln.Error):
        context.prepare("nonsense")


def test_a_line_with_user_code_of_this_process_is_known(context, tmp_path):
    """Lines name code by its digest: plans, explanations and tuning find what it means."""
    gate = np.full((4, 16), 3.0, np.float32)
    code = kiln.expression("acc * gate + 0.25f", gate=gate)
    x, y = np.ones((4, 16), np.float32), np.empty((4, 16), np.float32)
    line = kiln.plan_of_call("activation_forward", x=x, y=y, mode="relu", epilogue=code, context=context).request
    assert " epilogue=user:" in line
    del code
    plan = kiln.plan(line, context=context)
    plan.run(x=x, y=y, epilogue=kiln.expression("acc * gate + 0.25f", gate=gate))
    assert (y == 3.25).all()
    context.prepare([line])
    assert context.explain(line).chosen is not None
    for work in (line, [line, "tensor_set y=f32:7"]):
        result = kiln.tune(work, candidates=1, cache=tmp_path / "a.db", driver="emulator", progress=False)
        assert result.layers[0].request == line and result.layers[0].seconds
    with pytest.raises(kiln.ParseError, match="^request 2: .*unknown operation"):
        kiln.tune([line, "softmax x=f32:4"], cache=tmp_path / "a.db", driver="emulator", progress=False)


def test_user_code_that_nobody_knows_is_refused_with_what_to_do(context):
    line = f"activation_forward x=f32:4x16 mode=relu epilogue=user:{'0' * 31}1"
    for call in (lambda: kiln.plan(line, context=context), lambda: context.prepare(line)):
        with pytest.raises(kiln.InvalidArgument, match="make the code by kiln.expression.. before"):
            call()


def test_code_that_a_requests_file_defines_is_known_from_then_on(context):
    definition = "expression halved()\nacc * 0.5f\nend expression\n"
    context.prepare(definition + "activation_forward x=f32:3x5 mode=relu epilogue=user:halved")
    code = kiln.expression("acc * 0.5f")
    x, y = np.ones((3, 5), np.float32), np.empty((3, 5), np.float32)
    line = kiln.plan_of_call("activation_forward", x=x, y=y, mode="relu", epilogue=code, context=context).request
    assert kiln.plan(line, context=context).request == line


def test_tuning_by_the_program_and_what_it_found(tmp_path):
    database = tmp_path / "tuning.db"
    result = kiln.tune([REQUEST], candidates=1, cache=database, driver="emulator", progress=False)
    assert result.modelled
    assert len(result.layers) == 1
    layer = result.layers[0]
    assert layer.variant and layer.seconds > 0
    assert layer.variant.split()[0] in repr(result)
    assert "<table>" in result._repr_html_()
    context = kiln.Context(driver="emulator", cache=database)
    why = context.explain(REQUEST)
    assert why.stored and f"{why.chosen.algorithm} {why.chosen.config}" == layer.variant
    assert "modelled on this device" in repr(why)
    assert "<td style=" in why._repr_html_()


def test_a_context_that_tunes_by_itself(tmp_path):
    database = tmp_path / "tuning.db"
    tuning = kiln.Tuning("within_budget", budget=60, candidates=1)
    context = kiln.Context(driver="emulator", cache=database, tuning=tuning)
    assert context.tuning is tuning
    kiln.softmax_forward(np.zeros((4, 16), np.float32), context=context)
    assert context.explain(REQUEST).stored


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import kiln

tuning = kiln.Tuning("within_budget", budget=600, candidates=10000)
context = kiln.Context(driver="emulator", cache=sys.argv[1], tuning=tuning)
x, w = np.zeros((4, 16, 32, 32), np.float32), np.zeros((16, 16, 3, 3), np.float32)
threading.Timer(8, os.kill, (os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    kiln.conv_forward(x, w, context=context)
    print("was not interrupted")
except KeyboardInterrupt:
    assert time.monotonic() - began < 60, time.monotonic() - began
kiln.conv_forward(x, w, context=context)  # by what is known now; it is not tuned again
assert time.monotonic() - began < 120
plan = kiln.plan("conv_forward x=f32:4x16x32x32 w=f32:16x16x3x3 y=f32:4x16x30x30", context=context)
print(plan.source)
"""


def test_ctrl_c_ends_the_tuning_of_a_context_and_keeps_what_was_measured(tmp_path):
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "tuning.db")]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "modelled on this device\n"


def test_tuning_that_cannot_begin_raises_what_the_program_said():
    with pytest.raises(kiln.ParseError, match="softmax_forwrd"):
        kiln.tune("softmax_forwrd x=f32:4x16", driver="emulator", progress=False)


class Program:
    """Stands for the program: keeps its command, and says what it is told to."""

    def __init__(self, status=0, said=""):
        self.status, self.said = status, said

    def __call__(self, command, variables, result, show):
        self.command = command
        result.write('{"device": "a device", "layers": []}')
        return self.status, self.said


def test_tuning_tells_the_program_all_of_its_options(monkeypatch):
    program = Program()
    monkeypatch.setattr("kiln.tuning._run", program)
    kiln.tune(REQUEST, budget=7.5, candidates=3, cache="a.db", device=2, progress=False)
    given = " ".join(program.command)
    for option in ("--budget 7.5", "--candidates 3", "--db a.db", "--device 2", f"-- {REQUEST}"):
        assert f" {option}" in given


def test_what_the_program_says_besides_its_result_is_a_warning(monkeypatch):
    monkeypatch.setattr("kiln.tuning._run", Program(said="the device is slow today"))
    with pytest.warns(kiln.Warning, match="slow today"):
        kiln.tune(REQUEST, progress=False)


@pytest.mark.filterwarnings("ignore::kiln.Warning")
def test_the_default_context_is_made_again_after_tuning(monkeypatch):
    monkeypatch.setattr("kiln.tuning._run", Program())
    before = kiln.default_context()
    kiln.tune(REQUEST, progress=False)
    assert kiln.default_context() is not before


def test_importing_needs_no_framework_and_no_device():
    code = "import sys, kiln; assert not {'numpy', 'torch'} & set(sys.modules); print(kiln.__version__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == kiln.__version__


def test_a_default_context_for_each_device(monkeypatch):
    monkeypatch.setenv("KILN_DRIVER", "emulator")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kiln.Warning)
        assert kiln.default_context() is kiln.default_context(0)
