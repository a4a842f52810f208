#include "measurer.h"

#include <fmt/format.h>

#include <exception>
#include <new>

#include "kiln/base/error.h"
#include "kiln/checking/trusted_program.h"

namespace kiln::tuner {

Measurer::Measurer(const std::optional<std::string>& driver, int ordinal, checking::CheckOptions options)
    : context_(device::ContextHandle::acquire(device::Device(device::Driver::open({.library = driver}), ordinal))),
      options_(std::move(options)),
      timer_(context_) {}

checking::Verdict Measurer::begin(const Request& request, const execution::CompiledProgram* trusted) {
  loaded_.clear();
  checker_.reset();  // first, so that two requests' operands are never there at the same time
  checker_.emplace(context_, request, options_);
  checking::Verdict verdict;
  verdict.passed = true;
  if (trusted != nullptr) verdict = checker_->trust({context_, *trusted, checking::trusted_operand_names(request)});
  return verdict;
}

void Measurer::load(SpecimenId id, const execution::CompiledProgram& compiled) {
  loaded_.insert_or_assign(id, execution::Executable(context_, compiled, checker().operand_names()));
}

checking::Verdict Measurer::check(SpecimenId id) {
  return checker().check(find(id));
}

std::vector<double> Measurer::sample(SpecimenId id, int count) {
  return timer_.time(checker().operands(), find(id), count, L2::cold);
}

checking::Checker& Measurer::checker() {
  if (!checker_) throw Error(ErrorCode::internal, "the worker was given a program before its request");
  return *checker_;
}

const execution::Executable& Measurer::find(SpecimenId id) const {
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
