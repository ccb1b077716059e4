#include "crew.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "support/check.h"
#include "support/file.h"
#include "support/format.h"

namespace kiln::fuzz {

namespace {

constexpr std::size_t kAhead = 3;  // orders that a worker has in front of it
// Longer than a stage's limit of CPU time takes where other work shares the cores: who only is slow is told so.
constexpr auto kSilenceMax = std::chrono::seconds(300);
constexpr std::uint32_t kKillMb = kSanitized ? 3000 : 1500;

std::uint32_t resident_mb(pid_t pid) {
  std::FILE* file = std::fopen(format("/proc/{}/statm", pid).c_str(), "r");
  if (file == nullptr) return 0;
  unsigned long size = 0;
  unsigned long resident = 0;
  const int got = std::fscanf(file, "%lu %lu", &size, &resident);
  std::fclose(file);
  return got == 2 ? static_cast<std::uint32_t>(resident >> 8) : 0;
}

std::string_view name(Stage stage) { return kStageNames[static_cast<std::size_t>(stage)]; }

std::string_view line_with(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  return text.substr(at, text.find('\n', at) - at);
}

// "/a/b/src/sema/view.cpp:12: ..." becomes "sema/view.cpp:12".
std::string short_place(std::string_view text) {
  const std::size_t src = text.rfind("/src/", text.find(".cpp"));
  if (src != std::string_view::npos) text.remove_prefix(src + 5);
  const std::size_t line = text.find(':');
  if (line == std::string_view::npos) return std::string(text);
  return std::string(text.substr(0, text.find_first_not_of("0123456789", line + 1)));
}

// ", after pass place-barriers: events-are-placed" of the verifier's message; else "".
std::string broken_rule(std::string_view line) {
  const std::size_t begin = line.find(" after pass ");
  if (begin == std::string_view::npos) return "";
  const std::size_t pass = line.find(": ", begin);
  const std::size_t rule = line.find(": ", pass + 1);
  if (pass == std::string_view::npos || rule == std::string_view::npos) return "";
  return "," + std::string(line.substr(begin, rule - begin));
}

}  // namespace

std::string cause_of(std::string_view errors) {
  constexpr std::string_view kStop = "kiln: internal error at ";
  if (const auto line = line_with(errors, kStop); !line.empty()) {
    return "stop at " + short_place(line.substr(kStop.size())) + broken_rule(line);
  }
  if (const auto at = errors.find(": runtime error: "); at != std::string_view::npos) {
    const std::size_t begin = errors.rfind('\n', at) + 1;
    return "undefined behaviour at " + short_place(errors.substr(begin, at - begin));
  }
  if (errors.find("bad_alloc") != std::string_view::npos) return "memory ends";
  if (const auto line = line_with(errors, "SUMMARY: "); !line.empty()) {
    return std::string(line.substr(0, 150));
  }
  return std::string(line_with(errors, "terminate called").substr(0, 100));
}

Crew::Crew(CrewOptions options) : options_(std::move(options)) {
  members_.resize(options_.workers);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    members_[i].scratch = options_.scratch / format("worker{}", i);
    std::filesystem::create_directories(members_[i].scratch);
  }
}

Crew::~Crew() {
  for (Member& member : members_) {
    if (member.pid == 0) continue;
    kill(member.pid, SIGKILL);
    close_all(member);
    waitpid(member.pid, nullptr, 0);
  }
}

void Crew::submit(Task task) { tasks_.push_back(std::move(task)); }

bool Crew::busy() const {
  if (!tasks_.empty() || !endings_.empty()) return true;
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return !member.tasks.empty(); });
}

Ending Crew::next() {
  KILN_CHECK(busy(), "nothing has been submitted");
  while (endings_.empty()) {
    for (Member& member : members_) feed(member);
    wait_for_messages();
  }
  Ending ending = std::move(endings_.front());
  endings_.pop_front();
  return ending;
}

void Crew::start(Member& member) {
  int orders[2];
  int messages[2];
  KILN_CHECK(pipe2(orders, O_CLOEXEC) == 0 && pipe2(messages, O_CLOEXEC) == 0, "no more pipes");
  std::vector<std::string> words = options_.command;
  words.push_back(member.scratch.string());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  member.pid = fork();
  if (member.pid == 0) {
    dup2(orders[0], STDIN_FILENO);
    dup2(messages[1], STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(5);
  }
  close(orders[0]);
  close(messages[1]);
  member.orders = orders[1];
  member.messages = messages[0];
  member.begun = false;
  member.peak_mb = 0;
  member.too_large.reset();
  member.killed.clear();
  member.heard = Clock::now();
}

// Gives the member what is to be done, up to a few orders ahead.
void Crew::feed(Member& member) {
  while (member.tasks.size() < kAhead && !tasks_.empty()) {
    // A program in a file has the worker to itself: there is one such file.
    if (!member.tasks.empty() && (tasks_.front().program || member.tasks.front().program)) return;
    const auto at = std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& task) {
      return member.pid == 0 || task.but_not != member.pid;
    });
    if (at == tasks_.end()) {
      // Only what this very process must not have is left: another one takes its place.
      if (!member.tasks.empty()) return;
      kill(member.pid, SIGKILL);
      waitpid(member.pid, nullptr, 0);
      close_all(member);
      continue;
    }
    Task task = std::move(*at);
    tasks_.erase(at);
    if (member.pid == 0) start(member);
    give(member, std::move(task));
  }
}

