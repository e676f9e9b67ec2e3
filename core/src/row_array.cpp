#include "hardmargin/row_array.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>

namespace hardmargin {
namespace {

// Larger arrays in memory have pages of their own, which are only used once they are written to.
constexpr std::size_t least_mapped = std::size_t{1} << 22;

// An open file without a name.
class TemporaryFile {
  public:
    explicit TemporaryFile(const std::string& folder) : folder_(folder) {
        std::string name = folder + "/hardmargin-XXXXXX";
        descriptor_ = mkstemp(name.data());
        if (descriptor_ < 0) fail(errno);
        unlink(name.c_str());
    }
    ~TemporaryFile() { close(descriptor_); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    void* map(std::size_t bytes) const {
#if defined(__linux__)
        // A write into a hole in the file would kill the process if the disk were full.
        if (const int error = posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes)))
            fail(error);
#else
        if (ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail(errno);
#endif
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
        if (p == MAP_FAILED) fail(errno);
        return p;
    }

  private:
    [[noreturn]] void fail(int error) const {
        throw std::filesystem::filesystem_error("temporary file", folder_,
                                                std::error_code(error, std::generic_category()));
    }

    std::string folder_;
    int descriptor_;
};

}  // namespace

void* map_zeros(std::size_t bytes, const std::string& folder) {
    if (!folder.empty()) return TemporaryFile(folder).map(bytes);
    if (bytes < least_mapped) {
        void* p = ::operator new(bytes, std::align_val_t{64});
        return std::memset(p, 0, bytes);
    }
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    return p;
}

void unmap(void* p, std::size_t bytes, bool in_file) {
    if (in_file || bytes >= least_mapped) munmap(p, bytes);
    else ::operator delete(p, std::align_val_t{64});
}

}  // namespace hardmargin
