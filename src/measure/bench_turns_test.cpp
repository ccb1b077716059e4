// What is started, and when, where contenders are measured in turns: over the driver of paper, whose
// events always lie a millisecond apart.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "gemm/fake_driver_test.h"
#include "measure/energy.h"
#include "measure/fake_nvml.h"
#include "measure/launch_graph.h"
#include "measure/timing.h"

namespace kiln::measure {
namespace {

constexpr std::size_t kSets = 3;

struct Started {
  char who;
  std::size_t set;
  int events;  // recorded before
  bool captured;
};

class BenchTurns : public FakeDriverTest {
 protected:
  BenchTurns() : FakeDriverTest(nullptr) {}
  void prepare() override {
    auto gpu = runtime::Gpu::open();
    ASSERT_TRUE(gpu) << gpu.error().text();
    gpu_.emplace(std::move(*gpu));
    void* symbol = dlsym(dlopen("libnvidia-ml.so.1", RTLD_NOW), "fake_nvml");
    ASSERT_NE(symbol, nullptr) << "the management library is a real one";
    nvml_ = reinterpret_cast<FakeNvml* (*)()>(symbol)();
    nvml_->energy_status = nvml_->power_status = 0;
    nvml_->tick_seconds = 0.02;
    fake_->graph_starts = 0;
  }

  Contender contender(char who) {
    return {std::string(1, who), [this, who](std::size_t set, runtime::cuda::Stream stream) {
              started_.push_back({who, set, fake_->events, stream != nullptr});
              return Result<void>();
            }};
  }

  // Starts of the turns alone: before them every batch ran once for its length.
  std::vector<Started> turns(const std::vector<Batch>& batches, int repeats) {
    started_.clear();
    first_event_ = fake_->events;
    const auto seconds = time_in_turn(*gpu_, batches, repeats);
    EXPECT_TRUE(seconds && seconds->size() == batches.size());
    return started_;
  }
  // Between the two events of a batch.
  bool is_timed(const Started& one) const { return (one.events - first_event_) % 2 == 1; }

