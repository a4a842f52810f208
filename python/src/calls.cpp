#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "arguments.h"
#include "context.h"
#include "extension_interface.h"
#include "host_memory.h"
#include "kiln/call.h"
#include "plan.h"

namespace kiln::python {
namespace {

// Tensors, numbers and integers of a call.
using Given = std::tuple<TensorDict, NumberDict, IntegerDict>;

void call_by_name(PythonContext& context, const std::string& what, const Given& given, const PythonEpilogue* epilogue,
                  const nb::object& written, const Streams& streams, std::pair<uintptr_t, int64_t> workspace) {
  const auto& [tensors, numbers, integers] = given;
  const Arguments arguments(tensors, numbers, integers, epilogue);
  context.require(arguments.tensors(), written);
  CallOptions options = arguments.options();
  options.workspace = reinterpret_cast<void*>(workspace.first);
  options.workspace_bytes = workspace.second;
  enqueue_on(context.get(), arguments.tensors(), streams,
             [&](Stream stream) { call(context.get(), what, arguments.named(), options, stream); });
}

// Does the work of another module of the package: the capsule holds a Work.
void do_work(PythonContext& context, const nb::capsule& work, const Arguments& arguments, const nb::object& written,
             const Streams& streams) {
  context.require(arguments.tensors(), written);
  const auto& function = *static_cast<const Work*>(work.data(name_of_work));
  enqueue_on(context.get(), arguments.tensors(), streams,
             [&](Stream stream) { function(context.get(), arguments.named(), stream); });
}

// The line of a request with those tensors.
std::string line_of(const std::string& what, const TensorDict& tensors) {
  std::string line = what;
  for (const GivenTensor& given : given_tensors(tensors)) {
    line.append(" ").append(given.name).append("=").append(given.tensor.spec().print());
  }
  return line;
}

// (name, dtype, extents, strides) of each operand of a request, those left out as they are then.
nb::list operands_of(const std::string& line) {
  nb::list operands;
  for (const Operand& operand : Request::parse(line).operands) {
    nb::list extents, strides;
    for (const int64_t extent : operand.spec.extents) extents.append(extent);
    for (const int64_t stride : operand.spec.strides) strides.append(stride);
    operands.append(nb::make_tuple(operand.name, std::string(framework_name(operand.spec.dtype)), nb::tuple(extents),
                                   nb::tuple(strides)));
  }
  return operands;
}

// (the canonical line of a request that ends in that user code, the lines that define the code)
nb::tuple key_with_code(const std::string& line, const PythonEpilogue& epilogue) {
  const kiln::Expression& code = *epilogue.get().code();
  const auto of_prologue = std::span(code.tensors()).subspan(code.epilogue_tensors());
  std::string whole = line + " epilogue=user:" + code.digest();
  for (const GivenTensor& given : epilogue.tensors()) {
    const bool in_prologue = std::ranges::find(of_prologue, given.name) != of_prologue.end();
    whole.append(in_prologue ? " prologue." : " epilogue.").append(given.name);
    whole.append("=").append(given.tensor.spec().print());
  }
  return nb::make_tuple(Request::parse(whole, {{code.digest(), code}}).key(), print_definition(code.digest(), code));
}

// Has this process know the code that a requests file defines.
void learn_definitions(const std::string& text) {
  Expressions code;
  (void)parse_requests(text, code);
  for (const auto& [name, each] : code) learn_code(each);
}

// The lines that define what `text` names and does not define itself: what a requests file needs in front of it.
std::string definitions_of(const std::string& text) {
  std::string lines;
  for (const auto& [digest, code] : known_code_in(text)) {
    const std::string definition = print_definition(digest, code);
    if (text.find(definition) == std::string::npos) lines.append(definition).append("\n");
  }
  return lines;
}

}  // namespace

void bind_calls(nb::module_& module) {
  module.def("call", &call_by_name, nb::arg("context"), nb::arg("what"), nb::arg("given"), nb::arg("epilogue").none(),
             nb::arg("written"), nb::arg("streams"), nb::arg("workspace"));
  module.def("do_work", &do_work, nb::arg("context"), nb::arg("work"), nb::arg("arguments"), nb::arg("written"),
             nb::arg("streams"),
             nb::sig("def do_work(context: Context, work: object, arguments: Arguments, written: object, "
                     "streams: tuple[int, Sequence[int]]) -> None"));
  module.def(
      "given_memory",
      [](const std::string& name, const nb::handle& object) {
        const GivenMemory memory = given_memory(name, object);
        return nb::make_tuple(memory.address, memory.bytes, memory.stream);
      },
      nb::arg("name"), nb::arg("memory"),
      nb::sig("def given_memory(name: str, memory: object) -> tuple[int, int, int | None]"));
  module.def("likeness", &likeness, nb::arg("arguments"), nb::arg("named"), nb::arg("kinds"), nb::arg("waiting"),
             nb::sig("def likeness(arguments: tuple[object, ...], named: dict[str, object], "
                     "kinds: frozenset[type], waiting: int) -> bytes | None"));
  module.def(
      "framework_name",
      [](const std::string& dtype) { return std::string(framework_name(parse_dtype(dtype).value())); },
      nb::arg("dtype"));
  module.def("request_line", &line_of, nb::arg("what"), nb::arg("tensors"));
  module.def("request_operands", &operands_of, nb::arg("line"),
             nb::sig("def request_operands(line: str) -> list[tuple[str, str, tuple[int, ...], tuple[int, ...]]]"));
  module.def(
      "request_key", [](const std::string& line) { return Request::parse(line).key(); }, nb::arg("line"));
  module.def("learn_definitions", &learn_definitions, nb::arg("text"));
  module.def("definitions_of", &definitions_of, nb::arg("text"));
  module.def("key_with_code", &key_with_code, nb::arg("line"), nb::arg("epilogue"),
             nb::sig("def key_with_code(line: str, epilogue: Expression) -> tuple[str, str]"));
}

}  // namespace kiln::python
