#include "reference/kv_emulation.h"

#include <algorithm>
#include <span>

#include "base/half.h"
#include "codec/affine_group.h"

namespace quire {
namespace {

// The values of a group, as A(y, 4) gives them back.
void RoundGroup(std::vector<float>& values) {
  std::vector<uint8_t> codes(values.size());
  const AffineGroup group = EncodeAffineGroup(values, 4, codes.data());
  for (size_t i = 0; i < values.size(); ++i) values[i] = group.Decode(codes[i]);
}

void Open(KvCodec codec, std::vector<double>& values) {
  if (codec == KvCodec::kF32) return;
  for (double& x : values) x = HalfToFloat(FloatToHalfSaturated(static_cast<float>(x)));
}

}  // namespace

void KvEmulation::AppendK(std::vector<double> k, Side& keys) const {
  Open(options_.k_codec, k);
  keys.open.push_back(std::move(k));
  const size_t end = keys.open.size();
  if (!IsPageWise(options_.k_codec) || end % page_size_ != 0) return;
  keys.sealed.insert(keys.sealed.end(), keys.open.end() - page_size_, keys.open.end());
  for (size_t c = 0; c < keys.open[0].size(); ++c) {
    std::vector<float> channel;
    for (size_t t = end - page_size_; t < end; ++t)
      channel.push_back(static_cast<float>(keys.open[t][c]));
    RoundGroup(channel);
    for (size_t i = 0; i < page_size_; ++i) keys.sealed[end - page_size_ + i][c] = channel[i];
  }
}

void KvEmulation::AppendV(std::vector<double> v, uint32_t head_dim, Side& values) const {
  Open(options_.v_codec, v);
  values.open.push_back(v);
  if (!IsPageWise(options_.v_codec)) return;
  for (size_t head = 0; head < v.size(); head += head_dim)
    for (size_t first = 0; first < head_dim; first += 128) {
      const auto begin = v.begin() + static_cast<ptrdiff_t>(head + first);
      const auto end = begin + static_cast<ptrdiff_t>(std::min<size_t>(128, head_dim - first));
      std::vector<float> group(begin, end);
      RoundGroup(group);
      std::copy(group.begin(), group.end(), begin);
    }
  values.sealed.push_back(std::move(v));
}

const std::vector<double>& KvEmulation::Read(const Side& side, size_t position, size_t key,
                                             bool has_window, KvCodec codec) const {
  const size_t query_page = position / page_size_, page = key / page_size_;
  const size_t sinks = has_window ? 0 : options_.sink_pages.value_or(1);
  const bool is_open = page < sinks || page + options_.recent_pages >= query_page;
  return is_open || !IsPageWise(codec) ? side.open[key] : side.sealed[key];
}

}  // namespace quire
