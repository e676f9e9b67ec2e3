#include "hardmargin/ball.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "convert.hpp"
#include "hardmargin/aligned.hpp"
#include "hardmargin/level.hpp"

using namespace hardmargin;

namespace {

using Changed = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Strided = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

// The hot loops read whole cache lines. A single row or column may come with any stride.
template <class T>
void check_lines(const Strided<T>& array) {
    if ((array.shape(1) > 1 && array.stride(1) != 1) ||
        (array.shape(0) > 1 && array.stride(0) % 16 != 0) ||
        reinterpret_cast<std::uintptr_t>(array.data()) % 64 != 0)
        throw std::invalid_argument("rows must be contiguous, begin on cache lines and lie a "
                                    "multiple of 16 apart");
}

template <class T>
std::tuple<std::size_t, double, std::string>
steps(Strided<T> q, Changed alpha, Changed gradient, double tol, double largest_mass,
      std::size_t max_steps, double max_seconds, nb::object report) {
    const std::size_t n = q.shape(0);
    if (n == 0 || q.shape(1) != n || alpha.shape(0) != n || gradient.shape(0) != n)
        throw std::invalid_argument("Q must be square, alpha and gradient of its size, above 0");
    const auto stride = static_cast<std::size_t>(q.stride(0));
    check_lines(q);
    const double left = std::min(max_seconds, 1e9);
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(left));
    Control control(polling(report));
    const T* values = q.data();
    double *a = alpha.data(), *g = gradient.data();
    const nb::gil_scoped_release released;
    const CoreSetResult r =
        core_set_steps<T>(values, stride, n, a, g, tol, largest_mass, max_steps, deadline, control);
    return {r.n_steps, r.violation,
            r.diverged          ? "diverged"
            : r.timed_out       ? "max_time"
            : r.violation > tol ? "max_steps"
                                : "converged"};
}

template <class T>
using Writable = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T>
void join(Strided<T> values, Vector<std::int64_t> slots, Vector<std::int64_t> places,
          Vector<double> labels, Vector<double, 2> projections, double bias,
          Vector<double> diagonal, Writable<T> q) {
    const std::size_t total = places.shape(0), joining = slots.shape(0);
    if (values.stride(1) != 1 || q.stride(1) != 1 || joining > total || q.shape(0) < total ||
        q.shape(1) < total || labels.shape(0) != total || projections.shape(0) != total ||
        diagonal.shape(0) != joining)
        throw std::invalid_argument("rows, labels, projections, diagonal and Q must fit together");
    const auto fits = [](const auto& indices, std::size_t size) {
        return std::all_of(indices.data(), indices.data() + indices.shape(0), [&](std::int64_t i) {
            return i >= 0 && static_cast<std::size_t>(i) < size;
        });
    };
    if (!fits(slots, values.shape(0)) || !fits(places, values.shape(1)))
        throw std::invalid_argument("slots and places must be within values");
    const CoreSetRows rows{total - joining,      total, labels.data(),  projections.data(),
                           projections.shape(1), bias,  diagonal.data()};
    const T* from = values.data();
    T* to = q.data();
    const auto stride = static_cast<std::size_t>(values.stride(0));
    const auto q_stride = static_cast<std::size_t>(q.stride(0));
    const nb::gil_scoped_release released;
    join_core_set<T>(rows, from, stride, slots.data(), places.data(), to, q_stride);
}

template <class T>
void sums(Strided<T> values, Vector<std::int64_t> slots, Vector<double> coef,
          std::optional<Vector<std::int64_t>> rows, Changed out) {
    check_lines(values);
    if (slots.shape(0) != coef.shape(0))
        throw std::invalid_argument("every column must have one coefficient");
    Control control(polling(nb::none()));
    const auto stride = static_cast<std::size_t>(values.stride(0));
    const T* from = values.data();
    double* to = out.data();
    const nb::gil_scoped_release released;
    if (rows)
        sum_columns_at<T>(from, stride, slots.data(), coef.data(), slots.shape(0), rows->data(),
                          rows->shape(0), to);
    else
        sum_columns<T>(from, stride, slots.data(), coef.data(), slots.shape(0), out.shape(0), to,
                       control);
}

}  // namespace

void bind_ball(nb::module_& module) {
    const auto bind = [&](const char* steps_name, const char* join_name, const char* sums_name,
                          auto steps_of, auto join_of, auto sums_of) {
        module.def(steps_name, steps_of, nb::arg("Q"), nb::arg("alpha").noconvert(),
                   nb::arg("gradient").noconvert(), nb::kw_only(), nb::arg("tol"),
                   nb::arg("largest_mass"), nb::arg("max_steps"), nb::arg("max_seconds"),
                   nb::arg("report").none(),
                   "Minimise alpha' Q alpha / 2 - sum(alpha) over alpha >= 0, in place; return "
                   "the steps, the violation that is left, and 'converged', 'diverged', "
                   "'max_steps' or 'max_time'.");
        module.def(join_name, join_of, nb::arg("values"), nb::arg("slots"), nb::arg("places"),
                   nb::kw_only(), nb::arg("labels"), nb::arg("projections"), nb::arg("bias"),
                   nb::arg("diagonal"), nb::arg("Q").noconvert(),
                   "Fill the last rows and columns of Q for rows that join a core set; their "
                   "kernel values are values[slots][:, places].");
        module.def(sums_name, sums_of, nb::arg("values"), nb::arg("slots"), nb::arg("coef"),
                   nb::arg("rows").none(), nb::arg("out").noconvert(),
                   "Fill out with the sum of coef[c] * values[slots[c]], at all places or at "
                   "`rows`.");
    };
    bind("core_set_steps_float32", "join_core_set_float32", "sum_columns_float32", &steps<float>,
         &join<float>, &sums<float>);
    bind("core_set_steps_float64", "join_core_set_float64", "sum_columns_float64", &steps<double>,
         &join<double>, &sums<double>);
}
