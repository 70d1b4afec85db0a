#include "base/allocation_count.h"

#include <cstdlib>
#include <new>

namespace {

thread_local uint64_t allocation_count = 0;

void* CountedAllocate(size_t size_bytes) {
  ++allocation_count;
  void* memory = std::malloc(size_bytes == 0 ? 1 : size_bytes);
  if (memory == nullptr) std::abort();  // a test that is out of memory has nothing left to say
  return memory;
}

}  // namespace

namespace quire {

uint64_t AllocationCount() { return allocation_count; }

}  // namespace quire

// The aligned forms stay the library's: nothing that is counted uses them.
void* operator new(size_t size_bytes) { return CountedAllocate(size_bytes); }
void* operator new[](size_t size_bytes) { return CountedAllocate(size_bytes); }
void* operator new(size_t size_bytes, const std::nothrow_t&) noexcept {
  return CountedAllocate(size_bytes);
}
void* operator new[](size_t size_bytes, const std::nothrow_t&) noexcept {
  return CountedAllocate(size_bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
