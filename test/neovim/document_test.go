package neovim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"convls/test/fakemodel"
)

// TestLinks opens what a link in a document leads to: documents, and web pages by the
// system. What a model writes runs no program, and reads no file.
func TestLinks(t *testing.T) {
	Each(t, func(t *testing.T, version string) {
		m := fakemodel.New(t)
		n := openChat(t, version, m)
		session, _ := n.Lua(`return require("convls.chat").current().session.id`).(string)
		dir := t.TempDir()
		ran, file := filepath.Join(dir, "ran"), filepath.Join(dir, "secret.md")
		if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		graph := "convls:/session/" + session + "/graph.md"
		m.Script(fakemodel.Say(strings.Join([]string{
			"one [the docs](term://touch " + ran + ")",
			"two term://touch\\ " + ran + " here",
			"three [a file](" + file + ")",
			"four " + file,
			"five [a page](https://example.org/a?b=c \"its title\")",
			"six [an archive](convls:/session/x/y.zip)",
			"seven [code](JavaScript:alert)",
			"eight nothing",
			"nine see " + graph + ".",
			"ten [the graph](" + graph + ")",
		}, "\n")))
		n.Send("hi")
		n.AwaitIdle(3)
		n.Command("Convls transcript")
		n.AwaitLua("the document", `vim.fn.search("^ten ") > 0`)
		n.Lua(`told, opened, document = "", "", vim.api.nvim_get_current_buf()
vim.notify = function(text) told = told .. text .. "\n" end
vim.ui.open = function(target) opened = opened .. target .. "\n" end`)
		for _, row := range []struct{ line, at, told, opened, name string }{
			{line: "one", at: "the docs", told: "convls: a link with term: is not opened"},
			{line: "two", at: "term:", told: "convls: there is no link here"},
			{line: "three", at: "a file", told: "convls: a link to a file is not opened"},
			{line: "four", at: "secret", told: "convls: there is no link here"},
			{line: "five", at: "a page", opened: "https://example.org/a?b=c\n"},
			{line: "six", at: "an archive", told: "convls: this convls: link is not opened"},
			{line: "seven", at: "code", told: "convls: a link with javascript: is not opened"},
			{line: "eight", at: "nothing", told: "convls: there is no link here"},
			{line: "nine", at: "see", told: "convls: there is no link here"},
			{line: "nine", at: "graph", name: graph},
			{line: "ten", at: "the graph", name: graph},
		} {
			for _, key := range []string{"<CR>", "gf"} {
				n.Lua(`local line, at, key = ...
told, opened = "", ""
vim.api.nvim_set_current_buf(document)
vim.fn.cursor(1, 1)
vim.fn.search("^" .. line .. " ", "c")
vim.fn.search(at, "c")
vim.api.nvim_feedkeys(vim.keycode(key), "x", false)`, row.line, row.at, key)
				told, _ := n.Lua(`return told`).(string)
				if !strings.HasPrefix(told, row.told) || row.told == "" && told != "" {
					t.Errorf("%s on %s %q told %q, want %q", key, row.line, row.at, told, row.told)
				}
				if opened := n.Lua(`return opened`); opened != row.opened {
					t.Errorf("%s on %s opened %q, want %q", key, row.line, opened, row.opened)
				}
				name, _ := n.Lua(`return vim.api.nvim_buf_get_name(0)`).(string)
				if row.name == "" {
					row.name = "convls:/session/" + session + "/transcript.md"
				}
				if name != row.name {
					t.Errorf("%s on %s leads to %q, want %q", key, row.line, name, row.name)
				}
			}
		}
		if got := n.Lua(`return #vim.tbl_filter(function(buf) return vim.bo[buf].buftype == "terminal" end, vim.api.nvim_list_bufs())`); whole(got) != 0 {
			t.Error("a program was run")
		}
	})
}
