#include "context.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <utility>

#include "arguments.h"
#include "kiln/base/error.h"
#include "kiln/generator/no_code.h"
#include "kiln/memory.h"
#include "without_gil.h"

namespace kiln::python {
namespace {

// A message may come from a thread of Kiln's, and after Python has ended.
void tell(nb::handle announce, std::string_view message) {
  if (!Py_IsInitialized() || is_left_behind()) return;
  const nb::gil_scoped_acquire gil;
  try {
    announce(nb::str(message.data(), message.size()));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("kiln: announce");
  }
}

// By a thread that makes a call, and has given up the GIL for it.
void* allocate(nb::handle function, size_t bytes, Stream stream) {
  if (is_left_behind()) return nullptr;
  const nb::gil_scoped_acquire gil;
  try {
    const nb::object address = function(bytes, reinterpret_cast<uintptr_t>(stream));
    if (address.is_none()) return nullptr;
    if (uintptr_t number = 0; nb::try_cast(address, number)) return reinterpret_cast<void*>(number);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the workspace allocator returned a {}", nb::type_name(address.type()).c_str()),
                "return an address, or None if there is no memory");
  } catch (nb::python_error& error) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("the workspace allocator raised {}: {}", nb::type_name(error.type()).c_str(),
                            nb::str(error.value()).c_str()),
                "free memory, or set the Context's workspace_limit");
  }
}

void release(nb::handle function, void* memory, size_t bytes, Stream stream) {
  if (is_left_behind()) return;
  const nb::gil_scoped_acquire gil;
  try {
    function(reinterpret_cast<uintptr_t>(memory), bytes, reinterpret_cast<uintptr_t>(stream));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("kiln: release of a workspace");
  }
}

// The settings of the process, but for these.
void set_libraries(ContextOptions& options, const std::optional<std::string>& driver,
                   const std::optional<std::string>& nvrtc) {
  options.environment = Environment::read();
  if (driver) options.environment->driver = driver;
  if (!options.environment->nvrtc) options.environment->nvrtc = nvrtc;
}

void set_tuning(ContextOptions& options, std::string_view mode, double budget, size_t candidates) {
  constexpr std::array modes = {std::pair("never", TuningMode::never),
                                std::pair("within_budget", TuningMode::within_budget),
                                std::pair("in_background", TuningMode::in_background)};
  for (const auto& [name, value] : modes) {
    if (mode != name) continue;
    options.tuning = {.mode = value, .budget_seconds = budget, .candidates = candidates, .stop_wanted = is_interrupted};
    return;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no tuning mode '{}'", mode),
              "it is never, within_budget or in_background");
}

void prepare(PythonContext& context, const std::string& requests, bool allow_code) {
  if (!allow_code) require_no_code(requests, "allow_code=True is for text whose author you would run code of");
  Expressions code = known_code_in(requests);
  std::vector<Request> parsed;
  for (RequestLine& line : parse_requests(requests, code)) parsed.push_back(std::move(line.request));
  for (const auto& [name, each] : code) learn_code(each);
  without_gil([&] { context.get().prepare(parsed); });
}

void prepare_open(PythonContext& context, const std::string& lines) {
  without_gil([&] { context.get().prepare_open(lines); });
}

std::string explain(PythonContext& context, const std::string& request) {
  const Expressions code = known_code_in(request);
  return without_gil([&] { return to_json(context.get().explain(Request::parse(request, code))); });
}

void wait_until_tuned(PythonContext& context) {
  without_gil([&] { context.get().wait_until_tuned(); });
}

// Device memory of Kiln's own: a workspace.
class PythonMemory {
 public:
  PythonMemory(PythonContext& context, size_t bytes) : memory_(context.get(), bytes) {}

  uintptr_t data() const { return reinterpret_cast<uintptr_t>(memory_.data()); }
  size_t nbytes() const { return memory_.size(); }
  nb::typed<nb::dict, nb::str, nb::any> interface() const {
    nb::dict interface;
    interface["shape"] = nb::make_tuple(nbytes());
    interface["typestr"] = "|u1";
    interface["data"] = nb::make_tuple(data(), false);
    interface["version"] = 3;
    return nb::typed<nb::dict, nb::str, nb::any>(std::move(interface));
  }

 private:
  DeviceMemory memory_;
};

}  // namespace

PythonContext::PythonContext(ContextOptions options, nb::object announce, nb::object allocate, nb::object release)
    : announce_(std::move(announce)),
      allocate_(std::move(allocate)),
      release_(std::move(release)),
      device_(options.device) {
  options.announce = [announce = nb::handle(announce_)](std::string_view message) { tell(announce, message); };
  if (!allocate_.is_none()) {
    options.workspace_allocator = {
        .allocate = [function = nb::handle(allocate_)](
                        size_t bytes, Stream stream) { return python::allocate(function, bytes, stream); },
        .release = [function = nb::handle(release_)](
                       void* memory, size_t bytes,
                       Stream stream) { python::release(function, memory, bytes, stream); }};
  }
  without_gil([&] { context_.emplace(options); });
  emulated_ = context_->is_emulated();
}

