// Bugs of pipelined kernels on tensor cores, each planted in a correct kernel, and the report of full checks; and
// correct kernels that look like bugs.
#include <cmath>
#include <random>

#include "core_fixture.h"
#include "core_nvrtc.h"
#include "core_small_floats.h"

namespace kiln::emulator::test::core_matrix_bugs_test {
namespace {

using testing::HasSubstr;

// c[m][n] = sum of a[m][k] * b[n][k], in f16 with f32 sums. Blocks of 64 x 64 with 2 x 2 warps, 32 of k at a time in
// three stages. The results leave through shared memory, where the stages were. k is a multiple of 8.
constexpr const char* source = R"(
typedef unsigned short Half;
constexpr int tile = 64, depth = 32, stages = 3, pitch = tile + 8;

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ unsigned piece_at(const Half* stage, int row, int piece) {
  return shared_address(stage + row * depth + (piece ^ (row / 2 % 4)) * 8);
}

__device__ void copy_piece(unsigned to, const Half* from, int source_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(source_bytes) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ void wait() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

__device__ void load_matrices(unsigned (&d)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(at) : "memory");
}

__device__ void multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ unsigned pair(float low, float high) {
  unsigned halves;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
  return halves;
}

__device__ void store_matrices(unsigned at, unsigned x, unsigned y) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(x), "r"(y) : "memory");
}

extern "C" __global__ void product(const Half* a, const Half* b, Half* c, int m, int n, int k) {
  __shared__ __align__(128) Half memory[2 * stages * tile * depth];
  const int first_row = blockIdx.y * tile, first_column = blockIdx.x * tile, steps = (k + depth - 1) / depth;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  const auto a_stage = [&](int step) { return memory + step % stages * (tile * depth); };
  const auto b_stage = [&](int step) { return memory + (stages + step % stages) * (tile * depth); };
  const auto fetch = [&](int step) {
    for (int p = threadIdx.x; step < steps && p < tile * 4; p += blockDim.x) {
      const int row = p / 4, piece = p % 4, at = step * depth + piece * 8;
      const bool a_inside = first_row + row < m && at < k, b_inside = first_column + row < n && at < k;
      copy_piece(piece_at(a_stage(step), row, piece), a_inside ? a + (first_row + row) * k + at : a, a_inside ? 16 : 0);
      copy_piece(piece_at(b_stage(step), row, piece), b_inside ? b + (first_column + row) * k + at : b,
                 b_inside ? 16 : 0);
    }
    commit();
  };
  float sums[2][4][4] = {};
  fetch(0);
  fetch(1);
  for (int step = 0; step < steps; ++step) {
    wait();
    __syncthreads();
    fetch(step + 2);
    for (int inner = 0; inner < 4; inner += 2) {
      unsigned a_part[2][4], b_part[2][4];
      for (int i = 0; i < 2; ++i) {
        load_matrices(a_part[i], piece_at(a_stage(step), warp_row + i * 16 + lane % 16, inner + lane / 16));
        load_matrices(b_part[i], piece_at(b_stage(step), warp_column + i * 16 + lane % 8 + lane / 16 * 8,
                                          inner + lane / 8 % 2));
      }
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 4; ++j) {
          multiply_add(sums[i][j], a_part[i], b_part[j / 2][j % 2 * 2], b_part[j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }
  __syncthreads();  // the stages have been read
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      const Half* const to = memory + (warp_row + i * 16 + lane % 16) * pitch + warp_column + j * 8;
      store_matrices(shared_address(to), pair(sums[i][j][0], sums[i][j][1]), pair(sums[i][j][2], sums[i][j][3]));
    }
  }
  __syncthreads();  // the results are there
  for (int p = threadIdx.x; p < tile * 8; p += blockDim.x) {
    const int row = p / 8, piece = p % 8;
    const uint4 results = *reinterpret_cast<const uint4*>(memory + row * pitch + piece * 8);
    if (first_row + row < m && first_column + piece * 8 < n) {
      *reinterpret_cast<uint4*>(c + (first_row + row) * n + first_column + piece * 8) = results;
    }
  }
})";

struct Edit {
  std::string from, to;
};

