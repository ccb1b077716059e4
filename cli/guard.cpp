// However `kiln` ends, no half-written file is left and the terminal is as it was:
//
//   Ctrl-C, SIGTERM, SIGHUP   the default action, after unfinished files are removed
//   no memory, no thread      one line on standard error, exit code 3
//   a file too large          an error of `write`, and not the signal that would kill
//   a closed stream           writing to it fails, and no other file gets its number
#include "guard.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "io/console.h"
#include "support/unfinished.h"

namespace {

constexpr int kEnvironment = static_cast<int>(kiln::io::Exit::kEnvironment);

// Only what a signal handler may do.
void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // nobody to tell
}

// Over a line of progress, and back to the terminal's own colours.
void restore_terminal() {
  if (isatty(STDERR_FILENO) != 0) say("\r\x1b[K\x1b[0m");
}

extern "C" void interrupted(int signal) {
  kiln::remove_unfinished_files();
  restore_terminal();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

[[noreturn]] void give_up(const char* text) {
  kiln::remove_unfinished_files();
  restore_terminal();
  say(text);
  _exit(kEnvironment);
}

void out_of_memory() { give_up("error: out of memory\n"); }

// Exceptions come from the standard library alone: no memory, no thread, or a mistake of ours.
[[noreturn]] void uncaught() {
  if (const std::exception_ptr pending = std::current_exception(); pending != nullptr) {
    try {
      std::rethrow_exception(pending);
    } catch (const std::bad_alloc&) {
      give_up("error: out of memory\n");
    } catch (const std::system_error& error) {
      say(error.what());
      give_up("\nerror: the system has no more memory or threads\n");
    } catch (const std::exception& error) {
      say(error.what());
      say("\n");
    } catch (...) {
    }
  }
  std::abort();
}

// Before anything static is made: the tables of the compiler are allocated too.
[[gnu::constructor(101)]] void guard_memory() {
  std::set_new_handler(out_of_memory);
  std::set_terminate(uncaught);
}

// A file opened later would get the number of a closed stream, and what is meant for that stream.
void keep_stream_numbers() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // Open the other way round, so that its use fails.
    const int file = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (file >= 0 && file != stream) dup2(file, stream);
  }
}

}  // namespace

void guard_process() {
  keep_stream_numbers();
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    std::signal(signal, interrupted);
  }
}
