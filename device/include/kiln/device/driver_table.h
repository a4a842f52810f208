// The CUDA driver's entry points as a table of function pointers.
#pragma once

#include <cuda_abi/driver.h>

#include <type_traits>

namespace kiln::device {

namespace detail {
using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the list spells its types unqualified

/// One pointer for each entry point of cuda_abi/driver.h, under the symbol that libcuda exports. All null at first.
///
/// Driver::open fills it from a library; the optional ones stay null where that has none (Driver::optional_call). A
/// benchmark's null driver or a test's failing one fills what it needs.
struct DriverTable {
#define KILN_DRIVER_TABLE_MEMBER(symbol, ...) std::add_pointer_t<__VA_ARGS__> symbol = nullptr;
  KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_DRIVER_TABLE_MEMBER)
  KILN_CUDA_DRIVER_OPTIONAL_ENTRY_POINTS(KILN_DRIVER_TABLE_MEMBER)
#undef KILN_DRIVER_TABLE_MEMBER
};
}  // namespace detail

using detail::DriverTable;

}  // namespace kiln::device
