#include "compiles/compiles.h"

#include "runtime/nvrtc.h"
#include "support/format.h"

namespace kiln::compiles {

std::optional<std::string> unavailable() {
  const Result<runtime::NvrtcFile> nvrtc = runtime::find_nvrtc();
  if (nvrtc) return std::nullopt;
  return nvrtc.error().text();
}

std::optional<std::string> errors(const std::string& text, const target::Arch& arch, Depth depth) {
  runtime::CompileRequest request = runtime::compile_request(text, arch, "kernel.cu");
  request.anew = true;  // what NVRTC keeps of earlier ones is of no use to texts that all differ
  if (depth != Depth::kMachineCode) {
    request.options[0] = format("--gpu-architecture={}", arch.compute);
  }
  if (depth == Depth::kFrontEnd) request.options.push_back("--fdevice-syntax-only");
  const Result<void> compiled = runtime::try_compile(request);
  if (compiled) return std::nullopt;
  return compiled.error().reason;
}

}  // namespace kiln::compiles
