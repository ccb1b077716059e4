// Which device a program has, as `kiln build --on` says, and the uses of it that are looked at first.
#pragma once

#include "kiln/host/device_gpu.h"
#include "kiln/host/device_sim.h"

namespace kiln::host {

// Prints what a user should know: that `auto` has taken the simulator, or that there is no GPU, which
// ends the program.
inline Device* choose_device() {
  const Target wanted = target();
  if (wanted.on == On::kSim) return new SimDevice;
  std::string reason;
  if (Device* gpu = GpuDevice::open(wanted.arch, reason)) return gpu;
  std::cout.flush();
  std::fflush(stdout);
  if (wanted.on == On::kGpu) {
    std::fprintf(stderr,
                 "error: this program needs a GPU: %s\n  = help: `--on sim` builds it for the "
                 "simulator, `--on auto` for what there is\n",
                 reason.c_str());
    std::fflush(nullptr);
    std::_Exit(3);
  }
  std::fprintf(stderr, "note: tile functions are simulated: %s\n", reason.c_str());
  return new SimDevice;
}

// Never destroyed: what the program destroys at its end may use it.
inline Device& device() {
  static Device* const chosen = choose_device();
  return *chosen;
}

inline int copy(Place to, Place from, std::size_t bytes, Stream* stream, Site site) {
  const std::string target = device().misplaced(to, bytes);
  const std::string source = device().misplaced(from, bytes);
  if (!target.empty()) report(site, "error: the target of the copy " + target);
  if (!source.empty()) report(site, "error: the source of the copy " + source);
  if (!target.empty() || !source.empty()) return kInvalidValue;
  return device().copy(to, from, bytes, stream);
}

inline int fill(Place to, int value, std::size_t bytes, Stream* stream, Site site) {
  const std::string wrong = device().misplaced(to, bytes);
  if (!wrong.empty()) report(site, "error: what is to be filled " + wrong);
  return wrong.empty() ? device().fill(to.data, value, bytes, stream) : kInvalidValue;
}

}  // namespace kiln::host
