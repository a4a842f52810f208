#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/executable.h"
#include "kiln/execution/target.h"

namespace kiln::execution::compiled_program_test {
namespace {

TensorMapArgument example_map(std::variant<OperandArgument, WorkspaceArgument> memory) {
  return {.memory = std::move(memory),
          .dtype = DType::bf16,
          .extents = {Count{64}, Count{0, 3, 2}},
          .byte_strides = {128},
          .box = {32, 256},
          .swizzle = Swizzle::bytes_64};
}

CompiledProgram example() {
  CompiledProgram compiled;
  compiled.program.sources = {"first", std::string("with \0 and \xff inside", 18)};
  Launch launch;
  launch.source = 1;
  launch.entry = "kernel";
  launch.grid = {Count{1, 2, 3}, Count{4, 5, 6}, Count{7, 8, 9}};
  launch.block = {32, 4, 2};
  launch.dynamic_shared_bytes = 4096;
  launch.arguments = {OperandArgument{"x"}, OperandArgument{"y", 64}, WorkspaceArgument{512, 500}, Scalar::n,
                      Scalar::clip_hi,      OperationScalar{3},       OperationInteger{1},         UserArgument{}};
  launch.arguments.push_back(example_map(OperandArgument{"x", 32}));
  launch.arguments.push_back(example_map(WorkspaceArgument{512, 256}));
  launch.persistent = true;
  launch.attributes = {.cluster = {2, 1, 4}, .cooperative = false, .programmatic = true};
  compiled.program.steps = {ClearWorkspace{256, 128}, launch};
  compiled.program.workspace_bytes = 1024;
  compiled.program.preparation = {.steps = 1, .bytes = 512};
  compiled.program.deterministic = false;
  compiled.images = {{"ptx 1",
                      std::string("\x7f"
                                  "ELF\0\1",
                                  6),
                      {{.name = "kernel",
                        .arch = "sm_90a",
                        .registers = 40,
                        .spill_stores = 1,
                        .spill_loads = 2,
                        .stack = 3,
                        .static_shared = 4,
                        .constant = 5,
                        .barriers = 6}}},
                     {"ptx 2", "", {}}};
  compiled.log = "a warning";
  compiled.seconds = 0.25;
  return compiled;
}

TEST(CompiledProgram, SurvivesSerialisation) {
  const CompiledProgram before = example();
  const CompiledProgram after = deserialise(serialise(before));
  EXPECT_EQ(after.program, before.program);
  ASSERT_EQ(after.images.size(), 2U);
  EXPECT_EQ(after.images[0].cubin, before.images[0].cubin);
  EXPECT_EQ(after.images[1].ptx, "ptx 2");
  const device::KernelResources& resources = after.images[0].resources.at(0);
  EXPECT_EQ(resources.name, "kernel");
  EXPECT_EQ(resources.arch, "sm_90a");
  EXPECT_THAT((std::vector{resources.registers, resources.spill_stores, resources.spill_loads, resources.stack,
                           resources.static_shared, resources.constant, resources.barriers}),
              testing::ElementsAre(40, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(after.log, "a warning");
  EXPECT_DOUBLE_EQ(after.seconds, 0.25);
}

TEST(CompiledProgram, IsRefusedWithAnyByteDamaged) {
  const std::string bytes = serialise(example());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    EXPECT_THROW(deserialise(damaged), Error) << "byte " << i;
  }
}

TEST(CompiledProgram, IsRefusedCutOffAnywhere) {
  const std::string bytes = serialise(example());
  for (size_t length = 0; length < bytes.size(); length += 7) {
    EXPECT_THROW(deserialise(std::string_view(bytes).substr(0, length)), Error) << length << " bytes";
  }
}

// Bytes from outside with a right checksum: whoever writes them can compute it.
TEST(CompiledProgram, IsRefusedWithALengthBeyondItsEnd) {
  const std::string bytes = serialise(example());
  const size_t first = bytes.find('\n') + 1, digits = bytes.find('{') - first, digest = digest_of("").size();
  for (const std::string& length : {std::string(digits, 'f'), std::string(digits - 1, '0') + "x"}) {
    std::string body = bytes.substr(0, bytes.size() - digest);
    body.replace(first, digits, length);
    try {
      deserialise(body + digest_of(body));
      ADD_FAILURE() << length;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("its length is wrong"));
    }
  }
}

TEST(CompiledProgram, IsRefusedWhereItCannotBeRun) {
  const auto refusal = [](const auto& change) -> std::string {
    CompiledProgram compiled = example();
    change(compiled, std::get<Launch>(compiled.program.steps[1]));
    try {
      deserialise(serialise(compiled));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::parse_error);
      return error.what();
    }
    return "accepted";
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.source = 2; }), HasSubstr("of source 2 of 2"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.grid[1].divisor = 0; }), HasSubstr("no legal grid"));
  for (const int64_t fixed : {int64_t{1} << 62, std::numeric_limits<int64_t>::min()}) {
    EXPECT_THAT(refusal([&](auto&, Launch& launch) { launch.grid[1].fixed = fixed; }), HasSubstr("legal grid"));
  }
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.block[2] = 0; }), HasSubstr("blocks of 32 x 4 x 0"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.block[0] = 1024; }), HasSubstr("blocks of 1024 x 4 x 2"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.block = {41, 25, 1}; }), HasSubstr("blocks of 41 x 25 x 1"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.block = {1, 1025, 1}; }), HasSubstr("blocks of 1 x 1025 x 1"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.arguments = {static_cast<Scalar>(5)}; }),
              HasSubstr("unknown scalar"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.arguments = {OperationScalar{max_operation_scalars}}; }),
              HasSubstr("unknown scalar"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.arguments = {OperationInteger{max_operation_integers}}; }),
              HasSubstr("unknown integer"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) {
                launch.arguments = {OperandArgument{"x", -4}};
              }),
              HasSubstr("outside of x"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.arguments = {WorkspaceArgument{1025}}; }),
              HasSubstr("outside of the workspace"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) {
                launch.arguments = {WorkspaceArgument{1000, 25}};
              }),
              HasSubstr("outside of the workspace"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.arguments.assign(Executable::max_values + 1, Scalar::n); }),
              HasSubstr("too many arguments"));
  EXPECT_THAT(refusal([](CompiledProgram& c, Launch&) {
                c.program.steps[0] = ClearWorkspace{1000, 25};
              }),
              HasSubstr("beyond its workspace"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) {
                launch.attributes.cluster = {4, 4, 1};
              }),
              HasSubstr("clusters of 4 x 4 x 1"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) { launch.attributes.cluster[2] = 0; }), HasSubstr("2 x 1 x 0 blocks"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) {
                launch.attributes.cluster = {3, 3, 1};
              }),
              HasSubstr("clusters of 3 x 3 x 1"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) {
                launch.attributes.cluster = {1, 9, 1};
              }),
              HasSubstr("clusters of 1 x 9 x 1"));
  EXPECT_THAT(refusal([](auto&, Launch& launch) {
                launch.attributes.cooperative = true;
                launch.persistent = false;
              }),
              HasSubstr("wait for each other, but may be more than fit"));
  EXPECT_THAT(refusal([](CompiledProgram& c, Launch&) { c.program.preparation.steps = 3; }),
              HasSubstr("prepares more"));
  EXPECT_THAT(refusal([](CompiledProgram& c, Launch&) { c.program.preparation.bytes = 1280; }), HasSubstr("more"));
  EXPECT_THAT(refusal([](CompiledProgram& c, Launch&) { c.program.preparation.bytes = 300; }), HasSubstr("more"));
  EXPECT_THAT(refusal([](CompiledProgram& c, Launch&) { c.program.preparation.bytes = 768; }),
              HasSubstr("part of what"));
  EXPECT_THAT(refusal([](CompiledProgram& c, Launch&) { c.program.preparation.bytes = 256; }), HasSubstr("not keep"));
  EXPECT_THAT(refusal([](CompiledProgram& c, Launch&) { c.program.preparation = {.steps = 2, .bytes = 1024}; }),
              HasSubstr("differs from call to call"));
  EXPECT_THAT(refusal([](CompiledProgram& c, Launch& launch) {
                launch.arguments = {OperandArgument{"w"}, WorkspaceArgument{0, 4}};
                c.program.preparation = {.steps = 2, .bytes = 1024};
              }),
              HasSubstr("differs from call to call"))
      << "the grid";
  EXPECT_THAT(refusal([](CompiledProgram& c, Launch&) { c.program.workspace_bytes = -1; }), HasSubstr("negative"));
  EXPECT_THAT(refusal([](CompiledProgram& c, Launch&) { c.images.pop_back(); }), HasSubstr("1 images of 2 sources"));
}

