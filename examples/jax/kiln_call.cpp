// Kiln's operations as a foreign function of XLA: what kiln_jax.py calls. docs/engines.md explains it.
#include <kiln/base/error.h>
#include <kiln/call.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "../framework/framework_call.h"
#include "xla/ffi/api/ffi.h"

namespace {

namespace ffi = xla::ffi;

kiln::DType dtype_of(std::string_view name, ffi::DataType type) {
  switch (type) {
    case ffi::DataType::F32:
      return kiln::f32;
    case ffi::DataType::F16:
      return kiln::f16;
    case ffi::DataType::BF16:
      return kiln::bf16;
    case ffi::DataType::F8E4M3FN:
      return kiln::f8e4m3;
    case ffi::DataType::F8E5M2:
      return kiln::f8e5m2;
    case ffi::DataType::S32:
      return kiln::i32;
    case ffi::DataType::S8:
      return kiln::i8;
    case ffi::DataType::U8:
      return kiln::u8;
    default:
      break;
  }
  std::ostringstream text;
  text << name << " is of type " << type << ", which Kiln does not have";
  throw kiln::Error(kiln::ErrorCode::invalid_argument, text.str(),
                    "it takes f32, f16, bf16, f8e4m3fn, f8e5m2, s32, s8 and u8");
}

kiln::NamedTensor tensor_of(std::string_view name, const ffi::AnyBuffer& buffer) {
  const std::span extents(buffer.dimensions().begin(), buffer.dimensions().size());
  return {name, {buffer.untyped_data(), dtype_of(name, buffer.element_type()), extents, kiln::contiguous}};
}

// The next of the words, which have commas between.
std::string_view next_name(std::string_view& names) {
  const size_t end = names.find(',');
  const std::string_view name = names.substr(0, end);
  names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
  return name;
}

ffi::Error error_of(const kiln::Error& error) {
  const std::string text = std::string("kiln: ") + error.what();
  switch (error.code()) {
    case kiln::ErrorCode::invalid_argument:
    case kiln::ErrorCode::parse_error:
      return {ffi::ErrorCode::kInvalidArgument, text};
    case kiln::ErrorCode::unsupported:
      return {ffi::ErrorCode::kUnimplemented, text};
    case kiln::ErrorCode::out_of_memory:
      return {ffi::ErrorCode::kResourceExhausted, text};
    default:
      return {ffi::ErrorCode::kInternal, text};
  }
}

// `what`: the text of kiln::call(). `names`: what it calls the arguments, then the results, with commas between.
ffi::Error call(int ordinal, framework::Memory memory, void* stream, std::string_view what, std::string_view names,
                const ffi::RemainingArgs& arguments, const ffi::RemainingRets& results) {
  try {
    std::vector<kiln::NamedTensor> tensors;
    for (size_t i = 0; i < arguments.size(); ++i) {
      tensors.push_back(tensor_of(next_name(names), *arguments.get<ffi::AnyBuffer>(i)));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      tensors.push_back(tensor_of(next_name(names), **results.get<ffi::AnyBuffer>(i)));
    }
    framework::call(ordinal, memory, what, tensors, stream);
    return ffi::Error::Success();
  } catch (const kiln::Error& error) {
    return error_of(error);
  } catch (const std::exception& error) {
    return ffi::Error::Internal(error.what());
  }
}

ffi::Error call_on_cpu(std::string_view what, std::string_view names, const ffi::RemainingArgs& arguments,
                       const ffi::RemainingRets& results) {
  return call(0, framework::Memory::host, nullptr, what, names, arguments, results);
}

ffi::Error call_on_cuda(int32_t ordinal, void* stream, std::string_view what, std::string_view names,
                        const ffi::RemainingArgs& arguments, const ffi::RemainingRets& results) {
  return call(ordinal, framework::Memory::device, stream, what, names, arguments, results);
}

}  // namespace

// Symbol that kiln_jax.py looks for in the library.
#pragma GCC visibility push(default)
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    kiln_call_cpu, call_on_cpu,
    ffi::Ffi::Bind().Attr<std::string_view>("what").Attr<std::string_view>("names").RemainingArgs().RemainingRets());

XLA_FFI_DEFINE_HANDLER_SYMBOL(kiln_call_cuda, call_on_cuda,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Attr<std::string_view>("what")
                                  .Attr<std::string_view>("names")
                                  .RemainingArgs()
                                  .RemainingRets());
#pragma GCC visibility pop
