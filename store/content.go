package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"convls/protocol"
)

// Content is the large record of a node.
type Content struct {
	Parts []protocol.Part `json:"content"`
	// Prompt is what a call was asked; Parts then are the answer.
	Prompt     []protocol.Part         `json:"prompt,omitempty"`
	Model      string                  `json:"model,omitzero"`
	DurationMS int64                   `json:"duration_ms,omitzero"`
	StopReason string                  `json:"stop_reason,omitzero"`
	Error      *protocol.NodeError     `json:"error,omitzero"`
	Usage      *protocol.Usage         `json:"usage,omitzero"`
	Reads      []Run                   `json:"reads,omitempty"`
	Call       *protocol.CallRecord    `json:"call,omitzero"`
	Metadata   map[string]protocol.Raw `json:"metadata,omitempty"`
	Covers     *Covers                 `json:"covers,omitzero"`
	Manifest   protocol.Raw            `json:"manifest,omitzero"`
	Provenance *protocol.Provenance    `json:"provenance,omitzero"`
	Source     *Source                 `json:"source,omitzero"`
}

// Run is a stretch of the chain from First to Last, both included, where Last's
// predecessors lead to First; a single node, of any kind, has First = Last. Reads
// are kept as runs, so that they do not grow with the square of the history.
type Run struct {
	First Seq `json:"first"`
	Last  Seq `json:"last"`
	// Tools says that each node's tool calls were read after it.
	Tools bool `json:"tools,omitzero"`
}

// Source is what an attach node points at.
type Source struct {
	SessionID string `json:"session_id"`
	NodeID    string `json:"node_id"`
}

// The forms of a content record.
const (
	contentInline  = 0
	contentChunked = 1
)

// contentHeader is what precedes the JSON in a content record, in bytes: version,
// form, checksum of the JSON.
const contentHeader = 6

// encodeContent returns the JSON of c.
func encodeContent(c *Content) ([]byte, error) {
	b, err := protocol.Marshal(c)
	if err != nil {
		return nil, &protocol.Error{Code: protocol.CodeInvalidParams, Message: "the content can not be stored: " + err.Error()}
	}
	if len(b) > maxContent {
		return nil, protocol.Errorf(protocol.CodeTooLarge, "the content has %d MiB, a node takes %d", len(b)>>20, maxContent>>20)
	}
	return b, nil
}

func appendContentHeader(b []byte, form byte, json []byte) []byte {
	b = append(b, recordVersion, form)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(json, crcTable))
}

// inlineRecord is the record of a short content: header, JSON.
func inlineRecord(json []byte) []byte {
	return append(appendContentHeader(make([]byte, 0, contentHeader+len(json)), contentInline, json), json...)
}

// chunkedRecord stands for a long content whose JSON is in chunks: header, length
// of the JSON, and the generation in the chunks' keys.
func chunkedRecord(json []byte, generation uint64) []byte {
	b := appendContentHeader(make([]byte, 0, contentHeader+20), contentChunked, json)
	b = binary.AppendUvarint(b, uint64(len(json)))
	return binary.AppendUvarint(b, generation)
}

// maxContent bounds a node's content, and what a damaged length can make us
// allocate, in bytes.
const maxContent = 256 << 20

// readChunked decodes what [chunkedRecord] has after its header.
func readChunked(record []byte) (size, generation uint64, err error) {
	d := decoder{b: record[contentHeader:]}
	size, generation = d.uvarint(), d.uvarint()
	if d.err == nil && size > maxContent {
		d.err = errShort
	}
	return size, generation, d.err
}

// readContent decodes record; chunk reads a chunk by generation and index.
func readContent(record []byte, chunk func(generation, index uint64) ([]byte, error)) (*Content, error) {
	if len(record) < contentHeader {
		return nil, errShort
	}
	if record[0] == 0 || record[0] > recordVersion || record[1] > contentChunked {
		return nil, errNewer
	}
	sum := binary.LittleEndian.Uint32(record[2:])
	json := record[contentHeader:]
	if record[1] == contentChunked {
		size, generation, err := readChunked(record)
		if err != nil {
			return nil, err
		}
		json = nil // grows with what is there, not with what a damaged record says
		for i := uint64(0); uint64(len(json)) < size; i++ {
			piece, err := chunk(generation, i)
			if err != nil {
				return nil, fmt.Errorf("chunk %d: %w", i, err)
			}
			if len(piece) == 0 {
				return nil, errShort
			}
			json = append(json, piece...)
		}
	}
	if crc32.Checksum(json, crcTable) != sum {
		return nil, errChecksum
	}
	c := &Content{}
	if err := protocol.Unmarshal(json, c); err != nil {
		return nil, fmt.Errorf("decode content: %w", err)
	}
	return c, nil
}
