// SPDX-FileCopyrightText: 2026 The kzero authors
// SPDX-License-Identifier: BSD-3-Clause

// Everything.
#pragma once

#include <kzero/bfloat16.hpp>
#include <kzero/communicator.hpp>
#include <kzero/config.hpp>
#include <kzero/contribution.hpp>
#include <kzero/dtype.hpp>
#include <kzero/element_rule.hpp>
#include <kzero/error.hpp>
#include <kzero/external_array.hpp>
#include <kzero/external_view.hpp>
#include <kzero/float16.hpp>
#include <kzero/join.hpp>
#include <kzero/load_options.hpp>
#include <kzero/log.hpp>
#include <kzero/matrix_rule.hpp>
#include <kzero/memory.hpp>
#include <kzero/optimizer_options.hpp>
#include <kzero/optimizer_state.hpp>
#include <kzero/own_rule.hpp>
#include <kzero/parameter_set.hpp>
#include <kzero/parameter_view.hpp>
#include <kzero/plan.hpp>
#include <kzero/range.hpp>
#include <kzero/reduction_hook.hpp>
#include <kzero/rule.hpp>
#include <kzero/runtime.hpp>
#include <kzero/scaler.hpp>
#include <kzero/shard_table.hpp>
#include <kzero/sharded_optimizer.hpp>
#include <kzero/simulated_communicator.hpp>
#include <kzero/state_json.hpp>
#include <kzero/step_report.hpp>
#include <kzero/trace.hpp>
#include <kzero/version.hpp>

#if KZERO_HAVE_HDF5
#include <kzero/checkpoint.hpp>
#endif
