// The functions of kiln/kiln.h and kiln/embedded.h from eight threads at once: programs that they
// share, runs that end well, by a race, by a limit on steps or for want of memory, machine code over a
// driver of paper, and what a run shows of its tiles. That threads get what one alone gets is checked
// here; that they do not race is for ThreadSanitizer to say (`./dev tsan`).
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gemm/fake_driver_test.h"
#include "io/program.h"
#include "kiln/embedded.h"
#include "kiln/kiln.h"
#include "sim/sim.h"
#include "support/in_threads_test.h"

namespace kiln::api {
namespace {

constexpr int kThreads = 8;
constexpr std::int64_t kN = 64;

constexpr const char* kLines[] = {
    "__co__ void add(global f32 [N] x, global f32 [N] y) {\n",
    "  parallel b by [cdiv(N, 32)] : block, t by 32 : thread y.at(b # t) = x.at(b # t) + 1.0f;\n",
    "}\n",
    "__co__ void unordered(global f32 [N] x, global f32 [N] y) {\n",
    "  parallel b by 1 : block {\n",
    "    shared f32 [64] tile;\n",
    "    parallel t by 64 : thread {\n",
    "      tile.at(t) = x.at(t);\n",
    "      y.at(t) = tile.at(63 - t);\n",
    "    }\n",
    "  }\n",
    "}\n",
    "__co__ void large(global f32 [N] x, global f32 [N] y) {\n",
    "  f32 [N, 1000, 1000000] between;\n",
    "  parallel t by [N] : thread between.at(t, 0, 0) = x.at(t);\n",
    "  parallel t by [N] : thread y.at(t) = between.at(t, 0, 0);\n",
    "}\n",
};
constexpr const char* kArchs[] = {"sm_90a", "sm_80"};

kiln_embedded embedded() {
  return {"kernels.co", kLines, std::size(kLines), nullptr, 0, kArchs, 2, nullptr, 0, nullptr};
}

struct Free {
  void operator()(kiln_program* program) const { kiln_program_free(program); }
  void operator()(kiln_report* report) const { kiln_report_free(report); }
  void operator()(kiln_explanation* explanation) const { kiln_explanation_free(explanation); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

Owned<kiln_program> compile(const kiln_embedded& what, const char* arch) {
  kiln_program* out = nullptr;
  EXPECT_EQ(kiln_embedded_compile(&what, arch, &out), KILN_OK) << kiln_last_error();
  return Owned<kiln_program>(out);
}

// A call of one kernel on arrays of its own.
class Call {
 public:
  explicit Call(const char* kernel) {
    call_.kernel = kernel;
    call_.arrays = arrays_.data();
    call_.array_count = arrays_.size();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  kiln_call& get() { return call_; }
  [[nodiscard]] float last() const { return y_[kN - 1]; }

 private:
  std::vector<float> x_ = std::vector<float>(kN, 2);
  std::vector<float> y_ = std::vector<float>(kN, 0);
  std::int64_t shape_ = kN;
  std::array<kiln_array, 2> arrays_ = {kiln_array{"x", x_.data(), "f32", &shape_, 1},
                                       kiln_array{"y", y_.data(), "f32", &shape_, 1}};
  kiln_call call_ = {};
};

// What is found, as a terminal shows it; other texts say how long it took.
std::string found(const kiln_report* report) {
  std::string out;
  std::size_t count = 0;
  const kiln_diagnostic* all = kiln_report_diagnostics(report, &count);
  for (std::size_t i = 0; i < count; ++i) out += all[i].text;
  return out;
}

// The status, and all that is said.
std::string simulated(const kiln_program* program, const char* kernel, std::uint64_t steps_max) {
  Call call(kernel);
  call.get().schedules = 3;
  call.get().steps_max = steps_max;
  kiln_report* report = nullptr;
  const kiln_status status = kiln_simulate(program, &call.get(), &report);
  const Owned<kiln_report> owned(report);
  const std::string said = report != nullptr ? found(report) : kiln_last_error();
  return std::to_string(status) + " " + std::to_string(call.last()) + " " + said;
}

std::string explained(const kiln_program* program) {
  Call call("add");
  kiln_explanation* out = nullptr;
  EXPECT_EQ(kiln_explain(program, &call.get(), &out), KILN_OK) << kiln_last_error();
  const Owned<kiln_explanation> owned(out);
  return out != nullptr ? kiln_explanation_json(out) : "";
}

std::string referred(const kiln_program* program) {
  Call call("add");
  kiln_report* report = nullptr;
  EXPECT_EQ(kiln_reference(program, &call.get(), &report), KILN_OK) << kiln_last_error();
  const Owned<kiln_report> owned(report);
  return std::to_string(call.last());
}

using Question = std::function<std::string(const kiln_program*)>;

const std::vector<Question>& questions() {
  static const std::vector<Question> all = {
      [](const auto* program) { return simulated(program, "add", 0); },
      [](const auto* program) { return simulated(program, "unordered", 0); },
      [](const auto* program) { return simulated(program, "add", 3); },
      [](const auto* program) { return simulated(program, "large", 0); },
      [](const auto* program) { return explained(program); },
      [](const auto* program) { return referred(program); },
      [](const auto* program) { return std::string(kiln_program_cuda(program)); },
  };
  return all;
}

TEST(ApiThreads, GetWhatOneAloneGets) {
  const kiln_embedded carried = embedded();
  const Owned<kiln_program> program = compile(carried, nullptr);
  std::vector<std::string> wanted;
  for (const Question& ask : questions()) wanted.push_back(ask(program.get()));
  EXPECT_NE(wanted[1].find("race on `tile["), std::string::npos) << wanted[1];
  EXPECT_NE(wanted[2].find("[too-many-steps]"), std::string::npos) << wanted[2];
  EXPECT_NE(wanted[3].find("memory"), std::string::npos) << wanted[3];
  in_threads(kThreads, [&](int thread) {
    const Owned<kiln_program> own = compile(carried, nullptr);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::size_t which = (i + static_cast<std::size_t>(thread)) % wanted.size();
      const kiln_program* asked = thread % 2 == 0 ? program.get() : own.get();
      EXPECT_EQ(questions()[which](asked), wanted[which]) << which;
    }
  });
}

class ApiThreadsOnPaper : public FakeDriverTest {
 protected:
  ApiThreadsOnPaper() : FakeDriverTest(nullptr) {}
};

struct alignas(256) Memory {
  std::array<float, 2 * kN> values = {};
};

TEST_F(ApiThreadsOnPaper, CallWhatAProgramCarriesAndSimulateIt) {
  kiln_embedded carried = embedded();
  const int launches = fake_->launches;
  in_threads(kThreads, [&](int thread) {
    Memory x;
    Memory y;
    for (std::int64_t i = 0; i < 8; ++i) {
      const kiln_embedded_argument arguments[] = {kiln_tensor_argument(x.values.data(), nullptr),
                                                  kiln_tensor_argument(y.values.data(), nullptr)};
      const std::int64_t n = 32 * (1 + (i + thread) % 4);
      const kiln_embedded_call call = {"add", arguments, 2, &n, 1, nullptr};
      EXPECT_EQ(kiln_embedded_launch(&carried, &call), KILN_OK) << kiln_last_error();
      if (i % 4 == 0) {
        const Owned<kiln_program> program = compile(carried, kArchs[thread % 2]);
        EXPECT_EQ(simulated(program.get(), "add", 0).substr(0, 10), "0 3.000000");
      }
    }
  });
  EXPECT_EQ(fake_->launches, launches + 8 * kThreads);
}

// Blocks run on several cores, and their runs side by side.
TEST(ApiThreads, ShowWhatATileHolds) {
  io::ProgramOptions options;
  options.file = "tile.co";
  options.arch = "sm_90a";
  options.text =
      "__co__ void f(global f32 [64, 64] x, global f32 [64, 64] y) {\n"
      "  parallel b by 4 : block {\n"
      "    t = frag.load x.subspan(16, 64).at(b, 0);\n"
      "    frag.store t * 2.0f, y.subspan(16, 64).at(b, 0);\n"
      "  }\n"
      "}\n";
  io::Program program;
  const auto exit = io::compile(options, {}, program);
  ASSERT_TRUE(exit && *exit == io::Exit::kFine);
  const ir::Function& function = program.decided.functions.front();
  std::vector<sim::DumpPoint> points;
  for (std::uint32_t i = 0; i < function.values.size(); ++i) {
    const ir::ValueId value{i};
    const bool is_tile = std::holds_alternative<ir::FragType>(function.type(value));
    if (is_tile && function.values[value].def.valid()) {
      points.push_back({value, function.values[value].def});
    }
  }
  ASSERT_FALSE(points.empty());
  in_threads(kThreads, [&](int) {
    ir::Arguments arguments;
    arguments.vars.resize(function.vars.size());
    for (int i = 0; i < 2; ++i) {
      Tensor tensor = Tensor::zeros(DType::kF32, {64, 64});
      for (std::size_t at = 0; at < 64 * 64; ++at) tensor.set(at, static_cast<double>(at % 64));
      arguments.params.push_back({.tensor = std::move(tensor)});
    }
    const auto outcome = sim::run(program.decided, function, arguments,
                                  {.schedules = 2, .dumps = points, .cores = 3});
    ASSERT_TRUE(outcome) << outcome.error().text();
    EXPECT_TRUE(outcome->reports.empty());
    ASSERT_FALSE(outcome->dumped.empty());
    EXPECT_EQ(arguments.params[1].tensor.get(3), 6.0);
  });
}

}  // namespace
}  // namespace kiln::api
