package neovim

import (
	"fmt"
	"strings"
	"testing"

	"convls/test/editor"
	"convls/test/fakemodel"
)

// BenchmarkChat is the way from :Convls chat in a Neovim that has just started to a
// prompt that can be written in: the plugin is loaded, the server started, a session
// made.
func BenchmarkChat(b *testing.B) {
	for _, version := range Versions() {
		b.Run(version, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				n := Start(b, Options{Version: version})
				b.StartTimer()
				n.Command("Convls chat")
				n.AwaitText("New chat · offline")
				b.StopTimer()
				n.Command("Convls shutdown")
				b.StartTimer()
			}
		})
	}
}

// BenchmarkOpen opens a session of 100,000 nodes where the server runs already, and
// sees its end on the screen.
func BenchmarkOpen(b *testing.B) {
	home := editor.NewHome(b)
	session := longSession(b, home, 50_000)
	n := Start(b, Options{Home: home})
	n.Command("Convls chat " + session)
	n.AwaitLoaded()
	for b.Loop() {
		b.StopTimer()
		n.Command("bwipeout")
		n.AwaitScreen("another buffer", func(s string) bool { return !strings.Contains(s, "── Message") })
		b.StartTimer()
		n.Command("Convls chat " + session)
		n.AwaitText("── Message")
		n.AwaitText("## Assistant  offline")
	}
}

// BenchmarkDelta is from a piece of text that the plugin gets to the screen that
// shows it, at the end of a reply that is long already.
func BenchmarkDelta(b *testing.B) {
	m := fakemodel.New(b)
	gate := m.Gate()
	m.Script(fakemodel.Say(strings.SplitAfter(strings.Repeat("word \n", 2000), " ")...).Hold(gate, 2000))
	n := Start(b, Options{Config: strings.Replace(fakeConfig(m), "cmd = program,", "cmd = program, batch_ms = 0,", 1)})
	n.Command("Convls chat")
	n.AwaitLoaded()
	n.Send("go")
	gate.Wait(b)
	n.AwaitLua("the reply", "#(chat.session:last().content[1] or { text = '' }).text >= 11994")
	i := 0
	for b.Loop() {
		i++
		text := fmt.Sprintf("piece %d\n", i)
		n.Lua(`local chat = require("convls.chat").current()
local row = chat.session:last()
require("convls.bus").emit(chat.session.id, "delta", { session_id = chat.session.id, node_id = row.id, part = 0, kind = "text",
  offset = #row.content[1].text, text = ... })`, text)
		n.AwaitText(strings.TrimSpace(text))
	}
}