PythonContext::~PythonContext() {
  const WithoutGil without_gil;
  context_.reset();
}

void PythonContext::require(std::span<const GivenTensor> tensors, const nb::handle& written) const {
  for (const GivenTensor& given : tensors) {
    const auto refuse = [&](const std::string& what, const char* hint) {
      throw Error(ErrorCode::invalid_argument, fmt::format("tensor {} {}", given.name, what), hint);
    };
    if (given.place.host && !emulated_) {
      refuse("is on the CPU, and this Context's device is a GPU",
             "move it to the GPU, or use a Context(driver=\"emulator\")");
    }
    if (given.place.ordinal && emulated_) {
      refuse("is on a GPU, and this Context's device is the emulated one",
             "move it to the CPU, or use a Context(driver=\"cuda\")");
    }
    if (given.place.ordinal && *given.place.ordinal != device_) {
      refuse(fmt::format("is on device {}, and this Context's is device {}", *given.place.ordinal, device_),
             "use a Context for the tensor's device");
    }
    if (!given.writable &&
        nb::cast<bool>(written.attr("__contains__")(nb::str(given.name.data(), given.name.size())))) {
      refuse("cannot be written: it is read-only", "give an array that can be written");
    }
  }
}

void bind_context(nb::module_& module) {
  using Options = ContextOptions;
  nb::class_<Options>(module, "Options")
      .def(nb::init<>())
      .def("set_libraries", &set_libraries, nb::arg("driver").none(), nb::arg("nvrtc").none())
      .def("set_tuning", &set_tuning, nb::arg("mode"), nb::arg("budget"), nb::arg("candidates"))
      .def(
          "set_first_call",
          [](Options& options, bool at_once) { options.first_call = at_once ? FirstCall::at_once : FirstCall::exact; },
          nb::arg("at_once"))
      .def_rw("device", &Options::device)
      .def_rw("cache", &Options::cache)
      .def_rw("packs", &Options::packs)
      .def_rw("bundles", &Options::bundles)
      .def_rw("kernel_store", &Options::kernel_store)
      .def_rw("user_templates", &Options::user_templates)
      .def_rw("workspace_limit", &Options::workspace_limit)
      .def_rw("kept_plans", &Options::kept_plans)
      .def_rw("kept_plan_bytes", &Options::kept_plan_bytes)
      .def_rw("deterministic", &Options::deterministic)
      .def_rw("batch_invariant", &Options::batch_invariant)
      .def_rw("locked", &Options::locked)
      .def_rw("allow_failed_variants", &Options::allow_failed_variants)
      .def_rw("allow_unchecked_templates", &Options::allow_unchecked_templates);
  nb::class_<PythonContext>(module, "Context")
      .def(nb::init<Options, nb::object, nb::object, nb::object>(), nb::arg("options"), nb::arg("announce"),
           nb::arg("allocate").none(), nb::arg("release").none())
      .def("_prepare_open", &prepare_open, nb::arg("lines"))
      .def("_prepare", &prepare, nb::arg("requests"), nb::arg("allow_code"))
      .def("_explain", &explain, nb::arg("request"))
      .def(
          "_compiles",
          [](PythonContext& context) {
            const CompileCount count = context.get().compiles();
            return nb::make_tuple(count.kernels, count.seconds);
          },
          nb::sig("def _compiles(self) -> tuple[int, float]"))
      .def(
          "_plan_count",
          [](PythonContext& context) {
            const PlanCount count = context.get().plan_count();
            return nb::make_tuple(count.plans, count.bytes, count.held, count.given_up);
          },
          nb::sig("def _plan_count(self) -> tuple[int, int, int, int]"))
      .def("wait_until_tuned", &wait_until_tuned,
           "Wait until nothing is left to be done in the background: plans of shapes that open kernels serve, open "
           "kernels for further shapes, and what is to be tuned, or the budget for it is spent.")
      .def_prop_ro("emulated", &PythonContext::emulated, "Whether the device is the emulated one.")
      .def_prop_ro(
          "device_description", [](PythonContext& context) { return context.get().device_description(); },
          "The device and its driver, for people.")
      .def_prop_ro(
          "device_id", [](PythonContext& context) { return context.get().device_id(); },
          "The line under which times of this device are stored.");
  nb::class_<PythonMemory>(module, "DeviceMemory")
      .def(nb::init<PythonContext&, size_t>(), nb::arg("context"), nb::arg("nbytes"), nb::keep_alive<1, 2>())
      .def_prop_ro("data", &PythonMemory::data, "The device address.")
      .def_prop_ro("nbytes", &PythonMemory::nbytes)
      .def_prop_ro("__cuda_array_interface__", &PythonMemory::interface);
}

}  // namespace kiln::python
