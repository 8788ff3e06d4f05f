package neovim

import (
	"strings"
	"testing"

	"convls/test/fakemodel"
)

// openGuarded opens a chat of a model that answers only to a key; source is the setting
// key, in Lua.
func openGuarded(t *testing.T, version, source string) *Neovim {
	t.Helper()
	m := fakemodel.New(t)
	m.Respond(func(r fakemodel.Request) fakemodel.Reply {
		if r.Header.Get("Authorization") == "Bearer open-sesame" {
			return fakemodel.Say("welcome")
		}
		return fakemodel.Fail(401, `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`)
	})
	n := Start(t, Options{Version: version, Config: strings.Replace(fakeConfig(m), "key = false", "key = "+source, 1)})
	n.Command("Convls chat")
	n.AwaitLoaded()
	return n
}

// TestKeyIsAsked types the key when the model has refused; it is on no screen and in no
// message.
func TestKeyIsAsked(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openGuarded(t, version, `"ask"`)
		n.Type("<Esc>G$ahello<C-CR>") // nothing else is answered while it asks
		n.wantScreen("fake wants a right key (empty for none):")
		n.Type("open-sesame<CR>")
		n.AwaitText("welcome")
		if s := n.Screen() + n.Messages(); strings.Contains(s, "sesame") {
			t.Errorf("the key is shown:\n%s", s)
		}
		// It is not asked for again.
		n.Send("again")
		n.AwaitIdle(5)
	})
}

// TestKeyIsDeclined asks once, and the error says what to do.
func TestKeyIsDeclined(t *testing.T) {
	n := openGuarded(t, "", `"ask"`)
	n.Type("<Esc>G$ahello<C-CR>")
	n.wantScreen("fake wants a right key")
	n.Type("<CR>")
	n.wantScreen("Incorrect API key provided")
	n.Send("again")
	n.AwaitLua("the second failure", "#chat.session.rows == 5 and chat.session:last().status == 'failed'")
}

// TestKeyOfFunction gets the key from a person's function, and nothing of an error that
// it raises is shown.
func TestKeyOfFunction(t *testing.T) {
	for _, row := range []struct{ key, want string }{
		{`function(provider, url, reason) return provider == "fake" and reason == "rejected" and "open-sesame" or nil end`, "welcome"},
		{`function() error("the vault says open-sesame") end`, "the setting key failed for fake"},
	} {
		n := openGuarded(t, "", row.key)
		n.Send("hello")
		n.AwaitScreen(row.want, func(s string) bool { return strings.Contains(s, row.want) || strings.Contains(n.Messages(), row.want) })
		if s := n.Screen() + n.Messages(); strings.Contains(s, "sesame") {
			t.Errorf("the key is shown:\n%s", s)
		}
	}
}
