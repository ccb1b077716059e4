// The `kiln` program: one command, or with --batch as many as the standard input has.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "batch.h"
#include "command.h"
#include "guard.h"

namespace {

bool colour_on(int descriptor) {
  return isatty(descriptor) != 0 && std::getenv("NO_COLOR") == nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  guard_process();
  if (argc == 2 && std::string_view(argv[1]) == "--batch") return run_batch();
  kiln::io::Console console{.out = std::cout,
                            .err = std::cerr,
                            .colour_out = colour_on(STDOUT_FILENO),
                            .colour_err = colour_on(STDERR_FILENO),
                            .progress = isatty(STDERR_FILENO) != 0};
  return run_command(argc, argv, console);
}
