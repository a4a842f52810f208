// The check of requests with user code: no reference knows what the code makes of a result, so the code itself says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "judge.h"
#include "kiln/device/context.h"
#include "kiln/execution/executable.h"
#include "kiln/generator/request.h"
#include "kiln/generator/run_values.h"
#include "trusted_run.h"

namespace kiln::checking {

/// Ranges of right results of one call of a request with user code; see trusted_program().
class UserOracle {
 public:
  /// `contents`: memory of the operands of `request` in their order, before the call.
  UserOracle(const Request& request, const std::vector<std::vector<std::byte>>& contents, const RunValues& values,
             const CheckOptions& options);

  /// Runs the trusted program and keeps the bounds that it gives. Finds what is wrong with its result before the
  /// epilogue, compared with the reference on what the prologue gave: at every element or at samples, as `options` say.
  /// Waits for the device.
  Finding evaluate(const std::shared_ptr<const device::ContextHandle>& context, const execution::Executable& trusted);

  /// Contents of an output besides the result, as the trusted program left them; evaluate() has been called.
  const std::vector<std::byte>& trusted_output(const std::string& name) const { return before_.at(name); }

  /// Judges an output besides the result, which has the batch if the result has it: by the reference on what the
  /// prologue gave, and by how far that may move the output. evaluate() has been called.
  Judge judge_of(const std::string& output) const;

  bool evaluated() const { return !low_.empty() || output_.elements() == 0; }

  /// Compares the outputs with the bounds, the first `n` along dimension 0; evaluate() has been called.
  Finding compare(std::span<const std::byte> output, int64_t n) const;

 private:
  using Memory = std::vector<std::byte>;

  Memory& memory(std::string_view name);
  reference::Bindings bindings() const;
  std::vector<float> perturbations() const;
  std::map<std::string, std::vector<float>> slacks(TrustedRun& device) const;

  std::string input_, result_;  // the operands that the prologue, if there can be one, and the epilogue apply to
  std::optional<DType> input_type_;
  TensorSpec output_;
  Request plain_;
  RunValues values_;
  CheckOptions options_;
  std::vector<std::string> names_;                    // of the trusted program's operands
  std::vector<Memory> memories_;                      // of them, before the call
  std::vector<std::string> written_;                  // the result and further outputs
  std::map<std::string, Memory> before_;              // what the trusted program left in them, and made of the input
  std::map<std::string, std::vector<float>> slacks_;  // of outputs besides the result, in logical order
  std::vector<float> low_, high_;                     // in logical order
};

}  // namespace kiln::checking
