#include "tensors.h"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/base/error.h"

namespace kiln::python {
namespace {

// Names of each of Kiln's types in frameworks, DLPack and array interfaces.
struct TypeRow {
  DType dtype;
  std::string_view name;
  nb::dlpack::dtype_code code;
  std::string_view typestr;  // empty: an array interface cannot say it
};
constexpr std::array type_rows = {
    TypeRow{DType::f32, "float32", nb::dlpack::dtype_code::Float, "<f4"},
    TypeRow{DType::f16, "float16", nb::dlpack::dtype_code::Float, "<f2"},
    TypeRow{DType::bf16, "bfloat16", nb::dlpack::dtype_code::Bfloat, ""},
    TypeRow{DType::i32, "int32", nb::dlpack::dtype_code::Int, "<i4"},
    TypeRow{DType::i8, "int8", nb::dlpack::dtype_code::Int, "|i1"},
    TypeRow{DType::u8, "uint8", nb::dlpack::dtype_code::UInt, "|u1"},
    TypeRow{DType::f8e4m3, "float8_e4m3fn", nb::dlpack::dtype_code::Float8_E4M3FN, ""},
    TypeRow{DType::f8e5m2, "float8_e5m2", nb::dlpack::dtype_code::Float8_E5M2, ""},
};
static_assert(type_rows.size() == dtype_rows.size());

// `subject`: "tensor x", "workspace".
[[noreturn]] void refuse_subject(std::string_view subject, std::string_view what, std::string hint) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} {}", subject, what), std::move(hint));
}

std::string tensor_called(std::string_view name) {
  return fmt::format("tensor {}", name);
}

[[noreturn]] void refuse(std::string_view name, std::string_view what, std::string hint) {
  refuse_subject(tensor_called(name), what, std::move(hint));
}

[[noreturn]] void refuse_type(std::string_view name, std::string_view type) {
  std::string known;
  for (const TypeRow& row : type_rows) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  refuse(name, fmt::format("has elements of {}", type), fmt::format("convert it; Kiln has {}", known));
}

std::string text_of(nb::handle object) {
  return nb::cast<std::string>(nb::str(object));
}

struct Dimensions {
  std::vector<int64_t> extents, strides;  // strides in elements

  void reserve(size_t rank) {
    extents.reserve(rank);
    strides.reserve(rank);
  }
  void add(int64_t extent, int64_t stride) {
    extents.push_back(extent);
    strides.push_back(stride);
  }

  // NumPy's strides of arrays without elements are 0, as if elements shared memory.
  bool say_no_order() const {
    const auto is_zero = [](int64_t number) { return number == 0; };
    return std::any_of(extents.begin(), extents.end(), is_zero) && std::all_of(strides.begin(), strides.end(), is_zero);
  }
};

Tensor made(std::string_view name, const void* data, DType dtype, Dimensions dimensions) {
  if (dimensions.extents.empty()) dimensions.add(1, 1);
  for (size_t i = 0; i < dimensions.extents.size(); ++i) {  // what no element is reached by may be anything
    if (dimensions.extents[i] <= 1) dimensions.strides[i] = std::max<int64_t>(dimensions.strides[i], 0);
  }
  try {
    if (dimensions.say_no_order()) return Tensor(data, dtype, dimensions.extents, contiguous);
    return Tensor(data, dtype, dimensions.extents, dimensions.strides);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("tensor {}: {}", name, error.message()), error.hint());
  }
}

// Members of PyTorch's tensors, by names that are made once: each call looks ten of them up in each of its tensors.
struct TorchNames {
  nb::str layout = interned("layout"), is_nested = interned("is_nested"), dtype = interned("dtype"),
          is_neg = interned("is_neg"), shape = interned("shape"), stride = interned("stride"),
          is_cpu = interned("is_cpu"), is_cuda = interned("is_cuda"), get_device = interned("get_device"),
          data_ptr = interned("data_ptr"), dim = interned("dim");

  static const TorchNames& get() {
    static const TorchNames& names = *new TorchNames;  // never freed: Python may have ended before
    return names;
  }

 private:
  static nb::str interned(const char* name) { return nb::steal<nb::str>(PyUnicode_InternFromString(name)); }
};

bool is_true(const nb::object& object) {
  return object.is(nb::handle(Py_True));
}

nb::object called(nb::handle object, const nb::str& method) {
  return nb::steal(nb::detail::raise_if_null(PyObject_CallMethodNoArgs(object.ptr(), method.ptr())));
}

