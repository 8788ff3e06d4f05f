package protocol

// Settings are everything that a person can set. The names of the members, in
// dotted form, are the names of the settings: `providers.NAME.base_url`. A zero
// member means the default that its comment gives. Where settings come from and
// which win is docs/settings.md's subject.
type Settings struct {
	// Model answers: provider/name, or offline, which is built in. Default: offline.
	Model string `json:"model,omitzero" koanf:"model"`
	// System is the system prompt of new sessions. Default: none.
	System string `json:"system,omitzero" koanf:"system"`
	// Policy is the compaction policy of new sessions. Default: rolling.
	Policy     string                      `json:"policy,omitzero" koanf:"policy"`
	Compaction CompactionSettings          `json:"compaction,omitzero" koanf:"compaction"`
	Providers  map[string]ProviderSettings `json:"providers,omitempty" koanf:"providers"`
	// Models are settings of single models, by provider/name.
	Models map[string]ModelSettings `json:"models,omitempty" koanf:"models"`
	Turn   TurnSettings             `json:"turn,omitzero" koanf:"turn"`
	Log    LogSettings              `json:"log,omitzero" koanf:"log"`
}

// CompactionSettings say when and how a context is compacted.
type CompactionSettings struct {
	// Model writes the summaries. Default: the session's model.
	Model string `json:"model,omitzero" koanf:"model"`
	// Auto compacts before a turn that would pass the trigger. Default: true.
	Auto *bool `json:"auto,omitzero" koanf:"auto"`
	// Trigger is a share of window less output reserve. Default: 0.8.
	Trigger float64 `json:"trigger,omitzero" koanf:"trigger"`
	// KeepRecentTokens stay verbatim. Default: a tenth of the window, 8,000 to 40,000.
	KeepRecentTokens int64 `json:"keep_recent_tokens,omitzero" koanf:"keep_recent_tokens"`
	// Fallback is extractive or none: what writes the summary if Model fails.
	// Default: none.
	Fallback string `json:"fallback,omitzero" koanf:"fallback"`
	// TimeoutMS is how long one call of the summariser may take. Default: 120000.
	TimeoutMS int64 `json:"timeout_ms,omitzero" koanf:"timeout_ms"`
	// MaxRetries is how often a call of the summariser that failed for a reason that
	// may pass is made again. Default: 2.
	MaxRetries *int `json:"max_retries,omitzero" koanf:"max_retries"`
}

// ProviderSettings say how a provider of models is reached. openai, anthropic,
// gemini, ollama and openrouter need no base_url.
type ProviderSettings struct {
	// Kind is openai, anthropic, gemini, ollama or offline. Default: openai, or what
	// the provider's name says.
	Kind string `json:"kind,omitzero" koanf:"kind"`
	// BaseURL is the address of the API. Default: the kind's own.
	BaseURL string `json:"base_url,omitzero" koanf:"base_url"`
	// APIKeyEnv names an environment variable. Default: NAME_API_KEY.
	APIKeyEnv string `json:"api_key_env,omitzero" koanf:"api_key_env"`
	// APIKeyCmd is a command that prints the key. Default: none.
	APIKeyCmd string `json:"api_key_cmd,omitzero" koanf:"api_key_cmd"`
	// TimeoutMS is how long nothing may arrive before a call counts as cut.
	// Default: 120000.
	TimeoutMS int64 `json:"timeout_ms,omitzero" koanf:"timeout_ms"`
	// OverflowPatterns are further wordings (regular expressions) by which the
	// provider, or a gateway before it, says that the context is too long.
	OverflowPatterns []string `json:"overflow_patterns,omitempty" koanf:"overflow_patterns"`
}

// ModelSettings are settings of one model.
type ModelSettings struct {
	// Window is the context window in tokens. Default: what the provider says or is
	// known, else 32768.
	Window int64 `json:"window,omitzero" koanf:"window"`
	// MaxOutput is the most that the model may answer, in tokens, reserved in the
	// window. Default: what the provider says or is known, else an eighth of the
	// window, 8192 at most.
	MaxOutput int64 `json:"max_output,omitzero" koanf:"max_output"`
	// Temperature is passed to the model. Default: the provider's own.
	Temperature *float64 `json:"temperature,omitzero" koanf:"temperature"`
	// InputPrice, OutputPrice and CacheReadPrice are dollars a million tokens.
	// Default: what is known of the model.
	InputPrice     float64 `json:"input_price,omitzero" koanf:"input_price"`
	OutputPrice    float64 `json:"output_price,omitzero" koanf:"output_price"`
	CacheReadPrice float64 `json:"cache_read_price,omitzero" koanf:"cache_read_price"`
}

// TurnSettings bound a turn.
type TurnSettings struct {
	// MaxToolRounds is how many model calls a turn with tools may make. Default: 32.
	MaxToolRounds int `json:"max_tool_rounds,omitzero" koanf:"max_tool_rounds"`
	// ToolResultBytes is how much of a tool's result the model is shown; the whole
	// stays in the ledger. Default: 65536.
	ToolResultBytes int `json:"tool_result_bytes,omitzero" koanf:"tool_result_bytes"`
	// ToolTimeoutMS is how long a client may take for a tool call. Default: 600000.
	ToolTimeoutMS int64 `json:"tool_timeout_ms,omitzero" koanf:"tool_timeout_ms"`
	// MaxRetries is how often a model call that failed before its first byte is
	// tried again. Default: 3.
	MaxRetries *int `json:"max_retries,omitzero" koanf:"max_retries"`
}

// LogSettings say what is logged.
type LogSettings struct {
	// Level is debug, info, warn or error. Default: info.
	Level string `json:"level,omitzero" koanf:"level"`
}
