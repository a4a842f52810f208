#include "measurer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <new>

#include "kiln/base/error.h"
#include "kiln/checking/trusted_program.h"

namespace kiln::tuner {

Measurer::Measurer(const std::optional<std::string>& driver, int ordinal, checking::CheckOptions options)
    : context_(device::ContextHandle::acquire(device::Device(device::Driver::open({.library = driver}), ordinal))),
      options_(std::move(options)),
      timer_(context_) {}

checking::Verdict Measurer::begin(const Subject& subject, const execution::CompiledProgram* trusted) {
  loaded_.clear();
  checker_.reset();  // first, so that two requests' operands are never there at the same time
  large_.reset();
  checker_.emplace(context_, subject.checked(), options_);
  if (subject.stand_in) large_.emplace(context_, subject.request, checking::Placement::as_allocated);
  is_large_filled_ = false;
  checking::Verdict verdict;
  verdict.passed = true;
  if (trusted != nullptr) {
    verdict = checker_->trust({context_, *trusted, checking::trusted_operand_names(subject.checked())});
  }
  return verdict;
}

void Measurer::load(SpecimenId id, const Variant& variant) {
  const std::vector<std::string> names = checker().operand_names();
  Loaded loaded{execution::Executable(context_, variant.program, names), std::nullopt};
  if (variant.stand_in) loaded.stand_in.emplace(context_, *variant.stand_in, names);
  loaded_.insert_or_assign(id, std::move(loaded));
}

checking::Verdict Measurer::check(SpecimenId id) {
  const Loaded& loaded = find(id);
  if (!large_) return checker().check(loaded.program);
  checking::Verdict verdict = checker().check(loaded.stand_in.value());
  const auto &whole = large_->request().operands, &run = checker().request().operands;
  const auto smaller = std::mismatch(run.begin(), run.end(), whole.begin(), whole.end()).first;
  if (smaller != run.end()) {
    verdict.text += fmt::format(", with {} of {}", smaller->name, fmt::join(smaller->spec.extents, "x"));
  }
  return verdict;
}

std::vector<double> Measurer::sample(SpecimenId id, int count) {
  const execution::Executable& program = find(id).program;
  if (device().info().emulated) return std::vector(static_cast<size_t>(count), modelled_seconds(program));
  return timer_.time(checker().timed_operands(), program, count, L2::cold);
}

// The program is run only if data decide how long it takes.
double Measurer::modelled_seconds(const execution::Executable& program) {
  const checking::DeviceOperands& operands = large_ ? *large_ : checker().timed_operands();
  const auto time = [&] { return timer_.time(operands, program, 1, L2::cold).front(); };
  if (const std::optional<double> seconds = device::timed_only(context_, time)) return *seconds;
  if (large_ && !is_large_filled_) {
    large_->upload(checking::contents_of(large_->request(), options_.fills.front(), options_.seed), true, nullptr);
    is_large_filled_ = true;
  }
  return time();
}

checking::Checker& Measurer::checker() {
  if (!checker_) throw Error(ErrorCode::internal, "the worker was given a program before its request");
  return *checker_;
}

const Measurer::Loaded& Measurer::find(SpecimenId id) const {
  const auto found = loaded_.find(id);
  if (found == loaded_.end()) throw Error(ErrorCode::internal, fmt::format("program {} is not loaded", id));
  return found->second;
}

Diagnosis diagnose_current_exception() {
  try {
    throw;
  } catch (const device::DriverError& error) {
    if (error.code() == ErrorCode::out_of_memory) return {{Outcome::out_of_memory, error.what()}};
    if (!error.is_sticky()) return {{Outcome::compile_failed, error.what()}};  // rejected before it ran
    const bool hung = error.result() == cuda_abi::CUDA_ERROR_LAUNCH_TIMEOUT;
    return {{hung ? Outcome::timed_out : Outcome::crashed, error.what()}, true};
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::out_of_memory:
        return {{Outcome::out_of_memory, error.what()}};
      case ErrorCode::unsupported:
        return {{Outcome::refused, error.what()}};
      case ErrorCode::compile_failed:
        return {{Outcome::compile_failed, error.what()}};
      default:
        return {{Outcome::crashed, error.what()}, true};
    }
  } catch (const std::bad_alloc&) {
    return {{Outcome::out_of_memory, "the host's memory ran out"}};
  } catch (const std::exception& error) {
    return {{Outcome::crashed, error.what()}, true};
  }
}

}  // namespace kiln::tuner
