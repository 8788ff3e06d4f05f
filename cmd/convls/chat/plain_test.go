package chat

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/fakemodel"
)

// script runs plain mode over lines and returns what it printed.
func (r *rig) script(t *testing.T, o Options, settings any, lines ...string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr strings.Builder
	o.Stdin, o.Stdout, o.Stderr = strings.NewReader(strings.Join(lines, "\n")), &stdout, &stderr
	if len(lines) > 0 {
		o.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	}
	err = run(t.Context(), o, r.dial(settings))
	return stdout.String(), stderr.String(), err
}

func TestPlainAnswersEachLine(t *testing.T) {
	r := newRig(t)
	out, errs, err := r.script(t, Options{}, nil, "repeat: one", "", "repeat: two\r", "//repeat: three")
	if err != nil || errs != "" {
		t.Fatalf("err %v, stderr %q", err, errs)
	}
	lines := strings.Split(out, "\n")
	if lines[0] != "one" || lines[1] != "two" || !strings.Contains(lines[2], `You said: "/repeat: three"`) {
		t.Errorf("printed %q", out)
	}
}

func TestPlainLastLineWithoutNewline(t *testing.T) {
	r := newRig(t)
	var stdout, stderr strings.Builder
	o := Options{Stdin: strings.NewReader("repeat: hi"), Stdout: &stdout, Stderr: &stderr}
	if err := run(t.Context(), o, r.dial(nil)); err != nil {
		t.Fatal(err)
	}
	if stdout.String() != "hi\n" {
		t.Errorf("printed %q", stdout.String())
	}
}

// TestPlainKeepsBytes: what goes to a file is the answer as it is, tabs and all.
func TestPlainKeepsBytes(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	fake.Script(fakemodel.Say("all:\n\tgo bu", "ild 漢", "字\n"))
	out, _, err := r.script(t, Options{Once: true, Message: "a makefile", Model: "fake/m"}, provider(fake))
	if err != nil {
		t.Fatal(err)
	}
	if want := "all:\n\tgo build 漢字\n"; out != want {
		t.Errorf("printed %q, want %q", out, want)
	}
}

func provider(f *fakemodel.Server) any {
	return map[string]any{"providers": map[string]any{"fake": map[string]any{"kind": "openai", "base_url": f.URL()}}, "turn": map[string]any{"max_retries": 0}}
}

