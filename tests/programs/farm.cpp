#include "programs/farm.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "support/check.h"
#include "support/format.h"

namespace kiln::programs {

namespace {

using Clock = std::chrono::steady_clock;

// One line a record, tabs between its fields.
std::string escaped(std::string text) {
  for (char& c : text) {
    if (c == '\t' || c == '\n') c = ' ';
  }
  return text.substr(0, 4000);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == separator) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

std::string record_of(std::uint64_t number, const Verdict& verdict) {
  std::string names;
  for (const std::string& each : verdict.census) names += (names.empty() ? "" : " ") + each;
  return format("done\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", number, verdict.kind, escaped(verdict.what),
                escaped(verdict.detail), verdict.compared, verdict.not_compared, names);
}

Verdict verdict_of(const std::vector<std::string>& fields) {
  Verdict out{.kind = fields[2], .what = fields[3], .detail = fields[4]};
  out.compared = std::atoll(fields[5].c_str());
  out.not_compared = std::atoll(fields[6].c_str());
  for (const std::string& each : split(fields[7], ' ')) {
    if (!each.empty()) out.census.insert(each);
  }
  return out;
}

void write_all(int to, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t wrote = write(to, text.data() + at, text.size() - at);
    if (wrote <= 0) _exit(3);
    at += static_cast<std::size_t>(wrote);
  }
}

// A process with a pipe from its records and one from what it says when it stops.
struct Worker {
  pid_t pid = -1;
  int records = -1;
  int words = -1;
  std::uint64_t at = 0;  // the sample in its hands
  std::uint64_t step = 1;
  Clock::time_point since;
  std::string read;
  std::string said;
  bool killed = false;
};

template <class Work>
void start(Worker& worker, Work&& work) {
  int records[2];
  int words[2];
  KILN_CHECK(pipe(records) == 0 && pipe(words) == 0, "no pipe");
  std::fflush(nullptr);
  const pid_t pid = fork();
  KILN_CHECK(pid >= 0, "no process");
  if (pid == 0) {
    close(records[0]);
    close(words[0]);
    dup2(words[1], 2);
    work(records[1]);
    _exit(0);
  }
  close(records[1]);
  close(words[1]);
  worker.pid = pid;
  worker.records = records[0];
  worker.words = words[0];
  worker.since = Clock::now();
  worker.read.clear();
  worker.said.clear();
  worker.killed = false;
}

// What has come; false when the process is gone.
bool listen(Worker& worker, int milliseconds) {
  pollfd waits[2] = {{worker.records, POLLIN, 0}, {worker.words, POLLIN, 0}};
  poll(waits, 2, milliseconds);
  char buffer[65536];
  bool open = true;
  if ((waits[0].revents & (POLLIN | POLLHUP)) != 0) {
    const ssize_t got = read(worker.records, buffer, sizeof buffer);
    if (got > 0) worker.read.append(buffer, static_cast<std::size_t>(got));
    if (got <= 0) open = false;
  }
  if ((waits[1].revents & POLLIN) != 0) {
    const ssize_t got = read(worker.words, buffer, sizeof buffer);
    if (got > 0) worker.said.append(buffer, static_cast<std::size_t>(got));
  }
  return open;
}

void end(Worker& worker) {
  char buffer[65536];
  pollfd wait = {worker.words, POLLIN, 0};
  while (poll(&wait, 1, 0) > 0 && (wait.revents & POLLIN) != 0) {
    const ssize_t got = read(worker.words, buffer, sizeof buffer);
    if (got <= 0) break;
    worker.said.append(buffer, static_cast<std::size_t>(got));
  }
  close(worker.records);
  close(worker.words);
  int status = 0;
  waitpid(worker.pid, &status, 0);
  worker.pid = -1;
}

bool overdue(const Worker& worker, int seconds_max) {
  return Clock::now() - worker.since > std::chrono::seconds(seconds_max);
}

// Without numbers and what is quoted: the same for two programs that stop in the same place.
std::string without_particulars(const std::string& text) {
  std::string out;
  bool quoted = false;
  for (const char c : text) {
    if (c == '`') quoted = !quoted;
    if (quoted || (c >= '0' && c <= '9')) continue;
    out += c;
  }
  return out.substr(0, 160);
}

// A process that ended before its sample was done.
Verdict verdict_of_end(const Worker& worker) {
  Verdict out;
  out.kind = worker.killed ? "too-long" : "stopped";
  const std::string first = worker.said.substr(0, worker.said.find('\n'));
  out.what = worker.killed ? "" : without_particulars(first);
  out.detail = escaped(worker.said);
  return out;
}

class Farm {
 public:
  explicit Farm(const FarmOptions& options) : options_(options) {}

