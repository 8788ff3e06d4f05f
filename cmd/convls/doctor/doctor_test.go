package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"convls/protocol"
	"convls/settings"
	"convls/store"
)

// The scripts in testdata run the commands below as programs of their own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"convls": func() { run(convls()) },
		"ledger": func() { run(ledger()) },
	})
}

func run(cmd *cobra.Command) {
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, cmd.Name()+":", err)
		if !errors.Is(err, ErrProblems) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// convls is the command around the doctor.
func convls() *cobra.Command {
	root := &cobra.Command{Use: "convls"}
	dataDir := root.PersistentFlags().String("data-dir", "", "")
	config := root.PersistentFlags().String("config", "", "")
	root.AddCommand(VersionCommand(), Command(Options{Paths: func() (settings.Paths, error) {
		var o settings.Overrides
		if root.PersistentFlags().Changed("data-dir") {
			o.DataDir = dataDir
		}
		if root.PersistentFlags().Changed("config") {
			o.Config = config
		}
		return settings.FindPaths(os.Environ(), o)
	}}))
	return root
}

// ledger makes and breaks stores: ledger create, damage, newer, hold, list DIR.
func ledger() *cobra.Command {
	return &cobra.Command{Use: "ledger", Args: cobra.ExactArgs(2), RunE: func(_ *cobra.Command, args []string) error {
		return map[string]func(string) error{"create": create, "damage": damage, "newer": newer, "hold": hold, "list": list}[args[0]](args[1])
	}}
}

// create makes a store with three sessions of two nodes beside the root.
func create(dir string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return err
	}
	for i := range 3 {
		out, err := s.Create(ctx, store.Request{}, store.Info{Policy: "rolling"}, "be brief")
		if err != nil {
			return err
		}
		sess, err := s.Session(out.Result)
		if err != nil {
			return err
		}
		_, err = store.Apply(ctx, sess, store.Request{}, func(tx *store.Tx) (int, error) {
			for _, kind := range []protocol.Kind{protocol.KindUser, protocol.KindAssistant} {
				text := fmt.Sprintf("%s message of session %d", kind, i)
				if _, err := tx.Append(store.NodeSpec{Kind: kind, Predecessor: tx.State.Head, Status: protocol.StatusSealed,
					Content: store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: text}}}}); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		if err != nil {
			return err
		}
	}
	return s.Close()
}

// rewrite changes the records of a store behind its back.
func rewrite(dir string, change func(key, value []byte) []byte) error {
	db, err := pebble.Open(dir, &pebble.Options{})
	if err != nil {
		return err
	}
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	changed := 0
	for ok := it.First(); ok; ok = it.Next() {
		if value := change(it.Key(), append([]byte{}, it.Value()...)); value != nil {
			changed++
			if err := db.Set(it.Key(), value, pebble.Sync); err != nil {
				return err
			}
		}
	}
	if changed != 1 {
		err = fmt.Errorf("%d records were changed", changed)
	}
	return errors.Join(err, it.Close(), db.Close())
}

// damage flips a letter in the content of one node.
func damage(dir string) error {
	return rewrite(dir, func(_, value []byte) []byte {
		at := strings.Index(string(value), "assistant message of session 1")
		if at < 0 {
			return nil
		}
		value[at] ^= 1
		return value
	})
}

// newer says that a program of the future wrote the store.
func newer(dir string) error {
	return rewrite(dir, func(key, value []byte) []byte {
		if !strings.HasSuffix(string(key), "format") || string(value) != fmt.Sprint(store.Format) {
			return nil
		}
		return []byte("99")
	})
}

// hold has the store until it is killed, and says so by a file.
func hold(dir string) error {
	if _, err := store.Open(context.Background(), store.Options{Dir: dir, Program: "convls of ada"}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "held"), nil, 0o600); err != nil {
		return err
	}
	select {}
}

// list prints all files below dir, so that a script can compare. Taking the lock
// touches its file, so that one's time is left out.
func list(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		size := info.Size()
		if e.IsDir() {
			size = 0
		}
		changed := info.ModTime().UnixNano()
		if e.Name() == "LOCK" {
			changed = 0
		}
		_, err = fmt.Println(path, info.Mode(), size, changed)
		return err
	})
}

// models is a server that lists models to those who have the key.
func models(t testing.TB) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.URL.Path, "/open/"), r.Header.Get("Authorization") == "Bearer sesame-7f3a":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"small","object":"model"},{"id":"big\u001b[31m","object":"model"}]}`)
		case strings.HasPrefix(r.URL.Path, "/slow/"):
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"wrong key","type":"invalid_request_error","code":"invalid_api_key"}}`)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestScripts(t *testing.T) {
	server := models(t)
	// An address where nobody listens.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("MODELS", server.URL)
			e.Setenv("NOBODY", closed)
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// await FILE waits until another program has written it.
			"await": func(ts *testscript.TestScript, _ bool, args []string) { await(ts, ts.MkAbs(args[0])) },
			// expand FILE replaces $MODELS and $NOBODY in it.
			"expand": func(ts *testscript.TestScript, _ bool, args []string) {
				text := os.Expand(ts.ReadFile(args[0]), func(name string) string { return ts.Getenv(name) })
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
			},
		},
	})
}
