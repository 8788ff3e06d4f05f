package neovim

import (
	"os"
	"strings"
	"testing"

	"convls/test/editor"
)

func TestMain(m *testing.M) { os.Exit(editor.Main(m)) }

// TestHealth reads what :checkhealth says where all is well, and where the server
// can not be found.
func TestHealth(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version})
		n.Command("checkhealth convls")
		text := strings.Join(n.Lines(0), "\n")
		for _, want := range []string{"Neovim " + version, "the settings are fine", "found by the setting cmd", "protocol version 1", "store " + n.Home.Data, "0 sessions"} {
			if !strings.Contains(text, want) {
				t.Errorf("checkhealth does not say %q:\n%s", want, text)
			}
		}
		if strings.Contains(text, "ERROR") || strings.Contains(text, "WARNING") {
			t.Errorf("checkhealth complains:\n%s", text)
		}
	})
}

func TestHealthWithoutServer(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version, Config: `vim.g.convls = { cmd = "/nowhere/convls", colour = 1 }`})
		n.Command("checkhealth convls")
		text := strings.Join(n.Lines(0), "\n")
		for _, want := range []string{"the setting cmd names /nowhere/convls, which can not be executed", `there is no setting "colour"`} {
			if !strings.Contains(text, want) {
				t.Errorf("checkhealth does not say %q:\n%s", want, text)
			}
		}
	})
}