TEST(CompiledProgram, IsRefusedWithExtentsThatNoKernelReads) {
  constexpr size_t most_values = (64 << 10) / 8;
  constexpr int64_t most = std::numeric_limits<int32_t>::max(), least = std::numeric_limits<int32_t>::min();
  const auto refusal = [](const std::vector<Extent>& extents) -> std::string {
    CompiledProgram compiled = example();
    compiled.program.sources[1].extents = extents;
    try {
      EXPECT_EQ(deserialise(serialise(compiled)).program, compiled.program);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::parse_error);
      return error.what();
    }
    return "accepted";
  };
  using testing::HasSubstr;
  const Extent full = {"N", std::vector<int64_t>(most_values, 1), 8};
  EXPECT_EQ(refusal({{"N", {most, least}, 4}, {"M", {most + 1, least - 1}, 8}}), "accepted");
  EXPECT_EQ(refusal({full}), "accepted");
  EXPECT_THAT(refusal({{"", {1}, 4}}), HasSubstr("an extent has no name, or no value"));
  EXPECT_THAT(refusal({{"N", {}, 4}}), HasSubstr("an extent has no name, or no value"));
  for (const int bytes : {-4, 0, 1, 2, 5, 16}) {
    EXPECT_THAT(refusal({{"N", {1}, bytes}}), HasSubstr(fmt::format("an extent has {} bytes", bytes)));
  }
  for (const int64_t value : {most + 1, least - 1}) {
    EXPECT_THAT(refusal({{"N", {0, value}, 4}}), HasSubstr(fmt::format("an extent of 4 bytes is {}", value)));
  }
  EXPECT_THAT(refusal({full, {"M", {1}, 4}}), HasSubstr("its extents fit no constant memory"));
  EXPECT_THAT(refusal({{"N", std::vector<int64_t>(most_values + 1, 1), 4}}), HasSubstr("fit no constant memory"));
}

