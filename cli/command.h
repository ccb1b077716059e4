// One command of the `kiln` program: reads its words, calls the driver, gives the exit code.
//
//   kiln run matmul.co --arch sm_80 --shape M=64,N=48,K=80
#pragma once

#include "io/console.h"

// `argv` as `main` gets it: the first word is the program's name.
int run_command(int argc, const char* const* argv, kiln::io::Console& console);
