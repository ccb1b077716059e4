// kiln/compile.h as C++17: it compiles without a warning and does what it says, in two threads.
#include "kiln/compile.h"

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int> failures{0};

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "failed: %s (last error: %s)\n", what, kiln_last_error());
  ++failures;
}

constexpr const char* kScale =
    "__co__ void scale(global f32 [N] x, f32 factor, global f32 [N] y) {\n"
    "  parallel b by [N] : block, t by 1 : thread y.at(b) = x.at(b) * factor;\n"
    "}\n"
    "__co__ auto twice(s32 [N] x) {\n"
    "  s32 [N] y;\n"
    "  parallel b by [N] : block, t by 1 : thread y.at(b) = x.at(b) * 2;\n"
    "  return y;\n"
    "}\n";

kiln::CompileOptions options_of(const char* source) {
  kiln::CompileOptions options;
  options.source = source;
  options.arch = "sm_80";
  return options;
}

void run(const kiln::Program& program) {
  std::vector<float> x = {1, 2, 3};
  std::vector<float> y(3);
  kiln::Arguments arguments("scale");
  arguments.tensor("x", x.data(), "f32", {3}).tensor("y", y.data(), "f32", {3});
  arguments.number("factor", 2.5).schedules(2, 7);
  const kiln::Result<kiln::Report> report = program.simulate(arguments);
  expect(static_cast<bool>(report) && report->findings().ok != 0, "the kernel runs");
  expect(y[0] == 2.5F && y[2] == 7.5F, "the array has the result");
  y.assign(3, 0);
  expect(static_cast<bool>(program.reference(arguments)) && y[1] == 5, "the reference says it too");

  std::vector<std::int32_t> values = {4, 5};
  kiln::Arguments other("twice");
  other.tensor("x", values.data(), "s32", {2});
  const kiln::Result<kiln::Report> second = program.simulate(other);
  expect(static_cast<bool>(second) && second->returned() != nullptr, "the kernel returns");
  if (second && second->returned() != nullptr) {
    expect(static_cast<const std::int32_t*>(second->returned()->data)[1] == 10, "what it should");
  }

  const kiln::Result<kiln::Report> refused = program.simulate(kiln::Arguments("scale"));
  expect(!refused && refused.error().status == KILN_INVALID, "no arguments are refused");
  expect(refused.refused() && !refused.refused()->diagnostics().empty(), "with diagnostics");

  // Without a GPU an error that says so; with one a plan that minds its arguments.
  const kiln::Result<kiln::Plan> plan = program.prepare(arguments);
  if (plan) {
    const kiln::Failure failed = plan->launch({nullptr, 2.5, nullptr});
    expect(static_cast<bool>(failed) && failed.status == KILN_INVALID, "null is refused");
  } else {
    const kiln_status status = plan.error().status;
    expect(status == KILN_NO_GPU || status == KILN_NO_COMPILER, "the machine lacks something");
    expect(plan.error().text.size() > 10, "the error says what");
  }
}

}  // namespace

int main() {
  const kiln::Result<kiln::Program> torn = kiln::compile(options_of("__co__ void broken("));
  expect(!torn && torn.error().status == KILN_REJECTED, "a torn program is refused");
  expect(torn.refused() && torn.refused()->diagnostics()[0].line == 1,
         "its diagnostics have places");
  kiln::CompileOptions nowhere;
  nowhere.file = "/nowhere/at/all.co";
  const kiln::Result<kiln::Program> missing = kiln::compile(nowhere);
  expect(!missing && missing.error().status == KILN_SYSTEM && !missing.refused(), "no such file");

  const kiln::Result<kiln::Program> program = kiln::compile(options_of(kScale));
  expect(static_cast<bool>(program), "the program compiles");
  if (!program) return 1;
  expect(program->kernels().size() == 2 && program->kernel("scale") != nullptr, "by name");
  expect(program->kernel("none") == nullptr, "and by no other");
  expect(std::string(program->cuda()).find("scale") != std::string::npos, "the CUDA text is there");
  expect(std::string(program->arch()) == "sm_80", "for the architecture");
  std::thread one([&] { run(*program); });
  std::thread two([&] { run(*program); });
  one.join();
  two.join();
  return failures == 0 ? 0 : 1;
}