TEST(CompiledProgram, IsTakenAtEachLimit) {
  using Change = void (*)(CompiledProgram&, Launch&);
  const Change changes[] = {
      [](CompiledProgram&, Launch& launch) {
        launch.block = {32, 32, 1};
      },
      [](CompiledProgram&, Launch& launch) {
        launch.block = {1, 1024, 1};
      },
      [](CompiledProgram&, Launch& launch) {
        launch.block = {1, 1, 1};
      },
      [](CompiledProgram&, Launch& launch) {
        launch.attributes.cluster = {8, 1, 1};
      },
      [](CompiledProgram&, Launch& launch) {
        launch.attributes.cluster = {1, 2, 4};
      },
      [](CompiledProgram&, Launch& launch) { launch.attributes.cooperative = true; },
      [](CompiledProgram&, Launch& launch) {
        launch.arguments = {OperationScalar{max_operation_scalars - 1}, OperationInteger{max_operation_integers - 1}};
      },
      [](CompiledProgram&, Launch& launch) {
        launch.arguments = {WorkspaceArgument{1000, 24}, WorkspaceArgument{1024, 0}};
      },
      [](CompiledProgram&, Launch& launch) { launch.arguments.assign(Executable::max_values, Scalar::n); },
      [](CompiledProgram& compiled, Launch&) {
        compiled.program.steps[0] = ClearWorkspace{1000, 24};
        compiled.program.preparation = {};
      },
      [](CompiledProgram& compiled, Launch& launch) {
        launch.grid = {Count{1}, Count{1}, Count{1}};
        launch.arguments = {OperandArgument{"w"}, WorkspaceArgument{0, 300}};
        compiled.program.steps = {launch};
        compiled.program.workspace_bytes = 300;
        compiled.program.preparation = {.steps = 1, .bytes = 300};
      },
      [](CompiledProgram& compiled, Launch&) { compiled.images.clear(); },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    CompiledProgram compiled = example();
    changes[i](compiled, std::get<Launch>(compiled.program.steps[1]));
    EXPECT_EQ(deserialise(serialise(compiled)).program, compiled.program) << i;
  }
}

