// Python arguments as the core's types.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>

#include "hardmargin/control.hpp"
#include "hardmargin/kernel.hpp"
#include "hardmargin/matrix.hpp"

namespace nb = nanobind;

using Array = nb::ndarray<nb::ro, nb::device::cpu>;
template <class T, int Dims = 1>
using Vector = nb::ndarray<const T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;

// A matrix and the arrays it points into.
struct HeldMatrix {
    hardmargin::Matrix matrix;
    Array data;
    Vector<std::int32_t> indices;
    Vector<std::int64_t> row_starts;
};

// A 2-d array, or the tuple (data, indices, indptr, n_cols) of a CSR matrix.
HeldMatrix to_matrix(nb::handle source);

// The tuple (name, gamma, coef0, degree); "sqeuclidean" and "cityblock" are distances alone.
hardmargin::KernelSpec to_kernel(const std::tuple<std::string, double, double, double>& spec);

// Lets Python handle signals (Ctrl-C) and, when `report` is callable, calls it with
// (machines_done, stage, violation).
hardmargin::Control::Poll polling(const nb::object& report);

// Hands an owned C++ array to numpy without copying.
template <class T>
nb::object to_numpy(std::vector<T>&& values) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

void bind_kernels(nb::module_& module);
void bind_greedy(nb::module_& module);
void bind_exact(nb::module_& module);
void bind_paths(nb::module_& module);
void bind_tilt(nb::module_& module);
void bind_ball(nb::module_& module);
