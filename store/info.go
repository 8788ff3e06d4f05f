package store

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"convls/protocol"
)

// Info returns the session's record as the transaction leaves it.
func (tx *Tx) Info() (Info, error) {
	if tx.info == nil {
		info, err := tx.view.Info()
		if err != nil {
			return info, err
		}
		tx.info = &info
	}
	return *tx.info, nil
}

// SetInfo replaces the session's record. The system prompt is set by SetSystem.
func (tx *Tx) SetInfo(info Info) error {
	old, err := tx.Info()
	if err != nil {
		return err
	}
	info.ID, info.CreatedAt, info.SystemSHA256 = old.ID, old.CreatedAt, old.SystemSHA256
	return tx.putInfo(info)
}

// SetSystem sets the system prompt.
func (tx *Tx) SetSystem(text string) error {
	info, err := tx.Info()
	if err != nil {
		return err
	}
	info.SystemSHA256 = ""
	if text != "" {
		if info.SystemSHA256, err = tx.KeepText(text); err != nil {
			return err
		}
	}
	return tx.putInfo(info)
}

// KeepText keeps a text that calls name, such as a system prompt, and returns the
// SHA-256 (hex) that it is kept under.
func (tx *Tx) KeepText(text string) (string, error) {
	sum := textSum(text)
	return sum, tx.batch.Set(textKey(sum), []byte(text), nil)
}

// The limits of a session's record, in bytes: lists read hundreds of them, and a
// reply has room for 8 MiB.
const (
	maxTitle  = 1_000
	maxRecord = 64 << 10
)

// CleanTitle returns text as a title: in one line, with single spaces, and without
// characters that control a terminal or the direction of text. What is not valid
// UTF-8 comes back as it is, and is refused by who stores it.
func CleanTitle(text string) string {
	if !utf8.ValidString(text) {
		return text
	}
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)), " ")
}

func (tx *Tx) putInfo(info Info) error {
	info.Title = CleanTitle(info.Title)
	b, err := protocol.Marshal(info)
	switch {
	case err != nil:
		return &protocol.Error{Code: protocol.CodeInvalidParams, Message: "the session's record can not be stored: " + err.Error()}
	case len(info.Title) > maxTitle:
		return protocol.Errorf(protocol.CodeInvalidParams, "the title has %d bytes and can have %d", len(info.Title), maxTitle)
	case len(b) > maxRecord:
		return protocol.Errorf(protocol.CodeInvalidParams, "the session's title, workspace and settings have %d bytes together and can have %d", len(b), maxRecord)
	}
	tx.info = &info
	said := slices.ContainsFunc(tx.events, func(e protocol.Event) bool { return e.Type == protocol.EventSessionChanged })
	if !said {
		tx.Emit(protocol.Event{Type: protocol.EventSessionChanged})
	}
	return tx.batch.Set(key(famInfo, tx.session), frame(b), nil)
}