// Refuses tensors of PyTorch whose elements do not lie as extents and strides say.
void require_strided(std::string_view name, nb::handle object) {
  static PyObject* strided = nullptr;  // torch.strided, once it has been seen: there is one object of each layout
  const TorchNames& names = TorchNames::get();
  const nb::object layout = nb::getattr(object, names.layout, nb::none());
  const nb::object nested = nb::getattr(object, names.is_nested, nb::none());
  if (is_true(nested)) refuse(name, "is a nested tensor", "give its to_padded_tensor(), or its parts");
  if (layout.ptr() == strided || layout.is_none()) return;
  if (text_of(layout) != "torch.strided") {
    refuse(name, fmt::format("has the layout {}", text_of(layout)), "give its to_dense()");
  }
  strided = nb::object(layout).release().ptr();
}

// The row of a dtype of PyTorch, of which there is one object each.
const TypeRow& row_of(std::string_view name, const nb::object& dtype) {
  static std::array<PyObject*, type_rows.size()> seen{};
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == dtype.ptr()) return type_rows[i];
  }
  const std::string type = text_of(dtype);  // "torch.float32"
  const std::string_view bare = std::string_view(type).substr(type.find('.') + 1);
  for (size_t i = 0; i < seen.size(); ++i) {
    if (type_rows[i].name != bare) continue;
    if (seen[i] == nullptr) seen[i] = nb::object(dtype).release().ptr();
    return type_rows[i];
  }
  refuse_type(name, type);
}

// Where the elements of a tensor of PyTorch begin.
uintptr_t address_of(std::string_view name, nb::handle object) {
  std::string reason;
  try {
    return nb::cast<uintptr_t>(called(object, TorchNames::get().data_ptr));
  } catch (const nb::python_error& error) {  // of a transform, or without elements
    reason = text_of(error.value());
  }
  refuse(name, fmt::format("has no memory: {}", reason.substr(0, reason.find('\n'))), "give a tensor with elements");
}

Place place_of(std::string_view name, nb::handle object) {
  const TorchNames& names = TorchNames::get();
  if (is_true(nb::getattr(object, names.is_cpu, nb::none()))) return {.host = true, .ordinal = std::nullopt};
  if (is_true(nb::getattr(object, names.is_cuda, nb::none()))) {
    return {.host = false, .ordinal = nb::cast<int>(called(object, names.get_device))};
  }
  refuse(name, fmt::format("is on device {}", text_of(object.attr("device").attr("type"))),
         "move it to the CPU or a CUDA device");
}

// Without __dlpack__, which PyTorch refuses to tensors with gradients, and by which it makes one stream wait for
// another.
GivenTensor torch_tensor(std::string_view name, nb::handle object) {
  const TorchNames& names = TorchNames::get();
  require_strided(name, object);
  const TypeRow& row = row_of(name, nb::getattr(object, names.dtype));
  if (is_true(called(object, names.is_neg))) {
    refuse(name, "is a view whose elements count with the other sign", "give its resolve_neg()");
  }
  const auto shape = nb::cast<nb::tuple>(nb::getattr(object, names.shape));
  const auto strides = nb::cast<nb::tuple>(called(object, names.stride));
  Dimensions dimensions;
  dimensions.reserve(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    dimensions.add(nb::cast<int64_t>(shape[i]), nb::cast<int64_t>(strides[i]));
  }
  const Place place = place_of(name, object);
  const uintptr_t address = address_of(name, object);
  return {.name = name,
          .tensor = made(name, reinterpret_cast<const void*>(address), row.dtype, std::move(dimensions)),
          .place = place,
          .stream = std::nullopt,
          .writable = true,
          .held = {}};
}

// The bytes of likeness().
class Likeness {
 public:
  explicit Likeness(const nb::frozenset& kinds) : kinds_(kinds) {}

  // False: there are no bytes for that argument.
  bool add(nb::handle object) {
    PyTypeObject* const type = Py_TYPE(object.ptr());
    if (object.is_none() || type == &PyBool_Type) {
      tag(object.is_none() ? 'n' : object.ptr() == Py_True ? 't' : 'f');
      return true;
    }
    if (type == &PyLong_Type) return add_integer(object);
    if (type == &PyFloat_Type) {
      tag('d');
      number(PyFloat_AS_DOUBLE(object.ptr()));
      return true;
    }
    if (type == &PyUnicode_Type) return add_text(object);
    if (type == &PyTuple_Type || type == &PyList_Type) return add_sequence(object);
    return is_tensor(object) && add_tensor(object);
  }
  void add_waiting() { tag('w'); }

  nb::object bytes() const { return nb::bytes(key_.data(), key_.size()); }