  std::optional<runtime::Gpu> gpu_;
  FakeNvml* nvml_ = nullptr;
  std::vector<Started> started_;
  int first_event_ = 0;
};

// Every batch follows launches of its own that are not timed, whoever ran before.
TEST_F(BenchTurns, NobodyInheritsFromItsNeighbour) {
  const auto batches = make_batches(*gpu_, {contender('a'), contender('b')},
                                    {.sets = kSets,
                                     .batch_seconds = 0.01,  // never reached
                                     .launches_max = 10});
  ASSERT_TRUE(batches) << batches.error().text();
  EXPECT_EQ((*batches)[0].starts, 10);
  const auto started = turns(*batches, 2);
  ASSERT_EQ(started.size(), 4 * 20);
  std::string order;
  for (std::size_t i = 0; i < started.size(); ++i) {
    const std::size_t inside = i % 20;
    if (inside == 0) order += started[i].who;
    EXPECT_EQ(started[i].who, order.back()) << i;
    EXPECT_EQ(is_timed(started[i]), inside >= 10) << i;
    EXPECT_EQ(started[i].set, inside % kSets) << i;  // no set twice in a row
    EXPECT_FALSE(started[i].captured);
  }
  EXPECT_EQ(order, "abba");
}

TEST_F(BenchTurns, SecondsAreOfOneLaunch) {
  const auto seconds =
      time_in_turn(*gpu_, {contender('a')}, {.sets = 4, .repeats = 2, .batch_seconds = 0.001});
  ASSERT_TRUE(seconds);
  EXPECT_EQ(*seconds, (std::vector<std::vector<double>>{{0.001 / 4, 0.001 / 4}}));
}

TEST_F(BenchTurns, AGraphHasManyLaunches) {
  const BatchOptions options{
      .sets = kSets, .batch_seconds = 0.01, .launches_max = 4000, .graphs = true};
  const auto batches = make_batches(*gpu_, {contender('a')}, options);
  ASSERT_TRUE(batches) << batches.error().text();
  const Batch& batch = batches->front();
  EXPECT_EQ(batch.launches, 1023);  // sets in whole passes
  EXPECT_EQ(batch.starts, 3);       // up to 4000 launches
  std::size_t captured = 0;
  for (const Started& one : started_) {
    if (!one.captured) continue;
    EXPECT_EQ(one.set, captured++ % kSets);
  }
  EXPECT_EQ(captured, 1023U);
  EXPECT_EQ(fake_->graphs_held, 1);
  const int before = fake_->graph_starts;
  EXPECT_TRUE(turns(*batches, 5).empty());  // the CPU has no part in them
  EXPECT_EQ(fake_->graph_starts - before, 5 * (3 + 3));
  EXPECT_DOUBLE_EQ(batch.seconds_of_one(0.003), 0.003 / 3 / 1023);
}

TEST_F(BenchTurns, AShortBatchIsOneGraph) {
  const auto batches =
      make_batches(*gpu_, {contender('a')}, {.sets = 2, .batch_seconds = 0.001, .graphs = true});
  ASSERT_TRUE(batches) << batches.error().text();
  EXPECT_EQ(batches->front().launches, 2);
  EXPECT_EQ(batches->front().starts, 1);
}

TEST_F(BenchTurns, WhatCannotBeCapturedIsNamed) {
  const BatchOptions options{.sets = 2, .batch_seconds = 0.001, .graphs = true};
  fake_->capture_status = 901;
  const auto ended = make_batches(*gpu_, {contender('a'), contender('b')}, options);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().text(),
            "cannot measure in graphs of launches `a`: cannot capture launches: "
            "CUDA_ERROR_OF_PAPER (as the test asked)");
  fake_->capture_status = 0;
  const Contender refuses{"b", [](std::size_t, runtime::cuda::Stream stream) -> Result<void> {
                            if (stream == nullptr) return {};
                            return Unexpected{Error{"no stream", {}, "it copies"}};
                          }};
  const auto refused = make_batches(*gpu_, {contender('a'), refuses}, options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("`b`: no stream: it copies"), std::string::npos)
      << refused.error().text();
  EXPECT_EQ(fake_->graphs_held, 0);
}

TEST(Energy, ACounterIsReadBetweenItsMoves) {
  // It moves at 0.1, 0.2, ... and is looked at more often.
  const std::vector<EnergyReading> readings = {{0.00, 10}, {0.05, 10}, {0.11, 40},  {0.15, 40},
                                               {0.21, 70}, {0.26, 70}, {0.31, 100}, {0.39, 100}};
  EXPECT_DOUBLE_EQ(*watts_of_counter(readings, 0), 60 / (0.31 - 0.11));
  EXPECT_DOUBLE_EQ(*watts_of_counter(readings, 0.12), 30 / (0.31 - 0.21));
  EXPECT_FALSE(watts_of_counter(readings, 0.22));  // one move tells nothing
  EXPECT_FALSE(watts_of_counter({{0, 10}, {1, 10}, {2, 10}}, 0));
  EXPECT_FALSE(watts_of_counter({}, 0));
}

TEST(Energy, PowerIsAMean) {
  EXPECT_DOUBLE_EQ(*watts_of_power({{0, 900}, {1, 300}, {2, 400}}, 1), 350);
  EXPECT_FALSE(watts_of_power({{0, 900}}, 1));
}

class BenchEnergy : public BenchTurns {
 protected:
  Result<std::vector<double>> joules() {
    const auto meter = EnergyMeter::open(*gpu_);
    if (!meter) return Unexpected{meter.error()};
    source_ = meter->source();
    const Batch batch{.start = contender('a').start, .sets = kSets, .starts = 10};
    return meter->joules_in_turn(*gpu_, {batch}, 0.2);
  }
  std::string source_;
};

// 300 W; how many batches run meanwhile is the machine's, the time of all of them a millisecond.
TEST_F(BenchEnergy, JoulesAreWattsTimesSeconds) {
  nvml_->watts = 300;
  const auto meter = EnergyMeter::open(*gpu_);
  ASSERT_TRUE(meter) << meter.error().text();
  EXPECT_EQ(meter->source(), "counter");
  int starts = 0;
  const Batch batch{.start = [&](std::size_t, runtime::cuda::Stream) -> Result<void> {
                      ++starts;
                      std::this_thread::sleep_for(std::chrono::milliseconds(1));
                      return {};
                    },
                    .sets = kSets,
                    .starts = 10};
  const auto joules = meter->joules_in_turn(*gpu_, {batch}, 0.2);
  ASSERT_TRUE(joules) << joules.error().text();
  // A third of the starts is a turn's.
  const double seconds = 0.001 / (starts / 3.0);
  EXPECT_NEAR(joules->front() / seconds, 300, 150);
}

TEST_F(BenchEnergy, WithoutACounterPowerIsTaken) {
  nvml_->energy_status = 3;
  ASSERT_TRUE(EnergyMeter::open(*gpu_));
  EXPECT_EQ(EnergyMeter::open(*gpu_)->source(), "power");
  nvml_->power_status = 3;
  const auto none = joules();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(),
            "--power cannot measure energy on `a GPU of paper`: NVIDIA's management library says "
            "neither energy nor power of it");
}

TEST_F(BenchEnergy, ACounterThatStandsStillIsAnError) {
  nvml_->tick_seconds = 0;
  const auto none = joules();
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("its counter of energy did not move in 0.20 s of work"),
            std::string::npos)
      << none.error().text();
  EXPECT_EQ(source_, "counter");
}

}  // namespace
}  // namespace kiln::measure
