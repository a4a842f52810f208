#include "tensors.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include "kiln/base/error.h"

namespace kiln::python {
namespace {

// What frameworks, DLPack and array interfaces call each of Kiln's types.
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

[[noreturn]] void refuse(std::string_view name, std::string_view what, std::string hint) {
  throw Error(ErrorCode::invalid_argument, fmt::format("tensor {} {}", name, what), std::move(hint));
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

  void add(int64_t extent, int64_t stride) {
    extents.push_back(extent);
    strides.push_back(stride);
  }
};

Tensor made(std::string_view name, const void* data, DType dtype, Dimensions dimensions) {
  if (dimensions.extents.empty()) dimensions.add(1, 1);
  for (size_t i = 0; i < dimensions.extents.size(); ++i) {  // what no element is reached by may be anything
    if (dimensions.extents[i] <= 1) dimensions.strides[i] = std::max<int64_t>(dimensions.strides[i], 0);
  }
  try {
    return Tensor(data, dtype, dimensions.extents, dimensions.strides);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("tensor {}: {}", name, error.message()), error.hint());
  }
}

// Without __dlpack__, which PyTorch refuses to tensors with gradients, and by which it makes one stream wait for
// another.
GivenTensor torch_tensor(std::string_view name, nb::handle object) {
  const std::string type = text_of(object.attr("dtype"));  // "torch.float32"
  const std::string_view bare = std::string_view(type).substr(type.find('.') + 1);
  const TypeRow* found = nullptr;
  for (const TypeRow& row : type_rows) {
    if (row.name == bare) found = &row;
  }
  if (found == nullptr) refuse_type(name, type);
  if (nb::cast<bool>(object.attr("is_neg")())) {
    refuse(name, "is a view whose elements count with the other sign", "give its resolve_neg()");
  }
  Dimensions dimensions;
  const nb::object shape = object.attr("shape"), strides = object.attr("stride")();
  for (size_t i = 0; i < nb::len(shape); ++i) {
    dimensions.add(nb::cast<int64_t>(shape[i]), nb::cast<int64_t>(strides[i]));
  }
  Place place;
  const nb::object device = object.attr("device");
  const std::string kind = nb::cast<std::string>(device.attr("type"));
  if (kind == "cpu") {
    place.host = true;
  } else if (kind == "cuda") {
    place.ordinal = nb::cast<int>(device.attr("index"));
  } else {
    refuse(name, fmt::format("is on device {}", kind), "move it to the CPU or a CUDA device");
  }
  const auto address = nb::cast<uintptr_t>(object.attr("data_ptr")());
  return {.name = name,
          .tensor = made(name, reinterpret_cast<const void*>(address), found->dtype, std::move(dimensions)),
          .place = place,
          .writable = true,
          .held = {}};
}

// __array_interface__ and __cuda_array_interface__, which differ in what they leave out.
GivenTensor interface_tensor(std::string_view name, const nb::dict& interface, const TypeRow& row, bool host) {
  Dimensions dimensions;
  const nb::object shape = interface["shape"];
  const nb::object strides = interface.contains("strides") ? nb::object(interface["strides"]) : nb::none();
  const int64_t bytes = size_of(row.dtype);
  int64_t packed = 1;
  for (size_t i = nb::len(shape); i-- > 0;) {
    const auto extent = nb::cast<int64_t>(shape[i]);
    const int64_t stride = strides.is_none() ? packed * bytes : nb::cast<int64_t>(strides[i]);
    if (stride % bytes != 0) refuse(name, "has strides that are no multiple of an element", "copy it");
    dimensions.extents.insert(dimensions.extents.begin(), extent);
    dimensions.strides.insert(dimensions.strides.begin(), stride / bytes);
    packed *= extent;
  }
  const nb::tuple data = nb::cast<nb::tuple>(interface["data"]);
  const auto address = nb::cast<uintptr_t>(data[0]);
  return {.name = name,
          .tensor = made(name, reinterpret_cast<const void*>(address), row.dtype, std::move(dimensions)),
          .place = {.host = host, .ordinal = std::nullopt},
          .writable = !nb::cast<bool>(data[1]),
          .held = {}};
}

GivenTensor cuda_interface_tensor(std::string_view name, nb::handle object) {
  const nb::dict interface = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
  const std::string typestr = text_of(interface["typestr"]);
  for (const TypeRow& row : type_rows) {
    if (row.typestr == typestr) return interface_tensor(name, interface, row, false);
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

GivenTensor exchanged_tensor(std::string_view name, nb::handle object) {
  nb::ndarray<nb::ro> array;
  bool writable = !is_of_jax(object);
  if (nb::ndarray<> written; nb::try_cast(object, written, false)) {
    array = nb::ndarray<nb::ro>(written);
  } else {
    writable = false;
    if (!nb::try_cast(object, array, false)) {
      if (std::optional<GivenTensor> named = named_array(name, object)) return std::move(*named);
      refuse(name, fmt::format("is a {}", text_of(object.type().attr("__name__"))),
             "give an array of NumPy, PyTorch, CuPy or JAX, or an object with __dlpack__ or the buffer protocol");
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
  if (array.device_type() == nb::device::cpu::value) {
    place.host = true;
  } else if (array.device_type() == nb::device::cuda::value) {
    place.ordinal = array.device_id();
  } else if (array.device_type() != nb::device::cuda_host::value &&
             array.device_type() != nb::device::cuda_managed::value) {
    refuse(name, fmt::format("is on a device of DLPack's type {}", array.device_type()),
           "move it to the CPU or a CUDA device");
  }
  const Tensor tensor = made(name, array.data(), found->dtype, std::move(dimensions));
  return {.name = name, .tensor = tensor, .place = place, .writable = writable, .held = std::move(array)};
}

}  // namespace

GivenTensor given_tensor(std::string_view name, nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr())) {
    if (nb::hasattr(object, "fill_value")) {
      refuse(name, "is a masked array, whose mask Kiln does not heed", "give its filled() or its data");
    }
  } else {
    if (nb::hasattr(object, "data_ptr") && nb::hasattr(object, "stride")) return torch_tensor(name, object);
    if (nb::hasattr(object, "__cuda_array_interface__")) return cuda_interface_tensor(name, object);
  }
  return exchanged_tensor(name, object);
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
