package store

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"
)

// recordVersion is the version of the layout of every record. A later program may
// append to a layout without a new version, because readers ignore what they do
// not know; a version says that older programs can not read the record at all.
const recordVersion = 1

var crcTable = crc32.MakeTable(crc32.Castagnoli)

var (
	errChecksum = errors.New("checksum does not match")
	errShort    = errors.New("record is too short")
	errNewer    = errors.New("record was written by a newer program")
	errUnknown  = errors.New("record holds an unknown kind or status")
)

// isBadRecord reports whether a record, or the block of the disk that it is in, can
// not be decoded.
func isBadRecord(err error) bool {
	return pebble.IsCorruptionError(err) || errors.Is(err, errChecksum) || errors.Is(err, errShort) || errors.Is(err, errNewer) || errors.Is(err, errUnknown)
}

// frameSize is what [frame] puts before a body, in bytes.
const frameSize = 5

// frame wraps the body of a record: version, checksum, body. Pebble checks its
// blocks on disk; this checks that what we read is what we once meant to write,
// whatever happened in between.
func frame(body []byte) []byte {
	b := make([]byte, frameSize, frameSize+len(body))
	b[0] = recordVersion
	binary.LittleEndian.PutUint32(b[1:], crc32.Checksum(body, crcTable))
	return append(b, body...)
}

// unframe returns the body of a record, which is part of b.
func unframe(b []byte) ([]byte, error) {
	switch {
	case len(b) < frameSize:
		return nil, errShort
	case b[0] == 0 || b[0] > recordVersion:
		return nil, errNewer
	case crc32.Checksum(b[frameSize:], crcTable) != binary.LittleEndian.Uint32(b[1:]):
		return nil, errChecksum
	}
	return b[frameSize:], nil
}

// seal appends the checksum of a record, for the records that are read most: their version is their first byte and their checksum their
// last four, so that encoding them takes one buffer.
func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crcTable))
}

// unseal returns the record without its checksum, which is part of b.
func unseal(b []byte) ([]byte, error) {
	if len(b) < 5 {
		return nil, errShort
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	switch {
	case crc32.Checksum(body, crcTable) != sum:
		return nil, errChecksum
	case body[0] == 0 || body[0] > recordVersion:
		return nil, errNewer
	}
	return body, nil
}

// numberRecord is the record of one number.
func numberRecord(n uint64) []byte { return frame(binary.AppendUvarint(nil, n)) }

// readNumber decodes a record made by [numberRecord].
func readNumber(b []byte) (uint64, error) {
	body, err := unframe(b)
	if err != nil {
		return 0, err
	}
	d := decoder{b: body}
	n := d.uvarint()
	return n, d.err
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads numbers and strings from a record and remembers the first error.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.err, d.b = errShort, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.err, d.b = errShort, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}
