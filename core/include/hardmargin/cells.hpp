// Cells: the leaves of a binary tree of cuts, each with kernel machines of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/control.hpp"
#include "hardmargin/kernel.hpp"
#include "hardmargin/matrix.hpp"

namespace hardmargin {

// Each cut sends the rows whose value is at most its threshold to the left, all others and NaN to
// the right. The first cut sees all rows; without cuts there is one cell.
struct Cuts {
    std::size_t n_cuts, n_features;
    const std::int32_t* columns;   // >= 0: the value in this column; c < 0: along direction -c - 1
    const float* directions;       // n_features each
    const float* thresholds;       // one per cut
    const std::int32_t* children;  // [cut][left, right]; >= 0: a later cut; c < 0: cell -c - 1
};

// cells[i] = the cell of row i. Values are compared in float32, whatever the dtype of the rows, and
// products depend on neither other rows nor the CPU. Entries of sparse rows must be in order.
void route_cells(const Cuts& cuts, const Matrix& rows, std::int32_t* cells, int n_threads,
                 Control& control);

// The machines of all cells. The members of a cell are the support rows that they are made of, seen
// as z = (x - mean) * scale.
struct CellMachines {
    std::size_t n_cells, n_features, n_members;
    const float* support;
    std::size_t support_stride;
    const std::int32_t* rows;         // support row of each member, cell after cell
    const std::int64_t* starts;       // of the cells among the members, and one more
    const float *means, *scales;      // [cell][feature]
    std::vector<KernelKind> metrics;  // of each kernel exp(-gamma * distance)
    const double* gammas;             // [cell][kernel]; 0: the kernel is not used there
    // The coefficients of each kernel, by member.
    const std::int64_t* coefficient_starts;  // [kernel][member, and one more]
    const std::int16_t* machines;            // of each coefficient, within its cell
    const float* values;
};

// Dense queries, and the cell of each; those with cell -1 are left out.
struct CellQueries {
    std::size_t n;
    const float* rows;
    std::size_t stride;
    const std::int32_t* cells;
};

// out[q * n_machines + m] = sum over kernels and members of coef * exp(-gamma * distance), for
// machine m of the cell of query q; 0 if the cell has no such machine. What a query gets does not
// depend on the others.
void expand_cells(const CellMachines& cells, const CellQueries& queries, std::size_t n_machines,
                  double* out, int n_threads, Control& control);

}  // namespace hardmargin
