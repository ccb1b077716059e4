// What the process does when it is interrupted, when memory ends, and when a standard stream is
// closed.
#pragma once

// To be called first.
void guard_process();
