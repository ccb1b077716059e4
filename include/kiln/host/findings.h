// What went wrong in the run of a whole program, and how the process ends for it.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

namespace kiln::host {

// A place in host code.
struct Site {
  const char* file;
  int line;
};

// How many calls went wrong so far. With one the process ends with exit status 1 at the latest when
// `main` returns.
class Findings {
 public:
  void add() {
    if (count_++ == 0) std::atexit(&Findings::end);
  }

 private:
  static void end() {
    std::cout.flush();
    std::fflush(nullptr);
    std::_Exit(1);
  }

  std::atomic<int> count_{0};
};

inline Findings& findings() {
  static Findings all;
  return all;
}

// Behind what the program has printed so far.
inline void say(Site site, const std::string& text) {
  std::cout.flush();
  std::fflush(stdout);
  std::fprintf(stderr, "%s:%d: %s\n", site.file, site.line, text.c_str());
  std::fflush(stderr);
}

// Something is wrong, and the program can go on.
inline void report(Site site, const std::string& text) {
  say(site, text);
  findings().add();
}

// The program cannot go on: 1 for what is wrong in it, 3 for the machine.
[[noreturn]] inline void stop(Site site, const std::string& text, int status) {
  say(site, text);
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace kiln::host