/// `text` with the edits, each of a place that is there once.
std::string edited(std::string text, const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    const size_t at = text.find(edit.from);
    if (at == std::string::npos || text.find(edit.from, at + 1) != std::string::npos) {
      ADD_FAILURE() << "'" << edit.from << "' stands not once in the kernel";
      continue;
    }
    text.replace(at, edit.from.size(), edit.to);
  }
  return text;
}

class MatrixKernel {
 public:
  static constexpr int m = 80, n = 72;

  explicit MatrixKernel(int k) : k_(k) {
    std::mt19937 random(38);
    for (Buffer<uint16_t>* factor : {&a_, &b_}) {
      for (uint16_t& x : factor->values()) x = half_format.encode(static_cast<double>(random() % 2001) / 1000.0 - 1);
    }
  }

  LaunchOutcome run(const std::vector<Edit>& edits) {
    Module module(compile(edited(source, edits), "compute_90"));
    module.allow(a_, "a").allow(b_, "b").allow(c_, "c").check(CheckLevel::full);
    const Arguments arguments(a_.address(), b_.address(), c_.address(), m, n, k_);
    LaunchRequest request = module.request("product", {2, 2}, {128}, arguments);
    request.instruction_limit = 10'000'000;
    return emulator::run(request);
  }

  /// Elements of c that are not the sum in the order of k, rounded.
  int wrong() const {
    int found = 0;
    const auto depth = static_cast<size_t>(k_);
    for (size_t row = 0; row < m; ++row) {
      for (size_t column = 0; column < n; ++column) {
        float sum = 0;
        for (size_t i = 0; i < depth; ++i) {
          sum = std::fma(static_cast<float>(half_format.value(a_[row * depth + i])),
                         static_cast<float>(half_format.value(b_[column * depth + i])), sum);
        }
        found += c_[row * n + column] == half_format.encode(static_cast<double>(sum)) ? 0 : 1;
      }
    }
    return found;
  }

 private:
  int k_;
  Buffer<uint16_t> a_{size_t{m} * static_cast<size_t>(k_)}, b_{size_t{n} * static_cast<size_t>(k_)}, c_{size_t{m} * n};
};

/// A bug, the kind of its report, and what the report says among other things.
struct Bug {
  std::string name;
  std::vector<Edit> edits;
  FaultKind kind;
  std::vector<std::string> report;
  int k = 160;
};

