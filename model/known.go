package model

import "strings"

// knownModel is what is known of a model without asking: windows in tokens,
// prices in dollars a million tokens, as the vendors published them by the
// middle of 2025. Settings and what a provider says of itself win.
type knownModel struct {
	prefix                   string
	window, maxOutput        int64
	input, output, cacheRead float64
}

// knownModels are matched by the longest prefix of the name, vendor left out.
var knownModels = []knownModel{
	{"gpt-5-mini", 400_000, 128_000, 0.25, 2, 0.025},
	{"gpt-5-nano", 400_000, 128_000, 0.05, 0.40, 0.005},
	{"gpt-5", 400_000, 128_000, 1.25, 10, 0.125},
	{"gpt-4.1-mini", 1_047_576, 32_768, 0.40, 1.60, 0.10},
	{"gpt-4.1-nano", 1_047_576, 32_768, 0.10, 0.40, 0.025},
	{"gpt-4.1", 1_047_576, 32_768, 2, 8, 0.50},
	{"gpt-4o-mini", 128_000, 16_384, 0.15, 0.60, 0.075},
	{"gpt-4o", 128_000, 16_384, 2.50, 10, 1.25},
	{"gpt-4-turbo", 128_000, 4_096, 10, 30, 0},
	{"gpt-4", 8_192, 4_096, 30, 60, 0},
	{"gpt-3.5-turbo", 16_385, 4_096, 0.50, 1.50, 0},
	{"gpt-oss", 131_072, 32_768, 0, 0, 0},
	{"o1", 200_000, 100_000, 15, 60, 7.50},
	{"o3-mini", 200_000, 100_000, 1.10, 4.40, 0.55},
	{"o3", 200_000, 100_000, 2, 8, 0.50},
	{"o4-mini", 200_000, 100_000, 1.10, 4.40, 0.275},
	{"claude-3-haiku", 200_000, 4_096, 0.25, 1.25, 0.03},
	{"claude-3-5-haiku", 200_000, 8_192, 0.80, 4, 0.08},
	{"claude-3-5-sonnet", 200_000, 8_192, 3, 15, 0.30},
	{"claude-3-7-sonnet", 200_000, 64_000, 3, 15, 0.30},
	{"claude-sonnet-4", 200_000, 64_000, 3, 15, 0.30},
	{"claude-opus-4", 200_000, 32_000, 15, 75, 1.50},
	{"claude", 200_000, 8_192, 0, 0, 0},
	{"gemini-1.5-pro", 2_097_152, 8_192, 0, 0, 0},
	{"gemini-1.5", 1_048_576, 8_192, 0, 0, 0},
	{"gemini-2.0-flash", 1_048_576, 8_192, 0.10, 0.40, 0.025},
	{"gemini-2.5-pro", 1_048_576, 65_536, 1.25, 10, 0.31},
	{"gemini-2.5-flash-lite", 1_048_576, 65_536, 0.10, 0.40, 0.025},
	{"gemini-2.5-flash", 1_048_576, 65_536, 0.30, 2.50, 0.075},
	{"gemini", 1_048_576, 8_192, 0, 0, 0},
}

// lookupModel returns what is known of the model with that name.
func lookupModel(name string) (knownModel, bool) {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	var best knownModel
	for _, m := range knownModels {
		rest, ok := strings.CutPrefix(name, m.prefix)
		if ok && (rest == "" || strings.ContainsRune("-.:@", rune(rest[0]))) && len(m.prefix) > len(best.prefix) {
			best = m
		}
	}
	return best, best.prefix != ""
}
