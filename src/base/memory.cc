#include "base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "base/errors.h"

namespace quire {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

// A "VmRSS:   123 kB" line of /proc/self/status, in bytes; 0 if it is not there.
size_t StatusField(const char* name) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  char line[256];
  size_t kib = 0;
  const size_t name_len = std::strlen(name);
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, name, name_len) == 0 && line[name_len] == ':') {
      if (std::sscanf(line + name_len + 1, "%zu", &kib) != 1) kib = 0;
      break;
    }
  }
  std::fclose(file);
  return kib * 1024;
}

}  // namespace

StatusOr<AnonymousMemory> AnonymousMemory::Reserve(size_t size_bytes) {
  AnonymousMemory memory;
  if (size_bytes == 0) return memory;
  if (size_bytes > (size_t{1} << 46))
    return ResourceExhausted("cannot reserve {} bytes of memory", size_bytes);
  const bool huge = size_bytes >= kHugePage;
  const size_t mapping_size = RoundUp(size_bytes, kPage) + (huge ? kHugePage : 0);
  void* mapping = mmap(nullptr, mapping_size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return ResourceExhausted("the system refused {} bytes of memory", size_bytes);
  memory.mapping_ = mapping;
  memory.mapping_size_ = mapping_size;
  auto address = reinterpret_cast<uintptr_t>(mapping);
  if (huge) address = RoundUp(address, kHugePage);
  memory.data_ = reinterpret_cast<std::byte*>(address);
  memory.size_ = size_bytes;
  // Advice only. A last, partly used huge page would commit up to 2 MiB that nobody asked for.
  if (huge) (void)madvise(memory.data_, size_bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

AnonymousMemory::AnonymousMemory(AnonymousMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_size_(std::exchange(other.mapping_size_, 0)) {}

AnonymousMemory& AnonymousMemory::operator=(AnonymousMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_size_, other.mapping_size_);
  return *this;
}

AnonymousMemory::~AnonymousMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_size_);
}

void AnonymousMemory::Release(size_t offset, size_t size_bytes) {
  QUIRE_CHECK(offset <= size_ && size_bytes <= size_ - offset);
  const size_t begin = RoundUp(offset, kPage);
  const size_t end = (offset + size_bytes) / kPage * kPage;
  if (begin < end) (void)madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

size_t ResidentBytes() { return StatusField("VmRSS"); }
size_t PeakResidentBytes() { return StatusField("VmHWM"); }

}  // namespace quire
