package doctor

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"convls/store"
)

// Report is what the doctor found, as --json prints it.
type Report struct {
	// OK says that there are no problems. Notes are none.
	OK       bool     `json:"ok"`
	Program  Program  `json:"program"`
	Settings Settings `json:"settings"`
	Store    Store    `json:"store"`
	// Check is there if it was asked for and the store could be opened.
	Check     *Check     `json:"check,omitzero"`
	Providers []Provider `json:"providers"`
	Log       File       `json:"log"`
	// Problems keep something from working, each with what to do about it. Notes are
	// worth knowing.
	Problems []Finding `json:"problems"`
	Notes    []Finding `json:"notes"`
}

// Finding is something that the doctor found, and what to do about it.
type Finding struct {
	// About is settings, store, check, provider NAME or log.
	About string `json:"about"`
	What  string `json:"what"`
	// Next is what the person can do; "" where nothing needs doing.
	Next string `json:"next,omitzero"`
}

// File is a file that may be there.
type File struct {
	Path  string `json:"path"`
	Found bool   `json:"found"`
	// Bytes is its size.
	Bytes int64 `json:"bytes"`
}

// Settings are the settings file and the models that are chosen.
type Settings struct {
	File     File     `json:"file"`
	Warnings []string `json:"warnings"`
	// Model answers, and Summariser, if it is another one, writes summaries.
	Model      string `json:"model"`
	Summariser string `json:"summariser,omitzero"`
}

// Store is the ledger.
type Store struct {
	Path string `json:"path"`
	// Found says that there is a store in the folder; Opened that it could be read.
	Found  bool `json:"found"`
	Opened bool `json:"opened"`
	// Format is that of the records; 0 if the store was not opened.
	Format int `json:"format,omitzero"`
	// Bytes is the space that the folder takes on disk.
	Bytes int64 `json:"bytes"`
	// Sessions counts them, if the store was opened.
	Sessions int64 `json:"sessions"`
	// Holder is the process that has the store, if one has.
	Holder string `json:"holder,omitzero"`
	// FreeBytes is what the disk has left, and ReserveBytes below what nothing new is
	// written. FreeBytes is -1 where the file system does not say.
	FreeBytes    int64 `json:"free_bytes"`
	ReserveBytes int64 `json:"reserve_bytes"`
}

// Check is the outcome of reading the whole ledger.
type Check struct {
	// Complete says that everything was read.
	Complete bool  `json:"complete"`
	Sessions int64 `json:"sessions"`
	// ProblemCount counts all problems; Problems has the first of them.
	ProblemCount int             `json:"problem_count"`
	Problems     []store.Problem `json:"problems"`
	DurationMS   int64           `json:"duration_ms"`
}

// Provider is a provider of models.
type Provider struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitzero"`
	// BaseURL is the address of its API; the offline provider has none.
	BaseURL string `json:"base_url,omitzero"`
	// Configured says that it has settings; others are there because the chosen model
	// is theirs, or because there is a key.
	Configured bool `json:"configured"`
	// Key says where its key is: in the variable NAME, in the keyring, a command;
	// none needed; or missing. It never is the key.
	Key string `json:"key"`
	// KeyFound says that there is one. That of a command is known only after it ran.
	KeyFound bool `json:"key_found"`
	// Asked says that it was asked for its models, and Models how many it has.
	Asked  bool `json:"asked"`
	Models int  `json:"models"`
	// Error is why it could not be asked.
	Error string `json:"error,omitzero"`
}

// problem adds a problem.
func (r *Report) problem(about, next, format string, args ...any) {
	r.Problems = append(r.Problems, Finding{about, fmt.Sprintf(format, args...), next})
}

// note adds a note.
func (r *Report) note(about, next, format string, args ...any) {
	r.Notes = append(r.Notes, Finding{about, fmt.Sprintf(format, args...), next})
}

// writeJSON prints v, a member a line.
func writeJSON(w io.Writer, v any) error {
	data, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}