func TestPlainFailedTurn(t *testing.T) {
	r := newRig(t)
	out, errs, err := r.script(t, Options{}, nil, "fail auth after 2 words", "repeat: still here")
	if !errors.Is(err, ErrFailed) {
		t.Errorf("err %v", err)
	}
	if !strings.Contains(errs, "error: ") || !strings.Contains(errs, "(") {
		t.Errorf("stderr %q has no reason with a next step", errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || len(strings.Fields(lines[0])) != 2 || lines[1] != "still here" {
		t.Errorf("printed %q: want two words of the failed answer, then the next", out)
	}
}

func TestPlainOnceReturnsTheReason(t *testing.T) {
	r := newRig(t)
	_, errs, err := r.script(t, Options{Once: true, Message: "fail quota"}, nil)
	if err == nil || errors.Is(err, ErrFailed) || errs != "" {
		t.Errorf("err %v, stderr %q: want the reason as the error, told once", err, errs)
	}
}

func TestPlainCommands(t *testing.T) {
	r := newRig(t)
	out, errs, err := r.script(t, Options{Title: "Tests"}, nil,
		"repeat: first", "/fork idea", "repeat: second", "/branches", "/name better", "/checkout #2", "repeat: other", "/branches",
		"/checkout better", "/context", "/retry #3", "/prev", "/rewind", "/rename Renamed", "/sessions", "/search second", "/system Be brief.", "/system", "/model")
	if err != nil {
		t.Fatalf("err %v, stderr %q", err, errs)
	}
	for _, want := range []string{
		"first\nforked at #2: the next message goes to the branch idea\nsecond\n",
		"* 1  idea  4 messages",
		"other\n",
		"  2  better  4 messages", // the unnamed branch was used last
		"spine     user      repeat: second",
		"* 1  Renamed",
		"3  Renamed  user · repeat: second",
		"on the branch better",
		"version 1 of 2 of #4",
		"Be brief.\n",
		"* offline",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

// TestPlainNodes: pins, redaction and comparison, as a person sees them.
func TestPlainNodes(t *testing.T) {
	r := newRig(t)
	out, errs, err := r.script(t, Options{}, nil,
		"repeat: first", "/fork idea", "repeat: second", "/checkout #2", "repeat: third", "/fork other",
		"/compare idea other", "/compare idea", "/pin", "/pin #1", "/unpin #1", "/redact --yes #1", "/context", "/help")
	if err != nil {
		t.Fatalf("err %v, stderr %q", err, errs)
	}
	for _, want := range []string{
		"idea adds 2 messages, ",
		"  #3    user      repeat: second\n  #4    assistant second\n\nother adds 2 messages, ",
		"\nwhere you are adds 2 messages, ",
		"#4 is pinned: a compaction carries it on word for word\n#1 is pinned",
		"#1 is not pinned any more\n",
		"#1 is redacted; its place in the conversation stays\n",
		"/redact [--yes] <#n>  ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if _, after, _ := strings.Cut(out, "#1 is redacted"); strings.Contains(after, "repeat: first") {
		t.Errorf("what was erased is still read by the model:\n%s", after)
	}
	if tip := r.last(t).Transcript.Rows; !tip[len(tip)-1].Pinned {
		t.Errorf("#4 is not pinned")
	}
}

// TestPlainWarning: a line about the settings is told once, and not among the answers.
func TestPlainWarning(t *testing.T) {
	r := newRig(t)
	out, errs, err := r.script(t, Options{Warning: "modek is no setting: did you mean model?"}, nil, "repeat: hi")
	if err != nil || out != "hi\n" || errs != "warning: modek is no setting: did you mean model?\n" {
		t.Errorf("%v, printed %q, stderr %q", err, out, errs)
	}
}

func TestPlainEditReplacesTheNextLine(t *testing.T) {
	r := newRig(t)
	out, _, err := r.script(t, Options{}, nil, "repeat: before", "/edit 1", "repeat: after", "/edit 1 repeat: again", "/context")
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\nrepeat: before\nafter\nagain\n"; !strings.HasPrefix(out, want) {
		t.Errorf("printed %q, want the beginning %q", out, want)
	}
	if strings.Contains(out[len("before\nrepeat: before\n"):], "before") {
		t.Errorf("the context holds the old version:\n%s", out)
	}
}

// TestPlainAsksNobody: where nobody can be asked, a line is never taken for an answer.
// What would be asked for is refused, and says how to say it.
func TestPlainAsksNobody(t *testing.T) {
	r := newRig(t)
	out, errs, err := r.script(t, Options{}, nil, "repeat: one", "/fork x", "repeat: two", "/checkout #2", "repeat: three", "/delete x", "yes", "/redact #1", "/branches", "/delete --yes x", "/branches", "/delete")
	if !errors.Is(err, ErrFailed) {
		t.Errorf("err %v", err)
	}
	for _, want := range []string{
		"error: Delete x for good: 2 nodes that no other branch shares? Nothing was changed, there is nobody to ask: /delete --yes x does it\n",
		`error: Erase what #1 says for good, on every branch that holds it? "repeat: one" Nothing was changed, there is nobody to ask: /redact --yes #1 does it` + "\n",
		"nobody to ask: /delete --yes does it\n",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing in:\n%s", want, errs)
		}
	}
	before, after, ok := strings.Cut(out, "deleted 2 nodes\n")
	if !ok || !strings.Contains(before, `You said: "yes"`) || !strings.Contains(before, "  x  ") || strings.Contains(after, "  x  ") {
		t.Errorf("printed %q", out)
	}
}

// TestPlainPromptAsks: at a prompt the next line is the answer.
func TestPlainPromptAsks(t *testing.T) {
	r := newRig(t)
	l, err := r.dial(nil)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	p := &plain{o: Options{Stdout: &out, Stderr: &out}, link: l, prompts: true, printed: map[string]int{}, ended: map[string]ending{}}
	p.clientID = l.clientID
	defer func() { _ = l.end() }()
	for _, text := range []string{"repeat: one", "/redact #1", "", "/redact #1", "y"} {
		if err := p.line(t.Context(), input{text: text}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		p.prompt()
	}
	if want := "one\n> Erase what #1 says for good, on every branch that holds it? \"repeat: one\" [y/N] nothing was changed\n> "; !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "#1 is redacted") {
		t.Errorf("printed %q, want %q in it", out.String(), want)
	}
}

// TestPlainNumbersAreNoNames: what is a number to other commands can not be a name.
func TestPlainNumbersAreNoNames(t *testing.T) {
	r := newRig(t)
	out, errs, _ := r.script(t, Options{}, nil, "repeat: one", "/name 7", "/name #1", "/name -3", "/fork 2", "/fork #2 12", "/fork #2 #x", "/branches", "/name v7", "/fork #1 7th", "/branches")
	for _, name := range []string{"7", "#1", "-3", "2", "12", "#x"} {
		if want := `error: "` + name + `" can not be the name of a branch`; !strings.Contains(errs, want) {
			t.Errorf("%q is missing in:\n%s", want, errs)
		}
	}
	if !strings.Contains(out, "unnamed") || !strings.Contains(out, "this branch is v7 now") || !strings.Contains(out, "the branch 7th") {
		t.Errorf("printed %q", out)
	}
	if strings.Count(errs, "error:") != 6 {
		t.Errorf("stderr %q", errs)
	}
}

func TestPlainRefusals(t *testing.T) {
	for _, tc := range []struct{ name, line, want string }{
		{"unknown command", "/branchs", "did you mean /branches"},
		{"not clear", "/re", "/re is not clear: /retry, /redact, /rewind, /redo-compact, /rename, /restart"},
		{"no session", "/branches", "there is no conversation yet"},
		{"no model", "/model", ""},
		{"no file", "/attach-file /does/not/exist", "no such file"},
		{"unknown hit", "/show 1", "there is no hit"},
		{"unknown session", "/open nothing of that name", "there is no conversation"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			_, errs, err := r.script(t, Options{}, nil, tc.line)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrFailed) || !strings.Contains(errs, tc.want) {
				t.Errorf("err %v, stderr %q, want %q", err, errs, tc.want)
			}
		})
	}
}

