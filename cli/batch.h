// `kiln --batch`: commands one after the other in one process, for tests that run thousands of
// them. Starting the program with sanitizers takes longer than most commands.
//
//   asked, for each command     4\n /the/folder\0 check\0 matmul.co\0 --json\0
//   answered                    1 2 345\n, then two bytes of output and 345 of errors
//
// A count of words, then each word and a zero byte: the folder to run in, and the command's. The
// answer is the exit code and the lengths of both texts on a line, then the texts. (Blanks above
// are for the eye.) Until the standard input ends. A command that would stop the process stops this
// one; who asked then runs that command alone. tests/tools/batch.py does.
#pragma once

// The exit code: 2 for a question that cannot be read.
int run_batch();
