// Package neovim tests the Neovim plugin in real Neovims, as a person uses it: a
// test types keys and commands into a child process and looks at its screen.
//
//	func TestMain(m *testing.M) { os.Exit(editor.Main(m)) }
//
//	neovim.Each(t, func(t *testing.T, version string) {
//		nvim := neovim.Start(t, neovim.Options{Version: version})
//		nvim.Command("Convls chat")
//		nvim.AwaitScreen("the prompt", func(s string) bool { return strings.Contains(s, "Message") })
//	})
//
// Neovim runs with --embed: it speaks MessagePack RPC over its standard input and
// output, and draws its screen into that. The plugin starts the real convls, on the
// store of a home of its own (package editor). test/install.sh fetches the Neovims.
package neovim
