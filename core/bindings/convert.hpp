// Converts Python's arguments to the core's types, and the core's results to Python's.
#pragma once

#include <string>

#include "arguments.hpp"
#include "hardmargin/control.hpp"
#include "hardmargin/kernel.hpp"
#include "hardmargin/matrix.hpp"

// A matrix and the arrays it points into. Where entries are stored (of sparse rows) is a checked
// copy: another thread may write into the caller's arrays, and a wild index would be followed.
struct HeldMatrix {
    hardmargin::Matrix matrix;
    Array data;
    Vector<const std::int32_t> indices;
    Vector<const std::int64_t> row_starts;

    void check_apart_from(const std::string& name, const Array& written,
                          const std::string& own_name) const;
};

// A 2-d array, or the tuple (data, indices, indptr, n_cols) of a CSR matrix.
HeldMatrix to_matrix(nb::handle source, const std::string& name);

// Both matrices, which must have the same number of columns, at least one. One object given twice
// is read once.
std::pair<HeldMatrix, HeldMatrix> to_matrices(nb::handle queries, nb::handle support);

// The tuple (name, gamma, coef0, degree); "sqeuclidean" and "cityblock" are distances alone.
hardmargin::KernelSpec to_kernel(nb::handle spec);
hardmargin::KernelKind to_metric(const std::string& name, const std::string& argument = "metric");

// Python's monitor, or None: `seconds_left` is read once, `report` is called now and then.
class Monitor {
  public:
    explicit Monitor(const nb::object& monitor = nb::none());

    double seconds_left() const { return seconds_left_; }

    // Lets Python handle signals (Ctrl-C) and reports (machines done, stage, value); false once the
    // monitor wants training to end. Must not outlive the monitor.
    hardmargin::Control::Poll poll() const;

  private:
    double seconds_left_ = hardmargin::no_limit;
    nb::object report_ = nb::none();
};

// Lets Python handle signals, and calls a function, or None, which may raise. Must not outlive it.
hardmargin::Control::Poll to_poll(const nb::object& check);

// An array of its own: a model that keeps it does not keep the whole result.
template <class T>
nb::object to_numpy(const std::vector<T>& values) {
    auto copy = std::make_unique<std::vector<T>>(values);
    const nb::capsule owner(copy.get(),
                            [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    auto& kept = *copy.release();
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept.data(), {kept.size()}, owner));
}

// Binds a member of a result as an array that cannot be replaced.
template <class Result, class T>
void def_array(nb::class_<Result>& type, const char* name, std::vector<T> Result::* member) {
    type.def_prop_ro(name, [member](const Result& r) { return to_numpy(r.*member); });
}

void bind_errors(nb::module_& module);
void bind_kernels(nb::module_& module);
void bind_greedy(nb::module_& module);
void bind_hard_margin(nb::module_& module);
void bind_soft_margin(nb::module_& module);
void bind_staged_vote(nb::module_& module);
void bind_tilt(nb::module_& module);
void bind_core_set(nb::module_& module);
void bind_cells(nb::module_& module);
void bind_interpolation(nb::module_& module);
