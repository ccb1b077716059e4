// Stands in for CUDA's cuda_runtime_api.h in host code of a `.co` program.
#pragma once

#include "kiln/host/runtime.h"
