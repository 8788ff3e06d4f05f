package frame

import (
	"bytes"
	"errors"
	"strings"

	"convls/protocol"

	"github.com/go-json-experiment/json/jsontext"
	"go.lsp.dev/jsonrpc2"
)

// refusal is why a message is not accepted, and what could be read of it.
type refusal struct {
	code   jsonrpc2.Code
	data   protocol.Code
	reason string
	// id is invalid where it could not be read.
	id jsonrpc2.ID
	// response says that the message answers a call.
	response bool
}

// wire returns the refusal as the error member of an answer.
func (r refusal) wire() *jsonrpc2.Error {
	if r.data != "" {
		return EncodeError(protocol.Errorf(r.data, "%s", r.reason))
	}
	return jsonrpc2.NewError(r.code, r.reason)
}

// refuseAs makes the refusal of a message of which body is all or the beginning.
func refuseAs(code jsonrpc2.Code, data protocol.Code, body []byte, reason string) *refusal {
	e := peek(body)
	return &refusal{code: code, data: data, reason: reason, id: e.id, response: e.response && e.id.IsValid()}
}

// check returns body if it is one JSON-RPC message, in JSON that every reader
// understands alike (RFC 7493: UTF-8, no lone surrogates, no duplicate members).
// Params are checked here once, because jsonrpc2 hands them on unseen.
func check(body []byte) ([]byte, *refusal) {
	if !jsontext.Value(body).IsValid() {
		code, reason := syntax(body)
		return nil, refuseAs(code, "", body, reason)
	}
	if first := bytes.TrimLeft(body, " \t\r\n"); first[0] != '{' {
		reason := "the message is not an object"
		if first[0] == '[' {
			reason = "batches are not part of LSP: send the messages one by one"
		}
		return nil, &refusal{code: jsonrpc2.InvalidRequest, reason: reason}
	}
	if _, err := jsonrpc2.ScanMessageView(body); err == nil {
		return body, nil
	}
	if wholeID(body) {
		if _, err := jsonrpc2.ScanMessageView(body); err == nil {
			return body, nil
		}
	}
	return nil, refuseAs(jsonrpc2.InvalidRequest, "", body,
		`the message is no JSON-RPC 2.0 request, notification or response: "jsonrpc":"2.0" and one of method, result and error are needed, and an id that is a string or an integer`)
}

// syntax says what is wrong with text that is not valid.
func syntax(body []byte) (jsonrpc2.Code, string) {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	_, err := dec.ReadValue()
	switch {
	case err == nil:
		return jsonrpc2.ParseError, "there is more than one JSON value in the message"
	case errors.Is(err, jsontext.ErrDuplicateName):
		return jsonrpc2.InvalidRequest, strings.TrimPrefix(err.Error(), "jsontext: ")
	default:
		return jsonrpc2.ParseError, "the message is not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: ")
	}
}
