#include "worker.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "mutate.h"
#include "support/file.h"

namespace kiln::fuzz {

namespace {

constexpr int kMessages = 3;  // where standard output was

template <class T>
bool read_whole(int descriptor, T& value) {
  char* at = reinterpret_cast<char*>(&value);
  std::size_t left = sizeof value;
  while (left != 0) {
    const ssize_t got = read(descriptor, at, left);
    if (got <= 0) return false;
    at += got;
    left -= static_cast<std::size_t>(got);
  }
  return true;
}

void tell(const Message& message) {
  if (write(kMessages, &message, sizeof message) != sizeof message) _exit(4);
}

// The process is ended by SIGPROF when it has computed for so long.
void start_clock(double seconds) {
  itimerval timer = {};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec =
      static_cast<suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
  setitimer(ITIMER_PROF, &timer, nullptr);
}

std::uint32_t peak_mb() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint32_t>(usage.ru_maxrss / 1024);
}

// Standard error is a file that is empty when a program begins; nothing else may be written.
void prepare_descriptors() {
  dup2(STDOUT_FILENO, kMessages);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  const int errors = open("stderr.txt", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  dup2(errors, STDERR_FILENO);
}

// No core files; no more address space than a wild allocation needs to be refused.
void limit_resources() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  if (kSanitized) return;  // its shadow memory alone is larger
  const rlimit space = {rlim_t{4} << 30, rlim_t{4} << 30};
  setrlimit(RLIMIT_AS, &space);
}

Program ordered_program(const WorkerOptions& options, const Order& order) {
  if (order.index != kFromFile) {
    return make_mutant(options.seeds, options.seed, order.index).program;
  }
  const auto text = read_file("order.txt");
  if (!text) return {};
  const std::size_t line = text->find('\n');
  return deserialised(text->substr(0, line), std::string_view(*text).substr(line + 1));
}

void serve_one(const WorkerOptions& options, const Order& order) {
  if (ftruncate(STDERR_FILENO, 0) != 0) _exit(4);
  const Program program = ordered_program(options, order);
  TryOptions stages = options.stages;
  stages.draw = order.draw;
  const Report report = try_program(program, stages, [&](Stage stage) {
    tell({.kind = Message::Kind::kStage, .stage = stage, .index = order.index});
    start_clock(options.seconds_max * clock_factor(stage));
  });
  start_clock(0);
  Message done{.kind = Message::Kind::kDone,
               .stage = report.failed,
               .accepted = report.accepted,
               .ran = report.ran,
               .peak_mb = peak_mb(),
               .index = order.index,
               .hashes = report.hashes};
  std::strncpy(done.failure, report.failure.c_str(), sizeof done.failure - 1);
  tell(done);
  if (!kSanitized && done.peak_mb > kMemoryMaxMb) _exit(0);  // the next one starts from nothing
}

}  // namespace

int serve(const WorkerOptions& options) {
  if (chdir(options.scratch.c_str()) != 0) return 4;
  prepare_descriptors();
  limit_resources();
  Order order;
  while (read_whole(STDIN_FILENO, order)) serve_one(options, order);
  return 0;
}

}  // namespace kiln::fuzz
