package scenario

import (
	"strings"
	"testing"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
	"convls/test/fakemodel"
)

// A server that miscounts spoils neither a reply nor the sums of its session.
func TestAbsurdUsage(t *testing.T) {
	b := newBench(t, nil, client.Options{})
	session := b.session(protocol.SessionCreateParams{})
	sent := bodyOf(t, b.fake, fakemodel.Say("hello").Usage(111222, 333444))
	const most = 1 << 40
	var in, out int64
	for _, c := range []struct{ prompt, completion string }{
		{"5", "6"}, {"-7", "8"}, {"9", "-10"}, {"-1", "-1"},
		{"9223372036854775807", "9223372036854775807"}, {"9223372036854775808", "-9223372036854775808"}, {"1e300", "0.5"}, {"0", "18446744073709551616"},
	} {
		b.fake.Script(fakemodel.Raw(strings.NewReplacer("111222", c.prompt, "333444", c.completion).Replace(sent)).With("Content-Type", "text/event-stream"))
		r := b.send(session, "hello")
		if r.State != protocol.StatusSealed || textOf(r.Node) != "hello" {
			t.Fatalf("with usage %v the reply is %s, %q, %+v", c, r.State, textOf(r.Node), r.Node.Error)
		}
		u := r.Node.Usage
		if u == nil || u.InputTokens < 0 || u.InputTokens > most || u.OutputTokens < 0 || u.OutputTokens > most || u.CostUSD < 0 {
			t.Errorf("usage %v is taken for %+v", c, u)
			continue
		}
		in, out = in+u.InputTokens, out+u.OutputTokens
		got := editor.Ask[protocol.SessionOpenResult](b.Editor, protocol.MethodSessionOpen, protocol.SessionOpenParams{SessionID: session}).Session.Usage
		if got.InputTokens != in || got.OutputTokens != out {
			t.Errorf("after usage %v the session has used %d and %d, the sums are %d and %d", c, got.InputTokens, got.OutputTokens, in, out)
		}
	}
}
