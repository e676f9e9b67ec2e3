// The L2-SVM on a core set: optimality, limits, and sums of columns.
#include "hardmargin/core_set.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "check.hpp"
#include "hardmargin/aligned.hpp"
#include "hardmargin/level.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

namespace {

const auto never = Clock::time_point::max();

// A A' / d + ridge, in rows of `stride`.
template <class T>
AlignedVector<T> matrix(std::size_t n, std::size_t d, std::size_t stride, double ridge) {
    Random random(3);
    const std::vector<double> a = random.normals(n * d);
    AlignedVector<T> q(n * stride);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            double sum = i == j ? ridge : 0;
            for (std::size_t k = 0; k < d; ++k)
                sum += a[i * d + k] * a[j * d + k] / static_cast<double>(d);
            q[i * stride + j] = static_cast<T>(sum);
        }
    return q;
}

template <class T>
void check_optimum(std::size_t n, double ridge, double tol) {
    const std::size_t stride = round_up(n, pair_rows) + 16;
    const AlignedVector<T> q = matrix<T>(n, 7, stride, ridge);
    std::vector<double> alpha(n), gradient(n);
    Control control;
    const CoreSetResult r = core_set_steps<T>(q.data(), stride, n, alpha.data(), gradient.data(),
                                              tol, 1e9, 1'000'000, never, control);
    CHECK(r.violation <= tol && !r.timed_out && r.n_steps > 0);
    for (std::size_t i = 0; i < n; ++i) {
        double g = 0;
        for (std::size_t j = 0; j < n; ++j) g += static_cast<double>(q[i * stride + j]) * alpha[j];
        CHECK_CLOSE(gradient[i], g, 1e-8);
        CHECK(alpha[i] >= 0);
        CHECK(g >= 1 - tol - 1e-6);
        CHECK(alpha[i] == 0 || g <= 1 + tol + 1e-6);
    }
}

template <class T>
void check_sums() {
    const std::size_t n = 5000, stride = round_up(n, 16), kept = 5;
    Random random(4);
    AlignedVector<T> values(kept * stride);
    for (T& v : values) v = static_cast<T>(random.normal());
    const std::vector<std::int64_t> slots = {3, 0, 4};
    const std::vector<double> coef = {0.5, -2, 1};
    std::vector<double> all(n), some(3);
    Control control;
    sum_columns<T>(values.data(), stride, slots.data(), coef.data(), 3, n, all.data(), control);
    const std::vector<std::int64_t> rows = {4999, 0, 2048};
    sum_columns_at<T>(values.data(), stride, slots.data(), coef.data(), 3, rows.data(), 3,
                      some.data());
    for (std::size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::size_t c = 0; c < 3; ++c)
            sum += coef[c] *
                   static_cast<double>(values[static_cast<std::size_t>(slots[c]) * stride + i]);
        CHECK_CLOSE(all[i], sum, 1e-13);
    }
    for (std::size_t i = 0; i < 3; ++i)
        CHECK_CLOSE(some[i], all[static_cast<std::size_t>(rows[i])], 1e-13);
}

// Rows that join in two batches give the same Q as its definition.
template <class T>
void check_join() {
    const std::size_t m = 150, n = 100, stride = 160, q_stride = 112, n_directions = 2;
    Random random(5);
    AlignedVector<T> values(m * stride);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j <= i; ++j)
            values[i * stride + j] = values[j * stride + i] = static_cast<T>(random.normal());
    const std::vector<double> projections = random.normals(n * n_directions);
    std::vector<double> labels(n), diagonal(n);
    std::vector<std::int64_t> rows(n);
    for (std::size_t i = 0; i < n; ++i) {
        labels[i] = i % 3 ? 1 : -1;
        diagonal[i] = 5 + static_cast<double>(i);
        rows[i] = static_cast<std::int64_t>((7 * i) % m);
    }
    AlignedVector<T> q(n * q_stride);
    for (const auto& [before, total] : {std::pair{0u, 3u}, std::pair{3u, 100u}})
        join_core_set<T>({before, total, labels.data(), projections.data(), n_directions, 0.5,
                          diagonal.data() + before},
                         values.data(), stride, rows.data() + before, rows.data(), q.data(),
                         q_stride);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) {
            const double k = static_cast<double>(values[static_cast<std::size_t>(rows[i]) * stride +
                                                        static_cast<std::size_t>(rows[j])]);
            const double along = projections[2 * i] * projections[2 * j] +
                                 projections[2 * i + 1] * projections[2 * j + 1];
            const double expected =
                i == j ? diagonal[i] : labels[i] * labels[j] * (k - along + 0.5);
            CHECK_CLOSE(static_cast<double>(q[i * q_stride + j]), expected, 1e-6);
        }
}

}  // namespace

int main() {
    for (const std::size_t n : {1u, 2u, 16u, 45u, 100u})
        for (const double ridge : {1.0, 1e-3}) {
            check_optimum<double>(n, ridge, 1e-7);
            check_optimum<float>(n, ridge, 1e-3);
        }
    check_sums<float>();
    check_sums<double>();
    check_join<float>();
    check_join<double>();

    // limits
    const AlignedVector<double> q = matrix<double>(64, 7, 64, 1e-6);
    std::vector<double> alpha(64), gradient(64);
    Control control;
    CHECK(core_set_steps<double>(q.data(), 64, 64, alpha.data(), gradient.data(), 1e-9, 1e99, 3,
                                 never, control)
              .n_steps == 3);

    AlignedVector<double> indefinite = q;
    for (std::size_t i = 0; i < 64; ++i) indefinite[i * 65] -= 1;
    std::fill(alpha.begin(), alpha.end(), 0.0);
    std::fill(gradient.begin(), gradient.end(), 0.0);
    CHECK(core_set_steps<double>(indefinite.data(), 64, 64, alpha.data(), gradient.data(), 1e-9,
                                 1e6, 100'000, never, control)
              .diverged);

    AlignedVector<double> bad = q;
    bad[5] = std::nan("");
    std::fill(alpha.begin(), alpha.end(), 0.0);
    std::fill(gradient.begin(), gradient.end(), 0.0);
    CHECK_THROWS(std::invalid_argument,
                 core_set_steps<double>(bad.data(), 64, 64, alpha.data(), gradient.data(), 1e-9,
                                        1e99, 100'000, never, control));
}