 private:
  void tag(char kind) { key_.push_back(kind); }
  template <typename T>
  void number(T value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  bool is_tensor(nb::handle object) const {
    const int is_known = PySet_Contains(kinds_.ptr(), reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
    if (is_known < 0) throw nb::python_error();
    return is_known == 1;
  }

  bool add_integer(nb::handle object) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    tag('i');
    number(value);
    return overflow == 0;
  }

  bool add_text(nb::handle object) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (text == nullptr) {  // no Unicode
      PyErr_Clear();
      return false;
    }
    tag('s');
    number(size);
    key_.append(text, static_cast<size_t>(size));
    return true;
  }

  bool add_sequence(nb::handle object) {
    constexpr int most_levels = 8;  // a list may be its own element
    tag(PyTuple_CheckExact(object.ptr()) ? '(' : '[');
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(object.ptr());
    number(size);
    bool are_added = levels_ < most_levels;
    ++levels_;
    for (Py_ssize_t i = 0; i < size && are_added; ++i) {
      const nb::handle item = PySequence_Fast_GET_ITEM(object.ptr(), i);
      are_added = !is_tensor(item) && add(item);
    }
    --levels_;
    return are_added;
  }

  bool add_tensor(nb::handle object) try {
    const GivenTensor given = torch_tensor("", object);
    const Tensor& tensor = given.tensor;
    const bool is_float = tensor.dtype() == DType::f32 || tensor.dtype() == DType::f16 || tensor.dtype() == DType::bf16;
    // Without an address: PyTorch's lazy zeros, and what functionalisation makes of a tensor.
    if (!is_float || tensor.empty() || tensor.data() == nullptr) return false;
    tag('T');
    number(tensor.dtype());
    number(given.place.ordinal.value_or(-1));
    number(nb::cast<int>(called(object, TorchNames::get().dim)));  // a tensor without dimensions has one here
    for (const int64_t extent : tensor.extents()) number(extent);
    for (const int64_t stride : tensor.strides()) number(stride);
    return true;
  } catch (const Error&) {
    return false;
  }

  const nb::frozenset& kinds_;
  std::string key_;
  int levels_ = 0;  // of sequences in sequences
};

// Whether this is a tensor of PyTorch or has the same members.
bool is_like_torch(nb::handle object) {
  static PyTypeObject* known = nullptr;  // the class of the latest
  PyTypeObject* const type = Py_TYPE(object.ptr());
  if (type == known) return true;
  const TorchNames& names = TorchNames::get();
  if (!nb::hasattr(object, names.data_ptr) || !nb::hasattr(object, names.stride)) return false;
  if (nb::hasattr(object.type(), names.data_ptr) && nb::hasattr(object.type(), names.stride)) {
    Py_INCREF(type);
    Py_XDECREF(std::exchange(known, type));
  }
  return true;
}

// Facts common to __array_interface__ and __cuda_array_interface__, though they differ in what they leave out.
struct Interface {
  Dimensions dimensions;
  uintptr_t address = 0;
  bool read_only = false;
};

// A member of an array interface as `T`; `expected` says which values are.
template <typename T>
T member_of_interface(std::string_view subject, const nb::dict& interface, const char* member, const char* expected) {
  const nb::object given = interface[member];
  if (T value; nb::try_cast(given, value)) return value;
  refuse_subject(subject, fmt::format("has {}={} in its array interface", member, nb::repr(given).c_str()), expected);
}

Interface read_interface(std::string_view subject, const nb::dict& interface, int64_t bytes_of_element) {
  using Integers = std::vector<int64_t>;
  Interface read;
  const auto shape = member_of_interface<Integers>(subject, interface, "shape", "shape is a tuple of integers");
  Integers strides(shape.size());
  auto packed = static_cast<uint64_t>(bytes_of_element);  // what overflows is refused for its extents
  for (size_t i = shape.size(); i-- > 0; packed *= static_cast<uint64_t>(shape[i])) {
    strides[i] = static_cast<int64_t>(packed);
  }
  if (interface.contains("strides") && !nb::object(interface["strides"]).is_none()) {
    constexpr const char* expected = "strides is None, or a tuple of integers, one for each dimension";
    strides = member_of_interface<Integers>(subject, interface, "strides", expected);
    if (strides.size() != shape.size()) {
      refuse_subject(subject, fmt::format("has {} strides for {} dimensions", strides.size(), shape.size()), expected);
    }
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (strides[i] % bytes_of_element != 0) {
      refuse_subject(subject, "has strides that are no multiple of an element", "copy it");
    }
    read.dimensions.add(shape[i], strides[i] / bytes_of_element);
  }
  std::tie(read.address, read.read_only) = member_of_interface<std::pair<uintptr_t, bool>>(
      subject, interface, "data", "data is a tuple: the address, and whether the memory is read-only");
  return read;
}

