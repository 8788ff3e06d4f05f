package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/editor"
)

// TestDocumentedHandshake sends the announcement that docs/protocol.md shows: the
// program answers as it says there.
func TestDocumentedHandshake(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	var request struct {
		Method string       `json:"method"`
		Params protocol.Raw `json:"params"`
	}
	type reply struct {
		Capabilities struct {
			Experimental protocol.Experimental `json:"experimental"`
		} `json:"capabilities"`
	}
	var shown struct {
		Result reply `json:"result"`
	}
	for line := range strings.Lines(string(page)) {
		var into any
		switch {
		case strings.HasPrefix(line, `{"method": "initialize"`):
			into = &request
		case strings.HasPrefix(line, `{"result": {"capabilities"`):
			into = &shown
		default:
			continue
		}
		if err := protocol.Unmarshal([]byte(line), into); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if request.Method == "" || shown.Result.Capabilities.Experimental.Convls == nil {
		t.Fatal("the page shows no handshake")
	}
	a := editor.NewHome(t).Wire(t).Call(request.Method, string(request.Params))
	if a.Error != nil {
		t.Fatalf("the documented announcement is refused: %s", a.Body)
	}
	var got reply
	if err := protocol.Unmarshal(a.Result, &got); err != nil {
		t.Fatal(err)
	}
	is, says := got.Capabilities.Experimental.Convls, shown.Result.Capabilities.Experimental.Convls
	if is == nil || is.ProtocolVersion != says.ProtocolVersion || !slices.Equal(is.Features, says.Features) || (is.ClientID == "") != (says.ClientID == "") {
		t.Errorf("the program answers %s, and the page shows %+v", a.Result, says)
	}
}
