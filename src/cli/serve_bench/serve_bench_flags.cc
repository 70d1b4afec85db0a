// The flags of `quire bench serve`.

#include "cli/serve_bench/serve_bench.h"

namespace quire {
namespace {

void AddServerFlags(CLI::App& command, ServeBenchFlags& flags) {
  command.add_option("--base-url", flags.base_url, "The server")->capture_default_str();
  command
      .add_option("--backend", flags.backend,
                  "openai: /v1/completions; openai-chat: /v1/chat/completions")
      ->check(CLI::IsMember({"openai", "openai-chat"}))
      ->capture_default_str();
  command.add_option("--endpoint", flags.endpoint, "Another path than the backend's");
  command.add_option("--model", flags.model, "Its name (default: the first that the server names)");
  command.add_option("--api-key", flags.api_key, "Sent as a bearer token")
      ->envname("OPENAI_API_KEY");
  command
      .add_option("--timeout", flags.timeout_s,
                  "Seconds without a byte after which a call has failed")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
}

void AddPromptFlags(CLI::App& command, ServeBenchFlags& flags) {
  command.add_option("--dataset-name", flags.dataset, "What is asked")
      ->check(CLI::IsMember({"random", "prefix_repetition", "sharegpt"}))
      ->capture_default_str();
  command.add_option("--dataset-path", flags.dataset_path, "The file of sharegpt");
  command.add_option("--num-prompts", flags.num_prompts, "How many requests")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  const auto tokens = [&](const char* name, uint32_t& value, const char* help, int least) {
    command.add_option(name, value, help)
        ->check(CLI::Range(least, 10'000'000))
        ->capture_default_str();
  };
  tokens("--random-input-len", flags.input_len, "random: tokens of a prompt after the shared ones",
         1);
  tokens("--random-output-len", flags.output_len, "random: most tokens of an answer", 1);
  tokens("--random-prefix-len", flags.prefix_len, "random: tokens that all prompts begin with", 0);
  tokens("--prefix-repetition-prefix-len", flags.repeated_prefix_len,
         "prefix_repetition: tokens of a shared beginning", 0);
  tokens("--prefix-repetition-suffix-len", flags.suffix_len, "prefix_repetition: tokens after it",
         1);
  tokens("--prefix-repetition-num-prefixes", flags.num_prefixes,
         "prefix_repetition: how many shared beginnings", 1);
  tokens("--prefix-repetition-output-len", flags.repeated_output_len,
         "prefix_repetition: most tokens of an answer", 1);
  tokens("--sharegpt-output-len", flags.sharegpt_output_len,
         "sharegpt: most tokens of an answer; 0: as many as the recorded one has", 0);
  command
      .add_option("--prompt-form", flags.prompt_form,
                  "Random prompts as token ids, or as text of about so many tokens; auto: ids, but "
                  "text for openai-chat")
      ->check(CLI::IsMember({"auto", "ids", "text"}))
      ->capture_default_str();
  command.add_option("--seed", flags.seed, "Of prompts and times")->capture_default_str();
}

void AddLoadFlags(CLI::App& command, ServeBenchFlags& flags) {
  command
      .add_option("--request-rate", flags.request_rate,
                  "Requests a second, at random times (Poisson); inf: all at once")
      ->capture_default_str();
  command.add_option("--max-concurrency", flags.max_concurrency, "Most requests at once; 0: all")
      ->capture_default_str();
  command
      .add_option("--num-warmups", flags.num_warmups,
                  "Requests before the measurement, with the same shared tokens")
      ->capture_default_str();
  command.add_flag("--ignore-eos", flags.ignore_eos, "Answers have exactly their most tokens");
  command.add_option("--temperature", flags.temperature, "0: greedy (default: the server's own)")
      ->check(CLI::Range(0.0, 2.0));
  command.add_option("--extra-body", flags.extra_body, "A JSON object: keys for each request");
}

void AddReportFlags(CLI::App& command, ServeBenchFlags& flags) {
  command.add_option("--goodput", flags.goodput,
                     "What a good request keeps to: ttft:MS, tpot:MS, e2el:MS");
  command.add_option("--metric-percentiles", flags.percentiles, "Percentiles (default 95,99)")
      ->delimiter(',');
  command.add_flag("--save-result", flags.save_result, "Write the report to a JSON file");
  command.add_flag("--save-detailed", flags.save_detailed,
                   "The same, with the times and the error of each request");
  command.add_option("--result-dir", flags.result_dir, "Its folder (default: the current one)");
  command.add_option("--result-filename", flags.result_filename,
                     "Its name (default: made of backend, rate, model and date)");
  command.add_flag("--json", flags.json, "Print the report as one JSON object");
}

}  // namespace

CLI::App* AddServeBench(CLI::App& bench, ServeBenchFlags& flags) {
  CLI::App* command =
      bench.add_subcommand("serve", "The speed of any OpenAI server; needs no MODEL");
  command->footer(
      "Example: quire bench serve --base-url http://127.0.0.1:8000 --num-prompts 100 \\\n"
      "             --max-concurrency 4 --random-input-len 256 --random-output-len 64");
  AddServerFlags(*command, flags);
  AddPromptFlags(*command, flags);
  AddLoadFlags(*command, flags);
  AddReportFlags(*command, flags);
  return command;
}

}  // namespace quire