// TestPlainRefusalsInASession: the session is as it was after each.
func TestPlainRefusalsInASession(t *testing.T) {
	r := newRig(t)
	_, errs, err := r.script(t, Options{}, nil, "repeat: one", "/edit 9", "/checkout 7", "/checkout nowhere", "/next", "/rewind #2", "/context cooked", "/model nobody/nothing",
		"/export x.pdf", "/name", "/cancel", "/retry 0", "/cancel waiting", "/cancel 2", "/cancel it", "/unpin", "/redact", "/compare", "/compare nowhere", "/compare 1 nowhere", "/pin #9")
	if !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	want := []string{"no message #9", "no branch 7", `no branch "nowhere"`, "no message here has another version", "not a message of yours", "/context shows",
		"nobody", ".jsonl for everything", "which name", "nothing to cancel", "only a message or a reply", "no message waits", "no waiting message 2: none waits", "/cancel waiting takes out", "no message in view is pinned",
		"which message? /redact <#n>", "compare what?", `no branch "nowhere"`, `no branch "nowhere"`, "no message #9"}
	if len(lines) != len(want) {
		t.Fatalf("%d errors:\n%s", len(lines), errs)
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("error %d: %q, want %q", i, lines[i], want[i])
		}
	}
}

func TestPlainContinueAndOpen(t *testing.T) {
	r := newRig(t)
	if _, _, err := r.script(t, Options{Title: "Old"}, nil, "repeat: kept"); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Continue: true}, {Session: "old"}, {Continue: true, Model: "offline"}} {
		out, _, err := r.script(t, o, nil, "list what I said")
		if err != nil || !strings.Contains(out, "repeat: kept") {
			t.Errorf("%+v: %v, printed %q", o, err, out)
		}
	}
	if _, _, err := r.script(t, Options{Session: "unheard of"}, nil); err == nil {
		t.Error("a session that is not there was opened")
	}
	if _, _, err := r.script(t, Options{Title: "Old"}, nil, "hi"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.script(t, Options{Session: "Old"}, nil); err == nil || !strings.Contains(err.Error(), "give the id of one") {
		t.Errorf("two sessions of one title: %v", err)
	}
}

