package frame

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"strconv"
	"strings"
)

// ErrHeader is the error of a header from which the length of the body can not
// be told. It ends the connection.
var ErrHeader = errors.New("malformed header")

const (
	// maxHeader bounds a header block, in bytes. LSP's two fields need 100.
	maxHeader = 8 << 10
	// maxClaim is the longest body that is skipped to stay in step. A longer claim
	// is taken for a damaged header, not for a message.
	maxClaim = 4 << 30
	// notInNames can not be in the name of a field (RFC 9110, section 5.6.2): a body
	// that comes without a header is found out by them.
	notInNames = " \t\"(),/:;<=>?@[\\]{}"
)

// header is what the fields before a body say.
type header struct {
	length int64
	// charset is empty unless it is another than UTF-8.
	charset string
}

// readHeader reads fields up to the empty line. Names may be in any case, lines
// may end in LF alone, fields other than Content-Length and Content-Type are
// ignored, and so are empty lines before the first field, which some clients
// leave after a body.
func readHeader(in *bufio.Reader) (header, error) {
	h, found, size := header{length: -1}, false, 0
	for {
		line, err := in.ReadSlice('\n')
		size += len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || size > maxHeader:
			return h, fmt.Errorf("%w: longer than %d bytes", ErrHeader, maxHeader)
		case errors.Is(err, io.EOF) && (found || len(bytes.TrimSpace(line)) > 0):
			return h, io.ErrUnexpectedEOF
		case err != nil:
			return h, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if !found {
				continue
			}
			break
		}
		found = true
		if err := h.field(line); err != nil {
			return h, err
		}
	}
	if h.length < 0 {
		return h, fmt.Errorf("%w: no Content-Length", ErrHeader)
	}
	return h, nil
}

// field takes one line of the header in.
func (h *header) field(line []byte) error {
	name, value, ok := strings.Cut(string(line), ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || name == "" || strings.ContainsAny(name, notInNames) {
		// The line is not quoted: it may be a message, and this reaches the log.
		return fmt.Errorf("%w: a line of %d bytes is not a field", ErrHeader, len(line))
	}
	switch {
	case strings.EqualFold(name, "Content-Length"):
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil || n > maxClaim {
			return fmt.Errorf("%w: Content-Length %.40q is not a number of bytes up to %d", ErrHeader, value, int64(maxClaim))
		}
		if h.length >= 0 && h.length != int64(n) {
			return fmt.Errorf("%w: two different Content-Length fields", ErrHeader)
		}
		h.length = int64(n)
	case strings.EqualFold(name, "Content-Type"):
		// A type that can not be parsed says nothing about the charset.
		_, params, _ := mime.ParseMediaType(value)
		switch charset := strings.ToLower(params["charset"]); charset {
		// LSP 2 called it utf8, and clients may still do so.
		case "", "utf-8", "utf8":
		default:
			h.charset = charset
		}
	}
	return nil
}
