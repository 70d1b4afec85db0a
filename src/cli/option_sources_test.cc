#include "cli/option_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A command with one option of each kind.
class OptionSources : public ::testing::Test {
 protected:
  OptionSources() {
    app_.add_option("--config", config_)->configurable(false);
    app_.add_option("--port", port_);
    app_.add_option("--kv-memory", memory_);
    app_.add_flag("--no-auth", no_auth_);
    app_.add_option("--api-key", key_);
    app_.add_option("--name", names_)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app_.add_flag("--check", check_)->configurable(false);
  }
  ~OptionSources() override {
    for (const std::string& name : variables_) unsetenv(name.c_str());
  }
  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    variables_.push_back(name);
  }
  std::string WriteFile(const std::string& text) {
    const std::string path = ::testing::TempDir() + "/quire_option_sources_test";
    std::ofstream(path) << text;
    return path;
  }
  void Read(std::vector<std::string> flags) {
    std::reverse(flags.begin(), flags.end());
    app_.parse(flags);
    origins_ = ReadOtherSources(app_, "config", &problems_);
  }
  std::string OriginOf(const std::string& flag) {
    const auto origin = origins_.find(app_.get_option(flag));
    return origin == origins_.end() ? "default" : origin->second;
  }

  CLI::App app_;
  std::string config_, memory_ = "default", key_;
  uint16_t port_ = 8000;
  bool no_auth_ = false, check_ = false;
  std::vector<std::string> names_;
  OptionOrigins origins_;
  std::vector<std::string> problems_, variables_;
};

TEST_F(OptionSources, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  const std::string path = WriteFile("\nport = 1\nkv-memory = 1GiB\nname = [a, b]\n");
  Set("QUIRE_PORT", "2");
  Set("QUIRE_KV_MEMORY", "2GiB");
  Read({"--config", path, "--port", "3"});
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_EQ(port_, 3);
  EXPECT_EQ(memory_, "2GiB");
  EXPECT_THAT(names_, ElementsAre("a", "b"));
  EXPECT_FALSE(no_auth_);
  EXPECT_EQ(OriginOf("--port"), "flag");
  EXPECT_EQ(OriginOf("--kv-memory"), "environment");
  EXPECT_EQ(OriginOf("--name"), path + ":4");
  EXPECT_EQ(OriginOf("--no-auth"), "default");
}

TEST_F(OptionSources, TheFileItselfMayBeNamedInTheEnvironment) {
  Set("QUIRE_CONFIG", WriteFile("no-auth = true\n"));
  Set("QUIRE_KV_MEMORY", "");  // as if it were not there
  Read({});
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_TRUE(no_auth_);
  EXPECT_EQ(memory_, "default");
}

TEST_F(OptionSources, AFlagOfTheFileCanBeFalse) {
  Read({"--config", WriteFile("no-auth = false\n")});
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_FALSE(no_auth_);
}

TEST_F(OptionSources, EachWrongThingIsAProblem) {
  Set("QUIRE_PORT", "many");
  const std::string path = WriteFile(
      "prot = 1\nno-auth = perhaps\nkv-memory = [1, 2]\ncheck = true\nconfig = x\nhelp = 1");
  Read({"--config", path});
  EXPECT_THAT(problems_,
              ElementsAre(HasSubstr("QUIRE_PORT: port: 'many' is no value"),
                          HasSubstr(path + ":1: there is no option prot: did you mean port?"),
                          HasSubstr(":2: no-auth: 'perhaps' is no value"),
                          HasSubstr(":3: kv-memory takes one value, here are 2"),
                          HasSubstr(":4: there is no option check"),
                          HasSubstr(":5: there is no option config"),
                          HasSubstr(":6: there is no option help")));
}

// SEC-18: no secret in a file that is copied and shown, and none in a message.
TEST_F(OptionSources, SecretsComeByTheEnvironmentOnly) {
  Set("QUIRE_API_KEY", "from-environment");
  Read({"--config", WriteFile("api-key = hidden\n")});
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("api-key is a secret: use api-key-file, or "
                                               "QUIRE_API_KEY")));
  EXPECT_THAT(problems_[0], ::testing::Not(HasSubstr("hidden")));
  EXPECT_EQ(key_, "from-environment");
}

}  // namespace
}  // namespace quire
