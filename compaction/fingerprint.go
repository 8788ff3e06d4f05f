package compaction

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"convls/projection"
	"convls/protocol"
)

// fingerprint computes source_sha256 (spec/checkpoints, step 6): SHA-256 over one
// JSON document,
//
//	{"messages":[…],"previous":"…"}
//
// with the newly covered nodes in order, each followed by what it called, and the
// digest of the summary before, or "". A message is
//
//	{"content":[part…],"role":"user"}
//
// where role is the node's kind, the parts of a call are its prompt and then its
// answer, and a part is
//
//	{"arguments":"…","call_id":"…","data":"…","is_error":true,"mime_type":"…","name":"…","text":"…","type":"…","uri":"…"}
//
// Members are sorted, those that are empty left out but for content, role and
// type; there is no white space, the text is UTF-8, and strings escape what JSON
// requires and nothing else. data is base64, arguments the text of the arguments.
// Node ids are left out, and nothing is clipped or masked: the digest is of what
// was said. It proves which source a summary has, and nothing of its quality.
type fingerprint struct {
	hash  hash.Hash
	count int64
}

// sourceMessage and sourcePart have their members in the order of their names.
type sourceMessage struct {
	Content []sourcePart  `json:"content"`
	Role    protocol.Kind `json:"role"`
}

type sourcePart struct {
	Arguments string            `json:"arguments,omitzero"`
	CallID    string            `json:"call_id,omitzero"`
	Data      []byte            `json:"data,omitempty"`
	IsError   bool              `json:"is_error,omitzero"`
	MIMEType  string            `json:"mime_type,omitzero"`
	Name      string            `json:"name,omitzero"`
	Text      string            `json:"text,omitzero"`
	Type      protocol.PartType `json:"type"`
	URI       string            `json:"uri,omitzero"`
}

func newFingerprint() *fingerprint {
	f := &fingerprint{hash: sha256.New()}
	f.hash.Write([]byte(`{"messages":[`))
	return f
}

// add takes in the next node.
func (f *fingerprint) add(w projection.Whole) error {
	m := sourceMessage{Content: make([]sourcePart, 0, len(w.Content.Prompt)+len(w.Content.Parts)), Role: w.Node.Kind}
	for _, p := range slices.Concat(w.Content.Prompt, w.Content.Parts) {
		m.Content = append(m.Content, sourcePart{Arguments: string(p.Arguments), CallID: p.CallID, Data: p.Data, IsError: p.IsError,
			MIMEType: p.MIMEType, Name: p.Name, Text: p.Text, Type: p.Type, URI: p.URI})
	}
	b, err := protocol.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode node %q for the fingerprint: %w", w.Node.ID, err)
	}
	if f.count > 0 {
		f.hash.Write([]byte{','})
	}
	f.hash.Write(b)
	f.count++
	return nil
}

// sum ends the document and returns the digest, hexadecimal.
func (f *fingerprint) sum(previous string) string {
	// The error would be of invalid UTF-8, which no ledger holds.
	quoted, _ := jsontext.AppendQuote(nil, previous)
	f.hash.Write([]byte(`],"previous":`))
	f.hash.Write(quoted)
	f.hash.Write([]byte{'}'})
	return hex.EncodeToString(f.hash.Sum(nil))
}
