package transfer

import (
	"strings"
	"testing"

	"convls/protocol"
	"convls/store"
)

// TestAttachedInMarkdown: an attach node shows where it points and what that says, in
// an export and in its own document; one whose source was deleted says so.
func TestAttachedInMarkdown(t *testing.T) {
	s := openStore(t)
	out, err := s.Create(t.Context(), store.Request{}, store.Info{Title: "Here"}, "")
	if err != nil {
		t.Fatal(err)
	}
	sess := session(t, s, out.Result)
	apply(t, sess, func(tx *store.Tx) error {
		add := func(id string, kind protocol.Kind, after store.Seq, c store.Content) store.Skeleton {
			sk, err := tx.Append(store.NodeSpec{ID: id, Kind: kind, Predecessor: after, Status: protocol.StatusSealed, Content: c})
			if err != nil {
				t.Fatal(err)
			}
			return sk
		}
		u := add("u1", protocol.KindUser, store.Root, textParts("both ways"))
		side := add("a1", protocol.KindAssistant, u.Seq, textParts("the side way\n\nat length"))
		if err := tx.Name("side", side); err != nil {
			return err
		}
		a := add("a2", protocol.KindAssistant, u.Seq, textParts("the main way"))
		x := add("x1", protocol.KindAttach, a.Seq, store.Content{Source: &store.Source{SessionID: sess.ID(), NodeID: "a1"}})
		x = add("x2", protocol.KindAttach, x.Seq, store.Content{Source: &store.Source{SessionID: "nowhere", NodeID: "a9"}})
		return tx.SetHead(x, "")
	})
	document := func() string {
		var b strings.Builder
		if err := WriteNode(reader(t, sess), "x1", &b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const shown = "<summary>attached: branch side: the side way at length</summary>\n\nthe side way\n\nat length\n"
	const gone = "*attached: a message that was deleted*\n"
	md := export(t, sess, Options{Format: FormatMarkdown})
	for _, want := range []string{"## 3. Attached\n\n<details>\n" + shown, "## 4. Attached\n\n" + gone} {
		if !strings.Contains(md, want) {
			t.Errorf("%q is missing in:\n%s", want, md)
		}
	}
	if d := document(); !strings.Contains(d, shown) {
		t.Errorf("the document of the node:\n%s", d)
	}
	if _, err := store.DeleteBranch(t.Context(), sess, store.Request{}, "", "side", true); err != nil {
		t.Fatal(err)
	}
	if md := export(t, sess, Options{Format: FormatMarkdown}); strings.Count(md, gone) != 2 || strings.Contains(md, "side way") {
		t.Errorf("after the delete:\n%s", md)
	}
	if d := document(); !strings.Contains(d, gone) {
		t.Errorf("the document of the node, after the delete:\n%s", d)
	}
}
