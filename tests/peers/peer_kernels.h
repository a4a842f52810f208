// Kernels of others that tests run, and where they come from.
#pragma once

#include <string>
#include <vector>

#include "kiln/checking/check.h"
#include "kiln/generator/request.h"
#include "kiln/store/file_store.h"
#include "triton_peer.h"

namespace kiln::bench {

/// All kernels that triton_kernels.py made, by name; none where Triton was not there when the tests were built.
std::vector<TritonProgram> triton_programs();
std::string why_no_triton();

/// The store of compiled kernels of the tests.
store::FileStore& peer_store();

/// How results of peers are checked: as those of Kiln, except for what they do not promise. Factors are rounded to
/// tf32, so that the largest number may become infinite. Sums of fp8 keep few bits on chips: small integers alone are
/// exact.
checking::CheckOptions peer_options(const Request& request);

}  // namespace kiln::bench
