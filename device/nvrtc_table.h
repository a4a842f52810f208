// NVRTC's entry points as a table of function pointers.
#pragma once

#include <cuda_abi/nvrtc.h>

#include <type_traits>

#include "kiln/device/nvrtc.h"

namespace kiln::device {
namespace detail {
using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the list spells its types unqualified

struct NvrtcEntries {
#define KILN_NVRTC_TABLE_MEMBER(symbol, ...) std::add_pointer_t<__VA_ARGS__> symbol = nullptr;
  KILN_NVRTC_ENTRY_POINTS(KILN_NVRTC_TABLE_MEMBER)
#undef KILN_NVRTC_TABLE_MEMBER
};
}  // namespace detail

struct Nvrtc::Table : detail::NvrtcEntries {};

}  // namespace kiln::device