GivenTensor interface_tensor(std::string_view name, const nb::dict& interface, const TypeRow& row, bool host) {
  Interface read = read_interface(tensor_called(name), interface, size_of(row.dtype));
  return {.name = name,
          .tensor = made(name, reinterpret_cast<const void*>(read.address), row.dtype, std::move(read.dimensions)),
          .place = {.host = host, .ordinal = std::nullopt},
          .stream = std::nullopt,
          .writable = !read.read_only,
          .held = {}};
}

// Version 3 of the protocol, and those before it.
nb::dict cuda_interface(std::string_view subject, nb::handle object) {
  constexpr const char* hint = "give an array of CuPy or Numba, or follow the protocol of __cuda_array_interface__";
  nb::dict interface;
  if (!nb::try_cast(object.attr("__cuda_array_interface__"), interface)) {
    refuse_subject(subject, "has a __cuda_array_interface__ that is no dict", hint);
  }
  for (const char* member : {"shape", "typestr", "data"}) {
    if (!interface.contains(member)) {
      refuse_subject(subject, fmt::format("has a __cuda_array_interface__ without '{}'", member), hint);
    }
  }
  if (interface.contains("mask") && !nb::object(interface["mask"]).is_none()) {
    refuse_subject(subject, "has a mask, which Kiln does not heed", "give its elements without one");
  }
  return interface;
}

// The stream whose work has to be done before the elements are used; nothing if the protocol asks for no wait.
std::optional<uintptr_t> stream_of(std::string_view subject, const nb::dict& interface) {
  if (!interface.contains("stream")) return std::nullopt;
  const nb::object given = interface["stream"];
  if (given.is_none()) return std::nullopt;
  if (uintptr_t stream = 0; nb::try_cast(given, stream) && stream != 0) return stream;
  refuse_subject(subject, fmt::format("has the stream {} in its __cuda_array_interface__", nb::repr(given).c_str()),
                 "1 is the default stream, 2 that of the thread, and None asks for no wait");
}

GivenTensor cuda_interface_tensor(std::string_view name, nb::handle object) {
  const std::string subject = tensor_called(name);
  const nb::dict interface = cuda_interface(subject, object);
  const std::string typestr = text_of(interface["typestr"]);
  for (const TypeRow& row : type_rows) {
    if (row.typestr != typestr) continue;
    GivenTensor given = interface_tensor(name, interface, row, false);
    given.stream = stream_of(subject, interface);
    return given;
  }
  refuse_type(name, typestr);
}

// NumPy's arrays of the types that ml_dtypes adds, which neither DLPack nor the buffer protocol of NumPy can say.
std::optional<GivenTensor> named_array(std::string_view name, nb::handle object) {
  if (!nb::hasattr(object, "__array_interface__") || !nb::hasattr(object, "dtype")) return std::nullopt;
  const std::string type = text_of(object.attr("dtype"));
  for (const TypeRow& row : type_rows) {
    if (row.name != type) continue;
    return interface_tensor(name, nb::cast<nb::dict>(object.attr("__array_interface__")), row, true);
  }
  refuse_type(name, type);
}

// JAX's arrays never change, and its DLPack does not say so.
bool is_of_jax(nb::handle object) {
  const std::string module = nb::cast<std::string>(object.type().attr("__module__"));
  return module.starts_with("jax.") || module.starts_with("jaxlib.");
}

// Buffers of NumPy's dates, which are no arrays, have no strides though these are asked for.
bool has_unsound_buffer(nb::handle object) {
  if (nb::hasattr(object, "__dlpack__")) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return false;  // nothing of it is read
  }
  const bool unsound = view.ndim > 0 && (view.shape == nullptr || view.strides == nullptr);
  PyBuffer_Release(&view);
  return unsound;
}

[[noreturn]] void refuse_object(std::string_view name, nb::handle object) {
  refuse(name, fmt::format("is a {}", text_of(object.type().attr("__name__"))),
         "give an array of NumPy, PyTorch, CuPy or JAX, or an object with __dlpack__ or the buffer protocol");
}

// For which __dlpack__ makes the elements ready, as it is called here.
constexpr uintptr_t default_stream = 1;

