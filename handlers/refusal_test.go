package handlers

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"convls/protocol"
)

// refusal is a request that is refused: with which code, and what the message has
// to hold so that a person can act on it.
type refusal struct {
	method, params string
	code           protocol.Code
	says           string
}

// refusals are what each method refuses by itself, before anything happens.
func refusals() []refusal {
	const (
		invalid = protocol.CodeInvalidParams
		session = protocol.CodeUnknownSession
		node    = protocol.CodeUnknownNode
		branch  = protocol.CodeUnknownBranch
		confirm = protocol.CodeConfirmRequired
		offline = protocol.CodeNotAChainNode
		model   = protocol.CodeUnknownModel
	)
	return []refusal{
		{protocol.MethodSessionCreate, `{"title":5}`, invalid, "title must be a string, not a number"},
		{protocol.MethodSessionCreate, `{"model":"nobody/x"}`, model, "nobody"},
		{protocol.MethodSessionCreate, `{"policy":"mine"}`, protocol.CodeNotSupported, `there is no policy "mine": rolling`},
		{protocol.MethodSessionCreate, `{"settings":{"compaction":{"trigger":"x"}}}`, invalid, "compaction.trigger must be a number, not a string"},

		{protocol.MethodSessionList, `{"limit":501}`, invalid, "limit is 1 to 500, not 501"},
		{protocol.MethodSessionList, `{"limit":-1}`, invalid, "limit is 1 to 500, not -1"},
		{protocol.MethodSessionList, `{"limit":1.5}`, invalid, "limit must be a whole number, not 1.5"},
		{protocol.MethodSessionList, `{"cursor":"3.5"}`, invalid, `cursor "3.5" is not one that session/list gave`},
		{protocol.MethodSessionList, `{"cursor":"x"}`, invalid, `cursor "x" is not one that session/list gave`},
		{protocol.MethodSessionList, `{"cursor":"-1"}`, invalid, `is not one that session/list gave`},
		{protocol.MethodSessionList, `{"cursor":"-1.5"}`, invalid, `cursor "-1.5" is not one that session/list gave`},
		{protocol.MethodSessionList, `{"cursor":5}`, invalid, "cursor must be a string, not a number"},

		{protocol.MethodSessionOpen, `{}`, invalid, "session_id is missing"},
		{protocol.MethodSessionOpen, `{"session_id":null}`, invalid, "session_id is missing"},
		{protocol.MethodSessionOpen, `{"session_id":""}`, session, "session_id is missing or empty"},
		{protocol.MethodSessionOpen, `{"session_id":" $s"}`, session, `" $s"`},
		{protocol.MethodSessionOpen, `{"session_id":"$s "}`, session, `"$s "`},
		{protocol.MethodSessionOpen, `{"session_id":"$s\n"}`, session, `"$s\n"`},
		{protocol.MethodSessionOpen, `{"session_id":"nowhere"}`, session, `"nowhere"`},
		{protocol.MethodSessionOpen, `{"session_id":"$s","tail":501}`, invalid, "tail is 0 to 500, not 501"},
		{protocol.MethodSessionOpen, `{"session_id":"$s","tail":-1}`, invalid, "tail is 0 to 500, not -1"},
		{protocol.MethodSessionOpen, `{"session_id":"$s","subscribe":1}`, invalid, "subscribe must be true or false, not a number"},

		{protocol.MethodSessionRename, `{"session_id":"$s"}`, invalid, "the title is missing or blank"},
		{protocol.MethodSessionRename, `{"session_id":"$s","title":" \t"}`, invalid, "the title is missing or blank"},
		{protocol.MethodSessionRename, `{"session_id":"nowhere","title":"x"}`, session, `"nowhere"`},

		{protocol.MethodSessionConfigure, `{"session_id":"nowhere","title":"x"}`, session, `"nowhere"`},
		{protocol.MethodSessionConfigure, `{"session_id":"$s","model":"nobody/x"}`, model, "nobody"},
		{protocol.MethodSessionConfigure, `{"session_id":"$s","policy":"mine"}`, protocol.CodeNotSupported, `there is no policy "mine"`},
		{protocol.MethodSessionConfigure, `{"session_id":"$s","settings":5}`, invalid, "settings must be an object, not 5"},

		{protocol.MethodSessionDelete, `{"session_id":"nowhere","confirm":true}`, session, `"nowhere"`},
		{protocol.MethodSessionDelete, `{"session_id":"$s"}`, confirm, "confirm"},
		{protocol.MethodSessionDelete, `{"session_id":"$s","confirm":"yes"}`, invalid, "confirm must be true or false, not a string"},

		{protocol.MethodSessionSubscribe, `{}`, invalid, "session_id is missing"},
		{protocol.MethodSessionSubscribe, `{"session_id":"nowhere"}`, session, `"nowhere"`},
		{protocol.MethodSessionUnsubscribe, `{}`, invalid, "session_id is missing"},

		{protocol.MethodSessionSearch, `{}`, invalid, "query"},
		{protocol.MethodSessionSearch, `{"query":"x","limit":201}`, invalid, "limit is 1 to 200, not 201"},
		{protocol.MethodSessionSearch, `{"query":"x","session_id":"nowhere"}`, session, `"nowhere"`},

		{protocol.MethodSessionExport, `{"session_id":"nowhere","format":"jsonl"}`, session, `"nowhere"`},
		{protocol.MethodSessionExport, `{"session_id":"$s"}`, invalid, "format"},
		{protocol.MethodSessionExport, `{"session_id":"$s","format":"pdf"}`, invalid, "pdf"},
		{protocol.MethodSessionExport, `{"session_id":"$s","format":"markdown","head":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodSessionExport, `{"session_id":"$s","format":"jsonl","path":"/nowhere/x.jsonl"}`, invalid, "/nowhere/x.jsonl"},

		{protocol.MethodSessionImport, `{}`, invalid, "give the path of a file or its text, one of the two"},
		{protocol.MethodSessionImport, `{"path":"/x","text":"y"}`, invalid, "give the path of a file or its text, one of the two"},
		{protocol.MethodSessionImport, `{"path":"/nowhere/x.jsonl"}`, invalid, "/nowhere/x.jsonl"},
		{protocol.MethodSessionImport, `{"text":"y","format":"csv"}`, invalid, "csv"},

		{protocol.MethodTranscriptGet, `{"session_id":"$s","before":"$a","after":"$u"}`, invalid, "before, after and around are three ways to choose the rows: give one of them"},
		{protocol.MethodTranscriptGet, `{"session_id":"$s","around":"$a","after":"$u"}`, invalid, "give one of them"},
		{protocol.MethodTranscriptGet, `{"session_id":"$s","limit":501}`, invalid, "limit is 1 to 500, not 501"},
		{protocol.MethodTranscriptGet, `{"session_id":"$s","head":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodTranscriptGet, `{"session_id":"$s","before":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodTranscriptGet, `{"session_id":"$s","expanded":"$a"}`, invalid, "expanded must be an array of strings, not a string"},
		{protocol.MethodTranscriptGet, `{"session_id":"nowhere"}`, session, `"nowhere"`},

		{protocol.MethodTurnSend, `{"content":"x"}`, invalid, "session_id is missing"},
		{protocol.MethodTurnSend, `{"session_id":"nowhere","content":"x"}`, session, `"nowhere"`},
		{protocol.MethodTurnSend, `{"session_id":"$s"}`, invalid, "the message is empty"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":" \n"}`, invalid, "the message is empty"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":5}`, invalid, "content must be a string or an array of parts, not a number"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":["x"]}`, invalid, "content[0] must be an object, not a string"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":[{"type":"image","data":"?"}]}`, invalid, "content[0].data must be a string of base64, not other text"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":[{"type":"tool_call"}]}`, invalid, `not "tool_call"`},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":"x","model":"nobody/x"}`, model, "nobody"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":"x","expected_head":"nowhere"}`, protocol.CodeStaleHead, "$a"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":"x","caller":"$a"}`, invalid, "caller is of a spawned turn: give spawn too, or leave caller out"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":"x","head":"$a"}`, invalid, "head is of a spawned turn"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":"x","expose":true}`, invalid, "expose is of a spawned turn"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":"x","spawn":true,"caller":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":"x","spawn":true,"head":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":" ","spawn":true}`, invalid, "the message is empty"},
		{protocol.MethodTurnSend, `{"session_id":"$s","content":"x","tools":[{"name":""}]}`, invalid, "name"},

		{protocol.MethodTurnRetry, `{"session_id":"$s"}`, invalid, "node_id is missing"},
		{protocol.MethodTurnRetry, `{}`, invalid, "node_id and session_id are missing"},
		{protocol.MethodTurnRetry, `{"session_id":"$s","node_id":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodTurnRetry, `{"session_id":"$s","node_id":"$a","count":9}`, invalid, "1 to 8"},
		{protocol.MethodTurnRetry, `{"session_id":"$s","node_id":"$root"}`, invalid, "root"},

		{protocol.MethodTurnEdit, `{"session_id":"$s","content":"x"}`, invalid, "node_id is missing"},
		{protocol.MethodTurnEdit, `{"session_id":"$s","node_id":"nowhere","content":"x"}`, node, `"nowhere"`},
		{protocol.MethodTurnEdit, `{"session_id":"$s","node_id":"$u","content":""}`, invalid, "the message is empty"},
		{protocol.MethodTurnEdit, `{"session_id":"$s","node_id":"$root","content":"x"}`, invalid, "root"},

		{protocol.MethodTurnCancel, `{"session_id":"$s"}`, invalid, "reply_id is missing"},
		{protocol.MethodTurnCancel, `{"session_id":"$s","reply_id":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodTurnCancel, `{"session_id":"$s","reply_id":"$u"}`, invalid, `reply_id "$u" is a user node: pass its reply, "$a"`},
		{protocol.MethodTurnCancel, `{"session_id":"$s","reply_id":"$root"}`, invalid, `reply_id "$root" is a root node, which nothing writes: pass the reply_id that turn/send`},

		{protocol.MethodBranchList, `{}`, invalid, "session_id is missing"},
		{protocol.MethodBranchList, `{"session_id":"nowhere"}`, session, `"nowhere"`},
		{protocol.MethodBranchCheckout, `{"session_id":"$s"}`, invalid, "node_id and branch are missing: give one of them"},
		{protocol.MethodBranchCheckout, `{"session_id":"$s","node_id":"$u","branch":"x"}`, invalid, "node_id and branch are two ways to name one: give one of them"},
		{protocol.MethodBranchCheckout, `{"session_id":"$s","branch":"nowhere"}`, branch, `"nowhere"`},
		{protocol.MethodBranchFork, `{"session_id":"$s"}`, invalid, "node_id is missing"},
		{protocol.MethodBranchFork, `{"session_id":"$s","node_id":""}`, node, `no node ""`},
		{protocol.MethodBranchFork, `{"session_id":"$s","node_id":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodBranchFork, `{"session_id":"$s","node_id":"$u","name":5}`, invalid, "name must be a string, not a number"},
		{protocol.MethodBranchRewind, `{"session_id":"$s"}`, invalid, "node_id is missing"},
		{protocol.MethodBranchRewind, `{"session_id":"$s","node_id":"$a"}`, invalid, "assistant"},
		{protocol.MethodBranchRename, `{"session_id":"$s","name":"x"}`, invalid, "tip and branch are missing: give one of them"},
		{protocol.MethodBranchRename, `{"session_id":"$s","branch":"nowhere","name":"x"}`, branch, `"nowhere"`},
		{protocol.MethodBranchDelete, `{"session_id":"$s","confirm":true}`, invalid, "tip and branch are missing: give one of them"},
		{protocol.MethodBranchDelete, `{"session_id":"$s","tip":"$a","branch":"x"}`, invalid, "tip and branch are two ways to name one"},
		{protocol.MethodBranchDelete, `{"session_id":"$s","tip":"$a"}`, confirm, "confirm"},
		{protocol.MethodBranchCompare, `{"session_id":"$s","a_id":"$a"}`, invalid, "b_id is missing"},
		{protocol.MethodBranchCompare, `{"session_id":"$s"}`, invalid, "a_id and b_id are missing"},
		{protocol.MethodBranchCompare, `{"session_id":"$s","a_id":"$a","b_id":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodBranchAttach, `{"session_id":"$s","anchor_id":"$a"}`, invalid, "source_id is missing"},
		{protocol.MethodBranchAttach, `{"session_id":"$s","anchor_id":"nowhere","source_id":"$a"}`, node, `"nowhere"`},
		{protocol.MethodBranchAttach, `{"session_id":"$s","anchor_id":"$a","source_id":"$a","from_session_id":"nowhere"}`, session, `"nowhere"`},

		{protocol.MethodTextDocumentContent, `{}`, invalid, `"" names no document`},
		{protocol.MethodTextDocumentContent, `{"uri":"file:///etc/passwd"}`, invalid, `"file:///etc/passwd" names no document`},
		{protocol.MethodTextDocumentContent, `{"uri":"convls:/session/$s/else.md"}`, invalid, "names no document: it is convls:/session/SESSION/transcript.md"},
		{protocol.MethodTextDocumentContent, `{"uri":"convls:/session/nowhere/graph.md"}`, session, `"nowhere"`},
		{protocol.MethodTextDocumentContent, `{"uri":"convls:/session/$s/graph.md?head=nowhere"}`, node, `"nowhere"`},
		{protocol.MethodTextDocumentContent, `{"uri":"convls:/node/$s/nowhere.md"}`, node, `"nowhere"`},

		{protocol.MethodGraphGet, `{"session_id":"$s","before":"$a","after":"$u"}`, invalid, "give one of them"},
		{protocol.MethodGraphGet, `{"session_id":"$s","limit":2001}`, invalid, "limit is 1 to 2000, not 2001"},
		{protocol.MethodGraphGet, `{"session_id":"$s","limit":-1}`, invalid, "limit is 1 to 2000, not -1"},
		{protocol.MethodGraphGet, `{"session_id":"$s","since":-1}`, invalid, "since is the revision of a view, not -1"},
		{protocol.MethodGraphGet, `{"session_id":"$s","since":1000000}`, invalid, "since 1000000 is no revision of this session, which is at"},
		{protocol.MethodGraphGet, `{"session_id":"$s","covers":"all"}`, invalid, `covers is ids or count, not "all"`},
		{protocol.MethodGraphGet, `{"session_id":"$s","head":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodGraphGet, `{"session_id":"$s","around":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodGraphGet, `{"session_id":"$s","before":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodGraphGet, `{"session_id":"$s","reads_of":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodGraphGet, `{"session_id":"$s","reads_of":"$u"}`, invalid, "is a user, which reads nothing"},
		{protocol.MethodGraphGet, `{"session_id":"$s","expanded":"$a"}`, invalid, "expanded must be an array of strings, not a string"},
		{protocol.MethodGraphGet, `{"session_id":"nowhere"}`, session, `"nowhere"`},

		{protocol.MethodContextGet, `{"session_id":"$s","limit":5001}`, invalid, "limit is 1 to 5000, not 5001"},
		{protocol.MethodContextGet, `{"session_id":"$s","head":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodContextGet, `{"session_id":"nowhere"}`, session, `"nowhere"`},

		{protocol.MethodExec, `{}`, invalid, "session_id is missing"},
		{protocol.MethodExec, `{"session_id":"nowhere","prompt":"x"}`, session, `"nowhere"`},
		{protocol.MethodExec, `{"session_id":"$s"}`, invalid, "the message is empty"},
		{protocol.MethodExec, `{"session_id":"$s","prompt":" "}`, invalid, "the message is empty"},
		{protocol.MethodExec, `{"session_id":"$s","prompt":5}`, invalid, "prompt must be a string or an array of parts, not a number"},
		{protocol.MethodExec, `{"session_id":"$s","prompt":"x","head":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodExec, `{"session_id":"$s","prompt":"x","caller":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodExec, `{"session_id":"$s","prompt":"x","render_range":-1}`, invalid, "render_range is 0 or more entries, not -1"},
		{protocol.MethodExec, `{"session_id":"$s","prompt":"x","render_range":1.5}`, invalid, "render_range must be a whole number, not 1.5"},
		{protocol.MethodExec, `{"session_id":"$s","prompt":"x","model":"nobody/x"}`, model, "nobody"},
		{protocol.MethodExec, `{"session_id":"$s","prompt":"x","expected_head":"nowhere"}`, protocol.CodeStaleHead, "$a"},

		{protocol.MethodNodeGet, `{"session_id":"$s"}`, invalid, "node_id is missing"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":7}`, invalid, "node_id must be a string, not a number"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","include":["all"]}`, invalid, `include names content, reads and provenance, not "all"`},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","max_bytes":-1}`, invalid, "max_bytes is 1 to"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","offset":1}`, invalid, "say which one with part"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","limit":1}`, invalid, "say which one with part"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","part":0,"max_bytes":1}`, invalid, "give the one or the others"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","part":1}`, invalid, "has no part 1: it has 1, counted from 0"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","part":-1}`, invalid, "has no part -1"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","part":0,"offset":19}`, invalid, "offset is 0 to 18, which is the size of part 0, not 19"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","part":0,"offset":-1}`, invalid, "offset is 0 to 18"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","part":0,"offset":10}`, invalid, "offset 10 of part 0 is inside a character"},
		{protocol.MethodNodeGet, `{"session_id":"$s","node_id":"$u","part":0,"limit":4194305}`, invalid, "limit is 1 to 4194304 bytes, not 4194305"},

		{protocol.MethodCompactionRun, `{}`, invalid, "session_id is missing"},
		{protocol.MethodCompactionRun, `{"session_id":"nowhere"}`, session, `"nowhere"`},
		{protocol.MethodCompactionRun, `{"session_id":"$s"}`, protocol.CodeNothingToCompact, "4 at least are needed"},
		{protocol.MethodCompactionRun, `{"session_id":"$s","keep_recent_tokens":-1}`, invalid, "keep_recent_tokens is 0 or more, and 100000000 at most, not -1"},
		{protocol.MethodCompactionRun, `{"session_id":"$s","keep_recent_tokens":1,"up_to_id":"$u"}`, invalid, "give one of them"},
		{protocol.MethodCompactionRun, `{"session_id":"$s","keep_recent_tokens":"many"}`, invalid, "keep_recent_tokens must be a whole number, not a string"},
		{protocol.MethodCompactionPreview, `{"session_id":"nowhere"}`, session, `"nowhere"`},
		{protocol.MethodCompactionPreview, `{"session_id":"$s","keep_recent_tokens":-5}`, invalid, "keep_recent_tokens is 0 or more"},
		{protocol.MethodCompactionCommit, `{"session_id":"$s","draft_id":"nowhere"}`, protocol.CodeUnknownDraft, `"nowhere"`},
		{protocol.MethodCompactionDiscard, `{"session_id":"$s","draft_id":"nowhere"}`, protocol.CodeUnknownDraft, `"nowhere"`},
		{protocol.MethodCompactionCancel, `{"session_id":"$s"}`, protocol.CodeNothingToCompact, "no compaction of this session is under way"},
		{protocol.MethodCompactionList, `{"session_id":"nowhere"}`, session, `"nowhere"`},
		{protocol.MethodCompactionActivate, `{"session_id":"$s","summary_id":"nowhere"}`, protocol.CodeUnknownSummary, `"nowhere"`},
		{protocol.MethodCompactionActivate, `{"session_id":"$s","summary_id":"$u"}`, protocol.CodeUnknownSummary, "not a summary"},
		{protocol.MethodCompactionVerify, `{"session_id":"$s","summary_id":"$u"}`, protocol.CodeUnknownSummary, "compaction/list names them"},
		{protocol.MethodCompactionRebuild, `{"session_id":"$s"}`, invalid, "summary_id is missing"},
		{protocol.MethodCompactionRebuild, `{"session_id":"$s","summary_id":"nowhere"}`, protocol.CodeUnknownSummary, `"nowhere"`},
		{protocol.MethodCompactionCovers, `{"session_id":"$s","summary_id":"nowhere"}`, protocol.CodeUnknownSummary, `"nowhere"`},

		{protocol.MethodNodePin, `{"session_id":"$s"}`, invalid, "node_id is missing"},
		{protocol.MethodNodePin, `{"session_id":"$s","node_id":"nowhere"}`, node, `"nowhere"`},
		{protocol.MethodNodeUnpin, `{"session_id":"$s"}`, invalid, "node_id is missing"},
		{protocol.MethodNodeUnpin, `{"session_id":"nowhere","node_id":"$u"}`, session, `"nowhere"`},
		{protocol.MethodNodeRedact, `{"session_id":"$s","confirm":true}`, invalid, "node_id is missing"},
		{protocol.MethodNodeRedact, `{"session_id":"$s","node_id":"$u"}`, confirm, "confirm"},
		{protocol.MethodNodeRedact, `{"session_id":"$s","node_id":"$root","confirm":true}`, offline, "session/configure"},
	}
}

// TestRefusals sends every method what it can not take. Each refusal has the code
// that says what kind it is and a message in the words of the wire, and changes
// nothing.
func TestRefusals(t *testing.T) {
	v := serve(t)
	before := do[*protocol.ExportResult](v, protocol.MethodSessionExport, `{"session_id":"$s","format":"jsonl"}`).Text
	seen := map[string]bool{}
	for _, tc := range refusals() {
		seen[tc.method] = true
		t.Run(strings.TrimPrefix(tc.method, "convls/")+" "+tc.params, func(t *testing.T) {
			v.t = t
			_, err := v.call(tc.method, tc.params)
			if err == nil {
				t.Fatal("it is taken")
			}
			if got := protocol.CodeOf(err); got != tc.code {
				t.Errorf("the code is %q, want %q", got, tc.code)
			}
			if !strings.Contains(err.Error(), v.names.Replace(tc.says)) {
				t.Errorf("it says: %s\nand should say: %s", err, v.names.Replace(tc.says))
			}
			for _, leak := range []string{"json:", "Go ", "protocol.", "struct", "int64", "unmarshal"} {
				if strings.Contains(err.Error(), leak) {
					t.Errorf("it says %q: %s", leak, err)
				}
			}
		})
	}
	v.t = t
	if after := do[*protocol.ExportResult](v, protocol.MethodSessionExport, `{"session_id":"$s","format":"jsonl"}`).Text; after != before {
		t.Errorf("a refusal changed the session:\n%s\nwas\n%s", after, before)
	}
	for _, name := range slices.Sorted(maps.Keys(v.methods)) {
		if nothing := name == protocol.MethodStoreSubscribe || name == protocol.MethodModelList || name == protocol.MethodStatus; !seen[name] && !nothing {
			t.Errorf("no refusal of %s is tested", name)
		}
	}
}