  Harvest run() {
    std::vector<Worker> workers(static_cast<std::size_t>(std::max(options_.jobs, 1)));
    for (std::size_t i = 0; i < workers.size(); ++i) {
      workers[i].at = options_.first + i;
      workers[i].step = workers.size();
      begin(workers[i]);
    }
    bool busy = true;
    while (busy) {
      busy = false;
      for (Worker& worker : workers) {
        if (worker.pid < 0) continue;
        busy = true;
        tend(worker, workers.size() == 1 ? 200 : 5);
      }
    }
    std::sort(out_.findings.begin(), out_.findings.end(),
              [](const Finding& a, const Finding& b) { return a.number < b.number; });
    return out_;
  }

 private:
  [[nodiscard]] std::uint64_t end_number() const { return options_.first + options_.count; }

  void begin(Worker& worker) {
    if (worker.at >= end_number()) return;
    const std::uint64_t first = worker.at;
    const std::uint64_t step = worker.step;
    start(worker, [&](int to) {
      for (std::uint64_t i = first; i < end_number(); i += step) {
        const Sample sample = draw_sample(options_.stream, i);
        const Verdict verdict = evaluate(sample, options_.evaluate);
        write_all(to, record_of(i, verdict));
        // A GPU that failed does nothing more for this process.
        if (verdict.kind == "gpu-failed") _exit(0);
      }
    });
  }

  void take(std::uint64_t number, const Verdict& verdict) {
    ++out_.done;
    out_.compared += verdict.compared;
    out_.not_compared += verdict.not_compared;
    for (const std::string& each : verdict.census) ++out_.census[each];
    if (!verdict.kind.empty()) {
      out_.findings.push_back({number, verdict.kind, verdict.what, verdict.detail});
    }
    if (out_.done % 1000 == 0) {
      std::fprintf(stderr, "%llu done, %zu findings\n", static_cast<unsigned long long>(out_.done),
                   out_.findings.size());
    }
  }

  void take_records(Worker& worker) {
    std::size_t newline = 0;
    while ((newline = worker.read.find('\n')) != std::string::npos) {
      const auto fields = split(worker.read.substr(0, newline), '\t');
      worker.read.erase(0, newline + 1);
      take(std::strtoull(fields[1].c_str(), nullptr, 10), verdict_of(fields));
      worker.at += worker.step;
      worker.since = Clock::now();
    }
  }

  void tend(Worker& worker, int milliseconds) {
    const bool open = listen(worker, milliseconds);
    take_records(worker);
    if (open && !overdue(worker, options_.seconds_max)) return;
    if (open) {
      worker.killed = true;
      kill(worker.pid, SIGKILL);
    }
    end(worker);
    if (worker.at >= end_number()) return;
    const bool failed_gpu = !out_.findings.empty() && out_.findings.back().kind == "gpu-failed" &&
                            out_.findings.back().number + worker.step == worker.at;
    if (!failed_gpu) {
      take(worker.at, verdict_of_end(worker));
      worker.at += worker.step;
    }
    begin(worker);
  }

  const FarmOptions& options_;
  Harvest out_;
};

}  // namespace

Harvest run_farm(const FarmOptions& options) { return Farm(options).run(); }

Verdict evaluate_apart(const Sample& sample, const EvaluateOptions& options, int seconds_max) {
  Worker worker;
  start(worker,
        [&](int to) { write_all(to, record_of(sample.number, evaluate(sample, options))); });
  while (worker.read.find('\n') == std::string::npos) {
    const bool open = listen(worker, 50);
    if (!open) break;
    if (overdue(worker, seconds_max)) {
      worker.killed = true;
      kill(worker.pid, SIGKILL);
      break;
    }
  }
  end(worker);
  const std::size_t newline = worker.read.find('\n');
  if (newline == std::string::npos) return verdict_of_end(worker);
  return verdict_of(split(worker.read.substr(0, newline), '\t'));
}

}  // namespace kiln::programs