// Maps that cuTensorMapEncodeTiled would refuse, or read beyond.
TEST(CompiledProgram, IsRefusedWithATensorMapThatNoDriverTakes) {
  const auto refusal = [](const auto& change) -> std::string {
    CompiledProgram compiled = example();
    TensorMapArgument map = example_map(OperandArgument{"x"});
    change(map);
    std::get<Launch>(compiled.program.steps[1]).arguments = {map};
    try {
      deserialise(serialise(compiled));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  using Map = TensorMapArgument;
  using testing::HasSubstr;
  EXPECT_EQ(refusal([](Map&) {}), "accepted");
  EXPECT_THAT(refusal([](Map& map) { map.extents.clear(); }), HasSubstr("a tensor map of 0 dimensions"));
  EXPECT_THAT(refusal([](Map& map) { map.extents.resize(6); }), HasSubstr("of 6 dimensions"));
  EXPECT_THAT(refusal([](Map& map) { map.byte_strides.clear(); }), HasSubstr("lists differ"));
  EXPECT_THAT(refusal([](Map& map) { map.box.pop_back(); }), HasSubstr("lists differ"));
  EXPECT_THAT(refusal([](Map& map) { map.extents[1].divisor = 0; }), HasSubstr("legal extent"));
  EXPECT_THAT(refusal([](Map& map) { map.byte_strides[0] = 120; }), HasSubstr("multiple of 16"));
  EXPECT_THAT(refusal([](Map& map) { map.byte_strides[0] = int64_t{1} << 40; }), HasSubstr("stride"));
  EXPECT_THAT(refusal([](Map& map) { map.byte_strides[0] = -16; }), HasSubstr("stride"));
  EXPECT_THAT(refusal([](Map& map) { map.box[1] = 257; }), HasSubstr("box beyond 1 to 256"));
  EXPECT_THAT(refusal([](Map& map) { map.box[1] = 0; }), HasSubstr("box beyond 1 to 256"));
  EXPECT_THAT(refusal([](Map& map) { map.box[0] = 12; }), HasSubstr("rows have 24 bytes"));
  EXPECT_THAT(refusal([](Map& map) { map.box[0] = 40; }), HasSubstr("narrower than its box's rows of 80 bytes"));
  EXPECT_THAT(refusal([](Map& map) { map.swizzle = static_cast<Swizzle>(4); }), HasSubstr("unknown swizzle"));
  EXPECT_THAT(refusal([](Map& map) { map.memory = OperandArgument{"x", -1}; }), HasSubstr("outside of x"));
  EXPECT_THAT(refusal([](Map& map) {
                map.memory = WorkspaceArgument{1000, 25};
              }),
              HasSubstr("outside of the workspace"));
}

std::string with_fields(const std::string& fields, int version = 5, std::string_view blobs = "") {
  const std::string body = fmt::format("kiln-compiled {}\n{:016x}{}{}", version, fields.size(), fields, blobs);
  return body + digest_of(body);
}

TEST(CompiledProgram, IsRefusedWhereItsFieldsAreNotWhatTheyShouldBe) {
  for (const int version : {3, 4, 5}) {
    EXPECT_NO_THROW(deserialise(with_fields(
        R"({"sources":[],"steps":[],"workspace":0,"deterministic":true,"images":[],"log":0,"seconds":0.0})", version)));
  }
  EXPECT_THROW(deserialise(with_fields("{}", 6)), Error);
  const std::string rest = R"(,"workspace":0,"deterministic":true,"images":[],"log":0,"seconds":0.0})";
  EXPECT_NO_THROW(deserialise(with_fields(R"({"sources":[],"steps":[])" + rest)));
  for (const std::string& fields : {
           std::string(),
           std::string("null"),
           std::string(R"({"sources":[1],"steps":[])" + rest),
           std::string(R"({"sources":[-1],"steps":[])" + rest),
           std::string(R"({"sources":[1e300],"steps":[])" + rest),
           std::string(R"({"sources":[18446744073709551615],"steps":[])" + rest),
           std::string(R"({"sources":[],"steps":[{"clear":"x","bytes":1}])" + rest),
           std::string("{\"sources\":[],\"steps\":[{\"source\":0,\"entry\":\"\xff\"}]" + rest),
           std::string(1'000'000, '['),
           std::string(1'000'000, '{'),
       }) {
    EXPECT_THROW(deserialise(with_fields(fields)), Error) << fields.substr(0, 60);
  }
}

TEST(CompiledProgram, OfVersion3MayTouchAllBehindAnAddressInTheWorkspace) {
  const auto read = [](std::string_view offset) {
    return deserialise(with_fields(
        fmt::format(
            R"({{"sources":[1],"steps":[{{"source":0,"entry":"k","grid":[[1,0,1],[1,0,1],[1,0,1]],"block":[32,1,1],)"
            R"("arguments":[{{"workspace":{}}}],"dynamic_shared":0}}],"workspace":1024,"deterministic":true,)"
            R"("images":[{{"ptx":1,"cubin":0,"resources":[]}}],"log":0,"seconds":0.0}})",
            offset),
        3, "sp"));
  };
  const CompiledProgram compiled = read("1000");
  EXPECT_EQ(std::get<Launch>(compiled.program.steps.at(0)).arguments.at(0), Argument(WorkspaceArgument{1000, 24}));
  for (const char* outside : {"-1", "1025", "-9223372036854775808", "9223372036854775807"}) {
    EXPECT_THROW(read(outside), Error) << outside;
  }
}

TEST(CompiledProgram, ReportsTheMostOfEachResource) {
  using device::KernelResources;
  int KernelResources::*const all[] = {&KernelResources::registers,     &KernelResources::spill_stores,
                                       &KernelResources::spill_loads,   &KernelResources::stack,
                                       &KernelResources::static_shared, &KernelResources::constant,
                                       &KernelResources::barriers};
  for (int KernelResources::*const one : all) {
    CompiledProgram compiled = example();
    const KernelResources first = compiled.images[0].resources.at(0);
    KernelResources second{.name = "b", .arch = "sm_90a"};
    second.*one = 9000;
    compiled.images[1].resources = {second};
    const KernelResources peak = compiled.peak_resources();
    EXPECT_EQ(peak.arch, "sm_90a");
    for (int KernelResources::*const other : all) EXPECT_EQ(peak.*other, other == one ? 9000 : first.*other);
  }
}

TEST(Figures, FollowTheBus) {
  device::DeviceInfo info;
  info.sms = 132;
  info.clock_khz = 1980000;
  info.memory_clock_khz = 3201000;
  info.memory_bus_bits = 6144;
  info.l2_bytes = 50 << 20;
  const DeviceFigures figures = figures_of(info);
  EXPECT_EQ(figures.sms, 132);
  EXPECT_DOUBLE_EQ(figures.clock_hz, 1.98e9);
  EXPECT_NEAR(figures.dram_bytes_per_second, 4.917e12, 1e9);
  EXPECT_EQ(figures.l2_bytes, 50 << 20);
}

TEST(Figures, OfGeForceCardsHaveHalfOfTheRateOfF32Sums) {
  device::DeviceInfo info;
  info.name = "NVIDIA RTX 6000 Ada Generation";
  EXPECT_EQ(figures_of(info).calibration, Calibration{});
  for (const char* name : {"NVIDIA GeForce RTX 4090", "Kiln emulated NVIDIA GeForce RTX 3070"}) {
    info.name = name;
    const Calibration reached = figures_of(info).calibration;
    EXPECT_EQ(reached.f16_efficiency, 0.5) << name;
    EXPECT_EQ(reached.tf32_efficiency, 0.5) << name;
    EXPECT_EQ(reached.fp8_efficiency, 0.5) << name;
    EXPECT_EQ(reached.f16_sums_efficiency, 0) << name;
    EXPECT_EQ(reached.int8_efficiency, 0) << name;
  }
}

}  // namespace
}  // namespace kiln::execution::compiled_program_test
