// The workers of one run, kept busy and replaced when they end.
//
//   Crew crew({.command = {"kiln_fuzz", "--worker", ...}, .scratch = scratch, .workers = 16});
//   crew.submit({.index = 17});
//   while (crew.busy()) use(crew.next());     // in the order in which they are done
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "worker.h"

namespace kiln::fuzz {

struct Task {
  std::uint64_t index = 0;
  std::uint64_t draw = 0;
  std::optional<Program> program = {};                 // instead of mutant `index`
  pid_t but_not = 0;                                   // a worker that must not have it
  bool again = false;                                  // what was tried before, by worker `but_not`
  std::array<std::uint64_t, kStageCount> hashes = {};  // what that said
};

// What became of a task.
struct Ending {
  Task task;
  Message said = {};       // of the worker; without hashes when it was stopped
  std::string failure;     // "" when nothing is wrong
  bool resources = false;  // the failure: time or memory that the program itself asks for in a run
  pid_t worker = 0;
};

struct CrewOptions {
  std::vector<std::string> command;  // of a worker, but for its scratch folder
  std::filesystem::path scratch;
  std::size_t workers = 1;
  double seconds_max = 2;  // of `check`; told in the failure
};

class Crew {
 public:
  explicit Crew(CrewOptions options);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void submit(Task task);
  [[nodiscard]] bool busy() const;
  [[nodiscard]] std::size_t waiting() const { return tasks_.size(); }  // not begun
  // Waits for the next one that is done; crew.busy() must hold.
  [[nodiscard]] Ending next();

 private:
  using Clock = std::chrono::steady_clock;
  struct Member {
    pid_t pid = 0;
    int orders = -1;
    int messages = -1;
    std::filesystem::path scratch;
    std::deque<Task> tasks;  // the first is being tried
    bool begun = false;      // ... and has said so
    Stage stage = Stage::kCheck;
    std::uint32_t peak_mb = 0;
    std::optional<Stage> too_large;  // the stage that took too much memory
    Clock::time_point heard;
    std::string killed;  // why we ended it
  };

  void start(Member& member);
  void feed(Member& member);
  bool give(Member& member, Task task);
  void wait_for_messages();
  void listen(Member& member);
  void take(Member& member, const Message& message);
  void bury(Member& member);
  void watch(Member& member);
  void close_all(Member& member);
  [[nodiscard]] std::string last_words(const Member& member, int status) const;
  [[nodiscard]] std::string time_is_up(Stage stage) const;

  CrewOptions options_;
  std::deque<Member> members_;
  std::deque<Task> tasks_;
  std::deque<Ending> endings_;
  Clock::time_point watched_ = {};
  int stillborn_ = 0;  // workers in a row that ended before they tried anything
};

// What stopped a process, from what it wrote to its standard error: "stop at sema/view.cpp:12", or
// a sanitizer's summary; "" when it says nothing.
[[nodiscard]] std::string cause_of(std::string_view errors);

}  // namespace kiln::fuzz