func TestPlainAttachments(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	fake.Default(fakemodel.Say("seen"))
	file := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(file, []byte("remember the milk"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, err := r.script(t, Options{Model: "fake/m"}, provider(fake), "/attach-file "+file, "what is there?", "and now?")
	if err != nil {
		t.Fatalf("%v %s", err, errs)
	}
	if !strings.HasSuffix(out, "seen\nseen\n") {
		t.Errorf("printed %q", out)
	}
	asked := fake.Requests()
	if !strings.Contains(strings.Join(asked[0].Texts(), " "), "remember the milk") {
		t.Errorf("the model did not get the file: %q", asked[0].Texts())
	}
	if texts := asked[1].Texts(); strings.Contains(texts[len(texts)-1], "milk") {
		t.Errorf("the file went along twice: %q", texts)
	}

	var stdout, stderr strings.Builder
	o := Options{Once: true, Message: "review", Attach: []string{"-"}, Model: "fake/m", Stdin: strings.NewReader("diff --git"), Stdout: &stdout, Stderr: &stderr}
	if err := run(t.Context(), o, r.dial(provider(fake))); err != nil {
		t.Fatal(err)
	}
	asked = fake.Requests()
	if last := asked[len(asked)-1]; !strings.Contains(strings.Join(last.Texts(), " "), "diff --git") {
		t.Errorf("the model did not get standard input: %q", last.Texts())
	}
}

func TestPlainExport(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	md, jsonl := filepath.Join(dir, "a.md"), filepath.Join(dir, "a.jsonl")
	out, errs, err := r.script(t, Options{}, nil, "repeat: words", "/export "+md, "/export "+jsonl)
	if err != nil {
		t.Fatalf("%v %s", err, errs)
	}
	if strings.Count(out, "wrote ") != 2 {
		t.Errorf("printed %q", out)
	}
	for _, f := range []string{md, jsonl} {
		if data, err := os.ReadFile(f); err != nil || !strings.Contains(string(data), "words") {
			t.Errorf("%s: %v, %q", f, err, data)
		}
	}
	if _, errs, _ := r.script(t, Options{Continue: true}, nil, "/export "+md); !strings.Contains(errs, "exists already") {
		t.Errorf("a file that is there was written over: %q", errs)
	}
}

// TestPlainStreams: an answer is printed as it comes, not at its end.
func TestPlainStreams(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	gate := fake.Gate()
	fake.Script(fakemodel.Say("one ", "two").Hold(gate, 1))
	out := newWatched("one ")
	o := Options{Once: true, Message: "go", Model: "fake/m", Stdin: strings.NewReader(""), Stdout: out, Stderr: out}
	done := make(chan error, 1)
	go func() { done <- run(t.Context(), o, r.dial(provider(fake))) }()
	<-out.seen
	gate.Release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if out.String() != "one two\n" {
		t.Errorf("printed %q", out.String())
	}
}

// TestPlainInterrupted: the end of the context stops the answer on the server too.
func TestPlainInterrupted(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	fake.Script(fakemodel.Say("one ", "two").Hold(fake.Gate(), 1))
	out := newWatched("one ")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := Options{Once: true, Message: "go", Model: "fake/m", Stdin: strings.NewReader(""), Stdout: out, Stderr: out}
	done := make(chan error, 1)
	go func() { done <- run(ctx, o, r.dial(provider(fake))) }()
	<-out.seen
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
	snap := r.last(t)
	tip := snap.Transcript.Rows[len(snap.Transcript.Rows)-1]
	if tip.Status != protocol.StatusCancelled || partsText(tip.Content) != "one " {
		t.Errorf("the answer is %s %q", tip.Status, partsText(tip.Content))
	}
}

func TestPlainServerDies(t *testing.T) {
	r := newRig(t)
	fake := fakemodel.New(t)
	fake.Script(fakemodel.Say("one ", "two").Hold(fake.Gate(), 1))
	out, errs := newWatched("one "), &strings.Builder{}
	lines := make(chan string)
	o := Options{Message: "go", Model: "fake/m", Stdin: &lineReader{lines: lines}, Stdout: out, Stderr: errs}
	done := make(chan error, 1)
	go func() { done <- run(t.Context(), o, r.dial(provider(fake))) }()
	<-out.seen
	r.stop()
	err := <-done
	if err == nil || !strings.Contains(err.Error(), "/restart") {
		t.Errorf("err %v", err)
	}
	close(lines)
	r.start()
}

// last returns the session that was used last.
func (r *rig) last(t *testing.T) *protocol.SessionOpenResult {
	t.Helper()
	c := r.other()
	list, err := call[protocol.SessionListResult](t.Context(), c, protocol.MethodSessionList, protocol.SessionListParams{Limit: 1})
	if err != nil || len(list.Sessions) == 0 {
		t.Fatalf("no session: %v", err)
	}
	snap, err := open(t.Context(), c, list.Sessions[0].SessionID, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}
