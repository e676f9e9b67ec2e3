#include "problem.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>

using namespace hardmargin;

namespace {

constexpr std::int64_t most_classes = 1 << 20;  // there is a list of rows for each

// The gamma of exp(-gamma * matrix), if that is what the kernel says.
std::optional<double> to_decay(nb::handle kernel) {
    std::tuple<std::string, double, double, double> parts;
    if (kernel.is_none() || !nb::try_cast(kernel, parts) || std::get<0>(parts) != "decay")
        return std::nullopt;
    return to_number("kernel[1] (gamma)", std::get<1>(parts), 0.0, true);
}

}  // namespace

std::vector<MachineSpec> to_machines(const Machines& machines, std::size_t n_classes) {
    std::vector<MachineSpec> specs;
    for (std::size_t m = 0; m < machines.size(); ++m) {
        const auto& [negative, positive] = machines[m];
        const std::string name = text("machines[", m, "]");
        check_indices(name + "[0]", negative.data(), negative.size(), n_classes);
        check_indices(name + "[1]", positive.data(), positive.size(), n_classes);
        Classes all = negative;
        all.insert(all.end(), positive.begin(), positive.end());
        std::sort(all.begin(), all.end());
        if (const auto twice = std::adjacent_find(all.begin(), all.end()); twice != all.end())
            refuse(name, " has class ", *twice, " more than once");
        specs.push_back({negative, positive});
    }
    return specs;
}

HeldProblem::HeldProblem(nb::handle matrix, nb::handle kernel, nb::handle column,
                         nb::handle classes, std::int64_t n_classes, const Machines& machines)
    : matrix_(to_matrix(matrix, "matrix")), column_(column), classes_(classes, "classes", n_rows()),
      n_classes_(to_count("n_classes", n_classes)) {
    const Matrix& rows = matrix_.matrix;
    if (rows.n_rows == 0) refuse("matrix has 0 rows, expected at least 1");
    if (n_classes > most_classes)
        refuse("n_classes is ", n_classes, ", expected at most ", most_classes);
    check_indices("classes", classes_.data, classes_.size, n_classes_,
                  std::numeric_limits<std::int32_t>::min());
    machines_ = to_machines(machines, n_classes_);
    if (const std::optional<double> gamma = to_decay(kernel)) decay_ = *gamma;
    else if (!kernel.is_none()) kernel_ = to_kernel(kernel);
    if (!column.is_none()) {
        if (!PyCallable_Check(column.ptr()))
            throw nb::type_error(text("column must be a function or None, got ",
                                      nb::type_name(column.type()).c_str())
                                     .c_str());
        if (!kernel.is_none()) refuse("kernel and column are given, expected at most one of them");
    } else if (kernel_) {
        if (rows.n_cols == 0) refuse("matrix has 0 columns, expected at least 1");
    } else if (rows.is_sparse() || rows.n_cols != rows.n_rows) {
        refuse("matrix must be dense and square without a kernel of rows, but it is ",
               rows.is_sparse() ? "sparse, " : "", rows.n_rows, " by ", rows.n_cols);
    }
}

void HeldProblem::set(MachineProblem& problem) const {
    problem.matrix = matrix_.matrix;
    if (!column_.is_none()) {
        problem.source = Source::function;
        problem.column = [column = column_, n = n_rows()](std::int32_t id, double* out) {
            const nb::gil_scoped_acquire gil;
            const Vector<const double> values(column(id), text("column(", id, ")"), n);
            std::copy_n(values.data, n, out);
        };
    } else if (kernel_) {
        problem.kernel = *kernel_;
    } else {
        problem.source = Source::precomputed;
        problem.decay = decay_;
    }
    problem.classes = classes_.data;
    problem.n_classes = n_classes_;
    problem.machines = machines_;
}

const double* HeldProblem::row_numbers(nb::handle source, const char* name, bool positive) {
    if (source.is_none()) return nullptr;
    const auto& numbers = numbers_.emplace_back(source, name, n_rows());
    for (std::size_t i = 0; i < numbers.size; ++i) {
        const double value = numbers.data[i];
        if (classes_.data[i] < 0 || (std::isfinite(value) && (!positive || value > 0))) continue;
        refuse(name, "[", i, "] is ", value, ", expected a finite number",
               positive ? " above 0" : "");
    }
    return numbers.data;
}
