// What the Python arguments of all solvers have in common.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "hardmargin/packed_classes.hpp"

using Spec = std::tuple<std::string, double, double, double>;
using Classes = std::vector<std::int32_t>;
using Machines = std::vector<std::pair<Classes, Classes>>;

// Fills in where kernel values come from (`column` if there is one, else `kernel`, else the matrix
// holds them) and which rows are in which machine. All arguments must outlive the problem.
void set_machines(hardmargin::MachineProblem& problem, const HeldMatrix& matrix,
                  const std::optional<Spec>& kernel, const nb::object& column,
                  const Vector<std::int32_t>& classes, int n_classes, const Machines& machines);