const std::string in_flight = "is still writing: nothing has waited for it (race)";
const std::string written = "has written, and nothing orders the two (race)";
const std::string has_read = "has read, and nothing orders the two (race)";
const std::string whole_warp = "all 32 threads of a warp must execute this together";
const std::string a_rows = "piece_at(a_stage(step), warp_row + i * 16 + lane % 16, inner + lane / 16)";
const std::string results_there = "__syncthreads();  // the results are there";

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Bug> bugs() {
  using enum FaultKind;
  return {
      {"copies are not waited for",
       {{"    wait();\n", ""}},
       race,
       {in_flight, "ldmatrix", "the other: PTX line", "cp.async.cg"}},
      {"one group too many may be open", {{"wait_group 1", "wait_group 2"}}, race, {in_flight, "ldmatrix"}},
      {"only one warp waits", {{"    wait();\n", "    if (warp == 0) wait();\n"}}, race, {in_flight, "ldmatrix"}},
      {"copies are never committed", {{"    commit();\n", ""}}, race, {in_flight, "ldmatrix"}},
      {"groups are committed before their copies",
       {{"    commit();\n", ""},
        {"  const auto fetch = [&](int step) {\n", "  const auto fetch = [&](int step) {\n    commit();\n"}},
       race,
       {in_flight, "ldmatrix"}},
      {"no barrier before ldmatrix",
       {{"    wait();\n    __syncthreads();\n", "    wait();\n"}},
       race,
       {"ldmatrix", "the other: PTX line", "cp.async.cg"}},
      {"a warp's barrier for the block's",
       {{"    wait();\n    __syncthreads();\n", "    wait();\n    __syncwarp();\n"}},
       race,
       {"the other: PTX line"}},
      {"the barrier in front of the wait",
       {{"    wait();\n    __syncthreads();\n", "    __syncthreads();\n    wait();\n"}},
       race,
       {"ldmatrix", "the other: PTX line", "cp.async.cg"}},
      {"a stage is refilled before the barrier",
       {{"    wait();\n    __syncthreads();\n    fetch(step + 2);\n",
         "    wait();\n    fetch(step + 2);\n    __syncthreads();\n"}},
       race,
       {has_read, "cp.async.cg", "ldmatrix"}},
      {"two stages for three",
       {{"stages = 3", "stages = 2"}, {"2 * stages * tile", "2 * 3 * tile"}},
       race,
       {"the other: PTX line", "cp.async.cg"}},
      {"copies go to the stage that is read",
       {{"copy_piece(piece_at(a_stage(step), row, piece)", "copy_piece(piece_at(a_stage(step + 1), row, piece)"}},
       race,
       {"cp.async.cg"}},
      {"a row over the edge is read",
       {{"a_inside = first_row + row < m && at < k", "a_inside = at < k"}},
       illegal_address,
       {"reads 16 bytes", "5120 bytes past the end of a", "cp.async.cg"}},
      {"a piece over the edge is not filled",
       {{"a_inside ? 16 : 0", "16"}, {"+ (first_row + row) * k + at : a", "+ (first_row + row) * k + at : a + m * k"}},
       illegal_address,
       {"reads 16 bytes", "0 bytes past the end of a", "cp.async.cg"}},
      {"the end of k is not filled",
       {{"      copy_piece(piece_at(a_stage(step)", "      if (at < k) copy_piece(piece_at(a_stage(step)"}},
       uninitialised_read,
       {"(uninitialised)", "ldmatrix", "stored here: PTX line", "stmatrix"},
       88},
      {"a stage is never filled",
       {{"  fetch(1);\n", "  commit();\n"}},
       uninitialised_read,
       {"(uninitialised)", "ldmatrix", "stored here: PTX line", "stmatrix"},
       64},
      {"rows beyond shared memory",
       {{"(stages + step % stages)", "(stages + step % stages + 1)"}},
       illegal_address,
       {"of the block's 24576 bytes of shared memory", "cp.async.cg"}},
      {"ldmatrix beyond shared memory",
       {{"piece_at(b_stage(step), warp_column", "piece_at(b_stage(step) + stages * tile * depth, warp_column"}},
       illegal_address,
       {"reads 16 bytes", "of the block's 24576 bytes of shared memory", "ldmatrix"}},
      {"stages do not come round",
       {{"(stages + step % stages)", "(stages + step)"}},
       illegal_address,
       {"of the block's 24576 bytes of shared memory", "cp.async.cg"}},
      {"a misaligned row",
       {{a_rows, a_rows + " + 8"}},
       misaligned_address,
       {"reads 16 bytes", "which is not aligned to 16 bytes", "ldmatrix"}},
      {"a misaligned source",
       {{"a + (first_row + row) * k + at : a", "a + (first_row + row) * k + at + 4 : a"}},
       misaligned_address,
       {"reads 16 bytes", "which is not aligned to 16 bytes", "cp.async.cg"}},
      {"more is read than written",
       {{"a_inside ? 16 : 0", "a_inside ? 32 : 0"}},
       illegal_instruction,
       {"the copy is to read more bytes than it writes", "cp.async.cg"}},
      {"half a warp multiplies",
       {{"          multiply_add(", "          if (lane < 16) multiply_add("}},
       illegal_instruction,
       {whole_warp, "mma.sync.aligned.m16n8k16"}},
      {"mma is guarded by the row of a lane",
       {{"          multiply_add(", "          if (warp_row + i * 16 + lane / 4 < 20) multiply_add("}},
       illegal_instruction,
       {whole_warp, "mma.sync.aligned.m16n8k16"}},
      {"ldmatrix by the lanes that have rows",
       {{"        load_matrices(a_part[i], ", "        if (lane % 16 < 8) load_matrices(a_part[i], "}},
       illegal_instruction,
       {whole_warp, "ldmatrix"}},
      {"threads over the edge leave",
       {{"  float sums", "  if (first_row + warp_row + lane >= m) return;\n  float sums"}},
       illegal_instruction,
       {whole_warp, "have left the kernel", "ldmatrix"}},
      {"results are stored where stages are read",
       {{"__syncthreads();  // the stages have been read", ""}},
       race,
       {has_read, "stmatrix", "the other: PTX line", "ldmatrix"}},
      {"results are read before they are there",
       {{results_there, ""}},
       race,
       {written, "ld.shared", "the other: PTX line", "stmatrix"}},
      {"rows of results overlap", {{"pitch = tile + 8", "pitch = tile - 8"}}, race, {written, "stmatrix"}},
  };
}

