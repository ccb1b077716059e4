// What the calls of CUDA and of tile functions work on: the simulator (device_sim.h) or a GPU
// (device_gpu.h). `kiln build --on` says which; with `auto` the program decides when it first needs
// one.
#pragma once

#include <cstddef>
#include <string>

#include "kiln/host/findings.h"

namespace kiln::host {

enum class On { kAuto, kSim, kGpu };

struct Target {
  On on;
  const char* arch;  // "sm_90a": what the tile functions are compiled for
};
// The program's; `kiln build` writes this function.
Target target();

struct Stream;
struct Event;

// Where the program says that memory lies.
struct Place {
  void* data;
  bool on_device;
  bool is_either = false;  // the program does not say
};

// CUDA's numbers of errors, which are the driver's too.
inline constexpr int kFine = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kUnknown = 999;

// Functions that return a number return one of CUDA's errors, 0 for none. Null is the default stream.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual bool is_simulated() const = 0;
  virtual std::string error_text(int error) = 0;

  virtual int count() = 0;
  virtual int current() = 0;
  virtual int choose(int number) = 0;

  // Null: there is no more.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void* allocate_managed(std::size_t bytes) = 0;
  virtual void* allocate_host(std::size_t bytes) = 0;
  virtual int release(void* data) = 0;
  virtual int release_host(void* data) = 0;

  // Why these bytes cannot be what the program says they are; "" when they can.
  virtual std::string misplaced(Place place, std::size_t bytes) = 0;
  // Start on the stream; what they touch has been looked at.
  virtual int copy(Place to, Place from, std::size_t bytes, Stream* stream) = 0;
  virtual int fill(void* to, int value, std::size_t bytes, Stream* stream) = 0;

  virtual int synchronise() = 0;
  virtual Stream* create_stream() = 0;
  virtual int destroy(Stream* stream) = 0;
  virtual int synchronise(Stream* stream) = 0;

  virtual Event* create_event() = 0;
  virtual int destroy(Event* event) = 0;
  virtual int record(Event* event, Stream* stream) = 0;
  virtual int synchronise(Event* event) = 0;
  virtual int milliseconds(float& out, Event* begin, Event* end) = 0;
};

// The program's.
Device& device();

}  // namespace kiln::host
