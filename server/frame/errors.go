package frame

import (
	"errors"
	"strings"
	"unicode/utf8"

	"convls/protocol"

	"go.lsp.dev/jsonrpc2"
)

// RequestFailed and RequestCancelled are error codes of LSP 3.17: a request that
// was understood and refused, and one that the client itself cancelled.
const (
	RequestFailed    jsonrpc2.Code = -32803
	RequestCancelled jsonrpc2.Code = -32800
)

// maxQuote bounds the message of an error, and what its data quotes of a request,
// in bytes: either can hold what the client sent, of any length.
const maxQuote = 1_000

// clip cuts a text to maxQuote bytes, at a character.
func clip(s string) string {
	if len(s) <= maxQuote {
		return s
	}
	end := maxQuote
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// EncodeError returns e as a JSON-RPC error: the number that LSP has for its
// code, else RequestFailed, with the details as data. Long ones are cut. The cause
// is not sent.
func EncodeError(e *protocol.Error) *jsonrpc2.Error {
	data := e.Data
	data.Expected, data.NodeID = clip(data.Expected), clip(data.NodeID)
	data.Code = e.Code
	switch e.Code {
	case protocol.CodeBusy, protocol.CodeServerRestarted, protocol.CodeProviderRateLimit, protocol.CodeProviderDown, protocol.CodeStreamCut:
		data.Retryable = true
	}
	// jsonrpc2 writes the bytes of a message as they are, and a path on a disk need
	// not be UTF-8.
	wire := jsonrpc2.NewError(RequestFailed, strings.ToValidUTF8(clip(e.Message), "\ufffd"))
	switch e.Code {
	case protocol.CodeInvalidParams:
		wire.Code = jsonrpc2.InvalidParams
	case protocol.CodeRequestCancelled:
		wire.Code = RequestCancelled
	case protocol.CodeInternal:
		wire.Code = jsonrpc2.InternalError
	}
	encoded, err := protocol.Marshal(data)
	if err != nil {
		// Some detail is not UTF-8: the code is what counts.
		encoded, _ = protocol.Marshal(protocol.ErrorData{Code: e.Code, Retryable: data.Retryable})
	}
	wire.Data = encoded
	return wire
}

// DecodeError returns err, from the other side, as the *protocol.Error that it
// was made of. An error without convls's data that is no error of convls, such
// as an unknown method, stays the *jsonrpc2.Error that it is.
func DecodeError(err error) error {
	wire, ok := errors.AsType[*jsonrpc2.Error](err)
	if !ok {
		return err
	}
	e := &protocol.Error{Message: wire.Message}
	if len(wire.Data) > 0 && protocol.Unmarshal(wire.Data, &e.Data) == nil && e.Data.Code != "" {
		e.Code = e.Data.Code
		return e
	}
	switch wire.Code {
	case jsonrpc2.InvalidParams:
		e.Code = protocol.CodeInvalidParams
	case RequestCancelled:
		e.Code = protocol.CodeRequestCancelled
	case jsonrpc2.InternalError:
		e.Code = protocol.CodeInternal
	default:
		return err
	}
	e.Data = protocol.ErrorData{Code: e.Code}
	return e
}
