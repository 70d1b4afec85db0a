#include "cli/serve_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/option_sources.h"

namespace quire {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ServeOptions Read(std::vector<std::string> words, std::vector<std::string>* problems) {
  CLI::App app;
  ServeFlags flags;
  AddServeFlags(app, flags, /*with_check=*/true);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return ReadServeOptions(app, flags, /*needs_model=*/true, problems);
}

TEST(ServeFlags, FlagsBecomeOptions) {
  std::vector<std::string> problems;
  const ServeOptions options = Read({"m.gguf",     "--host",
                                     "0.0.0.0",    "--port",
                                     "9",          "--api-key-file",
                                     "k",          "--served-model-name",
                                     "a",          "--served-model-name",
                                     "b",          "--allowed-hosts",
                                     "x,y",        "--max-queue",
                                     "1k",         "--queue-timeout",
                                     "500ms",      "--drain",
                                     "1m",         "--kv-memory",
                                     "1GiB",       "-c",
                                     "4096",       "--chat-template-kwargs",
                                     "{\"a\": 1}", "--sampling-defaults",
                                     "model",      "--log-format",
                                     "json",       "--log-level",
                                     "debug",      "--max-body",
                                     "1MiB",       "--strict-fields"},
                                    &problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(options.model_path, "m.gguf");
  EXPECT_EQ(options.http.host, "0.0.0.0");
  EXPECT_EQ(options.http.port, 9);
  EXPECT_EQ(options.http.limits.body_bytes, size_t{1} << 20);
  EXPECT_EQ(options.access.key_file, "k");
  EXPECT_THAT(options.access.allowed_hosts, ElementsAre("x", "y"));
  EXPECT_THAT(options.served_names, ElementsAre("a", "b"));
  EXPECT_EQ(options.engine.max_queue, 1000u);
  EXPECT_EQ(options.engine.context_len, 4096u);
  EXPECT_EQ(options.engine.kv_memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(options.queue_timeout, milliseconds(500));
  EXPECT_EQ(options.drain, milliseconds(60'000));
  EXPECT_EQ(options.sampling_defaults, SamplingDefaults::kModel);
  EXPECT_EQ(options.log.format, LogFormat::kJson);
  EXPECT_EQ(options.log.level, LogLevel::kDebug);
  EXPECT_TRUE(options.strict_fields);
  EXPECT_FALSE(options.trust_request_chat_template);
}

TEST(ServeFlags, DefaultsAreThoseOfTheStructs) {
  std::vector<std::string> problems;
  const ServeOptions options = Read({"-m", "m.gguf"}, &problems);
  EXPECT_THAT(problems, IsEmpty());
  const ServeOptions plain;
  EXPECT_EQ(options.http.host, plain.http.host);
  EXPECT_EQ(options.http.port, plain.http.port);
  const HttpLimits &limits = options.http.limits, expected = plain.http.limits;
  EXPECT_EQ(limits.body_bytes, expected.body_bytes);
  EXPECT_EQ(limits.all_body_bytes, expected.all_body_bytes);
  EXPECT_EQ(limits.head_time, expected.head_time);
  EXPECT_EQ(limits.body_time, expected.body_time);
  EXPECT_EQ(limits.write_stall, expected.write_stall);
  EXPECT_EQ(limits.idle, expected.idle);
  EXPECT_EQ(limits.connections, expected.connections);
  EXPECT_EQ(limits.connections_per_address, expected.connections_per_address);
  EXPECT_EQ(options.engine.max_queue, 4 * options.engine.max_seqs);
  EXPECT_EQ(options.engine.max_queue_tokens, 0u);
  EXPECT_EQ(options.drain, plain.drain);
  EXPECT_EQ(options.sse_keep_alive, plain.sse_keep_alive);
  EXPECT_EQ(options.request_timeout, plain.request_timeout);
  EXPECT_EQ(options.owned_by, plain.owned_by);
}

// What --help calls the default is the default: each is given as a flag, and nothing changes.
TEST(ServeFlags, DefaultsInTheHelpAreTrue) {
  CLI::App app;
  ServeFlags flags;
  AddServeFlags(app, flags, /*with_check=*/true);
  int num_checked = 0;
  for (CLI::Option* option : app.get_options()) {
    const std::string& help = option->get_description();
    const size_t begin = help.find("(default ");
    if (begin == std::string::npos) continue;
    const std::string value = help.substr(begin + 9, help.find(')', begin) - begin - 9);
    CLI::App other_app;
    ServeFlags others;
    AddServeFlags(other_app, others, /*with_check=*/true);
    std::vector<std::string> words = {value, "--" + option->get_lnames()[0]};
    other_app.parse(words);
    std::vector<std::string> problems;
    const ServeOptions with = ToServeOptions(others, false, &problems);
    const ServeOptions without = ToServeOptions(flags, false, &problems);
    EXPECT_THAT(problems, IsEmpty()) << option->get_name() << " " << value;
    EXPECT_EQ(with.http.port, without.http.port);
    EXPECT_EQ(with.http.limits.body_bytes, without.http.limits.body_bytes);
    EXPECT_EQ(with.drain, without.drain);
    EXPECT_EQ(with.sse_keep_alive, without.sse_keep_alive);
    EXPECT_EQ(with.engine.page_size, without.engine.page_size);
    EXPECT_EQ(with.engine.token_budget, without.engine.token_budget);
    EXPECT_EQ(with.engine.max_seqs, without.engine.max_seqs);
    EXPECT_EQ(with.engine.kv_codec, without.engine.kv_codec);
    EXPECT_EQ(with.engine.eviction, without.engine.eviction);
    EXPECT_EQ(with.log.level, without.log.level);
    ++num_checked;
  }
  EXPECT_GT(num_checked, 20);
}

TEST(ServeFlags, AllProblemsAreToldAtOnce) {
  std::vector<std::string> problems;
  Read({"--kv-memory",
        "8",
        "--drain",
        "30",
        "--max-body",
        "0",
        "--idle-timeout",
        "0",
        "--max-queue",
        "x",
        "--ssl-certfile",
        "c",
        "--log-format",
        "xml",
        "--chat-template-kwargs",
        "[1]",
        "--sampling-defaults",
        "mine",
        "--max-connections",
        "0"},
       &problems);
  EXPECT_THAT(
      problems,
      ElementsAre(HasSubstr("no model"), HasSubstr("--kv-memory: '8' is no size"),
                  HasSubstr("--ssl-keyfile"), HasSubstr("--max-body: '0'"),
                  HasSubstr("--idle-timeout: 0"), HasSubstr("--max-connections 0"),
                  HasSubstr("--max-queue: 'x'"), HasSubstr("--drain: '30' is no time"),
                  HasSubstr("--chat-template-kwargs"), HasSubstr("--sampling-defaults 'mine'"),
                  HasSubstr("--log-format 'xml': use text, json")));
}

TEST(ServeFlags, AKeyOnTheCommandLineIsMarkedAsVisible) {
  std::vector<std::string> problems;
  EXPECT_TRUE(Read({"m.gguf", "--api-key", "k"}, &problems).access.keys_are_visible);
  setenv("QUIRE_API_KEY", "k", 1);
  const ServeOptions options = Read({"m.gguf"}, &problems);
  unsetenv("QUIRE_API_KEY");
  EXPECT_FALSE(options.access.keys_are_visible);
  EXPECT_THAT(options.access.keys, ElementsAre("k"));
}

}  // namespace
}  // namespace quire
