// The row of the reference interpreter: its results as a machine's, rounded to the outputs' types.
#include "reference/compare.h"

#include "backends/backend.h"
#include "support/check.h"

namespace kiln::backends {

namespace {

class PreparedReference final : public Prepared {
 public:
  explicit PreparedReference(const Interpreted& interpreted) : interpreted_(interpreted) {}

  Result<Execution> run(ir::Arguments arguments, const Limits&) override {
    Execution out{
        .backend = &kReference, .arguments = std::move(arguments), .seconds = interpreted_.seconds};
    for (const reference::Output& output : interpreted_.outcome.outputs) {
      Tensor tensor = reference::rounded(output);
      if (output.param) {
        out.arguments.params[*output.param].tensor = std::move(tensor);
        continue;
      }
      out.arguments.returned.scalar = tensor.elements() == 1 ? tensor.get(0) : 0;
      out.arguments.returned.tensor = std::move(tensor);
    }
    return out;
  }

 private:
  const Interpreted& interpreted_;
};

}  // namespace

constinit const Backend kReference{
    .name = "reference",
    .serves = [](const target::Arch&) { return true; },
    .find = []() -> Result<void> { return {}; },
    .prepare = [](const Job& job) -> Result<std::unique_ptr<Prepared>> {
      KILN_CHECK(job.interpreted != nullptr, "the interpreter has not run");
      return std::unique_ptr<Prepared>(std::make_unique<PreparedReference>(*job.interpreted));
    },
};

}  // namespace kiln::backends
