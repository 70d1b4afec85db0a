#include "model/gguf_part.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/errors.h"
#include "base/message_text.h"
#include "model/gguf_foreign.h"

namespace quire {
namespace {

constexpr uint64_t kFirstReadBytes = uint64_t{1} << 20;

int64_t ChangeTimeNs(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// Reads as many of into.size() bytes as the file has from `offset` on.
StatusOr<size_t> ReadAt(int descriptor, uint64_t offset, std::span<std::byte> into) {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t count = pread(descriptor, into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
    if (count == 0) break;
    if (count < 0 && errno != EINTR) return Internal("cannot read: {}", std::strerror(errno));
    if (count > 0) done += static_cast<size_t>(count);
  }
  return done;
}

Status CheckKind(const struct stat& info) {
  if (S_ISDIR(info.st_mode))
    return InvalidArgument("this is a directory: name the .gguf file in it");
  if (!S_ISREG(info.st_mode)) return InvalidArgument("this is not a regular file");
  if (info.st_size == 0) return InvalidFile("the file is empty");
  return OkStatus();
}

Status CheckMagic(std::span<const std::byte> first_bytes) {
  if (first_bytes.size() >= 4 && std::memcmp(first_bytes.data(), "GGUF", 4) == 0) return OkStatus();
  const std::string_view description = DescribeForeignFormat(first_bytes);
  if (description.empty()) return OkStatus();  // ParseGguf says what it found
  return InvalidFile("not a GGUF file: this looks like {}", description);
}

}  // namespace

StatusOr<GgufPart> GgufPart::Open(const std::string& path) {
  GgufPart part;
  part.path_ = path;
  // O_NONBLOCK: opening a pipe must not wait for a writer. Regular files ignore it.
  part.descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (part.descriptor_ < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return NotFound("{}: no such file", path);
    return InvalidArgument("{}: cannot open: {}", path, std::strerror(errno));
  }
  struct stat info;
  if (fstat(part.descriptor_, &info) != 0)
    return Internal("{}: cannot ask for its size: {}", path, std::strerror(errno));
  QUIRE_RETURN_IF_ERROR(CheckKind(info).WithContext(path));
  part.changed_at_ns_ = ChangeTimeNs(info);
  QUIRE_RETURN_IF_ERROR(part.ReadHeader(static_cast<uint64_t>(info.st_size)).WithContext(path));
  return part;
}

// Reads more and more of the file, each time twice as much, until the header is whole. The views of
// the header point into the last buffer.
Status GgufPart::ReadHeader(uint64_t file_bytes) {
  for (uint64_t size = kFirstReadBytes;; size *= 2) {
    size = std::min({size, file_bytes, kMaxGgufHeaderBytes});
    std::shared_ptr<std::byte[]> buffer = std::make_shared_for_overwrite<std::byte[]>(size);
    const std::span<std::byte> bytes(buffer.get(), size);
    QUIRE_ASSIGN_OR_RETURN(const size_t count, ReadAt(descriptor_, 0, bytes));
    if (count != size)
      return InvalidFile("the file was cut while its header was read: {} bytes, then {}",
                         GroupDigits(file_bytes), GroupDigits(count));
    QUIRE_RETURN_IF_ERROR(CheckMagic(bytes));
    QUIRE_ASSIGN_OR_RETURN(auto header, ParseGguf(bytes, file_bytes));
    if (!header.has_value()) continue;
    header_ = *std::move(header);
    header_memory_ = std::move(buffer);
    return OkStatus();
  }
}

GgufPart::GgufPart(GgufPart&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      changed_at_ns_(other.changed_at_ns_),
      header_memory_(std::move(other.header_memory_)),
      header_(std::move(other.header_)) {}

GgufPart& GgufPart::operator=(GgufPart&& other) noexcept {
  GgufPart moved(std::move(other));
  std::swap(path_, moved.path_);
  std::swap(descriptor_, moved.descriptor_);
  std::swap(changed_at_ns_, moved.changed_at_ns_);
  std::swap(header_memory_, moved.header_memory_);
  std::swap(header_, moved.header_);
  return *this;
}

GgufPart::~GgufPart() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status GgufPart::Read(const GgufTensor& tensor, uint64_t offset, std::span<std::byte> into) const {
  QUIRE_CHECK(offset <= tensor.size_bytes && into.size() <= tensor.size_bytes - offset);
  const auto count = ReadAt(descriptor_, tensor.file_offset + offset, into);
  const std::string context = path_ + ": tensor " + Printable(tensor.name);
  if (!count.ok()) return count.status().WithContext(context);
  if (*count != into.size())
    return InvalidFile("{}: need {} bytes from byte {} on, but the file now ends at {}", context,
                       GroupDigits(into.size()), GroupDigits(tensor.file_offset + offset),
                       GroupDigits(tensor.file_offset + offset + *count));
  return OkStatus();
}

Status GgufPart::CheckUnchanged() const {
  struct stat info;
  if (fstat(descriptor_, &info) != 0)
    return Internal("{}: cannot ask for its size: {}", path_, std::strerror(errno));
  if (static_cast<uint64_t>(info.st_size) != size_bytes())
    return InvalidFile("{}: the file's length changed from {} to {} while it was read", path_,
                       GroupDigits(size_bytes()), GroupDigits(info.st_size));
  if (ChangeTimeNs(info) != changed_at_ns_)
    return InvalidFile("{}: the file was written to while it was read", path_);
  return OkStatus();
}

}  // namespace quire
