#include "hardmargin/control.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hardmargin {

void parallel_for(std::size_t n, int n_threads, Control& control,
                  const std::function<void(std::size_t, Meter&)>& task) {
    const std::size_t n_workers = std::min(n, static_cast<std::size_t>(std::max(n_threads, 1)));
    if (n_workers <= 1) {
        Meter meter(control, true);
        for (std::size_t i = 0; i < n; ++i) {
            control.check(true);
            task(i, meter);
        }
        return;
    }

    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable finished;
    std::size_t n_running = n_workers;
    std::exception_ptr failure;
    const auto work = [&] {
        Meter meter(control, false);
        try {
            for (std::size_t i; (i = next++) < n && !control.cancelled();) task(i, meter);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
            control.cancel();
        }
        const std::lock_guard lock(mutex);
        --n_running;
        finished.notify_one();
    };

    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < n_workers; ++t) threads.emplace_back(work);
    // The calling thread only polls, so that Ctrl-C works while all others compute.
    std::exception_ptr interruption;
    for (std::unique_lock lock(mutex); n_running > 0;) {
        finished.wait_for(lock, std::chrono::milliseconds(50), [&] { return n_running == 0; });
        if (n_running == 0 || interruption) continue;
        lock.unlock();
        try {
            control.check(true);
        } catch (...) {
            interruption = std::current_exception();
            control.cancel();
        }
        lock.lock();
    }
    threads.clear();
    // A worker that failed cancels the others, which the poll above then sees as well.
    if (failure) {
        try {
            std::rethrow_exception(failure);
        } catch (const Interrupted&) {
        }
    }
    if (interruption) std::rethrow_exception(interruption);
    if (control.cancelled()) throw Interrupted();
}

}  // namespace hardmargin
