#include "backends/backend.h"
#include "ir/cuda_text.h"

namespace kiln::backends {

bool check_runs(const Backend& backend, const ir::Function& function, Diagnostics& diags) {
  const ir::OpId id = ir::first_cuda_alone(function);
  if (backend.runs_cuda || !id.valid()) return true;
  const ir::Op& op = function.ops[id];
  diags
      .report<diag::CudaNotRun>(op.span, std::get<ir::Cuda>(op.data).what, function.name,
                                backend.name)
      .help(
          "run it with `--on gpu`, or say what it does in front of it: `[[expect({{ ... }})]]`, in "
          "this language")
      .emit();
  return false;
}

}  // namespace kiln::backends
