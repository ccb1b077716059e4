#include "reference/turns.h"

#include <utility>

#include "support/check.h"

namespace kiln::reference {

Turns::Turns() { flows_.push_back(std::make_unique<Flow>()); }

Turns::~Turns() { join(); }

std::size_t Turns::start(std::function<void()> body) {
  const std::size_t number = flows_.size();
  flows_.push_back(std::make_unique<Flow>());
  flows_.back()->body = std::move(body);
  flows_.back()->thread = std::thread([this, number] { run(number); });
  return number;
}

void Turns::run(std::size_t flow) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return current_ == flow; });
  }
  flows_[flow]->body();
  flows_[flow]->done = true;
  const std::size_t heir = next();
  const std::scoped_lock lock(mutex_);
  current_ = heir;
  changed_.notify_all();
}

// The first flow behind the current one that may run; when none may, all are told so.
std::size_t Turns::next() {
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 1; i <= flows_.size(); ++i) {
      const std::size_t number = (current_ + i) % flows_.size();
      const Flow& flow = *flows_[number];
      const bool ready = stuck_ || flow.condition == nullptr || flow.condition();
      if (!flow.done && ready) return number;
    }
    stuck_ = true;
    if (on_stuck) on_stuck();
  }
  KILN_UNREACHABLE("the first flow never ends before the others");
}

void Turns::pass_to(std::size_t flow) {
  const std::size_t self = current_;
  if (flow == self) return;
  std::unique_lock lock(mutex_);
  current_ = flow;
  changed_.notify_all();
  changed_.wait(lock, [&] { return current_ == self; });
}

bool Turns::wait(Condition condition) {
  if (stuck_) return false;
  if (condition()) return true;
  Flow& self = *flows_[current_];
  self.condition = std::move(condition);
  pass_to(next());
  self.condition = nullptr;
  return !stuck_;
}

bool Turns::join() {
  const auto others_are_done = [&] {
    for (std::size_t i = 1; i < flows_.size(); ++i) {
      if (!flows_[i]->done) return false;
    }
    return true;
  };
  while (!others_are_done()) {
    if (!wait(others_are_done)) pass_to(next());
  }
  for (std::size_t i = 1; i < flows_.size(); ++i) flows_[i]->thread.join();
  flows_.resize(1);
  return !stuck_;
}

}  // namespace kiln::reference
