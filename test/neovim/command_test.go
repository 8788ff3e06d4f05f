package neovim

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated sections of doc/convls.txt anew")

// words returns a list of strings that came over the wire.
func words(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, w := range list {
		out[i], _ = w.(string)
	}
	return out
}

// TestHelp compares the generated sections of doc/convls.txt with the tables that
// they come from, and makes the tags.
func TestHelp(t *testing.T) {
	n := Start(t, Options{})
	path := filepath.Join(Plugin(t), "doc", "convls.txt")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	// Each section ends at the next ruler; what is generated stands behind its last
	// sentence.
	for name, after := range map[string]string{
		"commands":   "Words and arguments are completed.\n\n",
		"maps":       "unless |convls-setting-keymaps| is off:\n\n",
		"settings":   "there its default holds.\n\n",
		"highlights": "a colour scheme or you can change.\n\n",
	} {
		head, rest, ok := strings.Cut(text, after)
		_, tail, ok2 := strings.Cut(rest, "=====")
		if !ok || !ok2 {
			t.Fatalf("doc/convls.txt has no section %s", name)
		}
		lines := words(n.Lua(`return dofile(...)[select(2, ...)]()`, filepath.Join(Plugin(t), "scripts", "help.lua"), name))
		text = head + after + strings.Join(lines, "\n") + "\n=====" + tail
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(data) {
		t.Error("doc/convls.txt is out of step with the tables: go test ./test/neovim -run Help -update")
	}
	// helptags fails where a tag comes twice. It writes its file beside a copy.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "convls.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n.Command("helptags " + dir)
	tags, err := os.ReadFile(filepath.Join(dir, "tags"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range strings.Fields(text) {
		if strings.HasPrefix(m, "|convls") || strings.HasPrefix(m, "|:Convls") {
			tag := strings.Trim(strings.TrimRight(m, ".,:"), "|")
			if !strings.Contains(string(tags), tag+"\tconvls.txt") {
				t.Errorf("doc/convls.txt refers to %s, which is no tag", tag)
			}
		}
	}
	for i, line := range strings.Split(text, "\n") {
		if len([]rune(line)) > 78 {
			t.Errorf("doc/convls.txt:%d is %d characters wide", i+1, len([]rune(line)))
		}
	}
}

// TestPluginIsLazy: what Neovim loads at its start is the command and the maps, and
// the maps are those of the table.
func TestPluginIsLazy(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version})
		if got := words(n.Lua(`return vim.tbl_filter(function(m) return m:find("convls") end, vim.tbl_keys(package.loaded))`)); len(got) != 0 {
			t.Errorf("the start loads %v", got)
		}
		got := words(n.Lua(`local out = {}
for _, m in ipairs(vim.api.nvim_get_keymap("n")) do out[#out + 1] = m.lhs:match("^<Plug>%(convls%-(.*)%)$") end
table.sort(out)
return out`))
		want := words(n.Lua(`local out = {}
for _, a in ipairs(require("convls.actions").all()) do if a.plug ~= false then out[#out + 1] = a.name end end
table.sort(out)
return out`))
		if !slices.Equal(got, want) {
			t.Errorf("the <Plug> maps are %v, the table has %v", got, want)
		}
		// Only chats get maps of their own.
		if got := whole(n.Lua(`return #vim.api.nvim_buf_get_keymap(0, "n")`)); got != 0 {
			t.Errorf("an ordinary buffer has %d maps", got)
		}
	})
}

// TestCommand completes, and says what was probably meant.
func TestCommand(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := openChat(t, version, nil)
		complete := func(line string) []string {
			return words(n.Lua(`return vim.fn.getcompletion(..., "cmdline")`, line))
		}
		if got := complete("Convls re"); !slices.Equal(got, []string{"retry", "rewind", "rename", "reads", "refresh", "restart"}) {
			t.Errorf("re is completed to %v", got)
		}
		if got := complete("Convls attach qu"); !slices.Equal(got, []string{"quickfix"}) {
			t.Errorf("attach qu is completed to %v", got)
		}
		if got := complete("Convls chat "); len(got) != 1 {
			t.Errorf("the sessions are %v, want the one that is there", got)
		}
		if got := complete("Convls model off"); !slices.Equal(got, []string{"offline"}) {
			t.Errorf("model off is completed to %v", got)
		}
		n.Type(":Convls rety<CR>")
		n.wantMessage("there is no :Convls rety, did you mean :Convls retry?")
	})
}

// TestKeymapsOff leaves a chat without maps.
func TestKeymapsOff(t *testing.T) {
	n := Start(t, Options{Config: "vim.g.convls = { cmd = program, keymaps = false }"})
	n.Command("Convls chat")
	n.AwaitLoaded()
	if got := whole(n.Lua(`return #vim.api.nvim_buf_get_keymap(0, "n")`)); got != 0 {
		t.Errorf("the chat has %d maps", got)
	}
}

// TestStatusLine tells of the chat, and loads nothing where there is none.
func TestStatusLine(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		n := Start(t, Options{Version: version})
		if got := n.Lua(`return require("convls").statusline() .. tostring(package.loaded["convls.chat"])`); got != "nil" {
			t.Errorf("without a chat it is %q", got)
		}
		n.Command("Convls chat")
		n.AwaitLoaded()
		if got := n.Lua(`return require("convls").statusline()`); got != "offline 0%" {
			t.Errorf("the status line is %q", got)
		}
	})
}
