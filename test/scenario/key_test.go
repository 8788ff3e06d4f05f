package scenario

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
	"convls/test/fakemodel"
)

// TestKeyOfClient asks the client for the key of a server on this machine when that has
// refused a call, keeps what it gave, and asks anew when that is refused in turn.
func TestKeyOfClient(t *testing.T) {
	m := fakemodel.New(t)
	wanted := ""
	var mu sync.Mutex
	m.Respond(func(r fakemodel.Request) fakemodel.Reply {
		mu.Lock()
		defer mu.Unlock()
		if wanted == "" || r.Header.Get("Authorization") == "Bearer "+wanted {
			return fakemodel.Say("welcome")
		}
		return fakemodel.Fail(401, `{"error":{"message":"wrong key"}}`)
	})
	give := ""
	var asked []string
	ed := editor.NewHome(t).Start(t, editor.Options{Client: client.Options{
		Name:     "keys",
		Settings: map[string]any{"model": "fake/x", "providers.fake.base_url": m.URL(), "turn.max_retries": 0},
		Secret: func(_ context.Context, p protocol.SecretGetParams) (protocol.SecretGetResult, error) {
			mu.Lock()
			defer mu.Unlock()
			what := p.Provider + " " + p.Reason
			if p.Quiet {
				what += " quiet"
			}
			asked = append(asked, what)
			return protocol.SecretGetResult{Key: give}, nil
		},
	}})
	defer ed.Leave(t)
	session := editor.Ask[protocol.SessionResult](ed, protocol.MethodSessionCreate, protocol.SessionCreateParams{}).SessionID
	for _, row := range []struct {
		name, wanted, give string
		asked              []string
		state              protocol.Status
	}{
		{"none is wanted", "", "", nil, protocol.StatusSealed},
		{"there is none", "one", "", []string{"fake rejected"}, protocol.StatusFailed},
		{"it is given", "one", "one", []string{"fake rejected"}, protocol.StatusSealed},
		{"it is kept", "one", "", nil, protocol.StatusSealed},
		{"it is refused", "two", "two", []string{"fake rejected"}, protocol.StatusSealed},
		{"a wrong one is given", "three", "four", []string{"fake rejected"}, protocol.StatusFailed},
	} {
		mu.Lock()
		wanted, give, asked = row.wanted, row.give, nil
		mu.Unlock()
		r := editor.Ask[protocol.TurnResult](ed, protocol.MethodTurnSend,
			protocol.TurnSendParams{SessionID: session, Content: protocol.SendContent{{Type: protocol.PartText, Text: row.name}}, Wait: true})
		mu.Lock()
		if r.State != row.state || !slices.Equal(asked, row.asked) {
			t.Errorf("%s: the turn is %s and the client was asked %q, want %s and %q", row.name, r.State, asked, row.state, row.asked)
		}
		mu.Unlock()
	}
	// Nobody is asked for the sake of a list.
	mu.Lock()
	give, asked = "", nil
	mu.Unlock()
	editor.Ask[protocol.ModelListResult](ed, protocol.MethodModelList, protocol.Empty{})
	mu.Lock()
	defer mu.Unlock()
	for _, what := range asked {
		if !strings.HasSuffix(what, " quiet") {
			t.Errorf("for a list of models the client was asked %q", what)
		}
	}
	if len(asked) == 0 {
		t.Error("for a list of models the client was not asked at all")
	}
}
