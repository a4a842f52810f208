// Compiling through the store that processes share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kiln/base/environment.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/target.h"

namespace kiln::execution::kernel_store_test {
namespace {

namespace fs = std::filesystem;

Program program(int i) {
  Program program;
  program.sources = {"extern \"C\" __global__ void k(int* p) { *p = " + std::to_string(i) + "; }\n"};
  Launch launch;
  launch.entry = "k";
  launch.arguments = {OperandArgument{"y"}};
  program.steps = {launch};
  return program;
}

Program source_alone(int i) {
  Program alone;
  alone.sources = program(i).sources;
  return alone;
}

class KernelStoreTest : public testing::Test {
 protected:
  KernelStoreTest() {
    std::string pattern = (fs::temp_directory_path() / "kiln-kernels-XXXXXX").string();
    options_.folder = mkdtemp(pattern.data());
  }
  ~KernelStoreTest() override { fs::remove_all(options_.folder); }

  store::StoreOptions options_;
};

TEST_F(KernelStoreTest, GivesBackWhatWasCompiled) {
  const auto nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
  const Target target = target_for(9, 0, *nvrtc);
  store::FileStore first(options_), second(options_);
  const CompiledProgram made = compile(*nvrtc, program(1), target, &first);
  const CompiledProgram stored = compile(*nvrtc, program(1), target, &second);
  EXPECT_EQ(second.counts().made, 0U);
  EXPECT_EQ(second.counts().found, 1U);
  EXPECT_EQ(stored.program, made.program);
  EXPECT_EQ(stored.images.at(0).cubin, made.images.at(0).cubin);
  EXPECT_EQ(stored.images.at(0).ptx, made.images.at(0).ptx);
  EXPECT_EQ(stored.seconds, made.seconds) << "of the compile that made it";
  compile(*nvrtc, program(1), target_for(8, 0, *nvrtc), &second);
  EXPECT_EQ(second.counts().made, 1U) << "another architecture is another kernel";
}

TEST_F(KernelStoreTest, DoesNotUseAnEntryOfAnotherSourceUnderItsKey) {
  const auto nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
  const Target target = target_for(9, 0, *nvrtc);
  store::FileStore store(options_);
  const std::string key = compile_digest(*nvrtc, source_alone(1), target);
  const CompiledProgram other = compile(*nvrtc, source_alone(2), target);
  store.obtain(
      key, [](std::string_view) { return true; }, [&] { return serialise(other); });
  EXPECT_NE(compile(*nvrtc, program(1), target, &store).images.at(0).ptx, other.images.at(0).ptx);
  EXPECT_EQ(store.counts().damaged, 1U);
}

TEST_F(KernelStoreTest, DoesNotUseAnEntryWithoutAnImage) {
  const auto nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
  const Target target = target_for(9, 0, *nvrtc);
  store::FileStore store(options_);
  const CompiledProgram made = compile(*nvrtc, program(1), target);
  const CompiledProgram uncompiled{.program = source_alone(1), .images = {}, .log = {}, .seconds = 0};
  store.obtain(
      compile_digest(*nvrtc, source_alone(1), target), [](std::string_view) { return true; },
      [&] { return serialise(uncompiled); });
  EXPECT_EQ(compile(*nvrtc, program(1), target, &store).images.at(0).ptx, made.images.at(0).ptx);
  EXPECT_EQ(store.counts().damaged, 1U);
}

TEST_F(KernelStoreTest, DoesNotUseAnEntryThatIsNoKernelOfThisVersion) {
  const auto nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
  const Target target = target_for(9, 0, *nvrtc);
  store::FileStore store(options_);
  store.obtain(
      compile_digest(*nvrtc, source_alone(1), target), [](std::string_view) { return true; },
      [] { return std::string("whole, and of a later form"); });
  const CompiledProgram compiled = compile(*nvrtc, program(1), target, &store);
  EXPECT_EQ(compiled.images.at(0).ptx, compile(*nvrtc, program(1), target).images.at(0).ptx);
  EXPECT_EQ(store.counts().damaged, 1U);
}

TEST_F(KernelStoreTest, CompilesASourceOfSeveralProgramsOnce) {
  const auto nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
  const Target target = target_for(9, 0, *nvrtc);
  store::FileStore store(options_);
  Program both = program(1);
  both.sources.push_back(program(2).sources.front());
  both.steps.push_back(both.steps.front());
  std::get<Launch>(both.steps.back()).source = 1;
  const CompiledProgram first = compile(*nvrtc, both, target, &store);
  EXPECT_EQ(store.counts().made, 2U);
  Program larger = program(2);
  std::get<Launch>(larger.steps.front()).grid[0] = {7};
  const CompiledProgram second = compile(*nvrtc, larger, target, &store);
  EXPECT_EQ(store.counts().made, 2U);
  EXPECT_EQ(second.program, larger);
  EXPECT_EQ(second.images.at(0).ptx, first.images.at(1).ptx);
}

TEST_F(KernelStoreTest, CompilesSourcesThatDifferInCommentsOnce) {
  const auto nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
  const Target target = target_for(9, 0, *nvrtc);
  store::FileStore store(options_);
  const CompiledProgram first = compile(*nvrtc, program(1), target, &store);
  Program titled = program(1);
  titled.sources.front().code.insert(0, "// for another request\n\n");
  const CompiledProgram second = compile(*nvrtc, titled, target, &store);
  EXPECT_EQ(store.counts().made, 1U);
  EXPECT_EQ(store.counts().found, 1U);
  EXPECT_EQ(second.program, titled);
  EXPECT_EQ(second.images.at(0).ptx, first.images.at(0).ptx);
}

TEST_F(KernelStoreTest, EightProcessesCompileEachKernelOnce) {
  constexpr int processes = 8, kernels = 4;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (int p = 0; p < processes; ++p) {
    if (fork() != 0) continue;
    try {
      const auto nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
      const Target target = target_for(9, 0, *nvrtc);
      store::FileStore store(options_);
      for (int i = 0; i < kernels; ++i) {
        const CompiledProgram compiled = compile(*nvrtc, program((i + p) % kernels), target, &store);
        if (compiled.images.at(0).cubin.empty()) _exit(1);
      }
      const auto made = static_cast<char>(store.counts().made);
      _exit(write(ends[1], &made, 1) == 1 ? 0 : 1);
    } catch (...) {
      _exit(1);
    }
  }
  close(ends[1]);
  int compiles = 0, answers = 0;
  for (char made = 0; read(ends[0], &made, 1) == 1; ++answers) compiles += made;
  close(ends[0]);
  for (int p = 0; p < processes; ++p) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(answers, processes);
  EXPECT_EQ(compiles, kernels);
}

}  // namespace
}  // namespace kiln::execution::kernel_store_test