class MatrixBugs : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_present()) GTEST_SKIP() << "no NVRTC on this machine";
  }
};

TEST_F(MatrixBugs, AreReported) {
  for (const Bug& bug : bugs()) {
    const LaunchOutcome outcome = MatrixKernel(bug.k).run(bug.edits);
    if (!outcome.fault) {
      ADD_FAILURE() << bug.name << " is not noticed";
      continue;
    }
    EXPECT_EQ(outcome.fault->kind, bug.kind) << bug.name << ": " << outcome.fault->report;
    for (const std::string& part : bug.report) EXPECT_THAT(outcome.fault->report, HasSubstr(part)) << bug.name;
  }
}

TEST_F(MatrixBugs, OfSwizzlesShowInTheResultOnly) {
  // Every place of a stage is written, so a wrong one is as good as the right one.
  MatrixKernel kernel(160);
  const LaunchOutcome outcome =
      kernel.run({{"__device__ void copy_piece",
                   "__device__ unsigned plain_at(const Half* stage, int row, int piece) {\n"
                   "  return shared_address(stage + row * depth + piece * 8);\n}\n"
                   "__device__ void copy_piece"},
                  {a_rows, "plain_at(a_stage(step), warp_row + i * 16 + lane % 16, inner + lane / 16)"}});
  EXPECT_FALSE(outcome.fault) << outcome.fault->report;
  EXPECT_GT(kernel.wrong(), MatrixKernel::m * MatrixKernel::n / 2);
}

TEST_F(MatrixBugs, AreNotSeenInCorrectKernels) {
  const std::vector<std::pair<std::string, std::vector<Edit>>> kernels = {
      {"as it is", {}},
      {"fragments of a stage that was never filled are loaded, and not used",
       {{"    for (int inner = 0;",
         "    unsigned ahead[4];\n"
         "    load_matrices(ahead, piece_at(a_stage(step + 2), lane, 0));\n"
         "    for (int inner = 0;"},
        {"    fetch(step + 2);\n", ""},
        {"      for (int i = 0; i < 2; ++i) {\n        for (int j = 0; j < 4; ++j) {\n          multiply_add",
         "      if (inner == 2) __syncthreads(), fetch(step + 2);\n"
         "      for (int i = 0; i < 2; ++i) {\n        for (int j = 0; j < 4; ++j) {\n          multiply_add"}}},
      {"rows over the edge are not copied, and their results are not stored",
       {{"      copy_piece(piece_at(a_stage(step)", "      if (first_row + row < m) copy_piece(piece_at(a_stage(step)"},
        {"      store_matrices(shared_address(to), pair(sums[i][j][0], sums[i][j][1]), pair(sums[i][j][2], "
         "sums[i][j][3]));",
         "      unsigned* const words = reinterpret_cast<unsigned*>(memory + (warp_row + i * 16 + lane / 4) * pitch + "
         "warp_column + j * 8 + lane % 4 * 2);\n"
         "      words[0] = pair(sums[i][j][0], sums[i][j][1]), words[4 * pitch] = pair(sums[i][j][2], "
         "sums[i][j][3]);"}}},
      {"four stages for three", {{"stages = 3", "stages = 4"}}},
  };
  for (const int k : {32, 88, 160}) {
    for (const auto& [name, edits] : kernels) {
      MatrixKernel kernel(k);
      const LaunchOutcome outcome = kernel.run(edits);
      EXPECT_FALSE(outcome.fault) << name << ", k = " << k << ": " << outcome.fault->report;
      EXPECT_EQ(kernel.wrong(), 0) << name << ", k = " << k;
    }
  }
}

}  // namespace
}  // namespace kiln::emulator::test::core_matrix_bugs_test
