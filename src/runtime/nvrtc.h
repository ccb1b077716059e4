// Compiling CUDA text in memory, with NVRTC opened at run time.
//
//   Result<Cubin> cubin = compile(compile_request(text, *target::find_arch("sm_90a"),
//   "matmul.cu"));
#pragma once

#include <span>
#include <string>
#include <vector>

#include "emit/cuda/device_headers.h"
#include "support/result.h"
#include "target/arch.h"

namespace kiln::runtime {

struct Cubin {
  std::string bytes;    // machine code for exactly the architecture asked for
  std::string log;      // the compiler's warnings; usually empty
  std::string version;  // of NVRTC: "13.0"
};

// All that NVRTC is given: with the NVRTC itself, this decides what it makes.
struct CompileRequest {
  std::string text;
  std::string file_name;  // what messages call the text
  std::vector<std::string> options;
  std::span<const emit::DeviceHeader> headers;  // what #include finds
  bool anew = false;  // without what NVRTC itself has kept of earlier compilations (since 12.9)
};

// With kiln's options and device headers.
[[nodiscard]] CompileRequest compile_request(std::string text, const target::Arch& arch,
                                             std::string file_name);

// Errors: no NVRTC on this machine; the text does not compile (the reason is the compiler's log).
[[nodiscard]] Result<Cubin> compile(const CompileRequest& request);

// Whether the text of a request compiles that ends before there is machine code: for a virtual
// architecture ("compute_90a"), or with -fdevice-syntax-only. Errors: those of `compile`.
[[nodiscard]] Result<void> try_compile(const CompileRequest& request);

// The names by which NVRTC is looked for: of Library::open.
[[nodiscard]] std::vector<std::string> nvrtc_names();

struct NvrtcFile {
  std::string version;  // "13.0"
  std::string path;     // empty when the loader does not say
};

// Opens NVRTC, which takes some milliseconds the first time. Errors: there is none.
[[nodiscard]] Result<NvrtcFile> find_nvrtc();

}  // namespace kiln::runtime
