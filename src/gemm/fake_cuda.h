// A CUDA driver for tests that computes nothing: it answers like one H200, counts what it is asked
// for and shows each launch. Its memory is the host's, so a test may compute instead. What is captured
// is counted and not shown; a graph that is started does nothing. Built as libcuda.so.1, beside the
// test that opens it.
#pragma once

#include <atomic>

struct FakeLaunch {
  const char* kernel;  // its name
  unsigned grid[3];
  unsigned threads;
  void* stream;
  void** parameters;
};

struct FakeCuda {
  std::atomic<int> allocations;
  std::atomic<int> synchronisations;
  std::atomic<int> modules;          // loaded
  std::atomic<int> modules_refused;  // how many will be
  std::atomic<int> last_module;      // its first byte
  // Encoded; 8 bytes each: a map's address, its first two extents and its pitches.
  std::atomic<int> maps;
  std::atomic<int> launches;
  std::atomic<int> pushes;         // of contexts
  std::atomic<int> contexts_held;  // by threads that pushed one
  std::atomic<bool> capturing;
  std::atomic<int> launch_status;   // what a launch returns
  std::atomic<int> events;          // recorded
  std::atomic<int> captured;        // launches, copies and fillings
  std::atomic<int> capture_status;  // what the end of a capture returns
  std::atomic<int> graphs_held;
  std::atomic<int> graph_starts;
  // Called for each launch, in its thread.
  std::atomic<void (*)(const FakeLaunch&)> on_launch;
};

extern "C" FakeCuda* fake_cuda();
