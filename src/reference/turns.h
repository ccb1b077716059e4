// Flows of control that take turns. One runs at a time, so they share everything without locks; a
// flow runs until it waits for something that is not so yet or until it ends. Who comes next is
// decided by their order alone: every run is the same.
//
//   Turns turns;
//   turns.start([&] { flag = true; });
//   if (!turns.wait([&] { return flag; })) ...   // false: everybody waits, for ever
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::reference {

class Turns {
 public:
  using Condition = std::function<bool()>;

  Turns();
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // A new flow, which gets its first turn when another one waits. Returns its number; the flow that
  // made this object is number 0.
  std::size_t start(std::function<void()> body);
  // Lets others run until the condition holds. False once all flows wait in vain: each of them gets
  // that answer, now and later, so that all can end.
  [[nodiscard]] bool wait(Condition condition);
  // Only in flow 0: lets the others run to their end. False if all of them waited in vain, as `wait`
  // says; they have ended all the same.
  bool join();

  [[nodiscard]] std::size_t current() const { return current_; }
  [[nodiscard]] bool is_done(std::size_t flow) const { return flows_[flow]->done; }
  // Whether flows other than number 0 have been started since the last join.
  [[nodiscard]] bool has_others() const { return flows_.size() > 1; }
  // Called once, when all wait in vain, before the first of them goes on.
  std::function<void()> on_stuck = {};

 private:
  struct Flow {
    std::function<void()> body;
    Condition condition;  // empty: may run
    bool done = false;
    std::thread thread;
  };

  void run(std::size_t flow);
  [[nodiscard]] std::size_t next();
  void pass_to(std::size_t flow);

  std::vector<std::unique_ptr<Flow>> flows_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t current_ = 0;
  bool stuck_ = false;
};

}  // namespace kiln::reference
