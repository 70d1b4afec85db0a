#include "text/pretokenizer_patterns.h"

#include <algorithm>
#include <array>

namespace quire {
namespace {

// Words, numbers and symbols take one space in front; a run of spaces keeps its last one for the
// next word.
constexpr const char* kGpt2 =
    R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)re";

constexpr const char* kDigit = R"re(\p{N})re";
constexpr const char* kNewline = R"re([\r\n])re";
constexpr const char* kCjk = R"re([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)re";

// As "\s+$", which would try again from each space of a run that is not at the end: quadratic.
constexpr const char* kSpaceAtEnd = R"re((?<!\s)\s+$)re";

// A fixed list of cased letters; no Unicode property equals it.
constexpr const char* kDeepSeekWord =
    R"re(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})re"
    R"re(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A})re"
    R"re(\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})re"
    R"re(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})re"
    R"re(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})re"
    R"re(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-)re"
    R"re(\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})re"
    R"re(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC})re"
    R"re(\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128})re"
    R"re(\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})re"
    R"re(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3})re"
    R"re(\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})re"
    R"re(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})re"
    R"re(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-)re"
    R"re(\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)re";

// Words take one other character in front, contractions come in any case (that of U+017F is s),
// symbols the newlines behind them, digits go in threes.
constexpr const char* kLlama3Stages[] = {
    R"re('(?:[sS\x{17F}]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|)re"
    R"re(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
// The same, digits alone. bailingmoe's own spelling has [\r\n] for [\r\n]+ after \s*: the same
// matches.
constexpr const char* kQwen2Stages[] = {
    R"re('(?:[sS\x{17F}]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|)re"
    R"re(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
// The same, marks belong to words.
constexpr const char* kQwen35Stages[] = {
    R"re('(?:[sS\x{17F}]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|)re"
    R"re(\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
// A word ends where a capital follows a small letter.
constexpr const char* kTekkenStages[] = {
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)re"
    R"re(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
// The same with contractions as part of their word and digits in threes.
constexpr const char* kGpt4oStages[] = {
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)re"
    R"re((?:'(?:[sS\x{17F}]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)re"
    R"re((?:'(?:[sS\x{17F}]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?|)re"
    R"re(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr const char* kDeepSeek3Words =
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)re"
    R"re( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";
constexpr const char* kDeepSeek3Stages[] = {
    R"re(\p{N}{1,3})re", R"re([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)re",
    kDeepSeek3Words};
constexpr const char* kGpt2Stages[] = {kGpt2};
// Every digit alone.
constexpr const char* kDigitsStages[] = {kDigit, kGpt2};
// Punctuation alone, digits in threes.
constexpr const char* kFalconStages[] = {R"re([\p{P}$+<=>^~|`]+)re", kGpt2,
                                         R"re([0-9][0-9][0-9])re"};
constexpr const char* kDefaultStages[] = {R"re([\p{P}$+<=>^~|]+)re", kGpt2, R"re(\p{N}+)re",
                                          R"re([0-9][0-9][0-9])re"};
constexpr const char* kDeepSeekCoderStages[] = {kNewline, R"re(\s?\p{L}+)re", R"re(\s?\p{P}+)re",
                                                kCjk, kDigit};
constexpr const char* kDeepSeekLlmStages[] = {
    kNewline,
    kDeepSeekWord,
    R"re(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)re",
    kSpaceAtEnd,
    kCjk,
    R"re(\p{N}+)re"};

struct Entry {
  std::string_view name;
  PretokenizerRule rule;
};

constexpr PretokenizerRule kLlama3Rule = {
    .stages = kLlama3Stages, .whole_tokens = true, .adds_bos = true};

constexpr Entry kEntries[] = {
    {"default", {kDefaultStages}},
    {"gpt-2", {kGpt2Stages}},
    {"phi-2", {kGpt2Stages}},
    {"mpt", {kGpt2Stages}},
    {"olmo", {kGpt2Stages}},
    {"jais", {kGpt2Stages}},
    {"trillion", {kGpt2Stages}},
    {"granite-docling", {kGpt2Stages}},
    {"gigachat", {kGpt2Stages}},
    {"a.x-4.0", {kGpt2Stages}},
    {"exaone4", {kGpt2Stages}},
    {"mellum", {kGpt2Stages}},
    {"modern-bert", {kGpt2Stages}},
    {"roberta-bpe", {kGpt2Stages}},
    {"jina-es", {kGpt2Stages}},
    {"jina-de", {kGpt2Stages}},
    {"jina-v1-en", {kGpt2Stages}},
    {"jina-v2-es", {kGpt2Stages}},
    {"jina-v2-de", {kGpt2Stages}},
    {"jina-v2-code", {kGpt2Stages}},
    {"llama-bpe", kLlama3Rule},
    {"llama3", kLlama3Rule},
    {"llama-v3", kLlama3Rule},
    {"falcon3", kLlama3Rule},
    {"falcon-h1", kLlama3Rule},
    {"pixtral", kLlama3Rule},
    {"lfm2", kLlama3Rule},
    {"midm-2.0", kLlama3Rule},
    {"jina-v5-nano", kLlama3Rule},
    {"dbrx", {kLlama3Stages}},
    {"smaug-bpe", {kLlama3Stages}},
    {"glm4", {kLlama3Stages}},
    {"chatglm-bpe", {kLlama3Stages}},
    {"qwen2", {kQwen2Stages}},
    {"deepseek-r1-qwen", {kQwen2Stages}},
    {"stablelm2", {kQwen2Stages}},
    {"hunyuan", {kQwen2Stages}},
    {"megrez", {kQwen2Stages}},
    {"grok-2", {kQwen2Stages}},
    {"solar-open", {kQwen2Stages}},
    {"kormo", {kQwen2Stages}},
    {"f2llmv2", {kQwen2Stages}},
    {"qwen35", {kQwen35Stages}},
    {"tekken", {.stages = kTekkenStages, .whole_tokens = true, .adds_bos = true}},
    {"gpt-4o", {kGpt4oStages}},
    {"llama4", {kGpt4oStages}},
    {"kanana2", {kGpt4oStages}},
    {"talkie", {kGpt4oStages}},
    {"minimax-m2", {kGpt4oStages}},
    {"deepseek-v3", {kDeepSeek3Stages}},
    {"hunyuan-dense", {kDeepSeek3Stages}},
    {"joyai-llm", {kDeepSeek3Stages}},
    {"deepseek-coder", {kDeepSeekCoderStages}},
    {"deepseek-llm", {kDeepSeekLlmStages}},
    {"smollm", {kDigitsStages}},
    {"starcoder", {kDigitsStages}},
    {"refact", {kDigitsStages}},
    {"command-r", {kDigitsStages}},
    {"codeshell", {kDigitsStages}},
    {"exaone", {kDigitsStages}},
    {"minerva-7b", {kDigitsStages}},
    {"mellum2", {kDigitsStages}},
    {"falcon", {kFalconStages}},
    {"bailingmoe", {kQwen2Stages}},
    {"bailingmoe2", {kQwen2Stages}},
    {"llada-moe", {kQwen2Stages}},
};

}  // namespace

const PretokenizerRule* FindPretokenizerRule(std::string_view name) {
  const auto* entry = std::ranges::find(kEntries, name.empty() ? "default" : name, &Entry::name);
  return entry == std::end(kEntries) ? nullptr : &entry->rule;
}

std::string PretokenizerNames() {
  std::string names;
  for (const Entry& entry : kEntries) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

}  // namespace quire
