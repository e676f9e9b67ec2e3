// Long loops report their progress here, and let the caller stop them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <stdexcept>

namespace hardmargin {

struct Interrupted : std::runtime_error {
    Interrupted() : std::runtime_error("interrupted") {}
};

using Clock = std::chrono::steady_clock;

inline constexpr double no_limit = std::numeric_limits<double>::infinity();

// The time this many seconds after `start`.
inline Clock::time_point after(double seconds, Clock::time_point start = Clock::now()) {
    constexpr double longest = 1e9;  // more would overflow
    if (!(seconds < longest)) return Clock::time_point::max();
    return start +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

struct Progress {
    std::size_t machines_done = 0;
    std::size_t stage = 0;  // of the machine at work
    double violation = 0;   // its largest step still open
};

// Shared by the threads of one call. The calling thread polls (signals, progress); the others only
// check whether they must stop.
class Control {
  public:
    using Poll = std::function<bool(const Progress&)>;  // false: end with the result so far

    explicit Control(Poll poll = {}) : poll_(std::move(poll)) {}

    // Polls at most every 50 ms; throws Interrupted if another thread has failed.
    void check(bool calling_thread) {
        if (calling_thread && poll_) {
            const auto now = Clock::now();
            if (now >= next_poll_) {
                next_poll_ = now + std::chrono::milliseconds(50);
                if (!poll_(progress())) stopped_ = true;
            }
        }
        if (cancelled_) throw Interrupted();
    }

    void cancel() { cancelled_ = true; }
    bool cancelled() const { return cancelled_; }
    // Whether the caller wants to end with the result so far: treated like a deadline that passed.
    bool stopped() const { return stopped_; }

    void report(std::size_t stage, double violation) {
        stage_.store(stage, std::memory_order_relaxed);
        violation_.store(violation, std::memory_order_relaxed);
    }
    void machine_done() { ++machines_done_; }

    Progress progress() const { return {machines_done_, stage_, violation_}; }

  private:
    Poll poll_;
    Clock::time_point next_poll_{};
    std::atomic<bool> cancelled_{false}, stopped_{false};
    std::atomic<std::size_t> machines_done_{0}, stage_{0};
    std::atomic<double> violation_{0};
};

// One thread's own meter: checks the control after enough work.
class Meter {
  public:
    static constexpr std::size_t between_checks = 4'000'000;  // a few milliseconds

    Meter(Control& control, bool calling_thread)
        : control_(control), calling_thread_(calling_thread) {}

    // `work` in elementary operations; true if the control was checked.
    bool tick(std::size_t work) {
        done_ += work;
        if (done_ < between_checks) return false;
        done_ = 0;
        control_.check(calling_thread_);
        return true;
    }
    bool is_over(Clock::time_point deadline) const {
        return control_.stopped() || Clock::now() >= deadline;
    }
    Control& control() { return control_; }

  private:
    Control& control_;
    bool calling_thread_;
    std::size_t done_ = 0;
};

// Runs task(i, meter) for i < n on up to n_threads threads; the first exception stops the others
// and is rethrown here. With one thread everything runs in the calling one.
void parallel_for(std::size_t n, int n_threads, Control& control,
                  const std::function<void(std::size_t, Meter&)>& task);

}  // namespace hardmargin
