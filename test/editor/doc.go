// Package editor is a fake editor for tests: it runs the real program as a real
// editor does, over standard input and output, and remembers what the server sent,
// so that a test waits for events and never sleeps.
//
//	func TestMain(m *testing.M) { os.Exit(editor.Main(m)) }
//
//	home := editor.NewHome(t)            // a data folder of its own
//	ed := home.Start(t, editor.Options{})  // a server on it, initialised
//	ed.Kill(t)                           // kill -9
//	ed = home.Start(t, editor.Options{})   // the next server, on the same data
//
// [Wire] speaks to a server in bytes, for what no well-behaved client sends.
package editor
