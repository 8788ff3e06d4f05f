package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"convls/protocol"
	"convls/test/editor"
)

// message is a line of a flat message tree.
func message(id, parent, role string) string {
	if parent != "" {
		parent = fmt.Sprintf(`"parent_id":%q,`, parent)
	}
	return fmt.Sprintf(`{"message_id":%q,%s"message_tree_id":"tree","text":"text of %s","role":%q}`, id, parent, id, role)
}

// TestShuffledSource imports a tree whose messages come in any order (fault 57).
func TestShuffledSource(t *testing.T) {
	ed := editor.NewHome(t).Start(t, editor.Options{})
	const count = 60
	var lines []string
	for i := range count {
		parent, role := "", "prompter"
		if i > 0 {
			parent = fmt.Sprintf("m%d", (i-1)/2) // a binary tree
			if depth(i)%2 == 1 {
				role = "assistant"
			}
		}
		lines = append(lines, message(fmt.Sprintf("m%d", i), parent, role))
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		report := editor.Ask[protocol.ImportReport](ed, protocol.MethodSessionImport, protocol.ImportParams{Text: strings.Join(lines, "\n"), Format: "tree"})
		if len(report.Sessions) != 1 || report.SkippedCount != 0 || report.Nodes != count+1 || report.Sessions[0].Branches != (count+1)/2 {
			t.Fatalf("the report is %+v", report)
		}
		// The way to a leaf is the way in the source.
		hits := editor.Ask[protocol.SearchResult](ed, protocol.MethodSessionSearch, protocol.SearchParams{Query: "text of m59", SessionID: report.Sessions[0].SessionID})
		rows := editor.Ask[protocol.Transcript](ed, protocol.MethodTranscriptGet, protocol.TranscriptParams{SessionID: report.Sessions[0].SessionID, Head: hits.Hits[0].NodeID})
		var got []string
		for _, row := range rows.Rows[1:] {
			got = append(got, row.Content[0].Text)
		}
		if want := "text of m0,text of m2,text of m6,text of m14,text of m29,text of m59"; strings.Join(got, ",") != want {
			t.Errorf("the way to m59 is %s", strings.Join(got, ","))
		}
	}
}

func depth(i int) int {
	d := 0
	for ; i > 0; i = (i - 1) / 2 {
		d++
	}
	return d
}

// TestBrokenSource imports what can not be: parents that are not there, circles,
// half a file. Of a broken session nothing is stored, what is whole beside it is
// (faults 56, 66, 67).
func TestBrokenSource(t *testing.T) {
	circle := func(n int) string {
		var lines []string
		for i := range n {
			lines = append(lines, message(fmt.Sprintf("c%d", i), fmt.Sprintf("c%d", (i+1)%n), "prompter"))
		}
		return strings.Join(lines, "\n")
	}
	export := func(nodes ...string) string {
		return fmt.Sprintf(`{"type":"convls","format":1}
{"type":"session","session_id":"ses_x","title":"x","policy":"rolling","created_at":"2024-01-01T12:00:00Z","head":"r","tips":[],"usage":{"input_tokens":0,"output_tokens":0,"calls":0,"cost_micro_usd":0},"nodes":%d}
{"type":"node","id":"r","kind":"root","status":"sealed","content":[]}
%s`, len(nodes)+1, strings.Join(nodes, "\n"))
	}
	node := func(id, kind, edges string) string {
		return fmt.Sprintf(`{"type":"node","id":%q,"kind":%q,"status":"sealed",%s"content":[{"type":"text","text":"x"}]}`, id, kind, edges)
	}
	for _, tc := range []struct{ name, text string }{
		{"a message whose parent is not there", message("m0", "nowhere", "prompter")},
		{"a message that is its own parent", message("m0", "m0", "prompter")},
		{"a circle of two", circle(2)},
		{"a circle of a thousand", circle(1000)},
		{"an export with an unknown predecessor", export(node("a", "user", `"predecessor":"nowhere",`))},
		{"an export with a node before its predecessor", export(node("a", "user", `"predecessor":"b",`), node("b", "user", `"predecessor":"r",`))},
		{"an export with a node that follows itself", export(node("a", "user", `"predecessor":"a",`))},
		{"an export with a node that follows a tool", export(node("t", "tool", `"caller":"r",`), node("a", "user", `"predecessor":"t",`))},
		{"an export with an unknown caller", export(node("t", "tool", `"caller":"nowhere",`))},
		{"an export with a node twice", export(node("a", "user", `"predecessor":"r",`), node("a", "user", `"predecessor":"r",`))},
		{"an export with covers that are no stretch", export(node("a", "user", `"predecessor":"r",`), node("b", "user", `"predecessor":"r",`), node("s", "summary", `"predecessor":"r","covers":{"first":"a","last":"b"},`))},
		{"half an export", export(node("a", "user", `"predecessor":"r",`))[:420]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			home := editor.NewHome(t)
			ed := home.Start(t, editor.Options{})
			report, err := editor.Try[protocol.ImportReport](ed, protocol.MethodSessionImport, protocol.ImportParams{Text: tc.text})
			if err == nil && (len(report.Sessions) > 0 || report.SkippedCount == 0 || report.Skipped[0].Reason == "") {
				t.Errorf("the report is %+v", report)
			}
			if list := editor.Ask[protocol.SessionListResult](ed, protocol.MethodSessionList, protocol.SessionListParams{}); len(list.Sessions) > 0 {
				t.Errorf("%d sessions are stored", len(list.Sessions))
			}
			whole := message("w0", "", "prompter")
			report = editor.Ask[protocol.ImportReport](ed, protocol.MethodSessionImport, protocol.ImportParams{Text: whole, Format: "tree"})
			if len(report.Sessions) != 1 {
				t.Errorf("after it a whole tree is reported as %+v", report)
			}
			ed.Leave(t)
			home.Check(t)
		})
	}
}
