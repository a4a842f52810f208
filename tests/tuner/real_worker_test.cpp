// The worker itself, with a real NVRTC and no device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "kiln/base/error.h"
#include "kiln/execution/compile.h"
#include "message.h"
#include "protocol.h"
#include "variant.h"
#include "worker_link.h"

namespace kiln::tuner::real_worker_test {
namespace {

using testing::HasSubstr;

Message command(const std::string& action) {
  return {{{"protocol", protocol_version}, {"do", action}, {"cc_major", 9}, {"cc_minor", 0}}, {}};
}

Message compile_command(const std::string& source) {
  Message message = command("compile");
  execution::CompiledProgram program;
  program.program.sources = {source};
  message.payload = serialise(Variant{program, std::nullopt});
  return message;
}

// Seconds of work for ptxas.
std::string endless_source() {
  std::string source;
  for (int i = 0; i < 2000; ++i) {
    source +=
        "extern \"C\" __global__ void k" + std::to_string(i) +
        "(double* y) { double s = y[0];\n#pragma unroll\nfor (int i = 0; i < 64; ++i) s = sin(s) + i; y[0] = s; }\n";
  }
  return source;
}

/// Waits for the answer to a command.
Answer ask(WorkerLink& link, const Message& message) {
  link.send(message, 60);
  while (true) {
    if (std::optional<Answer> answer = link.service()) return std::move(*answer);
    pollfd descriptor{link.descriptor(), link.events(), 0};
    ::poll(&descriptor, 1, 1000);
  }
}

class RealWorkerTest : public testing::Test {
 protected:
  WorkerLink link{KILN_REAL_WORKER, {}};
};

TEST_F(RealWorkerTest, CompilesWhatItIsSent) {
  EXPECT_TRUE(ask(link, command("nvrtc")).message.fields.contains("nvrtc_major"));
  const Answer answer = ask(link, compile_command("extern \"C\" __global__ void k(float* y) { y[0] = 1; }"));
  ASSERT_FALSE(answer.failure);
  EXPECT_GT(answer.message.fields.at("seconds").get<double>(), 0);
  EXPECT_THAT(variant_from(answer.message.payload).program.images.at(0).ptx, HasSubstr(".entry k"));
}

TEST_F(RealWorkerTest, CompilesWhatStandsInBesides) {
  ask(link, command("nvrtc"));
  Message message = compile_command("extern \"C\" __global__ void k(float* y) { y[0] = 1; }");
  Variant variant = variant_from(message.payload);
  variant.stand_in = variant.program;
  variant.stand_in->program.sources = {"extern \"C\" __global__ void k(float* y) { y[0] = 2; }"};
  message.payload = serialise(variant);
  const Variant compiled = variant_from(ask(link, message).message.payload);
  EXPECT_FALSE(compiled.program.images.at(0).cubin.empty());
  EXPECT_NE(compiled.stand_in.value().images.at(0).ptx, compiled.program.images.at(0).ptx);
  EXPECT_THAT(compiled.stand_in->images.at(0).ptx, HasSubstr(".entry k"));
}

TEST_F(RealWorkerTest, AnswersAnErrorWithTheCompilersLogAndGoesOn) {
  ask(link, command("nvrtc"));
  const Answer answer = ask(link, compile_command("__global__ void k() { oops; }"));
  const Failure failure = failure_from(answer.message.fields.at("failure"));
  EXPECT_EQ(failure.outcome, Outcome::compile_failed);
  EXPECT_THAT(failure.error, HasSubstr("oops"));
  EXPECT_FALSE(ask(link, compile_command("__global__ void k() {}")).message.fields.contains("failure"));
}

TEST_F(RealWorkerTest, RefusesASessionOfAnotherVersion) {
  Message message = command("nvrtc");
  message.fields["protocol"] = protocol_version + 1;
  const Answer answer = ask(link, message);
  EXPECT_THAT(answer.message.fields.at("error").get<std::string>(), HasSubstr("another version"));
}

TEST_F(RealWorkerTest, RefusesWhatItCannotDo) {
  EXPECT_TRUE(ask(link, command("check")).message.fields.contains("failure"));
}

TEST_F(RealWorkerTest, AnswersAnErrorToNonsense) {
  Message nonsense;
  nonsense.fields["do"] = 1;
  EXPECT_TRUE(ask(link, nonsense).message.fields.contains("error"));
}

/// A worker whose end of the socket the test can close.
class Orphan : public testing::Test {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
    posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
    std::string path = KILN_REAL_WORKER;
    char* argv[] = {path.data(), nullptr};
    ASSERT_EQ(::posix_spawn(&pid, path.c_str(), &actions, nullptr, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(pair[1]);
    ours = pair[0];
  }
  void TearDown() override {
    if (pid > 0) ::kill(pid, SIGKILL);
  }

  void send(const Message& message) const {
    const std::string bytes = encode(message);
    ASSERT_EQ(::send(ours, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  bool ends_within(double seconds) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < give_up) {
      if (::waitpid(pid, &status, WNOHANG) == pid) {
        pid = -1;
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  pid_t pid = -1;
  int ours = -1;
  int status = -1;  ///< As waitpid() has it, of one that ended.
};

TEST_F(Orphan, EndsWhenItsSessionIsGone) {
  ::close(ours);
  ASSERT_TRUE(ends_within(5));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(Orphan, FailsWhereWhatItReadsIsNoMessage) {
  ASSERT_EQ(::send(ours, "hello\n", 6, MSG_NOSIGNAL), 6);
  ASSERT_TRUE(ends_within(5));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST_F(Orphan, EndsInTheMiddleOfACompileWhenItsSessionIsGone) {
  send(command("nvrtc"));
  send(compile_command(endless_source()));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ASSERT_FALSE(ends_within(0.5)) << "the compile should still be at work";
  ::close(ours);
  EXPECT_TRUE(ends_within(2));
}

}  // namespace
}  // namespace kiln::tuner::real_worker_test
