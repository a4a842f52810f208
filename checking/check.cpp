#include "kiln/checking/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "judge.h"
#include "kiln/base/error.h"
#include "kiln/device/stream.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/tensor_memory.h"
#include "user_oracle.h"

namespace kiln::checking {
namespace {

constexpr size_t workspace_alignment = 256;

// The batches at which a request is checked; the full one first.
std::vector<int64_t> batches_of(const Request& request) {
  std::vector<int64_t> batches{request.batch()};
  if (!request.dynamic_batch) return batches;
  for (const int64_t n : {request.batch() - 1, request.batch() / 2 + 1, int64_t{1}, int64_t{0}}) {
    if (n >= 0 && std::find(batches.begin(), batches.end(), n) == batches.end()) batches.push_back(n);
  }
  return batches;
}

std::vector<reference::Values> usable_fills(const std::vector<reference::Values>& fills, bool full) {
  std::vector<reference::Values> usable;
  for (const reference::Values values : fills) {
    if (full || values != reference::Values::specials) usable.push_back(values);
  }
  if (usable.empty()) usable.push_back(reference::Values::uniform);
  return usable;
}

// Keeps the largest error of them, relative to what is allowed; what was wrong, if anything was.
std::string add(const std::vector<Finding>& findings, Verdict& verdict) {
  for (const Finding& finding : findings) {
    if (!finding.wrong.empty()) return finding.wrong;
    if (verdict.bound == 0 || finding.max_error * verdict.bound > verdict.max_error * finding.bound) {
      verdict.max_error = finding.max_error;
      verdict.bound = finding.bound;
    }
  }
  return {};
}

}  // namespace

bool is_checked_in_full(const Request& request, const CheckOptions& options) {
  return result_of(request).spec.elements() <= options.full_elements &&
         operation(request.operation).work(request).flops <= options.full_flops;
}

bool needs_trusted(const Request& request, const CheckOptions& options) {
  return static_cast<bool>(request.user_code) || !is_checked_in_full(request, options);
}

class Checker::Impl {
 public:
  // Side that a variant has in comparisons.
  enum class Role {
    trusted,    // with the reference; what it makes is kept, for others to be compared with
    candidate,  // with the reference and with what the trusted one made
    alone,      // with the reference
  };

  Impl(std::shared_ptr<const device::ContextHandle> context, Request request, CheckOptions options);

  const Request& request() const { return request_; }
  const DeviceOperands& timed_operands();
  Verdict trust(const execution::Executable& trusted);
  Verdict run_all(const Checkable& variant, Role role);

 private:
  using Side = DeviceOperands::One;
  struct Output {
    size_t side;  // index into sides_
    Judge judge;
    std::optional<Memory> trusted;  // what the trusted variant made of it
  };
  struct Case {                      // one fill
    std::vector<Memory> contents;    // of each operand before the call
    std::vector<Output> outputs;     // if there is user code, all but the result, once trust() has been called
    std::optional<UserOracle> user;  // of the result then
  };

  Case make_case(reference::Values values) const;
  std::vector<Output> outputs_of(const Case& at) const;
  Judge judge_of(const Case& at, const std::string& output, int64_t n) const;
  reference::Bindings bindings_of(const std::vector<Memory>& contents) const;
  std::string run_case(const Checkable& variant, Case& at, Role role, Verdict& verdict);
  std::string run_batch(const Checkable& variant, Case& at, int64_t n, Role role, Verdict& verdict);
  std::optional<std::string> damage(const Case& before, int64_t n, const GuardedBuffer& workspace) const;
  Memory result_of_side(const Side& side) const;
  std::vector<Finding> findings(Case& at, int64_t n, Role role) const;
  std::string judge(Case& at, int64_t n, Role role, Verdict& verdict) const;
  void place(Placement placement);

