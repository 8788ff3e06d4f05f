package chat

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"convls/protocol"

	"github.com/adrg/xdg"
)

// history is what was entered before, oldest first, and where in it the person
// is. It is kept in a file of JSON strings, one a line, so that an entry can have
// several lines.
type history struct {
	path    string
	entries []string
	// at is the entry that the input shows; len(entries) is the draft, the text that
	// was there before the person went back.
	at    int
	draft string
}

// maxHistory is how many entries are kept, and maxEntry how long one may be in
// bytes to be kept.
const (
	maxHistory = 1_000
	maxEntry   = 16 << 10
)

// historyPath is the file in the state directory (XDG Base Directory
// Specification, XDG_STATE_HOME).
func historyPath() string { return filepath.Join(xdg.StateHome, "convls", "chat_history") }

// loadHistory reads the file; without path, or without a file, there is no history
// yet. Lines that can not be read are left out. The error is for the person: the
// history works without its file.
func loadHistory(path string) (*history, error) {
	h := &history{path: path}
	if path == "" {
		return h, nil
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h, fmt.Errorf("read the input history: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry string
		if protocol.Unmarshal(lines.Bytes(), &entry) == nil && entry != "" {
			h.entries = append(h.entries, entry)
		}
	}
	if len(h.entries) > 2*maxHistory {
		h.entries = h.entries[len(h.entries)-maxHistory:]
		err = h.rewrite()
	} else {
		err = nil
	}
	h.at = len(h.entries)
	return h, err
}

// add puts what was entered at the end, and into the file unless it looks like a
// secret or begins with a space, which is how one keeps it out.
func (h *history) add(entry string) error {
	h.draft = ""
	secret := strings.HasPrefix(entry, " ") || secretLike.MatchString(entry)
	if entry = strings.TrimSpace(entry); entry == "" {
		h.at = len(h.entries)
		return nil
	}
	if n := len(h.entries); n > 0 && h.entries[n-1] == entry {
		h.at = n
		return nil
	}
	h.entries = append(h.entries, entry)
	h.at = len(h.entries)
	if h.path == "" || secret || len(entry) > maxEntry {
		return nil
	}
	data, err := protocol.Marshal(entry)
	if err != nil {
		return nil // not UTF-8; it was refused as a message too
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return fmt.Errorf("keep the input history: %w", err)
	}
	// One write of a whole line: several chats can append at once.
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(append(data, '\n'))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("keep the input history: %w", err)
	}
	return nil
}

// rewrite shortens the file to the entries that are kept.
func (h *history) rewrite() error {
	var b bytes.Buffer
	for _, e := range h.entries {
		data, err := protocol.Marshal(e)
		if err != nil {
			continue
		}
		b.Write(append(data, '\n'))
	}
	temp := h.path + ".new"
	if err := os.WriteFile(temp, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("shorten the input history: %w", err)
	}
	if err := os.Rename(temp, h.path); err != nil {
		return fmt.Errorf("shorten the input history: %w", err)
	}
	return nil
}

// back returns the entry before; now is what the input holds. ok is false at the
// oldest.
func (h *history) back(now string) (entry string, ok bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = now
	}
	h.at--
	return h.entries[h.at], true
}

// forward returns the entry after, at last the draft.
func (h *history) forward() (entry string, ok bool) {
	if h.at >= len(h.entries) {
		return "", false
	}
	h.at++
	if h.at == len(h.entries) {
		return h.draft, true
	}
	return h.entries[h.at], true
}

// secretLike matches texts that hold what looks like a key or a password.
var secretLike = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\bsk-[a-z0-9_-]{8,}`, `\b(ghp|gho|ghs|github_pat|glpat|xox[abprs]|hf|npm|pypi)[_-][a-z0-9_-]{10,}`, `\bAKIA[0-9A-Z]{12,}`, `\bAIza[0-9a-z_-]{20,}`,
	`\bey[a-z0-9_-]{10,}\.[a-z0-9_-]{10,}\.`, `-----BEGIN [A-Z ]*PRIVATE KEY`, `\bbearer\s+[a-z0-9._~+/-]{12,}`,
	`(api[_-]?key|secret|token|passw(or)?d|passphrase)["']?\s*[:=]\s*\S{4,}`, `://[^\s/:@]+:[^\s/@]+@`,
}, "|"))