bool Crew::give(Member& member, Task task) {
  if (task.program) {
    const std::string text = task.program->name + "\n" + serialised(*task.program);
    if (!write_file((member.scratch / "order.txt").string(), text)) return false;
  }
  const Order order{.index = task.program ? kFromFile : task.index, .draw = task.draw};
  if (member.tasks.empty()) member.heard = Clock::now();
  member.tasks.push_back(std::move(task));
  return write(member.orders, &order, sizeof order) == sizeof order;
}

void Crew::wait_for_messages() {
  std::vector<pollfd> waiting;
  std::vector<Member*> who;
  for (Member& member : members_) {
    if (member.pid == 0) continue;
    waiting.push_back({member.messages, POLLIN, 0});
    who.push_back(&member);
  }
  poll(waiting.data(), waiting.size(), 50);
  const bool time_to_watch = Clock::now() - watched_ > std::chrono::milliseconds(50);
  if (time_to_watch) watched_ = Clock::now();
  for (std::size_t i = 0; i < who.size(); ++i) {
    if (waiting[i].revents != 0)
      listen(*who[i]);
    else if (time_to_watch)
      watch(*who[i]);
  }
}

void Crew::listen(Member& member) {
  Message message;
  char* at = reinterpret_cast<char*>(&message);
  std::size_t left = sizeof message;
  while (left != 0) {
    const ssize_t got = read(member.messages, at, left);
    if (got <= 0) return bury(member);
    at += got;
    left -= static_cast<std::size_t>(got);
  }
  take(member, message);
}

void Crew::take(Member& member, const Message& message) {
  member.heard = Clock::now();
  if (message.peak_mb > kMemoryMaxMb && member.peak_mb <= kMemoryMaxMb && !kSanitized) {
    member.too_large = member.stage;
  }
  member.peak_mb = message.peak_mb;
  if (message.kind == Message::Kind::kStage) {
    member.begun = true;
    member.stage = message.stage;
    return;
  }
  Ending ending{.task = std::move(member.tasks.front()), .said = message, .failure = {}};
  ending.worker = member.pid;
  ending.failure = message.failure;
  if (ending.failure.empty() && member.too_large) {
    ending.failure = format("over {} MB in `{}`", kMemoryMaxMb, name(*member.too_large));
    ending.resources = is_unlimited(*member.too_large);
  }
  member.too_large.reset();
  member.tasks.pop_front();
  member.begun = false;
  endings_.push_back(std::move(ending));
}

std::string Crew::time_is_up(Stage stage) const {
  return format("over {} s of `{}`", options_.seconds_max * clock_factor(stage), name(stage));
}

std::string Crew::last_words(const Member& member, int status) const {
  if (!member.killed.empty()) return member.killed;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) return time_is_up(member.stage);
  const auto errors = read_file((member.scratch / "stderr.txt").string());
  const std::string cause = errors ? cause_of(*errors) : "";
  if (cause == "memory ends") return format("memory ends in `{}`", name(member.stage));
  if (!cause.empty()) return cause;
  if (WIFSIGNALED(status)) return format("signal {} in `{}`", WTERMSIG(status), name(member.stage));
  return format("exit {} in `{}`", WEXITSTATUS(status), name(member.stage));
}

// The process has ended: what it was trying has failed, the rest of its orders are for others.
void Crew::bury(Member& member) {
  int status = 0;
  waitpid(member.pid, &status, 0);
  std::deque<Task> tasks = std::move(member.tasks);
  member.tasks.clear();
  stillborn_ = member.begun || status == 0 ? 0 : stillborn_ + 1;
  KILN_CHECK(stillborn_ < 20, "workers end before they begin, with status {}", status);
  if (member.begun) {
    Ending ending{
        .task = std::move(tasks.front()), .said = {}, .failure = last_words(member, status)};
    ending.worker = member.pid;
    ending.said.accepted = member.stage != Stage::kCheck;
    const bool of_limits =
        ending.failure.starts_with("over ") || ending.failure.starts_with("memory");
    ending.resources = of_limits && is_unlimited(member.stage);
    tasks.pop_front();
    endings_.push_back(std::move(ending));
  }
  for (Task& task : tasks) tasks_.push_front(std::move(task));
  close_all(member);
}

void Crew::watch(Member& member) {
  if (member.tasks.empty()) return;
  if (resident_mb(member.pid) > kKillMb) {
    member.killed = format("over {} MB in `{}`", kMemoryMaxMb, name(member.stage));
  } else if (Clock::now() - member.heard > kSilenceMax) {
    member.killed = format("no end of `{}`", name(member.stage));
  }
  if (!member.killed.empty()) kill(member.pid, SIGKILL);
}

void Crew::close_all(Member& member) {
  close(member.orders);
  close(member.messages);
  member.pid = 0;
}

}  // namespace kiln::fuzz
