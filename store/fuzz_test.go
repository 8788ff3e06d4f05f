package store

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"convls/protocol"
)

// Decoders refuse what they can not read, never panic, and give back what was
// encoded.

func FuzzSkeleton(f *testing.F) {
	s := Skeleton{ID: "01J", Kind: protocol.KindAssistant, Status: protocol.StatusSealed, Predecessor: 3, Caller: 2, Depth: 9, Jump: 1,
		Created: time.UnixMilli(1_700_000_000_000).UTC(), Tokens: 12, Tokenizer: "o200k_base", Total: Totals{1, 2, 3, 4}, Redacted: true, Exposed: true, Called: true}
	f.Add(s.encode())
	f.Add([]byte{})
	f.Add(make([]byte, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSkeleton(7, b)
		if err != nil {
			// The checksum keeps almost all away from the rest: try that, too.
			s, err = decodeSkeleton(7, seal(append([]byte{recordVersion}, b...)))
		}
		if err != nil {
			return
		}
		again, err := decodeSkeleton(7, s.encode())
		if err != nil || again != s {
			t.Errorf("%+v comes back as %+v (%v)", s, again, err)
		}
	})
}

func FuzzState(f *testing.F) {
	s := State{Head: 3, Next: 4, Events: 5, Active: 2, Removals: 1, Uses: 9, Nodes: 3, Updated: time.UnixMilli(1_700_000_000_000).UTC(), Total: Totals{1, 2, 3, 4}, Branch: "main"}
	f.Add(s.encode())
	f.Add([]byte{1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeState(b)
		if err != nil {
			s, err = decodeState(seal(append([]byte{recordVersion}, b...)))
		}
		if err != nil {
			return
		}
		again, err := decodeState(s.encode())
		if err != nil || again != s {
			t.Errorf("%+v comes back as %+v (%v)", s, again, err)
		}
	})
}

func FuzzContent(f *testing.F) {
	json, err := encodeContent(&Content{Parts: textContent("hello").Parts, Covers: &Covers{First: 1, Last: 2}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(inlineRecord(json), []byte{})
	f.Add(chunkedRecord(json, 5), json)
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f}, []byte("x"))
	f.Fuzz(func(t *testing.T, record, chunk []byte) {
		asked := 0
		read := func(r []byte) (*Content, error) {
			return readContent(r, func(_, _ uint64) ([]byte, error) {
				if asked++; asked > 100 {
					return nil, errors.New("no more chunks")
				}
				return chunk, nil
			})
		}
		c, err := read(record)
		if err != nil {
			c, err = read(inlineRecord(chunk))
		}
		if err != nil {
			return
		}
		b, err := encodeContent(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := read(inlineRecord(b))
		if err != nil {
			t.Fatal(err)
		}
		b2, err := encodeContent(again)
		if err != nil || !reflect.DeepEqual(b, b2) {
			t.Errorf("%s comes back as %s (%v)", b, b2, err)
		}
	})
}

func FuzzRecords(f *testing.F) {
	f.Add(numberRecord(5))
	f.Add(frame([]byte(`{"session_id":"x","first":1}`)))
	f.Add([]byte{0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, r := range [][]byte{b, frame(b)} {
			if body, err := unframe(r); err == nil && !reflect.DeepEqual(frame(body), r) {
				t.Errorf("%x comes back as %x", r, frame(body))
			}
			if n, err := readNumber(r); err == nil {
				if again, err := readNumber(numberRecord(n)); err != nil || again != n {
					t.Errorf("%d comes back as %d (%v)", n, again, err)
				}
			}
			// None of these may panic; all of them are checked above all by their types.
			_, _ = readInfo(r)
			_, _ = readCovers(r)
			_, _ = readEvent(r)
			_, _ = readQueued(Numbered{Value: r})
		}
	})
}

func FuzzCursor(f *testing.F) {
	for _, c := range []string{"e.5", "e.", ".", "", "e.18446744073709551616", "e.+1"} {
		f.Add(c)
	}
	s := &Store{epoch: "e"}
	f.Fuzz(func(t *testing.T, c string) {
		if n, ok := s.parseCursor(c); ok {
			if again, ok := s.parseCursor(s.cursor(n)); !ok || again != n {
				t.Errorf("cursor %q: %d comes back as %d", c, n, again)
			}
		}
		if _, _, err := parsePage(c); err != nil && protocol.CodeOf(err) != protocol.CodeInvalidParams {
			t.Errorf("page %q: %v", c, err)
		}
	})
}