  std::shared_ptr<const device::ContextHandle> context_;
  CheckOptions options_;
  DeviceOperands operands_;
  const Request& request_ = operands_.request();
  const RunValues& values_ = operands_.values();
  const std::vector<Side>& sides_ = operands_.all();
  bool full_;
  device::Stream stream_;
  std::vector<Case> cases_;
  Placement placement_ = Placement::aligned_no_better;  // of operands_
  const Case* uploaded_ = nullptr;                      // whose inputs are on the device, unharmed, for a check
};

Checker::Impl::Impl(std::shared_ptr<const device::ContextHandle> context, Request request, CheckOptions options)
    : context_(std::move(context)),
      options_(std::move(options)),
      operands_(context_, std::move(request)),
      full_(is_checked_in_full(request_, options_)),
      stream_(context_) {
  for (const reference::Values values : usable_fills(options_.fills, full_)) cases_.push_back(make_case(values));
}

Checker::Impl::Case Checker::Impl::make_case(reference::Values values) const {
  Case made;
  made.contents = contents_of(request_, values, options_.seed);
  if (request_.user_code) made.user.emplace(request_, made.contents, values_, options_);
  if (!made.user) made.outputs = outputs_of(made);
  return made;
}

std::vector<Checker::Impl::Output> Checker::Impl::outputs_of(const Case& at) const {
  std::vector<Output> outputs;
  for (size_t i = 0; i < sides_.size(); ++i) {
    if (!sides_[i].is_written || (at.user && sides_[i].name == result_of(request_).name)) continue;
    outputs.push_back({i, judge_of(at, sides_[i].name, request_.batch()), std::nullopt});
  }
  return outputs;
}

Judge Checker::Impl::judge_of(const Case& at, const std::string& output, int64_t n) const {
  if (at.user) return at.user->judge_of(output);
  reference::Bindings bindings = bindings_of(at.contents);
  if (request_.dynamic_batch) bindings.values.n = n;
  return {request_, output, bindings, full_, options_.samples, options_.seed};
}

reference::Bindings Checker::Impl::bindings_of(const std::vector<Memory>& contents) const {
  reference::Bindings bindings{.operands = {}, .values = values_};
  for (size_t i = 0; i < sides_.size(); ++i) bindings.operands[sides_[i].name] = contents[i];
  return bindings;
}

Verdict Checker::Impl::trust(const execution::Executable& trusted) {
  if (!request_.user_code) return run_all(trusted, Role::trusted);
  Verdict verdict;
  for (Case& at : cases_) {
    std::vector<Finding> findings{at.user->evaluate(context_, trusted)};
    at.outputs = outputs_of(at);
    for (Output& output : at.outputs) {
      output.trusted = at.user->trusted_output(sides_[output.side].name);
      findings.push_back(output.judge.with_reference(*output.trusted, sides_[output.side].spec.extents.front()));
    }
    verdict.text = add(findings, verdict);
    if (!verdict.text.empty()) return verdict;
  }
  verdict.passed = true;
  verdict.text = "before the user's code: " + text_of_errors(verdict.max_error, verdict.bound);
  return verdict;
}

Verdict Checker::Impl::run_all(const Checkable& variant, Role role) {
  place(Placement::aligned_no_better);
  Verdict verdict;
  for (Case& at : cases_) {
    const std::string wrong = run_case(variant, at, role, verdict);
    if (wrong.empty()) continue;
    uploaded_ = nullptr;  // whatever it did, the next variant finds everything in order
    verdict.text = wrong;
    return verdict;
  }
  verdict.passed = true;
  verdict.text = text_of_errors(verdict.max_error, verdict.bound);
  return verdict;
}

std::string Checker::Impl::run_case(const Checkable& variant, Case& at, Role role, Verdict& verdict) {
  for (const int64_t n : batches_of(request_)) {
    std::string wrong = run_batch(variant, at, n, role, verdict);
    if (!wrong.empty()) return request_.dynamic_batch ? fmt::format("n={}: {}", n, wrong) : wrong;
  }
  return {};
}

std::string Checker::Impl::run_batch(const Checkable& variant, Case& at, int64_t n, Role role, Verdict& verdict) {
  GuardedBuffer workspace(context_, static_cast<size_t>(variant.workspace_bytes), workspace_alignment);
  operands_.upload(at.contents, uploaded_ != &at, stream_.raw());
  uploaded_ = &at;
  workspace.arm(stream_.raw());
  device::fill_bytes(*context_, workspace.address(), 0xff, workspace.size(), stream_.raw());
  operands_.prepare(variant, workspace.address(), stream_.raw());
  operands_.run(variant, n, workspace.address(), stream_.raw());
  stream_.synchronize();
  if (const std::optional<std::string> harm = damage(at, n, workspace)) return *harm;
  return judge(at, n, role, verdict);
}

Memory Checker::Impl::result_of_side(const Side& side) const {
  return device::download<std::byte>(*context_, side.device.address(), side.device.size());
}

std::optional<std::string> Checker::Impl::damage(const Case& before, int64_t n, const GuardedBuffer& workspace) const {
  for (size_t i = 0; i < sides_.size(); ++i) {
    const Side& side = sides_[i];
    if (const auto harm = side.device.damage()) return fmt::format("wrote {} of {}", *harm, side.name);
    const Memory after = result_of_side(side);
    if (side.is_written) {
      if (const auto stray = stray_write(side.spec, side.first_extent(n), before.contents[i], after)) {
        return fmt::format("wrote at {} of {}, where no element of the output is", *stray, side.name);
      }
      continue;
    }
    if (const auto changed = first_difference(after, before.contents[i])) {
      return fmt::format("changed the input {} at byte {}", side.name, *changed);
    }
  }
  if (const auto harm = workspace.damage()) return fmt::format("wrote {} of the workspace", *harm);
  return std::nullopt;
}

// Findings on each output; those of the trusted variant are kept.
std::vector<Finding> Checker::Impl::findings(Case& at, int64_t n, Role role) const {
  std::vector<Finding> findings;
  if (at.user) {
    const auto result = std::find_if(sides_.begin(), sides_.end(),
                                     [&](const Side& side) { return side.name == result_of(request_).name; });
    findings.push_back(at.user->compare(result_of_side(*result), result->first_extent(n)));
  }
  for (Output& output : at.outputs) {
    const Side& side = sides_[output.side];
    Memory memory = result_of_side(side);
    if (!side.is_batched && n != request_.batch()) {
      // A sum over the batch: another value for every n.
      findings.push_back(judge_of(at, side.name, n).with_reference(memory, side.first_extent(n)));
      continue;
    }
    findings.push_back(output.judge.with_reference(memory, side.first_extent(n)));
    if (!full_ && role == Role::candidate && findings.back().wrong.empty()) {
      // The comparison with the reference is the stricter one: its figures are those worth showing.
      findings.back().wrong = output.judge.with_trusted(memory, *output.trusted, side.first_extent(n)).wrong;
    }
    if (role == Role::trusted && n == request_.batch()) output.trusted = std::move(memory);
  }
  return findings;
}

std::string Checker::Impl::judge(Case& at, int64_t n, Role role, Verdict& verdict) const {
  const bool has_trusted = std::all_of(at.outputs.begin(), at.outputs.end(),
                                       [](const Output& output) { return output.trusted.has_value(); });
  const bool stands_alone = full_ || role != Role::candidate;
  if (!(at.user ? at.user->evaluated() : stands_alone || has_trusted)) {
    throw Error(ErrorCode::internal,
                fmt::format("{} cannot be checked without the trusted variant's result", request_.key()));
  }
  return add(findings(at, n, role), verdict);
}

const DeviceOperands& Checker::Impl::timed_operands() {
  if (placement_ != Placement::as_allocated) {
    place(Placement::as_allocated);
    operands_.upload(cases_.front().contents, true, stream_.raw());
    stream_.synchronize();
  }
  return operands_;
}

void Checker::Impl::place(Placement placement) {
  if (placement == placement_) return;
  placement_ = placement;
  operands_.place(placement);
  uploaded_ = nullptr;
}

Checker::Checker(std::shared_ptr<const device::ContextHandle> context, Request request, CheckOptions options)
    : impl_(std::make_unique<Impl>(std::move(context), std::move(request), std::move(options))) {}
Checker::~Checker() = default;
Checker::Checker(Checker&&) noexcept = default;
Checker& Checker::operator=(Checker&&) noexcept = default;

const Request& Checker::request() const {
  return impl_->request();
}

std::vector<std::string> Checker::operand_names() const {
  std::vector<std::string> names;
  for (const Operand& operand : impl_->request().operands) names.push_back(operand.name);
  return names;
}

Verdict Checker::trust(const execution::Executable& trusted) {
  return impl_->trust(trusted);
}

Verdict Checker::check(const Checkable& variant) {
  return impl_->run_all(variant, Impl::Role::candidate);
}

Verdict Checker::check_with_reference(const Checkable& variant) {
  return impl_->run_all(variant, Impl::Role::alone);
}

const DeviceOperands& Checker::timed_operands() {
  return impl_->timed_operands();
}

}  // namespace kiln::checking
