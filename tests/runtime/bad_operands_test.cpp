// For every tensor of every operation call: everything that can be wrong with that one tensor. Options stand in
// bad_operations_test.cpp.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "exported_symbols.h"
#include "kiln/generator/operation.h"
#include "right_calls.h"

namespace kiln::bad_operands_test {
namespace {

std::vector<int64_t> extents_of(const Tensor& tensor) {
  std::vector<int64_t> extents;
  for (int i = 0; i < tensor.rank(); ++i) extents.push_back(tensor.extent(i));
  return extents;
}

Tensor like(const Tensor& tensor, const void* data, const std::vector<int64_t>& extents) {
  return {data, tensor.dtype(), extents, contiguous};
}

const std::byte* address(const Tensor& tensor, ptrdiff_t bytes = 0) {
  return static_cast<const std::byte*>(tensor.data()) + bytes;
}

class BadOperands : public RightCalls {
 protected:
  struct alignas(256) HostMemory : std::array<std::byte, 65536> {};
  const HostMemory host_{};
  static constexpr int64_t room_ = 16;  // bytes
  std::string beyond_its_memory(const std::string& name, const Tensor& good) const;
  using AddRow = std::function<void(const std::string& what, const Tensor& bad, const std::string& message)>;
  static void add_extents(const RightCall& call, size_t i, const AddRow& row);
  std::vector<Bad> rows(Context& context, const RightCall& call) const;
};

std::string BadOperands::beyond_its_memory(const std::string& name, const Tensor& good) const {
  const std::byte* const last = base_ + bytes - room_;
  return fmt::format(
      "{} takes {} bytes, from {} to {}, and only {} of them are there: its memory is an allocation of {} bytes at {}",
      name, good.span_bytes(), static_cast<const void*>(last), static_cast<const void*>(last + good.span_bytes() - 1),
      room_, bytes, static_cast<const void*>(base_));
}

// The call's tensor i with extents that the others contradict.
void BadOperands::add_extents(const RightCall& call, size_t i, const AddRow& row) {
  const Tensor& good = call.tensors[i].tensor;
  const std::vector<int64_t> extents = extents_of(good);
  const bool fits_any = call.tensors.size() == 1;  // nothing that other extents could contradict
  const bool is_reduced = call.reduces && i == 0;
  for (size_t d = 0; d < extents.size() && !fits_any; ++d) {
    if (is_reduced && d != 1) continue;
    std::vector<int64_t> one_more = extents, more = extents, none = extents;
    one_more[d] += 1;
    more[d] = 2 * more[d] + 1;
    none[d] = 0;
    const auto free = call.free_dimensions.find(call.tensors[i].name);
    const bool is_free = free != call.free_dimensions.end() && free->second.contains(d);
    if (!is_free) {
      row(fmt::format("one more along dimension {}", d), like(good, good.data(), one_more), "");
      row(fmt::format("more along dimension {}", d), like(good, good.data(), more), "");
    }
    if (!is_free || !call.none_is_free) {
      row(fmt::format("nothing along dimension {}", d), like(good, good.data(), none), "");
    }
  }
  if (!fits_any && !is_reduced) {
    if (extents.size() > 1) row("a dimension less", like(good, good.data(), {extents.begin(), extents.end() - 1}), "");
    std::vector<int64_t> one_more = extents;
    one_more.push_back(1);
    row("a dimension more", like(good, good.data(), one_more), "");
  }
}

// The call with each of its tensors spoilt in each way.
std::vector<Bad> BadOperands::rows(Context& context, const RightCall& call) const {
  std::vector<Bad> rows;
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    const std::string& name = call.tensors[i].name;
    const Tensor& good = call.tensors[i].tensor;
    const std::vector<int64_t> extents = extents_of(good);
    const auto row = [&](const std::string& what, const Tensor& bad, const std::string& message) {
      std::vector<Named> tensors = call.tensors;
      tensors[i].tensor = bad;
      rows.push_back({fmt::format("{} {}: {}", call.operation, name, what),
                      [&context, &call, tensors] { call.run(context, tensors); },
                      fmt::format("{}: {}", call.operation, message)});
    };
    row("null", like(good, nullptr, extents), name + " is a null pointer");
    if (size_of(good.dtype()) > 2) {
      row("between elements", like(good, address(good, 2), extents), name + " has alignment 2");
    }
    if (!device_->device().info().reaches_host_memory) {
      row("on the host", like(good, host_.data(), extents),
          fmt::format("{} is at {}: this is host memory", name, static_cast<const void*>(host_.data())));
    }
    if (good.span_bytes() > room_) {
      row("at the end of its memory", like(good, base_ + bytes - room_, extents), beyond_its_memory(name, good));
    }
    const bool is_product = call.operation == "gemm" || call.operation == "conv_forward";
    const bool is_factor = is_product && i + call.outputs < call.tensors.size();  // it may be i8, and results anything
    if (is_factor) row("integers", Tensor(good.data(), i32, extents, contiguous), name + " is i32");
    if (!call.any_dtype && !is_product && !call.operation.starts_with("tensor_")) {  // these take any, too
      row("integers", Tensor(good.data(), i8, extents, contiguous), name + " is i8");
    }
    add_extents(call, i, row);
    if (i + call.outputs < call.tensors.size()) continue;
    row("elements that share memory",
        Tensor(good.data(), good.dtype(), extents, std::vector<int64_t>(extents.size(), 0)),
        fmt::format("elements of output {} share memory", call.operation == "tensor_transform" ? "y" : name));
    for (size_t j = 0; j < i; ++j) {
      const Named& other = call.tensors[j];
      row("over " + other.name, like(good, address(other.tensor, 4), extents),
          fmt::format("the memory of {} and {} overlaps", name, other.name));
    }
  }
  return rows;
}

TEST_F(BadOperands, OfEveryOperationAreRefusedBeforeAndAfterAGoodCall) {
  Context context(options());
  for (auto& [function, call] : calls()) {
    SCOPED_TRACE(function);
    RightCall named = call;
    if (named.operation.empty()) named.operation = function;
    const std::vector<Bad> table = rows(context, named);
    expect_refused(table);
    named.run(context, named.tensors);
    expect_refused(table);  // a plan is there now
  }
}

TEST_F(BadOperands, OfEveryFunctionGoodOnesAreRecorded) {
  const std::string file = testing::TempDir() + "kiln_good_calls.txt";
  std::set<std::string> recorded, known;
  for (const auto& good : calls()) {
    SCOPED_TRACE(good.first);
    const RightCall& call = good.second;
    Context context(options_that_only_record(file));
    EXPECT_THAT(refusal_of([&] { call.run(context, call.tensors); }, ErrorCode::missing_library),
                testing::HasSubstr("NVRTC"));
    std::ifstream stream(file);
    std::string line;
    ASSERT_TRUE(std::getline(stream, line));
    const Request request = Request::parse(line);
    EXPECT_EQ(request.key(), line);
    recorded.insert(request.operation);
    EXPECT_FALSE(std::getline(stream, line)) << "one call, one request";
  }
  for (const Operation* operation : operations()) known.emplace(operation->name());
  EXPECT_EQ(recorded, known);
}

TEST_F(BadOperands, AreKnownOfEveryOperationThatTheLibraryExports) {
  if (!std::filesystem::exists(KILN_LIBRARY)) GTEST_SKIP() << "these tests were carried here without the library";
  std::set<std::string> covered;
  for (const auto& [function, call] : calls()) covered.insert(function.substr(0, function.find(',')));
  const std::set<std::string> exported = exported_operations(KILN_LIBRARY);
  EXPECT_EQ(missing_of(covered, exported), std::set<std::string>()) << "each needs a call in calls()";
  EXPECT_EQ(missing_of(exported, covered), std::set<std::string>()) << "the library exports no such function";
}

}  // namespace
}  // namespace kiln::bad_operands_test
