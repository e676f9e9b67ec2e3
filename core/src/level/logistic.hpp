// Passes over the rows of a path: logistic weights, sums and steps. Part of level.cpp.
#pragma once

#include "strips.hpp"

namespace hardmargin {
namespace {

template <class T>
inline double lane_sum(Vec<T> v) {
    double sum = 0;
    for (std::size_t l = 0; l < vector_width<T>; ++l) sum += static_cast<double>(v[l]);
    return sum;
}

// 1 / (1 + exp(z)), z cut off at +-40
template <class T>
inline Vec<T> logistic_of(Vec<T> z) {
    const Vec<T> cut = smaller(larger(z, spread(T(-40))), spread(T(40)));
    return T(1) / (T(1) + exp2(static_cast<T>(1.4426950408889634) * cut));
}

template <class T>
LogisticSums logistic(const T* labels, const T* weights, const T* scores, double bias, T* out,
                      std::size_t n) {
    const Vec<T> shift = spread(static_cast<T>(bias));
    Vec<T> positive = {}, negative = {}, curvature = {};
    for (std::size_t i = 0; i < n; i += vector_width<T>) {
        const Vec<T> y = load<Vec<T>>(labels + i);
        const Vec<T> p = logistic_of<T>(T(2) * y * (load<Vec<T>>(scores + i) + shift));
        const Vec<T> w = y * y * load<Vec<T>>(weights + i) * p;
        positive += larger(y, Vec<T>{}) * w;
        negative += larger(-y, Vec<T>{}) * w;
        curvature += w * (T(1) - p);
        if (out) store<Vec<T>>(out + i, w);
    }
    return {lane_sum<T>(positive), lane_sum<T>(negative), lane_sum<T>(curvature)};
}

template <class T>
TemperSums temper(const T* margins, const T* weights, double scale, std::size_t n) {
    const T twice = static_cast<T>(2 * scale);
    Vec<T> slope = {}, curvature = {};
    for (std::size_t i = 0; i < n; i += vector_width<T>) {
        const Vec<T> z = twice * load<Vec<T>>(margins + i);
        const Vec<T> p = logistic_of<T>(z);
        const Vec<T> pull = load<Vec<T>>(weights + i) * z * p;
        slope += pull;
        curvature += pull * z * (T(1) - p);
    }
    return {lane_sum<T>(slope), lane_sum<T>(curvature)};
}

// log(1 + e) for 0 <= e <= 1, as 2 artanh(s) = 2 (s + s^3 / 3 + ..) with s = e / (2 + e) <= 1/3
template <class T>
inline Vec<T> log1p_of(Vec<T> e) {
    constexpr int terms = sizeof(T) == 4 ? 8 : 17;
    const Vec<T> s = e / (T(2) + e), square = s * s;
    Vec<T> sum = spread(T(1) / T(2 * terms - 1));
    for (int k = terms - 2; k >= 0; --k) sum = sum * square + T(1) / T(2 * k + 1);
    return T(2) * s * sum;
}

template <class T>
double log_loss(const T* margins, const T* weights, double scale, std::size_t n) {
    const T twice = static_cast<T>(2 * scale);
    Vec<T> sum = {};
    for (std::size_t i = 0; i < n; i += vector_width<T>) {
        const Vec<T> z = twice * load<Vec<T>>(margins + i);
        const Vec<T> e = exp2(static_cast<T>(-1.4426950408889634) * larger(z, -z));
        // The order of the two keeps a NaN.
        sum += load<Vec<T>>(weights + i) * (log1p_of<T>(e) + larger(Vec<T>{}, -z));
    }
    return lane_sum<T>(sum);
}

template <class T>
StepSums step_sums(const T* steps, const T* h, const T* direction, const T* scores, const T* last,
                   std::size_t n) {
    Vec<T> gain = {}, along = {}, mass = {}, first = {}, second = {};
    for (std::size_t i = 0; i < n; i += vector_width<T>) {
        const Vec<T> a = load<Vec<T>>(steps + i), d = load<Vec<T>>(direction + i);
        const Vec<T> b = load<Vec<T>>(h + i), bd = b * d;
        gain += a * d;
        along += a * (load<Vec<T>>(scores + i) - load<Vec<T>>(last + i));
        mass += b;
        first += bd;
        second += bd * d;
    }
    return {lane_sum<T>(gain), lane_sum<T>(along), lane_sum<T>(mass), lane_sum<T>(first),
            lane_sum<T>(second)};
}

template <class T>
void advance(T* scores, T* last, const T* direction, double rate, double momentum, std::size_t n) {
    const T eta = static_cast<T>(rate), beta = static_cast<T>(momentum);
    for (std::size_t i = 0; i < n; i += vector_width<T>) {
        const Vec<T> next = load<Vec<T>>(scores + i) + eta * load<Vec<T>>(direction + i);
        store<Vec<T>>(scores + i, next + beta * (next - load<Vec<T>>(last + i)));
        store<Vec<T>>(last + i, next);
    }
}

}  // namespace
}  // namespace hardmargin
