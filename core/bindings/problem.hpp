// What the Python arguments of all solvers have in common.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "convert.hpp"
#include "hardmargin/packed_classes.hpp"

using Classes = std::vector<std::int32_t>;
using Machines = std::vector<std::pair<Classes, Classes>>;  // negative, positive

// Machines whose classes are below `n_classes`, and occur at most once per machine.
std::vector<hardmargin::MachineSpec> to_machines(const Machines& machines, std::size_t n_classes);

// The arrays that a problem points into; they must outlive it.
class HeldProblem {
  public:
    // Kernel values come from `column` if there is one, else from `kernel` on the rows of
    // `matrix`, else they are the matrix itself, or exp(-gamma * matrix) if the kernel is "decay".
    HeldProblem(nb::handle matrix, nb::handle kernel, nb::handle column, nb::handle classes,
                std::int64_t n_classes, const Machines& machines);

    void set(hardmargin::MachineProblem& problem) const;

    // One number per row, or null for None; for rows that take part it must be finite, and positive
    // if asked.
    const double* row_numbers(nb::handle source, const char* name, bool positive);

  private:
    std::size_t n_rows() const { return matrix_.matrix.n_rows; }

    HeldMatrix matrix_;
    std::optional<hardmargin::KernelSpec> kernel_;
    std::optional<double> decay_;
    nb::handle column_;
    Vector<const std::int32_t> classes_;
    std::size_t n_classes_;
    std::vector<hardmargin::MachineSpec> machines_;
    std::vector<Vector<const double>> numbers_;
};