GivenTensor exchanged_tensor(std::string_view name, nb::handle object) {
  nb::ndarray<nb::ro> array;
  bool writable = !is_of_jax(object);
  if (nb::ndarray<> written; nb::try_cast(object, written, false)) {
    array = nb::ndarray<nb::ro>(written);
  } else {
    writable = false;
    if (!nb::try_cast(object, array, false)) {
      if (std::optional<GivenTensor> named = named_array(name, object)) return std::move(*named);
      refuse_object(name, object);
    }
  }
  const TypeRow* found = nullptr;
  for (const TypeRow& row : type_rows) {
    const nb::dlpack::dtype type{static_cast<uint8_t>(row.code), static_cast<uint8_t>(8 * size_of(row.dtype)), 1};
    if (array.dtype() == type) found = &row;
  }
  if (found == nullptr) {
    refuse_type(name, nb::hasattr(object, "dtype") ? text_of(object.attr("dtype")) : "another type");
  }
  Dimensions dimensions;
  for (size_t i = 0; i < array.ndim(); ++i) dimensions.add(static_cast<int64_t>(array.shape(i)), array.stride(i));
  Place place;
  std::optional<uintptr_t> stream;
  if (array.device_type() == nb::device::cpu::value) {
    place.host = true;
  } else if (array.device_type() == nb::device::cuda::value) {
    place.ordinal = array.device_id();
    stream = default_stream;
  } else if (array.device_type() != nb::device::cuda_host::value &&
             array.device_type() != nb::device::cuda_managed::value) {
    refuse(name, fmt::format("is on a device of DLPack's type {}", array.device_type()),
           "move it to the CPU or a CUDA device");
  }
  const Tensor tensor = made(name, array.data(), found->dtype, std::move(dimensions));
  return {
      .name = name, .tensor = tensor, .place = place, .stream = stream, .writable = writable, .held = std::move(array)};
}

}  // namespace

GivenTensor given_tensor(std::string_view name, nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr())) {
    if (nb::hasattr(object, "fill_value")) {
      refuse(name, "is a masked array, whose mask Kiln does not heed", "give its filled() or its data");
    }
    if (has_unsound_buffer(object)) refuse_object(name, object);
  } else {
    if (is_like_torch(object)) return torch_tensor(name, object);
    if (nb::hasattr(object, "__cuda_array_interface__")) return cuda_interface_tensor(name, object);
  }
  return exchanged_tensor(name, object);
}

nb::object likeness(const nb::tuple& arguments, const nb::dict& named, const nb::frozenset& kinds, int waiting) {
  Likeness likeness(kinds);
  int place = 0;
  const auto add = [&](nb::handle object) {
    if (place++ != waiting) return likeness.add(object);
    likeness.add_waiting();
    return true;
  };
  for (const nb::handle object : arguments) {
    if (!add(object)) return nb::none();
  }
  for (const auto& [name, object] : named) {
    likeness.add(name);
    if (!add(object)) return nb::none();
  }
  return likeness.bytes();
}

GivenMemory given_memory(std::string_view name, nb::handle object) {
  constexpr const char* hint = "give a kiln.DeviceMemory or an array on the GPU";
  if (!nb::hasattr(object, "__cuda_array_interface__")) {
    refuse_subject(name, fmt::format("is a {}", text_of(object.type().attr("__name__"))), hint);
  }
  const nb::dict interface = cuda_interface(name, object);
  const std::string typestr = text_of(interface["typestr"]);  // "<f4": behind two characters, bytes of an element
  const int64_t bytes_of_element = typestr.size() < 3 ? 0 : std::strtoll(typestr.c_str() + 2, nullptr, 10);
  if (bytes_of_element < 1) refuse_subject(name, fmt::format("has elements of {}", typestr), hint);
  const Interface read = read_interface(name, interface, bytes_of_element);
  if (read.read_only) refuse_subject(name, "cannot be written: it is read-only", hint);
  int64_t elements = 1;
  for (size_t i = read.dimensions.extents.size(); i-- > 0; elements *= read.dimensions.extents[i]) {
    const bool is_packed = read.dimensions.strides[i] == elements || read.dimensions.extents[i] <= 1;
    if (!is_packed) refuse_subject(name, "has gaps between its elements", hint);
  }
  return {read.address, elements * bytes_of_element, stream_of(name, interface)};
}

std::vector<GivenTensor> given_tensors(const nb::dict& tensors) {
  std::vector<GivenTensor> given;
  given.reserve(tensors.size());
  for (const auto& [name, object] : tensors) given.push_back(given_tensor(nb::cast<const char*>(name), object));
  return given;
}

std::string_view framework_name(DType dtype) {
  for (const TypeRow& row : type_rows) {
    if (row.dtype == dtype) return row.name;
  }
  throw Error(ErrorCode::internal, "a dtype without a name");
}

}  // namespace kiln::python
