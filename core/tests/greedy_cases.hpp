// Greedy problems and the plain loop that solves them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "hardmargin/greedy_machines.hpp"

namespace hardmargin::test {

inline constexpr KernelSpec rbf{KernelKind::rbf, 0.2, 0, 3};
inline constexpr KernelSpec laplacian{KernelKind::laplacian, 0.15, 0, 3};

inline double kernel_value(const KernelSpec& kernel, const double* x, const double* z,
                           std::size_t d) {
    double square = 0, absolute = 0, product = 0;
    for (std::size_t k = 0; k < d; ++k) {
        square += (x[k] - z[k]) * (x[k] - z[k]);
        absolute += std::abs(x[k] - z[k]);
        product += x[k] * z[k];
    }
    switch (kernel.kind) {
        case KernelKind::rbf: return std::exp(-kernel.gamma * square);
        case KernelKind::laplacian: return std::exp(-kernel.gamma * absolute);
        case KernelKind::matern32:
        case KernelKind::matern52: return value_of_distance(kernel, square);
        case KernelKind::linear: return product;
        case KernelKind::cosine: break;
        case KernelKind::poly:
            return std::pow(kernel.gamma * product + kernel.coef0, kernel.degree);
        case KernelKind::sigmoid: return std::tanh(kernel.gamma * product + kernel.coef0);
    }
    return 0;
}

struct Data {
    std::size_t n, d;
    std::vector<double> x;
    std::vector<std::int32_t> classes;

    // `d - n_bits` normal columns, then columns of zeros and ones; overlapping classes.
    Data(std::size_t n_rows, std::size_t n_cols, std::size_t n_bits, std::int32_t n_classes,
         unsigned seed)
        : n(n_rows), d(n_cols) {
        Random random(seed);
        x = random.normals(n * d);
        for (std::size_t i = 0; i < n; ++i) {
            classes.push_back(static_cast<std::int32_t>(i) % n_classes);
            x[i * d] += classes[i];
            for (std::size_t k = d - n_bits; k < d; ++k)
                x[i * d + k] = static_cast<double>(random.below(2));
        }
    }

    const double* row(std::size_t i) const { return x.data() + i * d; }
    Matrix matrix() const {
        Matrix m;
        m.n_rows = n;
        m.n_cols = d;
        m.data = x.data();
        m.row_stride = static_cast<std::ptrdiff_t>(d);
        return m;
    }
    std::vector<double> diagonal(const KernelSpec& kernel) const {
        std::vector<double> values(n);
        for (std::size_t i = 0; i < n; ++i) values[i] = kernel_value(kernel, row(i), row(i), d);
        return values;
    }
};

// The published algorithm, every row looked at in every stage. `label` 0 leaves a row out.
inline GreedyResult naive_greedy(const KernelSpec& kernel, const Data& data,
                                 const std::vector<double>& label, double max_visits = 1,
                                 double step_tol = 0, const std::vector<double>& weights = {}) {
    const std::size_t n = data.n;
    GreedyResult result;
    std::vector<double> g(n, -1.0), alpha(n, 0.0), visits(n, max_visits), column(n);
    for (std::size_t i = 0; i < weights.size(); ++i) visits[i] *= weights[i];
    const std::vector<double> diagonal = data.diagonal(kernel);
    while (result.rows.size() < 8 * n) {
        std::size_t best = n;
        double best_score = 0, best_step = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const double k = diagonal[i];
            if (label[i] == 0 || !(k > 0)) continue;
            double step = -g[i] / k;
            if (step > 0 && visits[i] <= 0) continue;
            if (step <= 0 && max_visits == 1) continue;
            step = std::max(step, -alpha[i]);
            if (std::abs(step) * k <= step_tol) continue;
            const double score =
                kernel.is_distance() ? std::abs(step) : -(step * g[i] + step * step * k / 2);
            if (score > best_score) {
                best = i;
                best_score = score;
                best_step = step;
            }
        }
        if (best == n) break;
        if (best_step > 0) best_step *= std::min(1.0, visits[best]);
        visits[best] -= 1;
        alpha[best] += best_step;
        for (std::size_t j = 0; j < n; ++j)
            g[j] += best_step * label[j] * label[best] *
                    kernel_value(kernel, data.row(j), data.row(best), data.d);
        result.rows.push_back(static_cast<std::int32_t>(best));
        result.steps.push_back(best_step);
        double loss = 0;
        for (std::size_t i = 0; i < n; ++i) loss += alpha[i] * (g[i] - 1) / 2;
        result.losses.push_back(loss);
    }
    for (std::size_t i = 0; i < n; ++i) result.squared_norm += alpha[i] * (g[i] + 1);
    return result;
}

inline std::vector<double> labels(const Data& data, std::int32_t negative, std::int32_t positive) {
    std::vector<double> label(data.n, 0.0);
    for (std::size_t i = 0; i < data.n; ++i)
        label[i] = data.classes[i] == negative ? -1 : data.classes[i] == positive ? 1 : 0;
    return label;
}

inline GreedyProblem problem_of(const KernelSpec& kernel, const Data& data) {
    GreedyProblem problem;
    problem.kernel = kernel;
    problem.matrix = data.matrix();
    problem.classes = data.classes.data();
    problem.n_classes = 2;
    problem.machines = {{{0}, {1}}};
    problem.options.max_stages = 8 * data.n;
    problem.options.schedule = Schedule::eager;
    return problem;
}

template <class T = double>
GreedyResult solve(const GreedyProblem& problem) {
    Control control;
    return greedy_machines<T>(problem, control).at(0);
}

inline void check_same(const GreedyResult& actual, const GreedyResult& expected) {
    CHECK(actual.rows == expected.rows);
    for (std::size_t t = 0; t < expected.rows.size(); ++t) {
        CHECK_CLOSE(actual.steps[t], expected.steps[t], 1e-10);
        CHECK_CLOSE(actual.losses[t], expected.losses[t], 1e-10);
    }
    CHECK_CLOSE(actual.squared_norm, expected.squared_norm, 1e-9);
}

}  // namespace hardmargin::test
